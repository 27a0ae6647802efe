"""The method with a list: right groups, several workers, saved and corrected sessions, its certificate, error rates."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most

import coterie
from coterie.certificate import read_log, write_log
from coterie.methods.shortlist.method import ShortlistRun

CLOSE = coterie.Instance([0, 0, 1, 1, 2, 2], [[0.0, 0.0], [1.5, 0.0], [0.0, 3.0]])


def session_of(instance: coterie.Instance = CLOSE, delta: float = 0.05, **more: Any) -> coterie.Session:
    return coterie.Session(
        instance.n_arms, instance.n_clusters, instance.dim, delta=delta, method="shortlist", noise=1.0, **more
    )


def measured(session: coterie.Session, seed: int, until: int = 5000, instance: coterie.Instance = CLOSE) -> None:
    """Go on to the end, or until so many results have counted; result t depends on seed and t alone."""
    while not session.done and session.t < until:
        arm = session.ask()
        rng = np.random.default_rng([seed, session.t])
        session.tell(arm, instance.means[arm] + rng.standard_normal(instance.dim))


def has_list(session: coterie.Session) -> bool:
    return any(one["event"] == "list" for one in session.decisions)


@pytest.fixture(scope="module")
def proven() -> coterie.Session:
    session = session_of()
    measured(session, 1)
    assert session.done
    assert has_list(session)
    return session


@pytest.mark.parametrize("workers", [1, 3])
def test_finds_the_groups_with_late_and_failed_results(workers: int) -> None:
    rng = np.random.default_rng(3)
    session, gave_up = session_of(delta=0.01), 0
    while not session.done and session.t < 5000:
        session.open(workers - len(session.pending))
        if not session.pending:
            break
        ticket, arm = session.pending[rng.integers(len(session.pending))]
        if session.t % 40 == 12 and gave_up <= session.t // 40:
            gave_up += 1
            session.forget(ticket)
            continue
        session.tell(arm, CLOSE.means[arm] + rng.standard_normal(2), ticket)
    assert session.done
    assert has_list(session)
    assert gave_up > 1
    assert coterie.same_partition(session.labels, CLOSE.labels)
    assert coterie.verify(session.certificate, session.events)


def test_certificate_holds_and_is_plain_json(proven: coterie.Session, tmp_path: Any) -> None:
    certificate = json.loads(json.dumps(proven.certificate))
    assert certificate["by"] == "list"
    assert certificate["delta"] == 0.05
    verdict = coterie.verify(certificate, proven.events)
    assert verdict, verdict.problems
    assert verdict.tests > len(certificate["list"]["partitions"])
    write_log(tmp_path / "log.csv", proven.events, 2)
    assert read_log(tmp_path / "log.csv") == proven.events
    assert coterie.verify(certificate, str(tmp_path / "log.csv"))


def changed(certificate: dict[str, Any] | None, path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of a certificate with another value at a place; a function makes it of the old one."""
    assert certificate is not None
    found: dict[str, Any] = copy.deepcopy(dict(certificate))
    place: Any = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return found


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("list", "level"), lambda old: old - 0.1, "list.level must be"),
        (("list", "partitions"), lambda old: old[:-1], "must have"),
        (("list", "rounds"), lambda old: [*old, old[-1] + 1], "rounds, the log has"),
        (("list", "rounds"), lambda old: old[1:], "without a gap"),
        (("list", "pairs", 0, 2), lambda old: old + 1.0, "differ: the certificate says"),
        (("list", "pairs", 0, 3), 1, "differ"),
        (("delta",), 0.01, "log_inverse_delta"),
        (("labels",), [0, 0, 0, 1, 2, 2], "not struck off|in one group"),
        (("labels",), [0, 1, 1, 1, 2, 2], "not struck off|in one group"),
        (("by",), "epoch", "epoch is missing"),
        (("epochs",), [{"number": 0}], "epoch 0"),
    ],
)
def test_a_changed_certificate_is_refused(
    proven: coterie.Session, path: tuple[Any, ...], value: Any, says: str
) -> None:
    other = changed(proven.certificate, path, value)
    if path == ("labels",):
        other["representatives"] = [value.index(k) for k in range(3)]
    verdict = coterie.verify(other, proven.events)
    assert not verdict
    assert re.search(says, " ".join(verdict.problems)), verdict.problems


def test_every_partition_must_be_struck_off(proven: coterie.Session) -> None:
    assert proven.certificate is not None
    struck = proven.certificate["list"]["struck"]
    i = next(i for i, (by, _) in enumerate(struck) if by > 0)
    earlier = changed(proven.certificate, ("list", "struck", i), [0, 0.0])
    assert any("is not struck off" in one for one in coterie.verify(earlier, proven.events).problems)
    other = changed(proven.certificate, ("list", "struck", i, 1), lambda old: old + 0.5)
    assert any("the certificate says" in one for one in coterie.verify(other, proven.events).problems)
    sooner = changed(proven.certificate, ("list", "struck", i, 0), lambda old: max(1, old - 1))
    assert struck[i][0] > 1
    assert not coterie.verify(sooner, proven.events)


def test_a_changed_log_is_refused(proven: coterie.Session) -> None:
    events = proven.events
    at = next(i for i, one in enumerate(events) if one["event"] == "list")
    without = [one for i, one in enumerate(events) if i != at]
    assert not coterie.verify(proven.certificate, without)
    later = [*events[:at], *events[at + 1 : at + 3], events[at], *events[at + 3 :]]  # after its first round began
    assert not coterie.verify(proven.certificate, later)
    twice = [*events[: at + 1], events[at], *events[at + 1 :]]
    assert not coterie.verify(proven.certificate, twice)
    of_list = next(i for i in range(at, len(events)) if events[i].get("round", 0) > 0 and "values" in events[i])
    moved = copy.deepcopy(events)
    moved[of_list]["values"][0] += 4.0
    assert not coterie.verify(proven.certificate, moved)


def test_no_candidate_is_frozen_after_a_list(proven: coterie.Session) -> None:
    assert proven.labels is not None
    freeze = {"event": "freeze", "epoch": 0, "labels": proven.labels.tolist(), "cores": [[0], [2], [4]]}
    events = proven.events
    at = next(i for i, one in enumerate(events) if one["event"] == "list")
    verdict = coterie.verify(proven.certificate, [*events[: at + 1], freeze, *events[at + 1 :]])
    assert "a freeze after a list" in " ".join(verdict.problems)


@pytest.mark.parametrize("until", [5, 9, 40, 80])
def test_a_saved_session_goes_on_as_if_it_had_never_stopped(proven: coterie.Session, until: int) -> None:
    session = session_of()
    measured(session, 1, until)
    again = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    measured(again, 1)
    assert again.t == proven.t
    assert again.events == proven.events
    assert again.certificate == proven.certificate


def test_recorded_facts_are_applied_without_the_rule(proven: coterie.Session) -> None:
    """Under rules of another number, the record counts as it is, and the run goes on to a proof."""
    session = session_of()
    measured(session, 1, 45)
    assert has_list(session)
    assert not session.done
    saved = session.to_dict()
    saved["rules"] = 99
    again = coterie.Session.from_dict(json.loads(json.dumps(saved)))
    assert again.applied > 0
    assert again.events == session.events
    assert again.pulls.tolist() == session.pulls.tolist()
    mine, its = (one._conversation.run for one in (session, again))
    assert isinstance(mine, ShortlistRun)
    assert isinstance(its, ShortlistRun)
    assert mine.listed is not None
    assert its.listed is not None
    np.testing.assert_allclose(its.listed.log_e, mine.listed.log_e, atol=1e-9)
    assert its.listed.alive.tolist() == mine.listed.alive.tolist()
    measured(again, 1)
    assert again.t == proven.t
    assert coterie.verify(again.certificate, again.events)


def test_a_corrected_value_counts_in_its_place() -> None:
    session = session_of()
    measured(session, 1, 30)
    row = session.n_measurements - 1
    arm, value = session.log[row]
    slip = session_of()
    measured(slip, 1, 29)
    asked = slip.ask()
    assert asked == arm
    slip.tell(arm, value * 10.0 + 3.0)
    slip.correct(row, value, reason="a slip of the finger")
    measured(slip, 1)
    assert slip.done
    verdict = coterie.verify(slip.certificate, slip.events)
    assert verdict, verdict.problems
    assert coterie.same_partition(slip.labels, CLOSE.labels)


@pytest.mark.parametrize("row", [0, 2, 4])
def test_a_corrected_early_value_makes_the_list_longer(row: int) -> None:
    """Pairs that a slip had settled are none: the partitions that they ruled out come back."""
    session, values = session_of(), {}
    while not session.done and session.t < 40:
        arm = session.ask()
        values[session.t] = CLOSE.means[arm] + np.random.default_rng([5, session.t]).standard_normal(2)
        slip = session.t == row
        session.tell(arm, values[session.t] + (200.0 if slip else 0.0))
    assert has_list(session)
    run = session._conversation.run
    assert isinstance(run, ShortlistRun)
    assert run.listed is not None
    before = len(run.listed.listed)
    session.correct(row, values[row], reason="a slip of the finger")
    run = session._conversation.run
    assert isinstance(run, ShortlistRun)
    assert run.listed is not None
    assert len(run.listed.listed) > before
    measured(session, 5)
    assert session.done
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict, verdict.problems
    assert coterie.same_partition(session.labels, CLOSE.labels)


def test_pairs_that_refute_k_raise_the_alarm() -> None:
    """Results that nobody asked for settle pairs: the last one settles two at once, and no two groups fit any more."""
    session = coterie.Session(3, 2, 1, delta=0.05, method="shortlist", noise=1.0)
    for _ in range(20):
        for arm, place in ((0, 0.0), (2, 8.0), (1, 4.0)):
            if not session.done:
                session.tell(arm, [place])
    assert has_list(session)
    assert session.alarm is not None
    assert session.alarm.arms == (0, 1, 2)
    assert not coterie.verify(session.certificate, session.events)
    again = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    assert again.alarm == session.alarm


def test_a_group_too_few_is_noticed_beside_the_proof() -> None:
    """With a small δ there are enough results to see that one of the two groups is mixed."""
    session = coterie.Session(6, 2, 1, delta=1e-12, method="shortlist", noise=1.0)
    measured(session, 1, 400, coterie.Instance([0, 0, 1, 1, 2, 2], [[0.0], [3.0], [6.0]]))
    assert session.done
    assert not session.homogeneity
    assert coterie.verify(session.certificate, session.events).warnings


@pytest.mark.slow
def test_needs_fewer_than_croc_where_two_small_groups_are_close() -> None:
    known = coterie.datasets.synthetic("moderate")
    needed = {}
    for method in ("croc", "shortlist"):
        trials = coterie.simulate(known, method, deltas=(0.1,), threshold="proven", trials=48, seed=2, progress=False)
        needed[method] = trials.mean()[0]
    assert needed["shortlist"] < 0.95 * needed["croc"]


def test_large_groups_are_left_to_croc() -> None:
    many = coterie.Instance(np.arange(20) % 2, [[0.0], [4.0]])
    both = [
        coterie.simulate(many, method, deltas=(0.1,), threshold="proven", trials=4, seed=2, progress=False)
        for method in ("croc", "shortlist")
    ]
    assert both[0].mean() == both[1].mean()


ERROR_RATES = [([0, 0, 1, 1], 0.8, 1, 0.5), ([0, 0, 1, 1, 2], 1.0, 2, 0.3), ([0, 1, 1, 1, 2], 1.0, 1, 0.3)]


def wrong_runs(labels: list[int], gap: float, dim: int, delta: float, trials: int) -> int:
    centers = np.zeros((max(labels) + 1, dim))
    centers[:, 0] = gap * np.arange(len(centers))
    found = coterie.simulate(
        coterie.Instance(labels, centers), "shortlist", deltas=(delta,), threshold="proven", trials=trials, seed=4,
        max_pulls=20_000, progress=False,
    )  # fmt: skip
    return int(found.errors()[0])


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "gap", "dim", "delta"), ERROR_RATES)
def test_error_rate_within_delta(labels: list[int], gap: float, dim: int, delta: float) -> None:
    assert_rate_at_most(delta, wrong_runs(labels, gap, dim, delta, 100), 100)


@pytest.mark.guarantee
@pytest.mark.parametrize(("labels", "gap", "dim", "delta"), ERROR_RATES)
def test_many_runs_error_rate_within_delta(labels: list[int], gap: float, dim: int, delta: float) -> None:
    of = Guarantee("known", case="shortlist")
    assert_rate_at_most(delta, wrong_runs(labels, gap, dim, delta, 1000), 1000, of)
