"""The commands of a campaign, ask, tell and fail: each checks first, then changes the state and makes rows.

A command that raises has changed nothing. `Turn` is one write on one campaign: its state, its time, its new rows. All
that the method decides meanwhile, and the stop with what it claims, become rows of the same turn.
"""

from __future__ import annotations

import difflib
import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.campaign.errors import BadValue, Conflict, NotFound
from coterie.campaign.facts import RULES
from coterie.campaign.groups import change_of, first_groups
from coterie.campaign.settings import LARGEST_BATCH, check_text, checked_field, new_key, printable
from coterie.campaign.state import Lease, State
from coterie.campaign.timestamps import timestamp
from coterie.problem.checks import FloatArray, check_arm, check_count, check_far, check_measurement, short
from coterie.store.rows import NO_ROUND, Ask, Ending, Note, Row, Told

LARGEST_TELL = 10_000
"""Results in one request: while they are taken in, nobody else's are. A table (`import_table`) may have more."""

FAR = 8.0
"""Standard deviations: a result further from what its item gave before is taken in, with a warning."""
_MOST_WARNINGS = 10
_MOST_COMPARED = 5000  # names that a wrong one is compared with: others wait meanwhile

_POINTS_PER_E_FOLD = 200
"""How densely the evidence's history is kept: a point whenever t has grown by 1/200."""


@dataclass
class Turn:
    """A write under way."""

    state: State
    now: float
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row, values: FloatArray | None = None) -> None:
        """Keep a row whose effect the session already has."""
        self.state.record(row, values)
        self.rows.append(row)

    @property
    def seq(self) -> int:
        """The number of the next row."""
        return self.state.seq + 1

    def note(self, kind: str, content: Any) -> None:
        """Keep something found out."""
        self.add(Note(self.seq, kind, json.dumps(content), self.now))

    def note_rules(self) -> None:
        """Before anything new is decided: by which rules, if other ones have decided so far."""
        state = self.state
        if (not state.done and state.rules != state.session.rules) or state.session.applied > state.applied:
            state.applied = state.session.applied
            self.note(RULES, {"number": state.session.rules})

    def note_decisions(self) -> None:
        """Keep what the method has decided beside its asks."""
        for t, decision in self.state.session.dated_decisions[self.state.decisions :]:
            self.note(decision["event"], decision | {"t": t})


# Asking.


def ask(turn: Turn, worker: Any, n: Any) -> dict[str, Any]:
    """Lease arms to a worker: its own open ones first, then new ones.

    Where expired leases wait, the worker that holds one gets it back, with a new time limit; nobody else does. A repeat
    by somebody else must not take its place: which of the two results counted would depend on how late the first is,
    and so perhaps on its value.
    """
    who = check_text(worker, "worker")
    count = checked_field("n", check_count, n, "n", 1)
    if count > LARGEST_BATCH:
        raise BadValue(f"n must be at most {LARGEST_BATCH}, got {count}", field="n")
    expire(turn)
    state, settings = turn.state, turn.state.settings
    if state.done:
        return {"done": True, "asks": []}
    waits = settings.on_expiry == "wait"
    own = [lease for lease in state.open.values() if lease.worker == who and (waits or lease.expires_at > turn.now)]
    held = own[:count]
    until = turn.now + settings.lease_seconds
    for lease in held:
        if lease.expires_at <= turn.now:
            turn.add(Ask(turn.seq, lease.key, lease.ticket, lease.arm, who, turn.now, until, NO_ROUND))
    turn.note_rules()
    while len(held) < count:
        opened = state.session.open(1)
        turn.note_decisions()
        if not opened:
            break
        ticket = opened[0]
        row = Ask(turn.seq, new_key(), ticket.number, ticket.arm, who, turn.now, until, ticket.round)
        turn.add(row)
        held.append(state.leases[row.lease])
    note_findings(turn, by="ask")
    done = state.session.done  # perhaps found on the way: then nothing is left to measure
    return {"done": done, "asks": [] if done else [_as_ask(state, lease) for lease in held]}


def _as_ask(state: State, lease: Lease) -> dict[str, Any]:
    return {
        "arm": lease.arm,
        "name": state.settings.name_of(lease.arm),
        "lease": lease.key,
        "expires": timestamp(lease.expires_at),
    }


def expire(turn: Turn) -> None:
    """End the leases whose time is over, where the campaign skips them."""
    state = turn.state
    if state.settings.on_expiry != "skip":
        return
    over = [lease for lease in state.open.values() if lease.expires_at <= turn.now]
    for lease in over:
        give_up(turn, lease, "expired", "")
    if over:
        note_findings(turn, by="expiry")


def give_up(turn: Turn, lease: Lease, kind: str, reason: str) -> None:
    """The result of a lease will not come."""
    turn.note_rules()
    turn.state.session.forget(lease.ticket)
    turn.add(Ending(turn.seq, lease.key, lease.ticket, kind, reason, turn.now))
    turn.note_decisions()


# Telling.


@dataclass
class _Given:
    """A measurement that passed the checks; `old` if it is already on record."""

    id: str
    arm: int
    values: FloatArray
    lease: Lease | None
    worker: str | None
    old: bool = False


def tell(turn: Turn, measurements: Any, imported: dict[str, Any] | None = None) -> dict[str, Any]:
    """Take results in, all or nothing.

    `imported`: they are a table's, and this is what is noted of it, if any of them is new. Results without a lease then
    answer no ask, even where one is open.
    """
    state, unasked = turn.state, imported is not None
    given = check_measurements(state, measurements, None if unasked else LARGEST_TELL)
    expire(turn)
    fresh = [one for one in given if not one.old]
    if imported is not None and fresh:
        turn.note("imported", imported | {"measurements": len(fresh)})
    if fresh:
        turn.note_rules()
    named = {one.lease.key for one in fresh if one.lease is not None}
    warnings: list[dict[str, Any]] = []
    for one in fresh:
        if len(warnings) < _MOST_WARNINGS and (warning := _far_away(state, one)) is not None:
            warnings.append({"id": one.id, "arm": one.arm, "name": state.settings.name_of(one.arm), "message": warning})
        lease = one.lease
        if lease is None and not unasked:
            lease = _oldest_open(state, one.arm, one.worker, named)
        ticket = None if lease is None or lease.ticket not in state.open else lease.ticket
        worker = one.worker or (None if lease is None else lease.worker)
        state.session.absorb(one.arm, one.values, ticket)
        values = json.dumps(one.values.tolist())
        turn.add(Told(turn.seq, one.id, one.arm, values, _key(one), ticket, worker, turn.now), one.values)
        turn.note_decisions()
    if fresh:
        note_findings(turn, by="tell")
    answer = {"accepted": len(fresh), "duplicates": len(given) - len(fresh), "done": state.done}
    return answer | {"warnings": warnings} if warnings else answer


def _far_away(state: State, one: _Given) -> str | None:
    """A warning if a result lies far from the mean of what its item gave before: a slip of the finger, perhaps."""
    if one.arm not in state.sums:
        return None
    count, total = state.sums[one.arm]
    mean = total / count
    away = np.abs(one.values - mean) / state.deviations
    worst = int(np.argmax(away))
    if away[worst] <= FAR:
        return None
    settings = state.settings
    which = "" if settings.dim == 1 else f" ({settings.columns[worst]})"
    return (
        f"{settings.name_of(one.arm)}: {one.values[worst]:.6g}{which} lies {away[worst]:.0f} standard deviations from "
        f"the mean of its {count} earlier result{'' if count == 1 else 's'}, {mean[worst]:.6g}. It is on record: see "
        "whether this one or an earlier one was mistyped."
    )


def _oldest_open(state: State, arm: int, worker: str | None, named: set[str]) -> Lease | None:
    """The oldest open ask for an arm, the worker's own if it says who it is; none that another result names."""
    for lease in state.open.values():
        if lease.arm == arm and lease.key not in named and worker in (None, lease.worker):
            return lease
    return None


def check_measurements(state: State, measurements: Any, most: int | None = None) -> list[_Given]:
    """Every measurement of a request checked against the campaign; the error names the row and its part."""
    if not isinstance(measurements, list | tuple):
        raise BadValue(f"measurements must be a list, got {short(measurements)}", field="measurements")
    if most is not None and len(measurements) > most:
        raise BadValue(
            f"at most {most} measurements at once, got {len(measurements)}: tell them in parts", field="measurements"
        )
    given: list[_Given] = []
    here: dict[str, _Given] = {}
    answered: dict[str, str] = {}
    for i, content in enumerate(measurements):
        one = _check_one(state, content, f"measurements[{i}]", answered)
        earlier = here.setdefault(one.id, one)
        if earlier is not one:
            _same(one.id, (earlier.arm, earlier.values, _key(earlier)), one, f"measurements[{i}].id")
            one.old = True
        given.append(one)
    fresh = [one for one in given if not one.old]
    if fresh:
        values = np.array([one.values for one in fresh])
        checked_field("measurements", state.session.check_results, [one.arm for one in fresh], values)
    return given


def _key(one: _Given) -> str | None:
    return None if one.lease is None else one.lease.key


def _check_one(state: State, content: Any, place: str, answered: dict[str, str]) -> _Given:
    if not isinstance(content, dict):
        raise BadValue(f"{place} must be an object with id, arm and values, got {short(content)}", field=place)
    for part in ("id", "arm", "values"):
        if part not in content:
            raise BadValue(f"{place} lacks {part}", field=f"{place}.{part}")
    name = check_text(content["id"], f"{place}.id")
    arm = check_arm_of(state, content["arm"], f"{place}.arm")
    values = check_values(state, content["values"], f"{place}.values")
    worker = content.get("worker")
    worker = None if worker is None else check_text(worker, f"{place}.worker")
    key = content.get("lease")
    lease = None if key is None else find_lease(state, key, f"{place}.lease")
    one = _Given(name, arm, values, lease, worker)
    if name in state.ids:
        _same(name, state.results[state.ids[name]], one, f"{place}.id")
        one.old = True
        return one
    if lease is not None:
        if lease.arm != arm:
            raise BadValue(
                f"{place}: lease {lease.key} is for arm {state.settings.name_of(lease.arm)}, "
                f"not for arm {state.settings.name_of(arm)}",
                field=f"{place}.lease",
            )
        # An answer that did not name its lease took the place of the oldest ask of its arm; the one that names it is
        # another measurement, and gets its place on arrival.
        by = answered.get(lease.key) or (lease.answer if lease.named else None)
        if by is not None and by != name:
            raise Conflict(
                f"{place}: lease {lease.key} was answered by measurement {by!r} already: "
                "if this is another one, tell it without the lease",
                code="lease_answered",
                field=f"{place}.lease",
            )
        answered[lease.key] = name
    return one


def _same(name: str, known: tuple[int, FloatArray, str | None], one: _Given, field: str) -> None:
    arm, values, lease = known
    given = _key(one)
    other_lease = lease is not None and given is not None and lease != given
    if arm != one.arm or not np.array_equal(values, one.values) or other_lease:
        raise Conflict(
            f"measurement {name!r} is on record with another content: arm {arm}, values {short(values.tolist())}",
            code="id_taken",
            field=field,
        )


def check_arm_of(state: State, arm: Any, field: str) -> int:
    """An arm by its number or by its name."""
    names = state.settings.names
    if isinstance(arm, str):
        try:
            return state.session.arm_named(arm)
        except ValueError:
            raise BadValue(f"{field}: unknown arm {arm!r}: {_known(arm, names)}", field=field) from None
    return int(checked_field(field, check_arm, arm, state.settings.n_arms))


def _known(given: str, names: tuple[str, ...] | None) -> str:
    """What an arm may be called, the most similar names first."""
    if names is None:
        return "the campaign's arms have no names, use their numbers, from 0"
    similar = difflib.get_close_matches(given, names[:_MOST_COMPARED], n=3)
    meant = f"did you mean {' or '.join(map(repr, similar))}? " if similar else ""
    return f"{meant}known names: {short(list(names))}"


def check_values(state: State, values: Any, field: str) -> FloatArray:
    """A measurement as a session takes it."""
    settings = state.settings
    if isinstance(values, list | tuple) and len(values) != settings.dim:
        wanted = f"{settings.dim} number{'' if settings.dim == 1 else 's'}"
        called = "" if settings.value_names is None else f" ({', '.join(settings.value_names)})"
        raise BadValue(f"{field}: a measurement is {wanted}{called}, got {len(values)}: {short(values)}", field=field)
    found: FloatArray = checked_field(field, check_measurement, values, state.settings.dim)
    checked_field(field, check_far, state.session.noise.whiten(found[None]), found[None])
    return found


def find_lease(state: State, lease: Any, field: str) -> Lease:
    """A lease of this campaign, open or not."""
    key = check_text(lease, field)
    if key not in state.leases:
        raise NotFound(f"{field}: there is no lease {key!r}", code="unknown_lease", field=field)
    return state.leases[key]


# Giving up.


def fail(turn: Turn, lease: Any, reason: Any) -> dict[str, Any]:
    """A measurement that will not come: the lease is freed. Saying so twice changes nothing."""
    found = find_lease(turn.state, lease, "lease")
    if not isinstance(reason, str) or len(reason) > 2000:
        raise BadValue(f"reason must be a string of at most 2000 characters, got {short(reason)}", field="reason")
    text = printable(reason)
    if found.answer is not None:
        raise Conflict(
            f"lease {found.key} was answered by measurement {found.answer!r}: it cannot fail any more",
            code="lease_answered",
            field="lease",
        )
    expire(turn)
    if found.ended is None:
        give_up(turn, found, "failed", text)
        note_findings(turn, by="fail")
    settings = turn.state.settings
    return {"freed": True, "lease": found.key, "arm": found.arm, "name": settings.name_of(found.arm)}


# What follows from it.


def note_findings(turn: Turn, by: str) -> None:
    """Note what has come out: new groups, a point of the evidence, the stop with what it claims."""
    state, session = turn.state, turn.state.session
    stopped = session.done and state.stopped_at is None
    if state.stopped_at is not None:
        return
    labels = session.labels
    if labels is not None:
        if state.groups is None:
            turn.note("groups", first_groups(labels))
        else:
            change = change_of(state.groups, state.next_group, labels)
            if change is not None:
                turn.note("groups", change)
    t = session.t
    if stopped or t >= state.evidence_t + max(1, state.evidence_t // _POINTS_PER_E_FOLD):
        now = session.evidence
        point = {"t": t, "statistic": plain(now.statistic), "threshold": plain(now.threshold)}
        turn.note("evidence", point)
    if stopped:
        turn.note("stopped", {"t": t, "by": by, "verdict": session.verdict, "outcome": session.outcome})


def plain(number: float | None) -> float | None:
    """A number as JSON has them: no infinity, no NaN."""
    return None if number is None or not math.isfinite(number) else float(number)
