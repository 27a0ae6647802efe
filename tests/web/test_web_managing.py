"""Failures, undo, archive, delete, lease time and the list page by page: over HTTP, by the client, in Chromium."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from page_steps import new_campaign, show_part, start_measuring
from waiting import PATIENCE, wait_until

from coterie.client import Client, ServerError

C = "/api/campaigns"
SHAPE: dict[str, Any] = {"method": "uniform", "delta": 1e-9}
PHONE = {"viewport": {"width": 375, "height": 700}}


def check_accessible(page: Any) -> None:
    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]


def keep(page: Any, name: str) -> None:
    """A picture for people who look, where COTERIE_SHOTS names a folder."""
    if folder := os.environ.get("COTERIE_SHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)


# Over HTTP.


def test_undo_archive_and_lease_time_over_http(api: Any) -> None:
    id = api.create(**SHAPE)
    first, second = api.ask(id, n=2)
    answer = api.post(f"{C}/{id}/undo", {"lease": first["lease"], "reason": "by mistake"})
    assert (answer.status, answer.json["ended"]) == (200, "undone")
    assert api.post(f"{C}/{id}/undo", {"lease": "nobody's"}).error["code"] == "unknown_lease"
    assert api.post(f"{C}/{id}/fail", {"lease": second["lease"]}).json["ended"] == "failed"
    failures = api.get(f"{C}/{id}").json["failures"]
    assert (failures["asked"], failures["failed"], failures["undone"]) == (2, 1, 1)
    changed = api.post(f"{C}/{id}/lease-time", {"lease_seconds": 90}).json
    assert changed == {"changed": True, "lease_seconds": 90.0, "before": 3600.0}
    for wrong in (0, -1, "x", None, 1e300):
        answer = api.post(f"{C}/{id}/lease-time", {"lease_seconds": wrong})
        assert answer.status == 422, (wrong, answer.content)
        assert answer.error["field"] == "lease_seconds"
    assert api.post(f"{C}/{id}/archive", {"archived": True}).json["archived"]
    assert (api.post(f"{C}/{id}/ask", {"worker": "w"}).status, api.tell(id).status) == (409, 409)
    assert api.post(f"{C}/{id}/ask", {"worker": "w"}).error["code"] == "archived"
    assert id not in listed(api)
    assert id in listed(api, "archived=true&")
    assert api.post(f"{C}/{id}/archive", {"archived": False}).json == {"archived": None}
    assert api.ask(id)
    kinds = re.findall(r'"kind": "(\w+)"', api.get(f"{C}/{id}/export?kind=json").content.decode())
    for kind in ("undone", "failed", "lease_time", "archived", "unarchived"):
        assert kind in kinds


def listed(api: Any, asked: str = "", limit: int = 1000) -> list[str]:
    """The ids of all pages."""
    found: list[str] = []
    after = ""
    while True:
        page = api.get(f"{C}?{asked}limit={limit}&after={after}").json
        found += [one["id"] for one in page["campaigns"]]
        if page["next"] is None:
            return found
        after = page["next"]


def test_delete_needs_the_name_and_ends_streams_and_tokens(start: Any) -> None:
    server = start()
    api = server.api
    id = api.create(name="salt & pepper", **SHAPE)
    for path in (f"{C}/{id}", f"{C}/{id}?name=salt", f"{C}/{id}?name="):
        answer = api.send("DELETE", path)
        assert (answer.status, answer.error["field"]) == (422, "name"), path
    reader = api.with_token("a-token-for-readers-0123456789")
    assert reader.send("DELETE", f"{C}/{id}?name=salt%20%26%20pepper").status == 403
    assert api.get(f"{C}/{id}").status == 200
    answer = api.send("DELETE", f"{C}/{id}?name=salt%20%26%20pepper")
    assert (answer.status, answer.json["deleted"]) == (200, id)
    for path in (f"{C}/{id}", f"/campaigns/{id}", f"{C}/{id}/events", f"{C}/{id}/export"):
        assert api.get(path).status == 404, path
    assert api.send("DELETE", f"{C}/{id}?name=salt%20%26%20pepper").status == 404


def test_the_list_has_pages(start: Any) -> None:
    api = start().api
    ids = [api.create(name=f"beans {k}", **SHAPE) for k in range(7)]
    assert listed(api, limit=3) == listed(api, "search=BEANS&", limit=2) == ids
    assert listed(api, "search=beans%203&") == ids[3:4]
    for wrong in ("limit=0", "limit=1001", "limit=x", "after=x", "archived=perhaps"):
        answer = api.get(f"{C}?{wrong}")
        assert (answer.status, answer.error["field"]) == (422, wrong.partition("=")[0]), wrong


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_workers_undo_their_own_and_manage_nothing(
    start: Any, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = {"sqlite": str(tmp_path / "s.db")}.get(kind)
    from coterie.campaign import Campaigns

    place = place or str(request.getfixturevalue("postgres").new_database())
    server = start("--rate", "0", store=place)
    id = server.api.create(**SHAPE)
    with Campaigns(place) as store:
        ann, bob = (server.api.with_token(store.new_token(name)) for name in ("ann", "bob"))
    wait_until(lambda: bob.get(f"{C}/{id}").status == ann.get(f"{C}/{id}").status == 200)
    (mine,) = ann.ask(id, "ann")
    answer = bob.post(f"{C}/{id}/undo", {"lease": mine["lease"]})
    assert (answer.status, answer.error["code"]) == (403, "not_your_lease")
    assert ann.post(f"{C}/{id}/undo", {"lease": mine["lease"]}).status == 200
    for path, body in (("archive", {"archived": True}), ("lease-time", {"lease_seconds": 5})):
        assert ann.post(f"{C}/{id}/{path}", body).status == 403
    assert ann.send("DELETE", f"{C}/{id}?name=x").status == 403
    assert server.api.send("DELETE", f"{C}/{id}?name=x").status == 422


def test_the_client_manages(api: Any) -> None:
    with Client(api.url, api.token) as client:
        one = client.create("managed by a client", 4, 2, method="uniform", noise=1.0)
        (ask,) = one.ask("ann")
        one.undo(ask["lease"], "by mistake")
        one.change_lease_time(50)
        one.archive()
        with pytest.raises(ServerError, match="archived") as caught:
            one.ask("ann")
        assert (caught.value.status, caught.value.code) == (409, "archived")
        assert one.id not in {row["id"] for row in client.campaigns()}
        assert [row["id"] for row in client.campaigns("BY A CLIENT", archived=True)] == [one.id]
        one.unarchive()
        status = one.status()
        assert (status["lease_seconds"], status["archived"], status["failures"]["undone"]) == (50.0, None, 1)
        with pytest.raises(ServerError, match="say its name"):
            one.delete("another")
        one.delete("managed by a client")
        assert client.campaigns("by a client", archived=True) == []


# The page.


def test_the_page_counts_failures_and_undoes_an_ask(opened: Any, api: Any) -> None:
    id = new_campaign(api, **SHAPE)
    (one,) = api.ask(id, "ann")
    api.post(f"{C}/{id}/fail", {"lease": one["lease"], "reason": "broke"})
    page = opened(f"/campaigns/{id}")
    assert page.locator("#failures").inner_text().startswith("Of 1 ask: 1 failed.")
    start_measuring(page, "bob")
    item = page.locator("#item").inner_text()
    page.locator("#undo").focus()
    page.keyboard.press("Enter")  # by keyboard
    page.locator("#start").wait_for()
    assert page.locator("#said").inner_text() == f"Undone: {item} was not measured."
    page.locator("#failures", has_text="1 failed and 1 undone").wait_for(state="attached")
    assert page.locator("#missed tbody tr").count() in (1, 2)
    assert api.get(f"{C}/{id}").json["open_leases"] == []
    show_part(page, "log")
    assert page.locator("#missed").is_visible()
    check_accessible(page)
    keep(page, "failures")


@pytest.mark.parametrize("how", [{}, PHONE | {"color_scheme": "dark"}])
def test_an_owner_manages_on_the_page(opened: Any, api: Any, how: dict[str, Any]) -> None:
    name = f"to be managed {len(how)}"
    id = new_campaign(api, name=name, **SHAPE)
    page = opened(f"/campaigns/{id}#part-settings", **how)
    page.get_by_label("Hours for one measurement").fill("soon")
    page.keyboard.press("Enter")
    page.locator("#manage-problem", has_text="how many hours").wait_for()
    page.get_by_label("Hours for one measurement").fill("0,5")
    page.keyboard.press("Enter")
    page.locator("#manage-said", has_text="Saved").wait_for()
    assert api.get(f"{C}/{id}").json["lease_seconds"] == 1800.0
    keep(page, f"manage-{len(how)}")
    check_accessible(page)
    page.get_by_role("button", name="Archive").click()
    page.locator("#archived").wait_for()
    assert not page.locator("#measure").is_visible()
    check_accessible(page)
    keep(page, f"archived-{len(how)}")
    page.get_by_role("button", name="Take it up again").click()
    page.locator("#measure:not([hidden])").wait_for(state="attached")
    page.locator("#deleting summary").click()
    page.get_by_label("Type the campaign’s name").fill("something else")
    page.get_by_role("button", name="Delete for good").click()
    page.locator("#manage-problem", has_text="type its name").wait_for()
    assert api.get(f"{C}/{id}").status == 200
    page.get_by_label("Type the campaign’s name").fill(name)
    check_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("button", name="Delete for good").click()
    page.wait_for_url(api.url + "/")
    assert api.get(f"{C}/{id}").status == 404


def test_readers_manage_nothing(opened: Any, api: Any) -> None:
    id = new_campaign(api, **SHAPE)
    page = opened(f"/campaigns/{id}", token="a-token-for-readers-0123456789")
    assert page.locator("#manage").count() == 0


def test_the_list_is_searched_and_turned_over(start: Any, opened: Any) -> None:
    served = start("--rate", "0").api
    ids = [served.create(name=f"{'peas' if k % 9 else 'beans'} {k}", **SHAPE) for k in range(23)]
    page = opened("/", served=served)
    assert page.locator(".campaigns li").count() == 20
    assert page.locator(".campaigns a").first.inner_text() == "peas 22"
    check_accessible(page)
    keep(page, "list")
    page.locator("#older").click()
    page.wait_for_url(re.compile("after="))
    page.locator(".campaigns a", has_text="peas 1").wait_for()
    assert page.locator(".campaigns li").count() == 3
    page.get_by_label("Find by name").fill("BEANS")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("search=BEANS"))
    assert page.locator(".campaigns li").count() == 3
    served.post(f"{C}/{ids[0]}/archive", {"archived": True})
    page.reload()
    assert page.locator(".campaigns li").count() == 2
    page.get_by_label("archived ones too").check()
    page.get_by_role("button", name="Find").click()
    page.wait_for_url(re.compile("archived=true"))
    assert page.locator(".campaigns li").count() == 3


def test_the_login_page_says_what_plain_http_means(browser: Any, api: Any) -> None:
    context = browser.new_context(base_url=api.url)
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.goto("/login")
    assert "every other server on this host" in page.locator("#plain-http").inner_text()
    check_accessible(page)
    context.close()
