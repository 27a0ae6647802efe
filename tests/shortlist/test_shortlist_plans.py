"""Where a list measures next: against a plain oracle of docs/CROC.md, section 20, and every constant of it pinned."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.certificate import list_checking as list_evidence
from coterie.methods.shortlist import elimination
from coterie.methods.shortlist import method as shortlist
from coterie.methods.shortlist.elimination import SCALES, Elimination, partitions_without
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings

RULE = {"SURE": 0.6, "WANTED": 0.5, "URGENCY": 0.2, "FLOOR": 20.0, "SMALL": 1e-3, "LEAST_LOG": -7.0}


def a_list(seed: int) -> tuple[Elimination, FloatArray]:
    """A list in the middle of a run, and the committed pulls."""
    rng = np.random.default_rng(seed)
    settled = np.zeros((7, 7), dtype=bool)
    for i, j in ((0, 5), (1, 6), (5, 6), (2, 6)):
        settled[i, j] = settled[j, i] = True
    listed = partitions_without(settled, 3)
    assert listed is not None
    pulls = rng.integers(1, 40, size=7).astype(float)
    pulls[seed % 7] = 1.0 if seed % 3 == 0 else pulls[seed % 7]
    centers = np.array([0.0, 0.0, 0.3, 0.3, 0.3, 2.0, 4.0])[:, None] * (0.4 + 0.5 * (seed % 7)) * np.ones(2)
    sums = pulls[:, None] * centers + np.sqrt(pulls)[:, None] * rng.standard_normal((7, 2))
    one = Elimination(listed, 3.0, pulls, sums)
    one.log_e = rng.normal(size=len(listed)) * 2.0
    one.alive = (rng.random(len(listed)) < 0.7).astype(np.int64)
    one.alive[:2] = 1
    return one, pulls + rng.integers(0, 3, size=7)


def shifted_centers(weight: FloatArray, center: FloatArray, scale: float) -> FloatArray:
    """Centers of parts from their place, drawn to it."""
    precision = 1.0 / (scale + 1.0 / weight)
    place = precision @ center / precision.sum()
    return np.asarray((center - place) * (weight / (weight + 1.0 / scale))[:, None])


def scale_logs(weight: FloatArray, center: FloatArray) -> FloatArray:
    """log of how likely each scale is, by the centers up to a shift."""
    found = []
    for scale in SCALES:
        q = 1.0 / (scale + 1.0 / weight)
        middle = q @ center / q.sum()
        energy = float((q[:, None] * (center - middle) ** 2).sum())
        found.append(0.5 * center.shape[1] * (np.log(q).sum() - np.log(q.sum())) - 0.5 * energy)
    return np.asarray(np.array(found) - np.logaddexp.reduce(found))


def growth(null: IntArray, rival: IntArray, pulls: FloatArray, sums: FloatArray, least_log: float) -> FloatArray:
    """What a pull of each arm adds to log E(null) if the rival is true."""
    found = np.zeros(null.size)
    for g in np.unique(null):
        arms = np.flatnonzero(null == g)
        parts = np.unique(rival[arms])
        if parts.size < 2:
            continue
        weight = np.array([pulls[rival == k].sum() for k in parts])
        center = np.array([sums[rival == k].sum(axis=0) / pulls[rival == k].sum() for k in parts])
        count = np.array([pulls[arms[rival[arms] == k]].sum() for k in parts])
        gain = np.zeros(parts.size)
        for log_share, scale in zip(scale_logs(weight, center), SCALES, strict=True):
            if log_share >= least_log:
                at = shifted_centers(weight, center, scale)
                gain += np.exp(log_share) * 0.5 * ((at - count @ at / count.sum()) ** 2).sum(axis=1)
        for part, its in zip(parts, gain, strict=True):
            found[arms[rival[arms] == part]] = its
    return found


def planned(one: Elimination, committed: FloatArray, rule: dict[str, float]) -> list[int]:
    """The arms of the next round, by the document."""
    pulls, sums, listed = one._pulls, one._sums, one.listed
    p = list_evidence.chances(listed, one.possible, pulls, sums)
    urgency = np.where(one.alive > 0, np.exp(-rule["URGENCY"] * np.maximum(one.log_e, 0.0)), 0.0)
    products = urgency[:, None] * p[None, :]  # (c0, c)
    np.fill_diagonal(products, 0.0)
    least = rule["SMALL"] * urgency.max() * p.max()
    gain = np.zeros(committed.size)
    for h, c in np.argwhere(products > least):
        gain += products[h, c] * growth(listed[h], listed[c], pulls, sums, rule["LEAST_LOG"])
    null, rival = divmod(int(np.argmax(products.T)), len(listed))[::-1]
    if p.max() < rule["SURE"]:
        center = np.array([[sums[row == k].sum(axis=0) / pulls[row == k].sum() for k in row] for row in listed])
        mean = np.einsum("c,cmd->md", p, center)
        gain = 0.5 * np.einsum("c,cm->m", p, ((center - mean) ** 2).sum(axis=2))
    wanted = gain >= rule["WANTED"] * gain.max()
    groups = [listed[null] == listed[null, int(gain.argmax())]] + [listed[null] == g for g in listed[null]]
    group = next(each for each in groups if np.unique(listed[rival, each]).size > 1)
    for part in np.unique(listed[rival, group]):
        arms = np.flatnonzero(group & (listed[rival] == part))
        if not wanted[arms].any():
            wanted[min(arms, key=lambda arm: (-gain[arm], committed[arm], arm))] = True
    wanted |= committed < committed.sum() / (rule["FLOOR"] * committed.size)
    return np.flatnonzero(wanted).tolist()


@pytest.mark.parametrize("seed", range(60))
def test_plans_match_oracle(seed: int) -> None:
    one, committed = a_list(seed)
    assert one.plan(committed).tolist() == planned(one, committed, RULE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("SURE", 0.4),
        ("SURE", 0.8),
        ("WANTED", 0.35),
        ("WANTED", 0.7),
        ("URGENCY", 0.5),
        ("FLOOR", 5.0),
        ("SMALL", 1e-1),
        ("LEAST_LOG", -0.5),
    ],
)
def test_another_constant_would_be_noticed(monkeypatch: pytest.MonkeyPatch, name: str, other: float) -> None:
    assert getattr(elimination, name) == RULE[name]
    before = [one.plan(committed).tolist() for one, committed in map(a_list, range(240))]
    monkeypatch.setattr(elimination, name, other)
    assert [one.plan(committed).tolist() for one, committed in map(a_list, range(240))] != before


def test_the_other_constants_are_those_of_the_document() -> None:
    assert (RULE["SMALL"], RULE["LEAST_LOG"]) == (elimination.SMALL, elimination.LEAST_LOG)
    assert (elimination.MOST, elimination.STEPS) == (200, 20_000)
    assert (shortlist.ARMS_A_GROUP, shortlist.MOST_ARMS, shortlist.LOOSENED) == (8, 64, 20)


@pytest.mark.parametrize(
    ("n_arms", "n_clusters", "looks"), [(16, 2, True), (17, 2, False), (64, 9, True), (65, 9, False)]
)
def test_where_a_list_is_looked_for(n_arms: int, n_clusters: int, looks: bool) -> None:
    run = shortlist.ShortlistRun(Settings.of(n_arms, n_clusters, 1, method="shortlist", noise=1.0))
    assert run._looks is looks
