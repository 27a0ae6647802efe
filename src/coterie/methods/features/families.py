"""What a noise is to a run where features are measured apart: units, what is bet, and what the tests gather.

Where the noise is not known (counts, Gaussian results of unknown size, any results) every round comes with bets on the
features of the freeze (docs/FEATURES.md, section 3), and results are in the user's units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.special import gammaln

from coterie.methods.features.epoch import MakeEvidence
from coterie.methods.features.evidence import (
    CORE,
    GROUP,
    Contrasts,
    Evidence,
    FrozenTests,
    KnownEvidence,
    PanelRows,
    RoundSums,
)
from coterie.methods.features.grouping import Groups, errors_of
from coterie.methods.features.measured import LearnedScale, RateScale, Scale, StatedScale
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Bounded, Model, Unknown, trials_of
from coterie.problem.noise import Noise
from coterie.problem.settings import SettingError, Settings

Bets = Mapping[int, Mapping[str, Any]]

ORDER, CLIP, FLOOR = 16, 6.0, 6.125
"""Of the exchangeable bet: J, the largest score, −log κ."""
MIXED = 0.8
"""p: with a weight of 1 − p a feature says nothing of a difference."""
_RATES: FloatArray = np.concatenate([[0.0], 2.0 ** np.arange(3, -10, -1)])
_LOG_WEIGHTS: FloatArray = np.log(np.concatenate([[0.5], np.full(13, 0.5 / 13.0)]))
_HALVINGS = 60


class BettedEvidence(Evidence):
    """Evidence by rounds with bets on single features, from sums of items and pools."""

    def __init__(self, tests: FrozenTests, labels: IntArray, core_of: IntArray, n_groups: int) -> None:
        super().__init__(tests)
        self._labels, self._core_of, self._n_groups = labels, core_of, n_groups
        self._total = np.zeros(len(tests))

    def take(self, panel_rows: Sequence[PanelRows], bets: Bets, chosen: IntArray) -> None:
        for rows in panel_rows:
            for column, feature in enumerate(rows.features):
                there = ~np.isnan(rows.x[:, column])
                if feature in bets and there.any():
                    items, x = rows.items[there], rows.x[there, column]
                    sums = RoundSums(items, x, self._labels, self._core_of, self._n_groups)
                    self._take_feature(bets[feature], sums, sums.contrasts(self.tests, chosen))

    def _take_feature(self, bet: Mapping[str, Any], sums: RoundSums, sides: Contrasts) -> None:
        raise NotImplementedError

    def _shortened(self, bet: Mapping[str, Any], name: str, sides: Contrasts) -> FloatArray:
        """f_lk·(U_l − U_k) of these tests."""
        centers, fractions = np.array(bet[name]), np.array(bet["fractions"])
        own, against = self.tests.own[sides.tests], self.tests.against[sides.tests]
        return np.asarray(fractions[own, against] * (centers[own] - centers[against]))

    def log_e(self, chosen: IntArray) -> FloatArray:
        return self._total[chosen]


class CountsEvidence(BettedEvidence):
    """Counts of successes: conditional odds, feature by feature."""

    def __init__(self, trials: int, tests: FrozenTests, labels: IntArray, core_of: IntArray, n_groups: int) -> None:
        super().__init__(tests, labels, core_of, n_groups)
        self._trials = float(trials)

    def _take_feature(self, bet: Mapping[str, Any], sums: RoundSums, sides: Contrasts) -> None:
        log_odds, n = self._shortened(bet, "logits", sides), self._trials
        of_item = sums.sums[self.tests.arm[sides.tests]]
        of_pool = (of_item / sides.a - sides.C) * sides.A
        for i, test in enumerate(sides.tests):
            successes, both = round(float(of_item[i])), round(float(of_item[i] + of_pool[i]))
            expected = log_mean_power(float(log_odds[i]), sides.a[i] * n, sides.A[i] * n, both)
            self._total[test] += successes * log_odds[i] - expected


def log_mean_power(log_odds: float, trials: float, others: float, successes: int) -> float:
    """log E[ψ^s]: s counts the successes among `trials` of trials + others, of which `successes` succeed, at random."""
    s = np.arange(max(0.0, successes - others), min(trials, successes) + 1.0)
    logs = _log_choose(trials, s) + _log_choose(others, successes - s) - _log_choose(trials + others, successes)
    logs = logs + s * log_odds
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _log_choose(n: Any, k: Any) -> Any:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


class GaussianEvidence(BettedEvidence):
    """Gaussian results of unknown size, one size for each feature."""

    def __init__(self, tests: FrozenTests, labels: IntArray, core_of: IntArray, n_groups: int) -> None:
        super().__init__(tests, labels, core_of, n_groups)
        self._places: dict[int, int] = {}
        self._kappa = np.where(tests.whole, 1.0, 0.5)
        empty = np.zeros((len(tests), 0))
        self._g, self._r, self._nu = empty, empty, empty

    def join(self, bet: Mapping[str, Any]) -> None:
        self._places[bet["feature"]] = len(self._places)
        zeros = np.zeros((len(self.tests), 1))
        self._g, self._r, self._nu = (np.hstack([part, zeros]) for part in (self._g, self._r, self._nu))

    def _take_feature(self, bet: Mapping[str, Any], sums: RoundSums, sides: Contrasts) -> None:
        place, t = self._places[bet["feature"]], self._shortened(bet, "centers", sides)
        residuals = sums.x - np.array(bet["centers"])[self._labels[sums.items]]
        self._g[sides.tests, place] += (2.0 * t * sides.C - t * t) * sides.weight
        self._r[sides.tests, place] += float((residuals**2).sum())
        self._nu[sides.tests, place] += residuals.size

    def log_e(self, chosen: IntArray) -> FloatArray:
        total = np.zeros(chosen.size)
        for place in range(len(self._places)):
            used = self._nu[chosen, place] > 0.0
            of = chosen[used]
            total[used] += least_term(self._g[of, place], self._r[of, place], self._nu[of, place], self._kappa[of])
        return total


def least_term(g: FloatArray, r: FloatArray, nu: FloatArray, kappa: FloatArray) -> FloatArray:
    """inf over y > 0 of κ·log V(y) + log(1 − p + p·e^{Gy}): a convex function, by halving on the sign of its slope."""
    floor = kappa * math.log(0.5)
    if not g.size:
        return floor
    unit = np.where(r > 0.0, nu / np.where(r > 0.0, r, 1.0), 1.0)  # y is about 1/(2ω)
    low, high = np.full(g.size, math.log(1e-9)), np.full(g.size, math.log(1e9))
    up = np.maximum(g, 0.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        y = unit * np.exp(middle)
        logs = _LOG_WEIGHTS[:, None] + 0.5 * nu * np.log1p(_RATES)[:, None] - _RATES[:, None] * (r * y)
        weight = np.exp(logs - logs.max(axis=0))
        slope = -kappa * r * (weight * _RATES[:, None]).sum(axis=0) / weight.sum(axis=0)
        share = 1.0 / (1.0 + (1.0 - MIXED) / MIXED * np.exp(-np.minimum(up * y, 700.0)))
        rising = slope + up * share > 0.0
        high, low = np.where(rising, middle, high), np.where(rising, low, middle)
    y = unit * np.exp(0.5 * (low + high))
    logs = _LOG_WEIGHTS[:, None] + 0.5 * nu * np.log1p(_RATES)[:, None] - _RATES[:, None] * (r * y)
    top = logs.max(axis=0)
    value = kappa * (top + np.log(np.exp(logs - top).sum(axis=0)))
    value = value + np.logaddexp(math.log(1.0 - MIXED), math.log(MIXED) + up * y)
    value = np.where(g < 0.0, floor + math.log(1.0 - MIXED), value)
    return np.asarray(np.where(g == 0.0, floor, value))


class AnyEvidence(Evidence):
    """Any results: the exchangeable bet on whole results of a panel."""

    def __init__(self, tests: FrozenTests, labels: IntArray, core_of: IntArray, n_groups: int) -> None:
        super().__init__(tests)
        self._labels, self._core_of, self._n_groups = labels, core_of, n_groups
        self._total = np.zeros(len(tests))

    def take(self, panel_rows: Sequence[PanelRows], bets: Bets, chosen: IntArray) -> None:
        for rows in panel_rows:
            patterns, which = np.unique(np.isnan(rows.x), axis=0, return_inverse=True)
            for number in range(len(patterns)):  # results with other holes are results of another panel
                part = np.flatnonzero(which.reshape(-1) == number)
                scores = [
                    self._scores(bets[feature], rows.x[part, column])
                    for column, feature in enumerate(rows.features)
                    if feature in bets and not patterns[number, column]
                ]
                if scores:
                    self._take_scores(rows.items[part], np.clip(sum(scores), -CLIP, CLIP), chosen)

    @staticmethod
    def _scores(bet: Mapping[str, Any], x: FloatArray) -> Any:
        """(K, K, n) f·(log density ratio of groups l and k, with a floor)."""
        centers = np.array(bet["centers"])[:, None]
        near = np.logaddexp(-0.5 * ((x - centers) / bet["scale"]) ** 2, -FLOOR)
        return np.array(bet["fractions"])[:, :, None] * (near[:, None] - near[None])

    def _take_scores(self, items: IntArray, u: FloatArray, chosen: IntArray) -> None:
        """Results (n) of items with scores (K, K, n)."""
        sums = RoundSums(items, np.zeros(items.size), self._labels, self._core_of, self._n_groups)
        sides = sums.contrasts(self.tests, chosen)
        if not sides.tests.size:
            return
        order = int(min(ORDER, sides.a.max()))
        own, against = self.tests.own[sides.tests], self.tests.against[sides.tests]
        for pair in np.unique(own * self._n_groups + against):
            group, other = divmod(int(pair), self._n_groups)
            these = np.flatnonzero((own == group) & (against == other))
            self._take_pair(items, np.exp(u[group, other]), other, sides.of(these), order)

    def _take_pair(self, items: IntArray, g: FloatArray, other: int, sides: Contrasts, order: int) -> None:
        """Tests of one group against another."""
        of_items = _symmetric_sums(items, self._labels.size, g, order)
        kind = self.tests.kind[sides.tests]
        pools = of_items[self.tests.other[sides.tests]]
        for pool_kind, members in ((GROUP, self._labels == other), (CORE, self._core_of == other)):
            pools[kind == pool_kind] = _product(of_items[members])
        arms = of_items[self.tests.arm[sides.tests]]
        both, places = _times(arms, pools), np.arange(len(arms))
        j = np.minimum(sides.a, order).astype(np.int64)
        chances = _log_choose(sides.a + sides.A, j) - _log_choose(sides.a, j)
        self._total[sides.tests] += np.log(arms[places, j]) - np.log(both[places, j]) + chances

    def log_e(self, chosen: IntArray) -> FloatArray:
        return self._total[chosen]


def _symmetric_sums(items: IntArray, n_items: int, g: FloatArray, order: int) -> FloatArray:
    """(M, order + 1) E_0, … of the numbers g of each item."""
    sums = np.zeros((n_items, order + 1))
    sums[:, 0] = 1.0
    by_item = np.argsort(items, kind="stable")
    starts = np.searchsorted(items[by_item], np.arange(n_items))
    rank = np.arange(items.size) - starts[items[by_item]]
    for turn in range(int(rank.max(initial=-1)) + 1):
        places = by_item[rank == turn]
        who = items[places]
        sums[who, 1:] += g[places, None] * sums[who, :-1]
    return sums


def _times(first: FloatArray, second: FloatArray) -> FloatArray:
    """Rows of E_0, … of two sets of numbers together."""
    product, width = np.zeros_like(first), first.shape[1]
    for j in range(width):
        product[:, j:] += first[:, j, None] * second[:, : width - j]
    return product


def _product(rows: FloatArray) -> FloatArray:
    """E_0, … of the numbers of all rows together."""
    while len(rows) > 1:
        half = len(rows) // 2
        rows = np.concatenate([_times(rows[:half], rows[half : 2 * half]), rows[2 * half :]])
    return np.asarray(rows[0])


KINDS = frozenset({"known", "bounded", "counts", "gaussian", "any"})
"""Of noises for which there is evidence here."""
LEAST_FRACTION = 0.3
MOST_CORRELATED = 2000
"""A covariance of more features is none that anybody states."""

Points: TypeAlias = Callable[[FloatArray, Sequence[int]], FloatArray]
"""(results, their features) → the points that evidence is made of."""


def sds_of(noise: Model) -> FloatArray | None:
    """The standard deviation of each feature, one for all or one each; None if none is stated.

    Results within bounds are sub-Gaussian with half of their range (docs/FEATURES.md).
    """
    if isinstance(noise, Noise):
        return noise.deviations
    stated = noise.statement
    if isinstance(stated, Bounded):
        return np.atleast_1d((np.asarray(stated.hi) - np.asarray(stated.lo)) / 2.0)
    return None


def scale_for(noise: Model) -> Scale:
    """In what the rule measures gaps."""
    sds, trials = sds_of(noise), trials_of(noise)
    if sds is not None:
        return StatedScale(sds)
    return LearnedScale() if trials is None else RateScale(trials)


def points_of(noise: Model) -> Points:
    """In what units evidence is: of the noise, where it is stated."""
    sds = sds_of(noise)
    if sds is None:
        return lambda x, features: x
    return lambda x, features: x / (sds if sds.size == 1 else sds[list(features)])


def check_noise(settings: Settings) -> None:
    """That there is evidence for the noise where features are measured one by one; `SettingError` says what to do."""
    features, kind, words = settings.features, settings.noise.kind, settings.noise.words
    if features is None:
        return
    if kind not in KINDS:
        raise SettingError(
            f"there is no evidence for {words} where features are measured one by one: state any noise, "
            '"gaussian", counts, bounds or a standard deviation, or leave features out',
            "noise",
        )
    if isinstance(settings.noise, Unknown) and getattr(settings.noise.statement, "shape", None) is True:
        raise SettingError(
            "spread and shape are not bet on where features are measured one by one: leave shape out, or features",
            "noise",
        )
    if features.width > 1 and (kind in ("bounded", "gaussian") or _correlated(settings.noise)):
        raise SettingError(
            "panels of several features need any noise, counts, or a known noise that is independent between "
            f"features, got {words}: measure every feature alone, or state a standard deviation for each",
            "noise",
        )


def _correlated(noise: Model) -> bool:
    if not isinstance(noise, Noise) or noise.is_identity or noise.dim > MOST_CORRELATED:
        return False
    covariance = noise.covariance
    return bool((covariance != np.diag(np.diagonal(covariance))).any())


def evidence_for(noise: Model) -> MakeEvidence:
    """What tests gather."""
    if sds_of(noise) is not None:
        return KnownEvidence
    trials = trials_of(noise)
    if trials is not None:
        return partial(CountsEvidence, trials)
    return GaussianEvidence if noise.kind == "gaussian" else AnyEvidence


def bets_for(noise: Model, groups: Groups) -> list[dict[str, Any]]:
    """What is bet with a freeze on each feature that was found; with rounds, where the noise is not known."""
    if sds_of(noise) is None:
        return [{"feature": feature} for feature in groups.features]
    means, weights = groups.centers()
    return [
        {"feature": feature, "centers": means[:, place].tolist(), "weights": weights[:, place].tolist()}
        for place, feature in enumerate(groups.features)
    ]


def round_bets_for(noise: Model, groups: Groups) -> list[dict[str, Any]]:
    """What is bet with a round on each feature that was found; nothing where all is bet with the freeze."""
    if sds_of(noise) is not None:
        return []
    means, weights = groups.centers()
    gaps = means[:, None] - means[None]
    shares = 1.0 - errors_of(weights) ** 2 / np.maximum(gaps**2, 1e-12)
    fractions = np.clip(shares, LEAST_FRACTION, 1.0)
    bets, trials = [], trials_of(noise)
    for place, feature in enumerate(groups.features):
        bet: dict[str, Any] = {"feature": feature, "fractions": fractions[:, :, place].tolist()}
        sd, centers = groups.measured.sd(feature), means[:, place]
        if trials is not None:
            n = weights[:, place] * trials
            successes = np.clip(centers * sd * weights[:, place], 0.0, n)
            bet["logits"] = (np.log(successes + 0.5) - np.log(n - successes + 0.5)).tolist()
        else:
            bet["centers"] = (centers * sd).tolist()
            if noise.kind == "any":
                bet["scale"] = sd
        bets.append(bet)
    return bets
