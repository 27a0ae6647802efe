"""Single linkage with K by adaptive measurements: peers in the manner of ATBOC, LUCBBOC, BOC-Elim, EBC and EBC-H.

After Chandran, Reddy and Bhashyam, "Online Clustering of Data Sequences with Bandit Information" (2025, arXiv
2501.11421: ATBOC, LUCBBOC, BOC-Elim) and "Efficient Clustering in Stochastic Bandits" (2026, arXiv 2601.09162: EBC,
EBC-H). Their listings and thresholds could not be had when this was written, only abstracts, first paragraphs and
summaries. What these say is kept; all else is ours:

- linkage-atboc. Said: it tracks the average of the optimal proportions of the estimates so far, which are found anew by
  an optimization at each step. Ours: the proportions maximize the least certain comparison of an edge with a pair
  (`bench.peers.linkage_proof`), by multiplicative weights; forced exploration below √(t/M), as in BOC.
- linkage-lucb. Said: as LUCB, by lower and upper confidence bounds. Ours: the edge within a group with the largest
  upper bound and the pair of different groups with the smallest lower bound, in turn the less measured arm of each.
- linkage-elim. Said: it extends MaxGapElim, which stops measuring arms whose place is certain, to K groups, for one
  dimension. Ours: rounds over the arms of comparisons that are not proven, in any dimension.
- linkage-ebc. Said: one step towards the optimal proportions at each time, with the gradient by Danskin's theorem and a
  projection on the simplex. Ours: the gradient of the least certain comparison, of length 1/√t; exploration as above.
- linkage-ebc-h. Said: the arm is chosen by what the stopping rule computes. Ours: of the least certain comparison the
  arm with the largest share in its variance.
- linkage-uniform, ours altogether: the least measured arm.

All stop by a proof of `bench.peers.linkage_proof`: linkage-lucb by bounds of single distances, which its rule looks at,
the others by the comparisons. Both are sharper than what a bound on the errors of all arms together would give, so that
what is compared is where they measure. `linkage-atboc-β` has such a bound instead, the threshold of the paper that
ATBOC follows (Yang, Zhong and Tan 2024).

The guess is renewed, and the proof looked at, when t has grown by 1/32. Noise has to be the same in all directions:
distances are those of the results in its units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.peers.linkage_proof import (
    Comparisons,
    Linkage,
    certainty,
    pair_certainty,
    pair_radii,
    paper_certainty,
    single_linkage,
)
from coterie.methods import Evidence, Method, MethodRun, Pull, register
from coterie.methods.maximin import weighted_centers
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings

CANDIDATES = 300
"""Of all comparisons so many, those with the smallest gaps, are looked at to choose an arm; the proof needs all."""


class Hardest:
    """The comparisons of a guess with the smallest gaps: for each its squared gap, and its arms' coefficients c_m²."""

    def __init__(self, all_of: Comparisons) -> None:
        some = np.argsort(all_of.gaps, kind="stable")[:CANDIDATES]
        self.squares: FloatArray = np.asarray(all_of.coefficients[some] ** 2)
        self.gaps: FloatArray = np.asarray(np.maximum(all_of.gaps[some], 1e-12) ** 2)

    def least(self, weights: FloatArray) -> int:
        """The least certain comparison if arms are measured in proportion to `weights`."""
        return int((self.gaps / (self.squares @ (1.0 / weights))).argmin())

    def gradient(self, weights: FloatArray) -> FloatArray:
        """Of the certainty of the least certain comparison in the weights (Danskin); its length means nothing here."""
        return np.asarray(self.squares[self.least(weights)] / weights**2)


@dataclass(frozen=True)
class Reading:
    """What a rule may look at: a guess, its comparisons, how certain each is, and how often arms were measured."""

    found: Linkage
    all_of: Comparisons
    certain: FloatArray
    pulls: IntArray


class Rule(ABC):
    """Which arm is measured next. `planned` counts what is there and what is under way."""

    def __init__(self, n_arms: int, dim: int, delta: float) -> None:
        self.n_arms, self.dim, self.delta = n_arms, dim, delta

    def renew(self, reading: Reading) -> None:  # noqa: B027 (a rule may do without)
        """There is a new guess."""

    @abstractmethod
    def arm(self, planned: IntArray) -> int: ...


class UniformRule(Rule):
    def arm(self, planned: IntArray) -> int:
        return int(planned.argmin())


class BoundsRule(Rule):
    """The edge that may be longest and the pair that may be shortest: in turn the less measured arm of either."""

    def renew(self, reading: Reading) -> None:
        found, radius = reading.found, pair_radii(reading.pulls, self.dim, self.delta)
        (a, b), (i, j) = found.edges.T, found.pairs.T
        self._two = (
            found.edges[(found.distances + radius)[a, b].argmax()],
            found.pairs[(found.distances - radius)[i, j].argmin()],
        )
        self._turn = 0

    def arm(self, planned: IntArray) -> int:
        self._turn = 1 - self._turn
        either = self._two[self._turn]
        return int(either[planned[either].argmin()])


class EliminationRule(Rule):
    """Rounds over the arms of comparisons that are not proven."""

    def renew(self, reading: Reading) -> None:
        self._active = np.flatnonzero(reading.all_of.coefficients[reading.certain <= 1.0].any(axis=0))

    def arm(self, planned: IntArray) -> int:
        return int(self._active[planned[self._active].argmin()])


class HeuristicRule(Rule):
    """Of the least certain comparison the arm with the largest share in its variance."""

    def renew(self, reading: Reading) -> None:
        self._hardest = Hardest(reading.all_of)

    def arm(self, planned: IntArray) -> int:
        at = self._hardest.least(planned.astype(np.float64))
        return int((self._hardest.squares[at] / planned).argmax())


class TrackingRule(Rule):
    """Keeps each arm's count near the sum of the proportions asked for so far."""

    def __init__(self, n_arms: int, dim: int, delta: float) -> None:
        super().__init__(n_arms, dim, delta)
        self.weights: FloatArray = np.full(n_arms, 1.0 / n_arms)
        self._wanted: FloatArray = np.zeros(n_arms)

    def step(self, t: int) -> None:
        """Where the weights change at every measurement."""

    def arm(self, planned: IntArray) -> int:
        t = int(planned.sum())
        self.step(t)
        self._wanted += self.weights
        least = int(planned.argmin())
        if planned[least] < math.sqrt(t / self.n_arms):
            return least
        return int((self._wanted - planned).argmax())


class AverageTrackingRule(TrackingRule):
    """The proportions of every guess are optimized."""

    STEPS = 100

    def renew(self, reading: Reading) -> None:
        hardest = Hardest(reading.all_of)
        log_weights = np.log(np.maximum(self.weights, 1e-4 / self.n_arms))
        total, weight_sum = np.zeros(self.n_arms), 0.0
        for i in range(self.STEPS):
            weights = np.exp(log_weights - log_weights.max())
            weights /= weights.sum()
            gradient = hardest.gradient(weights)
            size = 1.0 / math.sqrt(i + 1.0)
            log_weights += size * gradient / gradient.max()
            total, weight_sum = total + size * weights, weight_sum + size
        self.weights = total / weight_sum


class SingleStepRule(TrackingRule):
    """The proportions take one step up the gradient at every measurement."""

    def renew(self, reading: Reading) -> None:
        self._hardest = Hardest(reading.all_of)

    def step(self, t: int) -> None:
        weights = np.maximum(self.weights, 1e-3 / self.n_arms)
        gradient = self._hardest.gradient(weights)
        self.weights = on_simplex(weights + gradient / np.linalg.norm(gradient) / math.sqrt(t))


def on_simplex(point: FloatArray) -> FloatArray:
    """The nearest point with no negative coordinate and the sum 1."""
    down = np.sort(point)[::-1]
    excess = (np.cumsum(down) - 1.0) / np.arange(1, point.size + 1)
    return np.asarray(np.maximum(point - excess[np.flatnonzero(down > excess)[-1]], 0.0))


Proof = Callable[[Linkage, Comparisons, IntArray, int, float], FloatArray]


class LinkageRun(MethodRun):
    """A rule at work: one result of each arm, then the rule, until the proof is there."""

    def __init__(self, settings: Settings, rule: type[Rule], proof: Proof) -> None:
        n_arms, dim = settings.n_arms, settings.dim
        assert settings.n_clusters is not None, "single linkage has K"
        self._n_clusters, self._dim, self._delta = settings.n_clusters, dim, settings.delta
        self._rule, self._proof = rule(n_arms, dim, settings.delta), proof
        self._pulls = np.zeros(n_arms, dtype=np.int64)
        self._under_way = np.zeros(n_arms, dtype=np.int64)
        self._sums = np.zeros((n_arms, dim))
        self._found: Linkage | None = None
        self._least = -np.inf
        self._renew_at = n_arms

    @property
    def done(self) -> bool:
        return self._least > 1.0

    @property
    def t(self) -> int:
        return int(self._pulls.sum())

    @property
    def pulls(self) -> IntArray:
        return self._pulls.copy()

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        if self._found is None:
            return None
        nowhere = np.zeros((self._n_clusters, self._dim))
        means = self._sums / np.maximum(self._pulls, 1)[:, None]
        return self._found.labels, weighted_centers(means, self._pulls.astype(np.float64), self._found.labels, nowhere)

    def evidence(self) -> Evidence:
        return Evidence(self._least, 1.0, None)

    def ask(self) -> Pull:
        planned = self._pulls + self._under_way
        first = int(planned.argmin())
        arm = first if self._found is None or planned[first] == 0 else self._rule.arm(planned)
        self._under_way[arm] += 1
        return Pull(arm)

    def open_recorded(self, arm: int, of_round: int) -> None:
        self._under_way[arm] += 1

    def give_up(self, arm: int, of_round: int) -> None:
        self._under_way[arm] -= 1

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self._pulls[arm] += 1
        self._under_way[arm] -= asked
        self._sums[arm] += x
        t = self.t
        if t >= self._renew_at and self._pulls.min() > 0:
            self._found = single_linkage(self._sums / self._pulls[:, None], self._n_clusters)
            all_of = Comparisons(self._found)
            certain = self._proof(self._found, all_of, self._pulls, self._dim, self._delta)
            self._least = float(certain.min())
            if not self.done:
                self._rule.renew(Reading(self._found, all_of, certain, self._pulls.copy()))
            self._renew_at = t + max(1, t // 32)


_CHANDRAN = "Chandran, Reddy, Bhashyam (2025), arXiv 2501.11421"
_EFFICIENT = "Chandran, Reddy, Bhashyam (2026), arXiv 2601.09162"


def _method(name: str, rule: type[Rule], sampling: str, manner: str, proof: Proof = certainty) -> Method:
    def start(settings: Settings) -> MethodRun:
        return LinkageRun(settings, rule, proof)

    return Method(
        name,
        f"single linkage: {sampling}; {manner}",
        start,
        sampling=sampling,
        stopping="every edge within a group proven shorter than every pair of different groups",
        has_thresholds=False,
        in_ask_order=True,
        questions=frozenset({"linkage"}),
    )


_TRACKS = "tracks the average of the optimal proportions of the guesses so far"
LINKAGE_PEERS: dict[str, Method] = {
    peer.name: peer
    for peer in (
        _method("linkage-atboc", AverageTrackingRule, _TRACKS, f"in the manner of ATBOC, {_CHANDRAN}"),
        _method("linkage-lucb", BoundsRule, "the bounds that overlap most",
                f"in the manner of LUCBBOC, {_CHANDRAN}", pair_certainty),
        _method("linkage-elim", EliminationRule, "rounds over the arms that are not certain",
                f"in the manner of BOC-Elim, {_CHANDRAN}"),
        _method("linkage-ebc", SingleStepRule, "one step towards the optimal proportions at each measurement",
                f"in the manner of EBC, {_EFFICIENT}"),
        _method("linkage-ebc-h", HeuristicRule, "an arm of the least certain comparison",
                f"in the manner of EBC-H, {_EFFICIENT}"),
        _method("linkage-uniform", UniformRule, "the least measured arm", "ours"),
        _method("linkage-atboc-β", AverageTrackingRule, _TRACKS,
                f"in the manner of ATBOC, {_CHANDRAN}, with the threshold β of Yang, Zhong and Tan", paper_certainty),
    )
}  # fmt: skip


def register_all() -> None:
    """Put the peers into the table of methods."""
    for peer in LINKAGE_PEERS.values():
        register(peer, replace_existing=True)


__all__ = ["LINKAGE_PEERS", "register_all"]
