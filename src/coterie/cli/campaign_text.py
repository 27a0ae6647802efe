"""Sentences and commands that `coterie campaign` and `coterie group` print; commands are ready to be copied."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import Any


def next_steps(found: dict[str, Any], campaign: str, store: str) -> list[str]:
    """The commands that come next in a campaign with this status, a line each."""
    if found["alarm"] is not None:
        out = campaign_command("export", campaign, store, "--kind", "csv", "--out", "measurements.csv")
        least = len(found["alarm"]["arms"])
        return [
            f"next: ask for {least} groups, nothing is measured again:",
            f"  {campaign_command('clusters', campaign, store, str(least))}",
            "or the measurements, for a campaign with more groups or a larger noise:",
            f"  {out}",
        ]
    if not found["done"]:
        return [f"next: {campaign_command('ask', campaign, store)}"]
    commands = [campaign_command("export", campaign, store, "--kind", "groups", "--out", "groups.csv")]
    if found["certifies"]:
        for kind, out in (("certificate", "certificate.json"), ("log", "log.csv")):
            commands.append(campaign_command("export", campaign, store, "--kind", kind, "--out", out))
        commands.append("coterie verify certificate.json log.csv")
    more = ", the certificate and its log, and the check" if found["certifies"] else ""
    return [
        f"next: the groups as a table{more}:",
        *(f"  {one}" for one in commands),
    ]


def waiting_lines(waiting: Sequence[dict[str, Any]]) -> list[str]:
    """For whom everybody waits, a line each."""
    return [f"waiting for {one['name']}, asked of {one['worker']}, {_until(one['until'])}" for one in waiting]


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


def campaign_label(one: dict[str, Any]) -> str:
    """A campaign in a few words that tell it from others of its name: id, date, measurements."""
    count = one["measurements"]
    return f"{one['id'][:8]}, created {one['created'][:16]}Z, {count} measurement{'' if count == 1 else 's'}"


def state_word(one: dict[str, Any]) -> str:
    """How far a campaign of a list is."""
    if one["archived"]:
        return "archived"
    if one["done"]:
        return "done"
    return f"{one['open_leases']} under way" if one["open_leases"] else "open"


def campaign_meant(known: Sequence[dict[str, Any]], given: str) -> str:
    """The id of the campaign that is meant: by its id, its name, or the beginning of its id."""
    ids = [one["id"] for one in known if one["id"] == given] or [one["id"] for one in known if one["name"] == given]
    if not ids and len(given) >= 6:
        ids = [one["id"] for one in known if one["id"].startswith(given)]
    if len(ids) > 1:
        meant = [campaign_label(one) for one in known if one["id"] in ids]
        more = f"; and {len(ids) - 5} more" if len(ids) > 5 else ""
        raise ValueError(f"{len(ids)} campaigns are called {given!r}, use an id: {'; '.join(meant[:5])}{more}")
    if not ids:
        raise ValueError(f"there is no campaign {given!r}: coterie campaign list shows them all")
    return str(ids[0])


_MOST_NAMES = 12


def first_names(names: Sequence[str], count: int | None = None) -> str:
    """The first dozen of a list of names, and how many more there are; `count`: of them all, if some are not listed."""
    more = (len(names) if count is None else count) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def order_sentence(order: dict[str, Any]) -> str:
    """In which order the measurements of a table were used, and what that assumes."""
    if order["shuffled"]:
        return (
            f"Each item's measurements were shuffled (seed {order['seed']}): their order plays no role. How many there "
            "are must not depend on their values."
        )
    return (
        "Each item's measurements were taken in the order of the file. This assumes that their order has nothing to do "
        "with their values, as when it is the order in which they were measured."
    )


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
