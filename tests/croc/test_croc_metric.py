"""The estimated metric against plain NumPy: locations, scatter, scale and T, result after result."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from engines import inside

from coterie.methods.croc.run import CrocRun
from coterie.methods.family import family_for
from coterie.problem.families import Counts, Gaussian, Symmetric, noise_of

MODELS: dict[str, Any] = {
    "any": None,
    "symmetric": Symmetric(),
    "full": "gaussian",
    "diagonal": Gaussian("diagonal"),
    "scalar": Gaussian("scalar"),
    "counts": Counts(50),
}
PULLED_IN = {"any", "symmetric"}


class Plain:
    """Where arms lie and how results vary, from the results in their order, by the words of docs/EVIDENCE.md."""

    def __init__(self, n_arms: int, dim: int, pulled_in: bool, shape: str) -> None:
        self.results: list[list[np.ndarray]] = [[] for _ in range(n_arms)]
        self.location = np.zeros((n_arms, dim))
        self.innovations: list[np.ndarray] = []
        self.scale = np.full(dim, np.inf)
        self.scatter = np.zeros((dim, dim))
        self.far: list[float] = []
        self.dim, self.pulled_in, self.shape = dim, pulled_in, shape

    def clip(self, value: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(value, -3.0 * self.scale, 3.0 * self.scale))

    def from_first(self) -> None:
        """Scale and scatter anew from the first 128 innovations, or those that there are."""
        first = np.array(self.innovations[:128])
        median = 1.4826 * np.median(np.abs(first), axis=0)
        pairs = [pair for mine in self.results for pair in pairwise(mine[:-1][:9])]
        ties = np.mean([one == other for one, other in pairs], axis=0) if pairs else np.zeros(self.dim)
        self.scale = np.where((median > 0.0) & (ties < 0.4), median, np.inf)
        self.far = list((np.abs(first) > 3.0 * self.scale).mean(axis=1))
        clipped = self.clip(first)
        self.scatter = clipped.T @ clipped

    def tell(self, arm: int, x: np.ndarray) -> None:
        mine = self.results[arm]
        mine.append(x)
        n = len(mine)
        if n > 1:
            innovation = (x - self.location[arm]) * math.sqrt((n - 1) / n)
            self.innovations.append(innovation)
            if not self.pulled_in:
                self.scatter += np.outer(innovation, innovation)
            elif len(self.innovations) == 128:
                self.from_first()
            elif len(self.innovations) > 128:
                self.far.append(float((np.abs(innovation) > 3.0 * self.scale).mean()))
                self.scatter += np.outer(self.clip(innovation), self.clip(innovation))
        if self.pulled_in and n in (3, 5, 7, 9):
            middle = np.median(mine, axis=0)
            self.location[arm] = middle + self.clip(np.array(mine) - middle).mean(axis=0)
        else:
            step = x - self.location[arm]
            self.location[arm] += (self.clip(step) if self.pulled_in and n > 3 else step) / n

    def covariance(self) -> np.ndarray:
        """Σ̂ as it is used now."""
        degrees = len(self.innovations)
        if self.pulled_in and degrees < 128:
            self.from_first()
        variance = np.diag(self.scatter) * (1.0 + 2.0 / degrees) / degrees
        if self.shape == "scalar":
            variance = np.full(self.dim, variance.mean())
        deviation = np.sqrt(np.diag(self.scatter))
        correlation = self.scatter / np.outer(deviation, deviation)
        off = correlation - np.eye(self.dim)
        squares = float((off**2).sum())
        keep = 0.0
        if self.shape == "full" and squares > 0.0:
            keep = max(0.0, min(1.0 - self.dim * (self.dim - 1) / (degrees * squares), 1.0 - 1e-6))
        return np.asarray((np.eye(self.dim) + keep * off) * np.sqrt(np.outer(variance, variance)))


@pytest.mark.parametrize("world", ["Gaussian", "outliers", "correlated", "rounded"])
@pytest.mark.parametrize("name", list(MODELS))
def test_metric_equals_plain_numpy(name: str, world: str) -> None:
    n_arms, dim = 7, 3
    rng = np.random.default_rng([len(name), len(world)])
    labels, mix = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [0.1, 0.5, 4.0]])
    noise = noise_of(MODELS[name], dim)
    run = CrocRun(n_arms, 3, dim, -math.log(1e-6), family_for(noise, n_arms, 3, dim))
    shape = {"diagonal": "diagonal", "scalar": "scalar"}.get(name, "full")
    plain = Plain(n_arms, dim, name in PULLED_IN, shape)
    measured, origin, compared = 0, np.zeros(dim), 0
    for t in range(700):
        pull = run.pop()
        if pull is None:
            break
        arm, of_round = pull
        if name == "counts":
            x = rng.binomial(50, [0.2, 0.22, 0.25][labels[arm]], dim).astype(float)
        else:
            x = 0.7 * labels[arm] + rng.standard_normal(dim) * (
                10.0 if world == "outliers" and rng.random() < 0.1 else 1
            )
            x = mix @ x if world == "correlated" else x
            x[0] = round(0.5 * x[0]) if world == "rounded" else x[0]
        if t == 0 and name != "counts":
            origin = x
        run.absorb(arm, x, of_round, True)
        if name == "counts":  # on a scale on which the variance does not depend on the rate
            x = 2.0 * np.sqrt(50.5) * np.arcsin(np.sqrt((x + 0.375) / 50.75))
        plain.tell(arm, x - origin)
        found = inside(run)
        if found.metric.measured_at != measured:
            measured = found.metric.measured_at
            assert measured == len(plain.innovations) == found.metric.degrees
            metric = found.metric.to_units
            assert np.array_equal(np.triu(metric, 1), np.zeros((dim, dim)))
            np.testing.assert_allclose(metric @ plain.covariance() @ metric.T, np.eye(dim), atol=1e-7)
            np.testing.assert_allclose(found.arms.means, plain.location @ metric.T, atol=1e-9)
            compared += 1
    assert compared > 15
    its = inside(run).metric
    np.testing.assert_allclose(its.location, plain.location, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.tril(its.scatter), np.tril(plain.scatter), rtol=1e-9, atol=1e-9)
    if plain.pulled_in:
        np.testing.assert_allclose(its.scale, plain.scale)
        assert its.far_share == pytest.approx(np.mean(plain.far))
    assert its.degrees > 150


@pytest.mark.parametrize("name", ["any", "full", "symmetric", "diagonal"])
def test_units_of_the_results_change_nothing(name: str) -> None:
    """pH and turbidity: other units and origins for each number, the same arms, rounds and stop."""
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])

    def arms(scale: Any, origin: Any) -> tuple[list[int], bool]:
        noise, rng = noise_of(MODELS[name], 2), np.random.default_rng(4)
        run = CrocRun(9, 3, 2, -math.log(0.01), family_for(noise, 9, 3, 2))
        asked: list[int] = []
        while not run.done and len(asked) < 2000:
            found = run.pop()
            if found is None:
                break
            asked.append(found[0])
            x = (centers[labels[found[0]]] + rng.standard_normal(2)) * scale + origin
            run.absorb(found[0], x, found[1], True)
        return asked, run.done

    plain = arms(np.ones(2), np.zeros(2))
    assert plain[1]
    assert arms(np.array([2.0**-10, 2.0**13]), np.array([7.0, 2.0**20])) == plain
