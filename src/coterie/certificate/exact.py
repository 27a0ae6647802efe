"""Sums of results and differences of their means, without losing digits to where the results lie.

A mean 1e12 standard deviations from zero leaves a float 4 digits of the noise; a sum of a million such leaves none. So
a coordinate is taken as `whole` steps, which are integers and add up exactly, and a `rest` of at most half a step. A
step is a power of two, about 32 standard deviations: to cut a float into both rounds nothing. Differences of means are
formed from whole steps first, exactly, and put into units of the noise last (that map is linear).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.noise import Noise

LARGEST = 1e12
"""The largest result, in standard deviations from zero: of those beyond, a float does not resolve the noise."""

_STEP = 32.0
_MOST_STEPS = 2**62  # no sum may leave the integers of 64 bits


class Sums(NamedTuple):
    """Sums of results, one a row: of how many, their whole steps, and what is left."""

    counts: IntArray  # (n)
    whole: IntArray  # (n, d)
    rest: FloatArray  # (n, d)

    def rows(self, which: IntArray | slice) -> Sums:
        """These rows."""
        return Sums(self.counts[which], self.whole[which], self.rest[which])

    def pooled(self, groups: IntArray, n_groups: int) -> Sums:
        """One row for each group: the sum of its rows."""
        shape = (n_groups, self.whole.shape[1])
        pools = Sums(np.zeros(n_groups, dtype=np.int64), np.zeros(shape, dtype=np.int64), np.zeros(shape))
        for pool, own in zip(pools, self, strict=True):
            np.add.at(pool, groups, own)
        return pools

    def without(self, part: Sums) -> Sums:
        """What is left of each row when a part of it is taken out."""
        return Sums(self.counts - part.counts, self.whole - part.whole, self.rest - part.rest)


class Units:
    """The steps that suit a noise, and the way from them to units of the noise."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        plain = None if noise.is_identity else np.array(noise.to_json(), dtype=np.float64)
        if plain is not None and plain.ndim == 2:
            # Of a coordinate what counts is the largest trace that it leaves in units of the noise.
            trace = np.abs(noise.whiten(np.eye(noise.dim))).max(axis=1)
            self._power: IntArray = -np.frexp(trace)[1].astype(np.int64)
            self._map: FloatArray = noise.whiten(np.diag(np.ldexp(1.0, self._power)))
        else:
            deviations = np.broadcast_to(1.0 if plain is None else plain, noise.dim)
            self._power = np.frexp(deviations)[1].astype(np.int64) - 1
            self._map = noise.whiten(np.ldexp(1.0, self._power))

    def results(self, values: FloatArray) -> Sums:
        """Results (t, d) in the user's units, each a sum of one. ValueError names one that is too far from zero."""
        far = ~(np.abs(self._noise.whiten(values)) <= LARGEST)  # also where that is not a number
        if far.any():
            row = int(np.argmax(far.any(axis=1)))
            raise ValueError(
                f"result {row + 1} of the log, {short(values[row].tolist())}, lies more than {LARGEST:g} standard "
                "deviations from zero: a float does not resolve the noise there; measure from an origin that is closer"
            )
        scaled = np.ldexp(values, -self._power) / _STEP
        steps = np.rint(scaled)
        if not float(np.abs(steps).max(initial=0.0)) * len(values) < _MOST_STEPS:
            raise ValueError(
                f"{len(values)} results, up to {np.abs(scaled).max() * _STEP:.3g} of the noise's smallest standard "
                "deviations from zero, cannot be added up without rounding: measure from an origin that is closer"
            )
        rest = (scaled - steps) * _STEP  # nothing is rounded here
        return Sums(np.ones(len(values), dtype=np.int64), steps.astype(np.int64), rest)

    def gap(self, first: Sums, second: Sums) -> FloatArray:
        """The mean of each row of `first` minus that of `second`, in units of the noise; no row may be of nothing."""
        one, two = first.counts[:, None], second.counts[:, None]
        (steps, left), (its_steps, its_left) = np.divmod(first.whole, one), np.divmod(second.whole, two)
        near = (left / one - its_left / two) * _STEP + (first.rest / one - second.rest / two)
        far = (steps - its_steps) * _STEP + near
        return np.asarray(far @ self._map if self._map.ndim == 2 else far * self._map)
