"""A forgotten ask over HTTP, through the client, and on the page: for whom everybody waits, and how an ask is freed."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from page_steps import NAMES, measure, new_campaign, show_part, start_measuring

from coterie.client import Client


def at_a_standstill(api: Any) -> tuple[str, dict[str, Any]]:
    """A campaign in which Ann has taken an item and left, and Bob has measured all that can be used without it."""
    id = new_campaign(api, noise=1.0, delta=1e-12, pass_on=0)
    for k in range(10):
        (ask,) = api.ask(id, "Bob")
        api.tell(id, {"id": f"b{k}", "arm": ask["arm"], "values": measure(ask["name"], k), "lease": ask["lease"]})
    (forgotten,) = api.ask(id, "Ann")
    for k in range(10, 200):
        asks = api.ask(id, "Bob")
        if not asks:
            return id, forgotten
        (ask,) = asks
        api.tell(id, {"id": f"b{k}", "arm": ask["arm"], "values": measure(ask["name"], k), "lease": ask["lease"]})
    raise AssertionError("200 results were told at a standstill")


def test_answers_say_for_whom_they_wait(api: Any) -> None:
    id, forgotten = at_a_standstill(api)
    answer = api.post(f"/api/campaigns/{id}/ask", {"worker": "Bob", "n": 3}).json
    assert (answer["done"], answer["asks"]) == (False, [])
    (one,) = answer["waiting_for"]
    assert (one["name"], one["worker"], one["until"]) == (forgotten["name"], "Ann", forgotten["expires"])
    status = api.get(f"/api/campaigns/{id}").json
    assert status["waiting_for"] == answer["waiting_for"]
    assert {one["worker"] for one in status["holding"]} <= {"Ann"}
    api.post(f"/api/campaigns/{id}/fail", {"lease": one["lease"], "reason": "no answer"})
    assert api.ask(id, "Bob")
    wrong = api.post("/api/campaigns", {"name": "x", "n_arms": 3, "n_clusters": 2, "dim": 1, "pass_on": "soon"})
    assert (wrong.status, wrong.error["field"]) == (422, "pass_on")


def test_the_client_says_for_whom_it_waits(
    api: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, forgotten = at_a_standstill(api)
    with Client(api.url, api.token) as client:
        campaign = client.campaign(id)
        asks = campaign.ask("Bob")
        assert list(asks) == []
        assert not asks.done
        assert [(one["name"], one["worker"]) for one in asks.waiting_for] == [(forgotten["name"], "Ann")]
        slept: list[float] = []

        def sleep(seconds: float) -> None:  # the second time, an owner frees the ask
            slept.append(seconds)
            if len(slept) == 2:
                campaign.fail(forgotten["lease"], "no answer")

        monkeypatch.setattr("coterie.client.campaign.time.sleep", sleep)
        looks = dict.fromkeys(NAMES, 100)

        def look(name: str) -> list[float]:
            looks[name] += 1
            return measure(name, looks[name])

        with caplog.at_level(logging.INFO, logger="coterie.client"):
            assert campaign.run(look, "Bob")["done"]
    assert len(slept) == 2
    said = [record.getMessage() for record in caplog.records if record.name == "coterie.client"]
    assert said == [f"waiting for {forgotten['name']}, asked of Ann, until {forgotten['expires']}"]


def test_the_page_says_for_whom_everybody_waits_and_owners_free_it(opened: Any, api: Any) -> None:
    """Nothing is given to measure in vain; before this 2001 results were told at a standstill."""
    id, forgotten = at_a_standstill(api)
    page = opened(f"/campaigns/{id}")
    notice = page.locator("#waiting-for")
    said = notice.inner_text()
    assert f"Waiting for {forgotten['name']}, asked of Ann, until " in said
    assert "UTC" not in said, "the reader's own time"
    counts = api.get(f"/api/campaigns/{id}").json
    assert counts["waiting"] == counts["measurements"] - counts["t"] > 0, "the bar has both numbers"
    assert f"and {counts['waiting']} result{'s wait' if counts['waiting'] > 1 else ' waits'} for it to count" in said
    page.get_by_label("Your name or bench").fill("Bob")
    page.get_by_role("button", name="Give me something to measure").click()
    problem = page.locator("#start-problem")
    problem.filter(has_text=f"waiting for {forgotten['name']}, asked of Ann, until ").wait_for()
    assert not page.locator("#result").is_visible()
    show_part(page, "log")
    assert page.locator("#leases").get_by_role("button", name=f"Free {forgotten['name']}, asked of Ann").count() == 1
    show_part(page, "now")
    notice.get_by_role("button", name=f"Free {forgotten['name']}").click()
    notice.wait_for(state="detached")
    problem.wait_for(state="hidden")
    page.locator("#said").filter(has_text="There is something to measure again.").wait_for()
    page.get_by_role("button", name="Give me something to measure").click()
    page.locator("#result").wait_for()
    failures = api.get(f"/api/campaigns/{id}").json["failures"]
    assert [(one["worker"], one["failed"]) for one in failures["workers"]] == [("Ann", 1)]


def test_readers_see_for_whom_it_waits_and_cannot_free(opened: Any, api: Any, server: Any) -> None:
    id, forgotten = at_a_standstill(api)
    page = opened(f"/campaigns/{id}", token="a-token-for-readers-0123456789")
    assert f"Waiting for {forgotten['name']}, asked of Ann" in page.locator("#waiting-for").inner_text()
    assert page.locator("[data-free]").count() == 0


def open_leases(api: Any, id: str) -> list[dict[str, Any]]:
    return list(api.get(f"/api/campaigns/{id}").json["open_leases"])


def test_somebody_else_gives_the_ask_back(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "Ada")
    assert [one["worker"] for one in open_leases(api, id)] == ["Ada"]
    page.get_by_role("button", name="Somebody else").click()
    page.locator("#said").filter(has_text="apple was given back: it is not measured yet.").wait_for()
    assert open_leases(api, id) == []
    start_measuring(page, "Bea")
    assert [(one["name"], one["worker"]) for one in open_leases(api, id)] == [("apple", "Bea")]


def test_logging_out_gives_the_ask_back(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "Ada")
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Token").wait_for()
    assert open_leases(api, id) == []
    assert api.get(f"/api/campaigns/{id}").json["failures"]["undone"] == 1


def test_after_a_closed_tab_the_page_says_what_is_still_asked(opened: Any, api: Any) -> None:
    """Others see it under way; whoever opens the page again is told, goes on or gives it back."""
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "Ada")
    context, address = page.context, page.url
    page.close()
    again = context.new_page()
    again.goto(address)
    still = again.locator("#still-out")
    still.filter(has_text="apple is still asked of Ada, until ").wait_for()
    start_measuring(again, "Ada")
    assert again.locator("#item").inner_text() == "apple", "it goes on with it"
    assert not still.is_visible()
    again.locator("[name=value]").first.fill("1.25")
    again.reload()
    again.locator("#result").wait_for()  # the same tab goes on where it was, with what was typed
    again.wait_for_function("() => document.querySelector('[name=value]').value === '1.25'")
    assert again.locator("#item").inner_text() == "apple"
    third = context.new_page()
    third.goto(address)
    still = third.locator("#still-out")
    still.filter(has_text="apple is still asked of Ada").wait_for()
    again.close()
    again = third
    again.get_by_role("button", name="Give it back").click()
    again.locator("#said").filter(has_text="apple was given back").wait_for()
    assert open_leases(api, id) == []
    again.reload()
    again.locator("#worker").wait_for()
    assert not still.is_visible()
