"""What a session with blocks (plates, days, raters, questions) is asked and told: cells, and the blocks of results.

Everything is checked here, against what was done with blocks so far, before anything is changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.methods.blocks.cells import Cell
from coterie.methods.blocks.pairs import Pairs
from coterie.problem.checks import check_count, short
from coterie.session.conversation import STEPPED, TOLD, Conversation, Ticket
from coterie.session.verdicts import nothing_left

LONGEST_NAME = 200


class BlockFull(RuntimeError):  # noqa: N818 (it is a state, not a mistake)
    """Raised by `ask` if nothing more of use can be measured in a block: name another one.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(4, n_clusters=2, dim=1, noise=1.0, blocks="offset")
    >>> try:
    ...     asks = session.ask(2, block="plate 1")
    ... except coterie.BlockFull:
    ...     asks = session.ask(2, block="plate 2")
    """


def checked_block(block: Any) -> str:
    """The name of a block."""
    if not isinstance(block, str) or not block.strip() or len(block) > LONGEST_NAME or not block.isprintable():
        raise ValueError(f"a block is a text of 1 to {LONGEST_NAME} characters, such as 'plate 7', got {short(block)}")
    return block


def need_blocks(conversation: Conversation, called: str = "", **given: Any) -> None:
    """That the session has blocks, if something about them was `called`, or any argument of it was given."""
    if conversation.settings.blocks is None:
        about = called or next((f"{name}={short(value)}" for name, value in given.items() if value is not None), "")
        if about:
            raise ValueError(f'{about} is for a session with blocks: start it with blocks="offset" or blocks="drawn"')


def named_blocks(conversation: Conversation) -> dict[str, bool]:
    """The blocks that were asked for, and whether each is closed."""
    blocks: dict[str, bool] = {}
    for step in conversation.steps:
        if step["step"] == "compose":
            blocks.setdefault(step["block"], False)
        elif step["step"] == "close":
            blocks[step["block"]] = True
    return blocks


def open_blocks(conversation: Conversation) -> list[str]:
    """Blocks that were asked for and are not closed."""
    return [name for name, closed in named_blocks(conversation).items() if not closed]


def block_of_cells(conversation: Conversation) -> dict[int, str]:
    """The block of each cell, by its number."""
    return conversation.once(
        "blocks",
        lambda c: {made["cell"]: made["block"] for _, made in c.decisions if made["event"] == "cell"},
    )


def block_of(conversation: Conversation, ticket: int) -> str | None:
    """The block that an ask is of, by its ticket; None without blocks."""
    return block_of_cells(conversation).get(conversation.rounds_asked[ticket])


def asked_in(conversation: Conversation, block: str) -> int:
    """How many asks were decided for a block so far."""
    cells = (made for _, made in conversation.decisions if made["event"] == "cell" and made["block"] == block)
    return sum(len(cell["pulls"]) for cell in cells)


def ask_in_block(conversation: Conversation, n: Any, block: Any, among: Any, room: Any) -> Any:
    """See `Session.ask`, for a session with blocks."""
    opened = open_in_block(conversation, n, block, among, room)
    if not opened and conversation.run.done:
        raise nothing_left(conversation)
    if not opened and n is None:
        raise BlockFull(f"nothing more of use can be measured in block {block!r}: close it, and name another")
    return opened[0].arm if n is None else [ticket.arm for ticket in opened]


def open_in_block(
    conversation: Conversation, n: int | None = None, block: str | None = None, among: Iterable[Any] | None = None,
    room: int | None = None,
) -> list[Ticket]:  # fmt: skip
    """What `ask` with these asks for, with the ticket of each; empty where it would raise.

    Cells that fit into n, or one ask of the cell at hand.
    """
    need_blocks(conversation, "open_in_block")
    run, last = conversation.run, _last_block(conversation)
    if block is None and last is None:
        raise ValueError('name the block that is measured in, such as ask(12, block="plate 1")')
    name = last if block is None else checked_block(block)
    assert name is not None
    if named_blocks(conversation).get(name, False):
        raise ValueError(f"block {name!r} is closed: nothing more is measured in it; name another block")
    if run.done:
        return []
    if n is not None and room is not None:
        raise ValueError(f"n says how many fit into the block, {n}: leave room out, got room={short(room)}")
    left = check_count(n, "n", 1) if n is not None else None if room is None else check_count(room, "room", 1)
    planned = run.planned
    if planned and (n is not None or name != block_of_cells(conversation)[planned[0].round]):
        of = block_of_cells(conversation)[planned[0].round]
        raise ValueError(
            f"{len(planned)} asks that were decided together in block {of!r} are left: ask for them one by one first, "
            f"or close the block with close_block({of!r})"
        )
    if not planned:
        arms = None if among is None else sorted({conversation.arm_named(arm) for arm in among})
        fill = n is not None
        conversation.step({"step": "compose", "block": name, "room": left, "among": arms, "fill": fill})
    count = len(run.planned) if n is not None else min(1, len(run.planned))
    opened = [conversation.ask() for _ in range(count)]
    return [ticket for ticket in opened if ticket is not None]


def _last_block(conversation: Conversation) -> str | None:
    """The block named last, if it is open."""
    blocks = named_blocks(conversation)
    return next((name for name in reversed(blocks) if not blocks[name]), None)


def close_block(conversation: Conversation, block: str) -> None:
    """Nothing more will be measured in a block: its open asks are given up.

    What was asked for together and is not all in counts as far as it came, assuming that the end had nothing to do
    with values (closing time); with `strict_blocks` it counts for nothing. ValueError if the block was not asked
    for, or is closed already.
    """
    need_blocks(conversation, "close_block")
    name, blocks = checked_block(block), named_blocks(conversation)
    if name not in blocks:
        raise ValueError(f"block {name!r} was not asked for: blocks are {short(list(blocks))}")
    if blocks[name]:
        raise ValueError(f"block {name!r} is closed already")
    for ticket in [number for number in conversation.lines.pending if block_of(conversation, number) == name]:
        conversation.forget(ticket)
    conversation.step({"step": "close", "block": name})


def claimed_in_block(conversation: Conversation, arms: Sequence[int], tickets: Sequence[Any], block: Any) -> list[Any]:
    """The tickets that results of this block answer, as far as any were given or are open; None for the others.

    ValueError if an ask that would be answered is of another block, or the block was never asked for.
    """
    name, taken, chosen = checked_block(block), set(), []
    for arm, given in zip(arms, tickets, strict=True):
        if given is not None:
            own = block_of(conversation, conversation.lines.checked_open(given))
            if own != name:
                raise ValueError(f"ticket {given} was asked for in block {own!r}, the result is told of block {name!r}")
            chosen.append(given)
            continue
        asks = [number for number, place in conversation.lines.pending.items() if place.arm == arm]
        here = [number for number in asks if block_of(conversation, number) == name and number not in taken]
        if asks and not here:
            own = block_of(conversation, asks[0])
            item = conversation.settings.name_of(arm)
            raise ValueError(f"item {item} was asked for in block {own!r}, the result is told of block {name!r}")
        if not asks and name not in named_blocks(conversation):
            raise ValueError(f"block {name!r} was not asked for: blocks are {short(list(named_blocks(conversation)))}")
        chosen.append(here[0] if here else None)
        taken.update(here[:1])
    return chosen


def placed_rows(conversation: Conversation) -> dict[int, str]:
    """Of results that nobody asked for, by their place in the log: the block that they were told of."""
    steps, placed, row = iter(conversation.steps), None, 0
    blocks: dict[int, str] = {}
    for kind in conversation.order:
        if kind == STEPPED:
            step = next(steps)
            placed = step["block"] if step["step"] == "place" else placed
        elif kind == TOLD:
            if placed is not None and conversation.log.tickets[row] is None:
                blocks[row] = placed
            placed, row = None, row + 1
    return blocks


def apart_in_cells(conversation: Conversation) -> NDArray[np.bool_]:
    """(M, M) pairs of items that are known to differ, by all cells that ended (docs/BLOCKS.md, Lemma 2).

    For a known noise; for the others nothing is known of pairs in blocks. In strict blocks: by those after the last
    cell that lapsed.
    """
    settings = conversation.settings
    n_arms, n_clusters, dim = settings.shape
    if settings.noise.kind != "known":
        return np.zeros((n_arms, n_arms), dtype=bool)
    pairs = Pairs(n_arms, n_clusters, dim, -math.log(settings.delta), settings.strict_blocks)
    cells: dict[int, Cell] = {}
    for _, made in conversation.decisions:
        if made["event"] == "cell":
            cells[made["cell"]] = Cell(made["cell"], made["block"], made["epoch"], made["pulls"], None)
        elif made["event"] == "lapse":
            for arm in made["missing"]:
                cells[made["cell"]].give_up(arm)
            if settings.strict_blocks:
                pairs.next_generation(len(cells) + 1)
    log = conversation.log
    white = log.units(log.array) if len(log) else log.array
    for row, number in zip(conversation.counted_rows, conversation.counted_rounds, strict=True):
        if number in cells:
            cells[number].take(log.arms[row], white[row])
    for number, cell in cells.items():
        if not cell.ended:
            break
        pairs.use(number, *cell.results(dim))
    return np.asarray(pairs.settled)
