"""The noise of a campaign over HTTP: what is stated, shown and refused."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

C = "/api/campaigns"
SHAPE = {"name": "x", "n_arms": 4, "n_clusters": 2, "dim": 2}


@pytest.mark.parametrize(
    ("noise", "shown", "words"),
    [
        (None, {"family": "any"}, "any noise"),
        ({"family": "any"}, {"family": "any"}, "any noise"),
        ({"family": "gaussian"}, {"family": "gaussian", "shape": "full"}, "Gaussian noise of unknown covariance"),
        ({"family": "counts", "trials": 20}, {"family": "counts", "trials": 20}, "counts out of 20 trials"),
        ({"family": "bounded", "lo": 0, "hi": [1, 5]}, {"family": "bounded", "lo": [0, 0], "hi": [1, 5]}, "between"),
        ({"family": "at-most", "covariance": 2}, {"family": "at-most", "covariance": 2}, "at most 2"),
        ({"family": "symmetric"}, {"family": "symmetric"}, "symmetric"),
        ({"family": "poisson"}, {"family": "poisson"}, "Poisson counts"),
        ({"family": "exponential"}, {"family": "exponential"}, "exponential waiting times"),
        (0.5, 0.5, "noise of standard deviation 0.5"),
        ([0.5, 2], [0.5, 2], "noise of standard deviations 0.5, 2"),
        ([[1, 0.5], [0.5, 1]], [[1, 0.5], [0.5, 1]], "noise of covariance"),
    ],
)
def test_a_noise_is_kept_and_said(api: Any, noise: Any, shown: Any, words: str) -> None:
    made = api.post(C, SHAPE | {"noise": noise})
    assert made.status == 201, made.content
    assert made.json["noise"] == shown
    status = api.get(f"{C}/{made.json['id']}").json
    assert status["noise"] == shown
    assert words in status["noise_in_words"]
    assert f"; {status['noise_in_words']}: " in status["assumed"]
    assert api.post(C, SHAPE | {"noise": shown}).json["noise"] == shown  # what is shown can be sent again


def test_without_a_word_about_noise_it_is_any_noise(api: Any) -> None:
    assert api.post(C, SHAPE).json["noise"] == {"family": "any"}


@pytest.mark.parametrize(
    "noise",
    [
        "loud", True, -1, 0, [], [1], [[1, 0], [0, -1]], [[1, 2], [3]], {}, {"family": None}, {"family": "magic"},
        {"family": "counts", "trials": 0}, {"family": "counts", "trials": "all"}, {"family": "counts", "n": 3},
        {"family": "counts", "trials": 10**300}, {"family": "bounded"}, {"family": "bounded", "lo": 5, "hi": 1},
        {"family": "bounded", "lo": [0, 0, 0], "hi": 1}, {"family": "bounded", "lo": {}, "hi": 1},
        {"family": "at-most", "covariance": [[1, 2], [2, 1]]}, {"family": "gaussian", "shape": {}},
        {"shape": "full"}, [{"family": "any"}], "any thing",
    ],
)  # fmt: skip
def test_what_is_no_noise_is_refused_with_the_field(api: Any, noise: Any) -> None:
    answer = api.post(C, SHAPE | {"noise": noise})
    assert (answer.status, answer.error["code"], answer.error["field"]) == (422, "bad_value", "noise"), answer.content


def test_a_method_of_the_paper_needs_a_number(api: Any) -> None:
    answer = api.post(C, SHAPE | {"method": "boc"})
    assert (answer.status, answer.error["field"]) == (422, "noise")
    assert 'method "boc" needs to know the noise' in answer.error["message"]
    assert api.post(C, SHAPE | {"method": "boc", "noise": 1}).status == 201


@pytest.mark.parametrize(
    ("noise", "values"),
    [
        ({"family": "counts", "trials": 10}, [3, 11]),
        ({"family": "counts"}, [0, 0.5]),
        ({"family": "poisson"}, [3, -1]),
        ({"family": "poisson"}, [3, 0.5]),
        ({"family": "exponential"}, [1, 0]),
        ({"family": "bounded", "lo": 1, "hi": 5}, [0.5, 3]),
        (None, [1e200, 0]),
    ],
)
def test_a_result_that_contradicts_the_noise_changes_nothing(api: Any, noise: Any, values: list[float]) -> None:
    id = api.post(C, SHAPE | {"noise": noise}).json["id"]
    before = api.get(f"{C}/{id}").json["seq"]
    rows = [{"id": "a", "arm": 0, "values": [1, 1]}, {"id": "b", "arm": 1, "values": values}]
    answer = api.tell(id, *rows)
    assert (answer.status, answer.error["field"]) == (422, "measurements[1].values"), answer.content
    assert api.get(f"{C}/{id}").json["seq"] == before
    assert api.tell(id, rows[0]).json["accepted"] == 1


FILLED: dict[str, tuple[dict[str, str], Any]] = {
    "any": ({}, {"family": "any"}),
    "gaussian": ({}, {"family": "gaussian", "shape": "full"}),
    "counts": ({"Trials behind each number": "100"}, {"family": "counts", "trials": 100}),
    "bounded": (
        {"The smallest number possible": "0 1", "The largest number possible": "5"},
        {"family": "bounded", "lo": [0, 1], "hi": [5, 5]},
    ),
    "symmetric": ({}, {"family": "symmetric"}),
    "poisson": ({}, {"family": "poisson"}),
    "exponential": ({}, {"family": "exponential"}),
    "at-most": ({"The largest standard deviation that it can have": "0.5"}, {"family": "at-most", "covariance": 0.5}),
    "known": ({"Standard deviation": "0.5 2"}, [0.5, 2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILLED)
def test_the_form_states_every_noise(opened: Any, api: Any, kind: str) -> None:
    page = opened("/new")
    page.get_by_label("Name", exact=True).fill(f"x {uuid4().hex[:8]}")
    page.get_by_label("Their names, one on each line").fill("a\nb\nc")
    page.get_by_label("Groups").fill("2")
    page.get_by_label("Numbers in one measurement").fill("2")
    choice = page.get_by_label("What do you know about the noise?")
    assert choice.input_value() == "any"
    choice.select_option(kind)
    fields, stated = FILLED[kind]
    for label, text in fields.items():
        page.get_by_label(label, exact=True).fill(text)
    shown = {part.get_attribute("data-noise") for part in page.locator("[data-noise]:visible").all()}
    assert shown == {kind}
    page.get_by_role("button", name="Create campaign").click()
    page.wait_for_url("**/campaigns/*")
    id = page.url.rsplit("/", 1)[1]
    assert api.get(f"{C}/{id}").json["noise"] == stated
    assert api.get(f"{C}/{id}").json["noise_in_words"] in page.locator("#assumed").inner_text()


def test_the_form_says_what_is_wrong_beside_the_field(opened: Any) -> None:
    page = opened("/new")
    page.get_by_label("Name", exact=True).fill(f"x {uuid4().hex[:8]}")
    page.get_by_label("Their names, one on each line").fill("a\nb\nc")
    page.get_by_label("Groups").fill("2")
    choice, create = page.get_by_label("What do you know about the noise?"), page.locator("#create button.primary")
    choice.select_option("counts")
    page.get_by_label("Trials behind each number").fill("0")  # the server says so
    create.click()
    page.locator("#noise_trials-problem").filter(has_text="trials must be at least 1").wait_for()
    choice.select_option("bounded")
    create.click()
    page.locator("#noise_lo-problem").filter(has_text="smallest number possible").wait_for()
    page.get_by_label("The smallest number possible").fill("5")
    page.get_by_label("The largest number possible").fill("1")
    create.click()
    page.locator("#noise_lo-problem").filter(has_text="lo must be below hi").wait_for()
    choice.select_option("any")
    page.get_by_text("More settings").click()
    page.get_by_label("Method").select_option("boc")
    create.click()
    page.locator("#noise_kind-problem").filter(has_text="needs to know the noise").wait_for()
    assert choice.evaluate("field => field === document.activeElement")
    assert choice.get_attribute("aria-describedby") == "noise_kind-problem noise-about"
