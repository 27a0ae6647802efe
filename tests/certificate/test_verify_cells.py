"""`coterie.verify` on certificates of runs in blocks: honest ones hold, forged ones are refused with a sentence."""

from __future__ import annotations

import copy
import functools
import json
import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import plain_bets
import plain_cells
import pytest
from mutations import check_changes
from plain_cells import NAMES, Plain, lab_of, made, made_by_both, made_by_pairs

import coterie
from coterie.certificate import read_log, write_log
from coterie.certificate.arithmetic.cells import CellPairs
from coterie.certificate.arithmetic.known import record_of
from coterie.certificate.freezes import LogSubject
from coterie.certificate.reading import read_events
from coterie.problem.families import noise_from_json
from coterie.problem.noise import Noise
from coterie.problem.sentences import assumption_in_words

Document = tuple[dict[str, Any], list[dict[str, Any]]]
STRICT = ("known", "any", "gaussian")


EVERY = (*NAMES, *(f"{name}, strict" for name in STRICT), "pairs", "both", "pairs, strict", "both, strict")


@functools.cache
def made_once(called: str) -> Document:
    """One of `EVERY`."""
    name, strict = called.removesuffix(", strict"), called.endswith(", strict")
    if name == "pairs":
        return made_by_pairs(strict=strict)
    return made_by_both(strict=strict) if name == "both" else made(name, strict=strict)


@pytest.fixture
def document(request: pytest.FixtureRequest) -> Document:
    certificate, events = made_once(getattr(request, "param", "known"))
    return copy.deepcopy(certificate), copy.deepcopy(events)


@pytest.mark.parametrize("name", EVERY)
def test_honest_certificate_in_blocks_holds(name: str, tmp_path: Path) -> None:
    certificate, events = made_once(name)
    verdict = coterie.verify(certificate, events)
    assert verdict.problems == []
    assert verdict.warnings == []
    assert verdict.tests >= 18
    path, log = tmp_path / "certificate.json", tmp_path / "log.csv"
    path.write_text(json.dumps(certificate))
    write_log(log, events, certificate["dim"])
    assert read_log(log) == events
    assert coterie.verify(path, log)


@pytest.mark.parametrize("seed", range(2, 5))
@pytest.mark.parametrize("name", NAMES)
def test_other_honest_certificates_in_blocks_hold(name: str, seed: int) -> None:
    try:
        certificate, events = made(name, seed)
    except AssertionError:
        return  # a run that did not end
    assert coterie.verify(certificate, events).problems == []


@pytest.mark.parametrize("strict", [False, True])
def test_pair_martingales_match_oracle(strict: bool) -> None:
    lab = lab_of("known, covariance", 3, strict)
    plain = Plain(lab)
    asked = LogSubject("groups", 9, 2, 3, blocks="offset", strict=strict)
    log = read_events(lab.events, asked, len(plain.results))
    noise = lab.noise
    assert isinstance(noise, Noise)
    ended = [plain.ended(cell) for cell in plain.cells]
    pairs = CellPairs(record_of(log, noise), log.rounds, ended, 9)
    rows = [(i, j, cell) for (i, j), cell in product(combinations(range(9), 2), plain.cells)]
    wanted = [plain.pair(*row) for row in rows]
    first, second, last = (np.array(column) for column in zip(*rows, strict=True))
    recomputed = pairs.evidence(first, second, last)
    np.testing.assert_allclose(recomputed, [np.nan if value is None else value for value in wanted], rtol=1e-9)
    assert sum(value is None for value in wanted) >= 3  # those of the cell that is open at the end, at least


def test_offsets_of_cells_leave_all_evidence_as_it_is() -> None:
    """Every certificate that held still holds, to the last digit that is checked."""
    for name in ("known", "any", "gaussian", "gaussian, scalar", "at-most", "symmetric"):
        certificate, events = made_once(name)
        offset = np.random.default_rng(5).integers(-1000, 1000, (100, 2)) * 64
        moved = [
            event | {"values": (np.array(event["values"]) + offset[event["cell"]]).tolist()}
            if event["event"] == "result" and "cell" in event
            else event
            for event in events
        ]
        assert coterie.verify(certificate, moved).problems == [], name


# Forgeries.


def place_of(events: Any, kind: str, **more: Any) -> int:
    return next(i for i, event in enumerate(events) if event["event"] == kind and more.items() <= event.items())


def composed_late(certificate: Any, events: Any) -> None:
    cell = events.pop(place_of(events, "cell", cell=7))
    events.insert(place_of(events, "result", cell=7) + 1, cell)


def left_out(certificate: Any, events: Any) -> None:
    events[:] = [event for event in events if event.get("cell") != 7]
    certificate["t"] = sum(event["event"] == "result" for event in events)


def left_out_of_the_epoch(certificate: Any, events: Any) -> None:
    certificate["epoch"]["cells"].remove(7)


def of_another_epoch(certificate: Any, events: Any) -> None:
    events[place_of(events, "cell", cell=7)]["epoch"] = 0


def exchanged(certificate: Any, events: Any) -> None:
    events[place_of(events, "result", cell=8)]["cell"] = 7


def told_for_another_block(certificate: Any, events: Any) -> None:
    events[place_of(events, "result", cell=7)]["block"] = "plate 99"


def of_no_block(certificate: Any, events: Any) -> None:
    del events[place_of(events, "cell", cell=7)]["block"]


def of_no_cell(certificate: Any, events: Any) -> None:
    del events[place_of(events, "result", cell=7)]["cell"]


def one_too_many(certificate: Any, events: Any) -> None:
    i = place_of(events, "result", cell=7)
    events.insert(i, events[i])
    certificate["t"] += 1


def not_asked_for(certificate: Any, events: Any) -> None:
    """A good value in the place of one that was asked for."""
    events[place_of(events, "result", cell=7)]["asked"] = False


def lapse_hidden(certificate: Any, events: Any) -> None:
    del events[place_of(events, "lapse")]
    certificate["lapsed"] = []


def lapse_not_named(certificate: Any, events: Any) -> None:
    certificate["lapsed"] = []


def lapse_of_a_complete_cell(certificate: Any, events: Any) -> None:
    events.append({"event": "lapse", "cell": 7, "missing": [0], "strict": False})


def lapse_of_others(certificate: Any, events: Any) -> None:
    lapse = events[place_of(events, "lapse")]
    lapse["missing"] = [(lapse["missing"][0] + 1) % 9]


def lapse_made_strict(certificate: Any, events: Any) -> None:
    events[place_of(events, "lapse")]["strict"] = True


def lapse_before_results(certificate: Any, events: Any) -> None:
    lapse = events.pop(place_of(events, "lapse"))
    i = place_of(events, "result", cell=lapse["cell"])
    lapse["missing"] = [
        event["arm"] for event in events[i:] if event["event"] == "result" and event.get("cell") == lapse["cell"]
    ] + lapse["missing"]
    events.insert(i, lapse)


def lapse_invented(certificate: Any, events: Any) -> None:
    certificate["lapsed"] = [*certificate["lapsed"], 7]


def silent(certificate: Any, events: Any) -> None:
    del certificate["blocks"], certificate["lapsed"]
    certificate["prefix_room"] = 64
    certificate["homogeneity"] = {"rule": 2, "level": 0.01, "threshold": math.log(300), "evidence": [0.0, 0.0, 0.0]}
    certificate["epoch"]["rounds"], certificate["epoch"]["by_pairs"] = certificate["epoch"]["cells"], []
    certificate["assumes"] = noise_from_json(0.5, 2).assumption


def drawn_instead(certificate: Any, events: Any) -> None:
    certificate["blocks"] = "drawn"


def random_word(certificate: Any, events: Any) -> None:
    certificate["blocks"] = "random"


def not_strict(certificate: Any, events: Any) -> None:
    certificate["strict_blocks"] = 1


def stacks(certificate: Any, events: Any) -> None:
    certificate["prefix_room"] = 64


def alike_as_if_tested(certificate: Any, events: Any) -> None:
    certificate["homogeneity"] = {"rule": 2, "level": 0.01, "threshold": 5.7, "evidence": [0.0, 0.0, 0.0]}


def no_guess(certificate: Any, events: Any) -> None:
    del events[place_of(events, "freeze", epoch=1)]["bet"]


def another_guess(certificate: Any, events: Any) -> None:
    events[place_of(events, "freeze", epoch=1)]["bet"]["numbers"][0] += 1.0


def no_spread(certificate: Any, events: Any) -> None:
    events[place_of(events, "freeze", epoch=1)]["bet"]["numbers"][7] = 0.0


def sides_exchanged(certificate: Any, events: Any) -> None:
    row = certificate["epoch"]["pair_tests"][0]
    row[0], row[1] = row[1], row[0]


Forgery = Callable[[Any, Any], None]
FORGERIES: list[tuple[Forgery, str]] = [
    (composed_late, "a result of cell 7, which is composed later"),
    (left_out, "cell 8 is out of order: 7 comes next, and none is left out"),
    (left_out_of_the_epoch, "the certificate uses the cells"),
    (of_another_epoch, "the certificate uses the cells"),
    (exchanged, "cell 7 has no pull (left) of arm"),
    (told_for_another_block, "a result told for block 'plate 99', but cell 7 is of block 'plate 0'"),
    (of_no_block, "a block must be named by a text, got None"),
    (of_no_cell, "a result of no cell: in blocks all that is asked for is of a cell"),
    (one_too_many, "cell 7 has no pull (left) of arm"),
    (not_asked_for, "a result of cell 7 that nobody asked for"),
    (lapse_hidden, "is used, but not all of its results are in the log"),
    (lapse_not_named, "and the certificate does not say that it lapsed"),
    (lapse_of_a_complete_cell, "cell 7 lapses, but it is complete"),
    (lapse_of_others, "are missing, the lapse says"),
    (lapse_made_strict, "must be not strict, as the certificate says of all"),
    (lapse_before_results, "after it has lapsed"),
    (lapse_invented, "the certificate says that the cells"),
    (silent, "is a cell, but the certificate says nothing of blocks"),
    (drawn_instead, "drawn blocks prove nothing under the noise 'known'"),
    (random_word, "blocks must be one of offset, drawn"),
    (not_strict, "strict_blocks must be true or false"),
    (stacks, "in blocks prefix_room must be null"),
    (alike_as_if_tested, "in blocks homogeneity must be null"),
    (no_guess, "freeze 1 has no bet"),
    (another_guess, "the certificate says"),
    (no_spread, "τ²[0, 1] must be above 0"),
    (sides_exchanged, "the first arm must be the one whose group has the larger number"),
]


@pytest.mark.parametrize(("forge", "sentence"), FORGERIES, ids=[forge.__name__ for forge, _ in FORGERIES])
def test_forged_blocks_are_refused(document: Document, forge: Forgery, sentence: str) -> None:
    forge(*document)
    verdict = coterie.verify(*document)
    assert not verdict
    assert any(sentence in problem for problem in verdict.problems), verdict.problems


def block_twice(certificate: Any, events: Any) -> None:
    events[place_of(events, "cell", cell=9)]["block"] = events[place_of(events, "cell", cell=7)]["block"]


def known_before(certificate: Any, events: Any) -> None:
    """A result of the question is told before its cell is composed, which nobody asked for."""
    i = place_of(events, "cell", cell=9)
    result = {"event": "result", "arm": 0, "asked": False, "block": events[i]["block"], "values": [0.5] * 2}
    events.insert(i, result | {"values": events[place_of(events, "result", cell=9)]["values"]})
    certificate["t"] += 1


def item_twice(certificate: Any, events: Any) -> None:
    pulls = events[place_of(events, "cell", cell=9)]["pulls"]
    pulls.append(pulls[0])


@pytest.mark.parametrize("document", ["drawn, any", "drawn, bounded", "drawn, counts"], indirect=True)
@pytest.mark.parametrize(
    ("forge", "sentence"),
    [
        (block_twice, "of which there is a cell or a result already: of a drawn block only one cell counts"),
        (known_before, "of which there is a cell or a result already: of a drawn block only one cell counts"),
        (item_twice, "twice: in a drawn block once is all that counts"),
    ],
)
def test_forged_drawn_blocks_are_refused(document: Document, forge: Forgery, sentence: str) -> None:
    forge(*document)
    verdict = coterie.verify(*document)
    assert not verdict
    assert any(sentence in problem for problem in verdict.problems), verdict.problems


def test_offset_blocks_may_have_both() -> None:
    """Two cells of a block, and an item twice in a cell: both are in honest logs."""
    _, events = made_once("known")
    blocks = Counter(event["block"] for event in events if event["event"] == "cell")
    assert max(blocks.values()) > 1
    assert any(len(set(e["pulls"])) < len(e["pulls"]) for e in events if e["event"] == "cell")


def test_bounded_results_in_drawn_blocks_need_whole_levels() -> None:
    """Contrasts of disjoint tests in one question are correlated, so two halves are worth less than a whole."""
    lab = lab_of("drawn, bounded")
    halves = Plain(lab).by_epoch(1, halves=True)
    verdict = coterie.verify(halves, lab.events)
    level = halves["epochs"][1]["level"]
    assert any(f"its evidence must reach {level:.6g}" in problem for problem in verdict.problems)
    assert any("core arms" in problem and f"{level:.6g} must be reached" in problem for problem in verdict.problems)
    lab = lab_of("bounded")
    assert coterie.verify(Plain(lab).by_epoch(1, halves=True), lab.events).problems == []


@pytest.mark.parametrize(
    ("noise", "dim"),
    [(1.0, 1), ({"family": "gaussian", "shape": "full"}, 1), ({"family": "counts", "trials": 2}, 1),
     ({"family": "counts", "trials": 1}, 2), ({"family": "symmetric"}, 1)],
)  # fmt: skip
def test_drawn_blocks_prove_nothing_under_other_noises(noise: Any, dim: int) -> None:
    certificate, events = made_once("drawn, any")
    verdict = coterie.verify(certificate | {"noise": noise, "dim": dim}, events)
    assert any("drawn blocks prove nothing under the noise" in problem for problem in verdict.problems)


def test_blocks_that_the_log_lacks_are_refused() -> None:
    certificate, events = plain_bets.made("at-most")
    said = assumption_in_words(noise_from_json(certificate["noise"], 2), "groups", "offset")
    forged = certificate | {"blocks": "offset", "assumes": said, "lapsed": [], "homogeneity": None}
    forged["epoch"] = certificate["epoch"] | {"cells": certificate["epoch"]["rounds"]}
    problems = coterie.verify(forged, events).problems
    assert any("a result of round 0: in blocks results are of cells" in problem for problem in problems), problems


def test_pairs_of_an_earlier_generation_do_not_count_later() -> None:
    certificate, events = copy.deepcopy(made_once("pairs, strict"))
    assert certificate["generation"] == 1
    certificate["pairs"][0][3] = 3
    problems = coterie.verify(certificate, events).problems
    assert any("the certificate uses cell 3, but the log has" in problem for problem in problems), problems
    certificate, events = copy.deepcopy(made_once("pairs, strict"))
    certificate["generation"] = 0  # its level is lower
    assert any("pair_level must be" in problem for problem in coterie.verify(certificate, events).problems)


def test_a_strictly_lapsed_cell_never_counts() -> None:
    certificate, events = copy.deepcopy(made_once("known, strict"))
    [lapsed] = certificate["lapsed"]
    wrong = certificate | {"labels": plain_cells.WRONG, "representatives": [0, 1, 3]}
    wrong["epoch"] = certificate["epoch"] | {"number": 0, "cells": [lapsed], "group_tests": [], "core_tests": []}
    problems = coterie.verify(wrong, events).problems
    assert any(f"cell {lapsed} is used, but not all of its results are in the log" in one for one in problems)


def test_log_in_blocks_that_refutes_the_groups_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arm 8 lies apart from all others: its tests against other groups are met, and so is that against its own."""
    centers = np.concatenate([plain_cells.CENTERS, [[12.0, 12.0]]])
    lab = plain_cells.Lab("known", 3)
    lab.labels = [*plain_cells.LABELS[:8], 3]
    monkeypatch.setattr(plain_cells, "CENTERS", centers)
    for plate in range(12):
        lab.compose(f"plate {plate}", list(range(9)))
        lab.answer()
    problems = coterie.verify(Plain(lab).by_pairs(), lab.events).problems
    assert any("arms 0 and 8 are in one group, but the log shows that they differ" in one for one in problems)
    assert any("the log refutes K = 3" in one for one in problems)


# Changes drawn at random.


def kept() -> list[tuple[str, Any, Any]]:
    return [(name, *json.loads(json.dumps(made_once(name)))) for name in EVERY]


def test_no_change_in_blocks_is_accepted_that_claims_something_else() -> None:
    check_changes(kept(), 1, 400)


@pytest.mark.slow
def test_no_change_in_blocks_of_many_is_accepted_that_claims_something_else() -> None:
    check_changes(kept(), 100, 6000)
