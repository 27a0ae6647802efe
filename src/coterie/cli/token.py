"""`coterie token …`: who may do what at a server, changed while it runs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from coterie.cli.campaign_text import campaign_meant
from coterie.cli.options import Json, Store

token_app = typer.Typer(
    help="Tokens for a server: made, listed and revoked while it runs.",
    no_args_is_help=True,
)


class Role(StrEnum):
    """What a token may do."""

    reader = "reader"
    worker = "worker"
    owner = "owner"


@token_app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it; rows that it writes keep it.")],
    role: Annotated[
        Role,
        typer.Option(
            "--role", help="reader: looks; worker: asks, tells, fails, its own leases only; owner: everything."
        ),
    ] = Role.worker,
    campaign: Annotated[
        str | None, typer.Option("--campaign", help="The only campaign that it is for.", show_default="all")
    ] = None,
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Make a token and print it, this once: the store keeps its hash. Servers know it within a second."""
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
    """All tokens, without their secrets; those that were revoked too."""
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
    """End a token: whoever logged in with it is logged out, and its open asks are given back. Servers know within a
    second.
    """
    from coterie.campaign import Campaigns

    with Campaigns(store, create=False) as campaigns:
        ended = campaigns.revoke_token(name)
    asks = f"; {ended['freed']} open ask{'s' if ended['freed'] != 1 else ''} given back" if ended["freed"] else ""
    typer.echo(f"revoked: {ended['label'] or ended['id']} ({ended['role']}){asks}")
