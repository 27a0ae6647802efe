"""Corrections: the run with a corrected value is the run in which the right value was told, as far as facts allow."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known

import coterie

NOISES: dict[str, Any] = {
    "known": 1.0,
    "any": None,
    "gaussian": "gaussian",
    "counts": coterie.Counts(),
    "bounded": coterie.Bounded(-20, 20),
    "at-most": coterie.AtMost(1.0),
    "symmetric": coterie.Symmetric(),
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "groups": {"n_clusters": 2},
    "resolution": {"resolution": (0.5, 2.0)},
    "linkage": {"n_clusters": 2, "groups": "linkage"},
}


class World:
    """Six items in two groups; some results are told wrong, and `right` knows what they are."""

    def __init__(self, seed: int, noise: Any, gap: float = 3.0) -> None:
        self.rng, self.noise, self.gap = np.random.default_rng(seed), noise, gap
        self.right: dict[int, float] = {}

    def measured(self, arm: int) -> float:
        if isinstance(self.noise, coterie.Counts):
            return float(self.rng.random() < (0.1 if arm < 3 else 0.9))
        return float(np.clip(self.gap * (arm >= 3) + self.rng.normal(), -19, 19))

    def slip(self, value: float) -> float:
        return 1.0 - value if isinstance(self.noise, coterie.Counts) else (value + 15.0 if value < 4 else value - 15.0)

    def go_on(self, session: coterie.Session, results: int, slips: tuple[int, ...] = (), workers: int = 1) -> None:
        until = session.n_measurements + results
        while session.n_measurements < until and not session.done:
            for ticket in session.open(workers):
                row, value = session.n_measurements, self.measured(ticket.arm)
                if row in slips:
                    self.right[row] = value
                session.tell(ticket.arm, self.slip(value) if row in slips else value, ticket=ticket.number)

    def correct_all(self, session: coterie.Session) -> list[Any]:
        made = [session.correct(row, value, "typed wrong", "ann") for row, value in sorted(self.right.items())]
        self.right.clear()
        return made


def started(noise: str, question: str = "groups") -> coterie.Session:
    return coterie.Session(6, dim=1, noise=NOISES[noise], **QUESTIONS[question])


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


CASES = [(name, "groups") for name in NOISES] + [("known", "resolution"), ("known", "linkage"), ("gaussian", "resolution")]  # fmt: skip  # noqa: E501


@pytest.mark.parametrize(("noise", "question"), CASES)
@pytest.mark.parametrize("when", [25, 10**6])
def test_certificates_of_corrected_runs_hold(noise: str, question: str, when: int) -> None:
    """Two slips, the very first result among them; corrected on the way, or after the stop."""
    world, session = World(7, NOISES[noise]), started(noise, question)
    world.go_on(session, min(when, 3000), slips=(0, 11), workers=2)
    made = world.correct_all(session)
    assert len(made) > 0
    loaded = coterie.Session.from_dict(as_json(session.to_dict()))
    assert (loaded.t, loaded.done, loaded.corrections) == (session.t, session.done, session.corrections)
    twin = copy.deepcopy(world)
    world.go_on(session, 3000)
    twin.go_on(loaded, 3000)  # resuming equals never having stopped
    assert as_json(loaded.events) == as_json(session.events)
    assert session.done
    certificate, events = as_json(session.certificate), as_json(session.events)
    verdict = coterie.verify(certificate, events)
    assert verdict, verdict.problems
    assert len(verdict.warnings) == 1
    assert f"{len(made)} result" in verdict.warnings[0]
    assert [(one["old"], one["new"], one["reason"], one["by"]) for one in certificate["corrections"]] == [
        (list(one.old), list(one.new), "typed wrong", "ann") for one in made
    ]
    assert "corrected after being told" in session.verdict
    # What is manipulated is rejected.
    results = [event for event in events if event["event"] == "result"]
    number = certificate["corrections"][0]["result"]
    back = copy.deepcopy(events)
    [one for one in back if one["event"] == "result"][number - 1]["values"] = certificate["corrections"][0]["old"]
    assert not coterie.verify(certificate, back)
    for key, value in (("new", [1.25]), ("result", len(results) + 1), ("reason", " ")):
        changed = copy.deepcopy(certificate)
        changed["corrections"][0][key] = value
        assert not coterie.verify(changed, events), key


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    row=st.integers(0, 20),
    results=st.integers(6, 40),
    workers=st.integers(1, 3),
    method=st.sampled_from(["croc", "croc", "shortlist", "boc"]),
)
def test_a_corrected_run_keeps_the_facts_and_has_the_values_of_the_right_one(
    seed: int, row: int, results: int, workers: int, method: str
) -> None:
    """Asks, order and decisions stay; sums, and what is proven, are those of the same facts with the right value."""
    world = World(seed, 1.0, gap=2.0)
    session = coterie.Session(6, 2, 1, noise=1.0, method=method)
    world.go_on(session, results, slips=(row,), workers=workers)
    if row >= session.n_measurements:
        return
    before = as_json(session.to_dict())
    right = dict(world.right)
    (made,) = world.correct_all(session)
    after = as_json(session.to_dict())
    assert made.reopened == (before["outcome"] is not None and after["outcome"] is None)
    for key in ("asks", "pending", "next_ticket"):
        assert after[key] == before[key], key
    kept = [one for one in before["decisions"] if one[1]["event"] != "alarm"]
    assert [one for one in after["decisions"] if one[1]["event"] != "alarm"][: len(kept)] == kept
    assert [entry["values"] for entry in after["log"]] == [
        [right[row]] if i == row else entry["values"] for i, entry in enumerate(before["log"])
    ]
    counted = session.counted.tolist()
    assert len(set(counted)) == session.t
    sums = np.zeros(6)
    for place in counted:
        sums[after["log"][place]["arm"]] += after["log"][place]["values"][0]
    assert session.pulls.tolist() == np.bincount([after["log"][i]["arm"] for i in counted], minlength=6).tolist()
    if session.labels is not None:
        for group in range(2):
            mine = session.labels == group
            if session.pulls[mine].sum():
                assert known(session.centers)[group, 0] == pytest.approx(sums[mine].sum() / session.pulls[mine].sum())
    # The correction taken back and made again leads to the same place.
    there = as_json(session.to_dict())
    session.correct(row, before["log"][row]["values"], "it was right")
    session.correct(row, right[row], "no")
    again = as_json(session.to_dict())
    for one in (there, again):
        del one["corrections"]
    assert again == there
    assert len(session.corrections) == 3


@pytest.mark.parametrize("seed", range(12))
def test_a_tiny_correction_leaves_a_proof_where_it_was(seed: int) -> None:
    world, session = World(seed, 1.0), started("known")
    world.go_on(session, 3000)
    t, labels = session.t, known(session.labels).tolist()
    assert known(session.correct(5, session.log[5][1] + 1e-9, "the last digit")).reopened is False
    assert session.done
    assert session.t == t
    assert known(session.labels).tolist() == labels
    assert coterie.verify(session.certificate, session.events)


def test_the_present_value_changes_nothing_and_bad_input_neither() -> None:
    world, session = World(1, 1.0), started("known")
    world.go_on(session, 12)
    before = session.to_dict()
    assert session.correct(3, session.log[3][1], "the same") is None
    bad: list[tuple[type[Exception], str, tuple[Any, ...]]] = [
        (ValueError, "there is no result 12", (12, 1.0, "x")),
        (ValueError, "must be finite", (0, float("nan"), "x")),
        (ValueError, "shape", (0, [1.0, 2.0], "x")),
        (ValueError, "standard deviations", (0, 1e60, "x")),
        (ValueError, "reason must be", (0, 1.0, " ")),
        (ValueError, "by must be", (0, 1.0, "x", 7)),
    ]
    for error, message, arguments in bad:
        with pytest.raises(error, match=message):
            session.correct(*arguments)
    assert as_json(session.to_dict()) == as_json(before)


def test_an_alarm_that_rested_on_the_slip_is_gone() -> None:
    world, session = World(3, 1.0, gap=2.0), started("known")
    world.go_on(session, 14, slips=(4, 13))
    for row in (4, 13):
        if row in world.right:
            session.tell(session.log[row][0], world.slip(world.right[row]))
    world.go_on(session, 40)
    made = world.correct_all(session)
    assert made
    assert all(one["event"] != "alarm" for one in session.decisions) or session.alarm is not None


def test_one_far_value_is_named_instead_of_an_alarm() -> None:
    rng, session = np.random.default_rng(2), coterie.Session(8, 2, 1, noise=1.0)
    while not session.done:
        for ticket in session.open(1):
            slip = 14.0 * (session.n_measurements == 14)
            session.tell(ticket.arm, 3.0 * (ticket.arm >= 4) + rng.normal() + slip, ticket=ticket.number)
    before: object = session.alarm
    assert before is not None
    assert "Do not rely on it: 14.455 of 1 (result 14 of the log) lies 15 standard deviations" in repr(session)
    assert known(session.correct(14, session.log[14][1] - 14.0, "a digit too many")).row == 14
    now: object = session.alarm
    assert now is None
    assert "not rely" not in repr(session)


@pytest.mark.guarantee
@pytest.mark.parametrize("noise", ["known", "any"])
def test_error_rate_within_delta_of_runs_with_corrected_slips(noise: str) -> None:
    """δ = 0.1 in 40 runs, each with up to three slips corrected later: more than 13 wrong has probability < 1e-4."""
    wrong = 0
    for seed in range(40):
        world = World(1000 + seed, NOISES[noise], gap=1.2 if noise == "known" else 2.5)
        session = coterie.Session(6, 2, 1, delta=0.1, noise=NOISES[noise])
        slips = tuple(int(row) for row in world.rng.integers(0, 40, size=int(world.rng.integers(1, 4))))
        world.go_on(session, int(world.rng.integers(10, 80)), slips=slips)
        while True:
            world.correct_all(session)
            if session.done:
                break
            world.go_on(session, 4000, slips=tuple(row for row in slips if row >= session.n_measurements))
        wrong += not coterie.same_partition(session.labels, [0, 0, 0, 1, 1, 1])
    assert_rate_at_most(0.1, wrong, 40, Guarantee(noise, case="corrected slips"), 1e-4)


@pytest.mark.parametrize("reloaded", [False, True], ids=["live", "reloaded"])
@pytest.mark.parametrize("noise", NOISES)
def test_an_ask_of_a_round_that_was_given_up_is_asked_for_again_after_a_correction(noise: str, reloaded: bool) -> None:
    """The run is the one in which nothing was given up: to the same arms, with the same stop."""
    ends = []
    for change in (False, True):
        session, world = coterie.Session(6, 2, 1, 0.05, noise=NOISES[noise]), World(3, NOISES[noise], gap=6.0)
        while not session.done and session.n_measurements < 1500:
            (ticket,) = session.open()
            if change and ticket.round > 0:
                change = False
                session.forget(ticket.number)
                first = session.log[0][1]
                session.correct(0, world.slip(float(first[0])), "a slip")
                session.correct(0, first, "it was none")
                if reloaded:
                    session = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
            else:
                session.tell(ticket.arm, world.measured(ticket.arm), ticket.number)
        assert not change or noise == "known"  # which may be proven by pairs from the start, without a round
        assert session.done
        verdict = coterie.verify(session.certificate, session.events)
        assert verdict.valid, verdict.problems
        ends.append((session.t, session.pulls.tolist(), known(session.labels).tolist()))
    assert ends[0] == ends[1]


def test_a_correction_keeps_that_an_ask_was_undone() -> None:
    """Such an ask says nothing about how items fail."""
    session = coterie.Session(4, 2, 1)
    World(0, None).go_on(session, 5)
    (ticket,) = session.open()
    session.forget(ticket.number)
    session.mark_undone(ticket.number)
    session.correct(0, 1.0, "misread")
    assert session._conversation.undone == {ticket.number}


@pytest.mark.parametrize("noise", NOISES)
def test_the_first_result_is_corrected_after_a_revision(noise: str) -> None:
    """Bets of the present stage were written down with positions from that result, and count from there for good."""
    session, world = coterie.Session(6, 2, 1, 0.05, noise=NOISES[noise]), World(1, NOISES[noise], gap=6.0)
    world.go_on(session, 9)
    session.revise(delta=1e-6)
    for _ in range(4):
        world.go_on(session, 9)
        first = float(session.log[0][1][0])
        session.correct(0, 1.0 - first if noise == "counts" else first + 0.7, "misread")
        assert coterie.Session.from_dict(session.to_dict()).evidence == session.evidence
    world.go_on(session, 2000)
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict.valid, verdict.problems
