"""What is proven so far, over HTTP and on the page: letters, pairs, and how many groups there are at every radius."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import coterie

C = "/api/campaigns"
NAMES = [f"site{i}" for i in range(1, 10)]
LEVELS = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0]
RESOLUTION = {"alike": 0.3, "apart": 1.2}
PHONE = {"viewport": {"width": 375, "height": 700}}


def sites(api: Any, **more: Any) -> str:
    given = {"n_arms": 9, "dim": 1, "noise": 0.5, "names": NAMES, "resolution": RESOLUTION}
    return str(api.create(n_clusters=None, **given | more))


def measure(api: Any, id: str, count: int) -> None:
    for k in range(count):
        asks = api.ask(id)
        if not asks:
            return
        (ask,) = asks
        x = LEVELS[ask["arm"]] + 0.5 * float(np.random.default_rng([ask["arm"], k]).standard_normal())
        one = {"id": ask["lease"], "arm": ask["arm"], "values": [x], "lease": ask["lease"]}
        assert api.tell(id, one).status == 200


def filled(api: Any, count: int, each: int, noise: float, **more: Any) -> str:
    """A campaign of many items in five groups."""
    id = str(api.create(n_clusters=None, **{"n_arms": count, "dim": 1, "noise": noise} | more))
    rng = np.random.default_rng(5)
    rows = [
        {"id": f"{arm}-{k}", "arm": arm, "values": [3.0 * (arm % 5) + float(rng.standard_normal())]}
        for k in range(each)
        for arm in range(count)
    ]
    assert api.tell(id, *rows).status == 200
    return id


def shown(opened: Any, id: str, **more: Any) -> Any:
    """The page, when its part has come."""
    page = opened(f"/campaigns/{id}#part-letters", **more)
    page.locator("#proven:not([aria-busy])").wait_for()
    return page


def check_accessible(page: Any) -> None:
    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]


# Over HTTP.


def test_what_is_proven_over_http(api: Any) -> None:
    id = sites(api)
    measure(api, id, 40)
    found = api.get(f"{C}/{id}/partial").json
    assert (found["t"], found["pairs"], found["done"], found["cut"]) == (40, 36, False, None)
    assert found["error"] == pytest.approx(0.1 * 0.05)
    assert found["apart"]["count"] == len(found["apart"]["listed"]) > 0
    letters = [set(one["letters"]) for one in found["items"]]
    for low in range(9):
        for high in range(low + 1, 9):
            assert ([low, high] in found["apart"]["listed"]) == (not letters[low] & letters[high])
    ids = {group["id"] for group in api.get(f"{C}/{id}").json["groups"]}
    assert all(set(one["possible"]) <= ids and one["group_id"] in ids for one in found["items"])
    cut = api.get(f"{C}/{id}/partial?pairs=1").json
    assert cut["apart"]["listed"] == found["apart"]["listed"][:1]
    assert f"1 of the {found['apart']['count']} pairs proven apart" in cut["cut"]
    curve = api.get(f"{C}/{id}/resolution-curve?points=50").json
    assert len(curve["radius"]) == len(curve["least"]) == len(curve["enough"]) <= 50
    assert (curve["enough"][0], curve["radius"][0]) == (9, 0.0)
    assert curve["least"] == sorted(curve["least"], reverse=True)


def test_what_there_is_not_has_the_shape_of_all_errors(api: Any) -> None:
    many = str(api.create(name="3001 items", n_arms=3001, n_clusters=None, dim=1, resolution=RESOLUTION))
    boc, any_noise = str(api.create(method="boc")), str(api.create(noise=None))
    id = sites(api)
    for path, status, code, why in (
        (f"{many}/partial", 409, "too_many_items", "limited to 3000 items, campaign '3001 items' has 3001"),
        (f"{many}/resolution-curve", 409, "too_many_items", "limited to 3000 items"),
        (f"{boc}/partial", 409, "no_certificate", "only method 'croc' or 'shortlist' has partial answers"),
        (f"{any_noise}/resolution-curve", 409, "no_distances", "State bounds of the results"),
        (f"{id}/resolution-curve", 409, "too_few_results", "no results that count yet"),
        (f"{id}/resolution-curve?points=1", 422, "bad_value", "points"),
        (f"{id}/partial?pairs=-1", 422, "bad_value", "pairs"),
        (f"{id}/partial?pairs=10001", 422, "bad_value", "pairs"),
        (f"{id}/partial?pairs=x", 422, "bad_value", "pairs"),
        ("none/partial", 404, "unknown_campaign", "there is no campaign 'none'"),
        ("none/resolution-curve", 404, "unknown_campaign", "there is no campaign 'none'"),
    ):
        answer = api.get(f"{C}/{path}")
        assert (answer.status, answer.error["code"]) == (status, code), (path, answer.content)
        assert why in answer.error["message"]
    assert api.with_token(None).get(f"{C}/{id}/partial").status == 401


# On the page.


def test_the_page_shows_letters_and_the_plateau_plot(opened: Any, api: Any) -> None:
    id = sites(api)
    measure(api, id, 40)
    found = api.get(f"{C}/{id}/partial").json
    page = shown(opened, id)
    assert page.get_by_role("heading", name="What is proven so far").is_visible()
    assert page.locator("#apart-count").inner_text() == str(found["apart"]["count"])
    assert page.locator("#alike-count").inner_text() == str(found["alike"]["count"])
    assert page.locator("#open-count").inner_text() == str(9 - found["settled"])
    assert "wrong with probability at most 0.005" in page.locator("#proven-error").inner_text()
    rows = {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in _rows(page)}
    for one in found["items"]:
        letters, possible, state = rows[one["name"]]
        assert letters == one["letters"]
        assert [int(group) for group in re.findall(r"\d+", possible)] == one["possible"]
        assert state.startswith("certain" if one["settled"] else "open")
    plot = page.get_by_role("img", name="Radius 0: at least")
    assert plot.is_visible()
    assert "9 enough." in plot.get_attribute("aria-label")
    assert page.locator(".plot .mark").count() == 2, "ε and η"
    texts = page.locator(".plot text").all_text_contents()
    assert {"1", "2", "3", "5", "0", "ε", "η"} <= set(texts)
    advice = "choose the differences that do not matter (ε) and those that matter (η) there"
    assert advice in page.locator("#plateau-reading").inner_text()
    page.get_by_text("As numbers").click()
    radius, least, enough = page.locator("#curve-numbers tbody tr").first.locator("td").all_inner_texts()
    assert (radius, enough) == ("0", "9")
    assert int(least) >= 2
    check_accessible(page)


def _rows(page: Any) -> list[Any]:
    return list(page.locator("#letters tbody tr").all())


def test_it_follows_the_results_and_keeps_what_is_open(opened: Any, api: Any) -> None:
    id = sites(api)
    page = shown(opened, id)
    assert page.locator("#no-chart").inner_text() == "A picture appears when there are measurements."
    measure(api, id, 12)
    page.locator("#proven-error").filter(has_text="After 12 measurements").wait_for()
    page.locator("#curve-numbers summary").click()
    measure(api, id, 400)
    page.locator('#campaign[data-done="1"]').wait_for()
    t = api.get(f"{C}/{id}").json["t"]
    page.locator("#proven-error").filter(has_text=f"After {t} measurements").wait_for()
    assert page.locator("#curve-numbers").get_attribute("open") is not None
    assert page.locator("#open-count").inner_text() == "0"
    states = [row.locator("td").last.inner_text() for row in _rows(page)]
    others = [len(one["possible"]) > 1 for one in api.get(f"{C}/{id}/partial").json["items"]]
    assert states == ["certain, near a border" if more else "certain" for more in _by_group(api, id, others)]


def _by_group(api: Any, id: str, of_arm: list[bool]) -> list[bool]:
    return [of_arm[arm] for group in api.get(f"{C}/{id}").json["groups"] for arm in group["arms"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_and_in_the_dark(opened: Any, api: Any, scheme: str) -> None:
    id = sites(api, names=["a site with quite a long name", *NAMES[1:]])
    measure(api, id, 40)
    page = shown(opened, id, color_scheme=scheme, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    for part in ("#letters", ".plot", "#plateaus"):
        box = page.locator(part).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 375, part  # noqa: PT018
    # The letters of the axes keep their size, however narrow the picture is, and stay on the screen.
    for text in page.locator(".plot text").all():
        box = text.bounding_box()
        assert box["height"] >= 12
        assert box["x"] >= 0 and box["x"] + box["width"] <= 375, text.text_content()  # noqa: PT018
    check_accessible(page)


def test_of_many_items_a_few_are_shown(opened: Any, api: Any) -> None:
    id = filled(api, 200, 4, 1.0, resolution={"alike": 1, "apart": 2.5})
    page = shown(opened, id, **PHONE)
    assert len(_rows(page)) == 20
    text = page.locator("#proven").inner_text()
    assert "20 of 200 items are shown, open ones first" in text
    assert len(text) < 3000
    with page.expect_download() as download:
        page.locator("#letters-file").click()
    table = download.value.path().read_text().splitlines()
    assert len(table) == 201
    assert table[0].endswith(",letters")
    check_accessible(page)


def test_where_there_is_nothing_to_show_a_sentence_says_why(opened: Any, api: Any) -> None:
    many = str(api.create(n_arms=3001, n_clusters=None, dim=1, resolution=RESOLUTION))
    page = shown(opened, many)
    assert "limited to 3\u202f000 items" in page.locator("#no-partial").inner_text()
    assert page.locator("#proven p").count() == 1
    any_noise = str(api.create(noise=None))
    page = shown(opened, any_noise)
    assert "no distance can be proven" in page.locator("#no-chart").inner_text()
    assert page.locator("#letters").is_visible()
    boc = str(api.create(method="boc"))
    page = shown(opened, boc)
    assert "Only methods with certificates" in page.locator("#no-partial").inner_text()


def test_the_picture_matches_the_curve(api: Any) -> None:
    """The path of the proven smallest number goes through the points that `coterie.resolution_curve` has."""
    from coterie.web.rendering import HEIGHT, WIDTH, plateau_chart

    session = coterie.Session(9, None, 1, noise=0.5, resolution=(0.3, 1.2))
    for k in range(200):
        if session.done:
            break
        arm = session.ask()
        session.tell(arm, LEVELS[arm] + 0.5 * np.random.default_rng([arm, k]).standard_normal())
    curve = coterie.resolution_curve(session)
    chart = plateau_chart(curve.to_json(), [("ε", 0.3)])
    ticks = {label: float(place[:-1]) / 100 * HEIGHT for label, place in chart["y_labels"]}
    for name, counts in (("least", curve.least[1:]), ("enough", curve.enough[:-1])):
        steps = re.findall(r"V([\d.]+)H([\d.]+)", chart[name])
        assert len(steps) == counts.size
        for (y, x), count, radius in zip(steps, counts.tolist(), curve.radius[1:].tolist(), strict=True):
            assert float(x) == pytest.approx(WIDTH * radius / curve.radius[-1], abs=0.1)
            if str(count) in ticks:
                assert float(y) == pytest.approx(ticks[str(count)], abs=0.1)
    for start, stop, groups in chart["plateaus"]:
        assert curve.at((start + stop) / 2) == (groups, groups)
    assert [row[1:] for row in chart["rows"]] == [curve.at(row[0]) for row in chart["rows"]]
