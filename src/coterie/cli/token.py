"""`coterie token …`: who may do what at a server, changed while it runs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from coterie.cli.campaign_text import campaign_meant
from coterie.cli.options import Json, Store

token_app = typer.Typer(
    help="Make, list and revoke the tokens of a server, while it runs.",
    no_args_is_help=True,
)


class Role(StrEnum):
    """What a token may do."""

    reader = "reader"
    worker = "worker"
    owner = "owner"


@token_app.command()
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name for it, which the log shows beside what it writes.")
    ],
    role: Annotated[
        Role,
        typer.Option(
            "--role", help="reader: may look; worker: may ask, tell and fail its own leases; owner: may do everything."
        ),
    ] = Role.worker,
    campaign: Annotated[
        str | None, typer.Option("--campaign", help="The only campaign that it may be used for.", show_default="all")
    ] = None,
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Make a token and print it. It is shown only once, since the store keeps its hash. It works within a second."""
    from coterie.campaign import Campaigns

    with Campaigns(store, create=False) as campaigns:
        id = None if campaign is None else campaign_meant(campaigns.list(), campaign)
        made = campaigns.new_token(name, role.value, id)
    if as_json:
        typer.echo(json.dumps({"name": name, "role": role.value, "campaign": id, "token": made}, indent=2))
    else:
        typer.echo(made)


@token_app.command(name="list")
def list_tokens(store: Store = "coterie.db", as_json: Json = False) -> None:
    """List all tokens, without their secrets; revoked ones too."""
    from coterie.campaign import Campaigns

    with Campaigns(store, create=False) as campaigns:
        found = campaigns.tokens()
        names = {one["id"]: one["name"] for one in campaigns.list()}
    if as_json:
        kept = ("id", "label", "role", "campaign", "created", "revoked")
        typer.echo(json.dumps([{key: one[key] for key in kept} for one in found], indent=2, ensure_ascii=False))
        return
    rows = [
        [one["id"], one["label"], one["role"], "all" if one["campaign"] is None else names.get(one["campaign"], "?"),
         one["created"], one["revoked"] or "holds"]
        for one in found
    ]  # fmt: skip
    from coterie.cli.campaign_report import print_table

    print_table(["id", "name", "role", "campaign", "made", "revoked"], rows, "tokens")


@token_app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name or id.")], store: Store = "coterie.db"
) -> None:
    """Revoke a token. It stops working within a second, whoever logged in with it is logged out, and its open asks are
    given back.
    """
    from coterie.campaign import Campaigns

    with Campaigns(store, create=False) as campaigns:
        ended = campaigns.revoke_token(name)
    asks = f"; {ended['freed']} open ask{'s' if ended['freed'] != 1 else ''} given back" if ended["freed"] else ""
    typer.echo(f"revoked: {ended['label'] or ended['id']} ({ended['role']}){asks}")
