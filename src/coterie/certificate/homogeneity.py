"""Evidence that the arms of a group do not have one mean, from the log: a warning that K may be too small.

For each group the mean of two e-values, each a mixture (docs/CROC.md): of the spread of all its arms around one mean,
and of one arm that stands apart from the pool of the others. Nothing of it enters the proof.
"""

from __future__ import annotations

import numpy as np

from coterie.certificate.log import Record
from coterie.problem.checks import FloatArray, IntArray

_ARM_SCALES = 64.0 / 4.0 ** np.arange(11)  # ρ, of the arms
_REST_SCALES = 1.0 / 16.0 ** np.arange(6)  # ρ', of the pool of the others


def homogeneity(record: Record, labels: IntArray, n_groups: int) -> FloatArray:
    """The log-evidence against each group's having one mean; 0 for a group of one arm."""
    sizes = np.bincount(labels, minlength=n_groups)
    spread, odd = np.log(0.5) + _spread(record, labels, n_groups), np.log(0.5) + _odd_one_out(record, labels, n_groups)
    return np.where(sizes > 1, np.logaddexp(spread, odd), 0.0)


def split_from_one(counts: IntArray, means: FloatArray) -> float:
    """The same for one group of arms with these means (n, d), in units of the noise."""
    count, dim = counts.astype(np.float64), means.shape[1]
    spread, odd = -np.inf, -np.inf
    for scale in _ARM_SCALES:
        weight = scale * count**2 / (1.0 + scale * count)
        away = means - weight @ means / weight.sum()
        terms = 0.5 * weight * (away**2).sum(axis=1) - 0.5 * dim * np.log1p(scale * count)
        spread = np.logaddexp(spread, terms.sum())
        for its_scale in _REST_SCALES:
            rest = counts.sum() - count
            its_weight = its_scale * rest**2 / (1.0 + its_scale * rest)
            both = np.where(count * rest > 0.0, weight * its_weight / np.maximum(weight + its_weight, 1e-300), 0.0)
            gap = means - (count @ means - count[:, None] * means) / np.maximum(rest, 1.0)[:, None]
            price = np.log1p(scale * count) + np.log1p(its_scale * rest)
            odd = np.logaddexp(odd, np.logaddexp.reduce(0.5 * both * (gap**2).sum(axis=1) - 0.5 * dim * price))
    spread -= np.log(_ARM_SCALES.size)
    odd -= np.log(count.size * _ARM_SCALES.size * _REST_SCALES.size)
    return float(np.logaddexp(spread, odd) - np.log(2.0))


def _spread(record: Record, labels: IntArray, n_groups: int) -> FloatArray:
    """The log of the mean over ρ of the evidence of all arms of a group."""
    arms = record.results.pooled(record.arms, labels.size)
    leader = np.unique(labels, return_index=True)[1]  # means are seen from one arm of the group: so none lies far off
    mean = record.units.gap(arms, arms.rows(leader[labels]))
    count, dim = arms.counts.astype(np.float64), mean.shape[1]
    total = np.full(n_groups, -np.inf)
    for scale in _ARM_SCALES:
        weight = scale * count**2 / (1.0 + scale * count)
        center = np.zeros((n_groups, dim))
        np.add.at(center, labels, weight[:, None] * mean)
        center /= np.bincount(labels, weight, n_groups)[:, None]
        away = mean - center[labels]
        terms = 0.5 * weight * np.einsum("md,md->m", away, away) - 0.5 * dim * np.log1p(scale * count)
        total = np.logaddexp(total, np.bincount(labels, terms, n_groups))
    return np.asarray(total - np.log(_ARM_SCALES.size))


def _odd_one_out(record: Record, labels: IntArray, n_groups: int) -> FloatArray:
    """The log of the mean over arms, ρ and ρ' of the evidence of one arm against the pool of the others."""
    arms = record.results.pooled(record.arms, labels.size)
    several = np.flatnonzero(np.bincount(labels, minlength=n_groups)[labels] > 1)
    home, own = labels[several], arms.rows(several)
    others = arms.pooled(labels, n_groups).rows(home).without(own)
    gap = record.units.gap(own, others)
    distance, dim = np.einsum("md,md->m", gap, gap), gap.shape[1]
    count, rest = own.counts.astype(np.float64), others.counts.astype(np.float64)
    by_arm = np.full(several.size, -np.inf)
    for scale in _ARM_SCALES:
        weight = scale * count**2 / (1.0 + scale * count)
        for its_scale in _REST_SCALES:
            its_weight = its_scale * rest**2 / (1.0 + its_scale * rest)
            both = weight * its_weight / (weight + its_weight)
            price = np.log1p(scale * count) + np.log1p(its_scale * rest)
            by_arm = np.logaddexp(by_arm, 0.5 * both * distance - 0.5 * dim * price)
    total = np.full(n_groups, -np.inf)
    np.logaddexp.at(total, home, by_arm)
    choices = np.bincount(labels, minlength=n_groups) * _ARM_SCALES.size * _REST_SCALES.size
    return np.asarray(total - np.log(choices))
