"""How far a run is where features are measured apart: the evidence that its stop waits for, and what is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coterie.methods.features.epoch import share_of
from coterie.methods.features.evidence import PAIR
from coterie.methods.reports import Evidence, Standing, Weakest

if TYPE_CHECKING:
    from coterie.methods.features.method import FeatureRun


def evidence_of(run: FeatureRun) -> Evidence:
    """That of the unmet test which lacks most; of the first level before a freeze."""
    epoch = run.epoch
    if epoch is None:
        return Evidence(0.0, run.log_inverse_delta - float(np.log(share_of(0))), None)
    unmet = np.flatnonzero(epoch.met_at == 0)
    if not unmet.size:
        lowest = float((epoch.evidence - epoch.levels).min(initial=0.0))
        return Evidence(epoch.level + max(lowest, 0.0), epoch.level, None)
    worst = int(unmet[np.argmax((epoch.levels - epoch.evidence)[unmet])])
    value, level = max(float(epoch.evidence[worst]), 0.0), float(epoch.levels[worst])
    tests = epoch.tests
    other = int(tests.other[worst])
    weakest = Weakest(int(tests.arm[worst]), int(tests.against[worst]), value, level, other if other >= 0 else None)
    return Evidence(value, level, weakest)


def standing_of(run: FeatureRun) -> Standing:
    """Differences of an item and another group; each is proven by all of its tests."""
    n_items, n_groups = run.settings.n_arms, run.rule.groups.n_groups
    needed, epoch = n_items * (n_groups - 1), run.epoch
    if run.done:
        return Standing(needed, needed, n_items, 0.0, 1.0)
    if epoch is None:
        return Standing(0, needed, 0)
    unmet = np.flatnonzero(epoch.met_at == 0)
    shares = np.ones((n_items, n_groups))
    reached = np.clip((epoch.evidence / epoch.levels)[unmet], 0.0, 1.0 - 1e-9)
    tests = epoch.tests
    np.minimum.at(shares, (tests.arm[unmet], tests.against[unmet]), reached)
    pairs = tests.kind[unmet] == PAIR
    np.minimum.at(shares, (tests.other[unmet[pairs]], tests.own[unmet[pairs]]), reached[pairs])
    met = shares >= 1.0
    spent = run.t - int(epoch.frozen["frozen_at"])
    worked = float(shares.min(axis=1).mean())
    return Standing(int(met.sum()) - n_items, needed, int(met.all(axis=1).sum()), None, worked, spent)
