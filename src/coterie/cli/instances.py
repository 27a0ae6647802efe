"""Instances that the commands read from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.problem.instance import Instance


def instance_file(path: Path) -> Instance:
    """An instance from a JSON file."""
    from coterie.problem.instance import Instance

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise ValueError(f"{path} is not a JSON file") from None
    if not isinstance(content, dict) or not {"labels", "centers"} <= content.keys():
        raise ValueError(f'{path} must hold {{"labels": [...], "centers": [[...], ...]}}')
    return Instance(content["labels"], content["centers"])


def instance_tables(labels: Path, centers: Path) -> Instance:
    """An instance from a file of labels and one of centers."""
    from coterie.problem.instance import Instance

    return Instance(_numbers(labels, int).ravel(), _numbers(centers, float))


def _numbers(path: Path, kind: type) -> Any:
    """A table of numbers from a .npy file, or from text with commas or blanks between the columns."""
    import numpy as np

    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    text = path.read_text(encoding="utf-8").replace(",", " ")
    if not text.strip():
        raise ValueError(f"{path} is empty")
    try:
        return np.loadtxt(text.splitlines(), dtype=kind, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path} is not a table of {kind.__name__} numbers: {error}") from None
