"""The page as a whole: what is above the fold, how long it is, that its numbers agree, that nothing typed is lost."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from page_steps import measure, measure_once, new_campaign, start_measuring
from typer.testing import CliRunner

from coterie.cli import app
from coterie.web.page_content import group_columns
from coterie.web.rendering import decimals_for, local

C = "/api/campaigns"
SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
PARTS = ("now", "evidence", "letters", "log", "settings")


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def run(api: Any, id: str, levels: list[float], most: int = 1000) -> None:
    """Measure until it is done, or so many times."""
    for k in range(most):
        asks = api.ask(id, "Ann")
        if not asks:
            return
        (ask,) = asks
        value = levels[ask["arm"]] + float(np.random.default_rng([ask["arm"], k]).standard_normal())
        one = {"id": f"m{k}", "arm": ask["arm"], "values": [value], "lease": ask["lease"], "worker": "Ann"}
        assert api.tell(id, one).status == 200


def machines(api: Any, count: int, groups: int, most: int = 1000, **more: Any) -> str:
    given = {"n_arms": count, "n_clusters": groups, "dim": 1, "noise": {"family": "gaussian"}}
    id = str(api.create(names=[f"machine {i:02}" for i in range(count)], **given | more))
    run(api, id, [7.0 * (i % groups) for i in range(count)], most)
    return id


def show(page: Any, part: str) -> None:
    page.locator(f"nav.parts a[data-to={part}]").click()
    page.locator(f"#campaign[data-part={part}]").wait_for()


def settle(page: Any) -> None:
    for part in ("#picture", "#proven"):
        page.locator(f"{part}:not([aria-busy])").wait_for(state="attached")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [6, 40])
def test_done_shows_groups_and_certificate_above_the_fold(opened: Any, api: Any, size: str, count: int) -> None:
    id = machines(api, count, 3, value_names=["pH"])
    page = opened(f"/campaigns/{id}", viewport=SIZES[size], color_scheme="dark" if size == "phone" else "light")
    settle(page)
    fold = SIZES[size]["height"]
    for part in ("#certificate", "#certificate-log", ".certificate .verdict", "#groups-heading"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= fold, part
    drawn = {one["name"]: one for one in api.get(f"{C}/{id}/picture").json["items"]}
    decimals: set[int] = set()
    for group in page.locator(".group").all():
        first = group.locator(".members li").first
        box = first.bounding_box()
        assert box["y"] + box["height"] <= fold or count == 40
        ends = (first.locator(".range").text_content() or "").replace("\u2212", "-").split(" to ")
        one = drawn[first.locator(".name").inner_text()]
        for end, exact in zip(ends, (one["low"][0], one["high"][0]), strict=True):
            decimals.add(len(end.partition(".")[2]))
            assert end == f"{exact:.{max(decimals)}f}"
        assert len(decimals) == 1, "as many of them everywhere"
    words = page.locator("#interval-words")
    assert words.inner_text().startswith("pH: proven intervals")
    assert words.evaluate("it => getComputedStyle(it, '::first-letter').textTransform") == "none"
    for part in PARTS:
        show(page, part)
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height <= 4 * fold, f"{part} has {height / fold:.2f} screens"
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"], part
        assert violations(page) == [], part


@pytest.mark.parametrize("size", SIZES)
def test_the_bar_stays_in_view_and_says_who_blocks(opened: Any, api: Any, size: str) -> None:
    id = machines(api, 6, 3, 14, delta=1e-9, pass_on=0)
    (forgotten,) = api.ask(id, "Ann from next door")
    for k in range(200):
        asks = api.ask(id, "Bob")
        if not asks:
            break
        (ask,) = asks
        one = {"id": f"b{k}", "arm": ask["arm"], "values": [7.0 * (ask["arm"] % 3) + k % 3], "lease": ask["lease"]}
        api.tell(id, one)
    page = opened(f"/campaigns/{id}", viewport=SIZES[size])
    settle(page)
    page.mouse.wheel(0, 500)
    page.wait_for_function("() => scrollY > 100")
    bar = page.locator(".bar")
    assert bar.bounding_box()["y"] == pytest.approx(0, abs=1)
    said = bar.inner_text()
    assert f"Waiting for {forgotten['name']}, asked of Ann from next door" in said
    assert "measurements" in said
    assert bar.locator("[role=progressbar]").is_visible()
    assert violations(page) == []


def numbers(text: str) -> list[int]:
    return [int(found.replace("\u202f", "")) for found in re.findall(r"\d[\d\u202f]*", text)]


@pytest.mark.parametrize("most", [0, 5, 16, 24, 1000])
def test_all_numbers_of_a_page_agree(opened: Any, api: Any, server: Any, most: int) -> None:
    """Counted in several places, and by the interface: one set of numbers, whatever the moment."""
    id = machines(api, 8, 3, most)
    status, partial = (api.get(f"{C}/{id}{path}").json for path in ("", "/partial"))
    for name, told in (("status", status), ("partial", partial)):  # the command line reads the same store
        answer = CliRunner().invoke(app, ["campaign", name, id, "--store", str(server.store), "--json"])
        said = json.loads(answer.stdout)
        counted = {"t", "measurements", "groups", "progress", "pairs", "apart", "alike", "settled"} & told.keys()
        assert {key: said[key] for key in counted} == {key: told[key] for key in counted}
    page = opened(f"/campaigns/{id}")
    settle(page)
    certain, items = partial["settled"], len(partial["items"])
    # What is proven of items: the legend of the picture, the letters, the matrix.
    legend = page.locator("#picture-legend button").all_inner_texts()
    if status["groups"] and not status["done"]:
        assert sum(int(text.partition(" certain")[0].rpartition(" ")[2]) for text in legend) == certain
    show(page, "letters")
    assert numbers(page.locator("#open-count").inner_text()) == [items - certain]
    assert numbers(page.locator("#apart-count").inner_text()) == [partial["apart"]["count"]]
    if status["groups"]:
        states = page.locator("#letters tbody tr td:last-child").all_inner_texts()
        assert sum(state.startswith("certain") for state in states) == certain
        show(page, "evidence")
        # Who stands for a group has no cell of its own that could be open: its row does not say that it is certain.
        rows = [row.locator("td.open, td.lead").count() for row in page.locator("#matrix tbody tr").all()]
        assert sum(count == 0 for count in rows) <= certain
    # Measurements: the bar or the result, the settings, the bars of the items, the log of who measures.
    show(page, "settings")
    assert page.locator("#settings-part .figures").inner_text().endswith(f"measurements\n{status['measurements']}")
    show(page, "now")
    place = ".rests" if status["done"] else "#moving-words"
    assert numbers(page.locator(place).inner_text())[0] == status["measurements"]
    show(page, "evidence")
    assert sum(map(int, page.locator("#pulls-part .count").all_inner_texts())) == status["t"]
    # Nothing that was counted otherwise is called proven, and nothing waits once it is done.
    whole = page.locator("#campaign").text_content()
    assert "differences proven" not in whole
    if status["done"]:
        assert not re.search(r"results? waits?", whole)


def test_counts_are_a_sum_and_nothing_waits_once_done() -> None:
    from coterie.web.page_content import counts

    base = {"n_arms": 5, "measurements": 420, "t": 22, "waiting": 398, "done": False, "forecast": None}
    assert (counts(base)["waiting"], counts(base)["beside"]) == (398, 0)
    for ended in ({"done": True}, {"proven": True}):
        assert (counts(base | ended)["waiting"], counts(base | ended)["beside"]) == (0, 398)


def test_proven_groups_are_no_guess_while_it_goes_on(api: Any) -> None:
    id = machines(api, 6, 3, 0, confirm=1, noise=1.0)
    for k in range(200):
        (ask,) = api.ask(id)
        one = {"id": str(k), "arm": ask["arm"], "values": [7.0 * (ask["arm"] % 3)], "lease": ask["lease"]}
        assert api.tell(id, one).status == 200
        status = api.get(f"{C}/{id}").json
        if status["proven"]:
            break
    assert not status["done"]
    for path, heading in (("", "3 groups: proven"), ("/print", "Groups")):
        page = api.get(f"/campaigns/{id}{path}", headers={"Accept": "text/html"}).content.decode()
        assert f'id="groups-heading">{heading}</h2>' in page
        assert "a guess" not in page


def test_a_saved_value_is_mended_beside_the_form(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}", viewport=SIZES["phone"])
    start_measuring(page, "Ada")
    measure_once(page, 0)
    assert page.locator("#said").inner_text().startswith("Saved ")
    fix = page.get_by_role("button", name="Fix")
    form = page.locator("#measure").bounding_box()
    box = fix.bounding_box()
    assert form["y"] <= box["y"] <= form["y"] + form["height"]
    fix.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Correct a result")
    assert dialog.get_by_label("What was measured").input_value() == " ".join(f"{x:g}" for x in measure("apple", 0))
    dialog.get_by_label("What was measured").fill("0.5 0.25")
    dialog.get_by_label("Why was it wrong?").fill("typed wrong")
    page.keyboard.press("Enter")
    page.locator("#said").filter(has_text="apple").wait_for()
    fix.wait_for(state="hidden")
    assert [one["new"] for one in api.get(f"{C}/{id}").json["corrections"]] == [[0.5, 0.25]]


def test_what_is_typed_for_a_new_campaign_survives_refresh_and_back(opened: Any, api: Any) -> None:
    page = opened("/new")
    name = f"x {uuid4().hex[:8]}"
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Their names, one on each line").fill("a\nb\nc")
    page.get_by_label("What do you know about the noise?").select_option("known")
    page.get_by_label("Standard deviation", exact=True).fill("2,5")
    page.reload()
    assert page.get_by_label("Standard deviation", exact=True).input_value() == "2,5"
    page.get_by_role("link", name="Campaigns", exact=True).click()
    page.wait_for_url(api.url + "/")
    page.go_back()
    assert page.get_by_label("Name", exact=True).input_value() == name
    assert page.get_by_label("Their names, one on each line").input_value() == "a\nb\nc"
    create = page.get_by_role("button", name="Create campaign")
    create.click()
    problem = page.locator("#n_clusters-problem")
    problem.wait_for()
    page.get_by_label("Groups").fill("2")
    problem.wait_for(state="detached")  # mended: nothing is wrong any more
    create.click()
    page.wait_for_url("**/campaigns/*")
    page.goto("/new")
    assert page.get_by_label("Name", exact=True).input_value() == "", "what was sent is not offered again"


@pytest.mark.parametrize("size", SIZES)
def test_the_form_fits_and_its_button_is_in_view(opened: Any, size: str) -> None:
    page = opened("/new", viewport=SIZES[size])
    box = page.get_by_role("button", name="Create campaign").bounding_box()
    assert box["y"] + box["height"] <= SIZES[size]["height"]
    assert page.locator(".steps > .card").count() == 3
    for question in ("I know which differences matter", "I know their number"):
        page.get_by_label(question).check()
        assert page.evaluate("document.documentElement.scrollHeight") <= 4 * SIZES[size]["height"]
        assert violations(page) == []


def test_an_archived_campaign_says_so_on_pages_that_are_open(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "Ada")
    api.post(f"{C}/{id}/archive", {"archived": True})
    page.locator("#archived").filter(has_text="nothing is written to it").wait_for()
    page.locator("#measure").wait_for(state="hidden")
    api.post(f"{C}/{id}/archive", {"archived": False})
    page.locator("#archived").wait_for(state="detached")
    page.locator("#measure").wait_for()


def test_charts_answer_the_pointer_and_the_keyboard(opened: Any, api: Any) -> None:
    id = machines(api, 8, 3, 30, noise=1.0, delta=1e-9)
    page = opened(f"/campaigns/{id}#part-evidence")
    history = api.get(f"{C}/{id}/history?points=400").json
    chart = page.locator("#evidence-chart")
    chart.focus()
    said = page.locator(".reading")
    assert said.inner_text().startswith(f"measurements {history['t'][-1]} ")
    page.keyboard.press("Home")
    assert said.inner_text().startswith(f"measurements {history['t'][0]} ")
    page.keyboard.press("ArrowRight")
    assert said.inner_text().startswith(f"measurements {history['t'][1]} ")
    page.keyboard.press("Tab")
    said.wait_for(state="detached")
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
    assert said.inner_text().startswith(f"measurements {history['t'][0]} ")
    page.mouse.move(5, 5)
    said.wait_for(state="detached")
    show(page, "letters")
    page.locator("#curve-chart").focus()
    page.keyboard.press("Home")
    assert "radius 0 · at least" in said.inner_text()
    assert violations(page) == []


def test_an_example_in_one_click_and_a_list_that_says_how_far_each_is(opened: Any, start: Any) -> None:
    api = start().api  # with no campaigns
    page = opened(served=api)
    assert violations(page) == []
    assert len(re.findall(r"\.(?:\s|$)", page.locator(".welcome p").first.inner_text())) == 2, "two sentences"
    page.get_by_role("button", name="Look at an example").click()
    page.wait_for_url("**/campaigns/*")
    page.get_by_role("heading", name="Done").wait_for()
    groups = [sorted(group.locator(".name").all_inner_texts()) for group in page.locator(".group").all()]
    assert sorted(groups) == [["Assam", "Ceylon"], ["Darjeeling", "Keemun"], ["Matcha", "Sencha"]]
    status = api.get(f"{C}/{page.url.rpartition('/')[2]}").json
    new_campaign(api, name="just begun")
    page.goto("/")
    entry = page.locator(f"[data-entry='{status['id']}']")
    entry.get_by_text("3 groups").wait_for()
    assert entry.locator("[role=progressbar]").get_attribute("aria-valuenow") == "100"
    assert entry.locator("circle").count() == 6
    assert entry.locator("time").count() == 1
    page.set_viewport_size(SIZES["phone"])
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"]["width"]
    assert violations(page) == []


@pytest.mark.parametrize(
    ("name", "plain", "called"),
    [
        ("Tea & Co: 2026/27", "Tea-Co-2026-27", "Tea-Co-2026-27"),
        ("Prüfstände", "Prufstande", "Pr%C3%BCfst%C3%A4nde"),
        ("日本", "campaign", "%E6%97%A5%E6%9C%AC"),
        ('"; x="', "x", "x"),
    ],
)
def test_files_are_named_after_their_campaign(api: Any, name: str, plain: str, called: str) -> None:
    id = api.create(name=name)
    answer = api.get(f"{C}/{id}/export?kind=groups&bom=true")
    expected = f"attachment; filename=\"{plain}-groups.csv\"; filename*=UTF-8''{called}-groups.csv"
    assert answer.headers["content-disposition"] == expected
    assert answer.content.startswith(b"\xef\xbb\xbfitem,")
    assert api.get(f"{C}/{id}/export?kind=groups").content.startswith(b"item,")
    assert api.get(f"{C}/{id}/export?kind=groups&bom=true&decimal_comma=true").content.count(b"\xef\xbb\xbf") == 1
    assert api.get(f"{C}/{id}/export?kind=json&bom=true").content.startswith(b"{"), "programs read that"


def test_a_download_that_fails_says_why_on_the_page(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}#part-log")
    page.route("**/export?kind=json", lambda route: route.abort())
    page.locator("#json").click()
    page.locator("#download-said").filter(has_text="cannot be reached").wait_for()
    page.unroute("**/export?kind=json")
    with page.expect_download():
        page.locator("#json").click()
    page.locator("#download-said").filter(has_text="Saved: world").wait_for(state="attached")  # it goes by itself


def test_decimals_follow_what_numbers_differ_by_and_rows_of_groups_are_of_one_length() -> None:
    """Intervals may be open on one side; sizes that decimals do not suit are written by their digits."""
    assert [decimals_for(widths) for widths in ([3.5], [0.35, 35.0, 36.0], [350.0], [1e-9], [])] == [
        2,
        1,
        0,
        None,
        None,
    ]
    assert ">\u22121.50</data>" in local(-1.5, 3, 2)
    assert ">0.00</data>" in local(-0.001, 3, 2)
    groups = [{"id": 1, "arms": [0], "names": ["a"], "size": 1, "center": [1.0]}]
    picture = {"items": [{"arm": 0, "mean": [1.0], "low": [0.5], "high": [None]}], "numbers": [{"name": "rate"}]}
    assert group_columns(groups, picture | {"interval": {"words": "w"}})["decimals"] == [None, None]
    assert [group_columns(groups * n, None)["columns"] for n in (0, 1, 5, 6, 7, 9, 11)] == [0, 1, 5, 3, 4, 5, 4]
