"""`coterie group FILE`: which items of one's own table are alike. `coterie campaign replay` is the same command."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from coterie.campaign.pool import Pool
    from coterie.session import Session


class Method(StrEnum):
    """The methods that need no knowledge of the truth."""

    croc = "croc"
    boc = "boc"
    boc_linear = "boc-linear"
    uniform = "uniform"


class Threshold(StrEnum):
    """The stopping thresholds of all methods but CROC."""

    proven = "proven"
    heuristic = "heuristic"


def group(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV (commas, semicolons or tabs) or Parquet: a row for each measurement."),
    ],
    clusters: Annotated[int, typer.Option("--clusters", "-k", help="How many groups there are.", show_default=False)],
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
    delta: Annotated[float, typer.Option("--delta", "-d", help="The error probability that is allowed.")] = 0.05,
    method: Annotated[Method, typer.Option("--method", "-m", help="How to choose what to look at.")] = Method.croc,
    threshold: Annotated[
        Threshold, typer.Option("--threshold", help="For all but croc; heuristic comes without a proof.")
    ] = Threshold.proven,
    distance_ratio: Annotated[
        float | None, typer.Option("--distance-ratio", help="r of boc-linear, in (0, 1].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Write groups.csv here and, if proven, certificate.json and log.csv."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Which items of a table are alike, and how many of its measurements would have been enough to prove it.

    The method asks for items as it would live, and gets each item's measurements in the order of the file.
    Afterwards all that was recorded is compared with the noise stated and with the groups found.
    """
    from coterie.campaign.pool import group_pool, read_pool

    pool = read_pool(file, _columns(values), items)
    if not 2 <= clusters < len(pool.names):
        what = f"--clusters must be at least 2 and less than the number of items, {len(pool.names)}, got {clusters}"
        raise ValueError(what)
    stated = _noise(noise, pool)
    found, session = group_pool(pool, clusters, delta, method.value, threshold.value, stated, distance_ratio)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        from coterie.cli.group_tables import print_groups

        print_groups(found)
    if out is not None:
        _write(out, found, session, quiet=as_json)


def _columns(given: str | None) -> list[str] | None:
    """a,b,c; a name with a comma in it goes in double quotes."""
    return None if given is None else [part.strip() for part in next(csv.reader([given], skipinitialspace=True), [])]


def _noise(given: str | None, pool: Pool) -> Any:
    columns = pool.columns
    if given is None:
        raise ValueError(_no_noise(pool))
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


def _no_noise(pool: Pool) -> str:
    from coterie.campaign.fit import ENOUGH_REPEATS

    spread = pool.spread()
    deviations, upper = spread.deviations, spread.upper()
    asked = f"say how much single measurements of one item vary ({_listed(pool.columns)}), with --noise"
    if deviations is None or upper is None or spread.freedom < ENOUGH_REPEATS:
        return (
            f"{asked}. {pool.source} has too few repeats to tell it ({spread.freedom} degrees of freedom, "
            f"{ENOUGH_REPEATS} are needed): measure some items several times, or ask the instrument's maker"
        )
    seen = ", ".join(f"{column} {value:.3g}" for column, value in zip(pool.columns, deviations, strict=True))
    if min(upper) <= 0.0:
        return f"{asked}. Your repeats vary by {seen}; some do not vary at all: are they copies of one measurement?"
    proposed = ",".join(f"{value:g}" for value in upper)
    return (
        f"{asked}. Your repeats vary by {seen} ({spread.freedom} degrees of freedom): "
        f"--noise {proposed} has a margin for chance (docs/CAMPAIGNS.md, What is my noise?)"
    )


def _listed(columns: Sequence[str], mark: str = ", ") -> str:
    text = mark.join(columns)
    return text if len(text) <= 200 else text[:197] + "..."


# Files.


def _write(folder: Path, found: dict[str, Any], session: Session, quiet: bool) -> None:
    """groups.csv; with a proof, certificate.json and log.csv, for `coterie verify`."""
    from coterie.certificate import write_log
    from coterie.cli.group_tables import states

    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file: --out names a folder")
    folder.mkdir(parents=True, exist_ok=True)
    table, certificate, log = (folder / name for name in ("groups.csv", "certificate.json", "log.csv"))
    proof = found["certificate"]
    columns = found["read"]["values"]
    extra = ["certificate group"] if proof is not None else []
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        means = [f"mean {column}" for column in columns]
        writer.writerow(["item", "group", "state", "used", "recorded", *means, "arm", *extra])
        for arm, (name, state) in enumerate(zip(found["names"], states(found), strict=True)):
            label = "" if found["labels"] is None else found["labels"][arm] + 1
            averages = [f"{mean:.10g}" for mean in found["means"][arm]]
            there = [] if proof is None else [proof["labels"][arm]]
            writer.writerow([name, label, state, found["pulls"][arm], found["counts"][arm], *averages, arm, *there])
    written = [table]
    if proof is not None:
        certificate.write_text(json.dumps(proof, indent=1) + "\n", encoding="utf-8")
        write_log(log, session.events, found["dim"])
        written += [certificate, log]
    else:  # those of an earlier run would be taken for the proof of these groups
        certificate.unlink(missing_ok=True)
        log.unlink(missing_ok=True)
    typer.echo(f"wrote {', '.join(map(str, written))}", err=quiet)
    if proof is not None:
        typer.echo(f"check: coterie verify {certificate} {log}", err=quiet)
        typer.echo("(there items and groups are numbered from 0: groups.csv has these numbers too)", err=quiet)
