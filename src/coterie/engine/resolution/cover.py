"""Whether the tests of a freeze say all that it claims: if the claim is false, the null of one of them is true.

docs/RESOLUTION.md, section 3, has the rule. The verifier has it once more, in `coterie.certificate.resolution_cover`,
and shares no line with this: a candidate whose tests leave a gap is never called proven here, and refused there.
"""

from __future__ import annotations

import numpy as np

from coterie.engine.resolution.epoch import Epoch
from coterie.problem.checks import FloatArray, IntArray


def covers_references(epoch: Epoch, near: FloatArray, far: FloatArray) -> bool:
    """Every arm is near its reference, within `near` (d), and every two references are more than `far` (d) apart."""
    labels, references = epoch.labels, epoch.references
    if not (_has_references(epoch) and _has_bounds(epoch, near, far)):
        return False
    shown = np.zeros(labels.size, dtype=bool)
    shown[references] = True
    leads = references[labels]
    for arm, other in _both_ways(epoch, epoch.is_near):
        shown[arm[leads[arm] == other]] = True
    group = np.full(labels.size, -1)
    group[references] = np.arange(references.size)
    between = np.eye(references.size, dtype=bool)
    for one, other in _both_ways(epoch, ~epoch.is_near):
        lead = (group[one] >= 0) & (group[other] >= 0)
        between[group[one[lead]], group[other[lead]]] = True
    return bool(shown.all() and between.all())


def covers_any_two(epoch: Epoch, near: FloatArray, far: FloatArray) -> bool:
    """Every two arms of a group are within `near` (d), and every two groups have arms more than `far` (d) apart."""
    labels = epoch.labels
    if not (_has_references(epoch) and _has_bounds(epoch, near, far)):
        return False
    joined = (labels[:, None] != labels) | np.eye(labels.size, dtype=bool)
    for one, other in _both_ways(epoch, epoch.is_near):
        joined[one, other] = True
    between = np.eye(epoch.references.size, dtype=bool)
    for one, other in _both_ways(epoch, ~epoch.is_near):
        between[labels[one], labels[other]] = True
    return bool(joined.all() and between.all())


def covers_linkage(epoch: Epoch, n_clusters: int) -> bool:
    """Steps below the height join every group; all arms lie in balls, and those of different groups are far apart."""
    labels, height = epoch.labels, float(epoch.frozen["height"])
    if not (_has_references(epoch) and epoch.references.size == n_clusters and height > 0.0):
        return False
    length = epoch.bound[:, 0]
    steps = epoch.is_near & (length <= height) & (labels[epoch.item] == labels[epoch.reference])
    piece = np.arange(labels.size)
    for one, other in zip(epoch.item[steps].tolist(), epoch.reference[steps].tolist(), strict=True):
        if piece[one] != piece[other]:
            piece[piece == piece[other]] = piece[one]
    if np.unique(piece).size != n_clusters:
        return False
    balls = epoch.frozen["balls"]
    centers = np.array([center for center, _, _ in balls], dtype=np.int64)
    radii = np.array([radius for _, radius, _ in balls])
    inside = np.zeros(labels.size, dtype=bool)
    for center, radius, items in balls:
        inside[center] = True
        others = np.array([arm for arm in items if arm != center], dtype=np.int64)
        if others.size:
            for one, arm in _both_ways(epoch, epoch.is_near & (length <= radius)):
                inside[arm[one == center]] = True
            if not (inside[others] & (labels[others] == labels[center])).all():
                return False
    place = np.full(labels.size, -1)
    place[centers] = np.arange(centers.size)
    apart = np.full((centers.size, centers.size), -np.inf)
    for one, other in _both_ways(epoch, ~epoch.is_near):
        lead = (place[one] >= 0) & (place[other] >= 0)
        np.maximum.at(apart, (place[one[lead]], place[other[lead]]), length[~epoch.is_near][lead])
    wanted = height + radii[:, None] + radii  # of two balls, by the triangle inequality; in the order of the balls
    different = np.triu(labels[centers][:, None] != labels[centers])
    return bool(inside.all() and np.unique(centers).size == centers.size and (apart >= wanted)[different].all())


def _has_references(epoch: Epoch) -> bool:
    """Whether every group has one of its arms as its reference."""
    n_groups = int(epoch.labels.max()) + 1
    return np.array_equal(epoch.labels[epoch.references], np.arange(n_groups))


def _has_bounds(epoch: Epoch, near: FloatArray, far: FloatArray) -> bool:
    return bool((epoch.bound == np.where(epoch.is_near[:, None], near, far)).all())


def _both_ways(epoch: Epoch, which: IntArray) -> list[tuple[IntArray, IntArray]]:
    """The arms of some tests, each pair in both orders."""
    item, reference = epoch.item[which], epoch.reference[which]
    return [(item, reference), (reference, item)]
