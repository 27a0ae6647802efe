"""What `--noise` takes: a word for what is known about the noise, numbers, or a file with numbers.

For the columns of a table also `--propose-noise`, which writes a noise that its repeats suggest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from coterie.cli.options import numbers_in
from coterie.problem.families import (
    SHAPES,
    AnyNoise,
    AtMost,
    Bounded,
    Counts,
    Exponential,
    Gaussian,
    Poisson,
    Symmetric,
    dimension_of,
    noise_of,
)
from coterie.problem.noise import Exactly
from coterie.problem.sentences import assumption_in_words

if TYPE_CHECKING:
    from coterie.tables.pool import Pool

SUFFIXES = (".csv", ".json", ".npy", ".txt")
"""How the name of a file with a noise ends."""

LARGEST_FILE = 50_000_000
"""Bytes: a covariance of about 2,000 numbers a measurement."""

FORMS = (
    "any, any:shape, gaussian, gaussian:scalar, gaussian:diagonal, counts:TRIALS, bounded:LO,HI, at-most:NOISE, "
    "poisson, exponential, symmetric, exactly:NOISE, "
    "a standard deviation, one for each number (0.2,25), a covariance [[1,0],[0,2]], or a file with these numbers"
)

NoiseOption = Annotated[
    str | None,
    typer.Option(
        "--noise",
        help="What is known about how single measurements of one item vary. any: nothing; "
        "any:shape looks for groups that differ in spread or shape too. gaussian: they are Gaussian, "
        "gaussian:diagonal if their numbers vary independently, gaussian:scalar if these also vary by the same. "
        "counts:20: each number is a count out of 20, counts: 0 or 1. poisson: each is a Poisson count of events. "
        "exponential: each is an exponential waiting time. bounded:1,5: between 1 and 5. symmetric: about "
        "the mean of each item. at-most:0.5: with a standard deviation (or covariance, or FILE) of at most this. A "
        "known noise: a standard deviation, one for each number (0.2,25), a covariance [[1,0],[0,2]], or a FILE "
        "(.csv, .txt, .json, .npy) that holds one of these. exactly:0.5: a known noise that is Gaussian with exactly "
        "this covariance, and not less, which makes a distance cheaper to prove (--norm distance).",
        show_default="any",
    ),
]

_OF_A_NOISE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "at-most": (AtMost, "the most by which results vary"),
    "exactly": (Exactly, "exactly by how much results vary"),
}

_WORDS: dict[str, Any] = {"any": None, "poisson": Poisson(), "exponential": Exponential(), "symmetric": Symmetric()}
"""Noises that a word says, with nothing after it."""


def noise_from_text(text: str | None, dim: int | None = None) -> Any:
    """What `--noise` states, as `Session` takes it; None is any noise.

    Checked for measurements of `dim` numbers, if that is known; ValueError names the value and says what to do.
    """
    if text is None:
        return None
    given = text.strip()
    try:
        stated = _stated(given)
        noise_of(stated, (dimension_of(stated) or 1) if dim is None else dim)
    except (ValueError, TypeError) as error:
        raise ValueError(f"--noise {given}: {error}") from None
    return stated


def noise_sentence(
    stated: Any, dim: int, question_kind: str, blocks: str | None = None, strict_blocks: bool = False
) -> str:
    """A noise as it was stated and what it assumes for a kind of question, for people."""
    noise = noise_of(stated, dim)
    return f"{noise.words}: {assumption_in_words(noise, question_kind, blocks, strict_blocks)}"


def _stated(given: str) -> Any:
    family, mark, rest = (part.strip() for part in given.partition(":"))
    family = family.lower()
    if (family, rest.lower()) == ("any", "shape"):
        return AnyNoise(shape=True)
    if family in _WORDS:
        if mark:
            allowed = " but shape" if family == "any" else ""
            raise ValueError(f"{family} takes nothing after it{allowed}: write --noise {family}")
        return _WORDS[family]
    if family == "gaussian":
        if mark and rest.lower() not in SHAPES:
            raise ValueError(f"a Gaussian noise is one of {', '.join(f'gaussian:{shape}' for shape in SHAPES)}")
        return Gaussian(rest.lower()) if mark else Gaussian()
    if family == "counts":
        if mark and not re.fullmatch(r"[0-9]{1,18}", rest):
            raise ValueError("say out of how many trials each count is, a whole number, as in counts:100")
        return Counts(int(rest)) if mark else Counts()
    if family == "bounded":
        bounds = _json_list(f"[{rest}]") if "[" in rest else numbers_in(rest)
        if bounds is None or len(bounds) != 2:
            raise ValueError("say between what all numbers lie, as in bounded:1,5, or bounded:[0,0],[1,5] for each")
        return Bounded(*bounds)
    if family in _OF_A_NOISE:
        kind, meaning = _OF_A_NOISE[family]
        if not rest:
            raise ValueError(f"say {meaning}, a standard deviation, as in {family}:0.5")
        return kind(_known(rest))
    return _known(given)


def _known(given: str) -> Any:
    """A standard deviation, a list of them or a covariance, as typed or from a file."""
    content = _json_list(given) if given.startswith("[") else numbers_in(given)
    if content is not None and (content or not given):
        if not content:
            raise ValueError(f"write one of {FORMS}")
        return content[0] if len(content) == 1 and not given.startswith("[") else content
    path = Path(given)
    if path.suffix.lower() in SUFFIXES:
        return _from_file(path)
    if path.is_file():
        raise ValueError(f"a file with a noise is called {', '.join(f'*{suffix}' for suffix in SUFFIXES)}: rename it")
    raise ValueError(f"write one of {FORMS}")


def _json_list(text: str) -> list[Any] | None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, list) else None


def _from_file(path: Path) -> Any:
    """The numbers of a file: one, a row or a column of them is standard deviations, a square is a covariance."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"the file has more than {LARGEST_FILE:,} bytes: is it the right one?")
        if path.suffix.lower() == ".npy":
            return _loaded(path)
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ValueError("the file is not text: give a .csv, .txt, .json or .npy file with numbers") from None
    if path.suffix.lower() == ".json":
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the file is not JSON: {error}") from None
        if content is None:
            raise ValueError("the file holds null: give a covariance, or standard deviations")
        return content
    return _from_table(text)


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False).tolist()
    except (ValueError, EOFError):
        raise ValueError("the file is not an array of numbers that numpy.save wrote") from None


def _from_table(text: str) -> Any:
    """The numbers of a text file. A first line of names is left out, and so is a first column of names."""
    lines = [
        [part.strip().strip('"') for part in re.split(r"[,;\t]" if re.search(r"[,;\t]", line) else r"\s+", line)]
        for line in (line.strip() for line in text.splitlines())
        if line
    ]
    if lines and not any(_is_number(part) for part in lines[0]):
        lines = lines[1:]
    if lines and all(len(line) > 1 and not _is_number(line[0]) for line in lines):
        lines = [line[1:] for line in lines]
    if not lines:
        raise ValueError("the file holds no numbers: give a covariance, or standard deviations")
    for number, line in enumerate(lines, 1):
        for part in line:
            if not _is_number(part):
                raise ValueError(f"row {number} of the file's numbers has {part!r}, which is no number")
    rows = [[float(part) for part in line] for line in lines]
    if len(rows) == 1:
        return rows[0][0] if len(rows[0]) == 1 else rows[0]
    return [row[0] for row in rows] if all(len(row) == 1 for row in rows) else rows


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def stated_noise(given: str | None, pool: Pool) -> Any:
    """What --noise states, for the columns of this pool; None is any noise."""
    from coterie.tables.reading.columns import listed

    stated = noise_from_text(given)
    columns, entries = pool.columns, dimension_of(stated)
    if entries not in (None, 1, len(columns)):
        named = "value column" if len(columns) == 1 else "value columns"
        fewer = f", or pick columns: --values {listed(columns[:entries], ',')}"
        pick = "" if entries > len(columns) else fewer
        raise ValueError(
            f"{pool.source} has {len(columns)} {named} ({listed(columns)}), --noise has {entries} "
            f"entries: give {len(columns)}, or one for all{pick}"
        )
    return stated[0] if isinstance(stated, list) and len(stated) == 1 and len(columns) > 1 else stated


def write_proposal(path: Path, pool: Pool, noise: Any) -> None:
    """Write the covariance that the repeats suggest, with a margin for chance, as `--noise FILE` takes it."""
    from coterie.tables.checks.assumptions import checked_pool
    from coterie.tables.reading.columns import listed

    if path.suffix.lower() not in (".csv", ".txt"):
        raise ValueError(f"--propose-noise {path}: name a .csv file, which --noise takes")
    if path.exists() or path.is_symlink():
        raise FileExistsError(f"--propose-noise {path}: it is there already, name another file")
    checked = checked_pool(pool, noise_of(noise, pool.dim))
    spread, heavy = checked.spread, [pool.columns[column] for column in checked.slips.heavy]
    if heavy:
        raise ValueError(
            f"--propose-noise: the noise of {listed(heavy)} has heavy tails, which no covariance describes: leave "
            "--noise out"
        )
    if spread.freedom < spread.enough:
        raise ValueError(
            f"--propose-noise: {pool.source} has too few repeats to tell the noise ({spread.freedom} degrees of "
            f"freedom, {spread.enough} are needed): measure some items several times"
        )
    covariance = spread.upper_covariance()
    if covariance is None:
        still = [column for column, squares in zip(pool.columns, spread.squares, strict=True) if squares == 0.0]
        message = f"repeats of {listed(still)} do not vary at all: are they copies of one measurement?"
        raise ValueError(f"--propose-noise: {message} Leave the column out with --values")
    # A single number in a file is a standard deviation, so of one column the root is written.
    rows, meaning = (covariance, "a covariance") if pool.dim > 1 else ([spread.upper()], "a standard deviation")
    path.write_text("".join(",".join(map(repr, row)) + "\n" for row in rows if row), encoding="utf-8")
    typer.echo(f"wrote {path}, {meaning} for --noise {path}", err=True)
