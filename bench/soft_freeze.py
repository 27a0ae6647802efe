"""A soft freeze: a candidate whose tests begin while a few arms are still open. Measured beside CROC, not part of it.

    python -m bench.soft_freeze 100 "M=100 K=5 d=10 gap 3" 0.1

plays CROC and the soft freeze on the same prepared stacks of results and prints both, and the paired difference.
Without a case it does so for those of docs/CROC.md, section 12. The rule is `coterie.reference_croc` with another
freeze: slow and plain, for one worker.

**The rule.** At the freeze the estimate ĉ is cut in two. The *closed* arms C have the tests of section 5 among
themselves (pools and cores are closed arms only), at the level b of the epoch. An *open* arm m, of a set U, has a
test against the closed arms G_k of *every* group k, its own included. With p(l) the weight of "m is in l" at the
freeze, the evidence of that test is the mean, with weights p(l) over l ≠ k, of E with θ0 = Û_l − Û_k as in section 4.
An open arm may end in another group than ĉ has it in; then it has *moved*. With r arms moved, labels c' are proven if
all tests of closed arms are met and, at this moment, every open arm m has evidence against every k ≠ c'_m of at least

    b + log((r+1)/β) if it has not moved,     b + log(|U|/(1−β)) if it has.

A test whose evidence is enough for what was asked of it when a round was composed does not use that round. Evidence
is what it is at the end: it is not latched, because what is asked for grows with r.

**Theorem.** Given all that was known at the freeze, wrong labels are ever proven with probability at most e^−b.

*Proof.* Let c be the truth, of at most K groups. *The closed arms are wrong:* c and ĉ differ on C. Lemma 5, with C
for all arms, gives a void test at level b, or two disjoint ones at b/2, fixed at the freeze: at most e^−b, by Lemma 4
or 6. *They are right:* then c has K groups, one around each G_k; let m ∈ U be in group t_m. The test of m against t_m
is void. Its evidence E_m is a martingale that starts at 1 (Lemma 4; which rounds it uses is decided before they
begin). So is, with B = {m ∈ U: ĉ_m ≠ t_m} and n = |B|, and whatever pools the tests share,

    Z = β·(1/n)·Σ_{m∈B} E_m + (1−β)·(1/|U|)·Σ_{m∈U} E_m     (the first mean is 1 if B is empty).

Let c' ≠ c be proven: some m ∈ U has c'_m ≠ t_m. If one of these has moved, (1−β)/|U|·E_m ≥ e^b for it alone. If none
has, the arm is in B; and all j arms of B that have not moved are wrong, j ≥ max(1, n−r), each with E_m ≥ e^b·(r+1)/β.
Now j·(r+1) ≥ n: that is plain if n ≤ r+1, and (n−r)(r+1) − n = r·(n−r−1) ≥ 0 if n > r. So Z ≥ e^b either way. Ville.
∎

The two cases exclude each other, so closed arms pay nothing for open ones, and a single open arm pays log(1/β). Pairs
from the start meet tests as in section 6. `weight_of_wrong` is the combinatorial half of the proof: a test tries all
small cases.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import coterie
from bench.instances import named
from coterie.engine.croc.run import CrocRun
from coterie.problem.checks import FloatArray
from coterie.problem.partition import same_partition
from coterie.reference_croc import ReferenceCroc, rule
from coterie.reference_croc.epochs import Epoch, Round, Test
from coterie.reference_croc.partitions import Partition, squared
from coterie.reference_croc.risk import Risk

UNMOVED_SHARE = 0.8
"""β: of an epoch's level, for open arms that stay where the candidate has them."""
CLOSED_RISK = 0.1
"""Arms are open, the most doubtful first, until the others are misgrouped with at most this risk …"""
OPEN_RISK = 0.3
"""… and frozen while the open ones have at most this one: about how many of them will move."""
CLOSED_ARMS = 4
"""A group keeps so many closed arms; smaller ones have none open."""
LEAST_WEIGHT = 1e-3
"""p(l) is at least this, relatively."""

SEED = 16_000
CASES = (("M=40 K=4 d=5 gap 1", 0.1), ("M=100 K=5 d=10 gap 3", 0.1))


def weight_of_wrong(guess: Sequence[int], truth: Sequence[int], answer: Sequence[int]) -> float:
    """The least Z/e^b of the proof when this answer, wrong for some open arm, is given; closed arms are right."""
    arms = range(len(guess))
    moved = sum(answer[m] != guess[m] for m in arms)
    in_doubt = sum(guess[m] != truth[m] for m in arms)  # |B|
    total = 0.0
    for m in arms:
        if answer[m] == truth[m]:
            continue
        asked = len(guess) / (1.0 - UNMOVED_SHARE) if answer[m] != guess[m] else (moved + 1) / UNMOVED_SHARE
        total += asked * (1.0 - UNMOVED_SHARE) / len(guess)
        if guess[m] != truth[m]:
            total += asked * UNMOVED_SHARE / in_doubt
    return total


@dataclass
class SoftEpoch(Epoch):
    """An epoch whose open arms have the label −1; `guess` is where the candidate has them."""

    guess: dict[int, int] = field(default_factory=dict)
    prior: dict[int, FloatArray] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)
    open_tests: list[Test] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tests = [test for test in self.tests if self.labels[test.arm] >= 0]
        pools = [tuple(m for m, label in enumerate(self.labels) if label == k) for k in range(len(self.cores))]
        self.open_tests = [Test("group", m, pool, -1, k, 0.0) for m in self.guess for k, pool in enumerate(pools)]

    def asked(self, arm: int) -> float:
        """What the tests of an open arm have to reach, with the arms that have moved by now."""
        if arm in self.moved:
            return self.level + math.log(len(self.guess) / (1.0 - UNMOVED_SHARE))
        return self.level + math.log((len(self.moved) + 1.0) / UNMOVED_SHARE)

    def use(self, complete: Round) -> None:
        """Closed arms as ever; an open arm's test that lacks evidence gets its contrast."""
        super().use(complete)
        for test in self.open_tests:
            pool = [q for q in test.pool if q in complete.pulls]
            if test in self.met or test.arm not in complete.pulls or not pool or self.is_enough(test):
                continue
            n_arm, n_pool = complete.pulls[test.arm], sum(complete.pulls[q] for q in pool)
            contrast = complete.sums[test.arm] / n_arm - np.sum([complete.sums[q] for q in pool], axis=0) / n_pool
            self.contrasts.setdefault(test, []).append((contrast, 1.0 / n_arm + 1.0 / n_pool))

    def is_enough(self, test: Test) -> bool:
        """Whether an open arm's test has what is asked of it now."""
        return test in self.contrasts and self.mixture(test) >= self.asked(test.arm)

    def mixture(self, test: Test) -> float:
        """log of the mean evidence against group k over the other groups that the arm may be in."""
        others = [k for k in range(len(self.cores)) if k != test.rival]
        contrasts, v = (np.array(part) for part in zip(*self.contrasts[test], strict=True))
        n, total = float((1.0 / v).sum()), (contrasts / v[:, None]).sum(axis=0)
        theta = self.centers[others] - self.centers[test.rival]
        spread = 1.0 / self.totals[others] + 1.0 / self.totals[test.rival]
        growth = 1.0 + n * spread
        fit = 2.0 * theta @ total + spread * (total @ total) - n * squared(theta)
        logs = fit / (2.0 * growth) - 0.5 * total.size * np.log(growth)  # section 4
        weights = self.prior[test.arm][others]
        return float(np.logaddexp.reduce(logs + np.log(weights)) - math.log(weights.sum()))


class SoftRisk(Risk):
    """P_w without the open arms: those of the epoch that is under way, or those that a freeze now would leave open."""

    held: SoftEpoch | None = None
    leads: Sequence[int] = ()
    opened: Collection[int] = ()

    def look(self, guess: Partition) -> float:
        """As ever, and which arms to leave open."""
        total = super().look(guess)
        if self.held is not None:
            return total - sum(self._unsure[m] for m in self.held.guess)
        self.opened = self._doubtful(guess)
        left = total - sum(self._unsure[m] for m in self.opened)
        return left if total - left <= OPEN_RISK else total

    def _doubtful(self, guess: Partition) -> list[int]:
        closed, arms = np.bincount(guess.labels), self._of_arms
        left, found = self.total, []
        for m in sorted(range(len(guess.labels)), key=lambda m: -self._unsure[m]):
            if left <= rule.FREEZE_RISK and arms <= CLOSED_RISK:
                break
            if self._unsure[m] > 0.0 and m not in self.leads and closed[guess.labels[m]] > CLOSED_ARMS:
                found.append(m)
                closed[guess.labels[m]] -= 1
                left, arms = left - self._unsure[m], arms - self._unsure[m]
        return found


class SoftFreeze(ReferenceCroc):
    """CROC with the soft freeze; one worker."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, delta: float) -> None:
        super().__init__(n_arms, n_clusters, dim, delta)
        self._soft_risk = self._risk = SoftRisk(self._stacks, n_arms)

    def _go_on(self) -> bool:
        return False  # every plan is a full one

    def _find_epoch(self) -> SoftEpoch | None:
        found = None
        for epoch in self._remembered:
            assert isinstance(epoch, SoftEpoch)
            closed = [m for m, label in enumerate(epoch.labels) if label >= 0]
            if same_partition([epoch.labels[m] for m in closed], self._now.labels[closed]):
                found = epoch
        self._soft_risk.held, self._soft_risk.leads = found, self._pairs.leads
        return found

    def _freeze(self) -> Epoch:
        whole, risk = super()._freeze(), self._soft_risk
        opened = risk.opened
        labels = [-1 if m in opened else label for m, label in enumerate(whole.labels)]
        guess = {m: whole.labels[m] for m in opened}
        prior = {m: self._weights(m) for m in opened}
        parts = (whole.number, whole.t, whole.level, labels, whole.cores, whole.centers, whole.totals)
        self.freezes[-1] = risk.held = SoftEpoch(*parts, guess=guess, prior=prior)
        return self.freezes[-1]

    def _weights(self, m: int) -> FloatArray:
        """p(l) ~ exp(−D_ml), 1 for the arm's own group."""
        now, n, home = self._now, self._stacks.count(m), int(self._now.labels[m])
        gaps = squared(self._stacks.mean(m) - now.centers)
        cost = gaps * n * now.totals / (n + now.totals)
        cost[home] = gaps[home] * n * now.totals[home] / (now.totals[home] - n)
        found: FloatArray = np.exp(-0.5 * np.maximum(cost - cost[home], 0.0))
        return np.maximum(found, LEAST_WEIGHT)

    def _unmet(self, epoch: Epoch) -> list[Test]:
        assert isinstance(epoch, SoftEpoch)
        found, labels = super()._unmet(epoch), self._now.labels
        name = {int(labels[core[0]]): k for k, core in enumerate(epoch.cores)}
        place = {m: name[int(labels[m])] for m in epoch.guess}
        epoch.moved = {m for m in epoch.guess if place[m] != epoch.guess[m]}
        for test in epoch.open_tests:
            lead = epoch.cores[test.rival][0]
            leads = self._pairs.leads[labels[lead]] == lead and self.alarm is None
            if leads and self._pairs.settled[test.arm, labels[lead]]:
                epoch.met.add(test)
            if place[test.arm] != test.rival and test not in epoch.met and not epoch.is_enough(test):
                found.append(test)
        return found


def stacks_of(instance: coterie.Instance, trial: int) -> Callable[[int], FloatArray]:
    """The next result of an arm: the same s-th one for every rule."""
    streams = [np.random.default_rng([SEED, trial, m]) for m in range(instance.n_arms)]
    return lambda arm: instance.means[arm] + streams[arm].standard_normal(instance.dim)


def croc(instance: coterie.Instance, delta: float, trial: int, pair_share: float | None = None) -> tuple[int, bool]:
    """Results until CROC stops, and whether it was right; with another share α of δ for the pairs, if there is one."""
    run, draw = (
        CrocRun(instance.n_arms, instance.n_clusters, instance.dim, -math.log(delta)),
        stacks_of(instance, trial),
    )
    if pair_share is not None:
        family = replace(run.family, pair_share=pair_share)
        run = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, -math.log(delta), family)
    while (planned := run.pop()) is not None:
        run.absorb(planned[0], draw(planned[0]), planned[1], asked=True)
    return run.t, same_partition(run.state.labels, instance.labels)


def soft(instance: coterie.Instance, delta: float, trial: int) -> tuple[int, bool]:
    """The same of the soft freeze."""
    run = SoftFreeze(instance.n_arms, instance.n_clusters, instance.dim, delta)
    draw = stacks_of(instance, trial)
    while (arm := run.ask()) is not None:
        run.tell(arm, draw(arm))
    return run.t, same_partition(run.labels, instance.labels)


def line(
    name: str, delta: float, trials: int, first: int, rival: Callable[[Any, float, int], tuple[int, bool]],
    instance: coterie.Instance | None = None,
) -> str:  # fmt: skip
    """CROC and a rival on one case; `instance` where it has no name in `bench.instances`."""
    ends = np.array([
        [play(instance or named(name, trial), delta, trial) for trial in range(first, first + trials)]
        for play in (croc, rival)
    ], dtype=np.float64)  # fmt: skip
    t, right = ends[:, :, 0], ends[:, :, 1]
    said = [
        f"{t[i].mean():.1f}, median {np.median(t[i]):.0f}, 95 % {np.quantile(t[i], 0.95):.0f}, "
        f"{trials - right[i].sum():.0f} wrong"
        for i in range(2)
    ]
    gain = 100.0 * (t[1] - t[0]) / t[0].mean()
    error = gain.std(ddof=1) / math.sqrt(trials)
    return f"{name}, δ = {delta:g}: CROC {said[0]}; then {said[1]}; {gain.mean():+.1f} ± {error:.1f} %"


if __name__ == "__main__":
    asked = [(sys.argv[2], float(sys.argv[3]))] if len(sys.argv) > 3 else CASES
    for case, level in asked:
        print(line(case, level, int(sys.argv[1]) if len(sys.argv) > 1 else 50, 1000, soft), flush=True)
