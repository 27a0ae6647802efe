"""A told value is corrected: it is replaced, its place in the order stays, and what follows from values is new.

Asks, freezes, the composition of rounds and their bets are facts, and stay as they were decided. Estimates, directions,
evidence, alarms and the stop are worked out anew from the corrected record (docs/CROC.md, section 16, has the proof).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.checks import FloatArray, check_count, short
from coterie.session.conversation import ASKED, CHOSEN, LOOKED, AppliedPart, Conversation
from coterie.session.facts import Facts, Reading, facts_of
from coterie.session.replaying import apply_facts, follow_facts

if TYPE_CHECKING:
    from coterie.session.session import Session

LONGEST_REASON = 2000
ALARM = "alarm"


@dataclass(frozen=True)
class Correction:
    """One told value that was replaced.

    Parameters
    ----------
    row, arm : int
        The place of the result in the log, and its item.
    old, new : tuple of float
        The value that was told, and the right one.
    reason, by, at : str
        Why, who says so, and when; empty if nobody said.
    reopened : bool
        The groups had been proven, and with the right value they are not.
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
        return asdict(self) | {"old": list(map(_plain, self.old)), "new": list(map(_plain, self.new))}

    @classmethod
    def of(cls, saved: Any) -> Correction:
        """What `to_json` gave; ValueError if it is something else."""
        try:
            old, new = (tuple(math.nan if x is None else float(x) for x in saved[key]) for key in ("old", "new"))
            why, by, at = (str(saved[key]) for key in ("reason", "by", "at"))
            return cls(int(saved["row"]), int(saved["arm"]), old, new, why, by, at, bool(saved["reopened"]))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"a correction must have row, arm, old, new and reason, got {short(saved)}") from None


def _plain(value: float) -> float | None:
    """A number as JSON has them; None for a hole."""
    return None if math.isnan(value) else value


@dataclass(frozen=True)
class CorrectedConversation:
    """What a correction makes of a session, worked out beside it."""

    conversation: Conversation

    def install(self, session: Session, at: str) -> Correction:
        """Let the session be the corrected one, now; it must be what it was when this was worked out."""
        made = replace(self.conversation.corrections[-1], at=at)
        self.conversation.corrections[-1] = made
        session._conversation = self.conversation
        return made


def correct(session: Session, row: Any, values: Any, reason: Any, by: Any = "", at: str = "") -> Correction | None:
    """See `Session.correct`. If anything is wrong, an error says so and nothing is changed."""
    prepared = prepare(session, row, values, reason, by)
    return None if prepared is None else prepared.install(session, at)


def prepare(session: Session, row: Any, values: Any, reason: Any, by: Any = "") -> CorrectedConversation | None:
    """What a correction makes of a session, which is not changed; None if these are the present values."""
    conversation = session._conversation
    place, log = check_count(row, "row", 0), conversation.log
    if place >= len(log):
        raise ValueError(f"there is no result {place}: results are 0..{len(log) - 1}, in the order of `log`")
    new = log.checked(log.arms[place], values)
    why, who = _text(reason, "reason"), _text(by, "by", needed=False)
    old = log.array[place]
    if np.array_equal(old, new, equal_nan=True):
        return None
    facts = _corrected(facts_of(conversation), place, new)
    # All results, with the new value in place, must be such as can be told.
    conversation.new_log().in_noise_units(log.arms, facts.values)
    fresh = _recounted(conversation, facts, session.t if session.done else None)
    reopened = session.done and not fresh.run.done
    size = len(log.values[place])  # of a panel, if there are features
    was, now = (tuple(part[:size].tolist()) for part in (old, new))
    made = Correction(place, conversation.item_of(log.arms[place]), was, now, why, who, "", reopened)
    fresh.undone, fresh.corrections = set(conversation.undone), [*conversation.corrections, made]
    return CorrectedConversation(fresh)


def _text(given: Any, name: str, needed: bool = True) -> str:
    if not isinstance(given, str) or len(given) > LONGEST_REASON or (needed and not given.strip()):
        wanted = "a text that says why the value was wrong" if needed else "a text"
        raise ValueError(f"{name} must be {wanted}, at most {LONGEST_REASON} characters, got {short(given)}")
    return " ".join(given.split())


def _corrected(facts: Facts, row: int, value: FloatArray) -> Facts:
    """Facts with another value at this place of the log; what an alarm said rested on the old one."""
    values = facts.values.copy()
    values[row] = value
    return facts._replace(values=values, decisions=without_alarm(facts.decisions))


def without_alarm(decisions: Sequence[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    """Decisions but for the alarm, which follows from values."""
    return [dated for dated in decisions if dated[1]["event"] != ALARM]


def _recounted(conversation: Conversation, facts: Facts, stopped_after: int | None) -> Conversation:
    """A conversation in which these facts count. `stopped_after`: so many results counted before the groups were found.

    If the results up to there still prove the groups, that stands; otherwise all results count that were told since.
    """
    settings, method = conversation.first_settings, conversation.method
    if stopped_after is not None:
        fresh = Conversation(settings, method)
        stop = _stop_entry(fresh, facts, stopped_after)
        before, after = facts.split(AppliedPart(stop + 1, len(facts.decisions)))
        going = before.without_stop()
        apply_facts(fresh, going)
        fresh.look(noted=False)
        if fresh.run.done:
            if len(going.kinds) < len(before.kinds):
                fresh.order.append(ASKED)
            follow_facts(fresh, after)
            return fresh
    fresh = Conversation(settings, method)
    apply_facts(fresh, facts.without_stop())
    return fresh


def _stop_entry(fresh: Conversation, facts: Facts, t: int) -> int:
    """The entry at which the groups were found: that of the last result that counted, or of a later ask or look.

    Nothing is asked for after it, and nobody looks any more.
    """
    reading = Reading(fresh, facts.without_stop(), np.zeros((len(facts.values), 1)))
    results = [reading.origin[i] for i, row in enumerate(reading.rows) if row >= 0]
    kept = [i for i, (kind, arm) in enumerate(zip(facts.kinds, facts.arms, strict=True)) if kind != ASKED or arm >= 0]
    last_result = kept[results[t - 1]] if t > 0 else -1
    later = [i for i, kind in enumerate(facts.kinds) if kind in (ASKED, LOOKED, CHOSEN)]
    return max(last_result, later[-1] if later else -1)


def corrections_json(conversation: Conversation) -> list[dict[str, Any]]:
    """All corrections for a certificate: `result` is the number, from 1, of the result in the log of `events`.

    None if the result did not count.
    """
    number = {row: n for n, row in enumerate(conversation.counted_rows, start=1)}
    return [{"result": number.get(made.row)} | made.to_json() for made in conversation.corrections]


def in_words(session: Session) -> str:
    """How many results of a session were corrected, in a clause; nothing if none was."""
    return corrections_in_words(session.corrections)


def corrections_in_words(corrections: Sequence[Correction]) -> str:
    """How many results were corrected, in a clause; nothing if none was."""
    rows = {made.row for made in corrections}
    if not rows:
        return ""
    return f"{len(rows)} result{' was' if len(rows) == 1 else 's were'} corrected after being told"
