"""Certificates of runs whose resolution was chosen after looking: they hold, and what is changed in them is refused."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.certificate import read_log, write_log

MEANS = np.repeat([[0.0, 0.0], [4.0, 0.0], [8.0, 3.0]], 3, axis=0)
CHOICES = {70: ((0.2, 0.3), (2.0, 2.5)), 95: (0.6, 2.2)}
DISTANCES = {70: (0.2, 2.0), 95: (0.6, 2.4)}
NOISES: dict[str, tuple[Any, str, str]] = {
    "known": (1.0, "each", "references"),
    "any two": (1.0, "each", "any-two"),
    "distance": (1.0, "distance", "references"),
    "exactly": (coterie.Exactly(1.0), "distance", "references"),
    "gaussian": (coterie.Gaussian("scalar"), "each", "references"),
    "bounded": (coterie.Bounded(-9, 17), "each", "references"),
}


@cache
def _text(name: str) -> str:
    noise, norm, claim = NOISES[name]
    first = coterie.Resolution(0.5, 1.6, norm=norm, claim=claim)
    session = coterie.Session(9, dim=2, resolution=first, noise=noise, delta=0.1)
    choices, rng = dict(CHOICES if norm == "each" else DISTANCES), np.random.default_rng(0)
    while not session.done and session.t < 3000:
        for arm in session.ask(2):
            session.tell(arm, MEANS[arm] + rng.normal(size=2))
        if choices and session.t >= min(choices) and not session.done:
            session.choose_resolution(choices.pop(min(choices)))
    return json.dumps([session.certificate, session.events])


def fresh(name: str = "known") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    certificate, events = json.loads(_text(name))
    return certificate, events


@pytest.mark.parametrize("name", NOISES)
def test_a_run_whose_resolution_was_changed_is_verified(name: str, tmp_path: Path) -> None:
    certificate, events = fresh(name)
    verdict = coterie.verify(certificate, events)
    assert verdict.problems == []
    last = [one for one in events if one["event"] == "resolution"][-1]
    assert certificate["eta"] == last["eta"] == certificate["epochs"][-1]["eta"]
    assert certificate["epsilon"] == last["epsilon"]
    assert [one["eta"] for one in certificate["resolutions"]] == [
        one["eta"] for one in events if one["event"] == "resolution"
    ]
    write_log(tmp_path / "log.csv", events, 2)
    assert read_log(tmp_path / "log.csv") == events


def test_the_certificate_says_in_words_what_was_chosen_when() -> None:
    certificate, _ = fresh()
    frozen = [epoch["eta"] for epoch in certificate["epochs"]]
    assert frozen[0] == [1.6, 1.6]
    assert frozen[-1] == [2.2, 2.2]
    at = [one["chosen_at"] for one in certificate["resolutions"]]
    assert certificate["resolutions_in_words"] == (
        "the resolution (alike and apart) was chosen after looking at results: 0.5 and 1.6 (epoch 0); (0.2, 0.3) and "
        f"(2, 2.5) after {at[0]} results (epoch 1); 0.6 and 2.2 after {at[1]} results (epoch 2)"
    )
    assert "within 2.2 of its reference, any two references are more than 0.6 apart" in certificate["claim"]


def test_a_run_without_a_choice_says_nothing_about_it() -> None:
    session = coterie.Session(2, dim=1, resolution=(0.5, 2.0), noise=1.0)
    while not session.done:
        arm = session.ask()
        session.tell(arm, 9.0 * arm)
    certificate = session.certificate
    assert certificate is not None
    assert "resolutions" not in certificate
    assert "resolutions_in_words" not in certificate


def claimed(certificate: dict[str, Any], epsilon: float, eta: float) -> dict[str, Any]:
    """The same certificate with other bounds, and the sentence that goes with them."""
    said = certificate["claim"].replace("2.2", f"{eta:g}").replace("0.6", f"{epsilon:g}")
    return certificate | {"epsilon": [epsilon] * 2, "eta": [eta] * 2, "claim": said}


def test_another_resolution_than_that_of_the_freeze_is_refused() -> None:
    certificate, events = fresh()
    for epsilon, eta in ((0.5, 1.6), (0.6, 1.9), (0.9, 2.2), (0.2, 2.5)):
        verdict = coterie.verify(claimed(certificate, epsilon, eta), events)
        assert not verdict
        assert "is not that of epoch 2, on which the certificate rests" in str(verdict.problems)


def test_an_epoch_with_another_resolution_proves_only_that_one() -> None:
    """The tests of the last epoch do not prove the resolution of the first."""
    certificate, events = fresh()
    first = certificate["epochs"][0]
    wrong = claimed(certificate, 0.5, 1.6) | {"epoch": 0, "labels": first["labels"], "references": first["references"]}
    assert not coterie.verify(wrong, events)


def test_a_freeze_at_a_resolution_that_nobody_chose_is_refused() -> None:
    certificate, events = fresh()
    without = [event for event in events if event["event"] != "resolution"]
    verdict = coterie.verify(certificate, without)
    assert not verdict
    assert "as chosen last" in str(verdict.problems)
    for freeze in [event for event in events if event["event"] == "freeze"][-1:]:
        freeze["eta"] = [2.3, 2.3]
    assert "nobody has chosen that" in str(coterie.verify(certificate, events).problems)


def test_choices_in_certificate_and_log_must_agree() -> None:
    certificate, events = fresh()
    listed = certificate["resolutions"]
    wrong: list[dict[str, Any]] = [
        {"resolutions": listed[:1]},
        {"resolutions": [*listed, listed[0]]},
        {"resolutions": [listed[0] | {"chosen_at": 3}, listed[1]]},
        {"resolutions": [listed[0] | {"epoch": 0}, listed[1]]},
        {"resolutions": [listed[0] | {"eta": [2.0, 2.6]}, listed[1]]},
        {"resolutions": [listed[0] | {"epsilon": "?"}, listed[1]]},
        {"resolutions": [3]},
        {"resolutions": {}},
        {"resolutions": None},
        {"resolutions": None, "resolutions_in_words": None},
        {"resolutions_in_words": None},
        {"resolutions_in_words": certificate["resolutions_in_words"].replace("0.5", "0.4")},
    ]
    for change in wrong:
        verdict = coterie.verify(certificate | change, events)
        assert not verdict, change
        assert "resolution" in str(verdict.problems)
    at = next(i for i, event in enumerate(events) if event["event"] == "resolution")
    for change in ({"epoch": 0}, {"epoch": None}, {"eta": [2.0]}, {"eta": [0.1, 0.1]}, {"epsilon": "?"}):
        assert not coterie.verify(certificate, [*events[:at], events[at] | change, *events[at + 1 :]])


def test_other_questions_have_no_choices() -> None:
    certificate, events = fresh()
    groups = {name: value for name, value in certificate.items() if name not in ("epsilon", "eta", "claims")}
    verdict = coterie.verify(groups | {"question": "linkage", "n_clusters": 3, "height": 1.0}, events)
    assert not verdict
