"""`coterie campaign ask`, `tell`, `fail`, `undo` and `correct`: what a worker does, and what people type for it."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.campaign import (
    blocks_of,
    campaign_command,
    deadline_lines,
    freeing_lines,
    next_ask,
    open_store,
    opened,
    print_answer,
    value_placeholders,
    waiting_lines,
)
from coterie.cli.methods import Register
from coterie.cli.options import Block, Json, Name, Store, Worker
from coterie.cli.printing import plural, print_json, print_table

if TYPE_CHECKING:
    from coterie.campaign import Campaigns

TRY_LATER = 75
"""The exit code of `ask` while nothing can be measured that could be used (EX_TEMPFAIL of sysexits.h)."""

_MOST_SHOWN = 12  # measurements of an item that are listed with their ids


def ask(
    campaign: Name,
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 1,
    worker: Worker = None,
    block: Block = None,
    room: Annotated[
        int | None,
        typer.Option("--room", help="How many results still fit into the block.", show_default="as many as -n"),
    ] = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Get the next items to measure, leased to this worker. Items that it has not told yet are given again first.

    If nothing that is measured now could be used before somebody answers an earlier ask, it says for whom it waits, and
    until when; the exit code is then 75: try again later. At a deadline nothing is asked for any more.
    """
    with open_store(store) as campaigns:
        meant = campaigns.find(campaign, in_memory=True)
        answer = campaigns.ask(meant["id"], worker or default_worker(), n, block=block, room=room)
    if as_json:
        print_json(answer)
    elif answer["done"]:
        typer.echo(f"nothing: the groups are found; see {campaign_command('status', campaign, store)}")
    elif answer.get("full"):
        closing = campaign_command("close-block", campaign, store, str(block))
        typer.echo(f"nothing more of use fits into block {block}: measure in another one; {closing}")
    elif not answer["asks"] and answer.get("deadline_reached") and not answer["waiting_for"]:
        typer.echo("nothing: the deadline is reached")
        for line in deadline_lines(campaign, store):
            typer.echo(line)
    elif not answer["asks"]:
        for line in [*waiting_lines(answer["waiting_for"]), *freeing_lines(answer["waiting_for"], campaign, store)]:
            typer.echo(line)
    else:
        first = answer["asks"][0]
        of = [key for key in ("feature", "cost") if key in first]
        rows = [
            [lease["name"], *(f"{lease[key]:g}" if key == "cost" else lease[key] for key in of), lease["arm"],
             lease["lease"], lease["expires"]]
            for lease in answer["asks"]
        ]  # fmt: skip
        print_table(["item", *of, "number", "lease", "until"], rows, "measure")
        who = [] if worker is None else ["--worker", worker]
        names = first.get("values", meant["settings"]["value_names"])
        typed = value_placeholders(names, meant["settings"]["dim"])
        told = campaign_command("tell", campaign, store, "--lease", first["lease"], *who)
        item = f"{first['feature']} of {first['name']}" if "feature" in first else first["name"]
        typer.echo(f"then, for {item}: {told} {typed}")
        for line in waiting_lines(answer["waiting_for"]):
            typer.echo(line)
    if not answer["done"] and not answer["asks"] and not answer.get("deadline_reached"):
        raise typer.Exit(TRY_LATER)


def tell(
    campaign: Name,
    values: Annotated[
        list[str],
        typer.Argument(metavar="VALUE …", help="The numbers that were measured, such as 6.8 -1.5."),
    ],
    arm: Annotated[
        str | None, typer.Option("--item", "--arm", "-a", help="The item that was measured: its name or number.")
    ] = None,
    lease: Annotated[
        str | None, typer.Option("--lease", "-l", help="The lease that `ask` printed for this measurement.")
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="The measurement's own id: told twice, it counts once.",
            show_default="that of the lease, or a new one",
        ),
    ] = None,
    feature: Annotated[
        str | None,
        typer.Option("--feature", "-f", help="With features: the feature or panel measured, where no lease says so."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Save a value that is far from the earlier ones without asking.")
    ] = False,
    block: Block = None,
    worker: Worker = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Report a measurement. If the value is far from the item's earlier ones, you are asked whether it is right.

    With --item only, it answers the worker's oldest open ask for that item; if there is none, nobody asked for it, and
    that is fine too. Example: coterie campaign tell beans --lease 3f… -- -1.5 2
    """
    from coterie.campaign import CampaignError

    with open_store(store) as campaigns:  # one reading of what is needed, one transaction that writes
        meant = campaigns.find(campaign, lease if arm is None else None, in_memory=True)
        names, called = meant["settings"]["names"], meant["settings"]["value_names"]
        if arm is None and lease is None:
            raise ValueError(
                f"say what was measured, with --lease or --item{_meant_item(campaign, store, values, names)}"
            )
        place: Any = meant["lease"]["arm"] if arm is None else read_arm(arm, names)
        name = id or (f"lease-{lease}" if lease is not None else new_measurement_id())
        measurement = {"id": name, "arm": place, "values": [read_number(value) for value in values], "lease": lease}
        measurement |= {} if block is None else {"block": block}
        measurement |= {} if feature is None else {"feature": feature}
        # The result of an ask is of whoever asked, unless somebody else is named.
        given = [measurement | {"worker": worker or (None if lease is not None else default_worker())}]
        try:
            answer = tell_or_ask_back(campaigns, meant["id"], given, yes)
        except CampaignError as error:  # there is only this one: its place in a list says nothing
            raise ValueError(error.message.removeprefix(error.field or "").lstrip(": ")) from None
    (item,) = answer.pop("items")
    if as_json:
        print_json(answer | {"id": name})
        return
    columns = called or [""] * len(values)
    shown = ", ".join(f"{column} {value}".strip() for column, value in zip(columns, values, strict=True))
    said = "on record" if answer["accepted"] else "was on record already"
    said += f": {item['feature']} of" if "feature" in item else ":"
    typer.echo(f"{said} {item['name']}: {shown} (measurement {item['measurements']} of this item, id {name})")
    if item["retired"]:
        typer.echo(f"{item['name']} is retired: the result is kept, and plays no role")
    for warning in [*answer.get("warnings", []), *answer.get("not_counted", [])]:
        typer.echo(f"warning: {warning['message']}", err=True)
    if answer["done"]:
        typer.echo(f"the groups are found: {campaign_command('status', campaign, store)}")


def _meant_item(campaign: str, store: str, values: list[str], names: list[str] | None) -> str:
    """The command with --item, where the first of the values is the name of an item."""
    if names is None or values[0] not in names or len(values) < 2:
        return ""
    return f": {campaign_command('tell', campaign, store, '--item', values[0], *values[1:])}"


def fail(
    campaign: Name,
    lease: Annotated[str, typer.Argument(metavar="LEASE", help="The lease whose measurement will not come.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; it must have nothing to do with the values.")] = "",
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Report that a measurement failed: its lease is freed, and the item can be asked for again."""
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.fail(id, lease, reason)
    print_answer(answer, as_json, f"freed: {answer['name']}")


def undo(
    campaign: Name,
    lease: Annotated[str, typer.Argument(metavar="LEASE", help="The lease that nobody has measured.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for the log.")] = "",
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Give a lease back that was not measured. It does not count as a failure.

    If something was measured and could not be used, that is `coterie campaign fail`.
    """
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.undo(id, lease, reason)
    text = f"undone: {answer['name']}"
    if answer["ended"] != "undone":
        text = f"nothing to undo: the ask for {answer['name']} has {answer['ended']} already"
    print_answer(answer, as_json, text)


def close_block(
    campaign: Name,
    block: Annotated[str, typer.Argument(metavar="BLOCK", help="The plate, day, rater … that is finished.")],
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Close a block: nothing more is measured in it, and its open asks are given back.

    What was asked for together and is not all measured counts as far as it came, assuming that the end had nothing to
    do with values; with --strict-blocks it counts for nothing.
    """
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.close_block(id, block)
    asks = f", {plural(answer['given_up'], 'open ask')} given back" if answer["given_up"] else ""
    print_answer(answer, as_json, f"closed: {answer['closed']}{asks}")


def correct(
    campaign: Name,
    measurement: Annotated[str, typer.Argument(metavar="ID", help="The id of the measurement that was told wrong.")],
    values: Annotated[list[str], typer.Argument(metavar="VALUE …", help="What was measured; negative ones: -1.5.")],
    reason: Annotated[str, typer.Option("--reason", help="Why the value was wrong; the certificate says so.")],
    by: Annotated[str | None, typer.Option("--by", help="Who says so.", show_default="user@host")] = None,
    id: Annotated[
        str | None, typer.Option("--id", help="The correction's own id: sent twice, it is made once.")
    ] = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Correct a value that was told wrong: it keeps its place in the order, and the old value stays on record.

    Right only if the new value is what was measured. `coterie campaign export` has the ids.
    """
    from coterie.campaign import NotFound

    with opened(store, campaign) as (campaigns, key):
        numbers = [read_number(value) for value in values]
        try:
            answer = campaigns.correct(key, measurement, numbers, reason, by or default_worker(), id)
        except NotFound as error:
            if error.code != "unknown_measurement":
                raise
            raise ValueError(f"{error.message}{_of_item(campaigns, key, measurement)}") from None
        blocks = blocks_of(campaigns, key)
    called, new = f"{measurement} of {answer['name']}", _shown(answer["values"])
    lines = [f"nothing has changed: {called} is {new} already"]
    if answer["corrected"]:
        lines = [f"corrected: {called} is {new}; told was {_shown(answer['old'])}"]
        if answer["reopened"]:
            lines.append(f"{answer['message']} {next_ask(campaign, store, blocks)}")
    print_answer(answer, as_json, *lines)


def _of_item(campaigns: Campaigns, key: str, given: str) -> str:
    """The newest measurements of the item that is called so, with their ids; else where the ids are."""
    if given not in (campaigns.settings(key)["names"] or []):
        return ": coterie campaign export has the ids"
    own: list[str] = []
    after: int | None = 0
    while after is not None:
        page = campaigns.measurements(key, after)
        own += [
            f"{measurement['id']} ({_shown(measurement['values'])})"
            for measurement in page["measurements"]
            if measurement["name"] == given
        ]
        after = page["next"]
    if not own:
        return ": it is an item, and was not measured yet"
    more = f"; {len(own) - _MOST_SHOWN} earlier ones: coterie campaign export" if len(own) > _MOST_SHOWN else ""
    return f": it is an item; name one of its measurements: {', '.join(own[: -_MOST_SHOWN - 1 : -1])}{more}"


def _shown(values: list[float | None]) -> str:
    return ", ".join("–" if value is None else f"{value:.10g}" for value in values)


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


def tell_or_ask_back(campaigns: Campaigns, id: str, given: list[dict[str, Any]], yes: bool) -> dict[str, Any]:
    """Tell a result; one far from the item's earlier ones only if a person says so, or --yes does."""
    from coterie.campaign import CampaignError

    try:
        return campaigns.tell(id, given, ask_back=not yes, with_items=True)
    except CampaignError as error:
        if error.code != "far_off":
            raise
        if not sys.stdin.isatty():
            raise ValueError(f"{error.message} If that is what was measured, tell it with --yes") from None
        if not typer.confirm(error.message, default=False, err=True):
            raise ValueError("nothing was saved") from None
    return campaigns.tell(id, given, with_items=True)
