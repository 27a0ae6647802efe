"""`coterie campaign resolution`: other `--alike` and `--apart` for a campaign under way."""

from __future__ import annotations

import typer

from coterie.cli.campaign import Name, find_campaign, open_store, print_json
from coterie.cli.campaign_text import campaign_command
from coterie.cli.methods import Register
from coterie.cli.options import Json, Store
from coterie.cli.question_options import Alike, Apart, resolution_from_text
from coterie.problem.question import Resolution


def resolution(
    campaign: Name,
    alike: Alike = None,
    apart: Apart = None,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """Ask for another resolution from here on, after looking at the results.

    The groups that are being tested are given up, and the next ones need a little more evidence (log 5 = 1.6 for every
    test). Measurements so far serve to choose what to test, and the guarantee stays what it was.
    """
    with open_store(store) as campaigns:
        id = find_campaign(campaigns, campaign)
        present = campaigns.status(id)
        asked = Resolution.of(present["resolution"]) if "resolution" in present else Resolution(0, 1)
        found = resolution_from_text(alike, apart, asked.norm, asked.claims, present["dim"])
        if found is None:
            raise ValueError("say which differences do not matter, with --alike, and which do, with --apart")
        answer = campaigns.choose_resolution(id, found)
    if as_json:
        print_json(answer)
        return
    if not answer["changed"]:
        typer.echo(f"nothing has changed: asked for are {found.words} already")
        return
    typer.echo(f"from here on: {found.words}")
    typer.echo(f"What will be proven: {found.claim}.")
    spent = answer["epoch"]
    typer.echo(
        "It costs nothing: no groups were being tested yet."
        if spent == 0
        else f"Tests begin anew, and each needs {1.609 * spent:.1f} more evidence than at first."
    )
    if answer["forecast"] is not None:
        typer.echo(f"about {answer['forecast']:.0f} more measurements")
    typer.echo(f"next: {campaign_command('ask', campaign, store)}")
