"""Sessions in blocks: offsets change nothing, records are followed to the same numbers, bad input is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from block_worlds import NOISES, STATED, play

import coterie

GRID = 2.0**-20


def _decided(noise: Any, offsets: Callable[[int, list[int]], float], seed: int, dim: int = 1) -> list[Any]:
    """All that a run decides and says, with results on a grid, so that an offset of a block is added exactly."""
    rng = np.random.default_rng(seed)
    session = coterie.Session(8, 2, dim, 0.1, noise=noise, blocks="offset")
    number = 0
    while not session.done:
        number += 1
        try:
            items = session.ask(10, block=f"day {number}")
        except coterie.SessionDone:
            break
        offset = offsets(number, items)
        for item in items:
            x = np.round((2.0 * (item % 2) + rng.standard_normal(dim)) / GRID) * GRID
            session.tell(item, x + offset)
    certificate = session.certificate
    assert certificate is not None
    return [session.decisions, session.pulls.tolist(), {k: v for k, v in certificate.items() if k != "alarm"}]


OFFSET_NOISES = [1.0, None, coterie.AnyNoise(shape=True), "gaussian", coterie.Symmetric(), coterie.AtMost(1.0)]


@pytest.mark.parametrize("noise", OFFSET_NOISES, ids=str)
def test_offsets_change_nothing_bit_for_bit(noise: Any) -> None:
    rng = np.random.default_rng(5)
    without = _decided(noise, lambda number, items: 0.0, 7)
    drawn = {number: float(np.round(1000 * rng.standard_normal())) for number in range(1, 500)}
    assert _decided(noise, lambda number, items: drawn[number], 7) == without
    assert _decided(noise, lambda number, items: 4096.0 if items[0] % 2 else -4096.0, 7) == without


def test_offsets_change_no_decision_in_any_units() -> None:
    def asks(offset: float) -> list[Any]:
        rng, pulls = np.random.default_rng(2), []
        session = coterie.Session(6, 2, 2, 0.1, noise=[0.3, 7.0], blocks="offset")
        for number in range(1, 300):
            try:
                items = session.ask(9, block=f"day {number}")
            except coterie.SessionDone:
                break
            pulls.append(items)
            for item in items:
                if not session.done:
                    session.tell(item, (2.0 * (item % 2) + rng.standard_normal(2) + offset * number) * [0.3, 7.0])
        assert session.done
        return [pulls, session.t, np.array(session.labels).tolist()]

    assert asks(0.0) == asks(1.7) == asks(-300.1)


@pytest.mark.parametrize(("blocks", "noise"), NOISES, ids=str)
def test_a_saved_session_goes_on_as_if_it_had_never_stopped(blocks: str, noise: str) -> None:
    whole = play(blocks, noise, 5, 2, seed=11, lapses=True)
    facts = whole.to_dict()
    assert coterie.Session.from_dict(json.loads(json.dumps(facts))).certificate == whole.certificate
    rng = np.random.default_rng([11, 17])  # the same world again, saved and loaded after every block
    session = coterie.Session(5, 2, 1, 0.1, noise=STATED[noise], blocks=blocks)
    from block_worlds import reading

    number = 0
    while not session.done:
        number += 1
        block, offset = f"block {number}", rng.standard_normal()
        try:
            items = session.ask(8, block=block)
        except coterie.SessionDone:
            break
        for item in items[:-1] if number in (3, 6) else items:
            session.tell(item, reading(blocks, noise, 3.0 * (item % 2 - 0.5), offset, rng), block=block)
        if not session.done:
            session.close_block(block)
            if number % 4 == 1:
                session = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
                assert session.applied == 0
    assert session.to_dict() == facts


def test_one_by_one_and_all_at_once_hand_out_whole_cells() -> None:
    rng = np.random.default_rng(0)
    session = coterie.Session(["a", "b", "c", "d"], 2, 1, 0.1, noise=1.0, blocks="offset")
    cell = [session.ask(block="monday", room=6) for _ in range(4)]
    assert sorted(cell) == [0, 1, 2, 3]
    assert session.block_of(0) == "monday"
    assert session.open_blocks == ["monday"]
    for item in cell:
        session.tell(item, 5.0 * (item % 2) + rng.standard_normal(), block="monday")
    item = session.ask(among=["a", "b", "c"])  # of the block named last
    assert session.block_of(session.pending[0][0]) == "monday"
    with pytest.raises(ValueError, match="'monday' are left"):
        session.ask(8, block="tuesday")
    session.close_block("monday")
    assert not session.pending
    assert set(session.ask(8, block="tuesday", among=["b", "d"])) <= {1, 3}
    assert item in (0, 1, 2)


def test_results_in_any_order_and_several_plates_open_verify() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        session = coterie.Session(6, 2, 1, 0.1, noise=[1.0, None][seed % 2], blocks="offset", strict_blocks=seed > 3)
        offsets: dict[str, float] = {}
        number = 0
        while not session.done and session.t < 600:
            number += 1
            offsets[f"p{number}"] = 3.0 * rng.standard_normal()
            try:
                session.ask(int(rng.integers(2, 12)), block=f"p{number}")
            except coterie.SessionDone:
                break
            asks = list(session.pending)
            for place in rng.permutation(len(asks)):
                ticket, item = asks[place]
                if rng.random() < 0.8 or number > 6:
                    value = 3.0 * (item % 2) + offsets[str(session.block_of(ticket))] + rng.standard_normal()
                    session.tell(item, value, ticket)
                elif rng.random() < 0.3:
                    session.forget(ticket)
            if rng.random() < 0.5 and not session.done and number < 6:
                session.close_block(session.open_blocks[0])
        assert session.done
        assert coterie.verify(session.certificate, session.events)


def test_a_correction_is_counted_anew() -> None:
    session = play("offset", "known", 6, 2, seed=2)
    made = session.correct(3, session.log[3][1] + 0.01, "read off wrongly")
    assert made is not None
    assert session.done
    assert coterie.verify(session.certificate, session.events)


def test_partial_answers_are_by_cells() -> None:
    session = coterie.Session(4, 2, 1, 0.1, noise=1.0, blocks="offset")
    rng = np.random.default_rng(0)
    seen = []
    for number in range(40):
        for item in session.ask(4, block=f"p{number}"):
            session.tell(item, 100.0 * number + 2.0 * (item % 2) + rng.standard_normal())
        seen.append(len(session.partial().apart))
        if session.done:
            break
    assert session.done
    assert seen[-1] == 4
    assert seen[0] == 0
    assert {(low % 2, high % 2) for low, high in session.partial().apart} == {(0, 1), (1, 0)}
    alone = coterie.Session(4, 2, 1, 0.1, noise=1.0, blocks="offset")
    for block, item, x in (("p", 0, 0.0), ("q", 1, 50.0)):  # nothing is compared across blocks
        alone.ask(4, block=block)
        alone.close_block(block)
        for _ in range(40):
            alone.tell(item, x, block=block)
    assert not alone.partial().apart


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: coterie.Session(4, 2, 1, blocks="plate"), "blocks must be"),
    (lambda: coterie.Session(4, 2, 1, blocks="offset", method="boc", noise=1.0), "takes no blocks='offset'"),
    (lambda: coterie.Session(4, 2, 1, blocks="offset", costs=[1, 2, 3, 4]), "costs are not weighed in blocks"),
    (lambda: coterie.Session(4, 2, 1, blocks="offset", confirm=0.5), "confirm=0.5"),
    (lambda: coterie.Session(4, 2, 1, strict_blocks=True), "strict_blocks is for blocks"),
    (lambda: coterie.Session(4, 2, 1, noise=1.0, blocks="drawn"), "blocks that are drawn need"),
    (lambda: coterie.Session(4, 2, 2, noise=coterie.Counts(1), blocks="drawn"), "blocks that are drawn need"),
    (lambda: coterie.Session(4, dim=1, resolution=(0.2, 0.8), noise=1.0, blocks="offset"), "additivity"),
    (lambda: coterie.Session(4, 2, 1).ask(block="p"), "is for a session with blocks"),
    (lambda: coterie.Session(4, 2, 1).tell(0, 1.0, block="p"), "is for a session with blocks"),
    (lambda: coterie.cluster(lambda item: 0.0, 4, 2, blocks="offset"), "give room"),
    (lambda: coterie.cluster(lambda item: 0.0, 4, 2, room=4), "room=4 is for blocks"),
    (lambda: coterie.cluster(lambda item: 0.0, 4, 2, blocks="offset", room=4, workers=2), "a parameter block"),
]


@pytest.mark.parametrize(("make", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_settings_are_named(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_bad_steps_are_named_and_change_nothing() -> None:
    session = coterie.Session(4, 2, 1, noise=1.0, blocks="offset")
    for make, words in (
        (lambda: session.ask(), "name the block"),
        (lambda: session.ask(1, block="p"), "room for one"),
        (lambda: session.ask(4, block=""), "a block is a text"),
        (lambda: session.ask(4, block="p", among=[1]), "at least two items"),
        (lambda: session.close_block("p"), "was not asked for"),
        (lambda: session.revise(delta=0.01), "cannot be revised"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
    assert session.to_dict() == coterie.Session(4, 2, 1, noise=1.0, blocks="offset").to_dict()
    items = session.ask(4, block="p")
    before = session.to_dict()
    with pytest.raises(ValueError, match="asked for in block 'p', the result is told of block 'q'"):
        session.tell(items[0], 1.0, block="q")
    with pytest.raises(ValueError, match="asked for in block 'p', the result is told of block 'q'"):
        session.tell(items[0], 1.0, ticket=0, block="q")
    assert session.to_dict() == before
    session.close_block("p")
    with pytest.raises(ValueError, match="'p' is closed already"):
        session.close_block("p")
    with pytest.raises(ValueError, match="'p' is closed"):
        session.ask(4, block="p")
    with pytest.raises(ValueError, match="'zz' was not asked for"):
        session.tell(0, 1.0, block="zz")


def test_nothing_is_frozen_while_the_noise_is_hardly_known() -> None:
    """With few degrees of freedom the noise looks small in some direction, and groups along it look sure."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        session = coterie.Session(40, 4, 5, 0.1, blocks="offset")
        for number in range(2):
            for item in session.ask(48 if number == 0 else 20, block=f"day {number}"):
                session.tell(item, rng.standard_normal(5))
        assert not [made for made in session.decisions if made["event"] == "freeze"]


def test_cluster_measures_block_by_block() -> None:
    rng = np.random.default_rng(0)
    offsets: dict[str, Any] = {}

    def measure(item: int, block: str) -> list[float]:
        shift = offsets.setdefault(block, 20.0 * rng.standard_normal(2))
        return [4.0 * (item % 2) + shift[0] + rng.standard_normal(), shift[1] + rng.standard_normal()]

    result = coterie.cluster(measure, 6, 2, 0.1, blocks="offset", room=12, progress=False)
    assert result.done
    assert result.groups == [[0, 2, 4], [1, 3, 5]]
    assert len(offsets) > 1
    assert set(offsets) == {f"block {i + 1}" for i in range(len(offsets))}
    assert coterie.verify(result.session.certificate, result.session.events)
    again = coterie.cluster(measure, 6, 2, 0.1, blocks="offset", room=12, progress=False, workers=3)
    assert again.groups == result.groups


def test_simulated_offsets_change_no_stopping_time() -> None:
    instance = coterie.Instance([0, 1, 0, 1, 0, 1], [[0.0], [3.0]])
    times = [
        coterie.simulate(
            instance, deltas=0.1, trials=6, seed=4, noise=None, blocks="offset", room=9, offsets=offsets, workers=1
        ).stopping_times.tolist()
        for offsets in (0.0, 2.0, lambda rng, arms: 5.0 - 10.0 * (arms[0] % 2))
    ]
    assert times[0] == times[1] == times[2]
