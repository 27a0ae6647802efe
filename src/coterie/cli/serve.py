"""`coterie serve`: the API and the page; and `coterie token …`: who may do what there, changed while it runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from coterie.cli.campaign import open_store
from coterie.cli.methods import Register
from coterie.cli.options import Json, Store
from coterie.cli.printing import plural, print_json, print_table

token_app = typer.Typer(
    help="Make, list and revoke the tokens of a server, while it runs.",
    no_args_is_help=True,
)


def serve(
    store: Store = "coterie.db",
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="The address to listen at; for any that other machines can reach, --token is needed, of 20 characters "
            "or more.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="COTERIE_TOKEN",
            help="The token with which clients may read and write. Set COTERIE_TOKEN instead to keep it out of the "
            "list of processes.",
            show_default="one is made and printed once",
            show_envvar=True,
        ),
    ] = None,
    read_token: Annotated[
        str | None,
        typer.Option(
            "--read-token",
            envvar="COTERIE_READ_TOKEN",
            help="A token with which clients may only read.",
            show_default="none",
        ),
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Make a new token; earlier ones stop working.")
    ] = False,
    rate: Annotated[
        float, typer.Option("--rate", help="The most requests per second for each token; 0 is no limit.", min=0.0)
    ] = 2000.0,
    max_body: Annotated[
        float, typer.Option("--max-body", help="The largest body of a request, in MiB.", min=0.001)
    ] = 8.0,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="The address of a reverse proxy in front: X-Forwarded-For and X-Forwarded-Proto are believed only "
            "from there.",
            show_default="none",
        ),
    ] = None,
    connections: Annotated[int, typer.Option("--connections", help="The most connections at a time.", min=1)] = 1000,
    connections_per_address: Annotated[
        int,
        typer.Option(
            "--connections-per-address",
            help="The most connections at a time from one address, proxies excepted.",
            min=1,
        ),
    ] = 200,
    asks_per_token: Annotated[
        int, typer.Option("--asks-per-token", help="Asks of a campaign that one token may have open at once.", min=1)
    ] = 2000,
    metrics_token: Annotated[
        str | None,
        typer.Option(
            "--metrics-token",
            envvar="COTERIE_METRICS_TOKEN",
            help="A token with which Prometheus may read /metrics, and nothing else.",
            show_default="owners only",
        ),
    ] = None,
    webhook: Annotated[
        list[str] | None,
        typer.Option(
            "--webhook",
            metavar="URL",
            help="An address that is told when a campaign stops, has an alarm or is blocked.",
            show_default="none",
        ),
    ] = None,
    webhook_secret: Annotated[
        str | None,
        typer.Option(
            "--webhook-secret",
            envvar="COTERIE_WEBHOOK_SECRET",
            help="What webhooks are signed with, and their receivers know too.",
            show_default="none",
        ),
    ] = None,
    webhook_private: Annotated[
        bool,
        typer.Option("--webhook-private", help="Webhooks may go to this machine and to private networks, without TLS."),
    ] = False,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log every request: address, method, path, status.")
    ] = False,
    register: Register = None,
) -> None:
    """Serve campaigns over HTTP: an API for programs, and a page for people."""
    from coterie.web import serve as run

    run(
        store, host, port, token, read_token, new_token, rate, int(max_body * 2**20), access_log, proxy or [],
        connections, connections_per_address, asks_per_token, metrics_token, webhook or [], webhook_secret,
        webhook_private,
    )  # fmt: skip


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
    with open_store(store) as campaigns:
        id = None if campaign is None else campaigns.find(campaign)["id"]
        made = campaigns.new_token(name, role.value, id)
    if as_json:
        print_json({"name": name, "role": role.value, "campaign": id, "token": made})
    else:
        typer.echo(made)


class InvitedRole(StrEnum):
    """What somebody can be invited for."""

    worker = "worker"
    reader = "reader"


@token_app.command()
def invite(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="What the token will be called; the log shows it beside what it writes."),
    ],
    role: Annotated[
        InvitedRole, typer.Option("--role", help="reader: may look; worker: may also measure.")
    ] = InvitedRole.worker,
    campaign: Annotated[
        str | None, typer.Option("--campaign", help="The only campaign that it is for.", show_default="all")
    ] = None,
    hours: Annotated[float, typer.Option("--hours", help="How long the link can be used.")] = 24.0,
    server: Annotated[
        str, typer.Option("--server", metavar="URL", help="The server's address, as the one who is invited reaches it.")
    ] = "http://127.0.0.1:8000",
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Make a link that logs one browser in, once, with a token of its own. It is shown only now."""
    with open_store(store) as campaigns:
        id = None if campaign is None else campaigns.find(campaign)["id"]
        made = campaigns.invitations.make(name, role.value, id, hours)
    goal = "" if id is None else f"?next=/campaigns/{id}"
    link = f"{server.rstrip('/')}/login{goal}#{made['secret']}"
    if as_json:
        print_json(made | {"link": link})
    else:
        typer.echo(link)


@token_app.command(name="list")
def list_tokens(store: Store = "coterie.db", as_json: Json = False) -> None:
    """List all tokens, without their secrets; revoked ones too."""
    with open_store(store) as campaigns:
        tokens, invitations = campaigns.tokens(), campaigns.invitations.listed()
        names = {entry["id"]: entry["name"] for entry in campaigns.list()}
    if as_json:
        kept = ("id", "label", "role", "campaign", "created", "revoked")
        print_json([{key: token[key] for key in kept} for token in tokens])
        return
    rows = [
        [token["id"], token["label"], token["role"],
         "all" if token["campaign"] is None else names.get(token["campaign"], "?"),
         token["created"], token["revoked"] or "holds"]
        for token in tokens
    ]  # fmt: skip
    print_table(["id", "name", "role", "campaign", "made", "revoked"], rows, "tokens")
    unused = [
        [row["id"], row["name"], row["role"], "all" if row["campaign"] is None else names.get(row["campaign"], "?"),
         row["created"], row["expires"]]
        for row in invitations
        if row["state"] == "open"
    ]  # fmt: skip
    if unused:
        print_table(["id", "name", "role", "campaign", "made", "expires"], unused, "invitations")


@token_app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name or id of a token or an invitation.")],
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Revoke a token. It stops working within a second, whoever logged in with it is logged out, and its open asks are
    given back.
    """
    with open_store(store) as campaigns:
        unused = [row["id"] for row in campaigns.invitations.listed() if name in (row["id"], row["name"])
                  and row["state"] == "open"]  # fmt: skip
        if unused:
            taken = campaigns.invitations.revoke(unused[0])
            ended = {"id": taken["id"], "label": taken["name"], "role": taken["role"], "freed": 0}
        else:
            ended = campaigns.revoke_token(name)
    if as_json:
        print_json({key: ended[key] for key in ("id", "label", "role", "freed")})
        return
    asks = f"; {plural(ended['freed'], 'open ask')} given back" if ended["freed"] else ""
    typer.echo(f"revoked: {ended['label'] or ended['id']} ({ended['role']}){asks}")
