"""The alarms of a session: what they see, what they leave alone, and that a saved session has the same ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from bent_measurements import converse, kinds
from scipy.stats import binom, kstest

import coterie
from coterie.session.data_alarms import drift_alarm
from coterie.session.record_arrays import RecordArrays, committed_pairs, round_pairs
from coterie.session.saved import from_memory, memory_of

FALSE_ALARM = 1e-6


def by_chance(rng: np.random.Generator, x: Any) -> bool:
    return bool(rng.random() < 0.2)


def most_alarms(runs: int, level: float = 0.01) -> int:
    return int(binom.isf(FALSE_ALARM, runs, level))


def test_sound_data_raise_no_alarm_error_rate_within_level() -> None:
    """40 runs, four workers or one, a fifth of the asks given up: each kind within 1 %, but for one in a million."""
    found: Counter[str] = Counter()
    for seed in range(40):
        found.update(kinds(converse(seed, workers=1 + 3 * (seed % 2), fails=by_chance, results=200, gap=1.5)))
    assert max(found.values(), default=0) <= most_alarms(40)


@pytest.mark.guarantee
@pytest.mark.parametrize("law", ["gaussian", "t3", "skewed"])
def test_sessions_error_rate_within_level(law: str) -> None:
    """400 runs of up to 300 results on each noise, three workers, failures by chance. Noise is stated as Gaussian."""
    draws = {
        "gaussian": lambda rng: rng.standard_normal(2),
        "t3": lambda rng: rng.standard_t(3, 2),
        "skewed": lambda rng: rng.lognormal(0.0, 1.0, 2),
    }
    found: Counter[str] = Counter()
    for seed in range(400):
        found.update(kinds(converse(seed, workers=3, fails=by_chance, gap=1.0, draw=draws[law])))
    if law != "gaussian":
        assert found.pop("noise") > 200
    assert max(found.values(), default=0) <= most_alarms(400)


def test_differences_of_committed_pairs_are_standard_gaussian() -> None:
    """Kolmogorov and Smirnov over 30 runs with several workers and failures; fails for one seed in a million."""
    found = []
    for seed in range(30):
        session = converse(seed, workers=1 + seed % 5, fails=by_chance, gap=3.0, results=200)
        record = RecordArrays(session)
        pairs = committed_pairs(record, np.arange(12) % 3)
        found.append((record.values[pairs[:, 0]] - record.values[pairs[:, 1]]).ravel() / np.sqrt(2.0))
    h = np.concatenate(found)
    assert h.size > 400
    assert kstest(h, "norm").pvalue > FALSE_ALARM


@pytest.mark.parametrize("workers", [1, 4])
def test_larger_noise_than_stated_is_seen(workers: int) -> None:
    session = converse(1, workers=workers, noise=0.5, results=400)
    (alarm,) = (one for one in session.alarms if one.kind == "noise")
    assert not alarm.harmless
    assert "more than the stated noise allows" in alarm.seen
    assert "noise=None" in alarm.advice
    assert str(alarm) == f"{alarm.seen} {alarm.advice}"
    assert alarm.evidence >= alarm.threshold > np.log(100.0)
    assert alarm.level == 0.01


def test_outliers_are_seen() -> None:
    def spoiled(rng: np.random.Generator) -> Any:
        return rng.standard_normal(2) * (10.0 if rng.random() < 0.05 else 1.0)

    seen = [converse(seed, draw=spoiled) for seed in range(8)]
    assert sum("noise" in kinds(session) for session in seen) >= 6
    assert any("by far more than the stated noise now and then" in str(one.alarms) for one in seen)


def test_smaller_noise_than_stated_is_a_remark() -> None:
    session = converse(2, noise=3.0, results=400, gap=6.0)
    (alarm,) = session.alarms
    assert alarm.kind == "noise"
    assert alarm.harmless
    assert "less than the stated noise allows" in alarm.seen
    assert "remark: The stated noise is contradicted" in repr(session)


def test_noise_is_contradicted_before_any_freeze() -> None:
    """One worker and no round so far, or a proof by pairs from the start: by the results of single items."""
    seen = [converse(seed, n_arms=4, n_clusters=2, noise=0.4, gap=0.1, results=30) for seed in range(10)]
    without = [session for session in seen if all(event["event"] in ("log", "result") for event in session.events)]
    said = [alarm.seen for session in without for alarm in session.alarms if alarm.kind == "noise"]
    assert len(said) >= 2
    assert all("results of one item differ from one another more than the stated noise allows" in one for one in said)


def test_paper_methods_have_alarms_too() -> None:
    assert "noise" in kinds(converse(4, n_arms=4, n_clusters=2, noise=0.25, results=300, gap=0.1, method="uniform"))


def test_drift_is_seen() -> None:
    up, down = converse(5, drift=0.01, gap=0.5), converse(5, drift=-0.01, gap=0.5)
    for session, way in ((up, "higher"), (down, "lower")):
        (alarm,) = (one for one in session.alarms if one.kind == "drift")
        assert f"sd {way} than results" in alarm.seen
        assert "state days, plates, or whatever changed between them, as blocks" in alarm.advice


def test_one_item_that_drifts_is_named() -> None:
    rng = np.random.default_rng(8)
    arms, values = np.tile(np.arange(3), 60), rng.standard_normal((180, 1))
    values[1::3, 0] += 0.05 * np.arange(60)
    alarm = drift_alarm(arms, values, 3, ["salt", "soda", "lime"])
    assert alarm is not None
    assert alarm.seen == "Item soda drifts: its later results are higher than its earlier ones."


def test_order_of_a_table_is_seen() -> None:
    rng = np.random.default_rng(7)
    arms = np.repeat(np.arange(6), 30)
    values = rng.lognormal(size=(180, 1))
    assert drift_alarm(arms, values, 6) is None
    order = np.argsort(values[:, 0])
    alarm = drift_alarm(arms[order], values[order], 6)
    assert alarm is not None
    assert "sorted" in alarm.advice


def test_failures_that_go_with_values_are_seen() -> None:
    def low(rng: np.random.Generator, x: Any) -> bool:
        return bool(rng.random() < (0.6 if x[0] < 0.5 else 0.02))

    seen = [converse(seed, fails=low, gap=1.0, results=600) for seed in range(6)]
    assert sum("failures" in kinds(session) for session in seen) >= 4
    alarm = next(one for session in seen for one in session.alarms if one.kind == "failures")
    assert alarm.seen.startswith("Failures go with values: measurements of items with low results in number 1")


def test_lateness_that_goes_with_values_is_seen() -> None:
    def slow_if_low(rng: np.random.Generator, away: Any) -> float:
        return float(rng.exponential() * (6.0 if away[0] < 0.0 else 1.0))

    shape: dict[str, Any] = {"workers": 4, "n_arms": 6, "n_clusters": 2, "gap": 0.4, "results": 800}
    session = converse(8, delay=slow_if_low, **shape)
    (alarm,) = (one for one in session.alarms if one.kind == "lateness")
    assert "overtaken by those of later asks are lower in number 1" in alarm.seen
    assert "lateness" not in kinds(converse(8, **shape))


def test_asks_given_up_after_the_stop_are_no_failures() -> None:
    session = converse(9, workers=6, gap=6.0)
    assert session.done
    for ticket, _ in session.pending:
        session.forget(ticket)
    assert not RecordArrays(session).failed.any()


# Saved and loaded.


@pytest.mark.parametrize("results", [120, 400])
def test_resuming_keeps_alarms(results: int) -> None:
    session = converse(10, workers=3, noise=0.6, fails=by_chance, results=results, gap=1.5)
    assert session.alarms
    saved = json.loads(json.dumps(session.to_dict()))
    assert coterie.Session.from_dict(saved).alarms == session.alarms
    memory = memory_of(session)
    assert memory is not None
    assert from_memory(session.settings, *memory).alarms == session.alarms


def test_replay_keeps_alarms() -> None:
    session = converse(11, noise=0.5, results=150, gap=1.0)
    n, log = len(session._conversation.order), session.log
    kinds_, arms, tickets, values, row, ask = [], [], [], np.zeros((n, 2)), 0, 0
    for i, kind in enumerate(session._conversation.order):
        asked = kind == 0 and ask < session.next_ticket
        kinds_.append(int(kind))
        arms.append(log[row][0] if kind == 1 else session._conversation.arms_asked[ask] if asked else -1)
        tickets.append(-1)
        if kind == 1:
            values[i] = log[row][1]
            row += 1
        ask += kind == 0
    again = coterie.Session(12, 3, 2, noise=0.5)
    again.replay(kinds_, arms, tickets, values)
    assert again.alarms == session.alarms != ()


def test_alarms_are_computed_once_and_then_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def count(record: RecordArrays, *_: object) -> tuple[()]:
        calls.append(record.counted.size)
        return ()

    monkeypatch.setattr("coterie.session.data_alarms.alarms_by", count)
    session = coterie.Session(3, 2, 1, noise=1.0)
    for step in range(3000):
        session.tell(step % 3, [0.001 * (step % 7)])
        if session.done:
            break
        assert session.alarms == session.alarms == ()
    told = len(session.log)
    assert len(calls) <= min(told, 512) + 256 * 4


# Pairs of results.


def test_pairs_asked_together_were_both_out() -> None:
    session = coterie.Session(3, 2, 1, noise=1.0)
    conversation = session._conversation

    def record(asked: list[int], order: list[int], told: list[int], given_up: list[int]) -> RecordArrays:
        """`order`: 0 ask, 1 tell, 2 give up; `told` and `given_up` are tickets."""
        conversation.arms_asked, conversation.rounds_asked = asked, [0] * len(asked)
        conversation.order, conversation.given_up = bytearray(order), given_up
        log = session._conversation.log
        log.arms, log.tickets = [asked[ticket] for ticket in told], list(told)
        log.values = [np.array([float(ticket)]) for ticket in told]
        return RecordArrays(session)

    # Asked one after the other: the second ask knew the first result.
    assert record([0, 0], [0, 1, 0, 1], [0, 1], []).pairs_asked_together() == []
    # Both out; another item between them does not matter.
    assert record([0, 1, 0], [0, 0, 0, 1, 1, 1], [2, 1, 0], []).pairs_asked_together() == [(2, 2, 0)]
    # One given up: no pair. Still open: it holds up what was asked for after it.
    assert record([0, 0], [0, 0, 1, 2], [0], [1]).pairs_asked_together() == []
    open_one = record([0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 1], [0, 2, 3], [])
    assert open_one.pairs_asked_together() == [(1, -1, -1), (3, 1, 2)]
    assert committed_pairs(open_one, None).tolist() == []
    # Not for ever: after 20 more asks, and 4 for each that was open then, it is left out.
    many = [0, 0, 1, 1] + [1] * 30
    late = record(many, [0] * 4 + [1] * 3 + [0] * 30, [0, 2, 3], [])
    assert committed_pairs(late, None).tolist()[:1] == [[1, 2]]


def test_pairing_of_a_round_keeps_to_arms_and_groups() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1])
    pulls = {0: 3, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
    found = round_pairs(7, pulls, labels)
    slots = [slot for pair in found for slot in pair]
    assert len(slots) == len(set(slots))
    assert all(i < pulls[arm] for arm, i in slots)
    assert all(labels[a] == labels[b] for (a, _), (b, _) in found)
    assert sum(a == b for (a, _), (b, _) in found) == 2
    assert len(found) == 4
    assert found == round_pairs(7, pulls, labels)
    assert all(a == b for (a, _), (b, _) in round_pairs(7, pulls, None))
    partners = {tuple(sorted(b for pair in round_pairs(n, pulls, labels)[3:] for b, _ in pair)) for n in range(40)}
    assert len(partners) == 3  # which of the three is left over changes from round to round


# Where they are shown.


def test_cluster_warns_and_certificates_list_them() -> None:
    rng = np.random.default_rng(12)

    def measure(arm: int) -> Any:
        return [4.0 * (arm % 2) + 3.0 * rng.standard_normal()]

    with pytest.warns(UserWarning, match="alarm|refuted|mixed"):
        result = coterie.cluster(measure, 10, 2, noise=1.0, progress=False, on_alarm="continue", delta=0.01)
    assert "noise" in kinds(result.session)
    certificate = result.session.certificate
    assert certificate is not None
    (remark,) = (one for one in certificate["remarks"] if one["kind"] == "noise")
    assert "differ from one another" in remark["seen"]
    assert any(remark["seen"] in one for one in coterie.verify(certificate, result.session.events).warnings)
    json.dumps(certificate, allow_nan=False)


@pytest.mark.parametrize("noise", [None, "gaussian", coterie.Symmetric(), coterie.Bounded(0, 9)])
def test_results_that_do_not_vary_are_named(noise: Any) -> None:
    session = coterie.Session(5, 2, 2, noise=noise)
    for _ in range(40):
        session.tell(session.ask(), [3.0, 4.5])
    (one,) = session.alarms
    assert (one.kind, one.harmless) == ("still", False)
    assert str(one).startswith("All 40 results are the same, 3, 4.5: nothing tells items apart. Check what is recorded")
    assert not session.done


def test_a_number_that_does_not_vary_does_no_harm_and_is_named() -> None:
    rng, session = np.random.default_rng(0), coterie.Session(6, 2, 2, noise=None, delta=0.1)
    while not session.done:
        arm = session.ask()
        session.tell(arm, [4.0 * (arm % 2) + rng.normal(), 7.0])
    (one,) = (alarm for alarm in session.alarms if alarm.kind == "still")
    assert one.harmless
    assert one.seen == "Of every result, number 2 (7) is the same."
    assert session.labels is not None
    assert session.labels.tolist() == [0, 1] * 3


@pytest.mark.parametrize(
    ("noise", "harmless"),
    [
        (None, True), ("gaussian", True), (coterie.Bounded(-99, 99), True), (coterie.Symmetric(), True),
        (coterie.Gaussian("diagonal"), False), (coterie.Gaussian("scalar"), False), (coterie.AtMost(9.0), False),
        ([2.0, 4.0, 1.0], False), ([[4.0, 8.0, 0.0], [8.0, 17.0, 0.0], [0.0, 0.0, 1.0]], True),
    ],
)  # fmt: skip
def test_a_number_that_is_a_copy_of_another_is_named(noise: Any, harmless: bool) -> None:
    rng, session = np.random.default_rng(0), coterie.Session(6, 2, 3, noise=noise)
    for _ in range(12):
        x = 4.0 * (len(session.events) % 2) + rng.normal()
        session.tell(int(rng.integers(6)), [x, 1.8 * x + 32.0, rng.normal()])
    (one,) = (alarm for alarm in session.alarms if alarm.kind == "copy")
    assert one.seen == "Of every result, number 2 follows from number 1 (equal, or in other units)."
    assert one.harmless is harmless
    assert ("noise=None" in one.advice) is not harmless


def test_numbers_that_agree_by_chance_are_no_copies() -> None:
    """Two rare successes in 400 results, in the same ones: no copy; twenty are."""
    for successes, seen in ((2, []), (19, []), (20, ["copy"])):
        session = coterie.Session(4, 2, 2, noise=coterie.Counts())
        for k in range(400):
            session.tell(k % 4, [int(k < successes)] * 2)
        assert [one.kind for one in session.alarms if one.kind == "copy"] == seen


def test_gaussian_noise_that_is_none_is_named() -> None:
    session = coterie.Session(6, 2, 1, noise="gaussian")
    for _ in range(60):
        arm = session.ask()
        session.tell(arm, float(arm % 2))
    (one,) = session.alarms
    assert "that is no Gaussian noise" in one.seen
    assert "noise=None" in one.advice
    assert not session.done


def test_an_ask_that_failed_while_an_earlier_one_is_open_is_no_alarm() -> None:
    session = coterie.Session(4, 2, 1, noise=1.0)
    session.ask(2)
    session.forget(session.pending[1][0])  # no ask before the open one is settled yet
    assert session.alarms == ()
