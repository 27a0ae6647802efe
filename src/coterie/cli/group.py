"""`coterie group FILE`: which items of one's own table are alike. `coterie campaign replay` is the same command."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.group_files import check_folder, write_files
from coterie.cli.methods import MeasuringMethod, Register
from coterie.cli.noise import NoiseOption, stated_noise, write_proposal
from coterie.cli.options import (
    DEFAULT_THRESHOLD,
    Alike,
    Apart,
    Claim,
    Clusters,
    Delta,
    DistanceRatio,
    Groups,
    Norm,
    StoppingThreshold,
    asked_for,
    resolution_from_text,
)
from coterie.cli.printing import print_json, reading_bar, waiting_sign
from coterie.problem.features import HOLES
from coterie.problem.question import CLAIMS, GROUPS, NORMS
from coterie.problem.settings import DELTA, METHOD

if TYPE_CHECKING:
    from coterie.tables.pool import Pool

MANY_ROWS = 50_000
"""From so many rows on a comparison takes seconds."""

Copies = Annotated[
    str | None,
    typer.Option(
        "--copies",
        metavar="drop|keep",
        help="If more rows are equal than chance explains: drop counts each measurement once, keep takes every row for "
        "a measurement of its own.",
        show_default="asks",
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
    block: Annotated[
        str | None,
        typer.Option(
            "--block",
            metavar="COLUMN",
            help="The column that names the block of each row, such as a day, plate, rater or question, which may "
            "shift all of its results: items are compared within blocks.",
            show_default="none",
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
    holes: Annotated[
        str | None,
        typer.Option(
            "--holes",
            metavar="at-random",
            help="Which numbers are missing has nothing to do with any value: rows with an empty cell count where they "
            "have numbers.",
            show_default="refused",
        ),
    ] = None,
    copies: Copies = None,
    delta: Delta = DELTA,
    growing: Annotated[
        bool | None,
        typer.Option(
            "--growing/--finished",
            help="Whether rows were added because of what earlier ones showed, or will be. A finished table proves "
            "more: each pair of items is tested once.",
            show_default="finished, and the answer says what that assumes",
        ),
    ] = None,
    method: MeasuringMethod = METHOD,
    register: Register = None,
    threshold: StoppingThreshold = DEFAULT_THRESHOLD,
    distance_ratio: DistanceRatio = None,
    shuffled: Annotated[
        bool,
        typer.Option(
            "--shuffled",
            help="Of a table that grows, but by a number of rows that does not depend on their values: shuffle each "
            "item's rows, by a seed from the content of the table.",
        ),
    ] = False,
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
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print all remarks about the table, not the first three.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    in_order: Annotated[bool, typer.Option("--in-order", hidden=True, help="The former name of --growing.")] = False,
) -> None:
    """Which items of a table are alike.

    All pairs of items are compared once, by exact tests for the noise that --noise states; without it nothing is
    assumed about the noise but that items of a group share it. Rows that do not belong are named, and all that was
    recorded is compared with the noise, if one is stated, and with the groups found.

    With --clusters, the groups are found if there are exactly so many. Where their number is not known, --alike and
    --apart say which differences do not matter and which do: the groups up to this resolution are found, with a
    reference item each. This needs --noise, of a kind under which it can be proven that items are near each other.
    Without any of these, the items that are proven to differ are named.

    With --block, items are compared within the days, plates, raters or questions that the column names. These may shift
    all of their results, and need not have every item.

    A table that grows (--growing): the method asks for items as it would live, and gets each item's measurements one
    after the other as they stand in the file, or with --shuffled in an order drawn by a seed. What is proven then holds
    at every moment, and it is said how many of the measurements would have been enough. --method, --threshold,
    --distance-ratio and --shuffled are for this.
    """
    from coterie.methods import method_named

    if wide and items_in_columns:
        raise ValueError("--wide has an item in each row, --items-in-columns in each column: give one of the two")
    method_named(method)
    if in_order:
        typer.echo("coterie: --in-order is deprecated: say --growing", err=True)
        growing = True
    asked = _asked(clusters, alike, apart, norm, claim, groups)
    replaying = _replaying(method, threshold.value, distance_ratio, shuffled)
    if replaying and growing is False:
        names = ("--shuffled" if name == "in_order" else f"--{name.replace('_', '-')}" for name in replaying)
        options = ", ".join(names)
        verb = "is" if len(replaying) == 1 else "are"
        raise ValueError(f"--finished: {options} {verb} for a table that grows; leave one of the two out")
    from coterie.tables.grouping import group as grouping

    layout = "columns" if items_in_columns else wide
    pool = _read_or_ask(file, _columns(values), items, layout, leave_out_holes, sheet, copies, block, holes)
    if alike is not None:
        asked = dict(asked_for(clusters, alike, apart, norm, claim, groups, pool.dim))
    if clusters is not None and not 2 <= clusters < len(pool.names):
        message = f"--clusters must be at least 2 and less than the number of items, {len(pool.names)}, got {clusters}"
        raise ValueError(message)
    stated = stated_noise(noise, pool)
    if propose_noise is not None:
        write_proposal(propose_noise, pool, stated)
    if out is not None:
        check_folder(out, file)
    rows = len(pool.rows)
    with waiting_sign(f"comparing {len(pool.names)} items by {rows:,} rows …", rows >= MANY_ROWS):
        grouped = grouping(
            pool, noise=stated, delta=delta, growing=True if replaying else growing, **asked, **replaying
        )
    answer = grouped.analysis
    written = [] if out is None else write_files(out, file, answer)  # before the answer: its reader may close the pipe
    if as_json:
        print_json(answer.to_json())
    else:
        from coterie.cli.group_report import print_pair_analysis, print_replay_analysis
        from coterie.tables.analysis import PairAnalysis

        given = {
            "--items": items, "--values": values, "--block": block, "--wide": wide,
            "--items-in-columns": items_in_columns, "--sheet": sheet, "--leave-out-holes": leave_out_holes,
            "--holes": holes, "--copies": pool.copies,
            "--delta": None if delta == DELTA else delta,
            "--finished": growing is False,
        }  # fmt: skip
        if isinstance(answer, PairAnalysis):
            print_pair_analysis(answer, ["coterie", "group", str(file), *_words(given)], noise, verbose)
        else:
            print_replay_analysis(answer, verbose)
    for line in written:
        typer.echo(line, err=as_json)


def _asked(
    clusters: int | None, alike: str | None, apart: str | None, norm: str, claim: str, groups: str
) -> dict[str, Any]:
    """The question as `coterie.group` takes it; none if nothing was asked for but which items differ."""
    if clusters is None and alike is None and apart is None and groups == GROUPS[0]:
        resolution_from_text(alike, apart, norm, claim)  # refuses what is for a resolution
        return {}
    return dict(asked_for(clusters, alike, apart, norm, claim, groups))


def _replaying(method: str, threshold: str, distance_ratio: float | None, shuffled: bool) -> dict[str, Any]:
    """The options of a table that grows, as far as they were given: one of them says that it does."""
    given = {"method": method, "threshold": threshold, "distance_ratio": distance_ratio}
    left_out = {"method": METHOD, "threshold": DEFAULT_THRESHOLD.value, "distance_ratio": None}
    options = {name: value for name, value in given.items() if value != left_out[name]}
    return options | ({"in_order": False} if shuffled else {})


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


def _read_or_ask(
    file: Path,
    values: list[str] | None,
    items: str | None,
    wide: bool | str,
    leave_out_holes: bool,
    sheet: str | None,
    copies: str | None,
    block: str | None,
    holes: str | None,
) -> Pool:
    """`coterie.tables.pool.read_pool`; on a terminal, copies that nothing was said about are asked about."""
    from coterie.tables.errors import TableError
    from coterie.tables.reading.pools import read_pool
    from coterie.tables.reading.repeated_rows import COPIES

    if holes not in (None, "at-random"):
        raise ValueError(f"--holes must be at-random, or left out, got {holes}")
    missing = None if holes is None else HOLES
    try:
        with reading_bar(file):
            return read_pool(file, values, items, wide, leave_out_holes, sheet, copies, block, missing)
    except TableError as error:
        if error.field != "copies" or copies is not None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        typer.echo(f"{error.message}.", err=True)
    said = ""
    while said not in COPIES:
        said = typer.prompt("drop or keep", err=True)
    with reading_bar(file):
        return read_pool(file, values, items, wide, leave_out_holes, sheet, said, block, missing)
