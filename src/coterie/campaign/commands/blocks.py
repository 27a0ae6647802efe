"""The commands of campaigns with blocks (plates, days, raters, questions): asks that are put together in one, which
block a result is of, and closing one. What holds for `coterie.Session` holds here, and is checked before anything is
changed.

Asks that are decided together, a cell, are leased to whoever asked, all at once, so that workers in other blocks wait
for nobody; who wants fewer at a time gets the others with the next asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from coterie.campaign.commands.turn import Turn, expire, give_up, note_findings
from coterie.campaign.errors import BadValue, Conflict, Forbidden
from coterie.campaign.settings import checked_field, new_key
from coterie.campaign.state.leases import UNDONE, Lease
from coterie.campaign.state.state import State
from coterie.problem.checks import check_count, short
from coterie.session.in_blocks import checked_block
from coterie.store.rows import Ask


class InBlock(NamedTuple):
    """Where is measured: the block, how many results still fit into it (None: as many as are asked for, or any number
    where one is), and the items that can be measured there (None: all).
    """

    block: Any = None
    room: Any = None
    among: Any = None


def ask_in_block(turn: Turn, who: str, count: int, where: InBlock) -> list[Lease]:
    """So many asks of a block, the worker's own open ones first; fewer, or none, if nothing more of use fits in."""
    state, session = turn.state, turn.state.session
    name = _named(state, where.block, "block")
    if name in session.block_names and name not in session.open_blocks:
        raise Conflict(
            f"block {name!r} is closed: nothing more is measured in it; name another one",
            code="block_closed",
            field="block",
        )
    room = None if where.room is None else checked_field("room", check_count, where.room, "room", 1)
    among = _checked_among(state, where.among)
    own = [lease for lease in state.open.of_worker(who) if turn.may_use(lease) and _block_of(state, lease) == name]
    own = [lease for lease in own if lease.expires_at > turn.now or state.settings.on_expiry == "wait"]
    until = turn.now + state.lease_seconds
    for lease in own[:count]:
        if lease.expires_at <= turn.now:
            turn.add(Ask(turn.seq, lease.key, lease.ticket, lease.stream, who, turn.now, until, 0))
    if len(own) >= count:
        return own[:count]
    turn.note_rules()
    opened = _composed(turn, name, count - len(own), None if room is None else room - len(own), among)
    turn.note_steps()
    for place, ticket in enumerate(opened, start=len(own)):
        # Those that are handed out later have more time: each group of `count` as long as one.
        ends = turn.now + state.lease_seconds * (1 + place // count)
        row = Ask(turn.seq, new_key(), ticket.number, ticket.arm, who, turn.now, ends, ticket.round)
        turn.add(row)
        own.append(state.leases[row.lease])
    turn.note_decisions()
    return own[:count]


def _composed(turn: Turn, name: str, wanted: int, room: int | None, among: Sequence[int] | None) -> list[Any]:
    """The tickets of new asks of a block: as many as fit into the room, or one cell where one item at a time is asked
    for and nobody says how many fit.
    """
    session = turn.state.session
    left = room if room is not None else wanted if wanted > 1 else None
    if left is not None:
        return checked_field("room", session.open_in_block, left, name, among) if left > 0 else []
    first = session.open_in_block(None, name, among)
    cells = [made for made in session.decisions if made["event"] == "cell"] if first else []
    others = cells[-1]["pulls"][1:] if cells else []
    return first + [ticket for _ in others for ticket in session.open_in_block(None, name)]


def _checked_among(state: State, given: Any) -> list[int] | None:
    if given is None:
        return None
    if not isinstance(given, list | tuple) or not given:
        raise BadValue(f"among must be a list of items, got {short(given)}", field="among")
    arms = {checked_field("among", state.session.arm_named, item) for item in given}
    if len(arms) < 2:
        raise BadValue(
            f"among must name at least two items, since items are compared inside a block, got {short(given)}",
            field="among",
        )
    return sorted(arms)


def _named(state: State, block: Any, field: str) -> str:
    if state.session.blocks is None:
        raise BadValue(f"{field}: this campaign has no blocks: create one with blocks offset or drawn", field=field)
    if block is None:
        known = state.session.open_blocks
        there = f"open are {short(known)}" if known else "such as 'plate 1'"
        raise BadValue(f"{field}: name the block that is measured in, {there}", field=field)
    name: str = checked_field(field, checked_block, block)
    return name


def _block_of(state: State, lease: Lease) -> str | None:
    return state.session.block_of(lease.ticket)


def check_told_block(state: State, block: Any, lease: Lease | None, place: str) -> str | None:
    """The block that a result is of, as it was told or as its lease says; an error if these differ, or if nobody has
    asked for it. None: it is not known, or there are no blocks.
    """
    asked = None if lease is None or state.session.blocks is None else _block_of(state, lease)
    if block is None:
        return asked
    field = f"{place}.block"
    name = _named(state, block, field)
    if asked is not None and asked != name:
        assert lease is not None
        raise BadValue(
            f"{place}: lease {lease.key} was asked for in block {asked!r}, the result is told of block {name!r}",
            field=field,
        )
    known = state.session.block_names
    if name not in known:
        raise BadValue(f"{place}: block {name!r} was not asked for: blocks are {short(known)}", field=field)
    return name


def check_item_in_block(turn: Turn, arm: int, worker: str | None, block: str, place: str) -> None:
    """Refuse a result without a lease whose item was asked of this worker in another block only."""
    state = turn.state
    asked = [lease for lease in state.open.of_arm(arm) if turn.may_use(lease) and worker in (None, lease.worker)]
    blocks = [_block_of(state, lease) for lease in asked]
    if blocks and block not in blocks:
        item = state.settings.name_of(arm)
        raise BadValue(
            f"{place}: item {item} was asked for in block {blocks[0]!r}, the result is told of block {block!r}",
            field=f"{place}.block",
        )


def close_block(turn: Turn, block: Any) -> dict[str, Any]:
    """Nothing more is measured in a block: its open asks are given back, and asks that were decided together and are
    not all answered end there.
    """
    state, session = turn.state, turn.state.session
    name = _named(state, block, "block")
    if name not in session.block_names:
        raise BadValue(f"block {name!r} was not asked for: blocks are {short(session.block_names)}", field="block")
    if name not in session.open_blocks:
        raise Conflict(f"block {name!r} is closed already", code="block_closed", field="block")
    held = [lease for lease in state.open.values() if _block_of(state, lease) == name]
    if not all(turn.may_use(lease) for lease in held):
        raise Forbidden(
            f"block {name!r} has open asks of others, and a worker's token is for its own leases only",
            code="not_your_lease",
            field="block",
        )
    if not state.done:
        expire(turn)
    open_now = [lease for lease in held if lease.ticket in state.open]
    for lease in open_now:
        give_up(turn, lease, UNDONE, f"block {name} was closed")
    turn.note_rules()
    session.close_block(name)
    turn.note_steps()
    turn.note_decisions()
    note_findings(turn, by="closing")
    return {"closed": name, "given_up": len(open_now), "done": state.done}
