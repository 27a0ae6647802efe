"""`coterie serve`: the API and the page."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.methods import Register
from coterie.cli.options import Store


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
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log every request: address, method, path, status.")
    ] = False,
    register: Register = None,
) -> None:
    """Serve campaigns over HTTP: an API for programs, and a page for people."""
    from coterie.web import serve as run

    run(
        store, host, port, token, read_token, new_token, rate, int(max_body * 2**20), access_log, proxy or [],
        connections, connections_per_address, asks_per_token,
    )  # fmt: skip
