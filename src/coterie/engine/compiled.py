"""How the engine is compiled: the only place that chooses numba's options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

INT: Callable[[int], int] = np.int64  # type: ignore[assignment]
"""INT(0) is a plain 64-bit zero; a literal 0 would compile whatever it is passed to once more."""

_njit: Any = numba.njit  # its stub does not know the options that are used here


def compiled(function: F) -> F:
    """Compile in nopython mode and keep the machine code in numba's cache beside the source.

    Without numba's reference counting: the state is a tuple of some forty arrays, and counting them in and out of
    every call took longer than the work. The price:
    a step function must not allocate; all work space is part of the state.
    """
    return cast(
        F, _njit(cache=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    )


def compiled_sum(function: F) -> F:
    """Compile like `compiled`, for sums over the dimension, whose terms may be added up in any order.

    Only ``reassoc`` is allowed, so that the processor can add several terms at once; at d = 400 this makes
    a distance several times cheaper. The sum of d terms moves by a few units in the last place, far inside the
    relative 1e-12 (distances) and 1e-9 (tracking) within which candidates tie, so decisions stay those of
    `coterie.reference`. No other licence of ``fastmath`` is used anywhere.
    """
    return cast(
        F,
        _njit(
            cache=True,
            error_model="numpy",
            _nrt=False,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            fastmath={"reassoc"},
        )(function),
    )


def entry(function: F) -> F:
    """A function that Python calls. Only these get a wrapper: unpacking the state's arrays is most of the code.

    They let go of the interpreter lock, so that simulations run side by side in threads.
    """
    return cast(F, _njit(cache=True, error_model="numpy", _nrt=False, nogil=True)(function))


def inlined(function: F) -> F:
    """A step with a single caller, compiled as part of it.

    numba optimises every function together with all that it calls, so each level of calls costs another round over
    everything below; inlining the levels above the real work halves the first compilation.
    """
    return cast(F, _njit(cache=True, error_model="numpy", _nrt=False, inline="always")(function))
