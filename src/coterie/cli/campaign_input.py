"""Reading what people type to `coterie campaign`: items, numbers, noise, names."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def read_arm(given: str, names: Sequence[str] | None) -> int | str:
    """An arm on the command line is a name, if there is one of that name, or its number from 0.

    Where names are numbers themselves, a number is a name: 1 among 10, 20 and 30 is a slip, not the second of them.
    """
    if names is not None and (given in names or any(name.strip().isdigit() for name in names)):
        return given
    try:
        return int(given)
    except ValueError:
        return given


def read_number(given: str) -> float:
    """One number of a measurement; a decimal comma is refused with the way to write it."""
    try:
        return float(given)
    except ValueError:
        comma = f": write it with a point, {given.replace(',', '.')}" if re.fullmatch(r"[-+]?\d+,\d+", given) else ""
        raise ValueError(f"a measurement is numbers, got {given!r}{comma}") from None


def read_noise(given: str | None) -> Any:
    """A noise as `Session` takes it."""
    if given is None:
        return None
    try:
        text = given.strip()
        listed = ",".join(re.split(r"[\s;,]+", text))
        content = json.loads(text if text.startswith("[") else f"[{listed}]")
    except json.JSONDecodeError:
        raise ValueError(f"--noise must be a number, numbers 1.5,2 or a matrix [[1,0],[0,2]], got {given!r}") from None
    return content[0] if len(content) == 1 and not text.startswith("[") else content


def read_names(given: str | None, file: Path | None) -> list[str] | None:
    """The items' names, from the option --names or from a file with one on each line; None if neither is given."""
    if given is not None and file is not None:
        raise ValueError("give --names or --names-file, not both")
    if given is not None and "," not in given and re.search(r"[;\t]", given):
        raise ValueError(f"--names are separated by commas, as a,b,c, got {given!r}")
    if file is not None:
        return [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    return split_commas(given)


def split_commas(given: str | None) -> list[str] | None:
    """The parts of a,b,c without the blanks around them; None if nothing was given."""
    return None if given is None else [part.strip() for part in given.split(",")]


def default_worker() -> str:
    """The name of a worker who gives none: user@host."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # no such user in this container
        return f"user{os.getuid()}@{socket.gethostname()}"


def new_measurement_id() -> str:
    """The id of a measurement that was given none."""
    from coterie.campaign.settings import new_key

    return new_key()
