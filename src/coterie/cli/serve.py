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
            help="The address to listen at; others than this machine's need a --token of 20 characters or more.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0: any that is free.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="COTERIE_TOKEN",
            help="Whoever has it may read and write; in COTERIE_TOKEN it stays out of the list of processes.",
            show_default="one is made and printed once",
            show_envvar=True,
        ),
    ] = None,
    read_token: Annotated[
        str | None,
        typer.Option(
            "--read-token", envvar="COTERIE_READ_TOKEN", help="Whoever has it may only read.", show_default="none"
        ),
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Make a new token; the earlier ones hold no longer.")
    ] = False,
    rate: Annotated[
        float, typer.Option("--rate", help="Requests a second for each token; 0: no limit.", min=0.0)
    ] = 2000.0,
    max_body: Annotated[
        float, typer.Option("--max-body", help="The largest body of a request, in MiB.", min=0.001)
    ] = 8.0,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="A reverse proxy in front, as 127.0.0.1: only from there X-Forwarded-For and -Proto are believed.",
            show_default="none",
        ),
    ] = None,
    connections: Annotated[
        int, typer.Option("--connections", help="Connections at once, of everybody together.", min=1)
    ] = 1000,
    connections_per_address: Annotated[
        int,
        typer.Option("--connections-per-address", help="Connections at once from one address; not for proxies.", min=1),
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
