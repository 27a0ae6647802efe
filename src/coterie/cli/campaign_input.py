"""Reading what people type to `coterie campaign`: items, numbers, names."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from coterie.campaign import Campaigns


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
    """One number of a measurement; a decimal comma is refused with the way to write it."""
    try:
        return float(given)
    except ValueError:
        comma = f": write it with a point, {given.replace(',', '.')}" if re.fullmatch(r"[-+]?\d+,\d+", given) else ""
        raise ValueError(f"a measurement is numbers, got {given!r}{comma}") from None


def split_commas(given: str | None) -> list[str] | None:
    """The parts of a,b,c without the blanks around them; None if nothing was given."""
    return None if given is None else [part.strip() for part in given.split(",")]


def default_worker() -> str:
    """The name of a worker who gives none: user@host."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # no such user in this container
        return f"user{os.getuid()}@{socket.gethostname()}"


def new_measurement_id() -> str:
    """The id of a measurement that was given none."""
    from coterie.campaign.settings import new_key

    return new_key()


def tell_or_ask_back(campaigns: Campaigns, id: str, given: list[dict[str, Any]], yes: bool) -> dict[str, Any]:
    """Tell a result; one far from the item's earlier ones only if a person says so, or --yes does."""
    from coterie.campaign import CampaignError

    try:
        return campaigns.tell(id, given, ask_back=not yes)
    except CampaignError as error:
        if error.code != "far_off":
            raise
        if not sys.stdin.isatty():
            raise ValueError(f"{error.message} If that is what was measured, tell it with --yes") from None
        if not typer.confirm(error.message, default=False, err=True):
            raise ValueError("nothing was saved") from None
    return campaigns.tell(id, given)
