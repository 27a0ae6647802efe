"""`coterie campaign …`: what its commands share, and those that show a campaign or put it away.

Commands that are printed are ready to be copied.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.methods import Register
from coterie.cli.options import Json, Name, Store
from coterie.cli.printing import print_json, print_table

if TYPE_CHECKING:
    from coterie.campaign import Campaigns


def open_store(store: str, create: bool = False) -> Campaigns:
    """The campaigns of a store."""
    from coterie.campaign import Campaigns

    return Campaigns(store, create=create)


@contextmanager
def opened(store: str, campaign: str) -> Iterator[tuple[Campaigns, str]]:
    """The campaigns of a store, and the id of the one that is meant."""
    with open_store(store) as campaigns:
        yield campaigns, campaigns.find(campaign)["id"]


def print_answer(answer: Any, as_json: bool, *lines: str) -> None:
    """Print an answer as JSON, or the lines that say it."""
    if as_json:
        print_json(answer)
        return
    for line in lines:
        typer.echo(line)


def status(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """Show how far a campaign is: its groups, the evidence, who measures."""
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.status(id)
        handed = _handed_over(campaigns, id) if answer.get("deadline_reached") else None
        blocks = blocks_of(campaigns, id)
    if as_json:
        print_json(answer if handed is None else answer | {"handover": handed})
        return
    from coterie.cli.campaign_report import print_status

    print_status(answer, handed)
    for line in next_steps(answer, campaign, store, blocks):
        typer.echo(line)


def _handed_over(campaigns: Campaigns, id: str) -> dict[str, Any] | None:
    """What is handed over at the deadline; None where a campaign has no partial answers."""
    from coterie.campaign import Conflict

    try:
        handed: dict[str, Any] = campaigns.partial(id, 0)["handover"]
    except Conflict:
        return None
    return handed


def partial(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """Show what is proven so far: which items differ, which are alike, and the groups that each may still be in."""
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.partial(id)
    if as_json:
        print_json(answer)
        return
    from coterie.cli.campaign_report import print_partial

    print_partial(answer, f"{campaign_command('export', campaign, store, '--kind', 'groups')}, or --json")


def list_campaigns(
    archived: Annotated[bool, typer.Option("--archived", help="List archived campaigns too.")] = False,
    store: Store = "coterie.db",
    register: Register = None,
    as_json: Json = False,
) -> None:
    """List all campaigns of the store."""
    with open_store(store) as campaigns:
        listed = campaigns.list(archived)
    if as_json:
        print_json(listed)
        return
    rows = [
        [entry["id"][:8], entry["name"], entry["n_arms"], entry["n_clusters"] or "found", entry["measurements"],
         state_word(entry)]
        for entry in listed
    ]  # fmt: skip
    print_table(["id", "name", "items", "groups", "measured", "state"], rows, "campaigns")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy: a new file.")],
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Copy the whole store while it is being used. The copy is a store like the original."""
    with open_store(store) as campaigns:
        campaigns.backup(file)
    if as_json:
        print_json({"file": str(file)})
    else:
        typer.echo(f"wrote {file}", err=True)


def archive(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """Archive a campaign: it can still be read, but not written to, and lists leave it out."""
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.archive(id)
    back = f"back again: {campaign_command('unarchive', campaign, store)}"
    print_answer(answer, as_json, f"archived since {answer['archived']}", back)


def unarchive(campaign: Name, store: Store = "coterie.db", register: Register = None, as_json: Json = False) -> None:
    """Bring an archived campaign back, as it was."""
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.unarchive(id)
        blocks = blocks_of(campaigns, id)
    print_answer(answer, as_json, next_ask(campaign, store, blocks))


def delete(
    campaign: Name,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete it: nothing of it is left, and it cannot be undone.")
    ] = False,
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Delete a campaign with all its measurements, its log and its tokens. To hide it only, archive it."""
    with opened(store, campaign) as (campaigns, id):
        (listed,) = (entry for entry in campaigns.list(archived=True) if entry["id"] == id)
        if not yes:
            kept = campaign_command("export", campaign, store, "--kind", "json", "--out", "kept.json")
            raise ValueError(
                f"{listed['name']} has {listed['measurements']} measurements, and deleting them cannot be undone: say "
                f"--yes if that is meant. To keep a copy: {kept}"
            )
        answer = campaigns.delete(id, listed["name"])
    deleted = f"deleted: {answer['name']} ({answer['deleted']}, {answer['measurements']} measurements)"
    print_answer(answer, as_json, deleted)


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
    with opened(store, campaign) as (campaigns, id):
        answer = campaigns.budget(id, more)
    print_answer(answer, as_json, answer["words"])


# Sentences and commands for people.


def next_steps(status: dict[str, Any], campaign: str, store: str, blocks: str | None) -> list[str]:
    """The commands that come next in a campaign with this status, a line each."""
    if status["alarm"] is not None:
        out = campaign_command("export", campaign, store, "--kind", "csv", "--out", "measurements.csv")
        least = len(status["alarm"]["arms"])
        return [
            f"next: ask for {least} groups, nothing is measured again:",
            f"  {campaign_command('clusters', campaign, store, str(least))}",
            "or the measurements, for a campaign with more groups or a larger noise:",
            f"  {out}",
        ]
    if status.get("deadline_reached"):
        return deadline_lines(campaign, store)
    if not status["done"]:
        return [next_ask(campaign, store, blocks)]
    commands = [campaign_command("export", campaign, store, "--kind", "groups", "--out", "groups.csv")]
    if status["certifies"]:
        for kind, out in (("certificate", "certificate.json"), ("log", "log.csv")):
            commands.append(campaign_command("export", campaign, store, "--kind", kind, "--out", out))
        commands.append("coterie verify certificate.json log.csv")
    more = ", the certificate and its log, and the check" if status["certifies"] else ""
    return [
        f"next: the groups as a table{more}:",
        *(f"  {command}" for command in commands),
    ]


def deadline_lines(campaign: str, store: str) -> list[str]:
    """What to do at the deadline, a line each."""
    return [
        "next: what is proven, and the guess for the rest; a certificate of what is proven; or a later deadline:",
        f"  {campaign_command('partial', campaign, store)}",
        f"  {campaign_command('export', campaign, store, '--kind', 'partial', '--out', 'partial.json')}",
        f"  {campaign_command('deadline', campaign, store)} MORE",
    ]


def waiting_lines(waiting: Sequence[dict[str, Any]]) -> list[str]:
    """For whom everybody waits, a line each."""
    return [f"waiting for {ask['name']}, asked of {ask['worker']}, {_until(ask['until'])}" for ask in waiting]


def freeing_lines(waiting: Sequence[dict[str, Any]], campaign: str, store: str) -> list[str]:
    """What to do about it."""
    if not waiting:
        return ["nothing to measure just now: try again"]
    free = campaign_command("fail", campaign, store, waiting[0]["lease"], "--reason", "no answer")
    return [
        "What else is measured cannot be used before. If the result will not come, for a reason that has nothing to do",
        f"with its value: {free}",
    ]


def _until(until: str | None) -> str:
    return "until its result comes or somebody frees it" if until is None else f"until {until}"


def state_word(listed: dict[str, Any]) -> str:
    """How far a campaign of a list is."""
    if listed["archived"]:
        return "archived"
    if listed["done"]:
        return "done"
    return f"{listed['open_leases']} under way" if listed["open_leases"] else "open"


def blocks_of(campaigns: Campaigns, id: str) -> str | None:
    """The kind of a campaign's blocks, if it has any."""
    kind: str | None = campaigns.settings(id).get("blocks")
    return kind


def next_ask(campaign: str, store: str, blocks: str | None) -> str:
    """The line that says how to go on measuring."""
    where = [] if blocks is None else ["--block", "plate 1", "-n", "12"]
    return f"next: {campaign_command('ask', campaign, store, *where)}"


def campaign_command(name: str, campaign: str, store: str, *more: str) -> str:
    """A command that works when it is copied, in the same folder with the same environment."""
    words = ["coterie", "campaign", name, campaign, *more]
    if store != os.environ.get("COTERIE_STORE", "coterie.db"):
        words += ["--store", re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", store)]  # no passwords on the screen
    return shlex.join(words)


def value_placeholders(names: Sequence[str] | None, dim: int) -> str:
    """Words that stand for the numbers of a measurement in a command: their names in capitals, or VALUE."""
    if names is not None:
        return " ".join(re.sub(r"\W+", "-", name).strip("-").upper() or "VALUE" for name in names)
    return " ".join(["VALUE"] * dim) if dim <= 4 else "VALUE …"
