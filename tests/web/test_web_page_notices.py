"""What the page says: the rows of its log, after a restart of the server, about a value that was mistyped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_steps import CENTERS, NAMES, TRUTH, measure, measure_once, new_campaign, start_measuring
from waiting import wait_until

import coterie
from coterie.web.log_content import log_rows


def cells(page: Any) -> list[dict[str, float]]:
    """Where the cells of a row of the log about groups are."""
    found: list[dict[str, float]] = page.locator("tr.event-groups").first.evaluate(
        "row => [...row.cells].map((cell) => (({x, y, width}) => ({x, y, width}))(cell.getBoundingClientRect()))"
    )
    return found


def test_rows_of_the_log_are_rows(opened: Any, api: Any) -> None:
    """The row about groups looks like every other; on a phone a row shows all that it says."""
    id = new_campaign(api)
    api.tell(
        id, *({"id": str(k), "arm": k, "values": measure(NAMES[k], 0), "worker": "Ada at bench 1"} for k in range(6))
    )
    page = opened(f"/campaigns/{id}/log")
    found = cells(page)
    assert len({cell["y"] for cell in found}) == 1, "side by side"
    assert [cell["x"] for cell in found] == sorted(cell["x"] for cell in found)
    assert found[0]["width"] < 100, "the number's column is narrow"
    phone = opened(f"/campaigns/{id}/log", viewport={"width": 375, "height": 700})
    for row in phone.locator("table.log tbody tr").all():
        for cell in row.locator("td").all():
            box = cell.bounding_box()
            assert box is None or (box["x"] >= 0 and box["x"] + box["width"] <= 375), cell.inner_text()
    told = phone.locator("tr.event-told").first.inner_text()
    for shown in ("told", "plum", "; ".join(f"{value:.6g}" for value in measure("plum", 0)), "Ada at bench 1"):
        assert shown in told


@pytest.mark.parametrize(("token", "who"), [("serve", "Ann"), ("Ann", "Ann"), ("bench 2", "Ann (bench 2)")])
def test_the_log_names_who_was_invited(token: str, who: str) -> None:
    event = {"seq": 1, "at": "2026-01-01T00:00:00Z", "kind": "asked", "name": "a", "values": [], "worker": "Ann"}
    event["token"] = {"id": "0", "name": token}
    assert [row["worker"] for row in log_rows([event])] == [who]
    assert [row["worker"] for row in log_rows([event | {"worker": None}])] == ["" if token == "serve" else token]


@pytest.mark.slow
def test_after_a_restart_one_message_says_what_to_do(opened: Any, nursery: Any, tmp_path: Path) -> None:
    """The server is killed and started again: the page goes on. Logged out elsewhere: log in in another tab, go on."""
    store = tmp_path / "store.db"
    pid, port = nursery.start(store)
    api = nursery.api(port)
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}", served=api)
    start_measuring(page, "Ada")
    for field in page.locator("[name=value]").all():
        field.fill("1.5")
    nursery.kill(pid)
    said = page.locator("#connection")
    said.filter(has_text="The connection is lost").wait_for()
    pid, _ = nursery.start(store, port)
    try:
        said.wait_for(state="hidden")  # sessions survive a restart
        elsewhere = page.context.new_page()
        elsewhere.goto(page.url)
        elsewhere.get_by_role("button", name="Log out").click()
        elsewhere.wait_for_url("**/login")
        elsewhere.close()
        said.filter(has_text="You are logged out").wait_for()
        page.get_by_role("button", name="Save result").click()
        page.wait_for_function("() => !document.getElementById('save').disabled")
        assert page.get_by_text("logged out").count() == 1
        assert page.get_by_text("Reload").count() == 0
        assert not page.locator("#value-problem").is_visible()
        assert said.bounding_box()["y"] < page.locator("#measure").bounding_box()["y"]
        with page.context.expect_page() as other:
            said.get_by_role("link", name="Log in in another tab").click()
        login = other.value
        login.get_by_label("Token").fill(api.token)
        login.keyboard.press("Enter")
        login.wait_for_url(f"**/campaigns/{id}")
        login.close()
        said.wait_for(state="hidden")
        assert [field.input_value() for field in page.locator("[name=value]").all()] == ["1.5", "1.5"]
        page.get_by_role("button", name="Save result").click()
        page.locator("#said").filter(has_text="Saved 1.5, 1.5 for apple.").wait_for()
        assert api.get(f"/api/campaigns/{id}").json["measurements"] == 1
    finally:
        nursery.kill(pid)


def test_a_mistyped_value_is_noticed(opened: Any, api: Any) -> None:
    id = new_campaign(api, value_names=["sweet", "sour"])
    api.tell(id, *({"id": f"{k}", "arm": k % 6, "values": measure(NAMES[k % 6], k)} for k in range(12)))
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "Ada")
    name = page.locator("#item").inner_text()
    assert [label.inner_text().strip() for label in page.locator(".values label").all()] == ["sweet", "sour"]
    page.get_by_role("textbox", name="sweet").fill("1.5")
    page.get_by_role("button", name="Save result").click()
    page.locator("#value-problem").filter(has_text="Type the number measured (sour).").wait_for()
    page.get_by_role("textbox", name="sour").fill("150")
    page.get_by_role("button", name="Save result").click()
    asked = page.get_by_role("dialog", name="Is this value right?")
    asked.get_by_text("150 (sour) is").wait_for()
    asked.get_by_role("button", name="No, I will change it").click()
    assert api.get(f"/api/campaigns/{id}").json["measurements"] == 12
    assert page.get_by_role("textbox", name="sour").input_value() == "150", "nothing typed is lost"
    page.get_by_role("button", name="Save result").click()
    asked.get_by_role("button", name="Yes, save it").click()
    page.locator("#doubt").filter(has_text=f"{name}: 150 (sour) lies").wait_for()
    measure_once(page, 3)
    page.locator("#doubt").wait_for(state="hidden")


def results_needed() -> tuple[int, int]:
    """How many results `measure` gives until the groups are proven, and the item of the last one."""
    session, count = coterie.Session(6, 3, 2, noise=1.0), 0
    while not session.done:
        arm = session.ask()
        session.tell(arm, measure(NAMES[arm], count))
        count += 1
    return count, arm


def test_a_mistyped_value_that_ends_the_campaign_is_noticed(opened: Any, api: Any) -> None:
    """It has become part of the proof: then above all it must be seen, though there is nothing more to measure."""
    count, last = results_needed()
    id = new_campaign(api)
    for k in range(count - 1):
        (ask,) = api.ask(id, "Ada")
        told = api.tell(id, {"id": f"{k}", "arm": ask["arm"], "values": measure(ask["name"], k), "lease": ask["lease"]})
        assert told.json == {"accepted": 1, "duplicates": 0, "done": False}
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "Ada")
    assert page.locator("#item").inner_text() == NAMES[last]
    centers = np.array(CENTERS)
    outwards = centers[TRUTH[last]] - centers.mean(axis=0)
    slip = np.array(measure(NAMES[last], count - 1)) + 15.0 * outwards / np.linalg.norm(outwards)
    for field, value in zip(page.locator("[name=value]").all(), slip, strict=True):
        field.fill(f"{value:.6g}")
    page.get_by_role("button", name="Save result").click()
    asked = page.get_by_role("dialog", name="Is this value right?")
    asked.get_by_role("button", name="Yes, save it").click()
    page.get_by_role("heading", name="Done").wait_for()
    page.locator("#measure").wait_for(state="hidden")
    page.locator("#doubt").filter(has_text=f"{NAMES[last]}: ").filter(has_text="standard deviations from").wait_for()
    assert api.get(f"/api/campaigns/{id}").json["done"]


def test_a_form_that_has_ended_stays_hidden(opened: Any, api: Any) -> None:
    """What the page fetched a moment before the last result does not bring the form back."""
    count, _ = results_needed()
    id = new_campaign(api)
    for k in range(count - 1):
        (ask,) = api.ask(id, "Ada")
        api.tell(id, {"id": f"{k}", "arm": ask["arm"], "values": measure(ask["name"], k), "lease": ask["lease"]})
    page = opened(f"/campaigns/{id}")
    held: list[Any] = []

    def hold(route: Any) -> None:
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route("**/live", hold)
    with page.expect_request("**/live"):
        start_measuring(page, "Ada")
    wait_until(lambda: bool(page.evaluate("true")) and bool(held))  # a look at the page lets `hold` go on
    page.evaluate(
        """() => { window.hidden = []; document.addEventListener("coterie-changed",
        () => window.hidden.push(document.getElementById("measure").hidden)); }"""
    )
    assert not measure_once(page, count - 1)
    route, before = held[0]
    route.fulfill(response=before)
    page.get_by_role("heading", name="Done").wait_for()
    seen = page.evaluate("window.hidden")
    assert len(seen) >= 2
    assert all(seen)
