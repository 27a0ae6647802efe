"""What a session should do, plainly: Alg. 1 computed anew at every step, and all that can be seen of a session."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import coterie
from coterie.evidence.allocation import project_to_floor
from coterie.evidence.stopping import alternative_value
from tests.oracles.paper import guess_allocation

ASK, TELL, FORGET = 0, 1, 2
CLOSE = 1e-9
"""Relative distance within which two computations of the same may fall on either side of a limit."""
RATIO = 0.3
"""The `distance_ratio` of "boc-linear"."""


class Algorithm1:
    """Alg. 1 (algo1) for results of any arm in any order, from scratch each time; the guess is K-means–Maximin's."""

    def __init__(self, method: str, kind: str, delta: float, truth: coterie.Instance) -> None:
        self.method, self.kind, self.delta, self.truth = method, kind, delta, truth
        self.sums = np.zeros((truth.n_arms, truth.dim))
        self.pulls = np.zeros(truth.n_arms, dtype=np.int64)
        self.guess: Any = None
        self.statistic, self.limit, self.done = 0.0, math.inf, False

    @property
    def coincident(self) -> bool:
        """Whether centers of the guess are equal but for rounding: then either statistic is right."""
        gaps = ((self.guess[1][:, None] - self.guess[1][None]) ** 2).sum(axis=2)
        return bool((gaps + np.eye(len(gaps)) < 1e-20).any())

    def forced(self, counts: np.ndarray) -> bool:
        floor = max(math.sqrt(counts.sum()) - counts.size / 2, 0.0)
        return self.method in ("boc", "oracle") and bool(counts.min() <= floor)  # line 3

    def observe(self, arm: int, x: np.ndarray) -> None:
        self.sums[arm] += x
        self.pulls[arm] += 1
        if self.pulls.min() == 0:
            return
        self.limit = coterie.threshold(self.delta, self.pulls, self.truth.dim, self.kind)
        if self.guess is not None:  # line 11: the guess of t−1
            labels, centers = self.guess
            means = self.sums / self.pulls[:, None]
            z1 = (self.pulls * ((means - centers[labels]) ** 2).sum(axis=1)).sum()
            z2 = 0.0 if self.coincident else alternative_value(labels, centers, self.pulls.astype(float))
            self.statistic = 0.5 * max(math.sqrt(z2) - math.sqrt(z1), 0.0) ** 2

    def settle(self) -> None:
        """The guess of t, unless the run has stopped: c^out is that of t−1."""
        if self.pulls.min() > 0 and (self.guess is None or not self.forced(self.pulls)):
            self.guess = coterie.kmeans_maximin(
                self.sums / self.pulls[:, None], self.pulls, self.truth.n_clusters
            )  # line 6

    def next_arm(self, pending: dict[int, int]) -> int:
        counts = self.pulls + np.bincount(list(pending.values()), minlength=self.pulls.size)
        if self.guess is None or self.method == "uniform" or self.forced(counts):
            return int(np.argmin(counts))
        known = (self.truth.labels, self.truth.centers) if self.method == "oracle" else self.guess
        shares = guess_allocation(*known)
        if self.method == "boc-linear":
            shares = project_to_floor(shares, RATIO**2 / (2 * counts.size))
        scores = counts.sum() * shares - counts  # line 8
        return int(np.argmax(scores >= scores.max() - 1e-9 * counts.sum()))


def seen(session: coterie.Session) -> dict[str, Any]:
    """All that can be seen of a session."""
    labels, centers = session.labels, session.centers
    found = {
        "saved": session.to_dict(),
        "pending": session.pending,
        "pulls": session.pulls.tolist(),
        "t": session.t,
        "done": session.done,
        "waiting": session.waiting,
        "alarm": session.alarm,
        "evidence": repr(session.evidence),  # a forecast may be NaN
        "labels": None if labels is None else labels.tolist(),
        "centers": None if centers is None else centers.tolist(),
        "log": [(arm, x.tolist()) for arm, x in session.log],
    }
    if session.method == "croc":
        found |= {"events": session.events, "certificate": session.certificate}
        found["partial"] = repr(session.partial())
    return found


class Conversation:
    """Open tickets, what was told, and which results count: in ask order of each arm for CROC, else as they come."""

    def __init__(self, plain: Algorithm1, root: Any) -> None:
        self.plain, self.root = plain, root  # root: L of the noise's covariance L·L'
        arms = range(plain.truth.n_arms)
        self.open: dict[int, int] = {}  # ticket: arm
        self.following = 0
        self.told: list[tuple[int, list[float]]] = []
        self.closed: list[tuple[int, int]] = []  # tickets that were answered or given up
        self.entries: list[tuple[int, int, int, Any]] = []  # the conversation, as `Session.replay` takes it
        self.counted: list[list[np.ndarray]] = [[] for _ in arms]  # whitened
        self.lines: list[list[list[Any]]] = [
            [] for _ in arms
        ]  # places in CROC's lines: [ticket or None, result or None]
        self.stopped = False

    def asked(self, arm: int) -> None:
        self.entries.append((ASK, arm, self.following, [np.nan] * len(self.root)))
        self.open[self.following] = arm
        if self.plain.method == "croc":
            self.lines[arm].append([self.following, None])
        self.following += 1

    def take(self, arm: int, x: list[float], ticket: int | None, done: bool) -> None:
        """A result that answers this ticket; without one, the oldest open ask of its arm, if there is one.

        `done`: whether the session has stopped by now; it is believed where only rounding decides.
        """
        self.entries.append((TELL, arm, -1 if ticket is None else ticket, x))
        if ticket is None:
            ticket = next((number for number, its in self.open.items() if its == arm), None)
        if ticket is not None:
            self.closed.append((ticket, self.open.pop(ticket)))
        self.told.append((arm, x))
        if self.stopped:
            return
        white = np.linalg.solve(self.root, np.array(x))
        if self.plain.method == "croc":
            if ticket is None:
                self.lines[arm].append([None, white])
            else:
                next(place for place in self.lines[arm] if place[0] == ticket)[1] = white
            self._release(arm)
        elif not self.plain.done:
            self.plain.observe(arm, white)
            self.counted[arm].append(white)
            statistic, limit = self.plain.statistic, self.plain.limit
            self.plain.done = done if abs(statistic - limit) <= CLOSE * limit else statistic >= limit
            if not self.plain.done:
                self.plain.settle()

    def give_up(self, ticket: int) -> None:
        arm = self.open.pop(ticket)
        self.entries.append((FORGET, arm, ticket, [0.0] * len(self.root)))
        self.closed.append((ticket, arm))
        if not self.stopped:
            self.lines[arm] = [place for place in self.lines[arm] if place[0] != ticket]
            self._release(arm)

    def _release(self, arm: int) -> None:
        """Count what no open ask is ahead of."""
        while self.plain.method == "croc" and self.lines[arm] and self.lines[arm][0][1] is not None:
            self.counted[arm].append(self.lines[arm].pop(0)[1])

    def cut(self, counts: list[int]) -> None:
        """Results that came together with the one that proved the groups do not count any more."""
        for arm, count in enumerate(counts):
            assert count <= len(self.counted[arm])
            del self.counted[arm][count:]
