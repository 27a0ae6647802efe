"""What people do on the page of a campaign, for tests in a real browser."""

from __future__ import annotations

from typing import Any

NAMES = ["apple", "pear", "kiwi", "fig", "quince", "plum"]
CENTERS = ((0.0, 0.0), (2.4, 0.3), (0.6, 2.7))
TRUTH = [0, 1, 2, 0, 1, 2]


def measure(name: str, k: int) -> list[float]:
    """What the test's bench reads: the k-th look at an item."""
    arm = NAMES.index(name)
    return [value + 0.25 * ((5 * arm + 3 * k) % 7 - 3) for value in CENTERS[TRUTH[arm]]]


def start_measuring(page: Any, name: str) -> None:
    page.get_by_label("Your name or bench").fill(name)
    page.get_by_role("button", name="Give me something to measure").click()
    page.locator("#result").wait_for()


def measure_once(page: Any, k: int) -> bool:
    """Type a result for the item on the screen and wait for the next; False once there is none."""
    page.wait_for_function("() => !document.getElementById('save').disabled")  # the item on the screen is the next one
    name = page.locator("#item").inner_text()
    for place, value in zip(page.locator("[name=value]").all(), measure(name, k), strict=True):
        place.fill(f"{value:.6g}")
    page.get_by_role("button", name="Save result").click()
    page.wait_for_function(
        "() => document.getElementById('measure').hidden"
        " || [...document.querySelectorAll('[name=value]')].every((field) => field.value === '')"
        "    && !document.getElementById('save').disabled"
    )
    return bool(page.locator("#measure").is_visible())


def show_part(page: Any, part: str) -> None:
    """Show a part of the campaign's page by its link: now, evidence, letters, log or settings."""
    page.locator(f"nav.parts a[data-to={part}]").click()
    page.locator(f"#campaign[data-part={part}]").wait_for()


def new_campaign(api: Any, **more: Any) -> str:
    return str(api.create(**{"n_arms": 6, "n_clusters": 3, "dim": 2, "names": NAMES} | more))
