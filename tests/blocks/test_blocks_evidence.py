"""The evidence of runs in blocks is that of the plain oracle, test by test and cell by cell; constants are pinned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from block_worlds import NOISES, play, results_of

import coterie
from coterie.methods.blocks import pairs
from coterie.methods.blocks.epoch import GROUP, PAIR, FrozenTests, share_of_epoch
from tests.oracles.blocks import Log, evidence_of_test, pair_evidence


def _levels(certificate: dict[str, Any]) -> float:
    alpha = certificate["alpha"]
    number = certificate["epoch"]["number"]
    return math.log(1 / ((1 - alpha) * certificate["delta"] * 0.8 * 0.2**number))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("blocks", "noise"), NOISES, ids=str)
def test_evidence_in_cells_matches_oracle(blocks: str, noise: str, strict: bool) -> None:
    session = play(blocks, noise, 5, 2, seed=3, lapses=True, strict=strict)
    assert session.done
    certificate = session.certificate
    assert certificate is not None
    log = Log(session.events, session.noise, session.dim)
    assert certificate["by"] == "epoch"
    epoch, level = certificate["epoch"], _levels(certificate)
    freeze = log.freezes[epoch["number"]]
    labels, cores = freeze["labels"], [set(core) for core in freeze["cores"]]
    in_core = set().union(*cores)
    halves = 1.0 if (blocks, noise) == ("drawn", "bounded") else 0.5
    kinds = (("group_tests", False), ("core_tests", False), ("pair_tests", True))
    checked = 0
    for name, is_pair in kinds:
        for arm, other, evidence, cell in epoch[name]:
            against = labels[other] if is_pair else other
            pool = (
                {other}
                if is_pair
                else cores[other]
                if name == "core_tests"
                else {m for m, label in enumerate(labels) if label == other}
            )
            kappa = 1.0 if name == "group_tests" or (name == "core_tests" and arm in in_core) else halves
            expected = evidence_of_test(log, epoch["number"], arm, against, pool, cell, kappa)
            assert evidence == pytest.approx(expected, abs=1e-7)
            assert evidence >= kappa * level
            checked += 1
    for first, second, evidence, cell in epoch["by_pairs"]:
        assert not strict
        assert evidence == pytest.approx(pair_evidence(log, first, second, cell), abs=1e-9)
        checked += 1
    wanted = FrozenTests(np.array(labels), freeze["cores"])
    if halves == 1.0:  # pair tests go two by two: `test_blocks_joint.py` has their plain formula
        assert len(epoch["joint_tests"]) == len(wanted.joints())
        assert all(row[4] >= level for row in epoch["joint_tests"])
        checked += int(np.count_nonzero(wanted.kind == PAIR))
    assert checked == len(wanted) or epoch["by_pairs"]
    assert all(log.ended(cell) for cell in epoch["cells"])


def test_pairs_by_cells_match_oracle() -> None:
    session = play("offset", "known", 5, 2, gap=9.0, seed=1)
    certificate = session.certificate
    assert certificate is not None
    log = Log(session.events, session.noise, session.dim)
    run = session._conversation.run
    last = run._used  # type: ignore[attr-defined]
    run_pairs = run.pairs  # type: ignore[attr-defined]
    open_pairs = [(i, j) for i in range(5) for j in range(i) if run_pairs.cell[i, j] == 0]
    assert open_pairs
    for i, j in open_pairs:
        assert run_pairs.evidence[i, j] == pytest.approx(pair_evidence(log, i, j, last), abs=1e-9)


def test_cells_are_composed_before_their_results_in_one_block() -> None:
    for blocks, noise in NOISES:
        session = play(blocks, noise, 6, 3, seed=5, gap=4.0, room=8)
        seen: set[int] = set()
        named: list[str] = []
        freezes = 0
        for event in session.events:
            if event["event"] == "freeze":
                freezes += 1
            elif event["event"] == "cell":
                assert event["cell"] == len(seen) + 1
                seen.add(event["cell"])
                assert event["epoch"] == (freezes - 1 if freezes else None)
                assert 2 <= len(event["pulls"]) <= 8
                if blocks == "drawn":
                    assert event["block"] not in named
                    assert len(set(event["pulls"])) == len(event["pulls"])
                named.append(event["block"])
            elif event["event"] == "result":
                assert event["cell"] in seen
        assert coterie.verify(session.certificate, session.events), (blocks, noise)


def test_constants_are_those_of_the_proof() -> None:
    assert pairs.ALPHA == 0.2
    assert pairs.GENERATIONS == (0.8, 0.2)
    assert [share_of_epoch(j) for j in range(3)] == [0.8, 0.8 * 0.2, 0.8 * 0.2**2]
    assert pairs._WEIGHTS.sum() < 1.0
    assert pairs.equal_pairs(10, 3) == 28


def test_core_and_pair_tests_are_those_of_lemma_5() -> None:
    tests = FrozenTests(np.array([0, 0, 0, 1, 1, 1]), [[0, 1], [3]])
    rows = list(zip(tests.kind.tolist(), tests.arm.tolist(), tests.against.tolist(), tests.whole.tolist(), strict=True))
    assert (GROUP, 2, 1, True) in rows
    assert (GROUP, 0, 1, True) not in rows
    assert (1, 2, 1, False) in rows
    assert (1, 0, 1, True) in rows
    assert not any(kind == PAIR for kind, *_ in rows)  # one core has a single arm


def test_a_result_outside_the_statement_is_refused_in_a_block() -> None:
    session = coterie.Session(4, 2, 1, noise=coterie.Counts(10), blocks="offset")
    item = session.ask(4, block="plate 1")[0]
    with pytest.raises(ValueError, match="10"):
        session.tell(item, 11.0, block="plate 1")
    assert results_of(session) == 0
