"""Two pair tests at a time, for bounded results in drawn blocks: their lemma, their factor, and their certificate."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest
from block_worlds import play

import coterie
from coterie.methods.blocks.epoch import CORE, PAIR, FrozenTests


def _partitions(n_arms: int, most: int) -> list[tuple[int, ...]]:
    made: list[tuple[int, ...]] = [()]
    for _ in range(n_arms):
        made = [(*c, k) for c in made for k in range(min(max(c, default=-1) + 2, most))]
    return made


def _subsets(arms: list[int]) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(arms, size) for size in range(1, len(arms) + 1)))


@pytest.mark.parametrize(("n_arms", "n_groups"), [(4, 2), (5, 2), (4, 3), (5, 3)])
def test_every_wrong_candidate_has_a_void_test_without_halves(n_arms: int, n_groups: int) -> None:
    truths, cases = _partitions(n_arms, n_groups), 0
    for candidate in (c for c in truths if max(c) == n_groups - 1):
        groups = [[m for m in range(n_arms) if candidate[m] == k] for k in range(n_groups)]
        for cores in product(*map(_subsets, groups)):
            tests = FrozenTests(np.array(candidate), cores)
            sides = [{int(tests.arm[i]), *np.flatnonzero(tests.pool[i]).tolist()} for i in range(len(tests))]
            alone = [sides[i] for i in range(len(tests)) if tests.kind[i] != PAIR]
            joint = [(sides[i], sides[j]) for i, j in tests.joints().tolist()]
            assert all(not one & other for one, other in joint)
            for c in (c for c in truths if c != candidate):
                void = any(len({c[m] for m in arms}) == 1 for arms in alone)
                void |= any(len({c[m] for m in one}) == 1 == len({c[m] for m in other}) for one, other in joint)
                assert void, (candidate, cores, c)
                cases += 1
    assert cases > 100


@pytest.fixture(scope="module")
def honest() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    session = play("drawn", "bounded", 6, 2, gap=3.0, room=6, seed=2, lapses=True)
    assert session.certificate is not None
    return dict(session.certificate), list(session.events)


def _plain(certificate: dict[str, Any], events: list[dict[str, Any]], row: list[Any]) -> float:
    """log Π(1 + λ·C + λ'·C') from the log, number by number."""
    epoch, total, n_groups = certificate["epoch"]["number"], 0.0, certificate["n_clusters"]
    labels = next(e for e in events if e["event"] == "freeze" and e["epoch"] == epoch)["labels"]
    for cell in (e for e in events if e["event"] == "cell" and e["epoch"] == epoch and e["cell"] <= row[5]):
        x = {e["arm"]: e["values"][0] for e in events if e["event"] == "result" and e.get("cell") == cell["cell"]}
        g, f, square = np.split(np.array(cell["bet"]["numbers"]), [n_groups, n_groups + n_groups**2])
        stakes, means = [], 0.0
        for p, q in (row[:2], row[2:4]):
            if p in x and q in x:
                place = labels[p] * n_groups + labels[q]
                stakes.append((f[place] * (g[labels[p]] - g[labels[q]]), x[p] - x[q]))
                means += f[place] ** 2 * square[place]
        risk = sum(abs(stake) / (2.0 + means) for stake, _ in stakes)  # results lie in [0, 1]
        gain = sum(stake / (2.0 + means) * contrast for stake, contrast in stakes)
        total += math.log1p(gain * min(1.0, 0.95 / risk) if risk else 0.0)
    return total


def test_joint_evidence_matches_a_plain_formula(honest: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    certificate, events = honest
    verdict = coterie.verify(certificate, events)
    assert verdict.problems == []
    rows = certificate["epoch"]["joint_tests"]
    pairs = list(product((0, 2, 4), (1, 3, 5)))
    assert len(rows) == sum(not {*one} & {*other} for one, other in combinations(pairs, 2)) == 18
    for row in rows:
        assert row[4] == pytest.approx(_plain(certificate, events, row), rel=1e-9)


def test_a_joint_factor_has_mean_one_however_the_arms_depend(
    honest: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    """Where questions suit two arms and not the two others: the product of two factors has a mean above 1."""
    from coterie.methods.blocks.exchangeable import factors_for
    from coterie.methods.blocks.factors import Used
    from coterie.problem.families import noise_of

    noise = noise_of(coterie.Bounded(0.0, 1.0), 1)
    labels = np.array([0, 0, 1, 1])
    tests = FrozenTests(labels, [[0, 1], [2, 3]])
    factors = factors_for(noise, 2, 1)
    state = factors.begin(tests, labels, np.ones(len(tests)), None)
    bet = {"from": [0.0], "numbers": [0.0, 2.0, 1.0, 0.9, 0.9, 1.0, 1.0, 0.3, 0.3, 1.0]}
    pairs = tests.joints()
    joint, product_of_two = 0.0, 0.0
    for sign in (-1.0, 1.0):  # arms 2 and 0, 3 and 1: both contrasts have the same sign
        x = 0.5 + 0.4 * sign * np.array([[-1.0], [-1.0], [1.0], [1.0]])
        used = Used(np.arange(4), x - x[0], x, bet, 4, np.arange(4))
        joint += 0.5 * math.exp(factors.jointly(state, used, pairs)[0])
        single = factors.log_factors(state, used, state.sides(used, pairs[0]), _numbers(noise, bet))  # type: ignore[attr-defined]
        product_of_two += 0.5 * math.exp(single.sum())
    assert joint == pytest.approx(1.0, abs=1e-12)
    assert product_of_two > 1.1
    assert (tests.kind[pairs] == PAIR).all()
    assert CORE in tests.kind


def _numbers(noise: Any, bet: dict[str, Any]) -> Any:
    from coterie.methods.blocks.bets import Numbers

    return Numbers.of(noise, bet, 2, 1)


def _without_row(certificate: dict[str, Any]) -> None:
    del certificate["epoch"]["joint_tests"][3]


def _more_evidence(certificate: dict[str, Any]) -> None:
    certificate["epoch"]["joint_tests"][3][4] += 1.0


def _too_early(certificate: dict[str, Any]) -> None:
    certificate["epoch"]["joint_tests"][3][5] = certificate["epoch"]["cells"][0]


def _common_arm(certificate: dict[str, Any]) -> None:
    rows = certificate["epoch"]["joint_tests"]
    rows[3] = [*rows[3][:2], *rows[3][:2], *rows[3][4:]]


def _no_joints(certificate: dict[str, Any]) -> None:
    del certificate["epoch"]["joint_tests"]


def _exchanged(certificate: dict[str, Any]) -> None:
    row = certificate["epoch"]["joint_tests"][0]
    row[0], row[1] = row[1], row[0]


@pytest.mark.parametrize(
    ("forge", "sentence"),
    [
        (_without_row, "are not shown to differ together"),
        (_more_evidence, "the certificate says"),
        (_too_early, "are not shown to differ together"),
        (_common_arm, "are not shown to differ together"),
        (_no_joints, "are not shown to differ"),
        (_exchanged, "the first arm must be the one whose group has the larger number"),
    ],
)
def test_forged_joint_tests_are_refused(
    honest: tuple[dict[str, Any], list[dict[str, Any]]], forge: Callable[[dict[str, Any]], None], sentence: str
) -> None:
    certificate = copy.deepcopy(honest[0])
    forge(certificate)
    verdict = coterie.verify(certificate, honest[1])
    assert not verdict
    assert any(sentence in problem for problem in verdict.problems)


def test_joint_tests_are_for_drawn_blocks_alone() -> None:
    session = play("offset", "bounded", 4, 2, gap=4.0, room=4, seed=3)
    certificate = copy.deepcopy(dict(session.certificate or {}))
    certificate["epoch"]["joint_tests"] = []
    verdict = coterie.verify(certificate, session.events)
    assert any("joint_tests are for bounded results in drawn blocks" in problem for problem in verdict.problems)
