"""Runs where features are measured apart: they end with the right groups, with any workers, and can be followed."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most

from bench.features import dense, own_features, shifted
from coterie.methods import prepared
from coterie.methods.contract import PanelPull
from coterie.methods.features.method import FeatureRun
from coterie.methods.features.search import Constants
from coterie.methods.records import ASK, GIVE_UP, NOBODY, RESULT, Record
from coterie.problem.families import Bounded
from coterie.problem.features import Features
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from coterie.problem.settings import SettingError, Settings
from coterie.simulate.features import play_features
from coterie.simulate.worlds import Clicks


def settings_for(
    instance: Instance, features: Features | None = None, noise: Any = 1.0, delta: float = 0.05
) -> Settings:
    n_groups, dim = instance.centers.shape
    return Settings.of(instance.labels.size, n_groups, None, delta, noise=noise, features=features or dim)


class Conversation:
    """A run and workers who answer late and in any order, now and then not at all; what happened is on record."""

    def __init__(self, instance: Instance, features: Features, workers: int, lost: float, seed: int) -> None:
        self.instance, self.features, self.workers, self.lost = instance, features, workers, lost
        self.rng = np.random.default_rng(seed)
        self.run = FeatureRun(settings_for(instance, features))
        self.rows: list[tuple[int, int, int, int, int]] = []  # kind, item, round, ask, panel
        self.values: list[list[float]] = []
        self.decisions: list[tuple[int, dict[str, Any]]] = []
        self.open: list[tuple[int, PanelPull]] = []

    def _note(self, kind: int, pull: PanelPull, ask: int, x: Any = ()) -> None:
        self.rows.append((kind, pull.arm, pull.round, ask, pull.panel))
        self.values.append([*x, *[math.nan] * (self.features.width - len(x))])

    def _decided(self) -> None:
        self.decisions += [(len(self.rows), decision) for decision in self.run.new_decisions()]

    def play(self, most: int = 20_000) -> Conversation:
        while not self.run.done and len(self.rows) < most:
            while len(self.open) < self.workers:
                pull = self.run.ask()
                self._decided()
                assert isinstance(pull, PanelPull)
                self.open.append((len(self.rows), pull))
                self._note(ASK, pull, NOBODY)
            place = int(self.rng.integers(len(self.open)))
            stream = self.open[place][1][0], self.open[place][1][2]
            first = next(i for i, (_, pull) in enumerate(self.open) if (pull.arm, pull.panel) == stream)
            ask, pull = self.open.pop(first)
            if self.rng.random() < self.lost:
                self.run.give_up_panel(pull.arm, pull.panel, pull.round)
                self._note(GIVE_UP, pull, ask)
            else:
                means = self.instance.means[pull.arm, list(self.features.features_of(pull.panel))]
                x = means + self.rng.standard_normal(means.size)
                self.run.count_panel(pull.arm, pull.panel, x, pull.round, True)
                self._note(RESULT, pull, ask, x)
            self._decided()
        return self

    def record(self, n: int) -> Record:
        kinds, arms, rounds, ask, panels = np.array(self.rows[:n], dtype=np.int64).T.copy()
        decisions = [(place, decision) for place, decision in self.decisions if place < n]
        asked = np.ones(n, dtype=np.int64)
        return Record(kinds, arms, rounds, ask, asked, np.array(self.values[:n]), decisions, panels=panels)


SMALL = own_features(3, 12, 40, 6, 4.0, np.random.default_rng(0))
PANELS = Features.of(40, panels={f"p{i}": [f"{2 * i}", f"{2 * i + 1}"] for i in range(20)})


@pytest.mark.parametrize("workers", [1, 3, 9, 40])
@pytest.mark.parametrize("features", [Features.of(40), PANELS], ids=["alone", "panels"])
def test_any_number_of_workers_find_the_groups(workers: int, features: Features) -> None:
    talk = Conversation(SMALL, features, workers, 0.05, workers).play()
    assert talk.run.done
    guess = talk.run.guess
    assert guess is not None
    assert same_partition(guess[0], SMALL.labels)
    cells = talk.run.cells()
    assert cells.counts.sum() == talk.run.t * features.width
    assert talk.run.standing().proven == talk.run.standing().needed
    assert talk.run.evidence().statistic >= talk.run.evidence().threshold


@pytest.mark.parametrize("workers", [1, 5])
def test_following_a_record_equals_never_having_stopped(workers: int) -> None:
    talk = Conversation(SMALL, PANELS, workers, 0.1, 7).play()
    for n in (len(talk.rows) // 3, len(talk.rows) - 1):
        record = talk.record(n)
        again = FeatureRun(settings_for(SMALL, PANELS))
        blank = record._replace(rounds=np.where(record.kinds == ASK, -1, record.rounds), decisions=[])
        followed = again.follow(blank)
        assert followed.used == n
        assert [made for _, made in followed.decisions] == [made for _, made in record.decisions]
        np.testing.assert_array_equal(blank.rounds[record.kinds == ASK], record.rounds[record.kinds == ASK])
        np.testing.assert_array_equal(again.cells().means, _after(talk, n).cells().means)


def _after(talk: Conversation, n: int) -> FeatureRun:
    run = FeatureRun(settings_for(SMALL, PANELS))
    run.apply(talk.record(n))
    return run


def test_an_applied_record_counts_and_the_rule_goes_on() -> None:
    talk = Conversation(SMALL, PANELS, 4, 0.0, 9).play()
    n = len(talk.rows) - 3
    other = Conversation(SMALL, PANELS, 4, 0.0, 10)
    other.run = _after(talk, n)
    other.rows, other.values = talk.rows[:n], talk.values[:n]
    answered = {ask for kind, _, _, ask, _ in other.rows if kind == RESULT}
    other.open = [
        (i, PanelPull(item, of_round, panel))
        for i, (kind, item, of_round, _, panel) in enumerate(other.rows)
        if kind == ASK and i not in answered
    ]
    assert other.run.t == sum(kind == RESULT for kind, *_ in other.rows)
    other.play(n + 20_000)
    assert other.run.done


def test_one_worker_is_told_the_same_in_lists_and_one_by_one() -> None:
    by_ask = Conversation(SMALL, Features.of(40), 1, 0.0, 3).play()
    run, rng = FeatureRun(settings_for(SMALL)), np.random.default_rng(3)
    while not run.done:
        for item, panel, count, of_round in run.take_planned():
            for _ in range(count):
                rng.integers(1)
                rng.random()
                run.count_panel(item, panel, SMALL.means[item, [panel]] + rng.standard_normal(1), of_round, True)
    assert run.t == by_ask.run.t
    assert run.epoch is not None
    assert by_ask.run.epoch is not None
    np.testing.assert_array_equal(run.epoch.evidence, by_ask.run.epoch.evidence)


@pytest.mark.parametrize(
    "instance",
    [
        shifted(20, 200, 10, 5.0, 0.5, np.random.default_rng(1)),
        shifted(40, 200, 20, 4.0, 0.05, np.random.default_rng(2)),
        dense(3, 24, 60, 0.8, np.random.default_rng(3)),
        own_features(5, 25, 100, 8, 4.0, np.random.default_rng(4)),
    ],
    ids=["sparse", "a small group", "dense", "five groups"],
)
def test_groups_are_found_for_far_less_than_whole_vectors(instance: Instance) -> None:
    dim = instance.centers.shape[1]
    trial = play_features(settings_for(instance), instance, 5)
    assert trial.right
    assert trial.results < instance.labels.size * dim


@pytest.mark.parametrize(("workers", "seed"), [(7, 1), (30, 2), (30, 3)])
def test_workers_go_on_while_candidates_fail_and_groups_are_joined(workers: int, seed: int) -> None:
    """Groups that are hard to tell apart, and results that are lost now and then."""
    instance = dense(3, 9, 12, 0.7, np.random.default_rng(seed))
    talk = Conversation(instance, Features.of(12), workers, 0.05, seed).play(200_000)
    assert talk.run.done


def test_costs_are_heeded() -> None:
    rng = np.random.default_rng(8)
    centers = np.zeros((2, 60))
    centers[0, :30] = 4.0  # the first ten are dear
    instance = Instance(rng.permutation(np.arange(30) % 2), centers)
    costs = [20.0] * 10 + [1.0] * 50
    heeded = [play_features(settings_for(instance, Features.of(60, costs)), instance, s) for s in range(8)]
    blind = [play_features(settings_for(instance), instance, s) for s in range(8)]
    mean = sum(costs) / 60
    assert sum(trial.cost for trial in heeded) < 0.6 * mean * sum(trial.results for trial in blind)


def test_bounded_results_have_half_their_range_as_noise() -> None:
    rng = np.random.default_rng(11)
    centers = np.full((2, 8), 0.5)
    centers[:, :4] = [[0.85], [0.15]]
    instance = Instance(rng.permutation(np.arange(12) % 2), centers)
    trial = play_features(settings_for(instance, noise=Bounded(0, 1)), instance, 2, Clicks())
    assert trial.right


@pytest.mark.parametrize("constants", [Constants(undoings=0), Constants(in_vain=0.0)])
def test_a_run_whose_search_is_over_measures_everything_and_ends(constants: Constants) -> None:
    """The course that ends whatever the search has missed; here from the start."""
    instance = dense(3, 9, 6, 1.5, np.random.default_rng(4))
    trial = play_features(settings_for(instance), instance, 6, constants=constants)
    assert trial.right


@pytest.mark.parametrize(
    ("noise", "features", "message"),
    [
        ("symmetric", Features.of(2), "symmetric"),
        (np.array([[1.0, 0.5], [0.5, 1.0]]), Features.of(["a", "b"], panels={"ab": ["a", "b"]}), "independent"),
    ],
)
def test_what_has_no_evidence_is_refused_by_name(noise: Any, features: Features, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        prepared(Settings.of(4, 2, noise=noise, features=features))


def test_the_ratio_of_a_batch_equals_its_formula() -> None:
    """docs/FEATURES.md, section 4: the mean over ordered pairs of exp((D·s − s²/2)/v)."""
    rng = np.random.default_rng(12)
    run = FeatureRun(settings_for(SMALL))
    search, scale = run.rule.search, 1.0
    cells = {item: rng.normal(size=item + 1) for item in range(4)}
    for item, x in cells.items():
        run.count_many(item, 7, x[:, None], 0, asked=False)
    terms = []
    for a, b in permutations(cells, 2):
        v = 1 / cells[a].size + 1 / cells[b].size
        terms.append(math.exp(((cells[a].mean() - cells[b].mean()) * scale - scale**2 / 2) / v))
    ratio, lead = search.ratio(7, list(cells), 0, scale)
    assert ratio == pytest.approx(math.log(sum(terms) / len(terms)))
    assert lead is not None
    v = 1 / cells[lead.first].size + 1 / cells[lead.second].size
    assert max(terms) == pytest.approx(math.exp((lead.gap * scale - scale**2 / 2) / v))


@pytest.mark.guarantee
def test_whole_runs_error_rate_within_delta() -> None:
    """2,000 runs at δ = 0.2; what is allowed is exceeded with a probability below 1e-4 at that rate."""
    wrong = 0
    for seed in range(2000):
        rng = np.random.default_rng([seed, 5])
        kind = seed % 3
        if kind == 0:
            instance = shifted(6, 12, 3, 1.5, 0.5, rng)
        elif kind == 1:
            instance = dense(3, 7, 8, 1.0, rng)
        else:
            instance = shifted(8, 10, 4, 2.0, 0.125, rng)
        trial = play_features(settings_for(instance, delta=0.2), instance, seed)
        assert trial.right is not None
        wrong += not trial.right
    assert_rate_at_most(0.2, wrong, 2000, Guarantee("known", "features one by one"), 1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_ends_where_every_feature_is_found(seed: int) -> None:
    """There is no further feature to look for, and looking costs nothing: it must not go on for ever."""
    rng = np.random.default_rng(seed)
    instance = shifted(30, 2, 2, 0.7, 0.5, rng)
    trial = play_features(settings_for(instance), instance, seed)
    assert trial.right is not None


def test_no_better_feature_is_sought_for_two_groups_that_are_one() -> None:
    """Two groups are the same items of one by mistake: no feature tells them apart, however long one looks."""
    centers = np.zeros((3, 4))
    centers[1:, 0] = 1.5, -1.5
    instance = Instance(np.array([2, 1, 0, 0, 1, 2]), centers)
    trial = play_features(settings_for(instance, delta=0.3), instance, 880_428, limit=20_000)
    assert trial.right
    assert trial.results < 2000
