"""What a run by cells shows: the evidence that its stop waits for, how far it is, and the certificate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.blocks.epoch import CORE, GROUP, PAIR, Epoch, next_level
from coterie.methods.blocks.pairs import equal_pairs
from coterie.methods.contract import Decision
from coterie.methods.reports import Evidence, Standing, Weakest
from coterie.problem.checks import IntArray

if TYPE_CHECKING:
    from coterie.methods.blocks.deciding import DecidingRun


def pairs_needed(settled: Any, labels: IntArray, n_groups: int) -> tuple[list[int], bool]:
    """An arm of each group that is settled against the most arms of others, and whether Lemma 3 holds for these."""
    apart = settled & (labels[:, None] != labels)
    count = apart.sum(axis=1)
    representatives = [
        int(arms[np.argmax(count[arms])]) for arms in (np.flatnonzero(labels == k) for k in range(n_groups))
    ]
    known = apart[:, representatives]
    known[np.arange(labels.size), labels] = True
    return representatives, bool(known.all())


def evidence_of(run: DecidingRun) -> Evidence:
    """That of the unmet test which lacks most; of the first level before a freeze."""
    epoch = run.epoch
    if epoch is None:
        return Evidence(0.0, next_level(0, run._log_inverse_delta, run.alpha), None)
    unmet = epoch.unmet(run.settled)
    if run.done or not unmet.size:
        met = np.flatnonzero(epoch.met_at > 0)
        lowest = float((epoch.evidence - epoch.levels)[met].min(initial=0.0))
        return Evidence(epoch.level + max(lowest, 0.0), epoch.level, None)
    worst = int(unmet[np.argmax((epoch.levels - epoch.evidence)[unmet])])
    value, level = max(float(epoch.evidence[worst]), 0.0), float(epoch.levels[worst])
    other = int(epoch.tests.other[worst])
    arm, group = int(epoch.tests.arm[worst]), int(epoch.tests.against[worst])
    return Evidence(value, level, Weakest(arm, group, value, level, other if other >= 0 else None, None))


def standing_of(run: DecidingRun) -> Standing:
    """Differences are those of an item with another group; one is proven by all of its frozen tests, or by pairs."""
    n_arms, n_groups, _ = run._shape
    needed, epoch = n_arms * (n_groups - 1), run.epoch
    if run.done:
        return Standing(needed, needed, n_arms, 0.0, 1.0)
    if epoch is None:
        return Standing(0, needed, 0)
    unmet = epoch.unmet(run.settled)
    shares = np.ones((n_arms, n_groups))
    reached = np.clip((epoch.evidence / epoch.levels)[unmet], 0.0, 1.0 - 1e-9)
    tests = epoch.tests
    np.minimum.at(shares, (tests.arm[unmet], tests.against[unmet]), reached)
    cores = tests.kind[unmet] == PAIR
    np.minimum.at(shares, (tests.other[unmet[cores]], tests.group[unmet[cores]]), reached[cores])
    met = shares >= 1.0
    spent = run.t - int(epoch.frozen["frozen_at"])
    return Standing(
        int(met.sum()) - n_arms, needed, int(met.all(axis=1).sum()), None, float(shares.min(axis=1).mean()), spent
    )


def certificate_of(
    run: DecidingRun,
    shape: tuple[int, int, int],
    log_inverse_delta: float,
    decisions: list[Decision],
    drawn: bool,
    strict: bool,
) -> dict[str, Any]:
    """The proof as plain data (docs/BLOCKS.md)."""
    n_arms, n_clusters, dim = shape
    kept = ("frozen_at", "share", "level", "labels", "cores")
    pairs = run.pairs
    document: dict[str, Any] = {
        "format": "coterie-certificate-2",
        "n_arms": n_arms,
        "n_clusters": n_clusters,
        "dim": dim,
        "delta": math.exp(-log_inverse_delta),
        "log_inverse_delta": log_inverse_delta,
        "alpha": run.alpha,
        "equal_pairs": equal_pairs(n_arms, n_clusters),
        "pair_level": None if pairs is None else pairs.level,
        "prefix_room": None,
        "t": run.t,
        "blocks": "drawn" if drawn else "offset",
        "lapsed": list(run.lapsed),
        "epochs": [
            {"number": made["epoch"]} | {key: made[key] for key in kept}
            for made in decisions
            if made["event"] == "freeze"
        ],
    }
    if strict:
        document |= {"strict_blocks": True} | ({} if pairs is None else {"generation": pairs.generation})

    def pair(i: int, j: int) -> list[Any]:
        assert pairs is not None
        return [i, j, float(pairs.evidence[i, j]), int(pairs.cell[i, j])]

    labels = run.labels
    assert labels is not None
    if run.by_pairs is not None:
        lead = list(run.by_pairs)
        needed = [
            (m, q) for m in range(n_arms) for k, q in enumerate(lead) if k != labels[m] and not (m in lead and m > q)
        ]
        document |= {"labels": labels.tolist(), "by": "pairs", "representatives": lead}
        return document | {"pairs": [pair(i, j) for i, j in needed]}
    epoch = run.epoch
    assert epoch is not None
    tests, by_pairs = epoch.tests, {}
    for i in np.flatnonzero(epoch.met_at == 0).tolist():
        assert pairs is not None
        arm, other = int(tests.arm[i]), int(tests.other[i])
        against = [other] if other >= 0 else [q for q in epoch.cores[tests.against[i]] if pairs.settled[arm, q]]
        by_pairs[arm, against[0]] = pair(arm, against[0])

    def rows(kind: int, column: IntArray) -> list[list[Any]]:
        chosen = np.flatnonzero((tests.kind == kind) & (epoch.met_at > 0))
        columns = (tests.arm, column, epoch.evidence, epoch.met_at)
        return [list(row) for row in zip(*(values[chosen].tolist() for values in columns), strict=True)]

    return document | {
        "labels": epoch.labels.tolist(),
        "by": "epoch",
        "representatives": [core[0] for core in epoch.cores],
        "epoch": {
            "number": epoch.number,
            "cells": list(epoch.cells),
            "group_tests": rows(GROUP, tests.against),
            "core_tests": rows(CORE, tests.against),
            "pair_tests": [] if len(epoch.joints) else rows(PAIR, tests.other),
            "by_pairs": list(by_pairs.values()),
        }
        | ({"joint_tests": joint_rows(epoch)} if len(epoch.joints) else {}),
    }


def joint_rows(epoch: Epoch) -> list[list[Any]]:
    """Pair tests two by two: [arm, arm, arm, arm, evidence, cell]."""
    sides = np.column_stack([epoch.tests.arm, epoch.tests.other])
    who = sides[epoch.joints].reshape(-1, 4).tolist()
    made = zip(who, epoch.joint_evidence.tolist(), epoch.joint_met_at.tolist(), strict=True)
    return [[*arms, evidence, cell] for arms, evidence, cell in made]
