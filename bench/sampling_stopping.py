"""Sampling rules and stopping rules taken apart, so that each can be put together with the others.

A sampler says which arm is next and is told results; a stop is told the same results and says when the groups are
proven. CROC's certificate by rounds cannot be told what somebody else measured, because the composition of a round must
be fixed before its results: with it, a foreign sampling rule composes the rounds (`RoundsInTurn`, `TrackingRounds`).
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from bench.peers.universal import UniversalStop
from coterie.evidence.allocation import solve_allocation
from coterie.methods import method_named
from coterie.methods.croc.run import ALPHA, CrocRun
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings
from tests.oracles.croc import ReferenceCroc, rule
from tests.oracles.croc.epochs import Epoch, Test
from tests.oracles.croc.pairs import Pairs

Shape = tuple[int, int, int]
"""M, K, d."""


class Sampler(Protocol):
    """Where to measure."""

    def ask(self) -> int: ...

    def tell(self, arm: int, x: FloatArray) -> None: ...


class Stop(Protocol):
    """When to stop."""

    @property
    def done(self) -> bool: ...

    @property
    def labels(self) -> IntArray: ...

    def tell(self, arm: int, x: FloatArray) -> None: ...


class InTurn:
    """The least measured arm."""

    def __init__(self, shape: Shape, delta: float) -> None:
        self._pulls = np.zeros(shape[0], dtype=np.int64)

    def ask(self) -> int:
        return int(self._pulls.argmin())

    def tell(self, arm: int, x: FloatArray) -> None:
        self._pulls[arm] += 1


class Tracking:
    """BOC's: λ* of the present guess, with forced exploration. It is the engine's."""

    def __init__(self, shape: Shape, delta: float) -> None:
        self._run = method_named("boc").start(Settings.of(*shape, delta, method="boc", noise=1.0))

    def ask(self) -> int:
        found = self._run.ask()
        assert found is not None
        return found.arm

    def tell(self, arm: int, x: FloatArray) -> None:
        self._run.count(arm, x, 0, True)


class Challenger:
    """For universal inference: the least measured arm of the groups in which the likeliest two partitions differ."""

    def __init__(self, shape: Shape, delta: float, stop: UniversalStop) -> None:
        self._pulls, self._stop = np.zeros(shape[0], dtype=np.int64), stop

    def ask(self) -> int:
        pulls, n = self._pulls, self._pulls.size
        least = int(pulls.argmin())
        if pulls[least] == 0 or pulls[least] < 0.5 * math.sqrt(pulls.sum() / n):
            return least
        best, rival = set(self._stop.best.tolist()), set(self._stop.rival.tolist())
        involved = [code for code in best if code not in rival]
        moved = [code for code in rival if code not in best]
        # Every group of the likeliest that the rival cuts or merges has to be measured, and the arms that move most.
        shared = {code & other for code in involved for other in moved if code & other}
        pieces = [np.flatnonzero((piece >> np.arange(n)) & 1) for piece in shared]
        if not pieces:
            return least
        piece = min(pieces, key=lambda arms: (pulls[arms].sum(), arms[0]))
        return int(piece[pulls[piece].argmin()])

    def tell(self, arm: int, x: FloatArray) -> None:
        self._pulls[arm] += 1


class PairsFromTheStart:
    """CROC's pairs (docs/CROC.md, section 3) at log(H/δ), all of δ for them, whoever sampled: the engine, told results
    that it did not ask for. Its share α of δ' = δ/α is δ."""

    def __init__(self, shape: Shape, delta: float) -> None:
        self._run = CrocRun(*shape, -math.log(delta / ALPHA))

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def labels(self) -> IntArray:
        return np.asarray(self._run.labels)

    def tell(self, arm: int, x: FloatArray) -> None:
        self._run.absorb(arm, x, 0, asked=False)


def universal(shape: Shape, delta: float) -> UniversalStop:
    return UniversalStop(*shape, -math.log(delta))


# CROC itself, with one thing changed: sampler and stop in one.


class PairsOnly(ReferenceCroc):
    """CROC's sampling for pairs, and nothing frozen: pairs at log(H/δ), all of δ for them."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, delta: float) -> None:
        super().__init__(n_arms, n_clusters, dim, delta)
        equal_pairs = (n_arms - n_clusters + 1) * (n_arms - n_clusters) / 2
        self._pairs = Pairs(self._stacks, n_arms, n_clusters, math.log(equal_pairs / delta))
        self._greedy_limit = math.inf

    def _decide(self) -> None:
        if self._pairs_done():
            self._prove("pairs")
        elif self._risk.look(self._now) < rule.LARGEST_RISK:
            self._mode = "pairs"
        else:
            self._mode = "explore"


class RoundsInTurn(ReferenceCroc):
    """CROC's freezes, tests and pairs; explored and tested with every arm in turn."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, delta: float) -> None:
        super().__init__(n_arms, n_clusters, dim, delta)
        self._greedy_limit = -1.0  # no pulls for pairs

    def _explore(self) -> None:
        self._queue.extend(range(self.n_arms))

    def _composition(self, epoch: Epoch, unmet: list[Test]) -> dict[int, int]:
        return dict.fromkeys(range(self.n_arms), 1)


class TrackingRounds(RoundsInTurn):
    """The same with BOC's tracking: the next M pulls towards λ* of the estimate, or of the candidate, are a round."""

    def _explore(self) -> None:
        chosen = self._tracked(self._now.labels.tolist(), self._now.centers)
        self._queue.extend(m for m, count in sorted(chosen.items()) for _ in range(count))

    def _composition(self, epoch: Epoch, unmet: list[Test]) -> dict[int, int]:
        return self._tracked(epoch.labels, epoch.centers)

    def _tracked(self, labels: list[int], centers: FloatArray) -> dict[int, int]:
        sizes = np.bincount(labels, minlength=self.n_clusters)
        gaps = ((centers[:, None] - centers[None]) ** 2).sum(axis=2)
        share = (solve_allocation(sizes, gaps).cluster_weights / sizes)[labels]
        pulls, chosen = np.array(self._committed, dtype=float), np.zeros(self.n_arms, dtype=int)
        for _ in range(self.n_arms):
            least = int(pulls.argmin())
            forced = pulls[least] < math.sqrt(pulls.sum() / self.n_arms)  # no arm is forgotten
            arm = least if forced else int((pulls.sum() * share - pulls).argmax())
            chosen[arm] += 1
            pulls[arm] += 1
        return {m: int(count) for m, count in enumerate(chosen) if count}
