"""One session and several who measure for it: always busy, in batches, or without asking.

A value is drawn when it is asked for, so in which order the answers come does not change what they are.
"""

from __future__ import annotations

import numpy as np

import coterie

Open = tuple[int, int, np.ndarray]
"""Ticket, arm, and the value that will be told."""


class Crew:
    """Workers on a session for a known instance. `asked` counts the asks, which are numbered as the session does."""

    def __init__(self, session: coterie.Session, instance: coterie.Instance, seed: list[int]) -> None:
        self.session, self.means, self.asked = session, instance.means, 0
        self._values, self._order = (np.random.default_rng([*seed, stream]) for stream in (0, 1))
        self._open: list[Open] = []

    def _draw(self, arm: int) -> np.ndarray:
        return np.asarray(self.means[arm] + self._values.standard_normal(self.means.shape[1]))

    def ask(self, count: int) -> list[Open]:
        """Fewer if the groups are proven meanwhile, or if somebody has to answer first."""
        try:
            arms = self.session.ask(count)
        except (coterie.SessionDone, coterie.Waiting):
            return []
        fresh = [(self.asked + i, arm, self._draw(arm)) for i, arm in enumerate(arms)]
        self.asked += len(fresh)
        return fresh

    def always_busy(self, workers: int, most: int, forgotten: float = 0.0, unasked: float = 0.0) -> None:
        """So many asks are always open; any of them is answered next, and another is asked for. Up to `most` asks.

        `forgotten`: the share of asks that are given up. `unasked`: as many results, of an arm with no open ask, come
        on top for each answer.
        """
        while not self.session.done and self.asked < most:
            self._open += self.ask(workers - len(self._open))
            if self.session.done or not self._open:
                return
            ticket, arm, value = self._open.pop(int(self._order.integers(len(self._open))))
            if self._order.random() < forgotten:
                self.session.forget(ticket)
            else:
                self.session.tell(arm, value, ticket)
            if self._order.random() < unasked:
                self._tell_unasked()

    def _tell_unasked(self) -> None:
        idle = np.setdiff1d(np.arange(len(self.means)), [arm for _, arm, _ in self._open])
        if idle.size:  # of another arm it would answer an open ask
            arm = int(self._order.choice(idle))
            self.session.tell(arm, self._draw(arm))

    def in_batches(self, size: int, most: int) -> None:
        """Ask for so many at once, answer all of them, and again."""
        while not self.session.done and self.asked < most:
            batch = self.ask(size)
            if batch:
                tickets, arms, values = zip(*batch, strict=True)
                self.session.tell(list(arms), np.array(values), list(tickets))

    def in_turn(self, most: int) -> None:
        """Nobody asks: one result of each arm after the other."""
        while not self.session.done and self.session.t < most:
            arm = self.session.t % len(self.means)
            self.session.tell(arm, self._draw(arm))


def new_session(instance: coterie.Instance, delta: float, method: str = "croc") -> coterie.Session:
    """A session that may prove this instance's groups."""
    return coterie.Session(instance.n_arms, instance.n_clusters, instance.dim, delta, method=method, noise=1.0)
