"""`coterie campaign items`, `clusters` and `delta`: what is asked for changes on the way, and the guarantee stays."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from coterie.cli.campaign import Name, find_campaign, open_store, print_json
from coterie.cli.campaign_report import print_table
from coterie.cli.campaign_text import campaign_command
from coterie.cli.methods import Register
from coterie.cli.options import Json, Store

_MOST_LISTED = 200  # items that have a line each

Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept on record.")]
By = Annotated[str | None, typer.Option("--by", help="Who says so; kept on record.")]


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
    found: list[dict[str, Any]] = []
    with open_store(store) as campaigns:
        id = find_campaign(campaigns, campaign)
        after: int | None = 0
        while after is not None:
            page = campaigns.items(id, after)
            found, after = found + page["items"], page["next"]
    if as_json:
        print_json(found)
        return
    rows = [
        [one["name"], one["measurements"], "retired" if one["retired"] else one["group_id"] or "–"]
        for one in found[:_MOST_LISTED]
    ]
    more = f" (the first {_MOST_LISTED} of {len(found):,}; --json has all)" if len(found) > _MOST_LISTED else ""
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


def _revise(campaign: str, store: str, as_json: bool, **changes: Any) -> None:
    with open_store(store) as campaigns:
        id = find_campaign(campaigns, campaign)
        retire = changes.get("retire")
        if retire is not None and campaigns.status(id)["names"] is None:
            changes["retire"] = [int(one) if one.isdecimal() else one for one in retire]
        answer = campaigns.revise(id, **changes)
    if as_json:
        print_json(answer)
        return
    groups = "" if answer["n_clusters"] is None else f" in {answer['n_clusters']} groups"
    typer.echo(f"from here on: {answer['items']} items{groups}, error probability {answer['delta']:g}")
    if answer["retired"]:
        typer.echo(f"retired, with their results kept and nothing claimed about them: {', '.join(answer['retired'])}")
    if answer["epochs"]:
        typer.echo(f"Tests begin anew, and each needs {1.609 * answer['epochs']:.1f} more evidence than at first.")
    typer.echo("the groups are proven" if answer["done"] else f"next: {campaign_command('ask', campaign, store)}")
