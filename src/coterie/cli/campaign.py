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
    read_number,
    split_commas,
    tell_or_ask_back,
)
from coterie.cli.campaign_items import NamesFile, Sheet, read_costs, read_item_list
from coterie.cli.campaign_text import (
    campaign_command,
    campaign_meant,
    freeing_lines,
    next_steps,
    state_word,
    value_placeholders,
    waiting_lines,
)
from coterie.cli.group import group
from coterie.cli.methods import MeasuringCommand, MeasuringMethod, Register
from coterie.cli.noise_option import NoiseOption, noise_from_text, noise_sentence
from coterie.cli.options import DEFAULT_THRESHOLD, Delta, DistanceRatio, Json, StoppingThreshold, Store
from coterie.cli.question_options import Alike, Apart, Claim, Clusters, Groups, Norm, asked_for
from coterie.problem.families import noise_of, trials_of
from coterie.problem.question import CLAIMS, GROUPS, NORMS, ExactGroups, Resolution
from coterie.problem.sentences import rates_in_words
from coterie.problem.settings import DELTA, METHOD, question_of

if TYPE_CHECKING:
    from coterie.campaign import Campaigns

campaign_app = typer.Typer(
    help="Campaigns: measure for days, with several people, and lose nothing in a crash. A database keeps the results.",
    no_args_is_help=True,
)


TRY_LATER = 75
"""The exit code of `ask` while nothing can be measured that could be used (EX_TEMPFAIL of sysexits.h)."""


class Expiry(StrEnum):
    """What happens to a lease whose time is over."""

    skip = "skip"
    wait = "wait"


Name = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign: its id, or its name if only one has it.")]
Worker = Annotated[
    str | None,
    typer.Option("--worker", "-w", envvar="COTERIE_WORKER", help="Who measures.", show_default="user@host"),
]


@campaign_app.command(cls=MeasuringCommand)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call the campaign.")],
    clusters: Clusters = None,
    alike: Alike = None,
    apart: Apart = None,
    norm: Norm = NORMS[0],
    claim: Claim = CLAIMS[0],
    groups: Groups = GROUPS[0],
    arms: Annotated[
        int | None, typer.Option("--arms", "-a", help="How many items there are, if they have no names.")
    ] = None,
    names: Annotated[str | None, typer.Option("--names", help="The items' names, as a,b,c.")] = None,
    names_file: NamesFile = None,
    sheet: Sheet = None,
    dim: Annotated[
        int | None,
        typer.Option("--dim", help="How many numbers a measurement has.", show_default="as many as --values, or 1"),
    ] = None,
    delta: Delta = DELTA,
    noise: NoiseOption = None,
    method: MeasuringMethod = METHOD,
    register: Register = None,
    threshold: StoppingThreshold = DEFAULT_THRESHOLD,
    distance_ratio: DistanceRatio = None,
    lease_seconds: Annotated[
        float, typer.Option("--lease-seconds", help="How many seconds a worker may take for a measurement.")
    ] = 3600.0,
    on_expiry: Annotated[
        Expiry,
        typer.Option(
            "--on-expiry",
            help="skip: a measurement that does not come in time is given up (losses must have nothing to do with "
            "values); wait: results that come later wait for it.",
        ),
    ] = Expiry.skip,
    pass_on: Annotated[
        float | None,
        typer.Option(
            "--pass-on",
            help="When everybody waits for one ask, somebody else is asked too after so many times the median of the "
            "times that answers took, and the first result counts (delays must have nothing to do with values); "
            "0: never.",
            show_default="2; 0 with --on-expiry wait",
        ),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option("--values", help="What the numbers are called, as ph,turbidity.", show_default="v0, v1, …"),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            "--costs",
            help="What a measurement of each item costs, as 1,1,20, or a file of them, one on each line or item,cost.",
            show_default="the column cost of --names-file",
        ),
    ] = None,
    cost_unit: Annotated[str | None, typer.Option("--cost-unit", help="The unit of the costs, as EUR.")] = None,
    confirm: Annotated[
        float,
        typer.Option(
            "--confirm",
            help="Go on after the proof for so many measurements more, as a share of those that it took (0.5: half as "
            "many), to see whether a group hides two.",
        ),
    ] = 0.0,
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Create a campaign."""
    listed, costs_of_file = read_item_list(names, names_file, sheet)
    called = split_commas(values)
    if arms is None and listed is None:
        raise ValueError("say how many items there are, with --arms, or name them, with --names or --names-file")
    if arms is not None and listed is not None and arms != len(listed):
        raise ValueError(f"--arms is {arms}, but there are {len(listed)} names")
    count = arms if arms is not None else len(listed or [])
    numbers = dim if dim is not None else len(called or [""])
    if numbers < 1:
        raise ValueError(f"--dim must be at least 1, got {numbers}")
    stated = noise_from_text(noise, numbers)
    asked = asked_for(clusters, alike, apart, norm, claim, groups, numbers)
    with open_store(store, create=True) as campaigns:
        made = campaigns.create(
            name,
            count,
            dim=numbers,
            **asked,
            delta=delta,
            method=method,
            threshold=threshold.value,
            noise=stated,
            names=listed,
            distance_ratio=distance_ratio,
            lease_seconds=lease_seconds,
            on_expiry=on_expiry.value,
            pass_on=pass_on,
            value_names=called,
            costs=costs_of_file if costs is None else read_costs(costs, listed),
            cost_unit=cost_unit,
            confirm=confirm,
            one_of_its_name=True,
        )
    if as_json:
        print_json(made)
        return
    each = f"{numbers} number{'' if numbers == 1 else 's'} each"
    question = question_of(count, dim=numbers, **asked)
    typer.echo(f"campaign {made['name']} is {made['id']}: {count} items, {question.words}, {each}")
    if isinstance(question, Resolution):
        model = noise_of(stated, numbers)
        question = question.in_counts(trials_of(model))
        rates = rates_in_words(question, model)
        typer.echo(f"What will be proven: {question.claim}{'' if rates is None else f' ({rates})'}.")
    elif not isinstance(question, ExactGroups):
        typer.echo(f"What will be proven: {question.claim}.")
    typer.echo(noise_sentence(stated, numbers, question.kind))
    if noise is None:
        typer.echo("(If you know more about the noise, say so with --noise: it takes fewer measurements.)")
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
    """Get the next items to measure, leased to this worker. Items that it has not told yet are given again first.

    If nothing that is measured now could be used before somebody answers an earlier ask, it says for whom it waits, and
    until when; the exit code is then 75: try again later.
    """
    with open_store(store) as campaigns:
        id = find_campaign(campaigns, campaign)
        answer = campaigns.ask(id, worker or default_worker(), n)
        settings = campaigns.settings(id)
    if as_json:
        print_json(answer)
    elif answer["done"]:
        typer.echo(f"nothing: the groups are found; see {campaign_command('status', campaign, store)}")
    elif not answer["asks"]:
        for line in [*waiting_lines(answer["waiting_for"]), *freeing_lines(answer["waiting_for"], campaign, store)]:
            typer.echo(line)
    else:
        rows = [[one["name"], one["arm"], one["lease"], one["expires"]] for one in answer["asks"]]
        _print_table(["item", "arm", "lease", "until"], rows, "measure")
        first = answer["asks"][0]
        who = [] if worker is None else ["--worker", worker]
        typed = value_placeholders(settings["value_names"], settings["dim"])
        told = campaign_command("tell", campaign, store, "--lease", first["lease"], *who)
        typer.echo(f"then, for {first['name']}: {told} {typed}")
        for line in waiting_lines(answer["waiting_for"]):
            typer.echo(line)
    if not answer["done"] and not answer["asks"]:
        raise typer.Exit(TRY_LATER)


@campaign_app.command(context_settings={"ignore_unknown_options": True})
def tell(
    campaign: Name,
    values: Annotated[
        list[str],
        typer.Argument(metavar="VALUE …", help="The numbers that were measured, such as 6.8 -1.5."),
    ],
    arm: Annotated[
        str | None, typer.Option("--arm", "--item", "-a", help="The item that was measured: its name or number.")
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
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Save a value that is far from the earlier ones without asking.")
    ] = False,
    worker: Worker = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Report a measurement. If the value is far from the item's earlier ones, you are asked whether it is right.

    With --arm only, it answers the worker's oldest open ask for that arm; if there is none, nobody asked for it, and
    that is fine too. Example: coterie campaign tell beans --lease 3f… -- -1.5 2
    """
    from coterie.campaign import CampaignError

    with open_store(store) as campaigns:
        key = find_campaign(campaigns, campaign)
        settings = campaigns.settings(key)
        names = settings["names"]
        if arm is None and lease is None:
            raise ValueError(
                f"say what was measured, with --lease or --arm{_meant_item(campaign, store, values, names)}"
            )
        if arm is None:
            assert lease is not None
            place: Any = campaigns.lease(key, lease)["arm"]
        else:
            place = read_arm(arm, names)
        name = id or (f"lease-{lease}" if lease is not None else new_measurement_id())
        one = {"id": name, "arm": place, "values": [read_number(value) for value in values], "lease": lease}
        # The result of an ask is of whoever asked, unless somebody else is named.
        given = [one | {"worker": worker or (None if lease is not None else default_worker())}]
        try:
            answer = tell_or_ask_back(campaigns, key, given, yes)
        except CampaignError as error:  # there is only this one: its place in a list says nothing
            raise ValueError(error.message.removeprefix(error.field or "").lstrip(": ")) from None
        count = campaigns.measured(key, place)
        gone = campaigns.items(key, count["arm"], 1)["items"][0]["retired"]
    if as_json:
        print_json(answer | {"id": name})
        return
    called = settings["value_names"] or [""] * len(values)
    shown = ", ".join(f"{what} {value}".strip() for what, value in zip(called, values, strict=True))
    said = "on record" if answer["accepted"] else "was on record already"
    typer.echo(f"{said}: {count['name']}: {shown} (measurement {count['measurements']} of this item, id {name})")
    if gone:
        typer.echo(f"{count['name']} is retired: the result is kept, and plays no role")
    for warning in [*answer.get("warnings", []), *answer.get("not_counted", [])]:
        typer.echo(f"warning: {warning['message']}", err=True)
    if answer["done"]:
        typer.echo(f"the groups are found: {campaign_command('status', campaign, store)}")


def _meant_item(campaign: str, store: str, values: list[str], names: list[str] | None) -> str:
    """The command with --arm, where the first of the values is the name of an item."""
    if names is None or values[0] not in names or len(values) < 2:
        return ""
    return f": {campaign_command('tell', campaign, store, '--arm', values[0], *values[1:])}"


@campaign_app.command()
def fail(
    campaign: Name,
    lease: Annotated[str, typer.Argument(metavar="LEASE", help="The lease whose measurement will not come.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; it must have nothing to do with the values.")] = "",
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Report that a measurement failed: its lease is freed, and the item can be asked for again."""
    with open_store(store) as campaigns:
        answer = campaigns.fail(find_campaign(campaigns, campaign), lease, reason)
    if as_json:
        print_json(answer)
    else:
        typer.echo(f"freed: {answer['name']}")


@campaign_app.command()
def status(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """Show how far a campaign is: its groups, the evidence, who measures."""
    with open_store(store) as campaigns:
        found = campaigns.status(find_campaign(campaigns, campaign))
    if as_json:
        print_json(found)
        return
    from coterie.cli.campaign_report import print_status

    print_status(found)
    for line in next_steps(found, campaign, store):
        typer.echo(line)


@campaign_app.command()
def partial(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """Show what is proven so far: which items differ, which are alike, and the groups that each may still be in."""
    with open_store(store) as campaigns:
        found = campaigns.partial(find_campaign(campaigns, campaign))
    if as_json:
        print_json(found)
        return
    from coterie.cli.letters_report import print_partial

    print_partial(found, f"{campaign_command('export', campaign, store, '--kind', 'groups')}, or --json")


@campaign_app.command(name="list")
def list_campaigns(
    archived: Annotated[bool, typer.Option("--archived", help="List archived campaigns too.")] = False,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """List all campaigns of the store."""
    with open_store(store) as campaigns:
        found = campaigns.list(archived)
    if as_json:
        print_json(found)
        return
    rows = [
        [one["id"][:8], one["name"], one["n_arms"], one["n_clusters"] or "found", one["measurements"], state_word(one)]
        for one in found
    ]
    _print_table(["id", "name", "items", "groups", "measured", "state"], rows, "campaigns")


@campaign_app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy: a new file, or a new folder for JSON lines.")],
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Copy the whole store while it is being used. The copy is a store like the original."""
    with open_store(store) as campaigns:
        campaigns.backup(file)
    if as_json:
        print_json({"file": str(file)})
    else:
        typer.echo(f"wrote {file}", err=True)


campaign_app.command(name="replay", cls=MeasuringCommand)(group)


# What the commands share.


def open_store(store: str, create: bool = False) -> Campaigns:
    from coterie.campaign import Campaigns

    return Campaigns(store, create=create)


def find_campaign(campaigns: Campaigns, given: str) -> str:
    """The id of the campaign that is meant."""
    return campaign_meant(campaigns.list(archived=True), given)


def print_json(content: Any) -> None:
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    from coterie.cli.campaign_report import print_table

    print_table(headings, rows, title)
