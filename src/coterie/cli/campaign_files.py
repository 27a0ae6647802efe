"""`coterie campaign import` and `export`: tables of measurements in, tables and proofs out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.campaign import opened
from coterie.cli.campaign_measure import split_commas
from coterie.cli.methods import Register
from coterie.cli.options import InOrder, Json, Name, Sheet, Store
from coterie.cli.printing import order_sentence, print_json


class Kind(StrEnum):
    """What can be exported."""

    csv = "csv"
    groups = "groups"
    json = "json"
    certificate = "certificate"
    partial = "partial"
    log = "log"
    attachments = "attachments"


Columns = Annotated[
    str | None,
    typer.Option("--values", help="The columns that hold the values, as a,b,c.", show_default="v0, v1, … or the rest"),
]


def import_measurements(
    campaign: Name,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A CSV, Excel or Parquet file with a column item, the values and, if there is one, an id.",
        ),
    ],
    values: Columns = None,
    in_order: InOrder = False,
    sheet: Sheet = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: print what would be taken in, and what is wrong.")
    ] = False,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Take in measurements that were made before: all of them or, if anything is wrong, none.

    Each item's measurements are shuffled among themselves, since a file may be sorted by value. What a campaign has
    exported is imported with --in-order. Without a column id, ids follow from the file's content: the same file twice
    counts once, a changed one is new.
    """
    with opened(store, campaign) as (campaigns, id):
        take_in = campaigns.preview_import if check else campaigns.import_table
        answer = take_in(id, file, split_commas(values), in_order, sheet)
    if as_json:
        print_json(answer)
        return
    if check:
        _print_preview(answer)
        return
    typer.echo(f"{answer['accepted']} measurements taken in, {answer['duplicates']} were on record already")
    if answer["accepted"]:
        typer.echo(order_sentence(answer["order"].get("seed")))
        if answer["order"]["shuffled"]:
            typer.echo("(In a campaign's own export the number does: import that with --in-order.)")
    for warning in answer.get("warnings", []):
        typer.echo(f"warning: {warning['message']}", err=True)


def export(
    campaign: Name,
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="csv: measurements; groups: each item's group; json: everything; certificate and log: for verify; "
            "partial: a certificate of what is proven so far; attachments: a ZIP of photos, files and notes.",
        ),
    ] = Kind.csv,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write it; NAME.xlsx for Excel.", show_default="the screen"),
    ] = None,
    before: Annotated[
        int | None,
        typer.Option(
            "--before",
            metavar="SEQ",
            help="Only measurements before this row of the log, to save what can be read of a damaged one.",
        ),
    ] = None,
    decimal_comma: Annotated[
        bool,
        typer.Option("--decimal-comma", help="csv and groups with 6,8 for 6.8, and semicolons between the cells."),
    ] = False,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Write a campaign's measurements, its certificate, or the log that the certificate is checked against.

    With --out NAME.xlsx an Excel file: of csv, of groups, and of log, which is then what happened, for people; verify
    reads the log as text.
    """
    wanted = Kind.json.value if as_json else kind.value
    excel = out is not None and out.suffix.lower() == ".xlsx"
    if excel and (decimal_comma or before is not None):
        raise ValueError("--decimal-comma and --before are for text, not for Excel files: leave them out")
    if kind is Kind.attachments and (out is None or out.suffix.lower() != ".zip"):
        raise ValueError("attachments are written to a ZIP: say --out FILE.zip")
    with opened(store, campaign) as (campaigns, id):
        if kind is Kind.attachments:
            content = campaigns.attachments.archive(id)
        elif excel:
            content = campaigns.export_workbook(id, wanted)
        else:
            content = campaigns.export(id, wanted, before, decimal_comma).encode("utf-8")
    if out is None:
        typer.echo(content.decode("utf-8"), nl=False)
    else:
        out.write_bytes(content)
        typer.echo(f"wrote {out}", err=True)


def _print_preview(preview: dict[str, Any]) -> None:
    """What an import would do, without a word of what is in order."""
    typer.echo(f"{preview['source']}: {preview['rows']} rows, {preview['items']} items")
    if preview["item_column"] is not None:
        typer.echo(f"items in column {preview['item_column']}, values in {', '.join(preview['value_columns'])}")
    for problem in preview["problems"]:
        typer.echo(f"problem: {problem['message']}")
    more = preview["problem_count"] - len(preview["problems"])
    if more > 0:
        typer.echo(f"and {more} problems more")
    if preview["problem_count"]:
        typer.echo("nothing can be taken in until these are mended: it is all or nothing")
        raise typer.Exit(1)
    typer.echo(f"{preview['new']} measurements would be taken in, {preview['duplicates']} are on record already")
    for warning in preview["warnings"]:
        typer.echo(f"warning: {warning['message']}", err=True)
