"""What a log says against the way in which its data were made: alarms, computed a second time, in plain NumPy.

Each is for nothing with probability at most 1 %, for any rule of sampling. The proofs are in `coterie.evidence`
(order_evidence, dependence_evidence, noise_evidence, failure_evidence); here everything is computed from the log alone,
one item after the other. An alarm refuses nothing: it is a warning of `verify`, and a remark of the certificate, which
has to name those that its log gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Model, Unknown
from coterie.problem.noise import Noise

LEVEL = 0.01
_STAKES = np.array([-0.9, -0.5, -0.25, 0.25, 0.5, 0.9])  # λ
_SHIFTS = np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])  # θ
_KAPPAS = np.array([0.97, 0.9, 0.75, 0.5])  # κ
_NEAR = ((0.4, 0.9), (0.7, 0.9), (0.7, 1.2), (0.85, 0.6))  # ρ, τ
_PRIORS = ((0.2, 0.8), (1.0, 4.0), (5.0, 20.0), (0.5, 4.5), (2.5, 22.5), (0.25, 12.25), (1.0, 49.0))
_LARGER = (1.15, 1.4, 2.0, 4.0, 8.0)  # standard deviations, in units of the stated one
_OUTLIERS = (0.1, 7.0)  # a share of differences, and their standard deviation
_PAIRS_SHARE = 0.9  # of the level for differences of pairs; the rest is for single items
_NOISE_STAKES = (0.02, 0.1, 0.3, 0.7)
_MOST_ITEMS, _MOST_COLUMNS, _ROOM = 2000, 16, 2**13


@dataclass(frozen=True)
class LogResults:
    """What alarms are computed from: the results of a log in their order, and the asks that failed."""

    arms: IntArray  # (n)
    values: FloatArray  # (n, d)
    late: FloatArray  # (n) 1: overtaken by the result of a later ask
    asked: FloatArray  # (n) 1: somebody asked for it
    failed: IntArray  # arms of asks that failed
    n_arms: int
    pairs: IntArray  # (p, 2) results whose difference is noise, both decided on before either was known


@dataclass(frozen=True)
class LogAlarm:
    """An alarm: evidence and threshold are logs."""

    kind: str
    seen: str
    evidence: float
    threshold: float

    def to_json(self) -> dict[str, Any]:
        """As a certificate has it."""
        return {"kind": self.kind, "seen": self.seen, "evidence": self.evidence, "threshold": self.threshold,
                "level": LEVEL}  # fmt: skip


def alarms_of_log(results: LogResults, noise: Model, slack: float = 0.0) -> list[LogAlarm]:
    """All alarms of a log; `slack`: so much less than the threshold is enough."""
    alarms = [_noise(results, noise), *_order(results), _failures(results)]
    return [alarm for alarm in alarms if alarm is not None and alarm.evidence >= alarm.threshold - slack]


# Noise that is larger than stated, or has outliers.


def _noise(results: LogResults, noise: Model) -> LogAlarm | None:
    if results.arms.size == 0:
        return None
    evidence, threshold = noise_evidence(results.arms, results.values, results.pairs, noise, LEVEL)
    seen = "results of one item, or of items of one group, differ from one another by more than the stated noise allows"
    return LogAlarm("noise", seen, evidence, threshold)


def noise_evidence(
    arms: IntArray, values: FloatArray, pairs: IntArray, noise: Model, level: float
) -> tuple[float, float]:
    """The log-evidence, and what it has to reach; 0 for a noise about whose size nothing was stated.

    Noise that is smaller than stated does no harm to a proof, and is not looked for.
    `pairs`: (p, 2) results whose difference is noise, in the order in which they were decided on.
    """
    if isinstance(noise, Unknown):
        if not isinstance(noise.statement, AtMost):
            return 0.0, math.inf
        h = noise.whiten(values[pairs[:, 0]] - values[pairs[:, 1]]) / math.sqrt(2.0)
        return _bound(h), math.log(1.0 / level)
    h = noise.whiten(values[pairs[:, 0]] - values[pairs[:, 1]]) / math.sqrt(2.0)
    both = [
        (_differences(h), -math.log(_PAIRS_SHARE * level)),
        (_single_items(arms, values, noise), -math.log((1.0 - _PAIRS_SHARE) * level)),
    ]
    return max(both, key=lambda pair: pair[0] - pair[1])


def _differences(h: FloatArray) -> float:
    """The largest mean over alternatives of Π f(h)/φ(h), as a log; h (p, d) are standard normal."""
    if not len(h):
        return 0.0
    parts = [-math.log(sd) + 0.5 * h**2 * (1.0 - sd**-2) for sd in _LARGER]
    share, sd = _OUTLIERS
    parts.append(np.log((1.0 - share) + share / sd * np.exp(np.minimum(0.5 * h**2 * (1.0 - sd**-2), 700.0))))
    courses = [np.cumsum(part.sum(axis=1)) for part in parts]
    if h.shape[1] > 1:
        courses += [np.cumsum(part[:, q]) for part in parts for q in range(h.shape[1])]
    return max(0.0, float((np.logaddexp.reduce(courses, axis=0) - math.log(len(courses))).max()))


def _bound(h: FloatArray) -> float:
    """Where the covariance is at most the stated one: Π (1 + λ·(‖h‖²/d − 1))."""
    if not len(h):
        return 0.0
    excess = (h**2).mean(axis=1) - 1.0
    courses = [np.cumsum(np.log1p(stake * excess)) for stake in _NOISE_STAKES]
    return max(0.0, float((np.logaddexp.reduce(courses, axis=0) - math.log(len(courses))).max()))


def _single_items(arms: IntArray, values: FloatArray, noise: Noise) -> float:
    """Predictions of all results but the first of each item, over the largest likelihood under the stated noise.

    With n results, S = Σ‖x − x̄‖² and S' the same without the first: −(n−1)·log σ − ½·log n + ½S' − ½S/σ², summed.
    """
    repeated = np.flatnonzero(np.bincount(arms)[arms] > 1)  # of a million items most may have one result
    order = repeated[np.argsort(arms[repeated], kind="stable")]
    d, total = values.shape[1], np.zeros(len(_LARGER))
    sd = np.array(_LARGER)
    for rows in np.split(order, np.flatnonzero(np.diff(arms[order])) + 1):
        n = rows.size
        if n == 0:
            break
        x = noise.whiten(values[rows] - values[rows[0]])
        spread, rest = (float(((part - part.mean(axis=0)) ** 2).sum()) for part in (x, x[1:]))
        total += d * (-(n - 1) * np.log(sd) - 0.5 * math.log(n)) + 0.5 * rest - 0.5 * spread / sd**2
    return max(0.0, float(np.logaddexp.reduce(total)) - math.log(sd.size))


# Order: drift, lateness, dependence.


def _order(results: LogResults) -> list[LogAlarm]:
    """Drift, lateness and dependence, from the ranks of each item's results among its earlier ones."""
    d, n_arms = results.values.shape[1], results.n_arms
    columns = np.unique(np.linspace(0, d - 1, min(d, _MOST_COLUMNS)).round().astype(np.int64)).tolist()
    kinds: dict[str, _LargestEvidence] = {
        "drift": _LargestEvidence(),
        "lateness": _LargestEvidence(),
        "dependence": _LargestEvidence(),
    }
    step = max(1, math.ceil(n_arms / _MOST_ITEMS))
    looked_at = (np.bincount(results.arms, minlength=1)[results.arms] > 1) & (results.arms % step == 0)
    by_item = np.flatnonzero(looked_at)[np.argsort(results.arms[looked_at], kind="stable")]
    for rows in np.split(by_item, np.flatnonzero(np.diff(results.arms[by_item])) + 1):
        if not rows.size:
            break
        arm = int(results.arms[rows[0]])
        first, thin = rows[: max(64, 4 * _ROOM // n_arms)], rows[_thinned(rows.size, n_arms)]
        late = _lateness_bets(results.late[rows])[_thinned(rows.size, n_arms)]
        for column in columns:
            ranks = _ranks(results.values[thin, column], arm)
            shifted = np.concatenate([_linear(ranks, np.ones(ranks.size)), _expected(ranks, 0.0, 1.0, _SHIFTS)])
            kinds["drift"].add(arm, column, shifted, _STAKES.size)
            if late.any():
                kinds["lateness"].add(arm, column, _linear(ranks, late), _STAKES.size)
            near = _ranks(results.values[first, column], arm)
            bets = [_expected(near, slope, width, np.zeros(1)) for slope, width in _NEAR]
            kinds["dependence"].add(arm, column, np.concatenate(bets), 0)
    alarms = []
    for kind in ("drift", "lateness"):
        alarm = kinds[kind].joint_or_single(n_arms, len(columns))
        if alarm is not None:
            value, threshold, arm = alarm
            whose = "items" if arm < 0 else f"item {arm}"
            sentence = {
                "drift": f"results of {whose} drift: later ones are higher, or lower, than earlier ones",
                "lateness": f"lateness goes with values: results of {whose} that were overtaken are higher, or lower",
            }[kind]
            alarms.append(LogAlarm(kind, sentence, value, threshold))
    fisher = kinds["dependence"].fisher_or_single(n_arms, len(columns))
    if fisher is not None:
        value, threshold, arm = fisher
        whose = "items" if arm < 0 else f"item {arm}"
        alarms.append(LogAlarm("dependence", f"successive results of {whose} depend on one another", value, threshold))
    return alarms


class _LargestEvidence:
    """The largest evidence of every item, by column: of single bets, and of their mean."""

    def __init__(self) -> None:
        self.highest: dict[int, FloatArray] = {}  # by column: Σ over items of log sup, of each of the first bets
        self.total: dict[int, float] = {}  # by column: Σ over items of log sup of the mean of the bets
        self.best = (0.0, -1)  # and the largest of one item

    def add(self, arm: int, column: int, factors: FloatArray, single: int) -> None:
        """`factors` (bets, n): logs, of one result after the other."""
        courses = np.cumsum(factors, axis=1)
        if single:
            sups = np.maximum(courses[:single].max(axis=1), 0.0)
            self.highest[column] = self.highest.get(column, 0.0) + sups
        mean = float((np.logaddexp.reduce(courses, axis=0) - math.log(len(courses))).max())
        self.total[column] = self.total.get(column, 0.0) + max(mean, 0.0)
        if mean > self.best[0]:
            self.best = (mean, arm)

    def joint_or_single(self, n_arms: int, n_columns: int) -> tuple[float, float, int] | None:
        """κ·(E*)^(1−κ) over all items, their mean over κ, bets and columns; or the largest of one item."""
        if not self.highest:
            return None
        logs = [n_arms * np.log(_KAPPAS) + (1.0 - _KAPPAS) * total for row in self.highest.values() for total in row]
        joint = float(np.logaddexp.reduce(np.concatenate(logs)) - math.log(len(logs) * _KAPPAS.size))
        return self._larger(joint, math.log(2.0 / LEVEL), n_arms, n_columns)

    def fisher_or_single(self, n_arms: int, n_columns: int) -> tuple[float, float, int] | None:
        """The tail of a Gamma(M) variable at Σ log E*; or the largest of one item."""
        if not self.total:
            return None
        x = max(self.total.values())
        terms = np.cumsum(np.concatenate([[0.0], np.log(x) - np.log(np.arange(1.0, n_arms))])) if x > 0.0 else [0.0]
        joint = max(0.0, x - float(np.logaddexp.reduce(terms)))
        return self._larger(joint, math.log(2.0 * n_columns / LEVEL), n_arms, n_columns)

    def _larger(self, joint: float, wanted: float, n_arms: int, n_columns: int) -> tuple[float, float, int]:
        single, arm = self.best
        needed = math.log(2.0 * n_arms * n_columns / LEVEL)
        return (single, needed, arm) if single - needed > joint - wanted else (joint, wanted, -1)


def _thinned(n: int, n_arms: int) -> IntArray:
    """Places of the results of an item that are looked at: all, then every second, fourth, …"""
    room = max(32, _ROOM // n_arms)
    return np.array([p for p in range(n) if p % (1 << max(0, (p // room).bit_length())) == 0], dtype=np.int64)


def _ranks(values: FloatArray, arm: int) -> IntArray:
    """How many earlier results lie below each; equal ones are put in an order that has nothing to do with them."""
    n = values.size
    mixed = np.array([_mixed(arm, place) for place in range(n)])
    smaller = (values[None, :] < values[:, None]) | (
        (values[None, :] == values[:, None]) & (mixed[None, :] < mixed[:, None])
    )
    return np.asarray(np.tril(smaller, -1).sum(axis=1))


def _mixed(arm: int, place: int) -> int:
    """A number that looks random (the finalizer of MurmurHash3)."""
    h = (arm * 0x9E3779B1 + place * 0x85EBCA77 + 0x165667B1) & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> shift)) * factor) & 0xFFFFFFFF
    return h ^ (h >> 16)


def _linear(ranks: IntArray, bets: FloatArray) -> FloatArray:
    """(λ, n): log(1 + λ·c·z)."""
    place = np.arange(ranks.size)
    score = bets * (2.0 * ranks - place) / (place + 1.0)
    return np.asarray(np.log1p(_STAKES[:, None] * score))


def _expected(ranks: IntArray, slope: float, width: float, shifts: FloatArray) -> FloatArray:
    """(θ, n): log s·f_s(R_s), f of a logistic variable around slope·(the quantile of the last result) + θ."""
    n = ranks.size
    logs = np.zeros((shifts.size, n))
    place = np.arange(1, n)
    last = (ranks[:-1] + 0.5) / place
    center = slope * np.log(last / (1.0 - last)) + shifts[:, None]
    with np.errstate(divide="ignore"):
        low, high = (np.log(k / (place + 1.0 - k)) for k in (ranks[1:], ranks[1:] + 1.0))
    below, above = (1.0 / (1.0 + np.exp(-(edge - center) / width)) for edge in (low, high))
    logs[:, 1:] = np.log(np.maximum((above - below) * (place + 1.0), 1e-12))
    return logs


def _lateness_bets(late: FloatArray) -> FloatArray:
    """c: 1 for a late result, minus the share of late ones so far for others; all 0 if none is late."""
    before = np.concatenate([[0.0], np.cumsum(late)[:-1]]) / np.maximum(np.arange(late.size), 1)
    return np.where(late > 0.0, 1.0, -before) if late.any() else np.zeros(late.size)


# Failures.


def _failures(results: LogResults) -> LogAlarm | None:
    """Whether some items fail more often than others: predictions for each item against one rate for all.

    A Beta prior for each item predicts its failures whatever their order, so that the order of asks, which a log does
    not have, does not matter; over the largest likelihood of one rate this is an e-process for any rule of sampling.
    """
    if not results.failed.size:
        return None
    failed = np.bincount(results.failed, minlength=results.n_arms)
    answered = np.bincount(results.arms[results.asked > 0.0], minlength=results.n_arms)
    bad, all_asks = int(failed.sum()), int(failed.sum() + answered.sum())
    best = sum(k * math.log(k / all_asks) for k in (bad, all_asks - bad) if k)
    logs = []
    for a, b in _PRIORS:
        here = np.flatnonzero(failed + answered)
        each = [
            math.lgamma(a + failed[m]) + math.lgamma(b + answered[m]) - math.lgamma(a + b + failed[m] + answered[m])
            for m in here.tolist()
        ]
        logs.append(sum(each) - here.size * (math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)) - best)
    value = float(np.logaddexp.reduce(logs)) - math.log(len(logs))
    worst = int(np.argmax((failed + bad / all_asks) / (failed + answered + 1.0)))
    seen = (
        f"failures go with items: {failed[worst]} of {failed[worst] + answered[worst]} asks for item {worst} failed, "
        f"and {bad - failed[worst]} of {all_asks - failed[worst] - answered[worst]} of all others"
    )
    return LogAlarm("failures", seen, value, math.log(1.0 / LEVEL))


def in_words(alarms: Sequence[LogAlarm]) -> list[str]:
    """Alarms as warnings."""
    advice = {
        "noise": "do not rely on groups proven with this noise",
        "drift": "equal items may look different because they were measured at different times",
        "dependence": "a proof takes every result for a new measurement, so do not rely on the groups",
        "lateness": "a proof assumes that how long a measurement takes has nothing to do with what it gives",
        "failures": "a proof assumes that whether a measurement fails has nothing to do with what it would have given",
    }
    return [f"{alarm.seen} (by chance in at most {LEVEL:.0%} of all runs): {advice[alarm.kind]}" for alarm in alarms]
