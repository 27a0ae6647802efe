"""Fields of a certificate, read strictly from plain JSON values: each error names the field and what it must be."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_real, check_real_array, short

TOLERANCE = 1e-6
"""How far stated evidence may be from the recomputed one, relative and absolute."""
EXACT, RELATIVE = 1e-9, 1e-12
"""The same for what follows from the size of the problem and δ by formula, absolute and relative: of δ 1e-9 of it."""


def field_of(given: dict[str, Any], name: str) -> Any:
    """The value of a field that must be there."""
    if name not in given:
        raise ValueError(f"{name} is missing")
    return given[name]


def list_of(given: dict[str, Any], name: str, length: int | None = None) -> list[Any] | tuple[Any, ...]:
    """A list, of `length` entries if that is given."""
    value = field_of(given, name)
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list, got {short(value)}")
    if length is not None and len(value) != length:
        raise ValueError(f"{name} must have {length} entries, got {len(value)}")
    return value


def object_of(given: dict[str, Any], name: str) -> dict[str, Any]:
    """An object."""
    value = field_of(given, name)
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be an object, got {short(value)}")
    return value


def agree(name: str, stated: Any, found: float) -> None:
    """That a stated number is the one that follows by formula."""
    if not abs(check_real(stated, name) - found) <= EXACT + RELATIVE * abs(found):
        raise ValueError(f"{name} must be {found!r}, got {stated!r}")


def table_of(given: dict[str, Any], name: str, width: int) -> FloatArray:
    """(n, width): a list of rows of numbers, all finite."""
    rows = list_of(given, name)
    table = check_real_array(rows, name) if rows else np.empty((0, width))
    if table.ndim != 2 or table.shape[1] != width:
        raise ValueError(f"{name} must have rows of {width} numbers, got shape {table.shape}")
    return table


def whole_numbers(values: FloatArray, name: str, least: int, most: int = 2**53) -> IntArray:
    """Numbers that must be whole and within a range, as integers."""
    wrong = (values != np.floor(values)) | (values < least) | (values > most)
    if wrong.any():
        raise ValueError(
            f"{name} must be whole numbers from {least}"
            f"{'' if most == 2**53 else f' to {most}'}, got {float(values.flat[int(np.argmax(wrong))])!r}"
        )
    return values.astype(np.int64)
