"""The lemma of the cores, by brute force, for exactly the tests that the engine demands.

Lemma (docs/CROC.md): let ĉ be a candidate with K groups and cores in them. Every other partition c into at most K
groups puts either all arms of one test at level b into one of its groups, or all arms of two tests at level b/2, which
share no arm, each into one of its groups. Sets of arms are bits of an integer here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
from engines import edit

from coterie._native import croc_constants
from coterie._native.parts import unmet
from coterie.methods.croc.run import CORE_ROOM, CrocRun

CORE = croc_constants()["core"]


class Required(NamedTuple):
    """One required test: its kind, the arm, the group or other arm, all arms in it, and its level in halves of b."""

    kind: str
    arm: int
    other: int
    arms: int
    halves: int


def bits(arms: list[int]) -> int:
    return sum(1 << arm for arm in arms)


def required_tests(labels: list[int], cores: list[list[int]]) -> list[Required]:
    """What a certificate of an epoch must show (docs/CROC.md): the rules, written down once more."""
    groups = [[m for m, label in enumerate(labels) if label == k] for k in range(len(cores))]
    tests = []
    for m, home in enumerate(labels):
        in_core = m in cores[home]
        for k in range(len(cores)):
            if k != home:
                tests.append(Required("core", m, k, bits([m, *cores[k]]), 2 if in_core else 1))
                if not in_core:
                    tests.append(Required("group", m, k, bits([m, *groups[k]]), 2))
    for k, h in combinations(range(len(cores)), 2):
        if len(cores[k]) > 1 and len(cores[h]) > 1:
            tests += [Required("pair", p, q, bits([p, q]), 1) for p in cores[h] for q in cores[k]]
    return tests


def partitions(n_arms: int, most: int) -> Iterator[list[int]]:
    """All partitions of the arms into at most so many groups, each once: labels by first appearance."""

    def grow(labels: list[int]) -> Iterator[list[int]]:
        if len(labels) == n_arms:
            yield labels
            return
        for label in range(min(max(labels, default=-1) + 2, most)):
            yield from grow([*labels, label])

    return grow([])


def groups_of(labels: list[int]) -> list[int]:
    return [bits([m for m, label in enumerate(labels) if label == k]) for k in range(max(labels) + 1)]


def refuted(groups: list[int], tests: list[Required]) -> bool:
    """Whether the partition puts together the arms of one full test, or of two half tests without a common arm."""
    together = [test for test in tests if any(test.arms & ~group == 0 for group in groups)]
    if any(test.halves == 2 for test in together):
        return True
    return any(a.arms & b.arms == 0 for a, b in combinations(together, 2))


def exceptions(labels: list[int], cores: list[list[int]], dropped: str = "") -> int:
    """For how many partitions the lemma fails, if the tests of one kind are left out or weakened."""
    tests = required_tests(labels, cores)
    if dropped == "core arms at full level":
        tests = [test._replace(halves=1) if test.kind == "core" else test for test in tests]
    elif dropped:
        tests = [test for test in tests if test.kind != dropped]
    return sum(
        not refuted(groups_of(other), tests) for other in partitions(len(labels), max(labels) + 1) if other != labels
    )


def all_cores(labels: list[int]) -> Iterator[list[list[int]]]:
    """Every choice of a nonempty core in each group."""
    groups = [[m for m, label in enumerate(labels) if label == k] for k in range(max(labels) + 1)]
    choices = [[list(core) for n in range(1, len(g) + 1) for core in combinations(g, n)] for g in groups]
    return (list(chosen) for chosen in product(*choices))


def engine_cores(labels: list[int]) -> list[list[int]]:
    """Cores of the size that the engine takes; which arms does not matter, as all partitions are tried."""
    groups = [[m for m, label in enumerate(labels) if label == k] for k in range(max(labels) + 1)]
    return [group if len(group) <= CORE_ROOM else group[:CORE] for group in groups]


@pytest.mark.parametrize(("n_arms", "n_groups"), [(3, 2), (4, 2), (4, 3), (5, 2), (5, 3), (5, 4)])
def test_lemma_holds_for_every_candidate_core_and_alternative(n_arms: int, n_groups: int) -> None:
    for labels in partitions(n_arms, n_groups):
        if max(labels) == n_groups - 1:
            for cores in all_cores(labels):
                assert exceptions(labels, cores) == 0, (labels, cores)


@pytest.mark.parametrize(("n_arms", "n_groups"), [(6, 2), (6, 3), (6, 4), (7, 2), (7, 3), (8, 2), (8, 3)])
def test_lemma_holds_for_more_arms(n_arms: int, n_groups: int) -> None:
    """All arms are alike, so one candidate for each choice of group sizes and core sizes stands for all of them."""
    for sizes in product(range(1, n_arms), repeat=n_groups):
        if sum(sizes) != n_arms or list(sizes) != sorted(sizes):
            continue
        labels = np.repeat(np.arange(n_groups), sizes).tolist()
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        for core_sizes in product(*(range(1, size + 1) for size in sizes)):
            cores = [list(range(start, start + n)) for start, n in zip(starts, core_sizes, strict=True)]
            assert exceptions(labels, cores) == 0, (labels, cores)


@pytest.mark.parametrize("dropped", ["core", "group", "pair", "core arms at full level"])
def test_lemma_needs_every_kind_of_test(dropped: str) -> None:
    """Without any one of them a wrong candidate slips through, also with the cores that the engine takes."""
    labels = [0, 0, 1, 1, 2, 2, 2, 2, 2] if dropped != "core" else [0] * 5 + [1] * 5
    assert exceptions(labels, engine_cores(labels)) == 0
    assert exceptions(labels, engine_cores(labels), dropped) > 0


# The same tests in the engine.


def count_unmet(run: CrocRun) -> tuple[int, list[int]]:
    """Tests that the engine still wants of the epoch, and the arms that it would pull for them."""
    found: tuple[int, list[int]] = unmet(run, 0)
    return found


def frozen_run(labels: list[int], cores: list[list[int]]) -> CrocRun:
    """A run with one epoch for this candidate, and no results: nothing is met."""
    run = CrocRun(len(labels), len(cores), 1, 1.0)
    places = np.full((len(cores), CORE_ROOM), -1)
    for k, core in enumerate(cores):
        places[k, : len(core)] = core
    inner = np.isin(np.arange(len(labels)), places)
    edit(run, {
        "freezes": 1, "estimate.labels": labels, "estimate.representative": places[:, 0], "epochs.0.labels": labels,
        "epochs.0.core": places.ravel(), "epochs.0.in_core": inner,
    })  # fmt: skip
    return run


def set_met(run: CrocRun, test: Required, met: int) -> None:
    if test.kind == "pair":
        places = {int(arm): i for i, arm in enumerate(run.frozen(0).core) if arm >= 0}
        i, j = places[test.arm], places[test.other]
        edit(run, {("epochs.0.core_pairs.met", (max(i, j), min(i, j))): met})
    else:
        edit(run, {(f"epochs.0.against_{test.kind}.met", (test.arm, test.other)): met})


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels",
    [[0, 0, 1], [0, 1, 0, 1, 0], [0, 1, 2, 0, 1, 2], [0, 0, 1, 2, 0, 0, 0, 1], [0] * 6 + [1] * 5, [0] * 7 + [1, 2, 2]],
)
def test_engine_demands_the_tests_of_the_lemma(labels: list[int]) -> None:
    """It certifies only when all of them are met: with one open, that one, and its arms are pulled again."""
    cores = engine_cores(labels)
    tests = required_tests(labels, cores)
    run = frozen_run(labels, cores)
    assert count_unmet(run)[0] == len(tests)
    for test in tests:
        set_met(run, test, 1)
    assert count_unmet(run) == (0, [])
    for test in tests:
        set_met(run, test, 0)
        assert count_unmet(run) == (1, sorted([test.arm, test.other]) if test.kind == "pair" else [test.arm])
        set_met(run, test, 1)


@pytest.mark.parametrize("labels", [[0, 1, 0, 1, 0], [0] * 6 + [1] * 5, [0] * 7 + [1, 2, 2]])
def test_pair_from_the_start_settles_its_arm_against_that_core_only(labels: list[int]) -> None:
    cores = engine_cores(labels)
    tests = required_tests(labels, cores)
    for m, home in enumerate(labels):
        for k in range(len(cores)):
            if k != home:
                gone = sum(test.kind != "pair" and (test.arm, test.other) == (m, k) for test in tests)
                run = frozen_run(labels, cores)
                edit(run, {("pairs.settled", (m, k)): 1})
                assert count_unmet(run)[0] == len(tests) - gone
                run = frozen_run(labels, cores)
                # the pair is not about the first arm of the core
                edit(run, {("pairs.settled", (m, k)): 1, ("estimate.representative", k): -1})
                assert count_unmet(run)[0] == len(tests)
