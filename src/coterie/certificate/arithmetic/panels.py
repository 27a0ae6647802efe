"""The tests of a run that measures features apart, recomputed from its rounds: docs/FEATURES.md has the argument.

In a round and panel let a results of the item and A of the pool have feature f, C be the difference of their means, and
1/v = a·A/(a + A). A bet on f comes with the freeze, or with the round from which on the tests use f; where the noise is
not known, every round has bets on features of the freeze:

- *known*, and *bounded* with half of the range for a standard deviation, in units of it: `centers` U and `weights` W,
  θ = U_l − U_k and τ² = 1/W_l + 1/W_k of own group l and the pool's group k. With n = Σ1/v and S = ΣC/v
  log E = Σ_f ½·(2θS + τ²S² − nθ²)/(1 + nτ²) − ½·log(1 + nτ²).
- *counts*: `logits` L, log ψ = f_lk·(L_l − L_k), the conditional odds of the item's successes.
- *gaussian*: `centers` U, t = f_lk·(U_l − U_k), G = Σ(2tC − t²)/v, R the squares of all results of the feature about
  the centers of their groups and ν their number, in rounds with both sides. With V(y) of docs/EVIDENCE.md, section 4,
  log E = Σ_f inf_y κ·log V(y) + log(1 − p + p·e^{Gy}); κ·log ½ + log(1 − p) for G < 0, κ·log ½ for G = 0.
- *any*: `centers` U, `scale` s; the exchangeable bet of order 16 on whole results, with the score
  u = Σ_f f_lk·(log(e^{−z_l²/2} + κ) − log(e^{−z_k²/2} + κ)) within ±6, z_k = (x − U_k)/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from coterie.certificate.arithmetic.counts import log_mean_power
from coterie.certificate.arithmetic.factors import FLOOR, LARGEST_SCORE, log_symmetric
from coterie.certificate.claim import Tests
from coterie.certificate.composed import Composition
from coterie.certificate.fields import Bools
from coterie.certificate.freezes import Freeze
from coterie.certificate.reading import Log
from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.problem.families import Bounded, Model, Unknown, trials_of
from coterie.problem.features import Features
from coterie.problem.noise import Noise

MOST_ORDER = 16
"""Of the exchangeable bet."""
MIXED = 0.8
"""p, of Gaussian results."""
_RATES = np.array([0.0, *(2.0**power for power in range(3, -10, -1))])
_LOG_WEIGHTS = np.log(np.array([0.5, *[0.5 / 13.0] * 13]))
_STEPS = 90
_NUMBERS = {
    "known": ("centers", "weights"), "bounded": ("centers", "weights"), "counts": ("logits", "fractions"),
    "gaussian": ("centers", "fractions"), "any": ("centers", "scale", "fractions"),
}  # fmt: skip

Bets = dict[int, dict[str, FloatArray]]


class Panel(NamedTuple):
    """The results of a panel in a round that lack the same features: arms, and (n, features) values."""

    features: tuple[int, ...]
    arms: IntArray
    values: FloatArray


class PanelTests:
    """The evidence of the tests of a freeze, from results of panels."""

    def __init__(self, log: Log, features: Features, noise: Model) -> None:
        self._log, self._features, self._noise = log, features, noise
        self._units = _units(noise)

    def evidence(
        self, freeze: Freeze, rounds: Sequence[Composition], pools: str, tests: Tests, half: Bools
    ) -> FloatArray:
        """log E of tests, each by the rounds up to its last one; `pools`: "group", "core", or "arm" against arm.

        `half`: those at half of the level.
        """
        sums = _Sums(freeze, pools, tests, half, self._noise)
        bets: Bets = {}
        self._read(bets, freeze.bet, freeze, stated=self._units is not None)
        for composed in rounds:
            self._read(bets, composed.joins, freeze, stated=self._units is not None)
            if self._units is None:
                bets_of_round: Bets = {}
                self._read(bets_of_round, composed.bet, freeze, stated=True)
                stray = sorted(set(bets_of_round) - set(bets))
                if stray:
                    raise ValueError(f"round {composed.number} bets on feature {stray[0]}, which its tests do not use")
            elif composed.bet:
                raise ValueError(f"round {composed.number} has bets, but all is bet with the freeze")
            else:
                bets_of_round = bets
            for panel in self._panels(composed):
                sums.take(panel, bets_of_round, tests.counts >= composed.number)
        return sums.log_e(bets)

    def _panels(self, composed: Composition) -> Iterator[Panel]:
        """Panel by panel; results of any noise with other holes are of another panel, other noises take features apart.

        Values are in units of the noise where it is known, from one of them on, so that no digit is lost far from zero.
        """
        rows = composed.rows
        panels = self._log.panels[rows]
        for panel in np.unique(panels).tolist():
            features = self._features.features_of(panel)
            values = self._log.values[rows[panels == panel], : len(features)]
            arms, there = self._log.arms[rows[panels == panel]], ~np.isnan(values)
            if self._noise.kind == "any":
                for pattern in np.unique(there, axis=0):
                    own = (there == pattern).all(axis=1)
                    left = tuple(feature for feature, known in zip(features, pattern, strict=True) if known)
                    yield Panel(left, arms[own], values[own][:, pattern])
                continue
            for column, feature in enumerate(features):
                own = there[:, column]
                if own.any():
                    x = values[own, column]
                    x = x if self._units is None else (x - x[0]) / self._units[feature % self._units.size]
                    yield Panel((feature,), arms[own], x[:, None])

    def _read(self, bets: Bets, given: Any, freeze: Freeze, stated: bool) -> None:
        """Read bets on features. INOUT: bets. `stated`: with their numbers, else with the feature alone."""
        names, n_groups = _NUMBERS[self._noise.kind] if stated else (), len(freeze.cores)
        shapes = {"fractions": (n_groups, n_groups), "scale": ()}
        for bet in given:
            if set(bet) != {"feature", *names}:
                wanted = f"feature, {', '.join(names)}" if names else "feature alone"
                raise ValueError(f"a bet on a feature must have {wanted}, got {short(bet)}")
            numbers: dict[str, FloatArray] = {}
            for name in names:
                value = check_real_array(bet[name], name)
                if value.shape != shapes.get(name, (n_groups,)):
                    raise ValueError(f"{name} of a bet must be for {n_groups} groups, got {short(bet[name])}")
                if name in ("weights", "scale", "fractions") and not (value > 0.0).all():
                    raise ValueError(f"{name} of a bet must be above 0, got {short(bet[name])}")
                if name == "fractions" and not (value <= 1.0).all():
                    raise ValueError(f"fractions of a bet must be at most 1, got {short(bet[name])}")
                numbers[name] = value
            bets[bet["feature"]] = numbers


class _Sums:
    """What tests have gathered."""

    def __init__(self, freeze: Freeze, pools: str, tests: Tests, half: Bools, noise: Model) -> None:
        self._labels, self._core, self._n_groups = freeze.labels, freeze.in_core, len(freeze.cores)
        self._pools, self._arms, self._others = pools, tests.arms, tests.others
        self._own = freeze.labels[tests.arms]
        self._against = freeze.labels[tests.others] if pools == "arm" else tests.others
        self._kappa = np.where(half, 0.5, 1.0)
        self._kind, self._trials = noise.kind, trials_of(noise)
        self._total = np.zeros(tests.arms.size)
        self._of_feature: dict[int, FloatArray] = {}  # (3, tests)

    def take(self, panel: Panel, bets: Bets, open_tests: Bools) -> None:
        """The results of a panel in a round, for the tests that use it."""
        if self._kind == "any":
            self._exchange(panel, bets, open_tests)
            return
        (feature,), values = panel.features, panel.values[:, 0]
        if feature not in bets:
            return
        counts, totals = _by_key(panel.arms, values, self._labels.size)
        pool_counts, pool_totals = counts, totals
        if self._pools != "arm":
            kept = self._in_pools(panel.arms)
            pool_counts, pool_totals = _by_key(self._labels[panel.arms[kept]], values[kept], self._n_groups)
        a, of_pool = counts[self._arms], pool_counts[self._others]
        use = np.flatnonzero(open_tests & (a > 0.0) & (of_pool > 0.0))
        a, of_pool = a[use], of_pool[use]
        first, second = totals[self._arms[use]], pool_totals[self._others[use]]
        sums = self._of_feature.setdefault(feature, np.zeros((3, self._total.size)))
        bet, weight, apart = bets[feature], 1.0 / (1.0 / a + 1.0 / of_pool), first / a - second / of_pool
        if self._kind == "counts":
            n, odds = float(self._trials or 1), self._gap(bet, "logits", use)
            self._total[use] += first * odds - log_mean_power(odds, a * n, of_pool * n, first + second)
        elif self._kind == "gaussian":
            t = self._gap(bet, "centers", use)
            residuals = values - bet["centers"][self._labels[panel.arms]]
            sums[0, use] += (2.0 * t * apart - t**2) * weight
            sums[1, use] += float(residuals @ residuals)
            sums[2, use] += values.size
        else:
            sums[0, use] += weight
            sums[1, use] += weight * apart

    def _in_pools(self, arms: IntArray) -> Bools:
        return np.asarray(self._core[arms] if self._pools == "core" else np.ones(arms.size, dtype=bool))

    def _gap(self, bet: dict[str, FloatArray], name: str, use: IntArray) -> FloatArray:
        """f_lk·(U_l − U_k)."""
        own, against = self._own[use], self._against[use]
        return np.asarray(bet["fractions"][own, against] * (bet[name][own] - bet[name][against]))

    def _exchange(self, panel: Panel, bets: Bets, open_tests: Bools) -> None:
        scored = [(column, bets[feature]) for column, feature in enumerate(panel.features) if feature in bets]
        if not scored:
            return
        keys = panel.arms if self._pools == "arm" else np.where(
            self._in_pools(panel.arms), self._labels[panel.arms], -1
        )  # fmt: skip
        for own, against in sorted(set(zip(self._own.tolist(), self._against.tolist(), strict=True))):
            u = np.zeros(panel.arms.size)
            for column, bet in scored:
                z = (panel.values[:, column, None] - bet["centers"][[own, against]]) / bet["scale"]
                near = np.logaddexp(-0.5 * z**2, -FLOOR)
                u += bet["fractions"][own, against] * (near[:, 0] - near[:, 1])
            u = np.clip(u, -LARGEST_SCORE, LARGEST_SCORE)
            of_pools: dict[int, FloatArray] = {}
            for test in np.flatnonzero(open_tests & (self._own == own) & (self._against == against)).tolist():
                mine, other = u[panel.arms == self._arms[test]], int(self._others[test])
                if other not in of_pools:
                    of_pools[other] = _log_sums(u[keys == other])
                many = int((keys == other).sum())
                if mine.size and many:
                    j = min(mine.size, MOST_ORDER)
                    alone, both = _log_sums(mine)[j], log_symmetric(of_pools[other][None], mine[None])[0, j]
                    chances = math.log(math.comb(mine.size + many, j)) - math.log(math.comb(mine.size, j))
                    self._total[test] += alone - both + chances

    def log_e(self, bets: Bets) -> FloatArray:
        """log E of all tests."""
        total = self._total.copy()
        for feature, sums in self._of_feature.items():
            if self._kind == "gaussian":
                total += _least(sums[0], sums[1], sums[2], self._kappa)
            elif self._kind != "counts":
                centers, weights = bets[feature]["centers"], bets[feature]["weights"]
                theta = centers[self._own] - centers[self._against]
                square = 1.0 / weights[self._own] + 1.0 / weights[self._against]
                grown = 1.0 + sums[0] * square
                gain = 2.0 * theta * sums[1] + square * sums[1] ** 2 - sums[0] * theta**2
                total += 0.5 * gain / grown - 0.5 * np.log(grown)
        return total


def _log_sums(u: FloatArray) -> FloatArray:
    """log E_0 … E_16 of the numbers e^u."""
    nothing = np.full((1, MOST_ORDER + 1), -np.inf)
    nothing[0, 0] = 0.0
    sums: FloatArray = log_symmetric(nothing, u[None])[0]
    return sums


def _by_key(keys: IntArray, values: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """How many values each key has, and their sum."""
    counts, sums = np.bincount(keys, minlength=size), np.bincount(keys, values, minlength=size)
    return counts.astype(np.float64), sums.astype(np.float64)


def _least(g: FloatArray, r: FloatArray, nu: FloatArray, kappa: FloatArray) -> FloatArray:
    """The term of a feature for Gaussian results: of what is to be as small as possible, by golden section in log y."""
    unit = np.where(r > 0.0, nu / np.where(r > 0.0, r, 1.0), 1.0)
    up = np.maximum(g, 0.0)

    def at(log_y: FloatArray) -> FloatArray:
        y = unit * np.exp(log_y)
        logs = _LOG_WEIGHTS + 0.5 * nu[:, None] * np.log1p(_RATES) - (r * y)[:, None] * _RATES
        v = np.logaddexp.reduce(logs, axis=1)
        return np.asarray(kappa * v + np.logaddexp(math.log1p(-MIXED), math.log(MIXED) + up * y))

    low, high = np.full(g.size, -21.0), np.full(g.size, 21.0)
    part = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(_STEPS):
        first, second = high - part * (high - low), low + part * (high - low)
        left = at(first) <= at(second)
        low, high = np.where(left, low, first), np.where(left, second, high)
    floor = kappa * math.log(0.5)
    term = np.where(g > 0.0, at(0.5 * (low + high)), np.where(g < 0.0, floor + math.log1p(-MIXED), floor))
    return np.where(nu > 0.0, term, 0.0)


def _units(noise: Model) -> FloatArray | None:
    """The standard deviation of each feature, one for all or one each; None if none is stated."""
    if isinstance(noise, Unknown):
        stated = noise.statement
        return np.atleast_1d(np.subtract(stated.hi, stated.lo) / 2.0) if isinstance(stated, Bounded) else None
    assert isinstance(noise, Noise)
    plain: Any = noise.to_json()
    plain = plain["noise"] if isinstance(plain, dict) else plain
    deviations = np.asarray(1.0 if plain is None else plain, dtype=np.float64)
    return np.sqrt(np.diagonal(deviations)) if deviations.ndim == 2 else np.atleast_1d(deviations)
