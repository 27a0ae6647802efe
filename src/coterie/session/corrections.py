"""A told value is corrected: it is replaced, its place in the order stays, and what follows from values is new.

Asks, freezes, the composition of rounds and their bets are facts, and stay as they were decided. Estimates, directions,
evidence, alarms and the stop are worked out anew from the corrected record (docs/CROC.md, section 16, has the proof).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.checks import FloatArray, check_count, check_measurement, short
from coterie.session import replaying
from coterie.session.conversation import ASKED, CHOSEN, LOOKED
from coterie.session.measurements import Measurements
from coterie.session.records import Entries, read
from coterie.session.replaying import Facts

if TYPE_CHECKING:
    from coterie.session.session import Session

LONGEST_REASON = 2000
ALARM = "alarm"


@dataclass(frozen=True)
class Correction:
    """One told value that was replaced. `row`: its place in the log; `at`: when, as text, empty if nobody said.

    `reopened`: the groups had been proven, and with the right value they are not.
    """

    row: int
    arm: int
    old: tuple[float, ...]
    new: tuple[float, ...]
    reason: str
    by: str = ""
    at: str = ""
    reopened: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "row": self.row,
            "arm": self.arm,
            "old": list(self.old),
            "new": list(self.new),
            "reason": self.reason,
            "by": self.by,
            "at": self.at,
            "reopened": self.reopened,
        }

    @classmethod
    def of(cls, saved: Any) -> Correction:
        """What `to_json` gave; ValueError if it is something else."""
        try:
            old, new = (tuple(float(x) for x in saved[key]) for key in ("old", "new"))
            why, by, at = (str(saved[key]) for key in ("reason", "by", "at"))
            return cls(int(saved["row"]), int(saved["arm"]), old, new, why, by, at, bool(saved["reopened"]))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"a correction must have row, arm, old, new and reason, got {short(saved)}") from None


@dataclass(frozen=True)
class Prepared:
    """A session as it is after a correction, which was worked out beside the one that is to be corrected."""

    session: Session
    correction: Correction

    def install(self, session: Session, at: str) -> Correction:
        """Let the session be the corrected one, now; it must be what it was when this was worked out."""
        made = replace(self.correction, at=at)
        session.become(self.session)
        session.corrections = [*session.corrections[:-1], made]
        return made


def correct(session: Session, row: Any, values: Any, reason: Any, by: Any = "", at: str = "") -> Correction | None:
    """See `Session.correct`. If anything is wrong, an error says so and nothing is changed."""
    found = prepare(session, row, values, reason, by)
    return None if found is None else found.install(session, at)


def prepare(session: Session, row: Any, values: Any, reason: Any, by: Any = "") -> Prepared | None:
    """What a correction makes of a session, which is not changed; None if these are the present values."""
    place = check_count(row, "row", 0)
    log = session._measurements
    if place >= len(log):
        raise ValueError(f"there is no result {place}: results are 0..{len(log) - 1}, in the order of `log`")
    new = check_measurement(values, session.dim)
    why, who = _text(reason, "reason"), _text(by, "by", needed=False)
    old = log.values[place]
    if np.array_equal(old, new):
        return None
    facts = _corrected(replaying.facts_of(session), {place: new})
    _check(session, log.arms, facts.values)
    was_done, stops_at = session.done, session.t
    fresh = _recounted(session, facts, stops_at if was_done else None)
    reopened = was_done and not fresh.done
    found = Correction(place, log.arms[place], tuple(old.tolist()), tuple(new.tolist()), why, who, "", reopened)
    fresh.corrections = [*session.corrections, found]
    fresh._conversation.undone = set(session._conversation.undone)
    return Prepared(fresh, found)


def _text(given: Any, name: str, needed: bool = True) -> str:
    if not isinstance(given, str) or len(given) > LONGEST_REASON or (needed and not given.strip()):
        wanted = "a text that says why the value was wrong" if needed else "a text"
        raise ValueError(f"{name} must be {wanted}, at most {LONGEST_REASON} characters, got {short(given)}")
    return " ".join(given.split())


def _check(session: Session, arms: Sequence[int], values: FloatArray) -> None:
    """That all results, with the new value in place, can be told."""
    Measurements(session.noise, session._method.exact).in_noise_units(arms, values)


def _corrected(facts: Facts, values: Mapping[int, FloatArray]) -> Facts:
    """Facts with other values at these places of the log; what an alarm said rested on the old ones."""
    replaced = facts.values.copy()
    for row, value in values.items():
        replaced[row] = value
    return facts._replace(values=replaced, decisions=without_alarm(facts.decisions))


def without_alarm(decisions: Sequence[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    """Decisions but for the alarm, which follows from values."""
    return [one for one in decisions if one[1]["event"] != ALARM]


def without_stop(facts: Facts) -> Facts:
    """Facts without the ask that found the groups, if one did."""
    keep = [i for i, (kind, arm) in enumerate(zip(facts.kinds, facts.arms, strict=True)) if kind != ASKED or arm >= 0]
    kinds, arms, tickets, rounds = (
        [column[i] for i in keep] for column in (facts.kinds, facts.arms, facts.tickets, facts.rounds)
    )
    return facts._replace(kinds=kinds, arms=arms, tickets=tickets, rounds=rounds)


def _recounted(session: Session, facts: Facts, stopped_after: int | None) -> Session:
    """A session in which these facts count. `stopped_after`: so many results had counted when the groups were found.

    If the results up to there still prove the groups, that stands; otherwise all results count that were told since.
    """
    going = without_stop(facts)
    if stopped_after is not None:
        fresh = _fresh(session)
        at = _stop_entry(fresh, facts, stopped_after)
        before, after = facts.split(at + 1)
        replaying.apply(fresh, without_stop(before))
        fresh.see_proven()
        if fresh.done:
            if len(without_stop(before).kinds) < len(before.kinds):
                fresh._conversation.order.append(ASKED)
            replaying.follow(fresh, after)
            return fresh
    fresh = _fresh(session)
    replaying.apply(fresh, going)
    return fresh


def _fresh(session: Session) -> Session:
    found = type(session).__new__(type(session))
    found._begin(session.first_settings, session._method)
    return found


def _stop_entry(fresh: Session, facts: Facts, t: int) -> int:
    """The entry at which the groups were found: that of the last result that counted, or of a later ask or look.

    Nothing is asked for after it, and nobody looks any more.
    """
    part = without_stop(facts)
    spread = np.zeros((len(part.kinds), 1))
    entries = Entries(part.kinds, part.arms, part.tickets, part.rounds, spread, 0, part.decisions, part.choices)
    reading = read(fresh._conversation, entries)
    results = [reading.origin[i] for i, row in enumerate(reading.rows) if row >= 0]
    kept = [i for i, (kind, arm) in enumerate(zip(facts.kinds, facts.arms, strict=True)) if kind != ASKED or arm >= 0]
    last_result = kept[results[t - 1]] if t > 0 else -1
    later = [i for i, kind in enumerate(facts.kinds) if kind in (ASKED, LOOKED, CHOSEN)]
    return max(last_result, later[-1] if later else -1)


def corrections_json(session: Session) -> list[dict[str, Any]]:
    """All corrections for a certificate: `result` is the number, from 1, of the result in the log of `events`.

    None if the result did not count.
    """
    number = {int(row): n for n, row in enumerate(session.counted.tolist(), start=1)}
    return [{"result": number.get(one.row)} | one.to_json() for one in session.corrections]


def in_words(session: Session) -> str:
    """How many results were corrected, in a clause; nothing if none was."""
    rows = {one.row for one in session.corrections}
    if not rows:
        return ""
    return f"{len(rows)} result{' was' if len(rows) == 1 else 's were'} corrected after being told"
