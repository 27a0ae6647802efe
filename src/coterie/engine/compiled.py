"""How the engine is compiled: the only place that chooses numba's options."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from coterie.engine.direct.unit import by_address
from coterie.engine.held import handed
from coterie.engine.inner import KERNEL_PIPELINE, inner

F = TypeVar("F", bound=Callable[..., Any])

INT: Callable[[int], int] = np.int64  # type: ignore[assignment]
"""INT(0) is a plain 64-bit zero; a literal 0 would compile whatever it is passed to once more."""

_numba: Any = numba  # its stubs do not know the options and inner parts that are used here
_njit = _numba.njit


def compiled(function: F) -> F:
    """Compile in nopython mode, for compiled code to call; machine code is made of what Python calls (`entry`).

    Without numba's reference counting: the state is a tuple of many arrays, and counting them in and out of
    every call took longer than the work. The price:
    a step function must not allocate; all work space is part of the state.
    """
    return cast(F, inner(function, **_STEP))


def compiled_sum(function: F) -> F:
    """Compile like `compiled`, for sums over the dimension, whose terms may be added up in any order.

    Only ``reassoc`` is allowed, so that the processor can add several terms at once; at d = 400 this makes
    a distance several times cheaper. The sum of d terms moves by a few units in the last place, far inside the
    relative 1e-12 (distances) and 1e-9 (tracking) within which candidates tie, so decisions stay those of
    `coterie.reference`. No other licence of ``fastmath`` is used anywhere.
    """
    return cast(F, inner(function, fastmath={"reassoc"}, **_STEP))


_STEP: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def entry(function: F) -> F:
    """A function that Python calls. Only these get a wrapper: unpacking the state's arrays is most of the code.

    They let go of the interpreter lock, so that simulations run side by side in threads.
    """
    options = {"error_model": "numpy", "_nrt": False, "nogil": True}
    try:
        found = _njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written, as under a user who has none: do without
        found = _njit(**options)(function)
    return cast(F, Entry(found) if hasattr(found, "py_func") else found)  # or the compiler is switched off


class Entry:
    """A compiled function: named tuples of arrays are handed to it as what numba takes in quickly."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        return self._function(*[handed(each) if isinstance(each, tuple) else each for each in arguments])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


class Kernel:
    """A small function that compiled code calls by its address, so that the caller is compiled once for all of them.

    Its arguments are floats, integers and contiguous arrays of floats; the signature says which. It is compiled when
    its address is first asked for, and then kept in numba's cache beside its source. numba notices changes of that file
    only: whatever the function calls should be in the same file. It must neither allocate nor raise; NaN says that
    something is wrong. Its machine code stays for the life of the process: make one for a module, not one for a run.
    """

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self.name, self.module = function.__name__, function.__module__
        self._function, self._signature = function, signature
        self._address = 0
        self._machine_code: Any = None
        _made[self.module, self.name] = self

    def __call__(self, *arguments: Any) -> Any:
        """Run it in plain Python."""
        return self._function(*arguments)

    @property
    def address(self) -> int:
        """Where its machine code is in this process, for good. Without the compiler: a number that stands for it."""
        if self._address == 0:
            if _numba.config.DISABLE_JIT:
                self._address = len(_kernels) + 1
            else:
                self._machine_code = self._compiled()
                self._address = int(self._machine_code.address)
            _kernels[self._address] = self
        return self._address

    def _compiled(self) -> Any:
        options: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
        if KERNEL_PIPELINE is not None and self.module.startswith("coterie.engine."):
            options["pipeline_class"] = KERNEL_PIPELINE
        try:
            return _numba.cfunc(self._signature, cache=True, **options)(self._function)
        except RuntimeError:  # no folder for the cache can be written, as under a user who has none: do without
            return _numba.cfunc(self._signature, **options)(self._function)


_made: dict[tuple[str, str], Kernel] = {}
_kernels: dict[int, Kernel] = {}  # all that have an address: none may go while a run could call it


def kernel_named(module: str, name: str) -> Kernel:
    """The kernel of a module, by the name of its function."""
    importlib.import_module(module)
    return _made[module, name]


def call_by_address(signature: Any) -> Any:
    """A function for compiled code: f(address, arguments) calls the kernel of this signature at the address.

    `arguments` is a tuple. They are handed over as numba holds them, arrays with their shape and strides: about 10 ns
    an array on a slow machine.
    """
    if _numba.config.DISABLE_JIT:
        return lambda address, arguments: _kernels[int(address)](*arguments)

    cgutils = _numba.core.cgutils

    def definition(typing_context: Any, address: Any, arguments: Any) -> tuple[Any, Any]:
        def generate(context: Any, builder: Any, found: Any, values: Any) -> Any:
            types = [context.get_value_type(each) for each in signature.args]
            function = cgutils.ir.FunctionType(context.get_value_type(signature.return_type), types)
            handed = cgutils.unpack_tuple(builder, values[1], len(types))
            return builder.call(builder.inttoptr(values[0], function.as_pointer()), handed)

        return signature.return_type(_numba.int64, _numba.types.Tuple(signature.args)), generate

    found = _numba.extending.intrinsic(definition)
    by_address[found] = signature
    return found
