"""A unit: a function with all steps that it calls, each written once for each kind of arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from coterie.engine.direct.arithmetic import DECLARED, Arithmetic
from coterie.engine.direct.routines import normal, powers
from coterie.engine.direct.statements import returned_type, wanted_types, written
from coterie.engine.direct.text import Array, Dialect, NotKnownError, Several, Text, Type, Value, real

REASSOCIATED = "reassoc"
"""The licence to add up terms in any order."""


class Step(NamedTuple):
    """A function that compiled code calls, and what LLVM may do with its floats."""

    function: Callable[..., Any]
    licence: str


steps: dict[Any, Step] = {}
"""What `coterie.engine.inner.inner` has made of functions, and the functions."""
by_address: dict[Any, Any] = {}
"""What `coterie.engine.compiled.call_by_address` has made, and the signatures of the kernels that it calls."""


@cache
def _definitions(path: str) -> dict[str, list[ast.FunctionDef]]:
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def definition_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """The source of a function of a module."""
    code: Any = getattr(function, "__code__", None)
    if code is None or code.co_freevars:
        raise NotKnownError("a function that is not of a module")
    try:
        found = _definitions(code.co_filename).get(code.co_name, [])
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise NotKnownError(f"the source of {code.co_name}") from error
    for node in found:
        if code.co_firstlineno in (node.lineno, *(each.lineno for each in node.decorator_list)):
            return node
    raise NotKnownError(f"the source of {code.co_name}")


class Unit:
    """Text for one function of this name, which others may call, and all that it needs."""

    def __init__(self, dialect: Dialect, name: str, head: str) -> None:
        """`head`: what the text begins with, such as the kind of machine."""
        self._dialect, self._name, self._head = dialect, name, head
        self._made: dict[tuple[Any, tuple[Type, ...]], str] = {}
        self._waiting: list[tuple[str, Step, list[Type]]] = []
        self._constants: dict[int, tuple[Any, str]] = {}
        self._texts: list[str] = []

    def text(self, step: Step, kinds: list[Type]) -> tuple[str, list[Type], Type]:
        """The whole, the types of the arguments of its function, which are those given or wider, and of its result."""
        definition = definition_of(step.function)
        wanted = self._widened(definition, kinds)
        self._write(self._name, step, wanted, "")
        while self._waiting:
            name, its, of = self._waiting.pop()
            self._write(name, its, of, "internal ")
        declared = [f"declare double @{name}(double)" for name in DECLARED]
        constants = [self._table(name, array) for array, name in self._constants.values()]
        needed = "\n".join(self._texts)
        own = [
            *(powers() if "@coterie.power." in needed else []),
            *(normal(self._dialect) if "@coterie.normal(" in needed else []),
        ]
        return (
            "\n".join([self._head, *declared, *constants, *own, needed, "!0 = !{}"]),
            wanted,
            returned_type(definition),
        )

    def _write(self, name: str, step: Step, kinds: list[Type], linkage: str) -> None:
        outside = step.function.__globals__
        definition = definition_of(step.function)
        self._texts.append(written(name, definition, kinds, self._dialect, step.licence, outside, self, linkage))

    @staticmethod
    def _widened(definition: ast.FunctionDef, kinds: list[Type]) -> list[Type]:
        """The types that a function has for arguments of these types."""
        found = wanted_types(definition)
        if len(found) != len(kinds):
            raise NotKnownError("another number of arguments")
        order = ("i1", "i64", "double")

        def wider(given: Type, wanted: Type | None) -> Type:
            if given not in order or wanted not in order:
                return given
            return max(given, wanted, key=order.index)

        return [wider(*pair) for pair in zip(kinds, found, strict=True)]

    def call(self, text: Text, function: Any, arguments: list[Value]) -> Value | None:
        """The value of a step; None if the function is not one."""
        try:
            step = steps.get(function)
        except TypeError:  # it cannot be looked up
            return None
        if step is None:
            return None
        definition = definition_of(step.function)
        kinds = self._widened(definition, [each.type for each in arguments])
        key = (function, tuple(kinds))
        if key not in self._made:
            self._made[key] = f"{step.function.__module__}.{step.function.__name__}.{len(self._made)}"
            self._waiting.append((self._made[key], step, kinds))
        numbers = Arithmetic(text, "")
        handed = []
        for each, kind in zip(arguments, kinds, strict=True):
            given = numbers.as_type(each, kind)
            handed += [f"{p} {v}" for p, v in zip(self._dialect.parts(kind), given.parts, strict=True)]
        returned = returned_type(definition)
        called = f"call {self._dialect.result(returned)} @{self._made[key]}({', '.join(handed)})"
        return _received(text, called, returned)

    def call_at(self, text: Text, function: Any, address: Value, arguments: Value) -> Value | None:
        """The value of the kernel at an address; None if the function does not call such."""
        signature = by_address.get(function)
        if signature is None:
            return None
        if not isinstance(arguments.type, Several) or len(arguments.type.items) != len(signature.args):
            raise NotKnownError("the arguments of a kernel")
        numbers, handed, first = Arithmetic(text, ""), [], 0
        for kind, its in zip(signature.args, arguments.type.items, strict=True):
            number = len(self._dialect.parts(its))
            value = Value(its, arguments.parts[first : first + number])
            first += number
            if isinstance(kind, types.Array):
                handed.append(self._handed(text, value, kind.ndim))
            else:
                wanted = "double" if kind == types.float64 else "i64"
                handed.append(f"{wanted} {numbers.as_type(value, wanted).text}")
        returned = "double" if signature.return_type == types.float64 else "void"
        kinds = ", ".join(each.rsplit(" ", 1)[0] for each in handed)
        pointer = self._dialect.pointer(f"{returned} ({kinds})")
        target = text.let(f"inttoptr i64 {address.text} to {pointer}")
        return _received(text, f"call {returned} {target}({', '.join(handed)})", returned)

    def _handed(self, text: Text, array: Value, rank: int) -> str:
        """An array as numba's functions get it."""
        if array.type != Array("double", rank):
            raise NotKnownError("another array than a kernel wants")
        whole, none = self._dialect.handed_array(rank), self._dialect.pointer("i8")
        steps_back, strides = "8", [""] * rank
        for axis in reversed(range(rank)):
            strides[axis] = steps_back
            steps_back = text.let(f"mul nsw i64 {steps_back}, {array.parts[1 + axis]}")
        number = text.let(f"sdiv exact i64 {steps_back}, 8")
        found = "undef"
        parts = [(f"{none} null", "0"), (f"{none} null", "1"), (f"i64 {number}", "2"), ("i64 8", "3")]
        parts.append((f"{self._dialect.pointer('double')} {array.parts[0]}", "4"))
        parts += [(f"i64 {array.parts[1 + axis]}", f"5, {axis}") for axis in range(rank)]
        parts += [(f"i64 {strides[axis]}", f"6, {axis}") for axis in range(rank)]
        for part, place in parts:
            found = text.let(f"insertvalue {whole} {found}, {part}, {place}")
        return f"{whole} {found}"

    def table(self, array: Any) -> Value:
        """An array that never changes."""
        if array.dtype not in (np.float64, np.int64) or not array.flags.c_contiguous:
            raise NotKnownError(f"a constant array of {array.dtype}")
        name = self._constants.setdefault(id(array), (array, f"{self._name}.table{len(self._constants)}"))[1]
        element = "double" if array.dtype == np.float64 else "i64"
        whole = f"[{array.size} x {element}]"
        address = f"@{name}"
        if self._dialect.typed:
            address = f"getelementptr ({whole}, {whole}* @{name}, i64 0, i64 0)"
        return Value(Array(element, array.ndim), (address, *map(str, array.shape)))

    @staticmethod
    def _table(name: str, array: Any) -> str:
        element = "double" if array.dtype == np.float64 else "i64"
        numbers = [real(float(x)).text if element == "double" else str(int(x)) for x in array.ravel()]
        elements = ", ".join(f"{element} {number}" for number in numbers)
        return f"@{name} = internal constant [{array.size} x {element}] [{elements}]"


def _received(text: Text, called: str, returned: Type) -> Value:
    """What a call returns."""
    if returned == "void":
        text.do(called)
        return Value("void", ())
    found = text.let(called)
    if isinstance(returned, Several):
        whole = "{" + ", ".join(map(str, returned.items)) + "}"
        parts = [text.let(f"extractvalue {whole} {found}, {i}") for i in range(len(returned.items))]
        return Value(returned, tuple(parts))
    return Value(returned, (found,))
