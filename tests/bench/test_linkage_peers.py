"""Peers for single linkage with K: its groups and proofs against plain ones, right groups, sessions, the bench part."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.stats import binom

import coterie
from bench import linkage as part
from bench.linkage import WORLDS, drawn, gaussian, run_of
from bench.part import Progress
from bench.peers.linkage import LINKAGE_PEERS, on_simplex, register_all
from bench.peers.linkage_proof import (
    SCALES,
    Comparisons,
    arm_sets,
    certainty,
    pair_certainty,
    paper_certainty,
    single_linkage,
)
from coterie.evidence.stopping import threshold
from coterie.methods import METHODS, unregister
from coterie.problem.checks import FloatArray, IntArray

pytestmark = pytest.mark.slow  # what the benchmarks compare with

FALSE_ALARM = 1e-6
EXAMPLE = WORLDS["example of EBC, M = 6 K = 3 d = 2"](0)

each_peer = pytest.mark.parametrize("peer", LINKAGE_PEERS)


@pytest.fixture(autouse=True)
def registered_linkage_peers() -> Iterator[None]:
    """These peers in the table of methods."""
    register_all()
    yield
    for name in LINKAGE_PEERS.keys() & METHODS.keys():
        unregister(name)


@pytest.mark.parametrize("seed", range(20))
def test_single_linkage_matches_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms, n_clusters = int(rng.integers(3, 15)), int(rng.integers(2, 4))
    n_clusters = min(n_clusters, n_arms - 1)
    means = rng.standard_normal((n_arms, 1 + seed % 3))
    found = single_linkage(means, n_clusters)
    assert coterie.same_partition(found.labels, fcluster(linkage(means, "single"), n_clusters, "maxclust") - 1)
    assert len(found.edges) == n_arms - n_clusters
    assert all(found.labels[a] == found.labels[b] for a, b in found.edges)
    assert all(found.labels[i] != found.labels[j] for i, j in found.pairs)
    assert (Comparisons(found).gaps > 0.0).all()


def plain_certainty(means: FloatArray, found_edges: IntArray, found_pairs: IntArray, pulls: IntArray) -> list[float]:
    """The formula of `linkage_proof`, comparison by comparison; δ = 0.1."""
    dim, values = means.shape[1], []
    for e, f in product(found_edges.tolist(), found_pairs.tolist()):
        gap = math.dist(means[f[0]], means[f[1]]) - math.dist(means[e[0]], means[e[1]])
        arms = [*e, *f]
        bounds = []
        for scale in SCALES:
            level = math.log(arm_sets(len(means)) * len(SCALES) / 0.1)
            level += sum(dim / 2 * math.log(1 + pulls[m] / scale) for m in set(arms))
            spread = sum(arms.count(m) ** 2 * (pulls[m] + scale) / pulls[m] ** 2 for m in set(arms))
            bounds.append(math.sqrt(2 * level * spread))
        values.append(gap / min(bounds))
    return values


def test_certainty_matches_oracle() -> None:
    rng = np.random.default_rng(2)
    means, pulls = rng.standard_normal((7, 2)), rng.integers(1, 400, 7)
    found = single_linkage(means, 3)
    all_of = Comparisons(found)
    assert certainty(found, all_of, pulls, 2, 0.1) == pytest.approx(
        plain_certainty(means, found.edges, found.pairs, pulls), rel=1e-12
    )
    beta = [2 * threshold(0.1, pulls, 2) * sum(c**2 / n for c, n in zip(row, pulls, strict=True))
            for row in all_of.coefficients]  # fmt: skip
    assert paper_certainty(found, all_of, pulls, 2, 0.1) == pytest.approx(all_of.gaps / np.sqrt(beta), rel=1e-12)


def test_proofs_error_rate_within_delta() -> None:
    """False alarm: 1e-6. Edge and pair of the same true length: to say that either is shorter is an error.

    Two and a half times the certainty is reached too often, so the bound is not one that anything would pass.
    """
    means, delta, paths, longest = np.array([[0.0], [1.0], [2.0]]), 0.2, 150, 200
    looks = np.unique(np.geomspace(1, longest, 25).astype(int))
    rng = np.random.default_rng(7)
    reached = dict.fromkeys(("comparisons", "pairs", "too sure"), 0)
    for _ in range(paths):
        sums = np.cumsum(means + rng.standard_normal((longest, 3, 1)), axis=0)
        best = dict.fromkeys(reached, -np.inf)
        for n in looks:
            found = single_linkage(sums[n - 1] / n, 2)
            all_of, pulls = Comparisons(found), np.full(3, n)
            sure = float(certainty(found, all_of, pulls, 1, delta).min())
            by_pairs = float(pair_certainty(found, all_of, pulls, 1, delta).min())
            for name, value in (("comparisons", sure), ("pairs", by_pairs), ("too sure", 2.5 * sure)):
                best[name] = max(best[name], value)
        for name, value in best.items():
            reached[name] += value > 1.0
    limit = int(binom.isf(FALSE_ALARM, paths, delta))
    assert reached["comparisons"] <= limit
    assert reached["pairs"] <= limit
    assert reached["too sure"] > limit


@each_peer
def test_peer_finds_the_groups(peer: str) -> None:
    for trial in range(2):
        ending = run_of("example of EBC, M = 6 K = 3 d = 2", peer, trial)
        assert ending.done
        assert ending.correct
        assert ending.t >= 6
        assert run_of("example of EBC, M = 6 K = 3 d = 2", peer, trial) == ending


@each_peer
def test_a_session_with_several_open_asks_and_gaps_finds_the_groups(peer: str) -> None:
    """Asked for five at once, answered in another order, some given up, some results not asked for."""
    rng = np.random.default_rng(3)
    session = coterie.Session(6, 3, 2, 0.1, method=peer, noise=1.0, groups="linkage")
    while not session.done:
        tickets = session.open(5)
        for ticket in [tickets[i] for i in rng.permutation(len(tickets))]:
            if bool(session.done):  # a result of this round may have ended it
                break
            if rng.random() < 0.1:
                session.forget(ticket.number)
            else:
                session.tell(ticket.arm, EXAMPLE.draw(rng, ticket.arm), ticket.number)
    assert coterie.same_partition(session.labels, EXAMPLE.truth)


@each_peer
def test_a_saved_session_goes_on_as_if_it_had_not_stopped(peer: str) -> None:
    rng = np.random.default_rng(4)
    world = gaussian([[0.0], [0.5], [6.0], [6.5]], 2)
    whole = coterie.Session(4, 2, 1, 0.1, method=peer, noise=1.0, groups="linkage")
    saved = coterie.Session(4, 2, 1, 0.1, method=peer, noise=1.0, groups="linkage")
    while not whole.done:
        arm = whole.ask()
        assert saved.ask() == arm
        saved = coterie.Session.from_dict(json.loads(json.dumps(saved.to_dict())))
        x = world.draw(rng, arm)
        whole.tell(arm, x)
        saved.tell(arm, x)
    assert saved.done
    assert saved.pulls.tolist() == whole.pulls.tolist()
    assert coterie.same_partition(saved.labels, world.truth)


def test_peers_answer_only_single_linkage() -> None:
    with pytest.raises(ValueError, match="linkage-ebc"):
        coterie.Session(6, 3, 2, 0.1, method="linkage-ebc", noise=1.0)


def test_the_nearest_point_of_the_simplex_is_found() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        point = rng.standard_normal(6)
        found = on_simplex(point)
        assert found.sum() == pytest.approx(1.0)
        assert (found >= 0.0).all()
        others = rng.dirichlet(np.ones(6), 500)
        assert np.linalg.norm(found - point) <= np.linalg.norm(others - point, axis=1).min() + 1e-12


def test_drawn_instances_have_unequal_means_and_their_margin() -> None:
    for seed in range(5):
        world = drawn(10, 2, 2, 1.0, seed)
        assert len(np.unique(world.means, axis=0)) == 10
        assert coterie.same_partition(world.truth, np.arange(10) % 2)
        assert Comparisons(single_linkage(world.means, 2)).gaps.min() >= 1.0
    assert not np.array_equal(drawn(10, 2, 2, 1.0, 0).means, drawn(10, 2, 2, 1.0, 1).means)


def test_a_part_that_was_broken_off_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = part.measured
    seen: list[str] = []

    def until(most: int) -> None:
        def some(name: str, way: str, trials: int) -> dict[str, object]:
            if len(seen) == most:
                raise KeyboardInterrupt
            seen.append(way)
            return real(name, way, trials)

        monkeypatch.setattr(part, "measured", some)

    ways = ["linkage-uniform", "linkage-lucb"]
    monkeypatch.setattr(part, "ROOT", tmp_path)
    monkeypatch.setattr(part, "fingerprint", lambda: "the same")
    monkeypatch.setattr(part, "worlds_here", lambda: ["example of EBC, M = 6 K = 3 d = 2"])
    monkeypatch.setattr(part, "ways_of", lambda name: ways)
    said: list[str] = []
    until(1)
    with pytest.raises(KeyboardInterrupt):
        part.with_trials(2, True, Progress(said.append), tmp_path)
    until(9)
    rows = part.with_trials(2, True, Progress(said.append), tmp_path)
    assert seen == ways
    assert "1 of 2 cells were measured before" in "".join(said)
    assert not list((tmp_path / "build" / "bench").iterdir())
    assert [(row["method"], row["trials"], row["over_croc"]) for row in rows] == [(way, 2, None) for way in ways]
    json.dumps(rows)
    assert cells_of(rows)


def cells_of(rows: list[dict[str, object]]) -> list[list[str]]:
    ((table, own),) = part.PART.tables(rows)
    return [[column.cell(row) for column in table.columns] for row in own]
