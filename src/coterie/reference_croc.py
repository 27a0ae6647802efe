"""CROC line by line, slow and plain: the oracle that `method="croc"` is tested against (docs/CROC.md, sections 2 to 8).

Every plan is made from the stacks of results, the epochs and the rounds. What is kept from one plan to the next is what
the document says is kept: the estimate and its centers, the latched evidence of pairs, the doubts of single arms between
two full plans, and the queue. Sums go by index, one term after the other, and comparisons are written as the document
has them, so that exact ties fall as they do in the engine. Values must lie within 1024 standard deviations of the first
one: the engine's second origin for far arms (section 13) is about digits, not about the rule.

Names and symbols: `pulls` is N_m, `committed` counts pulls under way too, `totals` and `centers` are W and Û, `level` is
b, `risk` is P_w, `margin` of an arm is its smallest D_mk. The constants below are the rule's; the engine's name of each
is behind it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_arm, check_delta, check_measurement, check_shape
from coterie.problem.partition import same_partition

# Section 2: pairs from the start.
BLOCK_RATIOS = (1, 2, 4, 8)  # BLOCK_RATIOS
RATIO_WEIGHTS = (0.4, 0.1, 0.1, 0.1)  # LOG_RATIO_WEIGHTS
SCALES = 4.0 ** np.arange(3, -8, -1)  # SCALES
SCALE_WEIGHTS = np.array([0.08, 0.19, 0.25, 0.25, 0.12] + [0.055 * 0.5**i for i in range(6)])  # LOG_SCALE_WEIGHTS
ALL_PREFIXES_UP_TO = 64  # PREFIX_ROOM
GRID_STEP = 8  # GRID_STEP
# Sections 3 to 6: levels, epochs, rounds.
PAIRS_SHARE = 0.2  # ALPHA
FIRST_EPOCH_SHARE = 0.8  # FIRST_SHARE
REMEMBERED_EPOCHS = 3  # EPOCHS
CORE_ARMS = 3  # CORE
ROUNDS_UNDER_WAY = 64  # FLIGHT
ROUNDS_PER_DOUBLING = 8  # SCALE_UP
# Section 7: the estimate.
HARTIGAN_PASSES = 20  # PASSES
ALONE = 1.000001  # ONE
MOVE_TIE = 1e-12  # MOVE_TIE
POSTERIOR_TIE = 1e-9  # POSTERIOR_TIE
SUBSPACE_PASSES = 12  # SUBSPACE_PASSES
SUBSPACE_EXTRA = 2  # SUBSPACE_EXTRA
REGROUPINGS = 4  # REGROUPINGS
CUT_PASSES = 6  # SPLIT_PASSES
SIZE_PRICE = 1.0  # SIZE_PRICE
LEAD_TIE = 1e-9  # TIE
ESTIMATE_ARMS = 10  # ESTIMATE_ARMS
ESTIMATE_RESULTS = 50  # ESTIMATE_RESULTS
PATIENCE_RESULTS = 100  # PATIENCE_RESULTS
PATIENCE_WORK = 200  # PATIENCE_WORK
STARTS_RESULTS = 10  # STARTS_RESULTS
STARTS_WORK = 1000  # STARTS_WORK
# Section 7: risk, freeze, exploration.
FREEZE_RISK = 0.15  # FREEZE_DOUBT
LARGEST_RISK = 1.0  # LARGEST_DOUBT
STEADY_SHARE = 0.02  # STEADY
CHECK_AGAIN = 8  # FREEZE_LOOKS
MARGIN_CAP = 5.0  # DOUBT_CAP
MARGIN_WINDOW = 2.0  # DOUBT_WINDOW
MARGIN_DRIFT = 1.0  # DRIFT
MERGE_CAP = 2.0  # MERGE_CAP
CHANCE_SHARE = 0.25  # CHANCE_SHARE
RIVAL_PULLS = 3  # RIVAL_PULLS
BALANCE = 2  # BALANCE
ROOT_FLOOR = 0.5  # ROOT_FLOOR
FLOOR_SHARE = 0.1  # LEAST_SHARE
ROUND_FLOOR_SHARE = 0.02  # LEAST_SHARE_IN_ROUNDS
POOL_TOP_UP = 0.5  # TOP_UP
# Section 7: forecasts and greedy pulls.
FORECAST_STEPS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # STEPS
FORECAST_LOSS = 1.0  # FORECAST_LOSS
LEAD_LEVELS = 8  # LEAD_LEVELS
FREEZE_FACTOR = 1.15  # FREEZE_FACTOR
FREEZE_DIM_PRICE = 0.3  # FREEZE_DIM_PRICE
FREEZE_LEAST_GAP = 0.25  # FREEZE_LEAST_GAP
FREEZE_LEAST_PULLS = 1.5  # FREEZE_LEAST_PULLS
FREEZE_GROUP_PULLS = 0.5  # FREEZE_GROUP_PULLS
LEAST_DEFICIT = 0.2  # LEAST_DEFICIT
LOOK_AHEAD = 3  # LOOK_AHEAD
LEAD_DOUBLINGS = 6  # DOUBLINGS
TOGETHER_SHARE = 0.25  # TOGETHER_SHARE
PAIRS_PER_PULL = 64  # PAIRS_PER_PULL
GREEDY_FACTOR = 2.0  # GREEDY_FACTOR
GREEDY_EXTRA = 20.0  # GREEDY_EXTRA

FIRST_PASS, PAIRS, EXPLORE, ROUNDS = "first pass", "pairs", "explore", "rounds"
FAR = 1024.0
NEVER = -(2**60)


class Test(NamedTuple):
    """A test of a frozen candidate: an arm against a pool (section 5). `home` and `rival` are their frozen groups."""

    kind: str
    arm: int
    pool: tuple[int, ...]
    home: int
    rival: int
    level: float


@dataclass
class Epoch:
    """A frozen candidate, its cores, its guess of the centers, and its tests."""

    number: int
    t: int
    level: float
    labels: list[int]
    cores: list[list[int]]
    centers: FloatArray
    totals: FloatArray
    tests: list[Test] = field(default_factory=list)
    met: set[Test] = field(default_factory=set)
    contrasts: dict[Test, list[tuple[FloatArray, float]]] = field(default_factory=dict)


@dataclass
class Round:
    """How often each arm is to be pulled, fixed before the first of its asks; and what has come in."""

    number: int
    epoch: int
    pulls: dict[int, int]
    first: int  # its place in the room for arms of rounds
    unasked: dict[int, int]
    sums: dict[int, FloatArray]
    left: int
    closed: bool = False


def ordered_sum(values: Any, axis: int = -1) -> Any:
    """The sum by index, one term after the other: NumPy's own adds long ones up in blocks."""
    return np.take(np.cumsum(values, axis=axis), -1, axis=axis)


def squared(gaps: Any) -> Any:
    """Squared lengths of vectors."""
    return ordered_sum(gaps * gaps)


def grid_floor(n: int, room: int) -> int:
    """The largest count up to n that the pairs read: all up to P, then P·2^j + i·8·2^j (section 2)."""
    step, low = GRID_STEP, room
    if n <= room:
        return n
    while 2 * low <= n:
        step, low = 2 * step, 2 * low
    return low + (n - low) // step * step


def log_ways(a: int, b: int) -> float:
    """log((a+b)!/(a!·b!)): the ways to cut a group of a + b arms into a and b."""
    return _log_factorial(a + b) - _log_factorial(a) - _log_factorial(b)


@cache
def _log_factorial(n: int) -> float:
    return float(ordered_sum(np.log(np.arange(1.0, n + 1.0)))) if n > 0 else 0.0


def cut_worth(gain: float, a: int, b: int, weight: float, dim: int) -> float:
    """By how much the log posterior grows when a group is cut into a and b arms; weight is W_aW_b/(W_a+W_b)."""
    return 0.5 * gain - SIZE_PRICE * log_ways(a, b) - 0.5 * dim * math.log(weight)


@dataclass
class Partition:
    """Labels with the centers and weights of the groups, and Hartigan's moves on them (section 7)."""

    labels: IntArray
    centers: FloatArray
    totals: FloatArray

    @classmethod
    def improved(cls, labels: Iterable[int], points: FloatArray, pulls: IntArray, n_groups: int) -> Partition:
        """Of these labels, after Hartigan's moves: arms in index order, at most 20 times, while one moves."""
        found = cls(np.array(labels), np.zeros((n_groups, points.shape[1])), np.zeros(n_groups))
        for m, k in enumerate(found.labels):
            found.totals[k] += pulls[m]
            found.centers[k] += pulls[m] * points[m]
        filled = found.totals > 0
        found.centers[filled] /= found.totals[filled, None]
        found._fill_empty(points, pulls)
        for _ in range(HARTIGAN_PASSES):
            if not any([found.move(m, points, pulls) for m in range(len(points))]):
                break
        return found

    def _shift(self, k: int, x: FloatArray, weight: float) -> None:
        after = self.totals[k] + weight
        self.centers[k] = (self.centers[k] * self.totals[k] + weight * x) / after
        self.totals[k] = after

    def _fill_empty(self, points: FloatArray, pulls: IntArray) -> None:
        """An empty group gets the arm that is costliest where it is, the first of equals."""
        for k in np.flatnonzero(self.totals == 0):
            worst, most = -1, -1.0
            for m, home in enumerate(self.labels):
                if self.totals[home] > pulls[m] * ALONE:
                    rest = self.totals[home] - pulls[m]
                    cost = float(squared(points[m] - self.centers[home])) * pulls[m] * self.totals[home] / rest
                    if cost > most:
                        worst, most = m, cost
            self._shift(self.labels[worst], points[worst], -float(pulls[worst]))
            self.labels[worst], self.totals[k], self.centers[k] = k, pulls[worst], points[worst]

    def move(self, m: int, points: FloatArray, pulls: IntArray) -> bool:
        """Hartigan's move of one arm: to the group where it costs least, if that is less than where it is."""
        home, n = self.labels[m], float(pulls[m])
        if self.totals[home] <= n * ALONE:
            return False
        gaps = squared(points[m] - self.centers)
        best, target = gaps[home] * self.totals[home] / (self.totals[home] - n), -1
        joined = gaps * self.totals / (self.totals + n)
        for k in range(len(self.totals)):
            if k != home and joined[k] < best - MOVE_TIE:
                best, target = joined[k], k
        if target >= 0:
            self._shift(home, points[m], -n)
            self._shift(target, points[m], n)
            self.labels[m] = target
        return target >= 0

    def log_posterior(self, points: FloatArray, pulls: IntArray) -> float:
        """−½·cost + Σ log n_k! − (d/2)·Σ log W_k."""
        value = -0.5 * float(ordered_sum(pulls * squared(points - self.centers[self.labels])))
        for k, total in enumerate(self.totals):
            size = int((self.labels == k).sum())
            value += SIZE_PRICE * _log_factorial(size) - 0.5 * points.shape[1] * math.log(total)
        return value

    def cost_alone(self, m: int, points: FloatArray, pulls: IntArray) -> float:
        """By how much the cost falls if arm m leaves its group of two arms or more for one of its own."""
        k = self.labels[m]
        gap = float(squared(points[m] - self.centers[k]))
        return float(gap * pulls[m] * self.totals[k] / (self.totals[k] - pulls[m]))

    def two_means(self, k: int, first: int, points: FloatArray, pulls: IntArray) -> tuple[float, float, list[int]]:
        """Cut group k in two, beginning with arm `first` alone: the gain, W_aW_b/(W_a+W_b), and the arms of the part."""
        members, part = np.flatnonzero(self.labels == k).tolist(), {first}
        weight, total, here = float(pulls[first]), self.totals[k], points[first] * float(pulls[first])
        for _ in range(CUT_PASSES):
            moved = False
            for m in members:
                n, rest = float(pulls[m]), total - weight
                if (m in part and len(part) == 1) or (m not in part and len(part) == len(members) - 1):
                    continue
                to_part = float(squared(points[m] - here / weight))
                to_rest = float(squared(points[m] - (self.centers[k] * total - here) / (total - weight)))
                if m in part and to_rest * rest / (rest + n) < to_part * weight / (weight - n):
                    sign = -1.0
                elif m not in part and to_part * weight / (weight + n) < to_rest * rest / (rest - n):
                    sign = 1.0
                else:
                    continue
                part ^= {m}
                weight, here, moved = weight + sign * n, here + sign * n * points[m], True
            if not moved:
                break
        share = weight * (total - weight) / total
        apart = here / weight - (self.centers[k] * total - here) / (total - weight)
        return float(squared(apart) * share), float(share), sorted(part)

    def best_cut(self, k: int, points: FloatArray, pulls: IntArray) -> tuple[float, list[int]]:
        """The worth of the better of two cuts of group k, its costliest arm alone or 2-means; and the arms cut off."""
        members, dim = np.flatnonzero(self.labels == k).tolist(), points.shape[1]
        if len(members) < 2:
            return -math.inf, []
        costs = [self.cost_alone(m, points, pulls) for m in members]
        far = members[int(np.argmax(costs))]
        share = pulls[far] * (self.totals[k] - pulls[far]) / self.totals[k]
        single = cut_worth(max(costs), 1, len(members) - 1, share, dim)
        if len(members) == 2:
            return single, [far]
        gain, weight, part = self.two_means(k, far, points, pulls)
        worth = cut_worth(gain, len(part), len(members) - len(part), weight, dim)
        return (single, [far]) if single > worth else (worth, part)

    def merge_worth(self, k: int, j: int) -> float:
        """By how much the log posterior grows when groups k and j are merged."""
        together = self.totals[k] * self.totals[j] / (self.totals[k] + self.totals[j])
        cost = float(squared(self.centers[k] - self.centers[j])) * together
        a, b = int((self.labels == k).sum()), int((self.labels == j).sum())
        return -cut_worth(cost, a, b, together, self.centers.shape[1])


def farthest_first(points: FloatArray, pulls: IntArray, n_groups: int, by_pulls: bool) -> IntArray:
    """Maximin from arm 0; with `by_pulls`, squared distances times N_iN_j/(N_i+N_j), from the most pulled arm."""
    near = np.full(len(points), math.inf)
    labels = np.zeros(len(points), dtype=np.int64)
    start = int(np.argmax(pulls)) if by_pulls else 0
    for k in range(n_groups):
        gaps = squared(points - points[start])
        if by_pulls:
            gaps = gaps * (pulls * float(pulls[start]) / (pulls + pulls[start]))
        labels[gaps < near] = k
        near = np.minimum(near, gaps)
        start = int(np.argmax(near))
    return labels


def components(points: FloatArray, pulls: IntArray, rank: int) -> FloatArray:
    """Coordinates along about `rank` leading principal components, weighted by pulls, by subspace iteration."""
    n, d = points.shape
    wide = min(n, 2 * rank + SUBSPACE_EXTRA, d)
    centered = points - ordered_sum(points / n, axis=0)
    basis = centered[[i * n // wide for i in range(wide)]]
    for _ in range(SUBSPACE_PASSES):
        basis = _orthonormal(basis)
        along = ordered_sum(centered[:, None] * basis) * pulls[:, None]
        basis = ordered_sum(along[:, :, None] * centered[:, None], axis=0)
    basis = _orthonormal(basis)
    return np.asarray(ordered_sum(points[:, None] * basis[:rank]))


def _orthonormal(rows: FloatArray) -> FloatArray:
    """Gram–Schmidt, twice."""
    rows = rows.copy()
    for _ in range(2):
        for i in range(len(rows)):
            for j in range(i):
                rows[i] -= ordered_sum(rows[i] * rows[j]) * rows[j]
            length = float(squared(rows[i]))
            if length > 0.0:
                rows[i] *= 1.0 / math.sqrt(length)
    return rows


class ReferenceCroc:
    """One run. `ask` says which arm to measure next, `tell` takes in a result; any number of asks may be open."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, delta: float) -> None:
        self.n_arms, self.n_clusters, self.dim = check_shape(n_arms, n_clusters, dim)
        m, k = self.n_arms, self.n_clusters
        self._log_inverse_delta = -math.log(check_delta(delta))
        equal_pairs = (m - k + 1) * (m - k) / 2  # H
        self.pair_level = math.log(equal_pairs) - math.log(PAIRS_SHARE) + self._log_inverse_delta
        self.t, self.done, self.by = 0, False, ""
        self.freezes: list[Epoch] = []
        self.rounds: list[Round] = []
        self.alarm: tuple[int, ...] | None = None
        self._origin: FloatArray | None = None
        self._prefixes = [[np.zeros(self.dim)] for _ in range(m)]
        self._committed = [0] * m
        self._open: list[deque[int]] = [deque() for _ in range(m)]  # open asks of each arm: the rounds they are for
        self._queue: deque[int] = deque()
        self._mode = FIRST_PASS
        self._guess: Partition | None = None
        self._estimated_at = self._all_starts_at = self._changed_at = 0
        self._planned_at = NEVER
        self._left_group = self._closed = False
        self._touched: list[int] = []
        self._leads: list[int] = [-1] * k
        self._evidence = np.full((m, k), -math.inf)  # of an arm against the lead of a group, latched
        self._settled = np.zeros((m, k), dtype=bool)
        self._greedy_pulls, self._greedy_limit = 0, 0.0
        self._candidates: list[int] = []
        self._margin, self._rival, self._unsure = [math.inf] * m, [0] * m, [0.0] * m
        self._risk = self._arms_risk = 0.0
        self._merge: tuple[float, int, int, int] = (math.inf, 0, 0, 0)  # margin; group to split, groups to merge
        self._chance: tuple[float, int, int] = (0.0, 0, 0)

    # What is known.

    @property
    def labels(self) -> IntArray | None:
        """The estimate."""
        return None if self._guess is None else self._guess.labels.copy()

    @property
    def pulls(self) -> IntArray:
        """N_m."""
        return np.array([len(prefixes) - 1 for prefixes in self._prefixes])

    @property
    def _means(self) -> FloatArray:
        return np.array([prefixes[-1] * (1.0 / (len(prefixes) - 1)) for prefixes in self._prefixes])

    @property
    def _now(self) -> Partition:
        assert self._guess is not None
        return self._guess

    @property
    def _remembered(self) -> list[Epoch]:
        return self.freezes[-REMEMBERED_EPOCHS:]

    @property
    def _open_rounds(self) -> list[Round]:
        return [one for one in self.rounds if not one.closed]

    @property
    def _patience(self) -> int:
        return min(self.t // PATIENCE_RESULTS, self.n_arms * self.n_clusters * self.dim // PATIENCE_WORK)

    @property
    def _floor(self) -> float:
        """Forced exploration: no arm should have fewer pulls."""
        each = self.t / self.n_arms
        return max(ROOT_FLOOR * math.sqrt(each), FLOOR_SHARE * each)

    @property
    def _steady(self) -> bool:
        return self.t - self._changed_at >= STEADY_SHARE * self.t

    def _least_pulled(self, arms: Iterable[int]) -> int:
        return min(arms, key=lambda arm: (self._committed[arm], arm))

    def _least_of(self, group: int) -> int:
        return self._least_pulled(np.flatnonzero(self._now.labels == group).tolist())

    # Section 8 and the order of decisions of section 7: asks and results.

    def ask(self) -> int | None:
        """The arm to measure next, by a new open ask; None if the groups are proven."""
        planned = any(sum(one.unasked.values()) for one in self._open_rounds) or self._queue
        if self._mode == FIRST_PASS or not planned:
            self._plan_if_due(False)
        of_round, arm = 0, -1
        if not self.done:
            of_round, arm = self._next()
            if arm < 0:  # all that was planned is asked for
                self._plan()
                of_round, arm = (0, -1) if self.done else self._next()
        if self.done:
            return None
        self._committed[arm] += 1
        self._open[arm].append(of_round)
        return arm

    def tell(self, arm: int, x: Any) -> None:
        """A result: of the oldest open ask of its arm, or if there is none, one that nobody asked for."""
        arm, value = check_arm(arm, self.n_arms), check_measurement(x, self.dim)
        if self.done:
            return
        if self._open[arm]:
            of_round = self._open[arm].popleft()
        else:
            of_round = 0
            self._committed[arm] += 1
            self._queue.clear()
        self._observe(arm, value, of_round)
        self._plan_if_due(of_round == 0)

    def forget(self, arm: int) -> None:
        """Give up the oldest open ask of an arm: a round asks for it again."""
        of_round = self._open[arm].popleft()
        self._committed[arm] -= 1
        if of_round > 0 and not self.rounds[of_round - 1].closed:
            self.rounds[of_round - 1].unasked[arm] += 1

    def _next(self) -> tuple[int, int]:
        """The round and the arm of the next ask; arm −1 if all that was planned is asked for."""
        if self._mode == FIRST_PASS:
            return 0, self._least_pulled(range(self.n_arms))
        for one in self._open_rounds:
            for arm in sorted(one.unasked):
                if one.unasked[arm] > 0:
                    one.unasked[arm] -= 1
                    return one.number, arm
        return 0, self._queue.popleft() if self._queue else -1

    def _plan_if_due(self, outside: bool) -> None:
        """Plan when nothing planned is left; while rounds are open, only see whether the groups are proven."""
        if self.done or self.pulls.min() == 0:
            return
        if not self._open_rounds:
            if not self._queue:
                self._plan()
        elif outside or self._closed:
            self._see_proven()

    def _observe(self, arm: int, value: FloatArray, of_round: int) -> None:
        if self._origin is None:
            self._origin = value
        x = value - self._origin
        if np.abs(x).max() > FAR:
            raise ValueError(f"the reference takes values within {FAR:g} of the first one, got {value.tolist()}")
        self._prefixes[arm].append(self._prefixes[arm][-1] + x)
        self.t += 1
        if arm not in self._touched:
            self._touched.append(arm)
        one = self.rounds[of_round - 1] if of_round > 0 else None
        if one is not None:
            one.sums[arm] = one.sums[arm] + x
            one.left -= 1
        if self._guess is not None:
            guess, home = self._guess, self._guess.labels[arm]
            guess.totals[home] += 1.0
            guess.centers[home] += (x - guess.centers[home]) / guess.totals[home]
            if np.argmin(squared(self._mean(arm) - guess.centers)) != home:
                self._left_group = True
            self._test_arm(arm)
            if self._leads[home] == arm:
                self._test_lead(home)
        if one is not None and one.left == 0:
            self._close_ready()

    # Sections 2 and 3: pairs from the start.

    def pair_evidence(self, i: int, j: int) -> float:
        """The largest of log w + log M_n over block ratios and sides, at the present counts."""
        best = -math.inf
        for a, b, ratios in ((i, j, range(len(BLOCK_RATIOS))), (j, i, range(1, len(BLOCK_RATIOS)))):
            for r in ratios:
                ratio = BLOCK_RATIOS[r]
                n = min(len(self._prefixes[a]) - 1, (len(self._prefixes[b]) - 1) // ratio)
                n = grid_floor(n * ratio, ALL_PREFIXES_UP_TO) // ratio
                if n == 0:
                    break
                gap = self._prefixes[a][n] * (1.0 / n) - self._prefixes[b][n * ratio] * (1.0 / (n * ratio))
                energy = float(squared(gap)) * (n * ratio / (ratio + 1.0))
                growth = SCALES * n
                logs = np.log(SCALE_WEIGHTS) - 0.5 * self.dim * np.log1p(growth) + 0.5 * growth / (1 + growth) * energy
                top = logs.max()
                best = max(best, float(top + np.log(np.exp(logs - top).sum())) + math.log(RATIO_WEIGHTS[r]))
        return best

    def _test_pair(self, m: int, k: int) -> None:
        """Latch the evidence of arm m against the lead of group k."""
        if not self._settled[m, k]:
            self._evidence[m, k] = max(self._evidence[m, k], self.pair_evidence(m, self._leads[k]))
            self._settled[m, k] = self._evidence[m, k] >= self.pair_level

    def _test_arm(self, m: int) -> None:
        for k in range(self.n_clusters):
            if k != self._now.labels[m]:
                self._test_pair(m, k)

    def _test_lead(self, k: int) -> None:
        for m in range(self.n_arms):
            if self._now.labels[m] != k:
                self._test_pair(m, k)

    def _unsettled(self, m: int) -> list[int]:
        return [k for k in range(self.n_clusters) if k != self._now.labels[m] and not self._settled[m, k]]

    def _pairs_done(self) -> bool:
        """The condition of Lemma 3; after an alarm pairs prove nothing."""
        return self.alarm is None and not any(self._unsettled(m) for m in range(self.n_arms))

    def _raise_alarm(self) -> None:
        """K leads and an arm, all settled against one another, refute K (section 10)."""
        if self.alarm is not None or any(self._unsettled(lead) for lead in self._leads):
            return
        for m in range(self.n_arms):
            home = self._now.labels[m]
            if m != self._leads[home] and not self._unsettled(m):
                self._test_pair(m, home)
                if self._settled[m, home]:
                    self.alarm = (*self._leads, m)
                    return

    # Section 7: the estimate.

    def _estimate(self) -> list[int]:
        """Estimate anew; returns the arms that changed their group."""
        points, pulls, before = self._means, self.pulls, self._guess
        wait = min(self.t // STARTS_RESULTS, self.n_arms**2 // STARTS_WORK)
        all_starts = before is None or self.t - self._all_starts_at >= wait
        starts = [] if before is None else [before.labels]
        if all_starts:
            self._all_starts_at = self.t
            rank, k = min(self.n_clusters - 1, self.dim), self.n_clusters
            starts.append(farthest_first(points, pulls, k, False))
            if rank < self.dim:
                reduced = components(points, pulls, rank)
                starts.append(farthest_first(reduced, pulls, k, False))
                starts.append(farthest_first(reduced, pulls, k, True))
            else:
                starts.append(farthest_first(points, pulls, k, True))
        best, winner = -math.inf, None
        for labels in starts:
            found = Partition.improved(labels, points, pulls, self.n_clusters)
            value = found.log_posterior(points, pulls)
            if value > best + POSTERIOR_TIE:
                best, winner = value, found
        assert winner is not None
        if all_starts and self.n_clusters > 2:
            winner = self._regrouped(winner, best, points, pulls)
        if before is not None:
            winner = _with_names_of(before, winner)
        moved = [m for m in range(self.n_arms) if before is None or before.labels[m] != winner.labels[m]]
        self._guess, self._estimated_at, self._left_group = winner, self.t, False
        if moved:
            self._changed_at = self.t
        return moved

    def _regrouped(self, winner: Partition, best: float, points: FloatArray, pulls: IntArray) -> Partition:
        """Up to four times: cut one group and merge two others, where the posterior grows most."""
        groups = range(self.n_clusters)
        for _ in range(REGROUPINGS):
            merges = [(winner.merge_worth(k, j), k, j) for k in groups for j in range(k)]
            most, change = 0.0, None
            for h in groups:
                worth, part = winner.best_cut(h, points, pulls)
                merge, k, j = max((one for one in merges if h not in one[1:]), key=lambda one: one[0])
                if worth + merge > most:
                    most, change = worth + merge, (part, k, j)
            if change is None:
                return winner
            part, k, j = change
            labels = np.where(winner.labels == j, k, winner.labels)
            labels[part] = j
            found = Partition.improved(labels, points, pulls, self.n_clusters)
            value = found.log_posterior(points, pulls)
            if value <= best + POSTERIOR_TIE:
                return winner
            best, winner = value, found
        return winner

    def _renew(self) -> None:
        """Step 1 of a plan: the estimate if it is due, then the leads and their pairs."""
        first, since, moved = self._guess is None, self.t - self._estimated_at, []
        work = self.n_arms * self.n_clusters * self.dim // PATIENCE_WORK
        due = since >= max(1, self.n_arms // ESTIMATE_ARMS, min(self.t // ESTIMATE_RESULTS, work))
        if first or due or (self._left_group and since >= self._patience):
            moved = self._estimate()
            if moved:
                self._planned_at = NEVER
        elif self._left_group:
            points, pulls = self._means, self.pulls
            moved = [m for m in self._touched if self._now.move(m, points, pulls)]
            self._left_group = False
            if moved:
                self._changed_at = self.t
                if self._mode == PAIRS:
                    self._planned_at = NEVER
        self._choose_leads()
        if not first:
            for m in moved:
                self._test_arm(m)

    def _choose_leads(self) -> None:
        """A lead (representative) stays while it is in its group; else the most pulled arm, nearest the center."""
        points, pulls = self._means, self.pulls
        for k in range(self.n_clusters):
            if self._leads[k] >= 0 and self._now.labels[self._leads[k]] == k:
                continue
            best, away = -1, 0.0
            for m in np.flatnonzero(self._now.labels == k).tolist():
                gap = float(squared(points[m] - self._now.centers[k]))
                more = best < 0 or pulls[m] > pulls[best]
                if more or (pulls[m] == pulls[best] and gap < away * (1.0 - LEAD_TIE)):
                    best, away = m, gap
            self._leads[k] = best
            self._evidence[:, k], self._settled[:, k] = -math.inf, False
            self._test_lead(k)
            self._planned_at = NEVER

    # Section 7: the risk that the estimate is wrong.

    def _judge_arm(self, m: int) -> float:
        """D_mk of one arm. Returns what the arm costs where it is, times two; 0 for an arm that is alone."""
        guess, home, n = self._now, self._now.labels[m], float(len(self._prefixes[m]) - 1)
        self._margin[m], self._rival[m], self._unsure[m] = math.inf, home, 0.0
        if (guess.labels == home).sum() == 1:
            return 0.0
        gaps = squared(self._mean(m) - guess.centers)
        own = float(gaps[home] * n * guess.totals[home] / (guess.totals[home] - n))
        for k in range(self.n_clusters):
            if k != home:
                margin = 0.5 * (float(gaps[k] * n * guess.totals[k] / (n + guess.totals[k])) - own)
                if margin < self._margin[m]:
                    self._margin[m], self._rival[m] = margin, k
                self._unsure[m] += math.exp(-max(margin, 0.0))
        return own

    def _judge(self) -> float:
        """P_w from every arm and every group."""
        guess, points, pulls, groups = self._now, self._means, self.pulls, range(self.n_clusters)
        own = [self._judge_arm(m) for m in range(self.n_arms)]
        self._arms_risk = self._risk = float(ordered_sum(self._unsure))
        sizes = [int((guess.labels == k).sum()) for k in groups]
        gain, share, worth = [-math.inf] * len(sizes), [1.0] * len(sizes), [-math.inf] * len(sizes)
        for h in groups:
            if sizes[h] < 2:
                continue
            far = max(np.flatnonzero(guess.labels == h).tolist(), key=lambda m: own[m])
            gain[h] = own[far]
            if gain[h] == 0.0:
                continue
            share[h] = pulls[far] * (guess.totals[h] - pulls[far]) / guess.totals[h]
            worth[h] = cut_worth(gain[h], 1, sizes[h] - 1, share[h], self.dim)
            if sizes[h] > 2:
                better, weight, part = guess.two_means(h, far, points, pulls)
                worth[h] = max(worth[h], cut_worth(better, len(part), sizes[h] - len(part), weight, self.dim))
                if better > gain[h]:
                    gain[h], share[h] = better, weight
        self._merge, self._chance = (math.inf, 0, 0, 0), (0.0, 0, 0)
        for k in groups:
            for j in range(k):
                together = guess.totals[k] * guess.totals[j] / (guess.totals[k] + guess.totals[j])
                cost = float(squared(guess.centers[k] - guess.centers[j])) * together
                chance = self._by_chance(sizes[k], sizes[j], cost)
                self._risk += chance
                if chance > self._chance[0]:
                    self._chance = chance, k, j
                apart = cut_worth(cost, sizes[k], sizes[j], together, self.dim)
                for h in groups:
                    if h not in (k, j) and gain[h] >= 0.0:
                        fitted = 0.5 * self.dim * max(0.0, math.log(together / share[h]))
                        margin = max(0.5 * (cost - gain[h]) - fitted, apart - worth[h])
                        self._risk += math.exp(-max(margin, 0.0))
                        if margin < self._merge[0]:
                            self._merge = margin, h, k, j
        return self._risk

    def _by_chance(self, a: int, b: int, cost: float) -> float:
        """Two groups of a and b arms are one by chance: the number of splits times the tail of a χ² with d degrees."""
        n, d = a + b, self.dim
        splits = max(min((n - 1.0) * math.log(2.0), d * math.log(n)), SIZE_PRICE * log_ways(a, b))
        tail = max(0.0, (0.5 * d - 1.0) * math.log(max(0.5 * cost, 1e-9))) - math.lgamma(0.5 * d)
        return math.exp(min(splits - 0.5 * cost + tail, 0.0))

    def _judge_again(self) -> float:
        """P_w with D_mk of the arms that have new results; all else as it was."""
        before = self._arms_risk
        for m in self._touched:
            self._arms_risk -= self._unsure[m]
            self._judge_arm(m)
            self._arms_risk += self._unsure[m]
        self._risk += self._arms_risk - before
        return self._risk

    # Section 7: forecasts.

    @property
    def _next_level(self) -> float:
        """b_j of the epoch that would be frozen next (section 6)."""
        share = math.log(FIRST_EPOCH_SHARE) + len(self.freezes) * math.log(1.0 - FIRST_EPOCH_SHARE)
        return self._log_inverse_delta - math.log(1.0 - PAIRS_SHARE) - share

    def _pulls_for_freeze(self) -> float:
        """Pulls that a freeze of the present labels is forecast to need."""
        guess, dim, total = self._now, self.dim, 0.0
        aim = 2.0 * (self._next_level + FREEZE_DIM_PRICE * dim)
        met_groups = set()
        for m in range(self.n_arms):
            home, worst = guess.labels[m], 0.0
            for k in self._unsettled(m):
                gap = float(squared(guess.centers[k] - guess.centers[home]))
                sure = gap - dim * (1.0 / guess.totals[k] + 1.0 / guess.totals[home])
                worst = max(worst, aim / max(sure, FREEZE_LEAST_GAP * gap, 1e-300))
            if worst > 0.0:
                total += max(FREEZE_LEAST_PULLS, worst * FREEZE_FACTOR)
                met_groups.add(home)
        return total + FREEZE_GROUP_PULLS * len(met_groups)

    def _forecast(self, m: int, k: int, arm: int, other: int) -> float:
        """The evidence that arm m and the lead of k will have with so many pulls of each; −inf if it cannot be told."""
        guess, now, dim = self._now, len(self._prefixes[m]) - 1, self.dim
        x = self._mean(m) - guess.centers[k]
        u = guess.centers[guess.labels[m]] - guess.centers[k]
        more = arm - now
        apart = now * now * float(squared(x)) + 2.0 * now * more * float(ordered_sum(x * u))
        apart = (apart + more * more * float(squared(u)) + dim * more) / (arm * arm)
        best = -math.inf
        for side in range(2):
            for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True):
                n = min(arm, other // ratio) if side == 0 else min(other, arm // ratio)
                if n == 0:
                    break
                energy = (apart - dim / arm + dim / n + dim / (n * ratio)) * (n * ratio / (ratio + 1.0))
                if energy > dim:
                    value = 0.5 * (energy - dim) - 0.5 * dim * math.log(energy / dim) - FORECAST_LOSS
                    best = max(best, value + math.log(weight))
        return best

    def _pulls_for_pairs(self, limit: float) -> float:
        """Pulls that the pairs from the start are forecast to need, over levels of the leads; inf if over `limit`."""
        pulls, best = self.pulls.tolist(), limit
        unsettled = [self._unsettled(m) for m in range(self.n_arms)]
        for level in (2**i for i in range(LEAD_LEVELS)):
            wanted = {k for groups in unsettled for k in groups}
            cost: float = sum(max(0, level - pulls[self._leads[k]]) for k in wanted)
            for m in range(self.n_arms):
                if cost >= best:
                    break
                cost += self._steps_for(m, unsettled[m], level, pulls)
            best = min(best, cost)
        return best if best < limit else math.inf

    def _steps_for(self, m: int, groups: list[int], level: int, pulls: list[int]) -> float:
        """More pulls of arm m until its pairs are forecast to reach the pair level, one pair after the other."""
        step, leads = 0, self._leads[self._now.labels[m]] == m
        for k in groups:
            other = max(level, pulls[self._leads[k]])
            if leads:
                if self._forecast(m, k, max(level, pulls[m]), other) < self.pair_level:
                    return math.inf
                continue
            while self._forecast(m, k, pulls[m] + FORECAST_STEPS[step], other) < self.pair_level:
                step += 1
                if step == len(FORECAST_STEPS):
                    return math.inf
        return FORECAST_STEPS[step]

    # Section 7: greedy pulls and exploration.

    def _greedy(self) -> bool:
        """Queue pulls for the pairs from the start; False if the candidates have no unsettled pair."""
        least = self._least_pulled(range(self.n_arms))
        if self._committed[least] < self._floor:
            self._queue.append(least)
            return True
        pairs = [(m, k) for m in self._candidates for k in self._unsettled(m)]
        if not pairs:
            return False
        gains = self._gains(pairs)
        wanted = min(max(1, len(pairs) // PAIRS_PER_PULL), self.n_arms)
        best = sorted((m for m in gains if gains[m] > 0.0), key=lambda m: (-gains[m], m))[:wanted]
        self._queue.extend(best or [least])
        self._greedy_pulls += max(len(best), 1)
        return True

    def _gains(self, pairs: list[tuple[int, int]]) -> dict[int, float]:
        """For each candidate and each lead: the forecast gain of a pull, as a share of what its pairs lack, summed."""
        gains = dict.fromkeys(self._candidates, 0.0)
        lead_gains = [[0.0] * LEAD_DOUBLINGS for _ in range(self.n_clusters)]
        pulls = self.pulls.tolist()
        for m, k in pairs:
            home, lead = self._now.labels[m], self._leads[k]
            arm, other = self._committed[m], self._committed[lead]
            now = self._forecast(m, k, arm, other)
            deficit = self.pair_level - float(self._evidence[m, k])
            if arm > pulls[m] or other > pulls[lead]:
                deficit -= max(now - self._forecast(m, k, pulls[m], pulls[lead]), 0.0)
            deficit = max(deficit, LEAST_DEFICIT)

            leads = self._leads[home] == m
            if not leads:
                for more in range(1, LOOK_AHEAD + 1):
                    gain = min(self._forecast(m, k, arm + more, other) - now, deficit) / deficit
                    if gain > 0.0:
                        gains[m] += gain / more
                        break
            for i, more in enumerate(2**i for i in range(LEAD_DOUBLINGS)):
                gain = min(self._forecast(m, k, arm, other + more) - now, deficit) / deficit
                if gain > 0.0:
                    lead_gains[k][i] += gain / more
                if leads:  # both are leads: raise them together
                    gain = min(self._forecast(m, k, arm + more, other + more) - now, deficit) / deficit
                    if gain > 0.0:
                        lead_gains[k][i] += TOGETHER_SHARE * gain / more
                        lead_gains[home][i] += TOGETHER_SHARE * gain / more
        for k, lead in enumerate(self._leads):
            gains[lead] = max(0.0, *lead_gains[k])
        return gains

    def _expected_margin(self, m: int) -> float:
        """D_mk grows with the arm's pulls: what it will be when those under way are in."""
        n = len(self._prefixes[m]) - 1
        if self._margin[m] <= 0.0 or self._committed[m] == n:
            return self._margin[m]
        return self._margin[m] * self._committed[m] / n

    def _explore(self) -> None:
        """Queue pulls where the estimate is doubtful, in index order."""
        margins = {m: self._expected_margin(m) for m in self._candidates}
        limit = min(MARGIN_CAP, min(margins.values(), default=math.inf) + MARGIN_WINDOW)
        wanted = set()
        for m, margin in margins.items():
            if margin < limit:
                wanted.add(m)
                if self._now.totals[self._rival[m]] < RIVAL_PULLS * (len(self._prefixes[m]) - 1):
                    wanted.add(self._least_of(self._rival[m]))
            elif self._committed[m] < self._floor:
                wanted.add(m)
        margin, split, *merged = self._merge
        if margin < MERGE_CAP:
            arm = self._least_of(split)
            wanted.add(arm)
            others = [self._least_of(k) for k in merged]
            wanted.update(one for one in others if self._committed[one] <= BALANCE * self._committed[arm])
        chance, a, b = self._chance
        if chance > CHANCE_SHARE * FREEZE_RISK:
            first, arm = self._least_of(a), self._least_of(split)
            wanted.update((first, self._least_of(b)))
            if math.isfinite(margin) and BALANCE * self._committed[arm] <= self._committed[first]:
                wanted.add(arm)
        if not wanted:
            doubtful = [m for m in margins if margins[m] < math.inf]
            best = min(doubtful, key=lambda m: margins[m], default=-1)
            wanted = {best if best >= 0 else self._least_pulled(range(self.n_arms))}
        self._queue.extend(sorted(wanted))

    # Section 7: the order of decisions.

    def _plan(self) -> None:
        self._queue.clear()
        self._closed = False
        self._renew()
        if not self._go_on():
            self._planned_at = self.t
            self._raise_alarm()
            self._decide()
            self._candidates = []
            if self._mode == EXPLORE:
                ceiling, counts = MARGIN_CAP + MARGIN_DRIFT, self.pulls
                within = [self._margin[m] < ceiling or counts[m] < self._floor for m in range(self.n_arms)]
                self._candidates = [m for m in range(self.n_arms) if within[m]]
            elif self._mode == PAIRS:
                self._candidates = [m for m in range(self.n_arms) if self._unsettled(m)]
            if not self.done and (self._mode == EXPLORE or (self._mode == PAIRS and not self._greedy())):
                self._explore()
        self._touched = []

    def _go_on(self) -> bool:
        """A short plan, of the same kind as the last full one and for its candidates."""
        since, wait = self.t - self._planned_at, self._patience
        if since >= wait:
            return False
        if self._mode == PAIRS:
            return self._greedy_pulls <= self._greedy_limit and self._greedy()
        if self._mode != EXPLORE:
            return False
        before, risk = self._risk, self._judge_again()
        if risk < LARGEST_RISK <= before:
            return False
        if risk <= FREEZE_RISK and self._steady and CHECK_AGAIN * since >= wait:
            return False
        self._explore()
        return True

    def _see_proven(self) -> None:
        """While rounds are open: do the results so far prove the groups?"""
        self._closed = False
        self._renew()
        self._touched = []
        self._raise_alarm()
        epoch = self._find_epoch()
        if self._pairs_done():
            self.done, self.by = True, "pairs"
        elif epoch is not None and not self._unmet(epoch):
            self.done, self.by = True, "epoch"

    def _decide(self) -> None:
        """Steps 3 to 7 of a full plan: what the next pulls are for, or that the groups are proven."""
        if self._pairs_done():
            self.done, self.by = True, "pairs"
            return
        epoch, risk, rival = self._find_epoch(), self._judge(), math.inf
        if epoch is not None:
            unmet = self._unmet(epoch)
            if not unmet:
                self.done, self.by = True, "epoch"
                return
            rival = len(_arms_of(unmet))
        elif risk < LARGEST_RISK:
            rival = self._pulls_for_freeze()
        if self.alarm is None and self._greedy_pulls <= self._greedy_limit and (epoch is not None or risk < LARGEST_RISK):
            needed = self._pulls_for_pairs(rival + 1.0)
            if needed <= rival:
                if self._greedy_limit == 0.0:
                    self._greedy_limit = GREEDY_FACTOR * needed + GREEDY_EXTRA
                self._mode = PAIRS
                return
        self._mode = EXPLORE
        if epoch is None and risk <= FREEZE_RISK and self._steady:
            epoch = self._freeze()
        elif epoch is None or risk >= LARGEST_RISK:
            return
        unmet = self._unmet(epoch)
        if not unmet:
            self.done, self.by = True, "epoch"
        elif self._compose_round(epoch, unmet):
            self._mode = ROUNDS

    # Sections 4 to 6: freeze, rounds, tests.

    def _freeze(self) -> Epoch:
        guess, pulls, groups = self._now, self.pulls, range(self.n_clusters)
        members = [np.flatnonzero(guess.labels == k).tolist() for k in groups]
        cores = []
        for k in groups:
            size = len(members[k])
            others = sorted((m for m in members[k] if m != self._leads[k]), key=lambda m: (-self._margin[m], m))
            cores.append([self._leads[k], *others][: size if size <= CORE_ARMS + 1 else CORE_ARMS])
        totals = np.array([float(pulls[members[k]].sum()) for k in groups])
        sums = [ordered_sum(np.array([self._prefixes[m][-1] for m in members[k]]), axis=0) for k in groups]
        centers = np.array(sums) / totals[:, None]
        number, labels, level = len(self.freezes), guess.labels.tolist(), self._next_level
        epoch = Epoch(number, self.t, level, labels, cores, centers, totals)
        epoch.tests = _tests(epoch, members)
        self.freezes.append(epoch)
        return epoch

    def _find_epoch(self) -> Epoch | None:
        """The newest remembered epoch whose candidate is the estimate."""
        for epoch in reversed(self._remembered):
            if same_partition(epoch.labels, self._now.labels):
                return epoch
        return None

    def _unmet(self, epoch: Epoch) -> list[Test]:
        """The tests that are not met; those that a pair from the start meets are met from now on."""
        for test in epoch.tests:
            if self.alarm is None and test not in epoch.met:
                if test.kind == "pair":
                    settled = self.pair_evidence(test.arm, test.pool[0]) >= self.pair_level
                else:
                    lead = epoch.cores[test.rival][0]
                    group = self._now.labels[lead]
                    settled = self._leads[group] == lead and bool(self._settled[test.arm, group])
                if settled:
                    epoch.met.add(test)
        return [test for test in epoch.tests if test not in epoch.met]

    def _compose_round(self, epoch: Epoch, unmet: list[Test]) -> bool:
        """The next round; False if too many are under way."""
        marked, floor = _arms_of(unmet), ROUND_FLOOR_SHARE * self.t / self.n_arms
        pulls = {m: int(m in marked or self._committed[m] < floor) for m in range(self.n_arms)}
        for k, core in enumerate(epoch.cores):
            in_group = sum(pulls[m] for m in pulls if epoch.labels[m] == k)
            in_core = sum(pulls[m] for m in core)
            against = {kind: sum(t.kind == kind and t.rival == k for t in unmet) for kind in ("core", "group")}
            wanted = {kind: math.ceil(POOL_TOP_UP * math.sqrt(against[kind])) for kind in against}
            for _ in range(max(wanted["core"] - in_core, wanted["group"] - in_group, 0)):
                least = min(core, key=lambda m: self._committed[m] + pulls[m])
                pulls[least] += 1
        times = 2 ** (len(self._open_rounds) // ROUNDS_PER_DOUBLING)
        pulls = {m: times * n for m, n in pulls.items() if n > 0}
        first = self._room_for(len(pulls))
        if first < 0:
            return False
        sums = {m: np.zeros(self.dim) for m in pulls}
        number, left = len(self.rounds) + 1, sum(pulls.values())
        self.rounds.append(Round(number, epoch.number, pulls, first, dict(pulls), sums, left))
        return True

    def _room_for(self, size: int) -> int:
        """Where a round's arms are written down: in a row, in a ring; −1 if there is no room or too many rounds."""
        places = entry_room(self.n_arms)
        kept = self.rounds[self._open_rounds[0].number - 1 :] if self._open_rounds else []
        if not kept:
            return 0 if size <= places else -1
        if len(kept) >= ROUNDS_UNDER_WAY:
            return -1
        head, tail = kept[0].first, kept[-1].first + len(kept[-1].pulls)
        if tail > head and tail + size <= places:
            return tail
        if tail > head:
            return 0 if size < head else -1
        return tail if tail + size < head else -1

    def _close_ready(self) -> None:
        """Use every complete round that no earlier incomplete one of its epoch holds up (section 4)."""
        held: set[int] = set()
        remembered = {epoch.number: epoch for epoch in self._remembered}
        for one in self._open_rounds:
            epoch = remembered.get(one.epoch)
            if one.left > 0 or one.epoch in held:
                if epoch is not None:
                    held.add(one.epoch)
                continue
            if epoch is not None:
                _use_round(epoch, one)
            one.closed = self._closed = True

    def _mean(self, m: int) -> FloatArray:
        return self._prefixes[m][-1] * (1.0 / (len(self._prefixes[m]) - 1))


def entry_room(n_arms: int) -> int:
    """Room for the arms of all rounds under way."""
    return max(2 * n_arms, min(ROUNDS_UNDER_WAY * n_arms, 4096))


def _with_names_of(before: Partition, found: Partition) -> Partition:
    """Number the groups as those before that they overlap with: largest overlap first, ties to the lowest numbers."""
    n = len(found.totals)
    names: dict[int, int] = {}
    while len(names) < n:
        free = [(i, j) for i in range(n) for j in range(n) if i not in names and j not in names.values()]
        i, j = max(free, key=lambda one: int(((found.labels == one[0]) & (before.labels == one[1])).sum()))
        names[i] = j
    order = [next(i for i in names if names[i] == j) for j in range(n)]
    labels = np.array([names[int(k)] for k in found.labels])
    return Partition(labels, found.centers[order], found.totals[order])


def _tests(epoch: Epoch, members: list[list[int]]) -> list[Test]:
    """The tests of a candidate: the table of section 5."""
    b, tests = epoch.level, []
    in_core = {m for core in epoch.cores for m in core}
    for m, home in enumerate(epoch.labels):
        for k, core in enumerate(epoch.cores):
            if k == home:
                continue
            if m in in_core:
                tests.append(Test("core", m, tuple(core), home, k, b))
            else:
                tests.append(Test("group", m, tuple(members[k]), home, k, b))
                tests.append(Test("core", m, tuple(core), home, k, 0.5 * b))
    for k, core in enumerate(epoch.cores):
        for j, other in enumerate(epoch.cores[:k]):
            if len(core) > 1 and len(other) > 1:
                tests += [Test("pair", p, (q,), k, j, 0.5 * b) for p in core for q in other]
    return tests


def _arms_of(unmet: list[Test]) -> set[int]:
    """The arms that a round pulls for these tests: of pools, only the single arms of pair tests."""
    return {test.arm for test in unmet} | {test.pool[0] for test in unmet if test.kind == "pair"}


def _use_round(epoch: Epoch, one: Round) -> None:
    """Give every unmet test with pulls on both sides the contrast of a complete round (section 4)."""
    for test in epoch.tests:
        pool = sorted(set(test.pool) & one.pulls.keys())
        if test in epoch.met or test.arm not in one.pulls or not pool:
            continue
        n_arm, n_pool = one.pulls[test.arm], sum(one.pulls[q] for q in pool)
        contrast = one.sums[test.arm] / n_arm - ordered_sum(np.array([one.sums[q] for q in pool]), axis=0) / n_pool
        epoch.contrasts.setdefault(test, []).append((contrast, 1.0 / n_arm + 1.0 / n_pool))
        if directed(epoch, test) >= test.level:
            epoch.met.add(test)


def directed(epoch: Epoch, test: Test) -> float:
    """log E of a test: contrasts C of variance v against the guess θ0 with variance τ² that was frozen (section 4)."""
    n = sum(1.0 / v for _, v in epoch.contrasts[test])
    total = ordered_sum(np.array([contrast / v for contrast, v in epoch.contrasts[test]]), axis=0)
    theta = epoch.centers[test.home] - epoch.centers[test.rival]
    spread = 1.0 / epoch.totals[test.rival] + 1.0 / epoch.totals[test.home]
    growth = 1.0 + n * spread
    fit = 2.0 * float(theta @ total) + spread * float(total @ total) - n * float(theta @ theta)
    return float(fit / (2.0 * growth) - 0.5 * total.size * math.log(growth))
