"""What stands beside a proof: corrections, failures, remarks, words are those of the log, and alarms are warnings."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.certificate import read_log, write_log
from coterie.cli import app

Certificate = dict[str, Any]
Events = list[dict[str, Any]]


@cache
def _corrected() -> str:
    """A run of which two results were corrected, one of them twice, and some asks failed."""
    rng = np.random.default_rng(3)
    session = coterie.Session(6, 2, 1, delta=0.05, noise=1.0)
    while not session.done:
        arm = session.ask()
        if session.next_ticket % 6 == 0:
            session.forget(session.next_ticket - 1)
            continue
        session.tell(arm, [2.5 * (arm % 2) + rng.standard_normal()])
        if session.n_measurements in (3, 7, 9):
            row = 1 if session.n_measurements == 7 else 2
            session.correct(row, session.log[row][1] + 0.25, "read the wrong line", by="ann", at=f"{row}")
    assert len(session.corrections) == 3
    return json.dumps([session.certificate, session.events])


def corrected() -> tuple[Certificate, Events]:
    certificate, events = json.loads(_corrected())
    return certificate, events


def test_corrections_and_failures_are_in_the_log_and_in_its_csv_form(tmp_path: Path) -> None:
    certificate, events = corrected()
    verdict = coterie.verify(certificate, events)
    assert verdict, verdict.problems
    kinds = [one["event"] for one in events]
    assert kinds[0] == "log"
    assert kinds.count("correction") == len(certificate["corrections"]) == 3
    assert kinds.count("missed") == certificate["failures"]["failed"] > 0
    assert any(one.startswith("failed asks: item ") for one in verdict.warnings)
    assert any(one.startswith("2 results were corrected") for one in verdict.warnings)
    write_log(tmp_path / "log.csv", events, 1)
    assert read_log(tmp_path / "log.csv") == events
    (tmp_path / "certificate.json").write_text(json.dumps(certificate))
    said = CliRunner().invoke(app, ["verify", str(tmp_path / "certificate.json"), str(tmp_path / "log.csv")])
    assert said.exit_code == 0
    assert "warning: failed asks: item " in said.output
    assert "warning: 2 results were corrected" in said.output


def test_hidden_or_changed_corrections_are_refused() -> None:
    certificate, events = corrected()
    changes: list[Any] = [
        lambda c: c.update(corrections=[]),
        lambda c: c.pop("corrections"),
        lambda c: c["corrections"].pop(0),
        lambda c: c["corrections"][0].update(old=[0.0]),
        lambda c: c["corrections"][0].update(reason="none"),
        lambda c: c["corrections"][0].update(by="eve"),
        lambda c: c["corrections"].reverse(),
        lambda c: c.update(remarks=[{"kind": "noise", "seen": "all is well", "evidence": 0, "threshold": 0}]),
        lambda c: c.pop("remarks"),
        lambda c: c.pop("failures"),
        lambda c: c["failures"]["items"].pop(),
        lambda c: c.update(names=["a", "b", "c", "d", "e", "f"]),
        lambda c: c.pop("log_format"),
        lambda c: c.pop("assumes"),
    ]
    for change in changes:
        other = copy.deepcopy(certificate)
        change(other)
        assert not coterie.verify(other, events)
    first = next(i for i, one in enumerate(events) if one["event"] == "correction")
    assert not coterie.verify(certificate, events[:first] + events[first + 1 :])
    changed = copy.deepcopy(events)
    changed[first]["old"] = [9.0]
    assert not coterie.verify(certificate, changed)
    chained = copy.deepcopy(events)  # the second correction of a result replaces what the first one put there
    last = [i for i, one in enumerate(chained) if one["event"] == "correction"][-1]
    chained[last]["old"] = [9.0]
    *rest, its = certificate["corrections"]
    assert "was" in coterie.verify(certificate | {"corrections": [*rest, its | {"old": [9.0]}]}, chained).problems[0]


def test_a_log_of_release_0_2_is_checked_as_before_and_it_is_said() -> None:
    certificate, events = corrected()
    old = {key: value for key, value in certificate.items() if key not in ("log_format", "remarks")}
    log = [one for one in events if one["event"] not in ("log", "correction")]
    verdict = coterie.verify(old, log)
    assert verdict, verdict.problems
    assert any("no trace of corrections" in one for one in verdict.warnings)
    assert not coterie.verify(old, events)  # a log that says what it has needs a certificate that knows it


def test_a_correction_of_what_did_not_count_changes_nothing() -> None:
    """It may come after the certificate."""
    certificate, events = corrected()
    more = {"event": "correction", "result": None, "row": 99, "arm": 0, "old": [0.0], "new": [1.0], "reason": "late",
            "by": "", "at": "", "reopened": False}  # fmt: skip
    assert coterie.verify(certificate, [*events, more])


def test_the_words_about_revisions_are_those_of_the_revisions() -> None:
    rng = np.random.default_rng(4)
    session = coterie.Session(5, 2, 1, delta=0.01, noise=1.0)
    for stop in (6, 10**6):
        while not session.done and session.n_measurements < stop:
            arm = session.ask()
            session.tell(arm, [5.0 * (arm % 2) + rng.standard_normal()])
        if stop == 6:
            session.revise(retire=[4])
    certificate, events = json.loads(json.dumps([session.certificate, session.events]))
    assert coterie.verify(certificate, events)
    for said in ("everything is promised about all items", None):
        assert not coterie.verify(certificate | {"revisions_in_words": said}, events)
    certificate.pop("revisions_in_words")
    assert not coterie.verify(certificate, events)


def run(noise: Any, measure: Any, delta: float = 0.05) -> coterie.Session:
    session = coterie.Session(8, 2, 1, delta=delta, noise=noise)
    while not session.done and session.n_measurements < 2000:
        arm = session.ask()
        session.tell(arm, [measure(arm, int((np.array(session.log_arrays.arms) == arm).sum()))])
    assert session.done
    return session


def warned(session: coterie.Session) -> str:
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict, verdict.problems
    return " ".join(verdict.warnings)


def test_alarms_of_the_log_are_warnings() -> None:
    rng = np.random.default_rng(5)
    drifting = run(None, lambda arm, s: 4.0 * (arm % 2) + rng.standard_normal() + 0.3 * s, delta=1e-9)
    assert "drift" in warned(drifting)
    state: dict[int, float] = {}

    def bound(arm: int, s: int) -> float:
        state[arm] = 0.95 * state.get(arm, 0.0) + 0.3 * rng.standard_normal()
        return 0.7 * (arm % 2) + state[arm]

    depending = run(None, bound, delta=1e-9)
    assert "successive results of item" in warned(depending)
    assert "dependence" in [one.kind for one in depending.alarms]
    assert "depend on one another" in repr(depending)
    well = run(1.0, lambda arm, _: 3.0 * (arm % 2) + rng.standard_normal())
    assert warned(well) == ""
    assert well.certificate["remarks"] == []  # type: ignore[index]


@pytest.mark.parametrize("noise", [0.35, coterie.AtMost(0.35)])
def test_readings_that_vary_more_than_stated_are_warned_of(noise: Any) -> None:
    """Groups were proven wrong with the alarm of the session up, and a certificate that nothing was said about."""
    up = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        session = coterie.Session(8, 2, 1, noise=noise)
        while not session.done:
            arm = session.ask()
            session.tell(arm, [float(arm % 2) + rng.standard_normal()])
        verdict = coterie.verify(session.certificate, session.events)
        if any(one.kind == "noise" for one in session.alarms):
            up += 1
            assert any("than the stated noise allows" in one for one in verdict.warnings)
            assert "noise" in [one["kind"] for one in session.certificate["remarks"]]  # type: ignore[index]
    assert up >= 5


def test_failed_asks_stand_beside_the_verdict() -> None:
    rng = np.random.default_rng(7)
    session = coterie.Session(6, 2, 1, noise=1.0, names=list("abcdef"))
    while not session.done:
        arm = session.ask()
        if arm == 3 and rng.random() < 0.4:
            session.forget(session.next_ticket - 1)
        else:
            session.tell(arm, [1.5 * (arm % 2) + rng.standard_normal()])
    failed, asked = session.certificate["failures"]["failed"], session.pulls[3]  # type: ignore[index]
    wanted = f"failed asks: item d: {failed} of {failed + asked}"
    assert wanted in repr(session)
    assert wanted in session._repr_html_()
    assert session.certificate is not None
    assert f"item 3: {failed}" in session.certificate._repr_html_()
    assert f"failed asks: item 3: {failed} of {failed + asked}" in warned(session)


def test_a_label_out_of_range_is_named() -> None:
    known = coterie.datasets.synthetic("moderate")
    rng = np.random.default_rng(8)
    session = coterie.Session(known.n_arms, known.n_clusters, known.dim, delta=0.1, method="shortlist", noise=1.0)
    while not session.done:
        arm = session.ask()
        session.tell(arm, known.means[arm] + rng.standard_normal(known.dim))
    certificate = json.loads(json.dumps(session.certificate))
    assert certificate["by"] == "list"
    certificate["list"]["partitions"][-1][-1] = 99
    verdict = coterie.verify(certificate, session.events)
    assert not verdict
    assert verdict.problems == ["list.partitions must be whole numbers from 0 to 3, got 99.0"]
