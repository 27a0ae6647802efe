"""`coterie campaign …`: campaigns in a store, and pools of recorded measurements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.campaign_input import (
    default_worker,
    new_measurement_id,
    read_arm,
    read_names,
    read_noise,
    read_number,
    split_commas,
)
from coterie.cli.campaign_text import campaign_command, campaign_label, next_steps, order_sentence, value_placeholders
from coterie.cli.group import InOrder, ShuffleSeed, group
from coterie.cli.methods import MeasuringCommand, MeasuringMethod, Register
from coterie.cli.options import DEFAULT_THRESHOLD, Clusters, Delta, DistanceRatio, Json, StoppingThreshold, Store
from coterie.problem.settings import DELTA, METHOD

if TYPE_CHECKING:
    from coterie.campaign import Campaigns

campaign_app = typer.Typer(
    help="Campaigns: measure for days, from several benches, through crashes. Everything is in a database.",
    no_args_is_help=True,
)


class Expiry(StrEnum):
    """What happens to a lease whose time is over."""

    skip = "skip"
    wait = "wait"


class Kind(StrEnum):
    """What can be exported."""

    csv = "csv"
    groups = "groups"
    json = "json"
    certificate = "certificate"
    log = "log"


Name = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign: its id, or its name if only one has it.")]
Worker = Annotated[
    str | None,
    typer.Option("--worker", "-w", envvar="COTERIE_WORKER", help="Who measures.", show_default="user@host"),
]
Noise = Annotated[
    str | None,
    typer.Option(
        "--noise",
        help="Known noise: a standard deviation, one for each coordinate (1.5,2), or a covariance [[1,0],[0,2]].",
        show_default="1",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option("--values", help="The columns that hold the values, as a,b,c.", show_default="v0, v1, … or the rest"),
]


@campaign_app.command(cls=MeasuringCommand)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call the campaign.")],
    clusters: Clusters,
    arms: Annotated[int | None, typer.Option("--arms", "-a", help="How many items there are, if not named.")] = None,
    names: Annotated[str | None, typer.Option("--names", help="The items' names, as a,b,c.")] = None,
    names_file: Annotated[Path | None, typer.Option("--names-file", help="The same, one on each line.")] = None,
    dim: Annotated[
        int | None,
        typer.Option("--dim", help="How many numbers a measurement has.", show_default="as many as --values, or 1"),
    ] = None,
    delta: Delta = DELTA,
    noise: Noise = None,
    method: MeasuringMethod = METHOD,
    register: Register = None,
    threshold: StoppingThreshold = DEFAULT_THRESHOLD,
    distance_ratio: DistanceRatio = None,
    lease_seconds: Annotated[float, typer.Option("--lease-seconds", help="How long a worker may take.")] = 3600.0,
    on_expiry: Annotated[
        Expiry,
        typer.Option(
            "--on-expiry",
            help="skip: a measurement that does not come in time is given up (losses must have nothing to do with "
            "values); wait: results that come later wait for it.",
        ),
    ] = Expiry.skip,
    values: Annotated[
        str | None,
        typer.Option("--values", help="What the numbers are called, as ph,turbidity.", show_default="v0, v1, …"),
    ] = None,
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Create a campaign."""
    listed = read_names(names, names_file)
    called = split_commas(values)
    if arms is None and listed is None:
        raise ValueError("say how many items there are, with --arms, or name them, with --names or --names-file")
    if arms is not None and listed is not None and arms != len(listed):
        raise ValueError(f"--arms is {arms}, but there are {len(listed)} names")
    count = arms if arms is not None else len(listed or [])
    numbers = dim if dim is not None else len(called or [""])
    with _open(store, create=True) as campaigns:
        used = next((one for one in campaigns.list() if one["name"] == name), None)
        if used is not None:
            raise ValueError(f"there is a campaign {name!r} already ({campaign_label(used)}): choose another name")
        made = campaigns.create(
            name,
            count,
            clusters,
            numbers,
            delta=delta,
            method=method,
            threshold=threshold.value,
            noise=read_noise(noise),
            names=listed,
            distance_ratio=distance_ratio,
            lease_seconds=lease_seconds,
            on_expiry=on_expiry.value,
            value_names=called,
        )
    if as_json:
        _print_json(made)
        return
    each = f"{numbers} number{'' if numbers == 1 else 's'} each"
    typer.echo(f"campaign {made['name']} is {made['id']}: {count} items, {clusters} groups, {each}")
    if noise is None:
        typer.echo("noise: standard deviation 1, since --noise was not given; too small a value voids the proof")
    typer.echo(f"next: {campaign_command('ask', made['name'], store)}")


@campaign_app.command()
def ask(
    campaign: Name,
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 1,
    worker: Worker = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """What to measure next. The items are leased to the worker; asking again gives its open ones back first."""
    with _open(store) as campaigns:
        id = _find(campaigns, campaign)
        answer = campaigns.ask(id, worker or default_worker(), n)
        settings = campaigns.settings(id)
    if as_json:
        _print_json(answer)
    elif answer["done"]:
        typer.echo(f"nothing: the groups are found; see {campaign_command('status', campaign, store)}")
    else:
        rows = [[one["name"], one["arm"], one["lease"], one["expires"]] for one in answer["asks"]]
        _print_table(["item", "arm", "lease", "until"], rows, "measure")
        first = answer["asks"][0]
        who = [] if worker is None else ["--worker", worker]
        typed = value_placeholders(settings["value_names"], settings["dim"])
        told = campaign_command("tell", campaign, store, "--lease", first["lease"], *who)
        typer.echo(f"then, for {first['name']}: {told} {typed}")


@campaign_app.command(context_settings={"ignore_unknown_options": True})
def tell(
    campaign: Name,
    values: Annotated[
        list[str],
        typer.Argument(metavar="VALUE …", help="The numbers measured. Negative ones: -1.5, or after -- if you like."),
    ],
    arm: Annotated[str | None, typer.Option("--arm", "-a", help="What was measured: its number or name.")] = None,
    lease: Annotated[str | None, typer.Option("--lease", "-l", help="The ask that this answers.")] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="The measurement's own id: told twice, it counts once.",
            show_default="that of the lease, or a new one",
        ),
    ] = None,
    worker: Worker = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Report a measurement: of a lease, or of an arm.

    With --arm only, it answers the worker's oldest open ask for that arm; if there is none, nobody asked for it, and
    that is fine too. Example: coterie campaign tell beans --lease 3f… -- -1.5 2
    """
    if arm is None and lease is None:
        raise ValueError("say what was measured, with --lease or --arm")
    from coterie.campaign import CampaignError

    with _open(store) as campaigns:
        key = _find(campaigns, campaign)
        settings = campaigns.settings(key)
        names = settings["names"]
        if arm is None:
            assert lease is not None
            place: Any = campaigns.lease(key, lease)["arm"]
        else:
            place = read_arm(arm, names)
        name = id or (f"lease-{lease}" if lease is not None else new_measurement_id())
        one = {"id": name, "arm": place, "values": [read_number(value) for value in values], "lease": lease}
        try:
            answer = campaigns.tell(key, [one | {"worker": worker or default_worker()}])
        except CampaignError as error:  # there is only this one: its place in a list says nothing
            raise ValueError(error.message.removeprefix(error.field or "").lstrip(": ")) from None
        count = campaigns.measured(key, place)
    if as_json:
        _print_json(answer | {"id": name})
        return
    called = settings["value_names"] or [""] * len(values)
    shown = ", ".join(f"{what} {value}".strip() for what, value in zip(called, values, strict=True))
    said = "on record" if answer["accepted"] else "was on record already"
    typer.echo(f"{said}: {count['name']}: {shown} (measurement {count['measurements']} of this item, id {name})")
    for warning in answer.get("warnings", []):
        typer.echo(f"warning: {warning['message']}", err=True)
    if answer["done"]:
        typer.echo(f"the groups are found: {campaign_command('status', campaign, store)}")


@campaign_app.command()
def fail(
    campaign: Name,
    lease: Annotated[str, typer.Argument(metavar="LEASE", help="The ask whose measurement will not come.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; it must have nothing to do with the values.")] = "",
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Report that a measurement failed: its lease is freed, and the item can be asked for again."""
    with _open(store) as campaigns:
        answer = campaigns.fail(_find(campaigns, campaign), lease, reason)
    if as_json:
        _print_json(answer)
    else:
        typer.echo(f"freed: {answer['name']}")


@campaign_app.command()
def status(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """How far a campaign is: its groups, the evidence, who measures."""
    with _open(store) as campaigns:
        found = campaigns.status(_find(campaigns, campaign))
    if as_json:
        _print_json(found)
        return
    from coterie.cli.campaign_report import print_status

    print_status(found)
    for line in next_steps(found, campaign, store):
        typer.echo(line)


@campaign_app.command(name="list")
def list_campaigns(store: Store = "coterie.db", as_json: Json = False) -> None:
    """All campaigns of the store."""
    with _open(store) as campaigns:
        found = campaigns.list()
    if as_json:
        _print_json(found)
        return
    rows = [
        [one["id"][:8], one["name"], one["n_arms"], one["n_clusters"], one["measurements"],
         "done" if one["done"] else f"{one['open_leases']} under way" if one["open_leases"] else "open"]
        for one in found
    ]  # fmt: skip
    _print_table(["id", "name", "items", "groups", "measured", "state"], rows, "campaigns")


@campaign_app.command(name="import")
def import_measurements(
    campaign: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or Parquet: arm, the values, and id if there is.")],
    values: Columns = None,
    seed: ShuffleSeed = 0,
    in_order: InOrder = False,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Take in measurements that were made before; all of them or, on any error, none.

    Each item's measurements are shuffled among themselves, since a file may be sorted by value. What a campaign has
    exported is imported with --in-order. Without a column id, ids follow from the file's content: the same file twice
    counts once, a changed one is new.
    """
    with _open(store) as campaigns:
        answer = campaigns.import_table(_find(campaigns, campaign), file, split_commas(values), seed, in_order)
    if as_json:
        _print_json(answer)
        return
    typer.echo(f"{answer['accepted']} measurements taken in, {answer['duplicates']} were on record already")
    if answer["accepted"]:
        typer.echo(order_sentence(answer["order"]))
        if answer["order"]["shuffled"]:
            typer.echo("(In a campaign's own export the number does: import that with --in-order.)")
    for warning in answer.get("warnings", []):
        typer.echo(f"warning: {warning['message']}", err=True)


@campaign_app.command()
def export(
    campaign: Name,
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="csv: measurements; groups: each item's group; json: everything; certificate and log: for verify.",
        ),
    ] = Kind.csv,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write it.", show_default="the screen")
    ] = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Write a campaign's measurements, its certificate, or the log that the certificate is checked against."""
    with _open(store) as campaigns:
        text = campaigns.export(_find(campaigns, campaign), Kind.json.value if as_json else kind.value)
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8", newline="")
        typer.echo(f"wrote {out}", err=True)


campaign_app.command(name="replay", cls=MeasuringCommand)(group)


# What the commands share.


def _open(store: str, create: bool = False) -> Campaigns:
    from coterie.campaign import Campaigns

    return Campaigns(store, create=create)


def _find(campaigns: Campaigns, given: str) -> str:
    """The id of the campaign that is meant."""
    known = campaigns.list()
    ids = [one["id"] for one in known if one["id"] == given] or [one["id"] for one in known if one["name"] == given]
    if not ids and len(given) >= 6:
        ids = [one["id"] for one in known if one["id"].startswith(given)]
    if len(ids) > 1:
        meant = [campaign_label(one) for one in known if one["id"] in ids]
        more = f"; and {len(ids) - 5} more" if len(ids) > 5 else ""
        raise ValueError(f"{len(ids)} campaigns are called {given!r}, use an id: {'; '.join(meant[:5])}{more}")
    if not ids:
        raise ValueError(f"there is no campaign {given!r}: coterie campaign list shows them all")
    return str(ids[0])


def _print_json(content: Any) -> None:
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    from coterie.cli.campaign_report import print_table

    print_table(headings, rows, title)
