"""Checks of what callers give: each takes a value and returns it clean, or names what is wrong.

Every function returns a value the rest of the library may trust (a plain ``int`` or ``float``, a text that can be seen,
stored and printed, or a fresh float64/int64 array); none of them changes the caller's data. ``ValueError`` is for
values out of range and wrong shapes, ``TypeError`` for things that are not numbers at all (strings included, and
booleans, but in results).
"""

from __future__ import annotations

import math
import operator
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_FLOAT = np.dtype(np.float64)
_Checked = TypeVar("_Checked")

#: The stopping thresholds of the paper: beta (equation_beta) and its approximation from section_exp.
THRESHOLD_KINDS = ("proven", "heuristic")

LARGEST = 1e12
"""Standard deviations from 0 beyond which a measurement is refused: a float holds 16 digits, so that its own rounding
is then no longer small against the noise, and equal items may seem to differ."""

LARGEST_SPREAD = 1e6
"""Standard deviations between measurements of one item beyond which they are refused: no noise as stated does that."""


def short(value: object) -> str:
    """``repr`` of a value, cut so that an error message stays one readable line."""
    if isinstance(value, np.ndarray | np.generic):  # as people write numbers, not as NumPy does
        value = value.tolist()
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _holds_bool(value: object) -> bool:
    # NumPy turns [True, 2.0] into floats without a word, so lists are searched before they are converted.
    if isinstance(value, list | tuple):
        return any(_holds_bool(item) for item in value)
    return isinstance(value, bool | np.bool_)


def _all_finite(array: FloatArray) -> bool:
    # The sum of squares is finite unless a number is not, or is very large: a fraction of the time for a few numbers.
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def check_real_array(value: Any, name: str, booleans: bool = False) -> FloatArray:
    """A fresh float64 array of finite real numbers, of any shape. `booleans`: True and False may be 1 and 0 in it."""
    if type(value) is np.ndarray and value.dtype == _FLOAT and _all_finite(value):
        return np.array(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a regular array: its rows differ in length, got {short(value)}") from None
    kinds = "iufb" if booleans else "iuf"
    if (not booleans and _holds_bool(value)) or (array.dtype.kind not in kinds and array.size > 0):
        raise TypeError(f"{name} must hold real numbers, got {short(value)}")
    cleaned = np.array(array, dtype=np.float64) if array.size else np.empty(array.shape)
    if not _all_finite(cleaned):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(cleaned))[0])
        place = f" at position {where[0] if len(where) == 1 else where}" if where else ""
        raise ValueError(f"{name} must be finite, got {float(cleaned[where])!r}{place}")
    return cleaned


def check_real(value: Any, name: str) -> float:
    """A finite real number as a plain float."""
    array = check_real_array(value, name)
    if array.ndim != 0:
        raise TypeError(f"{name} must be a single number, got {short(value)}")
    return float(array)


def _integer(value: Any, rule: str) -> int:
    """An integer of any kind, but no boolean; `rule` begins the message of an error."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{rule}, got {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{rule}, got {short(value)}") from None


def check_count(value: Any, name: str, least: int) -> int:
    """An integer that is at least ``least``."""
    number = _integer(value, f"{name} must be an integer")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def check_delta(delta: Any) -> float:
    """The error probability delta, in the open interval (0, 1)."""
    if isinstance(delta, bool | np.bool_ | str | bytes) or np.ndim(delta) != 0:
        raise TypeError(f"delta must be a number in (0, 1), got {short(delta)}")
    try:
        number = float(delta)
    except (TypeError, ValueError):
        raise TypeError(f"delta must be a number in (0, 1), got {short(delta)}") from None
    if not 0.0 < number < 1.0:  # also False for NaN
        raise ValueError(f"delta must lie in (0, 1), got {number!r}")
    return number


def check_log_inverse_delta(value: Any) -> float:
    """log(1/delta), positive and finite: the form for a delta below the smallest double."""
    number = check_real(value, "log_inverse_delta")
    if number <= 0.0:
        raise ValueError(f"log_inverse_delta is log(1/delta) and must be positive, got {number!r}")
    return number


def check_shape(n_arms: Any, n_clusters: Any, dim: Any) -> tuple[int, int, int]:
    """The size (M, K, d) of a problem: 2 <= K < M and d >= 1."""
    arms = check_count(n_arms, "n_arms", 1)
    clusters = check_count(n_clusters, "n_clusters", 2)
    if clusters >= arms:
        raise ValueError(
            f"n_clusters must be smaller than the number of arms, got {clusters} clusters for {arms} arms: "
            "with as many clusters as arms there is only one partition"
        )
    return arms, clusters, check_count(dim, "dim", 1)


def check_arm(arm: Any, n_arms: int) -> int:
    """The index of an arm, 0..M-1; negative indices do not count from the end."""
    number = _integer(arm, f"an arm must be an integer in 0..{n_arms - 1}")
    if not 0 <= number < n_arms:
        raise ValueError(f"unknown arm {number}: arms are 0..{n_arms - 1}")
    return number


ABOUT_HOLES = (
    "a result counts with all its numbers or not at all: measure it again or, if the reason has nothing to do with "
    "its value, give the ask up (Session.forget)"
)


def has_hole(x: Any) -> bool:
    """Whether a measurement has a missing value in place of a number: None, NaN, or pandas' NA."""
    cells = np.ravel(np.asarray(x, dtype=object))
    return any(cell is None or type(cell).__name__ == "NAType" or _is_nan(cell) for cell in cells)


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def check_measurement(x: Any, dim: int) -> FloatArray:
    """One measurement X_t as a fresh (d,) array; a bare number is allowed when d = 1. True and False are 1 and 0."""
    try:
        array = check_real_array(x, "a measurement", booleans=True)
    except (ValueError, TypeError) as error:
        if has_hole(x):
            raise type(error)(f"{error}; {ABOUT_HOLES}") from None
        raise
    if dim == 1 and array.ndim == 0:
        array = array.reshape(1)
    if array.shape != (dim,):
        raise ValueError(f"a measurement must have shape ({dim},), got shape {array.shape}: {short(x)}")
    return array


def check_weights(weights: Any, n_arms: int) -> FloatArray:
    """Nonnegative finite weights, one per arm; they need not add up to one."""
    array = check_real_array(weights, "weights")
    if array.shape != (n_arms,):
        raise ValueError(f"weights must have one entry per arm, shape ({n_arms},), got shape {array.shape}")
    if (array < 0.0).any():
        arm = int(np.argmax(array < 0.0))
        raise ValueError(f"weights must not be negative, got {float(array[arm])!r} for arm {arm}")
    return array


def check_pulls(pulls: Any) -> FloatArray:
    """Pull counts N_m(t) >= 1 of all arms, as floats."""
    array = check_real_array(pulls, "pulls")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"pulls must be a vector with one entry per arm, got shape {array.shape}")
    if (array != np.floor(array)).any():
        arm = int(np.argmax(array != np.floor(array)))
        raise ValueError(f"pulls must be whole numbers, got {float(array[arm])!r} for arm {arm}")
    if (array < 1.0).any():
        arm = int(np.argmax(array < 1.0))
        raise ValueError(
            f"every arm must have been pulled at least once, got {float(array[arm]):g} pulls for arm {arm}"
        )
    return array


def check_threshold_kind(kind: Any) -> str:
    """The name of a stopping threshold."""
    if not isinstance(kind, str):
        raise TypeError(f"the threshold must be one of {', '.join(THRESHOLD_KINDS)}, got {short(kind)}")
    if kind not in THRESHOLD_KINDS:
        raise ValueError(f"unknown threshold {kind!r}: choose one of {', '.join(THRESHOLD_KINDS)}")
    return kind


def check_distance_ratio(ratio: Any) -> float:
    """The ratio r of assumption_distance: smallest over largest distance of two centers, in (0, 1]."""
    if ratio is None:
        raise ValueError(
            "distance_ratio is needed: give a lower bound in (0, 1] on the ratio of the smallest to the "
            "largest distance between two centers"
        )
    number = check_real(ratio, "distance_ratio")
    if not 0.0 < number <= 1.0:
        raise ValueError(f"distance_ratio must lie in (0, 1], got {number!r}")
    return number


def check_labels(labels: Any, n_clusters: int) -> IntArray:
    """Cluster indices c_m in 0..K-1, every cluster used, as a fresh int64 array."""
    try:
        array = np.asarray(labels)
    except ValueError:
        raise ValueError(f"labels must be a vector of integers, got {short(labels)}") from None
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"labels must be a vector with one integer per arm, got shape {array.shape}")
    if array.dtype.kind not in "iu" or _holds_bool(labels):
        raise TypeError(f"labels must be integers in 0..{n_clusters - 1}, got {short(labels)}")
    outside = (array < 0) | (array >= n_clusters)
    if outside.any():
        arm = int(np.argmax(outside))
        raise ValueError(f"labels must lie in 0..{n_clusters - 1}, got {int(array[arm])} for arm {arm}")
    cleaned = np.array(array, dtype=np.int64)
    sizes = np.bincount(cleaned, minlength=n_clusters)
    if (sizes == 0).any():
        empty = int(np.argmin(sizes))
        raise ValueError(f"cluster {empty} has no arm: labels must use every value in 0..{n_clusters - 1}")
    return cleaned


def check_positive(value: Any, name: str) -> float:
    """A positive finite number."""
    number = check_real(value, name)
    if not (number > 0.0 and math.isfinite(number)):
        raise ValueError(f"{name} must be positive, got {number!r}")
    return number


def check_far(white: FloatArray, values: FloatArray) -> None:
    """That measurements lie within LARGEST; `white` (n, d) are the `values` in units of the noise."""
    far = ~(np.abs(white).max(axis=1, initial=0.0) <= LARGEST)
    if far.any():
        raise ValueError(
            f"a measurement must lie within {LARGEST:g} standard deviations of 0, "
            f"got {short(values[int(np.argmax(far))])}: "
            "subtract a fixed number from all measurements, or state larger noise"
        )


def check_spread(away: FloatArray, values: FloatArray, arms: IntArray) -> None:
    """That measurements of one arm lie within LARGEST_SPREAD of its first one, from which they are `away`."""
    far = ~(np.abs(away).max(axis=1, initial=0.0) <= LARGEST_SPREAD)
    if far.any():
        i = int(np.argmax(far))
        raise ValueError(
            f"measurements of one item must lie within {LARGEST_SPREAD:g} standard deviations of its first, "
            f"got {short(values[i])} for item {int(arms[i])}: check the value, its units, and the noise stated"
        )


LONGEST_TEXT = 200
"""Characters of a name or an id."""

_HIDDEN = frozenset({"Cc", "Cs", "Cf", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")


def check_text(value: Any, name: str) -> str:
    """A text of 1 to 200 characters without blanks at its ends and without control or direction characters.

    Control characters (Unicode category Cc) cannot be printed, lone surrogates (Cs) cannot be stored as UTF-8. Format
    characters (Cf) and separators of lines (Zl, Zp) turn the direction of writing or are not seen, so that two texts
    that look the same differ; the two joiners, which scripts and emoji need, may stand.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {short(value)}")
    if not value or value != value.strip() or len(value) > LONGEST_TEXT:
        fault = f"must have 1 to {LONGEST_TEXT} characters and no blanks at its ends"
        raise ValueError(f"{name} {fault}, got {short(value)}")
    hidden = next(
        (character for character in value if character not in _JOINERS and unicodedata.category(character) in _HIDDEN),
        None,
    )
    if hidden is not None:
        fault = f"control or direction characters (U+{ord(hidden):04X})"
        raise ValueError(f"{name} must not hold {fault}, got {short(value)}")
    return value


# Settings: an error says which one is at fault.


class SettingError(ValueError):
    """A setting that cannot be used; `field` is its name."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class SettingTypeError(SettingError, TypeError):
    """A setting of the wrong type; `field` is its name."""


@contextmanager
def blaming(field: str) -> Iterator[None]:
    """Turn a complaint of the checks inside into a `SettingError` of this field."""
    try:
        yield
    except SettingError:
        raise
    except TypeError as error:
        raise SettingTypeError(str(error), field) from None
    except (ValueError, OverflowError) as error:
        raise SettingError(str(error), field) from None


def checked(field: str, check: Callable[..., _Checked], *arguments: Any) -> _Checked:
    """The answer of a check; what it refuses is a `SettingError` of this field."""
    with blaming(field):
        return check(*arguments)
