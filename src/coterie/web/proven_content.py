"""What is proven so far, for the page of a campaign: letters, pairs, and how many groups there are at every radius."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coterie.campaign import CampaignError, Campaigns
from coterie.session.partial import MOST_ITEMS
from coterie.web.charts import colour, plateau_chart
from coterie.web.rendering import number

LISTED_ITEMS = 48
"""Up to so many items are all listed; of more, the first `SHOWN_ITEMS`, those first whose group is open."""
SHOWN_ITEMS = 20
SHOWN_LETTERS = 6
_POINTS, _POINTS_OF_MANY, _MANY = 160, 60, 300

_WHY_NOT = {
    "no_certificate": "Only methods with certificates prove anything about single items before the end, and this "
    "campaign uses another one.",
    "too_many_items": f"Partial answers look at all pairs of items, and are limited to {number(MOST_ITEMS)} items: "
    "this campaign has more.",
    "too_few_results": "A picture appears when there are measurements.",
    "no_distances": "There is no picture of how many groups there are at every distance: under the noise of this "
    "campaign no distance can be proven, since a rare large value could hide a difference of any size. Bounds of the "
    "results, counts, Gaussian noise or a standard deviation would give one.",
}


def proven_part(store: Campaigns, id: str) -> dict[str, Any]:
    """The content of the part: what is proven of items, the picture, or why there is none."""
    settings = store.settings(id)
    partial, no_partial = _answer(lambda: store.partial(id, 0))
    points = _POINTS if settings["n_arms"] <= _MANY else _POINTS_OF_MANY
    curve, no_curve = _answer(lambda: store.resolution_curve(id, points))
    return {
        "id": id,
        "partial": partial,
        "no_partial": no_partial,
        "items": [] if partial is None else _items(partial),
        "guessed": partial is not None and any(one["group_id"] is not None for one in partial["items"]),
        "open_items": None if partial is None else len(partial["items"]) - partial["settled"],
        "chart": None if curve is None else plateau_chart(curve, _marks(curve)),
        "no_chart": None if no_curve == no_partial else no_curve,
        "unit": None if curve is None else _unit(settings, curve),
    }


def _answer(read: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any] | None, str | None]:
    """What was read, or why it does not exist for this campaign."""
    try:
        return read(), None
    except CampaignError as error:
        if error.code not in _WHY_NOT:
            raise
        return None, _WHY_NOT[error.code]


def _items(partial: dict[str, Any]) -> list[dict[str, Any]]:
    """Items with their letters, group by group."""
    items = partial["items"]
    order = sorted(items, key=lambda one: (one["group_id"] or 0, one["arm"]))
    if len(order) > LISTED_ITEMS:
        order = sorted(order, key=lambda one: one["settled"])[:SHOWN_ITEMS]
    # With more than 26 letters in all, those of an item have blanks between them.
    parted = any(" " in one["letters"] for one in items)
    return [_item(one, partial["question"]["kind"], parted) for one in order]


def _item(one: dict[str, Any], kind: str, parted: bool) -> dict[str, Any]:
    its = one["letters"].split(" ") if parted else list(one["letters"])
    shown, more = (" " if parted else "").join(its[:SHOWN_LETTERS]), len(its) - SHOWN_LETTERS
    others = [group for group in one["possible"] if group != one["group_id"]]
    if one["settled"]:
        said = "certain, near a border" if kind == "resolution" and others else "certain"
    else:
        said = "open"
    return {
        "name": one["name"],
        "group": one["group_id"],
        "colour": colour(one["group_id"]),
        "letters": shown,
        "more_letters": max(0, more),
        "possible": one["possible"],
        "state": said,
    }


def _marks(curve: dict[str, Any]) -> list[tuple[str, float]]:
    """ε and η of a resolution, where they are one number each."""
    asked = curve["resolution"]
    if asked is None or set(curve["scale"]) != {1.0}:
        return []
    found = []
    for name, given in (("ε", asked["alike"]), ("η", asked["apart"])):
        values = set(given) if isinstance(given, list) else {given}
        if len(values) != 1:
            return []
        found.append((name, float(values.pop())))
    return found


def _unit(settings: dict[str, Any], curve: dict[str, Any]) -> str:
    """What a radius is."""
    if set(curve["scale"]) != {1.0}:
        return "in units of η"
    if settings["dim"] == 1:
        return "a difference, in the units of the measurements"
    largest = "the largest difference of a number" if curve["norm"] == "each" else "the Euclidean distance"
    return f"{largest}, in the units of the measurements"
