"""One far value in place of a group or an item that it would put the blame on, with when it was told."""

from __future__ import annotations

import numpy as np

from coterie.campaign.state import State
from coterie.session.far_values import FarValue, far_value
from coterie.session.verdicts import explaining_value

WHAT_TO_DO = "If it was told wrong, correct it (coterie campaign correct, or the button in the log)."


def in_words(state: State, far: FarValue) -> str:
    """The value, its item and its measurement."""
    measurement = next(name for name, place in state.ids.items() if place == far.row)
    return f"{far.seen(state.settings.name_of(far.arm), f'as measurement {measurement}')}. {WHAT_TO_DO}"


def explanation(state: State) -> str | None:
    """The value that explains an alarm, or a group that looks mixed, in words; None if none does."""
    far = explaining_value(state.session)
    return None if far is None else in_words(state, far)


def late_value(state: State) -> FarValue | None:
    """The farthest of the results told after the stop, if it is far from the others of its item."""
    if state.session.groups_now is None or not state.done:
        return None
    if state.late_value[0] != state.seq:
        far = far_value(state.session, np.arange(state.n_results))
        late = far is not None and not state.counted_places()[far.row]
        state.late_value = (state.seq, far if late else None)
    return state.late_value[1]
