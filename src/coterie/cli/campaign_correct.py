"""`coterie campaign correct`: a value that was told wrong is replaced, and both stay on record."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.campaign import Name, find_campaign, open_store, print_json
from coterie.cli.campaign_input import default_worker, read_number
from coterie.cli.campaign_text import campaign_command
from coterie.cli.methods import Register
from coterie.cli.options import Json, Store


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
    with open_store(store) as campaigns:
        key = find_campaign(campaigns, campaign)
        numbers = [read_number(value) for value in values]
        answer = campaigns.correct(key, measurement, numbers, reason, by or default_worker(), id)
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


def _shown(values: list[float]) -> str:
    return ", ".join(f"{value:.10g}" for value in values)
