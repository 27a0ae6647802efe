"""CROC's engine against slow, plain recomputations, and at the edges of what it accepts."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from engines import croc_run, inside

import coterie
from coterie._native import prefix_room
from coterie._native.parts import grid_count, grid_place
from coterie.evidence.pairs import BLOCK_RATIOS, RATIO_WEIGHTS, SCALE_WEIGHTS, SCALES, grid_floor
from coterie.methods.croc.run import CORE_ROOM, CrocRun, grid_counts

TRUTH = np.array([0, 0, 1, 1, 2, 2, 2, 2, 2, 1, 1, 1])
CENTERS = np.array([[0.0, 0.0], [1.2, 0.0], [0.0, 1.2]])


def conversation(seed: int, steps: int, delta: float = 0.05, truth: Any = TRUTH, centers: Any = CENTERS) -> Any:
    """A session after so many moves, or at its end: bursts of asks, answers in any order, results nobody asked for."""
    rng = np.random.default_rng(seed)
    session: Any = coterie.Session(len(truth), len(centers), centers.shape[1], delta, noise=1.0)
    for _ in range(steps):
        if session.done:
            break
        move = rng.random()
        if move < 0.1:
            arm, ticket = int(rng.integers(len(truth))), None
        else:
            if len(session.pending) < 3 or move < 0.3:
                session.ask(int(rng.integers(1, 6)))
            if session.done:
                break
            ticket, arm = session.pending[rng.integers(min(len(session.pending), 5))]
        session.tell(arm, centers[truth[arm]] + rng.standard_normal(centers.shape[1]), ticket)
    return session


def results(session: Any, arm: int) -> np.ndarray:
    """The results of an arm in the order in which they count."""
    rows = [event["values"] for event in session.events if event["event"] == "result" and event["arm"] == arm]
    return np.array(rows).reshape(-1, session.dim)


# Pairs from the start.


@pytest.mark.parametrize("seed", range(4))
def test_prefixes_match_oracle(seed: int) -> None:
    """They are the sums of an arm's first results in ask order, however late those came."""
    session = conversation(seed, 900, delta=1e-12)
    state = inside(croc_run(session)).arms
    assert session.pulls.max() > 64  # more than there is room for
    for arm in range(session.n_arms):
        stack = results(session, arm)
        assert len(stack) == session.pulls[arm]
        sums = np.vstack([np.zeros(session.dim), np.cumsum(stack - state.origin, axis=0)])
        kept = min(len(stack), 64)
        np.testing.assert_array_equal(state.prefixes[: kept + 1, arm], sums[: kept + 1])
        counts = grid_counts(64)
        for place in np.flatnonzero(counts <= len(stack)):
            np.testing.assert_array_equal(state.grid[place, arm], sums[counts[place]])
        np.testing.assert_array_equal(state.sums[arm], sums[-1])


READ = sorted({*range(65), *(m * 2**j for m in range(8, 16) for j in range(3, 10))})
"""The counts that CROC reads where P = 64, written down another way: up to four significant bits beyond 64."""


def brute_pair_evidence(x: np.ndarray, y: np.ndarray) -> float:
    """The formula of docs/CROC.md, block by block."""
    best = -math.inf
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True):
        for first, second in ((x, y), (y, x)):
            n = max(n for n in READ if n % ratio == 0 and n <= min(len(first) * ratio, len(second))) // ratio
            if n == 0 or (ratio == 1 and first is y):
                continue
            gaps = [first[s] - sum(second[s * ratio : (s + 1) * ratio]) / ratio for s in range(n)]
            mean = sum(gaps) / n
            energy = n * float(mean @ mean) / (1 + 1 / ratio)
            terms = [
                math.log(p) - x.shape[1] / 2 * math.log(1 + rho * n) + 0.5 * rho * n / (1 + rho * n) * energy
                for rho, p in zip(SCALES, SCALE_WEIGHTS, strict=True)
            ]
            total = math.log(math.fsum(math.exp(term - max(terms)) for term in terms))
            best = max(best, math.log(weight) + max(terms) + total)
    return best


@pytest.mark.parametrize("dim", [1, 3, 20])
def test_pair_evidence_matches_oracle(dim: int) -> None:
    """The engine, the function of the theory and the formula agree, at all counts, on the grid beyond 64 too."""
    rng = np.random.default_rng(dim)
    stacks = rng.normal(size=(3, 700, dim)) + np.array([0.0, 0.3, 1.0])[:, None, None]
    run = CrocRun(3, 2, dim, 1e9)  # a level that nothing reaches
    for s in range(700):
        for arm in range(3):
            run.absorb(arm, stacks[arm, s], 0, False)
    for _ in range(60):
        i, j = rng.permutation(3)[:2]
        n_i, n_j = rng.integers(0, (91, 701)[rng.integers(2)], size=2)
        found = run.pair_evidence(int(i), int(j), int(n_i), int(n_j))
        x, y = stacks[i, :n_i], stacks[j, :n_j]
        assert found == pytest.approx(coterie.pair_evidence(x, y, grid_from=64), rel=1e-10, abs=1e-10)
        assert found == pytest.approx(brute_pair_evidence(x, y), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("room", [8, 16, 32, 64])
def test_grid_of_counts_matches_oracle(room: int) -> None:
    """Place and count are inverse; the grid is that of the theory; all ratios of blocks divide its counts."""
    counts = grid_counts(room)
    assert counts[0] == room
    assert (np.diff(counts) > 0).all()
    assert (np.diff(counts) <= counts[:-1] * 8 // room).all()  # steps of at most 8/P
    assert (counts % 8 == 0).all()
    for place, count in enumerate(counts[:80]):
        assert grid_count(place, room) == count
        assert grid_place(int(count), room) == place
        assert all(grid_floor(int(count) // ratio, room) == count // ratio for ratio in BLOCK_RATIOS)
    for n in range(room, 20 * room):
        assert counts[grid_place(n, room)] == grid_floor(n, room) <= n


def test_prefix_room_bounds_memory() -> None:
    assert prefix_room(10, 2) == 64
    assert prefix_room(100_000, 8) == 32
    assert prefix_room(1_000_000, 50) == 8


@pytest.mark.parametrize("seed", range(6))
def test_settled_pairs_reach_their_level(seed: int) -> None:
    """A pair counts as settled only if its evidence, at the counts that it names, reaches the level."""
    session = conversation(seed, 220 + 40 * seed, delta=0.01)
    run = croc_run(session)
    level = math.log(session.n_arms - 2) + math.log(session.n_arms - 3) - math.log(2 * 0.2 * 0.01)
    assert run.pair_level == pytest.approx(level, rel=1e-12)
    assert run.settled.any()
    for m in range(session.n_arms):
        for k in range(session.n_clusters):
            if run.settled[m, k] == 1:
                lead = run.representative[k]
                counts = run.pair_counts[m, k]
                found = coterie.pair_evidence(results(session, m)[: counts[0]], results(session, lead)[: counts[1]])
                assert found >= level - 1e-9
                assert (counts <= session.pulls[[m, lead]]).all()
            elif run.evidence[m, k] > -math.inf:
                assert run.evidence[m, k] < level


# Frozen tests.


def recomputed(events: list[dict[str, Any]], epoch: int, arm: int, pool: list[int], last: int) -> tuple[float, float]:
    """log E of an arm against a pool after the epoch's rounds up to `last`, and before the last of these."""
    start = next(i for i, event in enumerate(events) if event["event"] == "freeze" and event["epoch"] == epoch)
    labels = events[start]["labels"]
    before = [event for event in events[:start] if event["event"] == "result"]
    home, other = labels[arm], labels[pool[0]]
    centers, weights = {}, {}
    for group in (home, other):
        ours = [event["values"] for event in before if labels[event["arm"]] == group]
        centers[group], weights[group] = np.mean(ours, axis=0), len(ours)
    theta, spread = centers[home] - centers[other], 1 / weights[home] + 1 / weights[other]
    values = [0.0, 0.0]
    n, total = 0.0, np.zeros(theta.size)
    for event in events[start:]:
        if event["event"] != "round" or event["epoch"] != epoch or event["round"] > last:
            continue
        of_round = [e for e in events[start:] if e["event"] == "result" and e["round"] == event["round"]]
        composition = dict(event["pulls"])
        counts = {m: sum(e["arm"] == m for e in of_round) for m in composition}
        if counts != composition:  # still under way: the epoch's rounds behind it are not used yet
            break
        mine = [e["values"] for e in of_round if e["arm"] == arm]
        theirs = [e["values"] for e in of_round if e["arm"] in pool]
        if mine and theirs:
            v = 1 / len(mine) + 1 / len(theirs)
            n += 1 / v
            total += (np.mean(mine, axis=0) - np.mean(theirs, axis=0)) / v
            moved = theta + spread * total
            log_e = -theta.size / 2 * math.log(1 + n * spread)
            log_e += (moved @ moved / (1 + n * spread) - theta @ theta) / (2 * spread)
            values = [float(log_e), values[0]]
    return values[0], values[1]


def pools(epoch: dict[str, Any]) -> tuple[list[list[int]], list[list[int]]]:
    groups = [[m for m, k in enumerate(epoch["labels"]) if k == g] for g in range(len(epoch["cores"]))]
    return groups, epoch["cores"]


@pytest.mark.parametrize("seed", range(8))
def test_certificate_matches_oracle(seed: int) -> None:
    """Every evidence that it states follows from the log, and the tests are those that prove the candidate."""
    session = conversation(seed, 20_000, delta=[0.1, 1e-6][seed % 2])
    certificate, events = session.certificate, session.events
    assert session.done
    assert certificate["by"] == "epoch"
    proof = certificate["epoch"]
    assert min(len(proof[name]) for name in ("group_tests", "core_tests", "pair_tests")) > 0
    epoch = certificate["epochs"][proof["number"]]
    groups, cores = pools(epoch)
    b = math.log(1 / (0.8 * session.delta * 0.8 * 0.2 ** proof["number"]))
    assert epoch["level"] == pytest.approx(b, rel=1e-12)
    for name, pool_of in (("group_tests", groups), ("core_tests", cores), ("pair_tests", [[m] for m in range(12)])):
        for m, other, stated, last in proof[name]:
            found, earlier = recomputed(events, proof["number"], m, pool_of[other], last)
            in_core = any(m in core for core in cores)
            full = name == "group_tests" or (name == "core_tests" and in_core)
            level = b if full else b / 2
            assert stated == pytest.approx(found, rel=1e-9, abs=1e-9)
            assert found >= level - 1e-9
            assert earlier < level  # it was met at that round, not before
    for m, q, stated, n_m, n_q in proof["by_pairs"]:
        found = coterie.pair_evidence(results(session, m)[:n_m], results(session, q)[:n_q], grid_from=64)
        assert stated == pytest.approx(found, rel=1e-9)
        assert found >= certificate["pair_level"]
    assert coterie.verify(certificate, events).valid
    assert coterie.same_partition(session.labels, TRUTH)


@pytest.mark.parametrize("seed", range(6))
def test_frozen_tests_are_met_only_at_their_level(seed: int) -> None:
    """In the middle of a run, for every remembered epoch: met means that the level was reached, unmet that it was not.

    A test is also met when a pair from the start has reached its level: `last` is then negative.
    """
    session = conversation(seed, 400 + 40 * seed, delta=1e-9)
    assert not session.done
    run = croc_run(session)
    assert run.freezes > 0
    events = session.events
    checked = 0
    for epoch in [one for one in session.decisions if one["event"] == "freeze"][-run.n_epochs :]:
        slot = epoch["epoch"] % run.n_epochs
        in_group, in_core = run.frozen(slot).against_group, run.frozen(slot).against_core
        groups, cores = pools(epoch)
        for (m, home), k in product(enumerate(epoch["labels"]), range(session.n_clusters)):
            if k == home:
                continue
            core = m in cores[home]
            kinds = [(in_core, cores[k], epoch["level"] / (1 if core else 2))]
            if not core:
                kinds.append((in_group, groups[k], epoch["level"]))
            for tests, pool, level in kinds:
                last = tests.last[m, k]
                if tests.met[m, k] == 0:
                    assert recomputed(events, epoch["epoch"], m, pool, 10**9)[0] < level
                elif last > 0:
                    assert recomputed(events, epoch["epoch"], m, pool, last)[0] >= level - 1e-9
                else:
                    counts = -in_core.last[m, k], -in_group.last[m, k]
                    assert run.pair_evidence(m, cores[k][0], *counts) >= run.pair_level
                checked += 1
        check_met_pairs(run, events, epoch, slot)
    assert checked > 20


def check_met_pairs(run: CrocRun, events: list[dict[str, Any]], epoch: dict[str, Any], slot: int) -> None:
    """Pairs of core arms that are met: their level was reached, in the rounds or from the start."""
    pairs = run.frozen(slot).core_pairs
    places = {arm: i for i, arm in enumerate(run.frozen(slot).core.tolist()) if arm >= 0}
    for p, q in product(places, places):
        if places[q] // CORE_ROOM < places[p] // CORE_ROOM and pairs.met[places[p], places[q]]:
            last = pairs.last[places[p], places[q]]
            if last > 0:
                assert recomputed(events, epoch["epoch"], p, [q], last)[0] >= epoch["level"] / 2 - 1e-9
            else:
                counts = -last, -pairs.last[places[q], places[p]]
                assert run.pair_evidence(p, q, *counts) >= run.pair_level


@pytest.mark.parametrize("seed", range(4))
def test_log_keeps_its_rules(seed: int) -> None:
    """Freezes are numbered, rounds too, and a round gets the results that it was composed of, after it was composed."""
    session = conversation(seed, 20_000)
    events = session.events
    of_round: dict[int, dict[int, int]] = {}
    current = 0
    for event in events:
        if event["event"] == "round":
            assert event["round"] == current + 1
            current = event["round"]
            of_round[current] = dict(event["pulls"])
            assert all(count > 0 for count in of_round[current].values())
        elif event["event"] == "result" and event["round"] > 0:
            of_round[event["round"]][event["arm"]] -= 1
            assert of_round[event["round"]][event["arm"]] >= 0
    missing = sum(sum(left.values()) for left in of_round.values())
    assert missing <= len(session.pending) + session.waiting + sum(of_round[current].values())
    freezes = [event["epoch"] for event in events if event["event"] == "freeze"]
    assert freezes == list(range(len(freezes)))
    for a, b in pairwise([event for event in events if event["event"] != "result"]):
        if a["event"] == "freeze":  # a freeze is followed by a round of its epoch
            assert b["event"] == "round"
            assert b["epoch"] == a["epoch"]


# The same run, simulated and told.


@pytest.mark.parametrize(("delta", "seed"), [(0.3, 1), (0.1, 2), (1e-6, 3), (1e-40, 4)])
def test_session_equals_simulation(delta: float, seed: int) -> None:
    run = CrocRun(12, 3, 2, -math.log(delta))
    run.play(10**6, CENTERS, TRUTH, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    session: Any = coterie.Session(12, 3, 2, delta, noise=1.0)
    while not session.done:
        arm = session.ask()
        session.tell(arm, CENTERS[TRUTH[arm]] + rng.standard_normal(2))
    assert session.t == run.t
    assert coterie.same_partition(session.labels, run.labels)
    np.testing.assert_array_equal(session.pulls, run.pulls)
    np.testing.assert_array_equal(croc_run(session).sums, run.sums)
    trials = coterie.simulate(coterie.Instance(TRUTH, CENTERS), "croc", deltas=[delta], trials=1, seed=seed)
    again = CrocRun(12, 3, 2, -math.log(delta))
    again.play(10**6, CENTERS, TRUTH, np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0]))
    assert trials.stopping_times[0, 0] == again.t


def test_simulation_in_pieces_equals_simulation_at_once() -> None:
    whole = CrocRun(12, 3, 2, -math.log(1e-3))
    whole.play(10**6, CENTERS, TRUTH, np.random.default_rng(5))
    pieces, rng = CrocRun(12, 3, 2, -math.log(1e-3)), np.random.default_rng(5)
    while not pieces.done:
        pieces.play(7, CENTERS, TRUTH, rng)
    its = pieces.memory()
    for name, mine in whole.memory().items():
        np.testing.assert_array_equal(mine, its[name], err_msg=name)


# At the edges.


@pytest.mark.parametrize(
    ("n_arms", "n_groups", "dim", "delta", "gap"),
    [
        (3, 2, 1, 0.1, 1.0),
        (3, 2, 50, 0.1, 3.0),
        (4, 2, 1, 1e-300, 2.0),
        (12, 3, 2, 1e-300, 6.0),
        (6, 5, 3, 0.1, 2.0),
        (9, 8, 2, 1e-10, 4.0),
        (30, 2, 1, 0.5, 2.0),
        (20, 3, 50, 0.01, 4.0),
        (5, 2, 2, 0.999, 1.0),
    ],
)
def test_edges_of_the_settings(n_arms: int, n_groups: int, dim: int, delta: float, gap: float) -> None:
    rng = np.random.default_rng(n_arms)
    centers = np.zeros((n_groups, dim))
    for k in range(n_groups):  # on a line and, where there is room, off it
        centers[k, 0] = gap * k
        centers[k, dim - 1] += gap * (k % 2)
    truth = np.arange(n_arms) % n_groups
    session = coterie.Session(n_arms, n_groups, dim, delta, noise=1.0)
    while not session.done:
        assert session.t < 20_000
        arm = session.ask()
        session.tell(arm, centers[truth[arm]] + rng.standard_normal(dim))
    assert coterie.same_partition(session.labels, truth) or delta > 0.01
    assert coterie.verify(session.certificate, session.events).valid


def test_largest_round_has_room() -> None:
    """Nearly as many groups as arms: every representative is pulled about ½·√M times in a round of an unmet epoch."""
    n_arms, n_groups = 300, 299
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((n_groups, 8))
    gaps = ((centers[:, None] - centers) ** 2).sum(axis=2)
    centers *= 6.0 / math.sqrt(gaps[gaps > 0].min())
    run = CrocRun(n_arms, n_groups, 8, 300 * math.log(10))
    while run.freezes == 0:
        assert run.t < 2000
        run.play(20, centers, np.arange(n_arms) % n_groups, rng)
    _, pulls = run.composition(run.round)
    assert sum(count for _, count in pulls) > 8 * n_arms
    assert len(pulls) <= n_arms <= inside(run).flight.entries.arm.size


@pytest.mark.parametrize(("n_groups", "dim", "value"), [(2, 1, 0.0), (3, 2, 0.0), (2, 3, -7.0), (4, 50, 1e6)])
def test_equal_results_prove_nothing(n_groups: int, dim: int, value: float) -> None:
    """If everything measured is the same, no evidence arises: neither a proof nor an alarm nor an endless loop."""
    session = coterie.Session(6, n_groups, dim, 0.9, noise=1.0)
    for _ in range(1500):
        session.tell(session.ask(), np.full(dim, value))
    assert not session.done
    assert session.alarm is None
    assert (session.pulls > 5).all()
    assert session.evidence.statistic < session.evidence.threshold
    assert math.isfinite(session.evidence.threshold)


def test_results_without_noise_prove_the_groups() -> None:
    session = coterie.Session(7, 3, 2, 0.01, noise=1.0)
    truth = [0, 1, 2, 2, 1, 0, 0]
    while not session.done:
        assert session.t < 2000
        arm = session.ask()
        session.tell(arm, CENTERS[truth[arm]])
    assert coterie.same_partition(session.labels, truth)
    assert session.t >= 14


def test_whole_numbers_with_ties_prove_the_groups() -> None:
    rng = np.random.default_rng(3)
    session = coterie.Session(8, 2, 1, 0.01, noise=1.0)
    while not session.done:
        assert session.t < 5000
        arm = session.ask()
        session.tell(arm, np.round(2.0 * (arm % 2) + rng.standard_normal(1)))
    assert coterie.same_partition(session.labels, np.arange(8) % 2)


@pytest.mark.parametrize("far", [1e6, 1e9, 1e11])
def test_results_far_from_zero_prove_the_groups(far: float) -> None:
    """Groups that are hugely apart take one look at every arm, and a second at a few."""
    rng = np.random.default_rng(4)
    session = coterie.Session(6, 2, 2, 1e-6, noise=1.0)
    while not session.done:
        assert session.t < 30
        arm = session.ask()
        session.tell(arm, far * (arm % 2) + rng.standard_normal(2))
    assert coterie.same_partition(session.labels, np.arange(6) % 2)
