"""`coterie campaign items`, `clusters`, `delta`, `deadline`, `resolution`, `lease-time`: changes on the way; and
`import` and `export`: tables of measurements in, tables and proofs out.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.campaign import blocks_of, campaign_command, next_ask, opened, print_answer
from coterie.cli.campaign_measure import split_commas
from coterie.cli.methods import Register
from coterie.cli.options import (
    Alike,
    Apart,
    By,
    InOrder,
    Json,
    Name,
    Reason,
    Sheet,
    Store,
    resolution_from_text,
    whole_if_it_is,
)
from coterie.cli.printing import order_sentence, print_json, print_table
from coterie.problem.question import Resolution

_MOST_LISTED = 200  # items that have a line each


def items(
    campaign: Name,
    add: Annotated[list[str] | None, typer.Option("--add", help="The name of an item to add; may be repeated.")] = None,
    add_count: Annotated[
        int | None, typer.Option("--add-count", help="How many items to add, where items have no names.")
    ] = None,
    retire: Annotated[
        list[str] | None, typer.Option("--retire", help="The name or number of an item to retire; may be repeated.")
    ] = None,
    costs: Annotated[
        list[float] | None,
        typer.Option("--cost", help="What one measurement of an added item costs; one for each, in their order."),
    ] = None,
    reason: Reason = None,
    by: By = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Add items to a running campaign, or retire some; without an option, list them.

    Nothing is measured again. The results of retired items are kept, and nothing is claimed about them.
    """
    if not add and add_count is None and not retire and not costs:
        _list_items(campaign, store, as_json)
        return
    if add and add_count is not None:
        raise ValueError("items have names or they have none: give --add or --add-count, not both")
    _revise(
        campaign, store, as_json, add=add or add_count, costs=costs or None, retire=retire or None, reason=reason, by=by
    )


def _list_items(campaign: str, store: str, as_json: bool) -> None:
    listed: list[dict[str, Any]] = []
    with opened(store, campaign) as (campaigns, id):
        after: int | None = 0
        while after is not None:
            page = campaigns.items(id, after)
            listed, after = listed + page["items"], page["next"]
    if as_json:
        print_json(listed)
        return
    rows = [
        [item["name"], item["measurements"], "retired" if item["retired"] else item["group_id"] or "–"]
        for item in listed[:_MOST_LISTED]
    ]
    more = f" (the first {_MOST_LISTED} of {len(listed):,}; --json has all)" if len(listed) > _MOST_LISTED else ""
    print_table(["item", "measured", "group so far"], rows, f"items{more}")
    typer.echo(f"one joins: {campaign_command('items', campaign, store, '--add', 'NAME')}")
    typer.echo(f"one is retired: {campaign_command('items', campaign, store, '--retire', 'NAME')}")


def clusters(
    campaign: Name,
    n_clusters: Annotated[int, typer.Argument(help="How many groups there are; more than before.")],
    reason: Reason = None,
    by: By = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Ask for more groups than before, such as after an alarm. No measurement is lost."""
    _revise(campaign, store, as_json, n_clusters=n_clusters, reason=reason, by=by)


def delta(
    campaign: Name,
    delta: Annotated[float, typer.Argument(help="The error probability allowed: smaller than before.")],
    reason: Reason = None,
    by: By = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Ask for a smaller error probability.

    A campaign that is done goes on; what was proven stays proven at its delta.
    """
    _revise(campaign, store, as_json, delta=delta, reason=reason, by=by)


def deadline(
    campaign: Name,
    deadline: Annotated[float, typer.Argument(help="All that may be measured or, with costs, spent.")],
    reason: Reason = None,
    by: By = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Set another deadline, where there is one: later or earlier, but not below what is spent. It costs nothing."""
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.revise(id, deadline=whole_if_it_is(deadline), reason=reason, by=by)
        blocks = blocks_of(campaigns, id)
    text = f"from here on: a deadline of {answer['deadline']:g}"
    print_answer(answer, as_json, text, next_ask(campaign, store, blocks))


def _revise(campaign: str, store: str, as_json: bool, **changes: Any) -> None:
    with opened(store, campaign) as (campaigns, id):
        retire = changes.get("retire")
        if retire is not None and campaigns.status(id)["names"] is None:
            changes["retire"] = [int(item) if item.isdecimal() else item for item in retire]
        answer = campaigns.revise(id, **changes)
        blocks = blocks_of(campaigns, id)
    groups = "" if answer["n_clusters"] is None else f" in {answer['n_clusters']} groups"
    lines = [f"from here on: {answer['items']} items{groups}, error probability {answer['delta']:g}"]
    if answer["retired"]:
        retired = ", ".join(answer["retired"])
        lines.append(f"retired, with their results kept and nothing claimed about them: {retired}")
    if answer["epochs"]:
        lines.append(_tests_anew(answer["epochs"]))
    lines.append("the groups are proven" if answer["done"] else next_ask(campaign, store, blocks))
    print_answer(answer, as_json, *lines)


def _tests_anew(epochs: int) -> str:
    return f"Tests begin anew, and each needs {1.609 * epochs:.1f} more evidence than at first."


def resolution(
    campaign: Name,
    alike: Alike = None,
    apart: Apart = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Ask for another resolution from here on, after looking at the results.

    The groups that are being tested are given up, and the next ones need a little more evidence (log 5 = 1.6 for every
    test). Measurements so far serve to choose what to test, and the guarantee stays what it was.
    """
    with opened(store, campaign) as (campaigns, id):
        present = campaigns.status(id)
        asked = Resolution.of(present["resolution"]) if "resolution" in present else Resolution(0, 1)
        wanted = resolution_from_text(alike, apart, asked.norm, asked.claims, present["dim"])
        if wanted is None:
            raise ValueError("say which differences do not matter, with --alike, and which do, with --apart")
        answer = campaigns.choose_resolution(id, wanted)
        blocks = blocks_of(campaigns, id)
    if not answer["changed"]:
        print_answer(answer, as_json, f"nothing has changed: asked for are {wanted.words} already")
        return
    spent, forecast = answer["epoch"], answer["forecast"]
    print_answer(
        answer,
        as_json,
        f"from here on: {wanted.words}",
        f"What will be proven: {wanted.claim}.",
        "It costs nothing: no groups were being tested yet." if spent == 0 else _tests_anew(spent),
        *([] if forecast is None else [f"about {forecast:.0f} more measurements"]),
        next_ask(campaign, store, blocks),
    )


def lease_time(
    campaign: Name,
    seconds: Annotated[
        float, typer.Argument(metavar="SECONDS", help="How many seconds a worker may take for a measurement.")
    ],
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Change how long a worker may take, from the next ask on; leases that are open keep their time."""
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.change_lease_time(id, seconds)
    text = f"nothing has changed: it is {answer['before']:g} seconds already"
    if answer["changed"]:
        text = f"from the next ask on: {answer['lease_seconds']:g} seconds (before: {answer['before']:g})"
    print_answer(answer, as_json, text)


# Tables of measurements in, tables and proofs out.


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
