"""What the results of a cell are worth to the tests of a candidate, for each noise (docs/EVIDENCE.md, docs/BLOCKS.md).

In all of them C is the mean of the arm's results of the cell minus that of the pool's, of a and A results, and
v = 1/a + 1/A. Results count from the first of the cell, so that an offset of its block has cancelled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from coterie.methods.blocks.bets import Numbers
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model, Unknown

if TYPE_CHECKING:
    from coterie.methods.blocks.epoch import FrozenTests

MOST_AT_STAKE = 0.95
"""Of a bet on bounded results."""
LARGEST_SIGN = 1.5
"""Of a bet on the sign of a contrast."""
_RATES: FloatArray = np.concatenate([[0.0], 2.0 ** np.arange(3, -10, -1)])
_LOG_WEIGHTS: FloatArray = np.log(np.concatenate([[0.5], np.full(13, 0.5 / 13.0)]))
_HALVINGS = 60


class Used:
    """The results of a cell: of each arm their number and sum, and the bet on them."""

    def __init__(self, arms: IntArray, x: FloatArray, raw: FloatArray, bet: Any, n_arms: int, pulls: IntArray) -> None:
        self.pulls, self.arms, self.x, self.raw, self.bet, self.n_arms = pulls, arms, x, raw, bet, n_arms
        self.counts = np.bincount(arms, minlength=n_arms).astype(np.float64)
        self.sums = self.summed(x)

    def summed(self, rows: FloatArray) -> FloatArray:
        """(M, …) the sum of rows of each arm."""
        sums = np.zeros((self.n_arms, rows.shape[1]))
        np.add.at(sums, self.arms, rows)
        return sums


class Sides(NamedTuple):
    """The tests that a cell has results of both sides for: their places, who, and how much."""

    tests: IntArray
    own: IntArray  # the group of the arm
    other: IntArray
    arm: IntArray
    a: FloatArray
    A: FloatArray
    pool: FloatArray  # (tests, M)

    @property
    def spread(self) -> FloatArray:
        """v."""
        return 1.0 / self.a + 1.0 / self.A

    def contrast(self, sums: FloatArray) -> FloatArray:
        """C, of sums (M, d)."""
        return np.asarray(sums[self.arm] / self.a[:, None] - self.pool @ sums / self.A[:, None])


@dataclass
class State:
    """What the tests of an epoch have gathered."""

    tests: FrozenTests
    labels: IntArray
    share: FloatArray  # 1, or ½ at half of the level
    numbers: Numbers | None  # bet with the freeze
    total: FloatArray  # log e, or for Gaussian results G
    more: dict[str, Any] = field(default_factory=dict)

    def sides(self, used: Used, tests: IntArray) -> Sides:
        """Of these tests, those that the cell has results of both sides for."""
        a = used.counts[self.tests.arm[tests]]
        tests = tests[a > 0.0]
        pool = self.tests.pool[tests]
        count = pool @ used.counts
        both = count > 0.0
        tests, pool = tests[both], pool[both]
        arm = self.tests.arm[tests]
        return Sides(
            tests, self.tests.group[tests], self.tests.against[tests], arm, used.counts[arm], count[both], pool
        )


class Factors:
    """The evidence of one noise: `begin` with a freeze, `take` a cell after the other."""

    def __init__(self, noise: Model, n_groups: int, dim: int) -> None:
        self.noise, self.n_groups, self.dim = noise, n_groups, dim
        self.stated = noise.statement if isinstance(noise, Unknown) else None

    def begin(self, tests: FrozenTests, labels: IntArray, share: FloatArray, bet: Any) -> State:
        """Nothing gathered yet."""
        numbers = None if bet is None else Numbers.of(self.noise, bet, self.n_groups, self.dim, frozen=True)
        return State(tests, labels, share, numbers, np.zeros(len(tests)))

    def take(self, state: State, used: Used, tests: IntArray) -> FloatArray:
        """log e of these tests with the results of one more cell."""
        raise NotImplementedError

    def jointly(self, state: State, used: Used, pairs: IntArray) -> FloatArray:
        """What a cell adds to log e of two tests at a time, (n, 2) places, where they may depend on one another."""
        raise NotImplementedError


class ProductFactors(Factors):
    """Evidence that is a product over cells."""

    def take(self, state: State, used: Used, tests: IntArray) -> FloatArray:
        sides = state.sides(used, tests)
        if sides.tests.size:
            numbers = Numbers.of(self.noise, used.bet, self.n_groups, self.dim)
            state.total[sides.tests] += self.log_factors(state, used, sides, numbers)
        return state.total[tests]

    def log_factors(self, state: State, used: Used, sides: Sides, bet: Numbers) -> FloatArray:
        """What a cell adds to log e."""
        raise NotImplementedError


class KnownFactors(Factors):
    """A known covariance, results in its units: a Gaussian mixture around the difference guessed at the freeze."""

    def begin(self, tests: FrozenTests, labels: IntArray, share: FloatArray, bet: Any) -> State:
        state = super().begin(tests, labels, share, bet)
        assert state.numbers is not None
        centers, squares = state.numbers["U"], state.numbers["τ²"]
        state.more = {
            "θ0": centers[tests.group] - centers[tests.against],
            "τ²": squares[tests.group, tests.against],
            "n": np.zeros(len(tests)),
            "S": np.zeros((len(tests), self.dim)),
        }
        return state

    def take(self, state: State, used: Used, tests: IntArray) -> FloatArray:
        sides, more = state.sides(used, tests), state.more
        weight = 1.0 / sides.spread
        more["n"][sides.tests] += weight
        more["S"][sides.tests] += weight[:, None] * sides.contrast(used.sums)
        theta, square, n, sums = (more[name][tests] for name in ("θ0", "τ²", "n", "S"))
        return directed(theta, square, n, sums)


def directed(theta: FloatArray, square: FloatArray, n: FloatArray, sums: FloatArray) -> FloatArray:
    """−(d/2)·log(1 + nτ²) + [‖θ0 + τ²S‖²/(1+nτ²) − ‖θ0‖²]/(2τ²), multiplied out."""
    grown = 1.0 + n * square
    inner = 2.0 * (sums * theta).sum(axis=1) + square * (sums * sums).sum(axis=1) - n * (theta * theta).sum(axis=1)
    return np.asarray(inner / (2.0 * grown) - 0.5 * sums.shape[1] * np.log(grown))


def log_binomial(n: Any, k: Any) -> FloatArray:
    """log of n over k."""
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


class CountsFactors(ProductFactors):
    """Conditional odds, given the successes of both sides in the cell."""

    def log_factors(self, state: State, used: Used, sides: Sides, bet: Numbers) -> FloatArray:
        assert isinstance(self.stated, Counts)
        trials = float(self.stated.trials)
        odds = bet["f"][sides.own, sides.other][:, None] * (bet["L"][sides.own] - bet["L"][sides.other])  # log ψ
        sums = used.summed(used.raw)
        won, lost = sums[sides.arm], sides.pool @ sums
        total = np.zeros(sides.tests.size)
        for q in range(self.dim):
            expected = log_mean_power(odds[:, q], sides.a * trials, sides.A * trials, won[:, q] + lost[:, q])
            total += won[:, q] * odds[:, q] - expected
        return total


def log_mean_power(log_odds: FloatArray, trials: FloatArray, others: FloatArray, successes: FloatArray) -> FloatArray:
    """log E[ψ^s] of s, hypergeometric: successes among `trials` of trials + others, of which so many succeed."""
    least, most = np.maximum(0.0, successes - others), np.minimum(trials, successes)
    s = least[:, None] + np.arange(int((most - least).max(initial=0.0)) + 1)
    inside = s <= most[:, None]
    s = np.where(inside, s, least[:, None])
    n, rest, both = trials[:, None], others[:, None], successes[:, None]
    terms = log_binomial(n, s) + log_binomial(rest, both - s) - log_binomial(n + rest, both) + s * log_odds[:, None]
    terms = np.where(inside, terms, -np.inf)
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))


class BoundedFactors(ProductFactors):
    """1 + λ·C, with λ so small that it is at least 0.05 whatever the results."""

    def log_factors(self, state: State, used: Used, sides: Sides, bet: Numbers) -> FloatArray:
        gain, risk, square = self._sides(used, sides, bet)
        most = sides.spread + square
        return _at_stake(gain / most, risk / most)

    def _sides(self, used: Used, sides: Sides, bet: Numbers) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of f·(G_l − G_k): times C, its largest size times any C, and the square of the mean that is expected."""
        assert isinstance(self.stated, Bounded)
        fraction, square = bet["f"][sides.own, sides.other], bet["Δ²"][sides.own, sides.other]
        direction = fraction[:, None] * (bet["G"][sides.own] - bet["G"][sides.other])
        width = np.broadcast_to(np.subtract(self.stated.hi, self.stated.lo), self.dim)
        gain = (direction * sides.contrast(used.sums)).sum(axis=1)
        return gain, np.abs(direction) @ width, fraction**2 * square

    def jointly(self, state: State, used: Used, pairs: IntArray) -> FloatArray:
        """1 + λ·C + λ'·C'."""
        sides = state.sides(used, np.unique(pairs))
        n = len(state.tests)
        gain, risk, square, spread = np.zeros(n), np.zeros(n), np.zeros(n), np.ones(n)
        if sides.tests.size:
            bet = Numbers.of(self.noise, used.bet, self.n_groups, self.dim)
            gain[sides.tests], risk[sides.tests], square[sides.tests] = self._sides(used, sides, bet)
            spread[sides.tests] = sides.spread
        most = spread[pairs] + square[pairs].sum(axis=1)[:, None]
        return _at_stake((gain[pairs] / most).sum(axis=1), (risk[pairs] / most).sum(axis=1))


def _at_stake(gain: FloatArray, risk: FloatArray) -> FloatArray:
    """log(1 + gain), made smaller where more would be at stake than may be."""
    return np.asarray(np.log1p(gain * np.minimum(1.0, MOST_AT_STAKE / np.where(risk > 0.0, risk, 1.0))))


class AtMostFactors(ProductFactors):
    """(1 + x + x²/2)/(1 + w/2), x = θ·C/v, w = ‖θ‖²/v, in units of the covariance stated."""

    def log_factors(self, state: State, used: Used, sides: Sides, bet: Numbers) -> FloatArray:
        theta = bet["f"][sides.own, sides.other][:, None] * (bet["U"][sides.own] - bet["U"][sides.other])
        x = (theta * sides.contrast(used.sums)).sum(axis=1) / sides.spread
        return np.asarray(np.log1p(x + 0.5 * x**2) - np.log1p(0.5 * (theta**2).sum(axis=1) / sides.spread))


class SymmetricFactors(ProductFactors):
    """2/(1 + e^{−2x}), x = f·(G_l − G_k)·C over its guessed variance, within ±1.5."""

    def log_factors(self, state: State, used: Used, sides: Sides, bet: Numbers) -> FloatArray:
        variance = np.zeros(used.n_arms)
        variance[np.unique(used.pulls)] = bet["s²"]
        direction = bet["f"][sides.own, sides.other][:, None] * (bet["G"][sides.own] - bet["G"][sides.other])
        seen = (direction * sides.contrast(used.sums)).sum(axis=1)
        spread = variance[sides.arm] / sides.a + sides.pool @ (used.counts * variance) / sides.A**2
        return np.asarray(math.log(2.0) - np.logaddexp(0.0, -2.0 * np.clip(seen / spread, -LARGEST_SIGN, LARGEST_SIGN)))


class GaussianFactors(Factors):
    """Covariance unknown: the infimum over the variance, with residuals centred in the cell (Lemma D there)."""

    def begin(self, tests: FrozenTests, labels: IntArray, share: FloatArray, bet: Any) -> State:
        state = super().begin(tests, labels, share, bet)
        assert state.numbers is not None
        centers, gap = state.numbers["G"], state.numbers["Δ"]
        direction = (centers[:, None] - centers) / np.where(np.eye(self.n_groups) > 0, 1.0, gap)[:, :, None]
        state.more = {"η": direction, "R": np.zeros((self.n_groups, self.n_groups)), "ν": 0.0}
        return state

    def take(self, state: State, used: Used, tests: IntArray) -> FloatArray:
        assert isinstance(self.stated, Gaussian)
        more, bet = state.more, Numbers.of(self.noise, used.bet, self.n_groups, self.dim)
        away = used.x - bet["U"][state.labels[used.arms]]
        away -= away.mean(axis=0)
        if self.stated.shape == "scalar":
            more["R"] += (more["η"] ** 2).sum(axis=2) * float((away**2).sum())
            more["ν"] += float(self.dim * (len(away) - 1))
        else:
            more["R"] += ((more["η"] @ away.T) ** 2).sum(axis=2)
            more["ν"] += float(len(away) - 1)
        sides = state.sides(used, tests)
        direction = more["η"][sides.own, sides.other]
        shift = bet["U"][sides.own] - bet["U"][sides.other]
        t = bet["f"][sides.own, sides.other] * (direction * shift).sum(axis=1)
        seen = (direction * sides.contrast(used.sums)).sum(axis=1)
        state.total[sides.tests] += (2.0 * t * seen - t**2) / sides.spread
        scatter = more["R"][state.tests.group[tests], state.tests.against[tests]]
        return smallest(state.total[tests], scatter, more["ν"], state.share[tests])


def smallest(gain: FloatArray, scatter: FloatArray, count: float, share: FloatArray) -> FloatArray:
    """inf over y > 0 of κ·log V(y) + G·y, by bisection on the slope; G ≤ 0 never gives evidence."""
    least = np.where(gain < 0.0, -np.inf, share * _LOG_WEIGHTS[0])
    rising = np.flatnonzero(gain > 0.0)
    if not rising.size:
        return least
    with np.errstate(divide="ignore"):
        slope = (gain / scatter)[rising][:, None]
    kappa = share[rising][:, None]
    price = _LOG_WEIGHTS + 0.5 * count * np.log1p(_RATES)

    def at(s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log V at R·y = s, and the mean of λ there."""
        exponents = price - _RATES * s
        top = exponents.max(axis=1, keepdims=True)
        terms = np.exp(exponents - top)
        total = terms.sum(axis=1, keepdims=True)
        return top + np.log(total), (terms * _RATES).sum(axis=1, keepdims=True) / total

    low, high = np.zeros_like(slope), np.full_like(slope, 1e-3)
    for _ in range(400):
        more = kappa * at(high)[1] > slope
        if not more.any():
            break
        low, high = np.where(more, high, low), np.where(more, 2.0 * high, high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = kappa * at(middle)[1] > slope
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    s = np.where(np.isfinite(slope) & (low > 0.0), 0.5 * (low + high), np.where(np.isfinite(slope), high, 0.0))
    s = np.where(kappa * at(np.zeros_like(slope))[1] > slope, s, 0.0)
    value = kappa * at(s)[0] + np.where(s > 0.0, slope * s, 0.0)
    least[rising] = value[:, 0]
    return least
