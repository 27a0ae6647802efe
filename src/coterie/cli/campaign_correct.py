"""`coterie campaign correct`: a value that was told wrong is replaced, and both stay on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.campaign import Name, find_campaign, open_store, print_json
from coterie.cli.campaign_input import default_worker, read_number
from coterie.cli.campaign_text import campaign_command
from coterie.cli.methods import Register
from coterie.cli.options import Json, Store

if TYPE_CHECKING:
    from coterie.campaign import Campaigns

_MOST_SHOWN = 12  # measurements of an item that are listed with their ids


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

    with open_store(store) as campaigns:
        key = find_campaign(campaigns, campaign)
        numbers = [read_number(value) for value in values]
        try:
            answer = campaigns.correct(key, measurement, numbers, reason, by or default_worker(), id)
        except NotFound as error:
            if error.code != "unknown_measurement":
                raise
            raise ValueError(f"{error.message}{_of_item(campaigns, key, measurement)}") from None
    if as_json:
        print_json(answer)
        return
    if not answer["corrected"]:
        typer.echo(f"nothing has changed: {measurement} of {answer['name']} is {_shown(answer['values'])} already")
        return
    old, new = _shown(answer["old"]), _shown(answer["values"])
    typer.echo(f"corrected: {measurement} of {answer['name']} is {new}; told was {old}")
    if answer["reopened"]:
        typer.echo(f"{answer['message']} next: {campaign_command('ask', campaign, store)}")


def _of_item(campaigns: Campaigns, key: str, given: str) -> str:
    """The newest measurements of the item that is called so, with their ids; else where the ids are."""
    if given not in (campaigns.settings(key)["names"] or []):
        return ": coterie campaign export has the ids"
    own: list[str] = []
    after: int | None = 0
    while after is not None:
        page = campaigns.measurements(key, after)
        own += [f"{one['id']} ({_shown(one['values'])})" for one in page["measurements"] if one["name"] == given]
        after = page["next"]
    if not own:
        return ": it is an item, and was not measured yet"
    more = f"; {len(own) - _MOST_SHOWN} earlier ones: coterie campaign export" if len(own) > _MOST_SHOWN else ""
    return f": it is an item; name one of its measurements: {', '.join(own[: -_MOST_SHOWN - 1 : -1])}{more}"


def _shown(values: list[float]) -> str:
    return ", ".join(f"{value:.10g}" for value in values)
