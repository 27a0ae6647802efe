"""The engine's modules once more, as plain Python: what answers until the compiler has done its work.

`plain_module` runs the source of a module of this room again, with decorators that leave functions as they are; what it
imports from this room is plain, too. Nothing of that is known to the import system, and the state of a run is arrays
either way: a run may go on compiled where plain code has left it.

Results are the same to the last bit, but for sums over the dimension whose terms compiled code may add up in any order
(`coterie.engine.compiled.compiled_sum`), and for exponentials in the last bit where numba finds Intel's vector library,
which is not among the dependencies. Where plain Python has a rule of its own, compiled code's is used: a whole
power is a product (`_power`), and what would be no number raises no warning. Where Python raises an error instead, as
for the logarithm of zero, the call is to be done again by compiled code (`coterie.engine.at_once`).
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

from coterie.engine.compiled import INT, Kernel

ROOM = "coterie.engine."
_SHARED = frozenset({"state", "croc.state", "croc.entries"})  # of this room: constants and records, nothing compiled
_modules: dict[str, ModuleType] = {}
_numbers: dict[Kernel, int] = {}
_functions: dict[int, Callable[..., Any]] = {}


def plain_module(name: str) -> ModuleType:
    """The module of this name, of this room, as plain Python; made once."""
    if name not in _modules:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        module = ModuleType(name, f"{name} as plain Python")
        module.__file__ = spec.origin
        vars(module)["__builtins__"] = vars(builtins) | {"__import__": _import}
        vars(module)["_power"] = _power
        with open(spec.origin, encoding="utf-8") as file:
            tree = _Powers().visit(ast.parse(file.read(), spec.origin))
        exec(compile(ast.fix_missing_locations(tree), spec.origin, "exec"), vars(module))
        _modules[name] = module
    return _modules[name]


def _import(name: str, *details: Any) -> Any:
    """What `from name import …` finds in a plain module."""
    if name in _IN_PLACE:
        return _IN_PLACE[name]
    if name.startswith(ROOM) and name.removeprefix(ROOM) not in _SHARED:
        return plain_module(name)
    return builtins.__import__(name, *details)


def _as_it_is(function: Any) -> Any:
    return function


def _only_function(function: Any, signature: Any) -> Any:
    return function


def _call_by_number(signature: Any) -> Callable[[int, Any], Any]:
    """In place of `coterie.engine.compiled.call_by_address`."""
    return lambda number, arguments: _functions[int(number)](*arguments)


def _module(name: str, **parts: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(parts)
    return module


_IN_PLACE = {
    ROOM + "compiled": _module(
        "compiled", compiled=_as_it_is, compiled_sum=_as_it_is, entry=_as_it_is, INT=INT,
        Kernel=_only_function, call_by_address=_call_by_number,
    ),
    ROOM + "held": _module("held", held=_as_it_is),
}  # fmt: skip


def has_plain(kernel: Kernel) -> bool:
    """Whether a kernel can run as plain Python: one of this room. Others may call what only compiled code can."""
    return kernel.module.startswith(ROOM)


def number_of(kernel: Kernel) -> int:
    """What stands for a kernel in place of its address, for plain code: less than zero, which no address is."""
    if kernel not in _numbers:
        number = -1 - len(_numbers)
        _functions[number] = getattr(plain_module(kernel.module), kernel.name)
        _numbers[kernel] = number
    return _numbers[kernel]


class _Powers(ast.NodeTransformer):
    """Powers with a whole exponent that is written out, as the compiler does them."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        exponent = node.right
        if isinstance(node.op, ast.Pow) and isinstance(exponent, ast.Constant) and type(exponent.value) is int:
            return ast.copy_location(ast.Call(ast.Name("_power", ast.Load()), [node.left, exponent], []), node)
        return node


def _power(base: Any, exponent: int) -> Any:
    """base^exponent by products alone, in the order in which the compiler multiplies."""
    if exponent == 2:
        return base * base
    found = 1
    while exponent > 0:
        if exponent & 1:
            found = found * base
        exponent >>= 1
        base = base * base
    return found
