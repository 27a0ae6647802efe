"""Certificates as JSON, and their fields, read strictly: each error names the field and what it must be."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray, IntArray, check_real, check_real_array, short

TOLERANCE = 1e-6
"""How far stated evidence may be from the recomputed one, relative and absolute."""
EXACT, RELATIVE = 1e-9, 1e-12
"""The same for what follows from the size of the problem and δ by formula, absolute and relative: of δ 1e-9 of it."""


def read_json(text: str) -> Any:
    """The value of a JSON text that says one thing only; ValueError says what is wrong with it.

    No key may stand twice in an object, NaN and Infinity are no numbers, and nothing may follow the end.
    """
    return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {short(key)} occurs twice in one object")
            seen.add(key)
    return content


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def read_certificate(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the certificate in a JSON file.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    dict
        What it holds; `coterie.verify` says whether that is a certificate.

    Raises
    ------
    ValueError
        If the file is not strict JSON (a key twice, NaN, something after the end), or not an object.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from coterie.certificate import read_certificate
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "certificate.json"
    >>> _ = path.write_text(json.dumps({"format": "coterie-certificate-2"}))
    >>> read_certificate(path)
    {'format': 'coterie-certificate-2'}
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = read_json(file.read())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is not a JSON file: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{os.fspath(path)} must hold a JSON object, got {short(content)}")
    return content


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


def choice_of(given: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """One of several words."""
    value = field_of(given, name)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {short(value)}")
    return value


def agree(name: str, stated: Any, wanted: float) -> None:
    """That a stated number is the one that follows by formula."""
    if not abs(check_real(stated, name) - wanted) <= EXACT + RELATIVE * abs(wanted):
        raise ValueError(f"{name} must be {wanted!r}, got {stated!r}")


def close(stated: FloatArray, recomputed: FloatArray) -> NDArray[np.bool_]:
    """Where stated numbers agree with the recomputed ones; never with one that is not finite."""
    near = np.abs(stated - recomputed) <= TOLERANCE * np.maximum(1.0, np.abs(recomputed))
    return np.asarray(np.isfinite(recomputed) & near)


def table_of(given: dict[str, Any], name: str, width: int) -> FloatArray:
    """(n, width): a list of rows of numbers, all finite."""
    rows = list_of(given, name)
    table = check_real_array(rows, name) if rows else np.empty((0, width))
    if table.ndim != 2 or table.shape[1] != width:
        raise ValueError(f"{name} must have rows of {width} numbers, got shape {table.shape}")
    return table


def off_diagonal(given: dict[str, Any], name: str, labels: IntArray, n_groups: int) -> FloatArray:
    """A table of arms against groups, row by row, without the entries of arms against their own groups."""
    kept = []
    for arm, (row, label) in enumerate(zip(list_of(given, name, labels.size), labels.tolist(), strict=True)):
        if not isinstance(row, list | tuple) or len(row) != n_groups:
            raise ValueError(f"pairs.{name} must have {n_groups} entries for arm {arm}, got {short(row)}")
        if row[label] is not None:
            raise ValueError(f"pairs.{name} of arm {arm} against its own group must be null, got {short(row[label])}")
        kept.append([*row[:label], *row[label + 1 :]])
    return check_real_array(kept, f"pairs.{name}").ravel()


def whole_numbers(values: FloatArray, name: str, least: int, most: int = 2**53) -> IntArray:
    """Numbers that must be whole and within a range, as integers."""
    wrong = (values != np.floor(values)) | (values < least) | (values > most)
    if wrong.any():
        raise ValueError(
            f"{name} must be whole numbers from {least}"
            f"{'' if most == 2**53 else f' to {most}'}, got {float(values.flat[int(np.argmax(wrong))])!r}"
        )
    return values.astype(np.int64)


# What all checks of certificates share: problems that are collected, and when evidence is enough.


Bools = NDArray[np.bool_]

MOST_PROBLEMS = 20
"""How many problems a verdict lists."""

SLACK = 1e-9
"""Rounding that is forgiven where evidence must reach a level, relative to it: δ grows by as much, no more."""


class Checks:
    """The checks of one certificate: what failed, what a reader is warned of, how many tests were recomputed."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.tests = 0

    def say(self, problem: str) -> None:
        """Add a problem, if there are not many already."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)


def reaches(evidence: FloatArray, level: float | FloatArray) -> Bools:
    """Where evidence is enough."""
    return np.asarray((evidence >= level - SLACK * np.maximum(1.0, level)) & np.isfinite(evidence))


def first_places(wrong: Bools) -> Iterator[int]:
    """Where something is wrong, as often as a verdict lists problems."""
    return iter(np.flatnonzero(wrong)[:MOST_PROBLEMS].tolist())


def against(stated: float, recomputed: float) -> str:
    """How a stated number differs from the recomputed one, in words."""
    return f"the certificate says {float(stated):.9g}, the log gives {float(recomputed):.9g}"
