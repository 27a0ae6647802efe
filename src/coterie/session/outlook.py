"""What so many more measurements are expected to bring: the chance to be done, and what is proven if not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coterie.problem.checks import check_count
from coterie.problem.question import ExactGroups, Resolution
from coterie.session.forecast import Forecast

if TYPE_CHECKING:
    from coterie.methods.reports import Standing
    from coterie.session.session import Session

MOST = 10**9
"""Measurements that may be asked about."""
_LARGEST_DELTA = 0.5
_BEFORE_TESTS = 0.5
"""Of what is left of a run before anything is being tested: about so much passes before claims are proven."""


@dataclass(frozen=True)
class Outlook:
    """What to expect of `more` further measurements. It rests on a forecast, and promises nothing.

    `chance`: about how probable it is that the session is done by then; None if nobody can say yet. `delta`: the error
    probability for which they would be about enough: below that of the session if they are more than it needs. None
    if they are too few for any that is worth a proof. `resolution`: the finest one that they are expected to allow, by
    a larger `apart`, where a resolution is asked for. `proven` of `needed` claims, `settled` of `items` items: expected
    by then (see `Progress`). `words` says it in a sentence or two.
    """

    more: int
    chance: float | None
    delta: float | None
    resolution: Resolution | None
    proven: int
    needed: int
    settled: int
    items: int
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        found = {key: getattr(self, key) for key in self.__dataclass_fields__}
        found["resolution"] = None if self.resolution is None else self.resolution.to_json()["resolution"]
        return found


def check_more(more: Any) -> int:
    """A number of further measurements."""
    count = check_count(more, "more", 1)
    if count > MOST:
        raise ValueError(f"more must be at most {MOST}, got {count if count < 10**30 else 'a much larger number'}")
    return count


def outlook_of(session: Session, standing: Standing, more: Any) -> Outlook:
    """What to expect of so many more."""
    count, items, remaining = check_more(more), session.n_present, session.remaining
    if remaining is None or session.done:
        chance = 1.0 if session.done else None
        counts = (standing.proven, standing.needed, standing.settled, items)
        delta = session.delta if session.done else None
        return Outlook(count, chance, delta, None, *counts, _words_without(session, count))
    share = min(1.0, count / max(remaining.remaining, 1.0))
    if standing.spent == 0:  # first comes what is left of finding a guess
        share = max(0.0, (share - _BEFORE_TESTS) / (1.0 - _BEFORE_TESTS))
    proven = standing.proven + int(share * (standing.needed - standing.proven))
    settled = standing.settled + int(share * (items - standing.settled))
    chance, delta = remaining.chance(count), _delta(session, remaining, count)
    resolution = session.resolution_for(session.t + count) if session.resolution is not None else None
    words = _words(session, count, chance, delta, resolution, (proven, standing.needed, settled))
    if remaining.wild:
        words = f"It is too early for a good forecast; by a rough one: {words[0].lower()}{words[1:]}"
    return Outlook(count, chance, delta, resolution, proven, standing.needed, settled, items, words)


def _delta(session: Session, remaining: Forecast, more: int) -> float | None:
    """The δ whose run would take t + more: the evidence needed is log 1/δ and a constant, and grows with the run."""
    level = session.evidence.threshold
    if not math.isfinite(level) or level <= 0.0:
        return None
    reached = level * (session.t + more) / (session.t + remaining.remaining)
    exponent = math.log(session.delta) + level - reached
    return math.exp(max(exponent, -700.0)) if exponent <= math.log(_LARGEST_DELTA) else None


def _words_without(session: Session, more: int) -> str:
    if session.done:
        return f"Nothing more is needed. {session.verdict[0].upper()}{session.verdict[1:]}."
    unseen = session.unmeasured
    if unseen:
        first = f"{unseen} of {session.n_present} items have not been measured yet"
        enough = "ask again when every item was" if more >= unseen else f"{more} more do not even reach each of them"
        return f"Nobody can say yet: {first}; {enough}."
    return "Nobody can say yet: the results so far are too few for a forecast."


def _words(
    session: Session, more: int, chance: float, delta: float | None, resolution: Resolution | None, counts: Any
) -> str:
    proven, needed, settled = counts
    what = "differences" if isinstance(session.settings.question, ExactGroups) else "claims"
    said = [f"With {more} more measurements this is done with probability about {_percent(chance)}."]
    if chance < 0.9 and session.proves and needed:
        said.append(
            f"If not, expect about {proven} of {needed} {what} proven and {settled} of {session.n_present} items "
            "settled."
        )
    if resolution is not None and session.resolution is not None and resolution != session.resolution:
        said.append(f"About enough they are for {resolution.bounds}.")
    elif delta is None:
        said.append("They are too few for a proof with any error probability worth having.")
    elif delta > session.delta * 1.001:
        said.append(f"An error probability of {delta:.2g} in place of {session.delta:g} would need about so many.")
    return " ".join(said)


def _percent(chance: float) -> str:
    return f"{min(max(round(100 * chance), 1), 99)} %"
