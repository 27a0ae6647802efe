"""What stands beside a proof, as plain JSON: the alarm, and whether each group looks like one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coterie.session import Session


def alarm_of(session: Session, name_of: Callable[[int], str]) -> dict[str, Any] | None:
    """The items that refute the number of groups, if there are any: pairwise known to differ, one more than groups.

    `arm` and `name` are the last of them.
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


def homogeneity_of(session: Session, numbers: Sequence[int]) -> dict[str, Any] | None:
    """Whether each group looks like one, once the groups are found; the text calls group k `numbers[k]`.

    `evidence` is in the order of the groups in `labels`, and `mixed` are places in it.
    """
    found = session.homogeneity
    if found is None:
        return None
    return {
        "level": found.level,
        "threshold": found.threshold,
        "evidence": list(found.evidence),
        "mixed": list(found.mixed),
        "text": sentence(f"{found.seen(numbers)} {found.advice}".rstrip()),
    }


def sentence(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]
