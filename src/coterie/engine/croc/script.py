"""A conversation as arrays: asks, results and given-up asks in their order, and the line of each arm.

A result counts when every earlier ask for its arm is answered or given up (docs/CROC.md, section 8): each arm has a
line of *places*, one for every ask, and one for every result that nobody asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.engine.state import Floats, Ints

# What a script says.
ASK, TELL, FORGET = 0, 1, 2
# Where a script is: the next entry, the arm whose line is being counted (-1: none), how many results have counted.
ENTRY, LINE, COUNTED = 0, 1, 2
# Why `drive` came back.
ENDED, NOTED, PROVEN, PROVEN_ASKING, OTHER_ARM, NOT_OPEN, NOT_THAT_ARM = 0, 1, 2, 3, 4, 5, 6
# The state of a place.
NO_PLACE, OPEN, TOLD, GONE = 0, 1, 2, 3


class Script(NamedTuple):
    """Asks, results and given-up asks in their order, n of them, and the lines of the arms.

    Places 0, 1, …, e−1 are those that were there before; entry i, if it is an ask or a result nobody asked for, has
    place e + i.
    """

    at: Ints  # (3) where we are
    kinds: Ints  # (n)
    arms: Ints  # (n) of an ask: -1 if it is not known; OUT: the arm asked for
    place: Ints  # (n) of a result or a given-up ask: the place that it is about, its own if nobody asked
    values: Floats  # (rows, d)
    row: Ints  # (e+n) row of `values` for the place
    head: Ints  # (M) first place of the line, -1 if it is empty
    tail: Ints  # (M)
    following: Ints  # (e+n) next place of the line
    status: Ints  # (e+n) NO_PLACE, OPEN, TOLD, GONE
    its_arm: Ints  # (e+n)
    its_round: Ints  # (e+n)
    counted: Ints  # (e+n) OUT: places in the order in which they counted


def new_script(n_arms: int, kinds: Ints, arms: Ints, values: Floats, places: int) -> Script:
    """A script with room for so many places that are there before; no place is filled yet."""

    def ints(n: int) -> Ints:
        return np.zeros(n, dtype=np.int64)

    n, room = len(kinds), places + len(kinds)
    return Script(
        np.array([0, -1, 0]), kinds, arms, ints(n), values, ints(room), ints(n_arms) - 1, ints(n_arms) - 1,
        ints(room), ints(room), ints(room), ints(room), ints(room),
    )  # fmt: skip
