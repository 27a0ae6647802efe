"""What a sampling rule and a stopping rule of a composed method see of a run: counts, results and the present guess."""

from __future__ import annotations

import numpy as np

from coterie.clustering.maximin import kmeans_maximin
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings


class Tally:
    """Results so far, in units of the noise: standard Gaussian noise in every direction. Its arrays are read-only.

    `pulls` (M) are the results of each arm, `committed` (M) these and the asks under way, `sums` (M, d) the sums of the
    results. Names and symbols: `n_arms` is M, `n_clusters` is K, `dim` is d, `pulls` is N_m(t).
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.n_arms, self.n_clusters, self.dim = settings.shape
        self.delta = settings.delta
        self.t = 0
        self._pulls = np.zeros(self.n_arms, dtype=np.int64)
        self._committed = np.zeros(self.n_arms, dtype=np.int64)
        self._sums = np.zeros((self.n_arms, self.dim))
        self.pulls, self.committed, self.sums = map(_read_only, (self._pulls, self._committed, self._sums))
        self._stacks = [np.zeros((4, self.dim)) for _ in range(self.n_arms)]
        self._guess: tuple[IntArray, FloatArray] | None = None
        self._guessed_at = 0

    @property
    def means(self) -> FloatArray:
        """(M, d) running means; 0 for an arm without a result."""
        means: FloatArray = self._sums / np.maximum(self._pulls, 1)[:, None]
        return means

    def results(self, arm: int) -> FloatArray:
        """(N, d) the results of one arm in the order in which they counted."""
        return _read_only(self._stacks[arm][: self._pulls[arm]])

    @property
    def ready(self) -> bool:
        """Whether there is a guess: every arm has a result."""
        return bool(self._pulls.min() > 0)

    @property
    def labels(self) -> IntArray:
        """(M) the present guess of the groups, by K-means–Maximin (Alg. 2) of the running means."""
        return self._guess_now()[0]

    @property
    def centers(self) -> FloatArray:
        """(K, d) the centers of the present guess."""
        return self._guess_now()[1]

    def _guess_now(self) -> tuple[IntArray, FloatArray]:
        if not self.ready:
            raise ValueError("there is no guess of the groups before every arm has a result")
        if self._guess is None or self._guessed_at != self.t:
            labels, centers = kmeans_maximin(self.means, self._pulls, self.n_clusters)
            self._guess, self._guessed_at = (_read_only(labels), _read_only(centers)), self.t
        return self._guess

    # What the run does to it.

    def commit(self, arm: int, change: int) -> None:
        """Count an ask as under way (+1) or as given up (−1)."""
        self._committed[arm] += change

    def add(self, arm: int, x: FloatArray, asked: bool) -> None:
        """Take in a result; `asked` if its ask was counted as under way."""
        self._committed[arm] += not asked
        stack, n = self._stacks[arm], int(self._pulls[arm])
        if n == len(stack):
            stack = self._stacks[arm] = np.concatenate([stack, np.zeros_like(stack)])
        stack[n] = x
        self._sums[arm] += x
        self._pulls[arm] += 1
        self.t += 1


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.setflags(write=False)
    return view
