"""One far value in place of a group or an item that it would put the blame on, with when it was told."""

from __future__ import annotations

import numpy as np

from coterie.campaign.state import State
from coterie.session.far_values import FarValue, far_value
from coterie.session.verdicts import explaining_value

_MOST_LOOKED_AT = 20_000  # results among which a slip is looked for before the end
_MOST_SLIPS = 3  # results that lie far off: of more, the noise is the cause
_FAR = "far value"  # its place in what a state has computed

WHAT_TO_DO = "If it was told wrong, correct it (coterie campaign correct, or the button in the log)."


def in_words(state: State, far: FarValue) -> str:
    """The value, its item and its measurement."""
    measurement = next(name for name, place in state.ids.items() if place == far.row)
    return f"{far.seen(state.settings.name_of(far.arm), f'as measurement {measurement}')}. {WHAT_TO_DO}"


def explanation(state: State) -> str | None:
    """The value that explains an alarm, or a group that looks mixed, in words; None if none does."""
    far = explaining_value(state.session)
    return None if far is None else in_words(state, far)


def standing_value(state: State) -> str | None:
    """The farthest of the results that count, in words, if it looks like a slip; None if none does.

    That it is one is a guess: so nothing is said where many results lie far off, as they do under heavy tails, nor of
    very many results, which would take long to look at.
    """
    if state.session.t > _MOST_LOOKED_AT or state.session.t == 0:
        return None
    known = state.computed.get(_FAR)
    if known is None or known[0] != state.seq:
        rows = state.session.counted
        found: list[FarValue] = []
        while len(found) < _MOST_SLIPS and (far := far_value(state.session, rows)) is not None:
            found.append(far)
            rows = rows[rows != far.row]
        alone = bool(found) and far_value(state.session, rows, nearer=0.5) is None
        said = in_words(state, found[0]) if alone else None
        state.computed[_FAR] = known = (state.seq, said)
    text: str | None = known[1]
    return text


def late_value(state: State) -> FarValue | None:
    """The farthest of the results told after the stop, if it is far from the others of its item."""
    if state.session.groups_now is None or not state.done:
        return None
    if state.late_value[0] != state.seq:
        far = far_value(state.session, np.arange(state.n_results))
        late = far is not None and not state.counted_places()[far.row]
        state.late_value = (state.seq, far if late else None)
    return state.late_value[1]
