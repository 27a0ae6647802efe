"""The evidence of a run: the tests for its noise, which may first have to be bounded by results."""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model, Unknown
from coterie.problem.noise import Noise
from coterie.problem.question import Question, Resolution
from coterie.theory.near_far.families import family_for, norm_of, scale_of
from coterie.theory.near_far.family import Family
from coterie.theory.near_far.gaussian import SHARE_OF_BOUNDS, GaussianFamily, first_results, upper_variances

LEAST_DEVIATION = 1e-3
"""Of the range of a result: its standard deviation is taken for no less, however alike the results."""
LEAST_OF_COUNTS = 0.1
"""Of the square root of the trials: the standard deviation of a count is taken for no less."""
LEAST_VARIANCE = 1e-12
"""Of the square of a unit of a resolution, or of the bound of Gaussian noise: one result is taken to vary no less."""


class Evidence:
    """The tests of a run, and what is known about the variance of one result, in scaled units.

    `log_share`: log of the share of δ that the tests may use. `first_results`: of every arm, that were asked for, from
    which the variance is bounded; 0 if that is not needed.
    """

    def __init__(self, noise: Model, question: Question, n_arms: int, dim: int, delta: float) -> None:
        scale = scale_of(question, dim)
        self._family = family_for(noise, question, dim)
        self.known_variance = np.diag(noise.covariance) / scale**2 if isinstance(noise, Noise) else None
        self.least_variance = np.full(dim, LEAST_VARIANCE)
        self.log_share, self.first_results = 0.0, 0
        stated = noise.statement if isinstance(noise, Unknown) else None
        if isinstance(stated, Bounded):
            self.least_variance = (LEAST_DEVIATION * np.subtract(stated.hi, stated.lo) / scale) ** 2
        elif isinstance(stated, Counts):
            self.least_variance = (LEAST_OF_COUNTS * math.sqrt(stated.trials) / scale) ** 2
        elif isinstance(stated, Gaussian):
            self._norm, self._shape, self._delta, self._scale = norm_of(question), stated.shape, delta, scale
            self._least_reach = 1.0 if isinstance(question, Resolution) else 0.0  # η is a unit, that of a user is none
            self.log_share = math.log(1.0 - SHARE_OF_BOUNDS)
            self.first_results = first_results(n_arms, dim, stated.shape)
            self._first = np.zeros((n_arms, self.first_results, dim))
            self._seen = np.zeros(n_arms, dtype=np.int64)

    @property
    def family(self) -> Family:
        """The tests; they exist once the first results of every arm are there."""
        if self._family is None:
            raise RuntimeError("the noise is not bounded yet: results of some arms are missing")
        return self._family

    def take_over(self, earlier: Evidence, factor: FloatArray) -> None:
        """The first results that were observed in other units, which are `factor` (d) in these."""
        if self.first_results:
            for arm, seen in enumerate(earlier._seen.tolist()):
                for z in earlier._first[arm, :seen]:
                    self.observe(arm, z * factor)

    def observe(self, arm: int, z: FloatArray) -> None:
        """A result that was asked for."""
        if self._family is not None or self._seen[arm] >= self.first_results:
            return
        self._first[arm, self._seen[arm]] = z
        self._seen[arm] += 1
        if (self._seen == self.first_results).all():
            upper = upper_variances(self._first, self._shape, self._delta, self._scale, self._least_reach)
            self._family = GaussianFamily(self._norm, self._shape, upper)
            if self._least_reach == 0.0:
                self.least_variance[:] = LEAST_VARIANCE * upper  # in place: whoever was given it before sees it too
