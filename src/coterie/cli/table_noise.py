"""`--noise` for the columns of a table, and `--propose-noise`, which writes one that its repeats suggest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from coterie.cli.noise_option import noise_from_text

if TYPE_CHECKING:
    from coterie.tables.pool import Pool


def stated_noise(given: str | None, pool: Pool) -> Any:
    """What --noise states, for the columns of this pool; None is any noise."""
    from coterie.problem.families import dimension_of

    found = noise_from_text(given)
    columns, entries = pool.columns, dimension_of(found)
    if entries not in (None, 1, len(columns)):
        named = "value column" if len(columns) == 1 else "value columns"
        fewer = f", or pick columns: --values {_listed(columns[:entries], ',')}"
        pick = "" if entries > len(columns) else fewer
        raise ValueError(
            f"{pool.source} has {len(columns)} {named} ({_listed(columns)}), --noise has {entries} "
            f"entries: give {len(columns)}, or one for all{pick}"
        )
    return found[0] if isinstance(found, list) and len(found) == 1 and len(columns) > 1 else found


def write_proposal(path: Path, pool: Pool, noise: Any) -> None:
    """Write the covariance that the repeats suggest, with a margin for chance, as `--noise FILE` takes it."""
    from coterie.problem.families import noise_of
    from coterie.tables.assumptions import checked_pool

    if path.suffix.lower() not in (".csv", ".txt"):
        raise ValueError(f"--propose-noise {path}: name a .csv file, which --noise takes")
    if path.exists() or path.is_symlink():
        raise FileExistsError(f"--propose-noise {path}: it is there already, name another file")
    checked = checked_pool(pool, noise_of(noise, pool.dim))
    spread, heavy = checked.spread, [pool.columns[column] for column in checked.slips.heavy]
    if heavy:
        raise ValueError(
            f"--propose-noise: the noise of {_listed(heavy)} has heavy tails, which no covariance describes: leave "
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
        what = f"repeats of {_listed(still)} do not vary at all: are they copies of one measurement?"
        raise ValueError(f"--propose-noise: {what} Leave the column out with --values")
    # A single number in a file is a standard deviation, so of one column the root is written.
    rows, what = (covariance, "a covariance") if pool.dim > 1 else ([spread.upper()], "a standard deviation")
    path.write_text("".join(",".join(map(repr, row)) + "\n" for row in rows if row), encoding="utf-8")
    typer.echo(f"wrote {path}, {what} for --noise {path}", err=True)


def _listed(columns: Sequence[str], mark: str = ", ") -> str:
    text = mark.join(columns)
    return text if len(text) <= 200 else text[:197] + "..."
