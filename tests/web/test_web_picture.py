"""The picture of a campaign in a real Chromium: dots, intervals, regions, the matrix; by keyboard, on a phone, live."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from page_steps import show_part

C = "/api/campaigns"
NAMES = [
    "Ahr",
    "Bode",
    "Diemel",
    "Eder",
    "Fulda",
    "Glan",
    "Havel",
    "Ilm",
    "Jagst",
    "a <b>river</b> with quite a long name",
]
LEVELS = [2.0, 2.0, 6.0, 6.0, 6.0, 9.0, 2.0, 9.0, 9.0, 2.0]
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 700}}


def rivers(api: Any, count: int, dim: int = 1, **more: Any) -> str:
    """A campaign of ten rivers in three groups, so many measurements on."""
    given = {"n_arms": 10, "n_clusters": 3, "dim": dim, "noise": 1.0, "names": NAMES}
    id = str(api.create(**given | more))
    measure(api, id, count, dim)
    return id


def measure(api: Any, id: str, count: int, dim: int = 1) -> None:
    for k in range(count):
        asks = api.ask(id)
        if not asks:
            return
        (ask,) = asks
        rng = np.random.default_rng([ask["arm"], k])
        x = [LEVELS[ask["arm"]] * (1 - i / 2) + float(rng.standard_normal()) for i in range(dim)]
        one = {"id": ask["lease"], "arm": ask["arm"], "values": x, "lease": ask["lease"]}
        assert api.tell(id, one).status == 200


def many(api: Any, count: int, dim: int, each: int, **more: Any) -> str:
    """A campaign of many items in four groups."""
    id = str(api.create(**{"n_arms": count, "n_clusters": 4, "dim": dim, "noise": 1.0} | more))
    rng = np.random.default_rng(5)
    rows = [
        {
            "id": f"{arm}-{k}",
            "arm": arm,
            "values": (6.0 * (arm % 4) * np.eye(dim)[arm % dim] + rng.normal(size=dim)).tolist(),
        }
        for k in range(each)
        for arm in range(count)
    ]
    for start in range(0, len(rows), 5000):
        assert api.tell(id, *rows[start : start + 5000]).status == 200
    return id


def shown(opened: Any, id: str, part: str = "now", **more: Any) -> Any:
    """The page, when its picture has come."""
    page = opened(f"/campaigns/{id}#part-{part}", **more)
    page.locator("#picture:not([aria-busy])").wait_for(state="attached")
    return page


def check_accessible(page: Any) -> None:
    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]


def places(page: Any) -> dict[str, tuple[float, float]]:
    """Where each mark is, by the item's name."""
    read = "all => all.map((one) => [one.getAttribute('aria-label'), one.getAttribute('transform')])"
    found = {}
    for label, moved in page.locator(".mark-dot").evaluate_all(read):
        x, y = re.findall(r"-?[\d.]+", moved)
        found[label.partition(": ")[0]] = (float(x), float(y))
    return found


def test_items_by_value_with_intervals_and_regions(opened: Any, api: Any) -> None:
    id = rivers(api, 26, value_names=["nitrate"])
    data = api.get(f"{C}/{id}/picture").json
    page = shown(opened, id)
    placed = places(page)
    assert set(placed) == set(NAMES)
    # Places are a straight line in the values: the oracle is the mean of what was told.
    means = [one["mean"][0] for one in data["items"]]
    x = [placed[one["name"]][0] for one in data["items"]]
    slope, start = np.polyfit(means, x, 1)
    assert slope > 0
    assert np.abs(slope * np.array(means) + start - x).max() < 0.2
    # The line of an item goes from its low to its high, at its height.
    steps = re.findall(
        r"M([-\d.]+) ([-\d.]+)H([-\d.]+)",
        " ".join(path.get_attribute("d") for path in page.locator("#picture-plot .interval").all()),
    )
    drawn = {float(y): (float(low), float(high)) for low, y, high in steps}
    for one in data["items"]:
        low, high = drawn[placed[one["name"]][1]]
        assert (low, high) == pytest.approx((slope * one["low"][0] + start, slope * one["high"][0] + start), abs=0.3)
    assert page.locator("#picture-plot .region").count() == len(data["groups"]) == 3
    assert "proven intervals for the means of all items" in page.locator("#picture-reading").inner_text()
    assert page.locator("#picture-plot b").count() == 0  # names are text
    # More measurements, a larger mark.
    size = {
        one["name"]: page.locator(f"#dot-{one['arm']}").bounding_box()["height"]
        for one in data["items"]
        if one["group_id"] == 1
    }
    count = {one["name"]: one["measurements"] for one in data["items"]}
    for a in size:
        for b in size:
            assert (size[a] > size[b] - 0.3) or count[a] <= count[b]


def test_hovering_and_the_keyboard_give_the_numbers(opened: Any, api: Any) -> None:
    id = rivers(api, 26)
    data = api.get(f"{C}/{id}/picture").json
    page = shown(opened, id)
    detail = page.locator("#picture-detail")
    one = data["items"][4]
    page.locator("#dot-4").hover()
    said = detail.inner_text()
    assert one["name"] in said
    assert f"group {one['group_id']}" in said
    assert f"{one['measurements']} measurement" in said
    numbers = [
        float(text.replace("\u2212", "-")) for text in re.findall(r"[\u2212]?\d+\.?\d*", said.partition("mean")[2])
    ][:3]
    assert numbers == pytest.approx([one["mean"][0], one["low"][0], one["high"][0]], rel=1e-3)
    assert ("proven to be in group" if one["settled"] else "not proven yet") in said
    # Tab leads to one mark, arrows from mark to mark, and the focus can be seen.
    page.locator("#picture-find").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.mark-dot')"):
            break
    order = sorted(places(page).items(), key=lambda entry: entry[1][1])
    seen = []
    for _ in order:
        label = page.evaluate("document.activeElement.getAttribute('aria-label')")
        seen.append(label.partition(": ")[0])
        assert seen[-1] in detail.inner_text()
        page.keyboard.press("ArrowDown")
    assert seen == [name for name, _ in order]
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(order[0][0])
    assert float(page.evaluate("parseFloat(getComputedStyle(document.activeElement).strokeWidth)")) >= 2
    assert page.locator(".mark-dot[tabindex='0']").count() == 1


def test_on_two_principal_axes_with_their_loadings(opened: Any, api: Any) -> None:
    id = rivers(api, 24, 3, value_names=["ph", "turbidity", "iron"])
    data = api.get(f"{C}/{id}/picture").json
    page = shown(opened, id)
    words = page.locator("#picture-axes").inner_text()
    assert data["axes"]["words"][0] in words
    assert re.search(r"axis 1: 0\.\d+ ph \+ 0\.\d+ turbidity", words)
    means = np.array([one["mean"] for one in data["items"]])
    white = means - means.mean(axis=0)
    scores = white @ np.linalg.svd(white)[2][:2].T
    placed = np.array([places(page)[one["name"]] for one in data["items"]])
    for axis in range(2):
        assert abs(np.corrcoef(scores[:, axis], placed[:, axis])[0, 1]) > 0.9999
    assert page.locator("#picture-plot .region.hull").count() == 3
    # Any two numbers instead.
    page.locator("#picture-x").select_option("iron")
    page.locator("#picture-y").select_option("ph")
    placed = np.array([places(page)[one["name"]] for one in data["items"]])
    assert np.corrcoef(means[:, 2], placed[:, 0])[0, 1] > 0.9999
    assert np.corrcoef(means[:, 0], placed[:, 1])[0, 1] < -0.9999  # upwards is less y
    assert page.locator("#picture-axes").is_hidden()
    check_accessible(page)


@pytest.mark.parametrize("kind", ["groups", "resolution"])
def test_the_matrix_says_what_is_proven(opened: Any, api: Any, kind: str) -> None:
    more: dict[str, Any] = {} if kind == "groups" else {"n_clusters": None, "resolution": {"alike": 1.0, "apart": 3.5}}
    id = rivers(api, 45, **more)
    data = api.get(f"{C}/{id}/picture").json
    page = shown(opened, id, "evidence")
    rows = {row.locator("th").inner_text(): row.locator("td").all() for row in page.locator("#matrix tbody tr").all()}
    words = {"r": "lead", "+": "near", "-": "far", "b": "both", "?": "open"}
    assert set(rows) == set(NAMES)
    for one in data["items"]:
        classes = [cell.get_attribute("class").split()[1] for cell in rows[one["name"]]]
        assert classes == [words[kind] for kind in one["evidence"]]
    heads = page.locator("#matrix thead th").all_inner_texts()[1:]
    for head, column in zip(heads, data["matrix"]["columns"], strict=True):
        assert str(column["group_id"]) in head
        assert (column["name"][:6] in head) == (kind == "resolution")
    assert data["matrix"]["means"]["-"] in page.locator("#matrix-key").inner_text()
    check_accessible(page)


def test_find_only_the_undecided_and_hide(opened: Any, api: Any) -> None:
    id = rivers(api, 15)
    data = api.get(f"{C}/{id}/picture").json
    undecided = {one["name"] for one in data["items"] if not one["settled"]}
    assert undecided
    page = shown(opened, id)
    page.get_by_label("only the undecided").check()
    assert set(places(page)) == undecided
    assert set(page.locator("#matrix tbody th").all_inner_texts()) == undecided
    page.get_by_label("only the undecided").uncheck()
    page.get_by_label("Find an item").fill("AHR")
    assert set(places(page)) == {"Ahr"}
    page.get_by_label("Find an item").fill("no such")
    page.get_by_text("No item is like that.").wait_for()
    page.get_by_label("Find an item").fill("")
    button = page.locator("#legend-2")
    button.focus()
    page.keyboard.press("Enter")
    assert set(places(page)) == {one["name"] for one in data["items"] if one["group_id"] != 2}
    assert page.locator("#legend-2").get_attribute("aria-pressed") == "false"
    assert page.evaluate("document.activeElement.id") == "legend-2"
    page.keyboard.press("Enter")
    assert len(places(page)) == 10


def test_it_is_live_and_keeps_what_was_chosen(opened: Any, api: Any) -> None:
    id = rivers(api, 0)
    page = shown(opened, id)
    assert page.locator("#picture-note").inner_text() == "Dots appear when there are measurements."
    check_accessible(page)
    measure(api, id, 4)
    page.locator("#dot-3").wait_for()
    assert "6 items not measured yet" in page.locator("#picture-reading").inner_text()
    page.get_by_label("Find an item").fill("e")
    page.locator("#picture-plot .mark-dot").first.focus()
    before = page.evaluate("document.activeElement.id")
    measure(api, id, 600)
    page.get_by_role("heading", name="Done").wait_for()
    t = api.get(f"{C}/{id}").json["t"]
    done = api.get(f"{C}/{id}/picture").json
    assert (done["t"], done["done"]) == (t, True)
    expected = {one["name"] for one in done["items"] if "e" in one["name"].lower()}
    page.wait_for_function("n => document.querySelectorAll('.mark-dot').length === n", arg=len(expected))
    assert set(places(page)) == expected
    assert page.get_by_label("Find an item").input_value() == "e"
    assert page.evaluate("document.activeElement.id") == before
    page.locator("#picture-detail").filter(has_text="proven to be in group").wait_for()
    page.get_by_label("Find an item").fill("")
    page.locator("#matrix .open").first.wait_for(state="detached")  # the picture comes after the page
    check_accessible(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("dim", [1, 3])
def test_on_a_phone_and_in_the_dark(opened: Any, api: Any, scheme: str, dim: int) -> None:
    id = rivers(api, 22, dim)
    page = shown(opened, id, "now", color_scheme=scheme, has_touch=True, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    for part in ("#picture-plot", "#picture-detail", "#picture-find"):
        box = page.locator(part).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375, part
    for text in page.locator("#picture-plot text").all():
        box = text.bounding_box()
        assert box["height"] >= 12
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375.5, text.text_content()
    page.locator("#dot-0").tap(force=True)
    page.locator("#picture-detail b").wait_for()
    check_accessible(page)
    show_part(page, "evidence")
    box = page.locator("#matrix-part").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 375
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    check_accessible(page)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 3])
def test_a_thousand_items_stay_readable(opened: Any, api: Any, dim: int) -> None:
    id = many(api, 1000, dim, 4)
    page = shown(opened, id)
    assert len(places(page)) == 1000
    assert page.evaluate("document.querySelectorAll('*').length") < 4000
    plot = page.locator("#picture-plot").bounding_box()
    assert plot["height"] < 1000
    show_part(page, "evidence")
    page.locator("#matrix tbody tr").first.wait_for()  # dots are there before the pairs are looked at
    rows = page.locator("#matrix tbody tr").count()
    assert rows <= 48
    shown_items = [
        int(text.replace("\u202f", ""))
        for text in re.findall(r"([\d\u202f]+) items", page.locator("#matrix tbody").inner_text())
    ]
    assert sum(shown_items) + rows - len(shown_items) == 1000 or page.locator("#matrix-more").is_visible()
    show_part(page, "now")
    page.get_by_label("Find an item").fill("777")
    assert set(places(page)) == {"777"}
    page.get_by_label("Find an item").fill("")
    show_part(page, "evidence")
    page.get_by_label("one row for items").uncheck()
    assert page.locator("#matrix tbody tr").count() == 48
    page.locator("#matrix-more").click()
    assert page.locator("#matrix tbody tr").count() == 96
    check_accessible(page)


def test_of_more_items_the_groups_are_drawn(opened: Any, api: Any) -> None:
    id = many(api, 2001, 2, 2, method="uniform")
    answer = api.get(f"{C}/{id}/picture")
    assert len(answer.content) < 10_000
    page = shown(opened, id)
    assert set(places(page)) == {f"Group {one['id']}" for one in answer.json["groups"]}
    assert "2001 items are too many to draw" in page.locator("#picture-reading").inner_text()
    page.locator(".mark-dot").first.hover()
    assert re.search(r"\d+ items", page.locator("#picture-detail").inner_text())
    check_accessible(page)


def test_numbers_have_the_decimal_mark_of_the_language(opened: Any, api: Any) -> None:
    id = rivers(api, 12)
    mean = api.get(f"{C}/{id}/picture").json["items"][0]["mean"][0]
    label = shown(opened, id, locale="de-DE").locator("#dot-0").get_attribute("aria-label")
    assert f"mean {mean:.4g}".replace(".", ",").replace("-", "\u2212") in label


def test_retired_items_are_hollow(opened: Any, api: Any) -> None:
    """Whatever retires items: the answer says so, and the page draws what the answer says."""
    id = rivers(api, 24)

    def retire(route: Any) -> None:
        data = route.fetch().json()
        data["items"][2] |= {"retired": True, "group_id": None, "settled": False}
        route.fulfill(json=data)

    page = opened("/")
    page.route("**/picture", retire)
    page.goto(f"/campaigns/{id}")
    page.locator("#picture:not([aria-busy])").wait_for()
    assert page.locator(".mark-dot.hollow").count() == 1
    label = page.locator("#dot-2").get_attribute("aria-label")
    assert label.startswith("Diemel: retired")
    assert page.locator("#legend--1").inner_text().startswith("Retired")
    assert "Diemel (retired)" in page.locator("#matrix tbody th").all_inner_texts()
    check_accessible(page)


def test_progress_that_moves(api: Any) -> None:
    """A bar by the share, and the forecast with its interval; no count that begins anew with every guess."""
    from coterie.web.page_content import campaign_page
    from coterie.web.rendering import render

    id = rivers(api, 22)
    status = api.get(f"{C}/{id}").json
    words = "34 of 52 differences proven, 12 of 20 items settled"
    told = {
        "progress": {"proven": 34, "needed": 52, "settled": 12, "items": 20, "share": 0.42, "words": words},
        "forecast": 120.2,
        "forecast_low": 80.4,
        "forecast_high": 210.0,
    }
    history: dict[str, Any] = {"t": [], "statistic": [], "threshold": []}

    def bar(of: dict[str, Any]) -> str:
        who = {"may_write": True, "may_manage": False, "reading": False}
        return render("campaign_bar.html", **who, **campaign_page(of, history, [])).decode()

    page = bar(status | told)
    assert "<b>22 measurements</b>, about 120 more (80 to 210)" in page
    assert 'aria-valuenow="42"' in page
    assert 'width="42%"' in page
    assert words not in page
    unknown = bar(status | told | {"forecast": None, "forecast_low": None, "forecast_high": None})
    assert "<b>22 measurements</b></p>" in unknown
    assert 'id="moving"' not in bar(status | told | {"done": True})


def test_the_address_is_for_readers_of_the_campaign_only(api: Any) -> None:
    id = rivers(api, 3)
    assert api.with_token(None).get(f"{C}/{id}/picture").status == 401
    assert api.get(f"{C}/none/picture").error["code"] == "unknown_campaign"
