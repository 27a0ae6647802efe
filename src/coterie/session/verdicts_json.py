"""What speaks against the number of groups of a session, as plain JSON values: its alarm and its homogeneity test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from coterie.session.session import Session


def alarm_json(session: Session, name_of: Callable[[int], str]) -> dict[str, Any] | None:
    """The items that refute the number of groups: one more than groups, pairwise known to differ. None without alarm.

    `arm` and `name` are those of the last of them.
    """
    alarm = session.alarm
    if alarm is None:
        return None
    names = [name_of(arm) for arm in alarm.arms]
    return {
        "arm": alarm.arms[-1],
        "name": names[-1],
        "arms": list(alarm.arms),
        "names": names,
        "probability": alarm.probability,
        "text": str(alarm),
    }


def alarms_json(session: Session) -> list[dict[str, Any]]:
    """The alarms of `Session.alarms`; `text` says what was seen and what to do."""
    return [one.to_json() | {"text": str(one)} for one in session.alarms]


def homogeneity_json(session: Session, numbers: Sequence[int]) -> dict[str, Any] | None:
    """Whether the items of each group look alike; None as long as the groups are not found.

    `evidence` is in the order of the groups in `labels`, and `mixed` are places in it. The text calls the group of
    label k `numbers[k]`. `confirmed` and `visible` are those of `Homogeneity`.
    """
    found = session.homogeneity
    if found is None:
        return None
    text = f"{found.seen(numbers)} {found.advice}".rstrip()
    return {
        "level": found.level,
        "threshold": found.threshold,
        "evidence": list(found.evidence),
        "mixed": list(found.mixed),
        "confirmed": found.confirmed,
        "visible": None if found.visible is None else [one if math.isfinite(one) else None for one in found.visible],
        "text": text[:1].upper() + text[1:],
    }
