"""Records: parts of a conversation that a run follows, deciding anew, or applies without consulting its rule.

What a run decides beside its asks (CROC's freezes and rounds) are *decisions*: plain JSON that the conversation keeps.
A saved run is brought back either by following its record with the same rule, or, where the rule has changed since, by
applying the recorded asks, results and decisions: the rule is then asked for nothing before the next new ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.question import Resolution

if TYPE_CHECKING:
    from coterie.methods.contract import MethodRun

ASK, RESULT, GIVE_UP, LOOK = 0, 1, 2, 3
"""Kinds of entries of a record, as in native/croc/run.hpp: an ask opens, a result counts, an ask is given up, somebody
looks whether the results so far are enough."""

CHOOSE = 6
"""The kind of an entry at which somebody chooses another resolution; those of the engine are smaller."""

STEP = 7
"""The kind of an entry at which something was done with a block (`coterie.methods.capabilities.Blocks`)."""

NOBODY = -1
"""The ask of a result that nobody asked for."""

Decision: TypeAlias = dict[str, Any]
"""Something decided beside an ask, as plain JSON; `event` says what."""


class Record(NamedTuple):
    """Part of a conversation in the order in which it counts: n entries, to be followed or applied at once.

    `choices` are the resolutions of the entries of kind `CHOOSE`, in order, and `steps` what was done with blocks: of
    an entry of kind `STEP`, `ask` is the place in it. `panels`, where features are measured apart: the panel of each
    ask and result; `white` then has the numbers of a panel as they came, and NaN behind them. `rounds` of an ask is the
    round that was recorded, -1 if none was; `follow` puts in what the method says. `ask` of a result or a given-up ask
    is the entry of the ask that it is about; `NOBODY` if there is none, or if the ask is older than the record: then
    `rounds` holds its round. `asked` tells these two apart. Decisions come with the entry before which they were made.
    `origin`: from where positions count in bets that are applied after this record, if there are any.
    """

    kinds: IntArray  # (n)
    arms: IntArray  # (n)
    rounds: IntArray  # (n) INOUT
    ask: IntArray  # (n)
    asked: IntArray  # (n) 1 if a result answers an ask
    white: FloatArray  # (n, width) results in units of the noise; other rows are not looked at
    decisions: list[tuple[int, Decision]]
    choices: Sequence[Resolution] = ()
    origin: Sequence[float] | None = None
    steps: Sequence[Mapping[str, Any]] = ()
    panels: IntArray | None = None  # (n)


class Followed(NamedTuple):
    """How far a record was followed: `used` entries, all unless the groups were found before its end.

    `decisions` come with the entry before which they were made. `by_ask`: looking for an arm has found the groups, and
    entry `used` is that ask.
    """

    used: int
    decisions: list[tuple[int, Decision]]
    by_ask: bool = False


class Departure(ValueError):  # noqa: N818 (it is found out, not done wrong)
    """A record does not lead where the method goes: at `entry` of it the method asks for `arm` instead, or for a panel
    of it."""

    def __init__(self, entry: int, arm: int, panel: int | None = None) -> None:
        why = f"the next arm is {arm}" + ("" if panel is None else f", and its panel {panel}")
        super().__init__(f"entry {entry}: {why}: the record does not lead here")
        self.entry, self.arm, self.panel, self.why = entry, arm, panel, why


def follow_steps(run: MethodRun, record: Record, start: int = 0) -> Followed:
    """Follow a record by the steps of a run, from an entry on, and put in the rounds of its asks."""
    made: list[tuple[int, Decision]] = []
    choices = iter(record.choices)
    for i in range(start, record.kinds.size):
        if run.done:
            return Followed(i, made)
        if record.kinds[i] == CHOOSE:
            run.choose_resolution(next(choices))
            made += [(i, decision) for decision in run.new_decisions()]
        elif record.kinds[i] == STEP:
            run.take_step(record.steps[record.ask[i]])
            made += [(i, decision) for decision in run.new_decisions()]
        elif record.kinds[i] == ASK:
            pull = run.ask()
            made += [(i, decision) for decision in run.new_decisions()]
            if pull is None:
                return Followed(i, made, by_ask=True)
            if pull.arm != record.arms[i] and record.arms[i] >= 0:
                raise Departure(i, pull.arm)
            if record.panels is not None:
                panel = getattr(pull, "panel", 0)
                if panel != record.panels[i] and record.panels[i] >= 0:
                    raise Departure(i, pull.arm, panel)
                record.panels[i] = panel
            record.arms[i], record.rounds[i] = pull.arm, pull.round
        else:
            take_entry(run, record, i)
            made += [(i + 1, decision) for decision in run.new_decisions()]
    return Followed(record.kinds.size, made)


def apply_steps(run: MethodRun, record: Record, start: int = 0) -> None:
    """Apply a record by the steps of a run, from an entry on; its decisions are those that are left."""
    left = list(record.decisions)
    for i in range(start, record.kinds.size):
        while left and left[0][0] <= i:
            run.apply_decision(left.pop(0)[1])
        apply_entry(run, record, i)
    for _, decision in left:
        run.apply_decision(decision)


def apply_entry(run: MethodRun, record: Record, i: int) -> None:
    """An entry that counts as it was recorded; nobody looks whether the results are enough."""
    if record.kinds[i] == ASK:
        arm, of_round = int(record.arms[i]), max(int(record.rounds[i]), 0)
        if record.panels is None:
            run.open_recorded(arm, of_round)
        else:
            run.open_panel(arm, int(record.panels[i]), of_round)
    elif record.kinds[i] == STEP:
        run.apply_step(record.steps[record.ask[i]])
    elif record.kinds[i] not in (LOOK, CHOOSE):  # a choice is a decision too, and applied as that
        take_entry(run, record, i)


def take_entry(run: MethodRun, record: Record, i: int) -> None:
    """A result, a given-up ask or a look."""
    ask = int(record.ask[i])
    of_round = int(record.rounds[ask if ask >= 0 else i])
    arm, asked = int(record.arms[i]), bool(record.asked[i])
    if record.kinds[i] == LOOK:
        run.look()
    elif record.panels is not None:
        panel = int(record.panels[i])
        if record.kinds[i] == RESULT:
            run.count_panel(arm, panel, record.white[i], max(of_round, 0), asked)
        else:
            run.give_up_panel(arm, panel, max(of_round, 0))
    elif record.kinds[i] == RESULT:
        run.count(arm, record.white[i], max(of_round, 0), asked)
    else:
        run.give_up(arm, max(of_round, 0))
