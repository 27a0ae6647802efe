"""The page in a real Chromium: from creating a campaign to its certificate; two at once; bad values; keyboard only."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from page_steps import NAMES, TRUTH, measure, measure_once, new_campaign, show_part, start_measuring

import coterie
from coterie.campaign import Campaigns

PICTURE_AT = 21
PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def id_of(page: Any) -> str:
    return str(re.search(r"/campaigns/(\w+)", page.url).group(1))  # type: ignore[union-attr]


def test_create_measure_to_the_end_see_the_certificate(opened: Any, api: Any, tmp_path: Path) -> None:
    page = opened("/new")
    page.get_by_label("Name", exact=True).fill("Fruit by taste")
    page.get_by_label("Their names, one on each line").fill("\n".join(NAMES))
    page.get_by_label("Groups").fill("3")
    page.get_by_label("Numbers in one measurement").fill("2")
    page.get_by_label("What they are called").fill("sweet, sour")
    page.get_by_label("What do you know about the noise?").select_option("known")
    page.get_by_role("button", name="Create campaign").click()
    page.locator("#noise-problem").filter(has_text="Say how much single measurements").wait_for()
    page.get_by_label("Standard deviation", exact=True).fill("1")
    page.get_by_role("button", name="Create campaign").click()
    page.wait_for_url("**/campaigns/*")
    id = id_of(page)
    start_measuring(page, "Ada")
    k = 0
    while measure_once(page, k):
        k += 1
        if k == PICTURE_AT:
            take_picture(page)
        assert k < 300
    assert k > PICTURE_AT
    page.get_by_role("heading", name="Done").wait_for()
    page.get_by_text("Proven after").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Certificate").click()
    download.value.save_as(tmp_path / "certificate.json")
    with page.expect_download() as download:
        page.get_by_role("link", name="Its log").click()
    download.value.save_as(tmp_path / "log.csv")
    assert coterie.verify(tmp_path / "certificate.json", tmp_path / "log.csv").valid
    with page.expect_download() as download:
        page.get_by_role("link", name="Groups", exact=True).click()
    download.value.save_as(tmp_path / "groups.csv")
    assert download.value.suggested_filename == "Fruit-by-taste-groups.csv"
    content = (tmp_path / "groups.csv").read_text()
    assert content.startswith("\ufeff"), "spreadsheets read it as UTF-8"
    header, *rows = content.removeprefix("\ufeff").splitlines()
    assert header == "item,group,proven,measurements,mean sweet,mean sour,letters"
    assert [row.split(",")[:3] for row in rows] == [[name, str(1 + TRUTH[i]), "yes"] for i, name in enumerate(NAMES)]
    assert (
        "Assumed: exactly 3 groups; noise of standard deviation 1: results are Gaussian"
        in page.locator("#assumed").inner_text()
    )
    assert "sweet" in page.locator(".center").first.inner_text()
    assert coterie.same_partition(json.loads((tmp_path / "certificate.json").read_text())["labels"], TRUTH)
    status = api.get(f"/api/campaigns/{id}").json
    assert status["measurements"] == k + 1
    assert {worker["worker"]: worker["measurements"] for worker in status["workers"]} == {"Ada": k + 1}
    groups = [sorted(group.locator(".members .name").all_inner_texts()) for group in page.locator(".group").all()]
    assert sorted(groups) == [["apple", "fig"], ["kiwi", "plum"], ["pear", "quince"]]


def take_picture(page: Any) -> None:
    """The README's, when it is wanted."""
    if os.environ.get("COTERIE_PICTURES") != "1":
        return
    from PIL import Image

    PICTURES.mkdir(parents=True, exist_ok=True)
    page.get_by_text(f"after {PICTURE_AT} measurements").first.wait_for()
    page.wait_for_timeout(1500)
    page.set_viewport_size({"width": 1200, "height": 960})
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    shot.quantize(256).save(PICTURES / "page.png", optimize=True)  # half the size, and the eye sees no difference


@pytest.mark.slow
def test_two_browsers_at_once(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    pages = [opened(f"/campaigns/{id}") for _ in range(2)]
    for page, name in zip(pages, ("Ada", "Bea"), strict=True):
        start_measuring(page, name)
    items = [page.locator("#item").inner_text() for page in pages]
    assert items[0] != items[1]
    measure_once(pages[0], 0)
    # What one does, the other sees, without asking for it.
    show_part(pages[1], "log")
    pages[1].locator("table.log").get_by_text("told").first.wait_for()
    pages[1].locator("#leases").get_by_text("Ada").wait_for()
    show_part(pages[1], "now")
    for k in range(1, 300):
        if not measure_once(pages[k % 2], k):
            break
    for page in pages:
        page.get_by_role("heading", name="Done").wait_for()
        page.locator("#measure").wait_for(state="hidden")
    status = api.get(f"/api/campaigns/{id}").json
    assert status["done"]
    assert sum(worker["measurements"] for worker in status["workers"]) == status["measurements"]
    rows = api.get(f"/api/campaigns/{id}/measurements").json["measurements"]
    assert len({row["lease"] for row in rows}) == len(rows)


def test_two_phones_with_the_same_name(opened: Any, api: Any) -> None:
    """They show the same item; the second result is not taken for the first, and both go on."""
    id = api.create(n_arms=6, n_clusters=3, dim=2, names=NAMES)
    pages = [opened(f"/campaigns/{id}") for _ in range(2)]
    for page in pages:
        start_measuring(page, "Ada")
    first = pages[0].locator("#item").inner_text()
    assert pages[1].locator("#item").inner_text() == first
    for page, said in zip(pages, ("Saved 4, 2", "reported by somebody else already"), strict=True):
        for place, value in zip(page.locator("[name=value]").all(), ("4", "2"), strict=True):
            place.fill(value)
        page.get_by_role("button", name="Save result").click()
        page.locator("#said").filter(has_text=said).wait_for()
        assert page.locator("#item").inner_text() != first
    told = api.get(f"/api/campaigns/{id}/measurements").json["measurements"]
    assert [(row["name"], row["values"]) for row in told] == [(first, [4.0, 2.0])]


def test_bad_values_are_said_next_to_the_field_and_nothing_typed_is_lost(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}")
    page.get_by_role("button", name="Give me something to measure").click()
    page.get_by_text("Say who measures").wait_for()
    start_measuring(page, "Ada")
    first, second = page.locator("[name=value]").all()
    problem = page.locator("#value-problem")
    for typed, message in (("abc", "“abc” is not a number"), ("", "Type the number"), ("1.2.3", "not a number"),
                           ("NaN", "not a number"), ("1e999", "not a number"), ("0x10", "not a number")):  # fmt: skip
        first.fill("7")
        second.fill(typed)
        page.get_by_role("button", name="Save result").click()
        problem.filter(has_text=message).wait_for()
        assert second.get_attribute("aria-invalid") == "true"
        assert second.evaluate("field => field === document.activeElement")
        assert (first.input_value(), second.input_value()) == ("7", typed)
    second.fill("1e200")  # a number, but not one that the store takes: its own message
    page.get_by_role("button", name="Save result").click()
    problem.filter(has_text="standard deviations").wait_for()
    assert (first.input_value(), second.input_value()) == ("7", "1e200")
    assert api.get(f"/api/campaigns/{id}").json["measurements"] == 0
    second.fill("-2,5")
    page.get_by_role("button", name="Save result").click()
    page.locator("#said").filter(has_text="Saved 7, -2.5 for apple. Next: pear.").wait_for()
    (row,) = api.get(f"/api/campaigns/{id}/measurements").json["measurements"]
    assert row["values"] == [7.0, -2.5]


def test_a_server_that_is_away_loses_nothing_typed(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "Ada")
    for field in page.locator("[name=value]").all():
        field.fill("1.5")
    page.context.set_offline(True)
    page.get_by_role("button", name="Save result").click()
    page.locator("#value-problem").filter(has_text="cannot be reached").wait_for()
    assert [field.input_value() for field in page.locator("[name=value]").all()] == ["1.5", "1.5"]
    page.context.set_offline(False)
    page.get_by_role("button", name="Save result").click()
    page.locator("#said").filter(has_text="Saved 1.5, 1.5 for apple.").wait_for()
    # The answer to a result is lost, and the browser sends it again: it counts once.
    page.route("**/tell", lambda route: (route.fetch(), route.abort()))
    for field in page.locator("[name=value]").all():
        field.fill("2.5")
    page.get_by_role("button", name="Save result").click()
    page.locator("#value-problem").filter(has_text="cannot be reached").wait_for()
    page.unroute("**/tell")
    page.get_by_role("button", name="Save result").click()
    page.locator("#said").filter(has_text="Saved 2.5, 2.5 for pear.").wait_for()
    assert api.get(f"/api/campaigns/{id}").json["measurements"] == 2


def test_bad_settings_are_said_next_to_the_field(opened: Any) -> None:
    page = opened("/new")
    page.get_by_label("Name", exact=True).fill(f"x {uuid4().hex[:8]}")
    page.get_by_label("Their names, one on each line").fill("a\nb\na")
    page.get_by_label("Groups").fill("two")
    create = page.get_by_role("button", name="Create campaign")
    create.click()
    page.locator("#n_clusters + .hint + .problem, #n_clusters-problem").filter(has_text="whole number").wait_for()
    page.get_by_label("Groups").fill("2")
    create.click()
    page.locator("#names-problem").wait_for()  # one name twice: the server says so
    assert page.get_by_label("Their names, one on each line").input_value() == "a\nb\na"
    page.get_by_label("Their names, one on each line").fill("a\nb\nc")
    page.get_by_label("Error allowed").fill("2")
    create.click()
    page.locator("#delta-problem").wait_for()
    assert page.get_by_label("Error allowed").evaluate("field => field === document.activeElement")
    page.get_by_label("Error allowed").fill("0,1")
    page.get_by_label("I only count them").check()
    page.get_by_label("How many there are").fill("4")
    create.click()
    page.wait_for_url("**/campaigns/*")
    assert "4" in page.locator("#settings-part .figures").inner_text()


def test_what_is_wrong_with_settings_is_said_in_words_of_the_form(opened: Any) -> None:
    """No names of parameters: whoever fills in the form has not read the library's reference."""
    page = opened("/new")
    page.get_by_label("Name", exact=True).fill(f"x {uuid4().hex[:8]}")
    create = page.get_by_role("button", name="Create campaign")
    page.get_by_label("Groups").fill("2")

    def said(field: str, label: str, typed: str) -> str:
        page.get_by_label(label).fill(typed)
        create.click()
        text: str = page.locator(f"#{field}-problem").inner_text()
        assert not re.search("n_clusters|n_arms|arms|dim|delta|value_names|partition", text)
        return text

    assert said("names", "Their names, one on each line", "a") == "Name at least two items, one on each line."
    page.get_by_label("Their names, one on each line").fill("a, b, c, d")  # all in one line
    assert "4 items, so at most 3 groups" in said("n_clusters", "Groups", "4")
    assert said("n_clusters", "Groups", "1") == "There are at least 2 groups."
    page.get_by_label("Groups").fill("2")
    assert "at least one number" in said("dim", "Numbers in one measurement", "0")
    page.get_by_label("Numbers in one measurement").fill("1")
    assert "2 names (ph, turbidity)" in said("value_names", "What they are called", "ph, turbidity")
    page.get_by_label("What they are called").fill("")
    assert "between 0 and 1" in said("delta", "Error allowed", "5")
    page.get_by_label("Error allowed").fill("5 %")
    create.click()
    page.wait_for_url("**/campaigns/*")
    assert "Error probability allowed: 0.05" in page.locator("#assumed").inner_text()
    assert "4" in page.locator("#settings-part .figures").inner_text()


def tab_to(page: Any, selector: str) -> None:
    """Press Tab until the focus is there, and see that it shows."""
    for _ in range(60):
        if page.evaluate(f"document.activeElement.matches({selector!r})"):
            break
        page.keyboard.press("Tab")
    else:
        raise AssertionError(f"Tab does not lead to {selector}")
    width = page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
    assert width >= 2, f"the focus on {selector} cannot be seen"


def test_with_the_keyboard_alone(opened: Any, start: Any) -> None:
    api = start().api  # of its own: the list is empty
    page = opened(served=api)
    keys = page.keyboard
    tab_to(page, "a[href='/new']")
    keys.press("Enter")
    page.wait_for_url("**/new")
    tab_to(page, "#name")
    keys.type("by hand")
    tab_to(page, "#names")
    keys.type("apple\npear\nkiwi\nfig\nquince\nplum")
    tab_to(page, "#n_clusters")
    keys.type("3")
    tab_to(page, "#dim")
    keys.press("Control+a")
    keys.type("2")
    tab_to(page, "#noise_kind")
    keys.press("End")  # a known standard deviation
    tab_to(page, "#noise")
    keys.type("1")
    keys.press("Enter")
    page.wait_for_url("**/campaigns/*")
    id = id_of(page)
    tab_to(page, "#worker")
    keys.type("Ada")
    keys.press("Enter")
    page.locator("#result").wait_for()
    for k in range(3):
        name = page.locator("#item").inner_text()
        assert page.evaluate("document.activeElement.name") == "value"  # the focus is where one types
        first, second = measure(name, k)
        keys.type(f"{first:.6g}")
        keys.press("Tab")
        keys.type(f"{second:.6g}")
        keys.press("Enter")
        page.locator("#said").filter(has_text=f"for {name}.").wait_for()
    tab_to(page, "#give-up")
    keys.press("Enter")
    keys.type("it fell down")
    keys.press("Enter")
    page.locator("#said").filter(has_text="Skipped fig.").wait_for()
    events = json.loads(api.get(f"/api/campaigns/{id}/export?kind=json").content)["events"]
    assert [event["reason"] for event in events if event["kind"] == "failed"] == ["it fell down"]
    tab_to(page, "nav.parts a[data-to=log]")
    keys.press("Enter")
    tab_to(page, "#whole-log")
    keys.press("Enter")
    page.wait_for_url("**/log")
    assert page.locator("tr.event-failed").inner_text().count("it fell down") == 1


def test_labels_and_announcements(opened: Any, api: Any) -> None:
    page = opened(f"/campaigns/{new_campaign(api)}")
    start_measuring(page, "Ada")
    for path in (None, "/new"):
        if path:
            page.goto(path)
        nameless = page.evaluate(
            "[...document.querySelectorAll('input:not([type=hidden]), select, textarea, button')]"
            ".filter((field) => !(field.labels?.length || field.textContent?.trim())).map((field) => field.outerHTML)"
        )
        assert nameless == []
    page.go_back()
    assert page.locator("#said").get_attribute("aria-live") == "polite"
    assert page.locator("#value-problem").get_attribute("role") == "alert"


BEYOND_THE_EDGE = """[...document.querySelectorAll("body *")]
  .filter(e => e.getBoundingClientRect().right > innerWidth
    && (!e.closest(".table") || getComputedStyle(e).position === "absolute"))
  .map(e => e.outerHTML.slice(0, 200)).slice(0, 5)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_and_in_both_schemes(opened: Any, api: Any, scheme: str) -> None:
    names = [*NAMES[:5], "a very long name of an item " * 6 + "x"]
    more = {"name": f"{'Donaudampfschifffahrt' * 5} {scheme}", "lease_seconds": 48 * 3600}  # until a day later: dates
    id = new_campaign(api, names=names, **more)
    sent = [{"id": str(k), "arm": k % 6, "values": measure(NAMES[k % 6], k)} for k in range(8)]
    api.tell(id, *sent)
    page = opened(f"/campaigns/{id}", viewport={"width": 360, "height": 700}, color_scheme=scheme)
    start_measuring(page, "Ada")
    parts = [f"/campaigns/{id}#part-{part}" for part in ("evidence", "letters", "log", "settings")]
    for path in (
        None,
        "/",
        "/new",
        *parts,
        *(f"/campaigns/{id}/{page_of_it}" for page_of_it in ("log", "print", "import")),
    ):
        if path:
            page.goto(path)
        if path in parts:
            page.locator(f"#campaign[data-part={path.partition('#part-')[2]}]").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, (path, page.evaluate(BEYOND_THE_EDGE))
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", light)[0]) > 128) == (scheme == "light")


@pytest.mark.slow
def test_a_thousand_items_and_many_measurements(opened: Any, api: Any) -> None:
    id = api.create(name="large", n_arms=1000, n_clusters=4, dim=1, method="uniform")
    for begin in range(0, 8000, 4000):
        rows = [{"id": str(k), "arm": k % 1000, "values": float(k % 4) * 3} for k in range(begin, begin + 4000)]
        assert api.tell(id, *rows).status == 200
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "Ada")
    assert page.locator("table.log tr").count() < 20
    assert page.evaluate("document.querySelectorAll('*').length") < 4000
    more = page.locator("details").first
    more.locator("summary").click()
    page.get_by_label("Value", exact=True).fill("1")
    page.get_by_role("button", name="Save result").click()
    page.get_by_text("8\u202f001").first.wait_for()
    assert more.get_attribute("open") is not None  # an update leaves open what was open


def test_results_that_wait_are_shown(opened: Any, api: Any) -> None:
    id = new_campaign(api, n_arms=3, names=["a", "b", "c"], n_clusters=2, dim=1)
    asks = api.ask(id, "w", 12)
    arm = asks[0]["arm"]
    later = [ask for ask in asks if ask["arm"] == arm][1:]
    assert later, "an item is asked for twice"
    api.tell(id, *({"id": ask["lease"], "arm": arm, "values": 0.0, "lease": ask["lease"]} for ask in later))
    page = opened(f"/campaigns/{id}")
    said = "for an earlier measurement of the same item: a, asked of w."
    page.locator("#waiting").filter(has_text=said).wait_for()


def test_a_reader_sees_no_forms(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}", token="a-token-for-readers-0123456789")
    page.get_by_role("heading", name="So far", exact=True).wait_for()
    assert page.locator("#measure").count() == 0
    api.tell(id, {"id": "a", "arm": 0, "values": [1.0, 2.0]})
    page.locator("table.log").get_by_text("told").first.wait_for(state="attached")  # and yet it is live


@pytest.mark.slow
def test_a_large_campaign_opens_at_once_after_a_start(opened: Any, start: Any, tmp_path: Path) -> None:
    """Its measurements are read behind the page, which then shows them by itself."""
    path = tmp_path / "large.db"
    with Campaigns(path) as store:
        id = store.create("large", 30, 3, 1, delta=1e-9, method="croc", noise=1.0)["id"]
        rng = np.random.default_rng(0)
        rows = [{"id": str(i), "arm": i % 30, "values": [float(rng.normal())]} for i in range(6000)]
        store.tell(id, rows)
        assert store.overview(id)["in_memory"]
    with Campaigns(path) as store:
        overview = store.overview(id)
        assert (overview["in_memory"], overview["measurements"], overview["dim"]) == (False, 6000, 1)
    again = start(store=path)
    page = again.api.get(f"/campaigns/{id}", headers={"Accept": "text/html"})
    assert page.status == 200
    assert (b"data-reading" in page.content) == (b"measurements on record. Reading them" in page.content)
    shown = opened(f"/campaigns/{id}", served=again.api)
    shown.locator("#state").wait_for()
    assert "measurements on record" not in shown.inner_text("#bar")
    settled = again.api.get(f"/campaigns/{id}", headers={"Accept": "text/html"})
    assert b"data-reading" not in settled.content
