"""Part of a conversation as arrays: asks, results and given-up asks, in the order in which they count.

The order of results is the conversation's business (`coterie.session.conversation`): here every result counts when its
turn comes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.engine.state import Floats, Ints

# Kinds of entries. The first three are those of `coterie.methods.contract`.
ASK, RESULT, GIVE_UP = 0, 1, 2
LOOK = 3  # see whether the results so far prove the groups
OPEN_ROUND = 4  # applying only: a recorded round, of the epoch `arms[i]`, with the pulls `composition`
ESTIMATE = 5  # applying only: estimate the groups from what was applied
# Where a run is in its entries, and whether they are applied: the rule is then not consulted.
POSITION, APPLYING = 0, 1
# Why `drive` came back.
ENDED, DECIDED, PROVEN, PROVEN_ASKING, OTHER_ARM, NO_ROOM = 0, 1, 2, 3, 4, 5


class Entries(NamedTuple):
    """n entries, and where a run is in them."""

    at: Ints  # (2) POSITION, APPLYING
    kinds: Ints  # (n)
    arms: Ints  # (n) of an ask: -1 if it is not known; OUT: the arm asked for
    rounds: Ints  # (n) of an ask: OUT, or, applying, the recorded round; of others without `ask`: that of their ask
    ask: Ints  # (n) the entry of the ask that a result or a given-up ask is about, -1 if it is not in here
    asked: Ints  # (n) 1 if a result answers an ask
    values: Floats  # (n, 2·d)
    composition: Ints  # (M) of a recorded round


def new_entries(n_arms: int, kinds: Ints, arms: Ints, values: Floats) -> Entries:
    """Entries at their beginning, about no asks yet."""

    def ints(n: int) -> Ints:
        return np.zeros(n, dtype=np.int64)

    n = len(kinds)
    for given, kind, axes in ((kinds, np.int64, 1), (arms, np.int64, 1), (values, np.float64, 2)):
        if given.dtype != kind or given.ndim != axes or not given.flags.c_contiguous:  # compiled code relies on it
            raise TypeError(f"{given.ndim} axes of {given.dtype} where compiled code takes {axes} of {kind.__name__}")
    return Entries(ints(2), kinds, arms, ints(n), ints(n) - 1, ints(n), values, ints(n_arms))
