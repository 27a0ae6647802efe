"""Evidence of features where the noise is not known: each family equals its formula, written out by brute force, and
void tests are met no more often than their level allows."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most

from coterie.methods.features.epoch import Epoch, Round
from coterie.methods.features.families import evidence_for, least_term, log_mean_power
from coterie.problem.families import Counts, noise_of
from coterie.problem.features import Features

APART = Features.of(4)
PANELS = Features.of(list("abcd"), panels={"ab": ["a", "b"], "bcd": ["b", "c", "d"]})
LABELS, CORES = [0, 0, 0, 1, 1, 1, 1, 2, 2], [[1], [3, 4], [8, 7]]
KAPPA = math.exp(-6.125)

Rows = list[tuple[int, int, list[float]]]


def bets(kind: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    made = []
    for feature in (0, 1, 3):
        bet: dict[str, Any] = {"feature": feature, "fractions": rng.uniform(0.3, 1.0, (3, 3)).tolist()}
        bet["logits" if kind == "counts" else "centers"] = rng.normal(size=3).tolist()
        made.append(bet | ({"scale": float(rng.uniform(0.5, 2.0))} if kind == "any" else {}))
    return made


def sides(m: int, pool: set[int], panel: int, rows: Rows) -> tuple[list[list[float]], list[list[float]]]:
    told = [(item, x) for item, of_panel, x in rows if of_panel == panel]
    return [x for item, x in told if item == m], [x for item, x in told if item in pool]


def mean_product(g: list[float], j: int) -> float:
    """The mean of the product of j of the numbers, over all choices."""
    chosen = list(combinations(g, j))
    return sum(math.prod(part) for part in chosen) / len(chosen)


def plain_any(own: int, k: int, m: int, pool: set[int], rounds: list[tuple[Rows, Any]], of: Features) -> float:
    total = 0.0
    for rows, numbers in rounds:
        by_feature = {bet["feature"]: bet for bet in numbers}
        for panel in range(of.n_panels):
            used = [(place, by_feature[f]) for place, f in enumerate(of.features_of(panel)) if f in by_feature]

            def score(x: list[float], used: Any = used) -> float:
                u = 0.0
                for place, bet in used:
                    near, far = ((x[place] - bet["centers"][group]) / bet["scale"] for group in (own, k))
                    ratio = math.log(math.exp(-near * near / 2) + KAPPA) - math.log(math.exp(-far * far / 2) + KAPPA)
                    u += bet["fractions"][own][k] * ratio
                return math.exp(max(-6.0, min(6.0, u)))

            arm, other = sides(m, pool, panel, rows)
            if arm and other and used:
                g, h = [score(x) for x in arm], [score(x) for x in arm + other]
                total += math.log(mean_product(g, len(g)) / mean_product(h, len(g)))
    return total


def plain_counts(own: int, k: int, m: int, pool: set[int], rounds: list[tuple[Rows, Any]], of: Features) -> float:
    total = 0.0
    for rows, numbers in rounds:
        for bet in numbers:
            for panel in (p for p in range(of.n_panels) if bet["feature"] in of.features_of(p)):
                place = of.features_of(panel).index(bet["feature"])
                arm, other = sides(m, pool, panel, rows)
                if not arm or not other:
                    continue
                psi = math.exp(bet["fractions"][own][k] * (bet["logits"][own] - bet["logits"][k]))
                a, b = 3 * len(arm), 3 * len(other)  # trials
                s, t = (int(sum(x[place] for x in part)) for part in (arm, arm + other))
                odds = [psi**i * math.comb(a, i) * math.comb(b, t - i) for i in range(min(a, t) + 1)]
                total += math.log(psi**s * math.comb(a + b, t) / sum(odds))
    return total


def plain_gaussian(
    own: int, k: int, m: int, pool: set[int], rounds: list[tuple[Rows, Any]], of: Features, kappa: float
) -> float:
    total = 0.0
    rates = [0.0, *(2.0**i for i in range(3, -10, -1))]
    for feature in (0, 1, 3):
        g = r = nu = 0.0
        for rows, numbers in rounds:
            bet = next(bet for bet in numbers if bet["feature"] == feature)
            arm, other = sides(m, pool, feature, rows)
            if arm and other:
                t = bet["fractions"][own][k] * (bet["centers"][own] - bet["centers"][k])
                c = float(np.mean(arm) - np.mean(other))
                g += (2 * t * c - t * t) / (1 / len(arm) + 1 / len(other))
                for item, _, x in (row for row in rows if row[1] == feature):
                    r += (x[0] - bet["centers"][LABELS[item]]) ** 2
                    nu += 1
        if not nu:
            continue
        y = np.exp(np.linspace(math.log(1e-7 * nu / r), math.log(1e7 * nu / r), 40_001))
        logs = [math.log(0.5 if not i else 0.5 / 13) + nu / 2 * math.log1p(x) - x * r * y for i, x in enumerate(rates)]
        mixed = np.logaddexp(math.log(0.2), math.log(0.8) + g * y)
        total += float((kappa * np.logaddexp.reduce(logs, axis=0) + mixed).min())
    return total


@pytest.mark.parametrize(
    ("kind", "of", "seed"),
    [("any", APART, 1), ("any", PANELS, 2), ("counts", APART, 3), ("counts", PANELS, 4), ("gaussian", APART, 5)],
)
def test_evidence_equals_the_formula(kind: str, of: Features, seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = noise_of({"any": None, "counts": Counts(3), "gaussian": "gaussian"}[kind], 4)
    listed = [{"feature": feature} for feature in (0, 1, 3)]
    decision = {"event": "freeze", "epoch": 0, "level": 50.0, "labels": LABELS, "cores": CORES, "features": listed}
    epoch = Epoch(decision, of, evidence_for(noise))
    told: list[tuple[Rows, Any]] = []
    for number in (1, 2):
        pairs = rng.permutation(9 * of.n_panels)[: 6 * of.n_panels]
        asks = [[int(pair) % 9, int(pair) // 9, int(rng.integers(1, 3))] for pair in pairs]
        begun = Round({"round": number, "epoch": 0, "asks": asks, "bets": bets(kind, rng)}, of)
        epoch.add(begun)
        rows: Rows = []
        for item, panel, count in asks:
            size = (count, len(of.features_of(panel)))
            x = rng.integers(0, 4, size).astype(float) if kind == "counts" else rng.normal(size=size)
            begun.take(item, panel, x)
            rows += [(item, panel, row) for row in x.tolist()]
        epoch.use_complete()
        told.append((rows, list(begun.bets.values())))
    plain = {"any": plain_any, "counts": plain_counts}.get(kind)
    tests = epoch.tests
    for test in rng.permutation(len(tests))[:12]:
        m, k, other = int(tests.arm[test]), int(tests.against[test]), int(tests.other[test])
        group = {item for item, label in enumerate(LABELS) if label == k}
        pool = {other} if other >= 0 else group if tests.kind[test] == 0 else set(CORES[k])
        if plain is not None:
            expected = plain(LABELS[m], k, m, pool, told, of)
        else:
            expected = plain_gaussian(LABELS[m], k, m, pool, told, of, 1.0 if tests.whole[test] else 0.5)
        assert epoch.evidence[test] == pytest.approx(expected, abs=1e-6)


def test_results_without_noise_prove_nothing() -> None:
    zero, n = np.zeros(2), np.array([500.0, 500.0])
    assert (least_term(np.array([-1.0, 0.0]), zero, n, np.ones(2)) < 0.0).all()


def test_the_mean_of_a_power_matches_scipy() -> None:
    from scipy.stats import hypergeom

    law = hypergeom(40, 13, 15)
    expected = math.log(sum(law.pmf(s) * math.exp(0.7 * s) for s in range(14)))
    assert log_mean_power(0.7, 15.0, 25.0, 13) == pytest.approx(expected)


def void(kind: str, level: float, rng: np.random.Generator) -> bool:
    """Whether a candidate with an item in the wrong group is proven, with bets learned on the way."""
    noise = noise_of({"any": None, "counts": Counts(10), "gaussian": "gaussian"}[kind], 4)
    truth = np.repeat([0, 1], 5)
    labels = truth.copy()
    labels[4] = 1
    listed = [{"feature": feature} for feature in range(2)]
    cores = [[0, 1, 2], [5, 6, 7]]
    decision = {
        "event": "freeze",
        "epoch": 0,
        "level": level,
        "labels": labels.tolist(),
        "cores": cores,
        "features": listed,
    }
    epoch = Epoch(decision, APART, evidence_for(noise))
    rates = np.array([[0.3, 0.4], [0.7, 0.6]])
    for number in range(1, 11):
        made = []
        for feature in range(2):
            bet: dict[str, Any] = {"feature": feature, "fractions": [[1.0, 0.8], [0.8, 1.0]]}
            if kind == "counts":
                bet["logits"] = np.log(rates[:, feature] / (1 - rates[:, feature])).tolist()
            else:
                bet |= {"centers": (4 * rates[:, feature] + 0.1 * rng.normal(size=2)).tolist(), "scale": 1.0}
            made.append(bet)
        feature = int(np.argmin(epoch.evidence) + number) % 2
        asks = [[item, feature, 1 + int(item == 4)] for item in range(10)]
        begun = Round({"round": number, "epoch": 0, "asks": asks, "bets": made}, APART)
        epoch.add(begun)
        for item, panel, count in asks:
            rate = rates[truth[item], panel]
            x = rng.binomial(10, rate, count) if kind == "counts" else 4 * rate + rng.normal(size=count)
            begun.take(item, panel, np.asarray(x, dtype=float)[:, None])
        epoch.use_complete()
        if epoch.proven:
            return True
    return False


@pytest.mark.guarantee
@pytest.mark.parametrize("kind", ["any", "counts", "gaussian"])
def test_false_candidates_error_rate_within_level(kind: str) -> None:
    """1,500 runs at a level for 50 %; a false alarm has a probability below 1e-4."""
    rng = np.random.default_rng(78)
    wrong = sum(void(kind, math.log(2.0), rng) for _ in range(1500))
    of = Guarantee(kind, "features one by one", case="false candidates")
    assert_rate_at_most(0.5, wrong, 1500, of, 1e-4)
