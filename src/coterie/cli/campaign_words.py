"""What people type to `coterie campaign`, read; and the commands that it proposes, ready to be copied."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def read_arm(given: str, names: Sequence[str] | None) -> int | str:
    """An arm on the command line is a name, if there is one of that name, or its number from 0.

    Where names are numbers themselves, a number is a name: 1 among 10, 20 and 30 is a slip, not the second of them.
    """
    if names is not None and (given in names or any(name.strip().isdigit() for name in names)):
        return given
    try:
        return int(given)
    except ValueError:
        return given


def read_number(given: str) -> float:
    """A number of a measurement."""
    try:
        return float(given)
    except ValueError:
        comma = f": write it with a point, {given.replace(',', '.')}" if re.fullmatch(r"[-+]?\d+,\d+", given) else ""
        raise ValueError(f"a measurement is numbers, got {given!r}{comma}") from None


def read_noise(given: str | None) -> Any:
    """A noise as `Session` takes it."""
    if given is None:
        return None
    try:
        text = given.strip()
        listed = ",".join(re.split(r"[\s;,]+", text))
        content = json.loads(text if text.startswith("[") else f"[{listed}]")
    except json.JSONDecodeError:
        raise ValueError(f"--noise must be a number, numbers 1.5,2 or a matrix [[1,0],[0,2]], got {given!r}") from None
    return content[0] if len(content) == 1 and not text.startswith("[") else content


def read_names(given: str | None, file: Path | None) -> list[str] | None:
    """The items' names."""
    if given is not None and file is not None:
        raise ValueError("give --names or --names-file, not both")
    if given is not None and "," not in given and re.search(r"[;\t]", given):
        raise ValueError(f"--names are separated by commas, as a,b,c, got {given!r}")
    if file is not None:
        return [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    return split(given)


def split(given: str | None) -> list[str] | None:
    """a,b,c."""
    return None if given is None else [part.strip() for part in given.split(",")]


def somebody() -> str:
    """Who measures, if nobody says."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # no such user in this container
        return f"user{os.getuid()}@{socket.gethostname()}"


def new_id() -> str:
    """The id of a measurement that was given none."""
    from coterie.campaign.settings import new_key

    return new_key()


# Proposals.


def next_steps(found: dict[str, Any], campaign: str, store: str) -> list[str]:
    """What to do when the status is this."""
    if found["alarm"] is not None:
        out = command("export", campaign, store, "--kind", "csv", "--out", "measurements.csv")
        return ["next: the measurements, for a campaign with more groups or a larger noise:", f"  {out}"]
    if not found["done"]:
        return [f"next: {command('ask', campaign, store)}"]
    commands = [command("export", campaign, store, "--kind", "groups", "--out", "groups.csv")]
    if found["method"] == "croc":
        for kind, out in (("certificate", "certificate.json"), ("log", "log.csv")):
            commands.append(command("export", campaign, store, "--kind", kind, "--out", out))
        commands.append("coterie verify certificate.json log.csv")
    return [
        "next: the groups as a table, the certificate and its log, and the check:",
        *(f"  {one}" for one in commands),
    ]


def about(one: dict[str, Any]) -> str:
    """A campaign, told from others of its name."""
    count = one["measurements"]
    return f"{one['id'][:8]}, created {one['created'][:16]}Z, {count} measurement{'' if count == 1 else 's'}"


def about_order(order: dict[str, Any]) -> str:
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


def command(name: str, campaign: str, store: str, *more: str) -> str:
    """A command that works when it is copied, in the same folder with the same environment."""
    words = ["coterie", "campaign", name, campaign, *more]
    if store != os.environ.get("COTERIE_STORE", "coterie.db"):
        words += ["--store", re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", store)]  # no passwords on the screen
    return shlex.join(words)


def placeholders(names: Sequence[str] | None, dim: int) -> str:
    """What is typed in place of the numbers."""
    if names is not None:
        return " ".join(re.sub(r"\W+", "-", name).strip("-").upper() or "VALUE" for name in names)
    return " ".join(["VALUE"] * dim) if dim <= 4 else "VALUE …"
