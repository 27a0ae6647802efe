"""Closing rounds: a complete one is used by the claims of its epoch (docs/CROC.md, section 4)."""

from __future__ import annotations

from coterie.engine.compiled import compiled
from coterie.engine.croc.claims import use_round
from coterie.engine.croc.flight import forget_closed
from coterie.engine.croc.state import CLOSED, EPOCHS, FLIGHT, OLDEST, OPEN_ROUNDS, ROUND, Croc, Work


@compiled
def close_ready(s: Croc, w: Work) -> None:
    """Close every complete round that no earlier incomplete one of its epoch holds up. INOUT: s."""
    held = 0  # bits: slots of epochs
    for number in range(s.ints[OLDEST], s.ints[ROUND] + 1):
        f = number % FLIGHT
        e = s.round_epoch[f] % EPOCHS
        remembered = s.frozen_number[e] == s.round_epoch[f]
        if s.round_left[f] == 0 and not (remembered and (held >> e) & 1):
            if remembered:
                use_round(s, w, number, e)
            s.round_left[f] = -1
            s.ints[OPEN_ROUNDS] -= 1
            s.ints[CLOSED] = 1
        elif s.round_left[f] >= 0 and remembered:
            held |= 1 << e
    forget_closed(s)
