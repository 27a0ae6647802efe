"""Groups up to a resolution over HTTP and on the page: what is asked, refused and shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from equal_design import EACH, METHOD

from coterie.campaign import Campaigns
from coterie.methods import Method, register, unregister
from coterie.web import create_app
from coterie.web.access import Access, hash_of

C = "/api/campaigns"
SHAPE = {"name": "x", "n_arms": 5, "dim": 2, "noise": {"family": "bounded", "lo": 0, "hi": 20}}
ASKED = {"alike": 1, "apart": 3}
MEANS = [0.0, 10.0, 0.3, 2.4, 10.2]


@pytest.fixture
def own() -> Iterator[Method]:
    yield register(METHOD)
    unregister(METHOD.name)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Campaigns]:
    with Campaigns(tmp_path / "store.db") as opened:
        yield opened


def requested(store: Campaigns, *requests: tuple[str, str, Any]) -> list[httpx.Response]:
    """The answers to (method, path, body), as somebody who may write."""

    async def run() -> list[httpx.Response]:
        transport = httpx.ASGITransport(create_app(store, Access({hash_of("secret"): "write"})))
        headers = {"Authorization": "Bearer secret", "Accept": "text/html"}
        async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client:
            return [await client.request(method, path, json=body) for method, path, body in requests]

    return asyncio.run(run())


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"resolution": {"alike": 3, "apart": 1}}, "resolution", "alike must be smaller than apart, got 3 and 1"),
    ({"resolution": {"alike": 1, "apart": 1}}, "resolution", "got 1 and 1"),
    ({"resolution": {"alike": -1, "apart": 1}}, "resolution", "alike must not be negative, got -1"),
    ({"resolution": {"alike": [1, 2, 3], "apart": 9}}, "resolution", "3 numbers, but the measurements have 2"),
    ({"resolution": {"alike": "fine", "apart": 1}}, "resolution", "alike must hold real numbers"),
    ({"resolution": {"alike": None, "apart": 1}}, "resolution", "alike must hold real numbers"),
    ({"resolution": {"alike": [[1]], "apart": 2}}, "resolution", "alike must be a number, or one for each"),
    ({"resolution": {"alike": 1}}, "resolution", "a resolution has alike, apart, norm and claim"),
    ({"resolution": {"alike": "2%", "apart": "5%"}}, "resolution", 'over HTTP {"family": "counts", "trials": …}'),
    ({"resolution": {"alike": 0.1, "apart": "5%"}}, "resolution", "both alike and apart in percent, or none"),
    ({"resolution": ASKED | {"norm": "max"}}, "resolution", "norm must be one of each, distance, got 'max'"),
    ({"resolution": ASKED | {"norm": []}}, "resolution", "norm must be one of each, distance, got []"),
    ({"resolution": ASKED | {"claim": 3}}, "resolution", "claim must be one of references, any-two, got 3"),
    ({"resolution": ASKED | {"eta": 3}}, "resolution", "a resolution has alike, apart, norm and claim"),
    ({"resolution": 3}, "resolution", "resolution must be (alike, apart)"),
    ({"resolution": True}, "resolution", "resolution must be (alike, apart)"),
    ({"resolution": ASKED, "n_clusters": 2}, "resolution", "not both: got n_clusters=2 and resolution="),
    ({"resolution": ASKED, "groups": "linkage"}, "groups", "leave it out with a resolution"),
    ({"n_clusters": 2, "groups": "ward"}, "groups", "groups must be one of equal, linkage, got 'ward'"),
    ({"n_clusters": 2, "groups": None}, "groups", "groups"),
    ({}, "n_clusters", "give the number of groups, or a resolution"),
    ({"n_clusters": "two"}, "n_clusters", "n_clusters must be an integer, got 'two'"),
    ({"n_clusters": 2.5}, "n_clusters", "n_clusters must be an integer, got 2.5"),
    ({"resolution": ASKED, "noise": None}, "noise", "cannot be proven under any noise"),
    ({"n_clusters": 2, "groups": "linkage", "noise": {"family": "symmetric"}}, "noise", "State what is known"),
    ({"resolution": ASKED, "noise": 1, "method": "boc"}, "resolution", 'method "boc" does not find groups up to'),
    ({"resolution": ASKED, "noise": {"family": "exactly", "noise": -1}}, "noise", "must be positive"),
    ({"resolution": ASKED, "noise": {"family": "exactly"}}, "noise", "known exactly is"),
]


def test_what_cannot_be_asked_is_refused_with_the_field(store: Campaigns) -> None:
    answers = requested(store, *(("POST", C, SHAPE | given) for given, _, _ in WRONG))
    for answer, (given, field, why) in zip(answers, WRONG, strict=True):
        assert answer.status_code == 422, (given, answer.text)
        error = answer.json()["error"]
        assert (error["code"], error["field"]) == ("bad_value", field), (given, error)
        assert why in error["message"], (given, error)
    assert store.list() == []


def test_rates_of_counts(store: Campaigns) -> None:
    """They are kept as counts; a family is known in any case."""
    body = {"name": "x", "n_arms": 4, "dim": 1, "noise": {"family": "Counts", "trials": 200}}
    asked = {"alike": "2%", "apart": "5%"}
    (made,) = requested(store, ("POST", C, body | {"resolution": asked}))
    assert made.status_code == 201, made.text
    assert made.json()["noise"] == {"family": "counts", "trials": 200}
    assert (made.json()["resolution"]["alike"], made.json()["resolution"]["apart"]) == (4.0, 10.0)
    wider = {"resolution": {"alike": "2%", "apart": "10%"}}
    (chosen,) = requested(store, ("POST", f"{C}/{made.json()['id']}/resolution", wider))
    assert chosen.status_code == 200, chosen.text
    assert chosen.json()["resolution"]["apart"] == 20.0
    (exact,) = requested(
        store, ("POST", C, SHAPE | {"name": "y", "n_clusters": 2, "noise": {"family": "Exactly", "noise": 1}})
    )
    assert exact.status_code == 201, exact.text
    assert exact.json()["noise"]["family"] == "exactly"


def test_a_campaign_keeps_shows_and_answers_its_question(store: Campaigns, own: Method, tmp_path: Path) -> None:
    names = ["ash", "bay", "elm", "fir", "oak"]
    body = SHAPE | {"dim": 1, "names": names, "resolution": ASKED, "method": own.name}
    (made,) = requested(store, ("POST", C, body))
    assert made.status_code == 201, made.text
    full = {"alike": 1.0, "apart": 3.0, "norm": "each", "claim": "references"}
    assert (made.json()["resolution"], made.json()["n_clusters"]) == (full, None)
    id = made.json()["id"]
    fresh = store.status(id)
    assert (fresh["groups"], fresh["borders"], fresh["forecast"]) == ([], [], None)
    for i in range(EACH * 5):
        arm = i % 5
        store.ask(id, "w")
        store.tell(id, [{"id": str(i), "arm": arm, "values": [MEANS[arm]], "worker": "w"}])
        if i == 4:
            assert store.status(id)["forecast"] == 15.0
    for _ in range(2):  # as it ended, and opened again from its record
        status, page, listed = (
            one
            for one in requested(
                store, ("GET", f"{C}/{id}", None), ("GET", f"/campaigns/{id}", None), ("GET", "/", None)
            )
        )
        seen = status.json()
        assert seen["resolution"] == full
        assert seen["question"]["kind"] == "resolution"
        assert [one["reference"]["name"] for one in seen["groups"]] == ["ash", "bay", "fir"]
        assert seen["borders"][0] == {"arm": 0, "name": "ash", "group_id": 1, "could_be": [3]}
        assert [one["name"] for one in seen["borders"]] == ["ash", "elm", "fir"]
        assert seen["verdict"].startswith(
            "Proven after 20 measurements: 3 groups; every item of a group is within 3 of"
        )
        assert "same mean" not in seen["assumed"]
        assert (seen["alarm"], seen["homogeneity"], seen["misfits"], seen["doubt"]) == (None, None, [], None)
        assert "groups up to a resolution of 1 and 3" in listed.text
        for part in ("groups up to a resolution of 1 and 3", "ash: group 1, or 3", "around fir"):
            assert part in page.text
        assert "None" not in page.text + listed.text
        store.close()
        store = Campaigns(tmp_path / "store.db")
    store.close()


def test_single_linkage_is_a_setting_and_groups_are_a_result(store: Campaigns, own: Method) -> None:
    body = SHAPE | {"n_clusters": 2, "groups": "linkage", "method": own.name}
    (made,) = requested(store, ("POST", C, body))
    assert made.json()["groups"] == "linkage"
    seen = store.status(made.json()["id"])
    assert (seen["groups"], seen["question"]["kind"]) == ([], "linkage")
    assert "2 groups by single linkage" in seen["assumed"]
    (plain,) = requested(store, ("POST", C, SHAPE | {"n_clusters": 2, "method": own.name}))
    assert not {"groups", "resolution"} & set(plain.json()), "as before, where nothing else is asked for"


def filled(page: Any) -> Any:
    """The form with a name, items, and the choice of a resolution."""
    page.get_by_label("Name", exact=True).fill(f"x {uuid4().hex[:8]}")
    page.get_by_label("Their names, one on each line").fill("a\nb\nc\nd")
    page.get_by_label("I know which differences matter").check()
    return page


def test_another_resolution_is_chosen_on_the_way(store: Campaigns) -> None:
    id = store.create("x", 5, dim=2, resolution=ASKED, noise=SHAPE["noise"])["id"]
    path = f"{C}/{id}/resolution"
    asked = {"resolution": {"alike": 2, "apart": 5}}
    first, again, shown = requested(store, ("POST", path, asked), ("POST", path, asked), ("GET", f"{C}/{id}", None))
    now = {"alike": 2.0, "apart": 5.0, "norm": "each", "claim": "references"}
    assert first.status_code == 200
    assert first.json() == {"changed": True, "resolution": now, "epoch": 0, "done": False, "forecast": None}
    assert again.json() == first.json() | {"changed": False}
    assert shown.json()["resolution"] == now
    assert [one["apart"] for one in shown.json()["resolutions"]] == [3.0, 5.0]
    (log,) = requested(store, ("GET", f"/campaigns/{id}/log", None))
    assert "groups up to a resolution of 2 and 5, after 0 measurements" in log.text


def test_a_resolution_that_cannot_be_chosen_is_refused_with_the_field(store: Campaigns) -> None:
    id = store.create("x", 5, dim=2, resolution=ASKED, noise=SHAPE["noise"])["id"]
    groups = store.create("y", 5, 2, 2)["id"]
    wrong = [
        (id, {"resolution": {"alike": 3, "apart": 1}}, 422, "resolution", "alike must be smaller than apart"),
        (id, {"resolution": {"alike": 1}}, 422, "resolution", "a resolution has alike, apart, norm and claim"),
        (id, {"resolution": None}, 422, "resolution", "resolution must be (alike, apart)"),
        (id, {"resolution": ASKED | {"claim": "any-two"}}, 422, "resolution", "the claim cannot be changed"),
        (id, {}, 422, "resolution", "resolution"),
        (id, {"resolution": ASKED, "alike": 1}, 422, "alike", "alike"),
        (groups, {"resolution": ASKED}, 422, "resolution", "no alike and apart to choose"),
        ("nobody", {"resolution": ASKED}, 404, "id", "no campaign"),
    ]
    answers = requested(store, *(("POST", f"{C}/{key}/resolution", body) for key, body, *_ in wrong))
    for (_, body, status, field, said), answer in zip(wrong, answers, strict=True):
        assert answer.status_code == status, (body, answer.text)
        error = answer.json()["error"]
        assert error["field"] == field, (body, error)
        assert said in error["message"], (body, error)


def test_the_form_asks_for_a_resolution(opened: Any, api: Any) -> None:
    page = filled(opened("/new"))
    assert not page.get_by_label("Groups").is_visible()
    page.get_by_label("Differences that do not matter").fill("0.1 15")
    page.get_by_label("Differences that matter").fill("0.4 60")
    page.get_by_label("Numbers in one measurement").fill("2")
    page.get_by_label("What is proven of a group").select_option("any-two")
    page.get_by_label("What do you know about the noise?").select_option("known")
    page.get_by_label("Standard deviation", exact=True).fill("1 20")
    page.get_by_role("button", name="Create campaign").click()
    page.wait_for_url("**/campaigns/*")
    seen = api.get(f"{C}/{page.url.rsplit('/', 1)[1]}").json
    assert seen["resolution"] == {"alike": [0.1, 15], "apart": [0.4, 60], "norm": "each", "claim": "any-two"}
    assert seen["n_clusters"] is None
    text = page.locator("#assumed").inner_text()
    assert "any two items of a group are within (0.4, 60), any two groups have items more than (0.1, 15) apart" in text


def test_the_form_takes_rates_of_counts(opened: Any, api: Any) -> None:
    page = filled(opened("/new"))
    page.get_by_label("Differences that matter").fill("5 %")
    page.get_by_label("What do you know about the noise?").select_option("counts")
    page.get_by_label("Trials behind each number").fill("200")
    page.get_by_role("button", name="Create campaign").click()
    page.wait_for_url("**/campaigns/*")
    seen = api.get(f"{C}/{page.url.rsplit('/', 1)[1]}").json
    assert (seen["resolution"]["alike"], seen["resolution"]["apart"]) == (0, 10)


def test_the_form_says_what_is_wrong_with_a_resolution_beside_its_field(opened: Any) -> None:
    page = filled(opened("/new"))
    create = page.locator("#create button.primary")
    create.click()
    page.locator("#apart-problem").filter(has_text="Say which differences matter.").wait_for()
    page.get_by_label("Differences that matter").fill("1")
    page.get_by_label("Differences that do not matter").fill("2")
    page.get_by_label("What do you know about the noise?").select_option("gaussian")
    create.click()
    page.locator("#apart-problem").filter(
        has_text="what does not matter must be smaller than what matters, got 2 and 1"
    ).wait_for()
    page.get_by_label("Differences that do not matter").fill("-2")
    create.click()
    page.locator("#alike-problem").filter(has_text="what does not matter must not be negative, got -2").wait_for()
    page.get_by_label("Differences that do not matter").fill("0.5")
    assert not page.locator("#noise-needed").is_visible()
    page.get_by_label("What do you know about the noise?").select_option("any")
    # What to state is said before anything is sent, in the words of the form's own choices.
    said = page.locator("#noise-needed").inner_text()
    offered = page.locator("#noise_kind option").all_inner_texts()
    for named in page.locator("#noise-needed b").all_inner_texts():
        assert named in said
        assert any(named in option for option in offered), named
    create.click()
    page.locator("#noise_kind-problem").filter(has_text="choose what you know about the noise").wait_for()
    page.get_by_label("What do you know about the noise?").select_option("gaussian")
    page.locator("#noise_kind-problem").wait_for(state="detached")  # mended
