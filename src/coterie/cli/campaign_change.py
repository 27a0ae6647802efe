"""`coterie campaign items`, `clusters`, `delta`, `deadline`, `resolution`, `lease-time`: changes on the way."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from coterie.cli.campaign import blocks_of, campaign_command, next_ask, opened, print_answer
from coterie.cli.methods import Register
from coterie.cli.options import Alike, Apart, By, Json, Name, Reason, Store, resolution_from_text, whole_if_it_is
from coterie.cli.printing import print_json, print_table
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
