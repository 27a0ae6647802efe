"""Bets: numbers fixed with a freeze or a cell, before the results that they judge (docs/EVIDENCE.md, section 9).

Any numbers are valid; a bad bet only proves nothing. They come from the estimate of the groups with offsets for blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.methods.blocks.estimate import Estimate
from coterie.methods.blocks.shape import Shape, feature_count
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Model, bets_on_shape

LEAST_FRACTION = 0.3
"""f: of the distance of two centers, as it was estimated."""
LEAST_RATE = 1e-6
"""Of evidence, in nats."""
ORDER = 16
"""J of an exchangeable bet."""
ROBUST, LEAST_ROBUST, FAR_SHARE = 0.2, 0.02, 0.012
"""The weight of the robust score of an exchangeable bet, without far results and at least; results that are far in
Gaussian noise."""
STEPS, PRIOR = 8, 0.3
"""Of the fit of logits: how many, and the weight of 0 in each."""

SHAPE = "any, with shape"
"""The key of `AnyNoise(shape=True)` in what follows."""
_ANY = (("w", ""), ("J", ""), ("G", "kd"), ("h", "k"), ("f", "kk"), ("Δ", "kk"))
OF_CELL: dict[str, tuple[tuple[str, str], ...]] = {
    "known": (),
    "any": _ANY,
    SHAPE: (*_ANY, ("o", "d"), ("s", "d"), ("P", "kD"), ("p", "k"), ("f of shape", "kk")),
    "gaussian": (("U", "kd"), ("f", "kk")),
    "counts": (("L", "kd"), ("f", "kk")),
    "bounded": (("G", "kd"), ("f", "kk"), ("Δ²", "kk")),
    "at-most": (("U", "kd"), ("f", "kk")),
    "symmetric": (("G", "kd"), ("f", "kk"), ("s²", "p")),
}
"""Names and shapes of the numbers of a cell's bet: one, one a group, a vector a group, a table of groups, one for each
different arm of the cell, by rising number; with shape also one a number of a result, and one a group and feature."""
OF_FREEZE: dict[str, tuple[tuple[str, str], ...]] = {
    "known": (("U", "kd"), ("τ²", "kk")),
    "gaussian": (("G", "kd"), ("Δ", "kk")),
    SHAPE: (("weights", "s"),),
}


class Numbers(dict[str, FloatArray]):
    """The numbers of a bet by name, each in its shape."""

    @classmethod
    def of(cls, noise: Model, bet: dict[str, Any], n_groups: int, dim: int, frozen: bool = False) -> Numbers:
        """Read a bet."""
        numbers, at = cls(), 0
        shapes = {"": (), "k": (n_groups,), "kd": (n_groups, dim), "kk": (n_groups, n_groups), "p": (-1,)}
        shapes |= {"d": (dim,), "s": (3,), "kD": (n_groups, feature_count(dim))}
        flat = np.array(bet["numbers"], dtype=np.float64)
        for name, shape in (OF_FREEZE if frozen else OF_CELL)[SHAPE if bets_on_shape(noise) else noise.kind]:
            size = flat.size - at if shape == "p" else int(np.prod(shapes[shape]))
            numbers[name] = flat[at : at + size].reshape(shapes[shape])
            at += size
        return numbers


def written(parts: Sequence[FloatArray | float]) -> list[float]:
    """The numbers of a bet, one after the other."""
    return [float(number) for part in parts for number in np.asarray(part, dtype=np.float64).reshape(-1)]


def fractions(squares: FloatArray, weights: FloatArray, dim: int) -> FloatArray:
    """(K, K) f = max(0.3, 1 − d·(variance of the difference of two centers)/Δ²); 1 on the diagonal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        f = np.clip(1.0 - dim * weights / squares, LEAST_FRACTION, 1.0)
    return np.where(np.eye(len(f)) > 0, 1.0, np.nan_to_num(f, nan=LEAST_FRACTION))


class Bettor:
    """Makes the bets of a run."""

    def __init__(self, noise: Model, dim: int) -> None:
        self._noise, self._dim = noise, dim

    def of_freeze(self, estimate: Estimate, shape: Shape | None = None) -> dict[str, Any] | None:
        """What is bet with a freeze."""
        if shape is not None:
            return shape.freeze_bet()
        kind = self._noise.kind
        if kind == "known":
            variances = self._variances(estimate)
            numbers = written([estimate.centers, np.where(variances > 0.0, variances, 1.0)])
            return {"from": [0.0] * self._dim, "numbers": numbers}
        if kind == "gaussian":
            weighted, squares = self._weighted(estimate)
            distance = np.sqrt(np.where(squares > 0.0, squares, 1.0))
            return {"from": [0.0] * self._dim, "numbers": written([weighted, distance])}
        return None

    @staticmethod
    def _variances(estimate: Estimate) -> FloatArray:
        """(K, K) the variance of the difference of two centers, in units of the noise."""
        own = np.diag(estimate.inverse)
        return np.asarray(np.maximum(own[:, None] + own - 2.0 * estimate.inverse, 0.0))

    @staticmethod
    def _weighted(estimate: Estimate, centers: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """G = Σ̂⁻¹·Û (K, d), and squared distances of centers in units of the noise."""
        centers = estimate.centers if centers is None else centers
        weighted = np.linalg.solve(estimate.scatter, centers.T).T
        gaps = centers[:, None] - centers
        return np.asarray(weighted), np.asarray(np.einsum("lkq,lkq->lk", gaps, weighted[:, None] - weighted))

    def rates(self, estimate: Estimate) -> FloatArray:
        """(K, K) nats of evidence that two groups are expected to give for w = aA/(a + A) = 1."""
        return np.asarray(np.maximum(0.5 * self._weighted(estimate)[1], LEAST_RATE))

    def of_cell(
        self,
        estimate: Estimate,
        arms: IntArray,
        labels: IntArray,
        logits: FloatArray | None,
        shape: Shape | None = None,
    ) -> dict[str, Any] | None:
        """What is bet on a cell of these arms, for a candidate with these labels; `logits` (K, d) of counts."""
        kind, dim = self._noise.kind, self._dim
        if kind == "known":
            return None
        cell_mean = estimate.centers[labels[arms]].mean(axis=0)  # where the cell's mean will lie
        centers = estimate.centers - cell_mean
        weighted, squares = self._weighted(estimate, centers)
        squares = np.where(np.eye(len(squares)) > 0, 1.0, np.maximum(squares, 1e-18))
        f = fractions(squares, self._variances(estimate), dim)
        if kind == "any":
            heights = 0.5 * np.einsum("kq,kq->k", centers, weighted)
            odds = math.log(ROBUST / (1.0 - ROBUST)) + min(max((estimate.far - FAR_SHARE) / 0.008, 0.0), 4.0)
            weight = max(LEAST_ROBUST, 1.0 / (1.0 + math.exp(-odds)))
            parts = [weight, float(ORDER), weighted, heights, f, np.sqrt(squares)]
            parts += [] if shape is None else shape.cell_bet(labels, cell_mean)
        elif kind == "counts":
            assert logits is not None
            parts = [logits, f]
        elif kind == "bounded":
            parts = [weighted, f, squares]
        elif kind == "symmetric":
            parts = [weighted, f, np.ones(np.unique(arms).size)]  # G is in units of the noise
        else:  # gaussian, at-most
            parts = [centers, f]
        return {"from": [0.0] * dim, "numbers": written(parts)}


def logits_of(successes: FloatArray, trials: FloatArray) -> FloatArray:
    """(K, d) logits of groups with an offset for every block, from successes (K, B, d) of trials (K, B).

    Newton's steps in turn for blocks and groups, each drawn a little towards 0: with few trials a block can lie on a
    border.
    """
    logits = np.zeros((successes.shape[0], successes.shape[2]))
    offsets = np.zeros(successes.shape[1:])
    for _ in range(STEPS):
        for axis, place in ((0, offsets), (1, logits)):
            rate = 1.0 / (1.0 + np.exp(-np.clip(logits[:, None] + offsets, -12.0, 12.0)))
            expected = trials[:, :, None] * rate
            step = ((successes - expected).sum(axis=axis) - PRIOR * place) / (
                (expected * (1.0 - rate)).sum(axis=axis) + PRIOR
            )
            place += np.clip(step, -1.5, 1.5)
    return np.asarray(logits - logits.mean(axis=0))
