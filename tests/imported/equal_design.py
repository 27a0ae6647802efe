"""A method for all three questions that is as plain as can be: every item four times, then the groups of the means.

It proves nothing. It stands in for CROC where a test is about an interface: what is handed on, kept, shown and refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.methods import Evidence, Method, MethodRun, Pull
from coterie.problem.question import QUESTIONS
from coterie.problem.settings import Settings

EACH = 4


class EqualDesign(MethodRun):
    """One run; it works in the user's units."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asked = 0
        self._pulls = np.zeros(settings.n_arms, dtype=np.int64)
        self._sums = np.zeros((settings.n_arms, settings.dim))

    @property
    def done(self) -> bool:
        return bool((self._pulls >= EACH).all())

    @property
    def t(self) -> int:
        return int(self._pulls.sum())

    @property
    def pulls(self) -> Any:
        return self._pulls.copy()

    @property
    def _means(self) -> Any:
        return self._sums / np.maximum(self._pulls, 1)[:, None]

    def _net(self) -> list[int]:
        """References: greedily, items further than (ε + η)/2 from all before them, or the first K of the order."""
        asked, means = self._settings.resolution, self._means
        if asked is None:
            found = [0]
            while len(found) < self._settings.shape[1]:
                apart = np.abs(means[:, None] - means[found][None]).max(axis=2).min(axis=1)
                found.append(int(np.argmax(apart)))
            return found
        middle = (asked.epsilon(self._settings.dim) + asked.eta(self._settings.dim)) / 2.0
        found = []
        for arm in range(len(means)):
            if all((np.abs(means[arm] - means[one]) > middle).any() for one in found):
                found.append(arm)
        return found

    @property
    def guess(self) -> Any:
        if not (self._pulls > 0).all():
            return None
        net, means = self._net(), self._means
        labels = np.abs(means[:, None] - means[net][None]).max(axis=2).argmin(axis=1)
        labels[net] = np.arange(len(net))
        return labels, self._settings.noise.whiten(means[net])

    def ask(self) -> Pull | None:
        if self.done:
            return None
        self._asked += 1
        return Pull((self._asked - 1) % self._settings.n_arms)

    def count(self, arm: int, x: Any, of_round: int, asked: bool) -> None:
        self._pulls[arm] += 1
        self._sums[arm] += self._settings.noise.color(x)

    def evidence(self) -> Evidence:
        return Evidence(float(self._pulls.min()), float(EACH), None)

    @property
    def references(self) -> Any:
        known = self._settings.resolution is not None and self.guess is not None
        return tuple(self._net()) if known else None

    @property
    def borders(self) -> dict[int, list[int]]:
        asked, found = self._settings.resolution, self.guess
        if asked is None or found is None:
            return {}
        near = (np.abs(self._means[:, None] - self._means[self._net()][None]) < asked.eta(self._settings.dim)).all(
            axis=2
        )
        near[np.arange(len(near)), found[0]] = False
        return {int(arm): np.flatnonzero(near[arm]).tolist() for arm in np.flatnonzero(near.any(axis=1))}

    def forecast(self) -> float | None:
        return float(EACH * self._settings.n_arms) if (self._pulls > 0).all() else None

    def resolution_for(self, budget: int) -> float | None:
        total = self.forecast()
        return None if total is None else max(1.0, (total / budget) ** 0.5)

    def is_right(self, instance: Any) -> bool:
        """Whether every item is within η of its reference, and references are more than ε apart."""
        asked = self._settings.resolution
        if asked is None:
            return super().is_right(instance)
        labels, references, dim = self.guess[0], np.array(self.references), instance.dim
        within = np.abs(instance.means - instance.means[references[labels]]) < asked.eta(dim)
        apart = [
            (np.abs(instance.means[one] - instance.means[other]) > asked.epsilon(dim)).any()
            for i, one in enumerate(references)
            for other in references[:i]
        ]
        return bool(within.all() and all(apart))


METHOD = Method(
    "equal-design",
    "measures every item four times",
    EqualDesign,
    has_thresholds=False,
    noises=frozenset({"known", "bounded", "gaussian", "counts", "any"}),
    questions=QUESTIONS,
)
