"""`coterie campaign budget`: what so many more measurements are expected to bring."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.campaign import Name, find_campaign, open_store, print_json
from coterie.cli.methods import Register
from coterie.cli.options import Json, Store


def campaign_budget(
    campaign: Name,
    more: Annotated[int, typer.Argument(metavar="MORE", help="How many more measurements you can make.")],
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Forecast what a number of further measurements will prove: the chance to be done by then, and what if not.

    It is a forecast from the measurements so far, no promise.
    """
    with open_store(store) as campaigns:
        found = campaigns.budget(find_campaign(campaigns, campaign), more)
    if as_json:
        print_json(found)
    else:
        typer.echo(found["words"])
