"""Families, random instances, crews of workers, and what the benchmark makes of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import coterie
from bench import foreign, hands, scan
from bench.cells import Ending, Endings, cell, summed_up, trials_of
from bench.crew import Crew, new_session
from bench.families import FAMILIES, SIZES, Family, random_instance, yardstick
from bench.family_cells import BOC, compared, headlines, median_text
from bench.part import Part, Row
from bench.peers import PEERS
from coterie.methods.trials import RunningTrials

pytestmark = pytest.mark.slow  # what the benchmarks compare with


def gaps(instance: coterie.Instance) -> np.ndarray:
    """Distances between all pairs of centers, sorted."""
    k = instance.n_clusters
    return np.sort([math.dist(instance.centers[i], instance.centers[j]) for i in range(k) for j in range(i)])


ASKED = {
    "20,1,1, gap 2, 50 away, d=1": ([20, 1, 1], 1, [2, 50, 52], 60),
    "40,1,1, gap 2, 50 away, d=1": ([40, 1, 1], 1, [2, 50, 52], 70),
    "80,1,1, gap 2, 50 away, d=1": ([80, 1, 1], 1, [2, 50, 52], 115),
    "160,1,1, gap 2, 50 away, d=1": ([160, 1, 1], 1, [2, 50, 52], 200),
    "640,1,1, gap 2, 50 away, d=1": ([640, 1, 1], 1, [2, 50, 52], 720),
    "98,1,1, gap 3, 10 away, d=1": ([98, 1, 1], 1, [3, 10, 13], 125),
    "300,1,1, gap 3, 10 away, d=1": ([300, 1, 1], 1, [3, 10, 13], 330),
    "90,5,5, gap 1.5, 10 away, d=1": ([90, 5, 5], 1, [1.5, 10, 11.5], 230),
    "80,10,10, gap 1, 10 away, d=1": ([80, 10, 10], 1, [1, 10, 11], 720),
    "150,1,1, gap 2, 50 away, d=5": ([150, 1, 1], 5, [2, 50, 52], 300),
}


def test_families_with_a_figure_are_those_that_were_asked_for() -> None:
    assert {name for name, family in FAMILIES.items() if family.median_at_most is not None} == set(ASKED)
    for name, (sizes, dim, apart, most) in ASKED.items():
        family = FAMILIES[name]
        assert family.instance.sizes.tolist() == sizes
        assert family.instance.dim == dim
        assert gaps(family.instance) == pytest.approx(apart)
        assert family.median_at_most == most


def test_families_of_our_own_come_in_several_dimensions() -> None:
    own = [family for family in FAMILIES.values() if family.median_at_most is None]
    assert len(own) >= 30
    for dim in (1, 3, 10, 30):
        assert sum(family.name.endswith(f" d={dim}") and family.instance.dim == dim for family in own) >= 8
    three = FAMILIES["60 and three close ones, d=3"].instance
    assert gaps(three)[:3] == pytest.approx([gaps(three)[0]] * 3)  # a triangle
    last = FAMILIES["sizes 35 … 2, gap 4, d=30"].instance
    assert (last.n_arms, last.n_clusters, gaps(last)[0]) == (60, 6, pytest.approx(4))


def test_yardstick_is_that_of_the_bound() -> None:
    instance = coterie.Instance([0, 1, 1, 1, 1], [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert yardstick(instance, 0.05) == pytest.approx(coterie.hardness(instance) * (math.log(20) + 1.5) + 5)


def test_random_instances_keep_to_their_ranges() -> None:
    seen: set[str] = set()
    shapes = []
    for seed in range(400):
        drawn = random_instance(np.random.default_rng(seed))
        instance, sizes = drawn.instance, np.sort(drawn.instance.sizes)[::-1]
        seen.add(drawn.sizes)
        shapes.append((instance.n_arms, instance.n_clusters, instance.dim))
        assert 3 <= instance.n_arms <= 60
        assert 2 <= instance.n_clusters < instance.n_arms
        assert 1 <= instance.dim <= 20
        assert 0.5 <= drawn.gap <= 10
        assert gaps(instance)[0] == pytest.approx(drawn.gap)
        if drawn.sizes == "even":
            assert sizes[0] - sizes[-1] <= 1
        elif drawn.sizes == "one large":
            assert sizes[1] == 1
        elif drawn.sizes == "geometric" and instance.n_clusters > 2:  # half of what is left, unless others need it
            assert sizes[0] == min(math.ceil(sizes.sum() / 2), sizes.sum() - len(sizes) + 1)
    assert seen == set(SIZES)
    arms, groups, dims = np.array(shapes).T
    assert (arms.min(), arms.max(), dims.min(), dims.max()) == (3, 60, 1, 20)
    assert (groups <= 6).mean() > 0.4
    assert (groups > arms / 2).mean() > 0.2


def test_a_random_instance_follows_from_its_seed() -> None:
    first, second, other = (random_instance(np.random.default_rng(seed)).instance for seed in (5, 5, 6))
    assert np.array_equal(first.means, second.means)
    assert first.means.shape != other.means.shape or not np.array_equal(first.means, other.means)


def test_unfinished_trials_count_as_infinitely_long() -> None:
    ends = [Ending(10, True), Ending(12, False), Ending(14, True), Ending(1000, False, done=False)]
    row = cell("m", Endings({0.1: ends}), 0.1)
    assert (row["mean"], row["median"], row["quantile95"], row["largest"]) == (None, 13, None, None)
    assert (row["trials"], row["unfinished"], row["wrong"]) == (4, 1, 1)
    assert summed_up([1.0, math.inf, math.inf])["median"] is None
    many = summed_up(list(range(1, 101)))
    assert (many["median"], many["quantile95"], many["quantile99"], many["largest"]) == (50.5, 96, 100, 100)


def test_trials_have_a_limit_of_measurements() -> None:
    name = "80,10,10, gap 1, 10 away, d=1"
    for method in ("croc", "boc", *PEERS):
        (end,) = trials_of(name, method, "proven", (0.05,), RunningTrials(), most=120)(0)[0.05]
        assert end == Ending(120, False, done=False)


def cells_of(medians: dict[str, float | None]) -> dict[str, dict[str, object]]:
    made = {}
    for label, t in medians.items():
        ends = [Ending(0, False, done=False)] * 3 if t is None else [Ending(int(t), True)] * 3
        made[label] = cell(label, Endings({0.05: ends}), 0.05)
    return made


def test_families_are_compared_by_medians() -> None:
    family = Family("f", coterie.Instance([0, 0, 1], [[0.0], [1.0]]), 100)
    row = compared(
        family, cells_of({"CROC": 90, BOC: 900, "elimination": 180, "lucb": None, "representatives": 200}), 999
    )
    assert row["met"]
    assert (row["boc_over_croc"], row["best_peer"], row["peer_over_croc"]) == (10, "elimination", 2)
    assert median_text(row, "lucb") == "> 999"
    lost = compared(
        family, cells_of({"CROC": 110, BOC: None, "elimination": 55, "lucb": 60, "representatives": 200}), 999
    )
    assert not lost["met"]
    assert lost["boc_over_croc"] == pytest.approx(999 / 110)  # a bound
    assert lost["boc_at_least"]
    met = {line.what.partition(" (")[0]: line.met for line in headlines([row, lost])}
    assert met["f: CROC, median"] is False
    assert met["2 families: BOC with β over CROC, medians, least"] is True
    assert met["2 families: best peer over CROC, medians, least"] is False
    never = compared(family, cells_of({"CROC": None, BOC: 5, **dict.fromkeys(PEERS, 5)}), 999)
    assert (never["met"], never["boc_over_croc"], never["peer_over_croc"], never["spread"]) == (False, None, None, None)
    assert not any(line.met for line in headlines([never]))


def test_the_scan_counts_unfinished_runs_in_its_quantiles() -> None:
    found = [scan.Scanned(1, "a", "even", (1.0, 2.0, math.inf), 0), scan.Scanned(2, "b", "even", (3.0, 4.0), 1)]
    row = scan.row_of("all", found)
    assert (row["instances"], row["runs"], row["median"], row["largest"]) == (2, 5, 3.0, None)
    assert (row["unfinished"], row["wrong"]) == (1, 1)
    median, high, largest = scan.headlines([row])
    assert (median.measured, median.met) == ("3×", None)
    assert (high.met, largest.met, largest.measured) == (False, False, "> 100×")
    kept = scan.headlines([scan.row_of("all", found[1:])])
    assert [line.met for line in kept] == [None, True, True]


def test_a_scan_of_an_instance_follows_from_its_seed() -> None:
    first, second = scan.scanned(31, 2), scan.scanned(31, 2, workers=1)
    assert first == second
    assert all(ratio > 0 for ratio in first.ratios)


class Recorded(coterie.Session):
    """Writes down what it is told, how many asks are open then, and what is given up."""

    def __init__(self, method: str = "croc") -> None:
        super().__init__(EASY.n_arms, EASY.n_clusters, EASY.dim, 0.05, method=method, noise=1.0)
        self.told: list[tuple[Any, Any, Any]] = []
        self.open_asks: list[int] = []
        self.given_up: list[int] = []

    def tell(self, arm: object, x: object, ticket: object = None, block: object = None, feature: object = None) -> None:
        self.told.append((arm, ticket, x))
        self.open_asks.append(len(self.pending))
        super().tell(arm, x, ticket)

    def forget(self, ticket: int) -> None:
        self.given_up.append(ticket)
        super().forget(ticket)


EASY = coterie.Instance([0, 0, 1, 1, 1], [[0.0, 0.0], [1.0, 0.5]])


def test_one_worker_is_asking_and_telling() -> None:
    crew = Crew(new_session(EASY, 0.05), EASY, [7])
    crew.always_busy(1, 10_000)
    plain = new_session(EASY, 0.05)
    values = np.random.default_rng([7, 0])
    while not plain.done:
        arm = plain.ask()
        plain.tell(arm, EASY.means[arm] + values.standard_normal(2))
    assert crew.session.done
    assert crew.asked == crew.session.t == plain.t
    assert np.array_equal(crew.session.pulls, plain.pulls)


def test_workers_are_always_busy_and_answer_in_any_order() -> None:
    session = Recorded()
    crew = Crew(session, EASY, [8])
    crew.always_busy(6, 10_000)
    assert session.done
    assert set(session.open_asks) == {6}
    told = [ticket for _, ticket, _ in session.told]
    assert told != sorted(told)
    assert session.t <= len(told) <= crew.asked <= len(told) + 6


def test_workers_give_up_and_tell_what_nobody_asked_for() -> None:
    session = Recorded()
    Crew(session, EASY, [9]).always_busy(2, 10_000, forgotten=0.2, unasked=0.3)
    assert session.done
    asked = {ticket for _, ticket, _ in session.told if ticket is not None}
    assert len(session.told) - len(asked) > 3
    assert len(session.given_up) > 3
    assert not asked & set(session.given_up)


def test_batches_are_answered_whole_and_the_limit_of_asks_is_kept() -> None:
    session = Recorded()
    Crew(session, EASY, [10]).in_batches(8, 10_000)
    assert session.done
    assert set(session.open_asks[:-1]) == {8}  # the last one may be cut short by the proof
    hard = coterie.Instance([0, 0, 1], [[0.0], [0.01]])
    crew = Crew(new_session(hard, 0.05), hard, [11])
    crew.in_batches(8, 40)
    assert (crew.asked, crew.session.done) == (40, False)
    crew.always_busy(4, 60)
    assert crew.asked == 60


def test_results_in_turn_are_the_same_for_both_methods() -> None:
    sessions = [Recorded(method) for method in foreign.METHODS]
    for session in sessions:
        Crew(session, EASY, [12]).in_turn(50)
    for first, second in zip(*(session.told[:20] for session in sessions), strict=True):
        assert np.array_equal(first[2], second[2])
    assert [arm for arm, _, _ in sessions[1].told[:7]] == [0, 1, 2, 3, 4, 0, 1]
    assert not any(session.pending for session in sessions)


def test_ratios_of_workers_are_to_one_worker() -> None:
    one = hands.row_of("c", hands.ONE, [(10, 10, False), (30, 30, False)], None)
    eight = hands.row_of("c", hands.Way(8, at_most=1.3), [(20, 28, False), (31, 40, True)], one)
    assert (one["counted_mean"], one["counted_mean_ratio"], one["met"]) == (20, 1, None)
    assert eight["counted_mean_ratio"] == pytest.approx(25.5 / 20)
    assert eight["asked_mean_ratio"] == pytest.approx(34 / 20)
    assert (eight["wrong"], eight["met"]) == (1, True)
    late = hands.row_of("c", hands.Way(64, at_most=2.5), [(20, 28, False), (math.inf, math.inf, False)], one)
    assert (late["counted_mean"], late["unfinished"], late["met"]) == (None, 1, False)
    (line, _) = hands.headlines([one, eight, late])
    assert (line.what, line.measured, line.met) == ("c, 8 workers: measurements over one worker's", "1.27×", True)


def test_foreign_results_are_compared_with_uniform() -> None:
    rows: list[Row] = [
        {"ratio": 0.5, "met": True, "croc_unfinished": 0, "runs": 5},
        {"ratio": None, "met": False, "croc_unfinished": 4, "runs": 5},
    ]
    lines = foreign.headlines(rows)
    assert [line.measured for line in lines] == ["unfinished", "unfinished", "4 of 10"]
    assert [line.met for line in lines] == [None, False, False]
    assert [line.met for line in foreign.headlines(rows[:1])] == [None, True, True]


def test_a_part_prints_its_rows_in_the_tables_that_they_belong_to() -> None:
    part: Part = scan.PART
    rows: list[Row] = [{"sizes": "all"}, {"seed": 3}, {"seed": 4}]
    assert [[len(own)] for _, own in part.tables(rows)] == [[1], [2]]
    assert len(part.tables(rows[:1])) == 1
