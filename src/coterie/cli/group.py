"""`coterie group FILE`: which items of one's own table are alike. `coterie campaign replay` is the same command."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.group_files import check_folder, write_files
from coterie.cli.methods import MeasuringMethod, Register
from coterie.cli.options import DEFAULT_THRESHOLD, Clusters, Delta, DistanceRatio, StoppingThreshold
from coterie.problem.settings import DELTA, METHOD

if TYPE_CHECKING:
    from coterie.tables.pool import Pool


ShuffleSeed = Annotated[int, typer.Option("--seed", help="By which each item's measurements are shuffled.")]
InOrder = Annotated[
    bool,
    typer.Option(
        "--in-order",
        help="Do not shuffle: the order of an item's measurements in the file has nothing to do with their values.",
    ),
]


def group(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV (commas, semicolons or tabs) or Parquet: a row for each measurement."),
    ],
    clusters: Clusters,
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise",
            help="How single measurements of one item vary: a standard deviation, one for each column (0.2,25), or a "
            "covariance [[1,0],[0,2]]. Without it, nothing is grouped; it says how your repeats vary.",
            show_default=False,
        ),
    ] = None,
    items: Annotated[
        str | None,
        typer.Option("--items", help="The column that names the items.", show_default="arm, item, sample, name or id"),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(
            "--values", help="The columns that hold the values, as a,b,c.", show_default="v0, v1, … or all numbers"
        ),
    ] = None,
    delta: Delta = DELTA,
    method: MeasuringMethod = METHOD,
    register: Register = None,
    threshold: StoppingThreshold = DEFAULT_THRESHOLD,
    distance_ratio: DistanceRatio = None,
    seed: ShuffleSeed = 0,
    in_order: InOrder = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Write groups.csv here and, if proven, certificate.json and log.csv. Of what is there already, only "
            "files that this command wrote are replaced.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Which items of a table are alike, and how many of its measurements would have been enough to prove it.

    The method asks for items as it would live, and gets each item's measurements one after the other: shuffled, since
    a file may be sorted by value, or with --in-order as they stand in it. Afterwards all that was recorded is compared
    with the noise stated and with the groups found.
    """
    from coterie.methods import method_named
    from coterie.tables.pool import read_pool
    from coterie.tables.replay import group_pool

    method_named(method)
    pool = read_pool(file, _columns(values), items)
    if not 2 <= clusters < len(pool.names):
        what = f"--clusters must be at least 2 and less than the number of items, {len(pool.names)}, got {clusters}"
        raise ValueError(what)
    stated = _stated_noise(noise, pool)
    if out is not None:
        check_folder(out, file)
    found, session = group_pool(
        pool,
        clusters,
        delta=delta,
        method=method,
        threshold=threshold.value,
        noise=stated,
        distance_ratio=distance_ratio,
        seed=seed,
        in_order=in_order,
    )
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        from coterie.cli.group_report import print_groups

        print_groups(found)
    if out is not None:
        write_files(out, file, found, session, quiet=as_json)


def _columns(given: str | None) -> list[str] | None:
    """The columns that --values names, as a,b,c; a name with a comma in it goes in double quotes."""
    if given is None:
        return None
    try:
        return [part.strip() for part in next(csv.reader([given], skipinitialspace=True), [])]
    except csv.Error:
        raise ValueError(f"--values must be names of columns in one line, as a,b,c, got {given!r}") from None


def _stated_noise(given: str | None, pool: Pool) -> Any:
    """The noise that --noise states, for the columns of this pool."""
    columns = pool.columns
    if given is None:
        raise ValueError(_how_repeats_vary(pool))
    text = given.strip()
    try:
        if text.startswith("["):
            content = json.loads(text)
        else:
            content = [float(part) for part in re.split(r"[\s,;]+", text) if part]
    except ValueError:
        content = []
    if not content:
        what = "--noise must be a number, numbers 0.2,25 or a covariance [[1,0],[0,2]]"
        raise ValueError(f"{what}, got {given!r}")
    flat = not any(isinstance(part, list) for part in content)
    if flat and not all(isinstance(part, int | float) and math.isfinite(part) and part > 0 for part in content):
        raise ValueError(f"--noise is made of standard deviations, which are positive numbers, got {given!r}")
    if len(content) == 1 and flat:
        return content[0]
    if len(content) != len(columns):
        named = "value column" if len(columns) == 1 else "value columns"
        pick = (
            ""
            if len(content) > len(columns)
            else f", or pick columns: --values {_listed(columns[: len(content)], ',')}"
        )
        raise ValueError(
            f"{pool.source} has {len(columns)} {named} ({_listed(columns)}), --noise has {len(content)} "
            f"entries: give {len(columns)}, or one for all{pick}"
        )
    return content


def _how_repeats_vary(pool: Pool) -> str:
    """What to say where no noise was stated: how the repeats of an item vary, and which --noise would be safe."""
    from coterie.cli.group_report import covariance_option, deviations_option

    spread = pool.spread()
    deviations, upper, independent = spread.deviations, spread.upper(), spread.upper_independent()
    asked = f"say how much single measurements of one item vary ({_listed(pool.columns)}), with --noise"
    if deviations is None or upper is None or independent is None or spread.freedom < spread.enough:
        return (
            f"{asked}. {pool.source} has too few repeats to tell it ({spread.freedom} degrees of freedom, "
            f"{spread.enough} are needed): measure some items several times, or ask the instrument's maker"
        )
    seen = ", ".join(f"{column} {value:.3g}" for column, value in zip(pool.columns, deviations, strict=True))
    if min(upper) <= 0.0:
        return f"{asked}. Your repeats vary by {seen}; some do not vary at all: are they copies of one measurement?"
    said = f"{asked}. Your repeats vary by {seen} ({spread.freedom} degrees of freedom)"
    where = "(docs/CAMPAIGNS.md, What is my noise?)"
    if len(upper) == 1:
        return f"{said}: --noise {deviations_option(upper)} has a margin for chance {where}"
    pair = spread.most_correlated()
    if pair is None:
        return (
            f"{said}: --noise {deviations_option(upper)} has a margin for chance in every direction; if the columns of "
            f"one measurement are known to vary independently, --noise {deviations_option(independent)} has one {where}"
        )
    whole = covariance_option(spread.upper_covariance())
    best = (
        "" if whole is None else f"--noise {whole}, a covariance, has a margin for chance in every direction; so has "
    )
    rest = "" if whole is None else ", which takes more measurements"
    margin = "" if whole is not None else " has a margin for chance in every direction"
    return (
        f"{said}, and columns vary together ({pool.columns[pair[0]]} and {pool.columns[pair[1]]}: correlation "
        f"{pair[2]:.2f}): {best}--noise {deviations_option(upper)}{margin}{rest} {where}"
    )


def _listed(columns: Sequence[str], mark: str = ", ") -> str:
    text = mark.join(columns)
    return text if len(text) <= 200 else text[:197] + "..."
