"""`coterie campaign undo`, `archive`, `unarchive`, `delete` and `lease-time`: what measures nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.campaign import Name, find_campaign, open_store, print_json
from coterie.cli.campaign_text import campaign_command
from coterie.cli.methods import Register
from coterie.cli.options import Json, Store


def undo(
    campaign: Name,
    lease: Annotated[str, typer.Argument(metavar="LEASE", help="The lease that nobody has measured.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for the log.")] = "",
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Give a lease back that was not measured. It does not count as a failure.

    If something was measured and could not be used, that is `coterie campaign fail`.
    """
    with open_store(store) as campaigns:
        answer = campaigns.undo(find_campaign(campaigns, campaign), lease, reason)
    if as_json:
        print_json(answer)
    elif answer["ended"] == "undone":
        typer.echo(f"undone: {answer['name']}")
    else:
        typer.echo(f"nothing to undo: the ask for {answer['name']} has {answer['ended']} already")


def archive(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """Archive a campaign: it can still be read, but not written to, and lists leave it out."""
    with open_store(store) as campaigns:
        answer = campaigns.archive(find_campaign(campaigns, campaign))
    if as_json:
        print_json(answer)
    else:
        typer.echo(f"archived since {answer['archived']}")
        typer.echo(f"back again: {campaign_command('unarchive', campaign, store)}")


def unarchive(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """Bring an archived campaign back, as it was."""
    with open_store(store) as campaigns:
        answer = campaigns.unarchive(find_campaign(campaigns, campaign))
    if as_json:
        print_json(answer)
    else:
        typer.echo(f"next: {campaign_command('ask', campaign, store)}")


def delete(
    campaign: Name,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete it: nothing of it is left, and it cannot be undone.")
    ] = False,
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Delete a campaign with all its measurements, its log and its tokens. To hide it only, archive it."""
    with open_store(store) as campaigns:
        id = find_campaign(campaigns, campaign)
        (found,) = (one for one in campaigns.list(archived=True) if one["id"] == id)
        if not yes:
            kept = campaign_command("export", campaign, store, "--kind", "json", "--out", "kept.json")
            raise ValueError(
                f"{found['name']} has {found['measurements']} measurements, and deleting them cannot be undone: say "
                f"--yes if that is meant. To keep a copy: {kept}"
            )
        answer = campaigns.delete(id, found["name"])
    if as_json:
        print_json(answer)
    else:
        typer.echo(f"deleted: {answer['name']} ({answer['deleted']}, {answer['measurements']} measurements)")


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
    with open_store(store) as campaigns:
        answer = campaigns.change_lease_time(find_campaign(campaigns, campaign), seconds)
    if as_json:
        print_json(answer)
    elif answer["changed"]:
        typer.echo(f"from the next ask on: {answer['lease_seconds']:g} seconds (before: {answer['before']:g})")
    else:
        typer.echo(f"nothing has changed: it is {answer['before']:g} seconds already")
