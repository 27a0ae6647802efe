"""The commands of those who measure: ask, tell and fail."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from coterie.campaign.commands.blocks import InBlock, ask_in_block, check_item_in_block
from coterie.campaign.commands.results import GivenResult, check_measurements, far_off, find_lease
from coterie.campaign.commands.turn import Turn, expire, give_up, note_findings
from coterie.campaign.errors import BadValue, Conflict, Forbidden
from coterie.campaign.settings import LARGEST_BATCH, check_text, checked_field, new_key, printable, timestamp
from coterie.campaign.state.facts import SURPLUS, as_told
from coterie.campaign.state.leases import TAKEN, Lease
from coterie.campaign.state.state import State
from coterie.campaign.tokens import Writer
from coterie.campaign.views.asks import passed_on_at, waiting_for
from coterie.problem.checks import check_count, short
from coterie.store.rows import NO_ROUND, Ask, Told

LARGEST_TELL = 10_000
"""Results in one request: while they are taken in, nobody else's are. A table (`import_table`) may have more."""

ASK_PART, ASK_PART_SECONDS = 50, 0.03
"""Asks that are opened in one transaction, at first; then as many as take so long, or half of them to twice as many."""
MOST_OPEN = 20_000
"""Asks of a campaign that wait for their results: each of them is looked at whenever anybody asks or tells."""
MOST_WARNINGS = 10
_NO_BLOCK = InBlock()


# Asking.


def ask_steps(n: Any, where: InBlock) -> Iterator[Any]:
    """The counts to ask for one after the other, in transactions of their own, if somebody wants many items at once:
    each begins with what the one before has opened, and others can write between them. In a block all are decided
    together.

    It looks how long the caller takes for each: the next part is shorter where others wait too.
    """
    if type(n) is not int or not ASK_PART < n <= LARGEST_BATCH or where != _NO_BLOCK:
        yield n
        return
    count, size = 0, ASK_PART
    while count < n:
        count = min(n, count + size)
        begun = time.monotonic()
        yield count
        took = max(time.monotonic() - begun, 1e-6)
        size = int(min(2 * ASK_PART, max(ASK_PART // 2, size * ASK_PART_SECONDS / took)))


def ask(turn: Turn, worker: Any, n: Any, of: int | None = None, where: InBlock = _NO_BLOCK) -> dict[str, Any]:
    """Lease arms to a worker: its own open ones first, then new ones. `of`: how many it wants in the end (`ask_steps`).
    `where`: the block that is measured in, if there are blocks.

    Where expired leases wait, the worker that holds one gets it back, with a new time limit; nobody else does. A repeat
    by somebody else must not take its place: which of the two results counted would depend on how late the first is,
    and so perhaps on its value. Elsewhere nothing is assumed to depend on that, and an ask that everybody waits for is
    passed on (`coterie.campaign.views.asks`). If there is nothing to measure before it is answered, `waiting_for` says
    so.
    """
    who = check_text(worker, "worker")
    count = checked_field("n", check_count, n, "n", 1)
    if count > LARGEST_BATCH:
        raise BadValue(f"n must be at most {LARGEST_BATCH}, got {count}", field="n")
    expire(turn)
    state, settings = turn.state, turn.state.settings
    if state.done:
        return {"done": True, "asks": [], "waiting_for": []}
    if settings.run.blocks is not None or where != _NO_BLOCK:
        leases = ask_in_block(turn, who, count, where)
        note_findings(turn, by="ask")
        asks = [] if state.done else [_as_ask(state, lease) | {"block": where.block} for lease in leases]
        return {"done": state.done, "asks": asks, "waiting_for": [], "full": not asks and not state.done}
    waits, none_over = settings.on_expiry == "wait", turn.now < state.open.first_end
    own = list(state.open.of_worker(who))
    if not (turn.may_use_all and (waits or none_over)):
        own = [lease for lease in own if (waits or lease.expires_at > turn.now) and turn.may_use(lease)]
    held = own[:count]
    until = turn.now + state.lease_seconds
    for lease in () if none_over else held:
        if lease.expires_at <= turn.now:
            turn.add(Ask(turn.seq, lease.key, lease.ticket, lease.stream, who, turn.now, until, NO_ROUND))
    new = max(0, (count if of is None else of) - len(own))
    if new and len(state.open) + new > MOST_OPEN:
        raise Conflict(
            f"{len(state.open)} asks are open, and at most {MOST_OPEN} may be: tell or fail some of them first",
            code="too_many_leases",
            field="n",
        )
    if new and turn.writer is not None:
        _check_most_open(state, turn.writer, new)
    turn.note_rules()
    while len(held) < count:
        opened = state.session.open(1, wanted=count - len(held))
        turn.note_decisions()
        if not opened:
            passed = None if state.session.done else _passed_on(turn, who, until)
            if passed is None:
                break
            held.append(passed)
            continue
        ticket = opened[0]
        arm = ticket.arm if settings.run.features is None else ticket.stream
        row = Ask(turn.seq, new_key(), ticket.number, arm, who, turn.now, until, ticket.round)
        turn.add(row)
        held.append(state.leases[row.lease])
    note_findings(turn, by="ask")
    done = state.session.done  # perhaps found on the way: then nothing is left to measure
    waiting = waiting_for(state, turn.now) if len(held) < count else []
    over = len(held) < count and not done and state.session.out_of_budget
    more_to_come = of is not None and count < of and not waiting and not over
    asks = [] if done or more_to_come else [_as_ask(state, lease) for lease in held]
    return {"done": done, "asks": asks, "waiting_for": waiting} | ({"deadline_reached": True} if over else {})


def _passed_on(turn: Turn, who: str, until: float) -> Lease | None:
    """The oldest ask that everybody waits for and that is to be asked of somebody else by now: of this worker."""
    state = turn.state
    for ticket in state.session.awaited:
        lease = state.open[ticket.number]
        own = lease.worker == who and turn.may_use(lease)
        if not own and passed_on_at(state, lease) <= turn.now:
            row = Ask(turn.seq, new_key(), lease.ticket, lease.stream, who, turn.now, until, NO_ROUND)
            turn.add(row)
            return state.leases[row.lease]
    return None


def _check_most_open(state: State, writer: Writer, new: int) -> None:
    """Refuse a token more asks than it may have open: nobody shall be able to take all that a campaign has."""
    held, most = state.open.count_of_token(writer.token), writer.most_open
    if most is not None and held + new > most:
        raise Conflict(
            f"this token has {held} asks of this campaign open, {new} more would be too many: it may have {most}. "
            "Tell, fail or undo some of them first",
            code="too_many_leases",
            field="n",
        )


def _as_ask(state: State, lease: Lease) -> dict[str, Any]:
    run = state.settings.run
    answer = {**state.settings.named(lease.stream), "lease": lease.key, "expires": timestamp(lease.expires_at)}
    if run.features is None:
        return answer
    _, panel = run.features.split(lease.stream)
    answer["values"] = [run.features.names[feature] for feature in run.features.features_of(panel)]
    return answer | ({} if state.session.cost is None else {"cost": run.features.ask_cost(run.costs, lease.arm, panel)})


# Telling.


def tell(
    turn: Turn,
    measurements: Any,
    imported: dict[str, Any] | None = None,
    unasked: bool = False,
    ask_back: bool = False,
    with_items: bool = False,
) -> dict[str, Any]:
    """Take results in, all or nothing. `ask_back`: refuse them if one lies far from what its item gave before.

    `unasked`: they are a table's, and answer no ask, even where one is open. `imported`: what is noted of the table
    first, if any of them is new. `with_items`: say of each result what is known of its item now.
    """
    state = turn.state
    given = check_measurements(state, measurements, None if unasked else LARGEST_TELL)
    fresh = [result for result in given if not result.old]
    for i, result in enumerate(given):
        if not result.old and result.lease is not None:
            _check_own(turn, result.lease, f"measurements[{i}].lease")
        if result.block is not None and not result.old and result.lease is None and not unasked:
            check_item_in_block(turn, result.arm, result.worker, result.block, f"measurements[{i}]")
        if ask_back and not result.old and (far := far_off(state, result)) is not None:
            raise Conflict(f"{far.question} Save it anyway?", code="far_off", field=f"measurements[{i}].values")
    expire(turn)
    if imported is not None and fresh:
        turn.note("imported", imported)
    if fresh:
        turn.note_rules()
    named = {result.lease.key for result in fresh if result.lease is not None}
    warnings: list[dict[str, Any]] = []
    surplus: list[dict[str, Any]] = []
    for result in fresh:
        if not unasked and (taken := _taken(turn, result, named)) is not None:
            surplus.append(_keep_surplus(turn, result, taken))
            continue
        if len(warnings) < MOST_WARNINGS and (far := far_off(state, result)) is not None:
            warnings.append({"id": result.id, **state.settings.named(result.arm), "message": far.warning})
        lease = result.lease
        if lease is None and not unasked:
            lease = _oldest_open(turn, result.arm, result.worker, named, result.block)
        ticket = None if lease is None or lease.ticket not in state.open else lease.ticket
        worker = result.worker or (None if lease is None else lease.worker)
        assert result.white is not None
        state.session.absorb(result.arm, result.values, ticket, result.white, result.block)
        turn.note_steps()
        values = json.dumps(as_told(result.values, state.settings.size_of(result.arm)))
        turn.add(
            Told(turn.seq, result.id, result.arm, values, result.lease_key, ticket, worker, turn.now), result.values
        )
        turn.note_decisions()
    if fresh:
        note_findings(turn, by="tell")
    answer: dict[str, Any] = {"accepted": len(fresh), "duplicates": len(given) - len(fresh), "done": state.done}
    answer |= {"warnings": warnings} if warnings else {}
    answer |= {"items": [_item(state, result.arm) for result in given]} if with_items else {}
    return answer | {"not_counted": surplus} if surplus else answer


def _item(state: State, arm: int) -> dict[str, Any]:
    named = state.settings.named(arm)
    item = named["arm"]
    return {**named, "measurements": state.told_of(item), "retired": item in state.session.retired}


def _taken(turn: Turn, result: GivenResult, named: set[str]) -> Lease | None:
    """The lease that a result answers, if somebody else was asked too and has answered: then it does not count."""
    if result.lease is not None:
        return result.lease if result.lease.ended == TAKEN else None
    if result.worker is None or _oldest_open(turn, result.arm, result.worker, named) is not None:
        return None
    return turn.state.open.taken(result.worker, result.arm)


def _keep_surplus(turn: Turn, result: GivenResult, lease: Lease) -> dict[str, Any]:
    """Put a result on record that does not count. The answer names it."""
    settings = turn.state.settings
    named = {"id": result.id, **settings.named(result.arm)}
    name = named["name"]
    told = {**named, "values": as_told(result.values, settings.size_of(result.arm)), "lease": lease.key}
    turn.note(SURPLUS, told | {"worker": result.worker or lease.worker})
    message = f"{name} was asked of somebody else too, whose result came first: this one is kept, and does not count."
    return {**named, "message": message}


def _check_own(turn: Turn, lease: Lease, field: str) -> None:
    if not turn.may_use(lease):
        raise Forbidden(
            f"{field}: lease {lease.key} was given to another token, and a worker's token is for its own leases only",
            code="not_your_lease",
            field=field,
        )


def _oldest_open(turn: Turn, arm: int, worker: str | None, named: set[str], block: str | None = None) -> Lease | None:
    """The oldest open ask for an arm, in the block if one was told, the worker's own if it says who it is; none that
    another result names.
    """
    for lease in turn.state.open.of_arm(arm):
        here = block is None or turn.state.session.block_of(lease.ticket) == block
        if here and turn.may_use(lease) and lease.key not in named and worker in (None, lease.worker):
            return lease
    return None


# Giving up.


def fail(turn: Turn, lease: Any, reason: Any) -> dict[str, Any]:
    """A measurement that will not come: the lease is freed. Saying so twice changes nothing."""
    return free(turn, lease, reason, "failed")


def free(turn: Turn, lease: Any, reason: Any, kind: str) -> dict[str, Any]:
    """Give a lease up that was not answered; `kind` says why. `ended` of the answer says how it has ended."""
    named_lease = find_lease(turn.state, lease, "lease")
    _check_own(turn, named_lease, "lease")
    if not isinstance(reason, str) or len(reason) > 2000:
        raise BadValue(f"reason must be a string of at most 2000 characters, got {short(reason)}", field="reason")
    text = printable(reason)
    if named_lease.answer is not None:
        raise Conflict(
            f"lease {named_lease.key} was answered by measurement {named_lease.answer!r}: it cannot {_CANNOT[kind]} "
            "any more",
            code="lease_answered",
            field="lease",
        )
    expire(turn)
    if named_lease.ended is None:
        give_up(turn, named_lease, kind, text)
        note_findings(turn, by=_CANNOT[kind].rpartition(" ")[2])
    return {
        "freed": True,
        "lease": named_lease.key,
        **turn.state.settings.named(named_lease.stream),
        "ended": named_lease.ended,
    }


_CANNOT = {"failed": "fail", "undone": "be undone"}
