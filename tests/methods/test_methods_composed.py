"""Methods composed of a sampling rule and a stopping rule: what the rules see, and that they decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import coterie
from coterie import methods
from coterie.methods import MethodError, Reading, Tally
from coterie.problem.settings import Settings

INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])


@pytest.fixture(autouse=True)
def clean_table() -> Iterator[None]:
    before = set(methods.METHODS)
    yield
    for name in set(methods.METHODS) - before:
        methods.unregister(name)


def tally_of(*results: tuple[int, float], n_arms: int = 3) -> Tally:
    tally = Tally(Settings.of(n_arms, 2, 1, delta=0.1, noise=1.0))
    for arm, x in results:
        tally.add(arm, np.array([x]), asked=False)
    return tally


def last_arm(tally: Tally) -> int:
    """Always the last arm."""
    return tally.n_arms - 1


def test_a_tally_adds_up() -> None:
    tally = tally_of((0, 1.0), (0, 2.0), (2, 9.0))
    tally.commit(1, +1)
    assert (tally.n_arms, tally.n_clusters, tally.dim, tally.delta, tally.t) == (3, 2, 1, 0.1, 3)
    assert tally.pulls.tolist() == [2, 0, 1]
    assert tally.committed.tolist() == [2, 1, 1]
    assert tally.sums.ravel().tolist() == [3.0, 0.0, 9.0]
    assert tally.means.ravel().tolist() == [1.5, 0.0, 9.0]
    assert tally.results(0).ravel().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="no guess of the groups before every arm has a result"):
        tally.labels
    before = tally.ready
    tally.add(1, np.array([1.0]), asked=True)
    assert (before, tally.ready) == (False, True)
    assert tally.committed.tolist() == [2, 1, 1]
    assert tally.labels.tolist() == [0, 0, 1]
    assert tally.centers.ravel() == pytest.approx([4.0 / 3.0, 9.0])
    for _ in range(20):
        tally.add(1, np.array([12.0]), asked=False)  # the guess follows the results
    assert tally.labels.tolist() == [0, 1, 1]
    assert len(tally.results(1)) == 21


@pytest.mark.parametrize("part", ["pulls", "committed", "sums", "labels", "centers"])
def test_a_tally_cannot_be_written_to(part: str) -> None:
    tally = tally_of((0, 1.0), (1, 2.0), (2, 9.0))
    with pytest.raises(ValueError, match="read-only"):
        getattr(tally, part)[0] = 3
    with pytest.raises(ValueError, match="read-only"):
        tally.results(0)[0] = 3.0


def test_uniform_with_the_papers_rule_equals_the_engine() -> None:
    composed = methods.compose("plain")
    settings: dict[str, Any] = {
        "deltas": (0.1, 1e-3), "threshold": ("proven", "heuristic"), "trials": 3, "seed": 6, "progress": False,
    }  # fmt: skip
    mine, engine = (coterie.simulate(INST, method, **settings) for method in (composed, "uniform"))
    for threshold in settings["threshold"]:
        assert np.array_equal(mine[threshold].stopping_times, engine[threshold].stopping_times)
        assert np.array_equal(mine[threshold].correct, engine[threshold].correct)
        assert mine[threshold].threshold == threshold


def test_uniform_with_several_workers_asks_for_the_arms_of_the_engine() -> None:
    methods.register(methods.compose("plain"))
    sessions = [coterie.Session(6, 3, 2, 0.2, method, "heuristic", noise=1.0) for method in ("plain", "uniform")]
    rng = np.random.default_rng(3)
    while not sessions[1].done:
        arms = [session.ask() for session in sessions]
        assert arms[0] == arms[1]
        if len(sessions[1].pending) < 4 or rng.random() < 0.1:
            continue
        ticket, arm = sessions[1].pending[int(rng.integers(len(sessions[1].pending)))]
        x = INST.means[arm] + rng.standard_normal(2)
        for session in sessions:
            if x[0] > 4.5:
                session.forget(ticket)
            else:
                session.tell(arm, x, ticket)
    assert sessions[0].done
    assert sessions[0].t == sessions[1].t
    assert coterie.same_partition(sessions[0].labels, sessions[1].labels)
    assert sessions[0].evidence.statistic == pytest.approx(sessions[1].evidence.statistic)
    assert sessions[0].evidence.threshold == pytest.approx(sessions[1].evidence.threshold)


def test_pairs_stop_when_every_test_has_reached_its_level() -> None:
    """Against the evidence of all pairs, recomputed from the results at the stop and one result before."""
    methods.register(methods.compose("pairs", stopping="pairs"))
    rng = np.random.default_rng(8)
    session = coterie.Session(6, 3, 2, 0.05, "pairs", noise=1.0)
    stacks: list[list[Any]] = [[] for _ in range(6)]
    level = math.log(6 / 0.05)  # H = (6 − 3 + 1)·3/2
    best = np.full((6, 6), -np.inf)
    needed = -np.inf
    while not session.done:
        assert needed < level
        arm = session.ask()
        stacks[arm].append(INST.means[arm] + rng.standard_normal(2))
        session.tell(arm, stacks[arm][-1])
        if min(map(len, stacks)) > 0:
            for i in range(6):
                for j in range(6):
                    if i != j:
                        best[i, j] = max(best[i, j], coterie.pair_evidence(np.array(stacks[i]), np.array(stacks[j])))
            pulls = np.array([len(stack) for stack in stacks])
            assert session.labels is not None
            leads = [int(max(np.flatnonzero(session.labels == k), key=lambda m: (pulls[m], -m))) for k in range(3)]
            needed = min(best[m, leads[k]] for k in range(3) for m in range(6) if session.labels[m] != k)
    assert needed >= level
    assert session.evidence.threshold == pytest.approx(level)
    assert session.evidence.statistic >= level
    assert coterie.same_partition(session.labels, INST.labels)


def test_pairs_error_rate_within_delta() -> None:
    """False alarm: 2e-5, the chance of more than 9 errors in 40 runs if each has probability at most 0.05."""
    hard = coterie.Instance([0, 0, 1, 1], [[0.0], [1.5]])
    trials = coterie.simulate(
        hard,
        methods.compose("pairs", stopping="pairs"),
        deltas=(0.05,),
        trials=40,
        progress=False,
        threshold="heuristic",
    )
    assert (trials.stopping_times > 0).all()
    assert trials.errors()[0] <= 9


def test_a_sampling_rule_decides_once_every_arm_has_a_result() -> None:
    methods.register(methods.compose("stuck", sampling=last_arm))
    session = coterie.Session(4, 2, 1, method="stuck", noise=1.0)
    arms = []
    for _ in range(7):
        arms.append(session.ask())
        session.tell(arms[-1], [float(arms[-1])])
    assert arms == [0, 1, 2, 3, 3, 3, 3]
    assert methods.METHODS["stuck"].sampling == "Always the last arm."


def test_a_class_has_an_instance_in_every_run_and_a_stop_its_labels() -> None:
    class Fifth:
        """After five results, with groups of its own."""

        def __init__(self) -> None:
            self.seen = 0

        def __call__(self, tally: Tally) -> Reading:
            self.seen += 1
            return Reading(self.seen, 3, np.arange(tally.n_arms) % tally.n_clusters)

    trials = coterie.simulate(
        INST, methods.compose("fifth", stopping=Fifth), trials=5, progress=False, threshold="heuristic", deltas=(0.1,)
    )
    assert (trials.stopping_times == 6 + 2).all()  # the rule is consulted from the sixth result on
    assert not trials.correct.any()


def test_a_session_goes_on_where_it_was_saved() -> None:
    methods.register(methods.compose("pairs", stopping="pairs"))
    rng = np.random.default_rng(2)
    whole = coterie.Session(6, 3, 2, 0.1, "pairs", noise=1.0)
    saved = coterie.Session(6, 3, 2, 0.1, "pairs", noise=1.0)
    while not whole.done:
        arm = whole.ask()
        assert saved.ask() == arm
        x = INST.means[arm] + rng.standard_normal(2)
        whole.tell(arm, x)
        saved = coterie.Session.from_dict(saved.to_dict())
        saved.tell(arm, x)
    assert saved.done
    assert saved.t == whole.t
    assert saved.evidence == whole.evidence


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"sampling": lambda tally: 6}, "method 'odd' asked for arm 6: the arms are 0 to 5"),
        ({"sampling": lambda tally: None}, "method 'odd' gave no integer in ask"),
        ({"sampling": lambda tally: tally.pulls.sort()}, "'odd' tried to change data that is not its own in ask"),
        ({"stopping": lambda tally: 3.0}, "'odd' failed in count: TypeError: the stopping rule must give a"),
        ({"stopping": lambda tally: Reading(1, 0, np.full(6, 5))}, "the stopping rule must stop with 6 numbers from 0"),
        ({"stopping": lambda tally: 1 // 0}, "method 'odd' failed in count: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_rules_that_break_the_contract_are_named(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        coterie.simulate(
            INST, methods.compose("odd", **rules), trials=1, progress=False, threshold="heuristic", deltas=(0.1,)
        )


def test_unknown_rules_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown sampling rule 'best': choose one of uniform, or give a function"):
        methods.compose("x", sampling="best")
    with pytest.raises(ValueError, match="unknown stopping rule 'best': choose one of paper, pairs, or give a func"):
        methods.compose("x", stopping="best")
    with pytest.raises(TypeError, match="the sampling rule must be a name, a function or a class, got 3"):
        methods.compose("x", sampling=3)  # type: ignore[arg-type]


def test_what_a_stopping_rule_needs_is_in_the_entry() -> None:
    paper, pairs, own = (
        methods.compose("x", stopping=rule) for rule in ("paper", "pairs", lambda tally: Reading(0, 1))
    )
    assert (paper.has_thresholds, paper.in_ask_order) == (True, False)
    assert (pairs.has_thresholds, pairs.in_ask_order) == (False, True)
    assert (own.has_thresholds, own.in_ask_order) == (False, False)
    assert methods.compose("x", stopping="paper", in_ask_order=True).in_ask_order
    assert "uniform" in paper.sentence
    assert "paper" in paper.sentence
