"""The small compiler of the engine's steps: it knows all of them, and computes what Python computes."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import coterie.engine.croc.families as families
from coterie.engine import advance
from coterie.engine.compiled import Kernel, compiled, compiled_sum
from coterie.engine.croc import drive
from coterie.engine.croc.entries import new_entries
from coterie.engine.croc.state import KNOWN_COVARIANCE, new_croc, new_work
from coterie.engine.direct.numba_link import Written
from coterie.engine.direct.text import NotKnownError
from coterie.engine.direct.unit import REASSOCIATED, Step, steps
from coterie.engine.forest import new_forest
from coterie.engine.held import Held, handed, held
from coterie.engine.state import BOC, Floats, Ints, new_state

_numba: Any = numba
pytestmark = pytest.mark.skipif(_numba.config.DISABLE_JIT, reason="there is no compiler")
SIZES = (3, 2, 1)
TABLE = np.array([0.5, 0.25, 0.125])
PLACES = np.array([2, 0, 1])


def njit(function: Callable[..., Any]) -> Any:
    """As the engine's entries are compiled, but for the cache."""
    return _numba.njit(error_model="numpy", _nrt=False)(function)


def types_of(*values: Any) -> list[Any]:
    """numba's types, of named tuples as the steps get them."""
    return [Held(_numba.typeof(each)) if isinstance(each, tuple) else _numba.typeof(each) for each in values]


def kernels() -> list[Kernel]:
    """All of this package."""
    found = []
    for module in pkgutil.iter_modules(families.__path__):
        for its in vars(importlib.import_module(f"{families.__name__}.{module.name}")).values():
            found += [each for each in (its.values() if isinstance(its, dict) else [its]) if isinstance(each, Kernel)]
    return found


@pytest.mark.parametrize("kernel", kernels(), ids=lambda kernel: f"{kernel.module.split('.')[-1]}.{kernel.name}")
def test_every_kernel_is_known(kernel: Kernel) -> None:
    signature = vars(kernel)["_signature"]
    written = Written(Step(vars(kernel)["_function"], ""), signature.args)
    assert written.returned == signature.return_type
    written.module().verify()


def test_there_are_kernels() -> None:
    assert len(kernels()) >= 20


def test_every_step_is_known() -> None:
    state, nothing, x = new_croc(*SIZES, 0.0), np.zeros(0, dtype=np.int64), np.zeros(2)
    work, entries = new_work(*SIZES, KNOWN_COVARIANCE, nothing), new_entries(3, nothing, nothing, np.zeros((0, 2)))
    rng, table, many = np.random.default_rng(0), np.zeros((2, 1)), np.zeros((2, 1), dtype=np.int64)
    paper, forest = new_state(*SIZES, BOC), new_forest(2)
    run = (nothing, nothing, table, table, nothing, rng, table, nothing, many, many, x)
    for step, arguments in (
        (drive._drive, (state, work, entries, 0, table, nothing, rng, x)),
        (drive._pulls_left, (state, work)),
        (drive._pairs_at, (state, many, x)),
        (advance._advance, (paper, forest, 0, True, *run)),
    ):
        Written(steps[step], types_of(*arguments)).module().verify()


class Pair(NamedTuple):
    """A record."""

    numbers: Floats
    counts: Ints
    bits: Any


def floor_and_rest(a: int, b: int) -> tuple[int, int, int, int]:
    """Division, and by numbers that are known beforehand."""
    return a // b, a % b, (a // 7) * 1000 + a % 7, (a // 8) * 1000 + a % 8


def powers(x: float, n: int) -> tuple[float, float, float, int]:
    """Powers, with and without a known exponent."""
    return x**2, x**5, x**n, 3**n


def extremes(a: float, b: float, n: int) -> tuple[float, float, float, int]:
    """Extremes of floats, which may be no numbers, and of both kinds."""
    return max(a, b), min(a, b, 1.0), max(n, a), min(n, 2, abs(n))


def chosen(x: float, n: int) -> float:
    """One of two, a chain of comparisons, and what is looked at only if it matters."""
    first = n if x > 0.0 else x
    if -1.0 < x <= 2.0 and (n == 0 or PLACES[n % 3] > 0) and not (x == 1.5 and n >= 0):
        first += TABLE[PLACES[n % 3]]
    return first + (1 if n > 2 else 0)


def walk(n: int, step: int) -> int:
    """Loops that end early, go down, or have nothing to do; a variable keeps its last value."""
    total, i = 0, -5
    for i in range(n):
        if i == 3:
            continue
        if i == 6:
            break
        for j in range(i, -1, -2):
            total += j * step
    for k in (n, step):
        if k > 4:
            continue
        total += 10 * k
    while True:
        total += 1
        if total % 5 == 0:
            return total * 100 + i


def every_other(n: int, step: int) -> int:
    """A range whose step is not known beforehand."""
    total = 0
    for i in range(1, n, step):
        total = 10 * total + i
    return total


def reals(x: float) -> tuple[float, float, float, float]:
    """Functions of the C library, and of LLVM."""
    return math.log(x), math.exp(-x) + np.sqrt(x), math.log1p(x), math.asin(1.0 / (1.0 + x))


def rounded(x: float) -> tuple[int, int, int, bool]:
    """To whole numbers, and to a truth value."""
    return math.floor(x), math.ceil(x), int(x), x > 0.0 and math.isfinite(x)


def is_between(x: float, n: int) -> bool:
    """A truth value."""
    return x < n and math.isfinite(x)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (floor_and_rest, [(a, b) for a in (-15, -8, -7, 0, 7, 8, 23) for b in (-4, -1, 1, 3, 8)]),
        (powers, [(x, n) for x in (-1.5, 0.5, 3.0) for n in (0, 1, 2, 7)]),
        (extremes, [(a, b, n) for a in (-2.0, 0.5, 3.0) for b in (-1.0, 0.5, 9.0) for n in (-3, 0, 5)]),
        (chosen, [(x, n) for x in (-3.0, -0.5, 0.0, 1.5, 2.0, 7.0) for n in range(6)]),
        (walk, [(n, step) for n in (0, 1, 5, 9) for step in (1, 3, 6)]),
        (reals, [(x,) for x in (1e-300, 0.1, 1.0, 2.5, 1e10)]),
        (rounded, [(x,) for x in (-2.5, -0.2, 0.3, 4.0, 1e12)]),
        (is_between, [(x, n) for x in (-math.inf, math.nan, 0.5) for n in (-1, 1)]),
        (every_other, [(n, step) for n in (-7, 0, 1, 8) for step in (-2, 1, 3)]),
    ],
)
def test_steps_compute_what_python_computes(function: Any, inputs: list[tuple[Any, ...]]) -> None:
    step: Any = compiled(function)

    @njit
    def call(arguments: Any) -> Any:
        return step(*arguments)

    Written(Step(function, ""), types_of(*inputs[0]))  # it is known
    for arguments in inputs:
        assert call(arguments) == function(*arguments), arguments
    (made,) = step.overloads.values()
    is_direct = f"coterie.{function.__module__}.{function.__name__}" in made.library.get_llvm_str()
    assert is_direct != bool(_numba.config.BOUNDSCHECK)


def log_gamma(x: float) -> float:
    """Python has its own."""
    return math.lgamma(x)


def test_the_gamma_function_is_that_of_the_c_library() -> None:
    step = compiled(log_gamma)

    @njit
    def call(x: float) -> Any:
        return step(x)

    for x in (0.5, 2.5, 1e3):
        assert call(x) == pytest.approx(math.lgamma(x), rel=1e-13)


def test_what_is_divided_by_zero_is_as_numpy_has_it() -> None:
    step = compiled(floor_and_rest)

    @njit
    def call(a: int, b: int) -> Any:
        return step(a, b)

    assert call(5, 0)[:2] == (0, 0)


def test_no_numbers_are_neither_larger_nor_smaller() -> None:
    step = compiled(extremes)

    @njit
    def call(a: float, b: float) -> Any:
        return step(a, b, 0)

    assert call(math.nan, 1.0)[1] != call(math.nan, 1.0)[1]  # the first one is kept, as in Python
    assert call(1.0, math.nan)[0] == 1.0


def change(s: Pair, x: Floats, at: int) -> float:
    """Elements from the end, rows, parts, sizes, short numbers, the same value everywhere."""
    s.counts[at] += 2
    s.bits[at] = s.counts[at] + 1
    s.numbers[0, :] = 1.5
    row = s.numbers[1]
    row[-1] = s.bits[at] * 0.5
    x[:] = 0.25
    total = 0.0
    part = x[: s.counts[0]]
    for q in range(part.size):
        total += part[q]
    n, d = s.numbers.shape
    return float(total + 100.0 * n + 10.0 * d + s.numbers.size)


@pytest.mark.parametrize("at", [0, 1, -1])
def test_arrays_are_changed_as_python_changes_them(at: int) -> None:
    step = compiled(change)

    def state() -> Pair:
        return Pair(np.arange(6.0).reshape(2, 3), np.array([2, 9, 4]), np.zeros(3, dtype=np.uint8))

    @njit
    def call(s: Any, x: Any, at: int) -> Any:
        return step(held(s), x, at)

    here, there, x, y = state(), state(), np.zeros(5), np.zeros(5)
    Written(Step(change, ""), types_of(here, x, at))  # it is known
    given: Any = handed(there) if at else there  # either way
    assert call(given, y, at) == change(here, x, at)
    for one, other in zip((*here, x), (*there, y), strict=True):
        np.testing.assert_array_equal(one, other)


def draw(rng: np.random.Generator, x: Floats) -> None:
    """Gaussian numbers."""
    for q in range(x.size):
        x[q] = rng.standard_normal()


def test_gaussian_numbers_are_those_of_numpy() -> None:
    step, x = compiled(draw), np.zeros(300_000)

    @njit
    def call(rng: Any, x: Any) -> None:
        step(rng, x)

    call(np.random.default_rng(5), x)
    assert abs(x).max() > 3.6541528853610088  # beyond that the numbers come from another formula
    np.testing.assert_array_equal(x, np.random.default_rng(5).standard_normal(x.size))


def summed(x: Floats) -> float:
    """A sum."""
    total = 0.0
    for q in range(x.size):
        total += x[q]
    return total


def test_only_sums_may_be_added_up_in_any_order() -> None:
    kinds = types_of(np.zeros(3))
    assert REASSOCIATED in Written(steps[compiled_sum(summed)], kinds).text
    assert REASSOCIATED not in Written(steps[compiled(summed)], kinds).text


def unusual(x: Floats) -> float:
    """Something that the small compiler does not know."""
    return float(x.sum())


def test_what_is_not_known_is_compiled_by_numba() -> None:
    with pytest.raises(NotKnownError):
        Written(Step(unusual, ""), types_of(np.zeros(3)))
    step = compiled(unusual)

    @njit
    def call(x: Any) -> Any:
        return step(x)

    assert call(np.arange(4.0)) == 6.0
