"""`coterie group FILE`: which items of one's own table are alike. `coterie campaign replay` is the same command."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.group_copies import Copies, read_or_ask
from coterie.cli.group_files import check_folder, write_files
from coterie.cli.methods import MeasuringMethod, Register
from coterie.cli.noise_option import NoiseOption, noise_from_text
from coterie.cli.options import DEFAULT_THRESHOLD, Delta, DistanceRatio, StoppingThreshold
from coterie.cli.question_options import Alike, Apart, Claim, Clusters, Groups, Norm, asked_for, resolution_from_text
from coterie.problem.question import CLAIMS, GROUPS, NORMS
from coterie.problem.settings import DELTA, METHOD

if TYPE_CHECKING:
    from coterie.tables.pool import Pool


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
        typer.Argument(
            metavar="FILE", help="CSV (commas, semicolons or tabs), Excel or Parquet: a row for each measurement."
        ),
    ],
    clusters: Clusters = None,
    alike: Alike = None,
    apart: Apart = None,
    norm: Norm = NORMS[0],
    claim: Claim = CLAIMS[0],
    groups: Groups = GROUPS[0],
    noise: NoiseOption = None,
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
    wide: Annotated[
        bool,
        typer.Option(
            "--wide", help="A row is an item, and each cell one measurement of it; empty cells were not measured."
        ),
    ] = False,
    items_in_columns: Annotated[
        bool,
        typer.Option(
            "--items-in-columns",
            help="A column is an item, and each cell one measurement of it; empty cells were not measured.",
        ),
    ] = False,
    sheet: Annotated[
        str | None, typer.Option("--sheet", help="Of an Excel file: the sheet.", show_default="the first")
    ] = None,
    leave_out_holes: Annotated[
        bool,
        typer.Option(
            "--leave-out-holes",
            help="Leave out rows with an empty cell; the reasons for it have nothing to do with the values.",
        ),
    ] = False,
    copies: Copies = None,
    delta: Delta = DELTA,
    method: MeasuringMethod = METHOD,
    register: Register = None,
    threshold: StoppingThreshold = DEFAULT_THRESHOLD,
    distance_ratio: DistanceRatio = None,
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
    propose_noise: Annotated[
        Path | None,
        typer.Option(
            "--propose-noise",
            metavar="FILE",
            help="Write a covariance that the repeats suggest, with a margin for chance, as CSV for --noise; of one "
            "column its root, a standard deviation.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Which items of a table are alike, and how many of its measurements would have been enough to prove it.

    The method asks for items as it would live, and gets each item's measurements one after the other: shuffled, since
    a file may be sorted by value, or with --in-order as they stand in it. Rows that do not belong are named, and all
    that was recorded is compared with the noise, if one is stated, and with the groups found. Without --noise nothing
    is assumed about the noise but that items of a group share it.

    Where the number of groups is not known, --alike and --apart say which differences do not matter and which do: the
    groups up to this resolution are found, with a reference item each. This needs --noise, of a kind under which it can
    be proven that items are near each other. Without any of these, the items that are proven to differ are named.
    """
    from coterie.methods import method_named
    from coterie.tables.replay import group_pool

    method_named(method)
    if wide and items_in_columns:
        raise ValueError("--wide has an item in each row, --items-in-columns in each column: give one of the two")
    layout = "columns" if items_in_columns else wide
    number_given = not (clusters is None and alike is None and apart is None)
    only_differences = not number_given and out is None and groups == GROUPS[0] and method == METHOD
    if only_differences:
        resolution_from_text(alike, apart, norm, claim)  # refuses what is for a resolution
        pool = read_or_ask(file, _columns(values), items, layout, leave_out_holes, sheet, copies)
        if propose_noise is not None:
            _write_proposal(propose_noise, pool, _stated_noise(noise, pool))
        given = {
            "--items": items, "--values": values, "--wide": wide, "--items-in-columns": items_in_columns,
            "--sheet": sheet, "--leave-out-holes": leave_out_holes, "--copies": pool.copies,
            "--delta": None if delta == DELTA else delta,
            "--in-order": in_order,
        }  # fmt: skip
        _show_differences(pool, ["coterie", "group", str(file), *_words(given)], noise, delta, in_order, as_json)
        return
    asked_for(clusters, alike, apart, norm, claim, groups)
    pool = read_or_ask(file, _columns(values), items, layout, leave_out_holes, sheet, copies)
    asked = asked_for(clusters, alike, apart, norm, claim, groups, pool.dim)
    if clusters is not None and not 2 <= clusters < len(pool.names):
        what = f"--clusters must be at least 2 and less than the number of items, {len(pool.names)}, got {clusters}"
        raise ValueError(what)
    stated = _stated_noise(noise, pool)
    if propose_noise is not None:
        _write_proposal(propose_noise, pool, stated)
    if out is not None:
        check_folder(out, file)
    found, session = group_pool(
        pool,
        **asked,
        delta=delta,
        method=method,
        threshold=threshold.value,
        noise=stated,
        distance_ratio=distance_ratio,
        in_order=in_order,
    )
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        from coterie.cli.group_report import print_groups

        print_groups(found)
    if out is not None:
        write_files(out, file, found, session, quiet=as_json)


def _show_differences(
    pool: Pool, command: Sequence[str], noise: str | None, delta: float, in_order: bool, as_json: bool
) -> None:
    """Whoever gives no number of groups is told what the table proves without it, and how to ask for groups."""
    from coterie.tables.differences import differing_items

    found = differing_items(pool, delta, _stated_noise(noise, pool), in_order)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    from coterie.cli.differences_report import print_differences

    print_differences(found, command, noise)


def _words(given: dict[str, Any]) -> list[str]:
    """Options as they are typed; those without a value, or that are off, are left out."""
    on = ((option, value) for option, value in given.items() if value is not None and value is not False)
    return [word for option, value in on for word in ([option] if value is True else [option, str(value)])]


def _columns(given: str | None) -> list[str] | None:
    """The columns that --values names, as a,b,c; a name with a comma in it goes in double quotes."""
    if given is None:
        return None
    try:
        return [part.strip() for part in next(csv.reader([given], skipinitialspace=True), [])]
    except csv.Error:
        raise ValueError(f"--values must be names of columns in one line, as a,b,c, got {given!r}") from None


def _stated_noise(given: str | None, pool: Pool) -> Any:
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


def _write_proposal(path: Path, pool: Pool, noise: Any) -> None:
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
