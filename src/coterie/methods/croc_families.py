"""Which evidence goes with which noise: CROC's families for what may be stated (docs/EVIDENCE.md)."""

from __future__ import annotations

from coterie.engine.croc.families.any_noise import any_noise
from coterie.engine.croc.families.counts import counts
from coterie.engine.croc.families.equal_means import at_most, bounded, symmetric
from coterie.engine.croc.families.gaussian import gaussian
from coterie.engine.croc.family import Family
from coterie.engine.croc.state import KNOWN_COVARIANCE
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Model, Symmetric, Unknown


def family_for(noise: Model, n_arms: int, n_clusters: int, dim: int) -> Family:
    """The family of evidence for a run of this size with this noise."""
    if not isinstance(noise, Unknown):
        return KNOWN_COVARIANCE
    stated = noise.statement
    if isinstance(stated, Gaussian):
        return gaussian(n_clusters, dim, stated.shape)
    if isinstance(stated, Counts):
        return counts(n_clusters, dim, stated.trials)
    if isinstance(stated, Bounded):
        widths = tuple(high - low for low, high in zip(stated.lo, stated.hi, strict=True))
        return bounded(n_clusters, dim, widths * dim if len(widths) == 1 else widths)
    if isinstance(stated, AtMost):
        return at_most(n_clusters, dim)
    if isinstance(stated, Symmetric):
        return symmetric(n_clusters, dim)
    return any_noise(n_arms, n_clusters, dim)
