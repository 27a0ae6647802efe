"""Evidence that two means are near each other, or far apart: a family of tests for each noise (docs/RESOLUTION.md)."""

from __future__ import annotations

import numpy as np

from coterie.evidence.near_far.bounded import BoundedFamily
from coterie.evidence.near_far.counts import CountsFamily
from coterie.evidence.near_far.family import Family
from coterie.evidence.near_far.known import KnownFamily
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model, Unknown
from coterie.problem.noise import Noise
from coterie.problem.question import Question, Resolution


def norm_of(question: Question) -> str:
    """The norm in which a question measures differences: single linkage is about distances."""
    return question.norm if isinstance(question, Resolution) else "distance"


def scale_of(question: Question, dim: int) -> FloatArray:
    """(d) the units s of z = x/s: η for a resolution, 1 for single linkage."""
    return question.eta(dim) if isinstance(question, Resolution) else np.ones(dim)


def family_for(noise: Model, question: Question, dim: int) -> Family | None:
    """The tests for a noise; None for Gaussian noise of unknown covariance, which has to be bounded first."""
    norm, scale = norm_of(question), scale_of(question, dim)
    if isinstance(noise, Noise):
        return KnownFamily(norm, noise.covariance / np.outer(scale, scale), noise.exact)
    assert isinstance(noise, Unknown)
    stated = noise.statement
    if isinstance(stated, Gaussian):
        return None
    if isinstance(stated, Bounded):
        widths = np.broadcast_to(np.subtract(stated.hi, stated.lo), dim) / scale
        return BoundedFamily(norm, widths)
    if isinstance(stated, Counts):
        return CountsFamily(norm, stated.trials, scale)
    raise ValueError(f"that items are near each other cannot be proven under {noise.words}")
