"""Pages from templates, in which everything is escaped; charts as numbers and SVG paths.

Charts are made from the same dictionaries that the API sends.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from coterie import __version__
from coterie.campaign.service.attachments import LARGEST
from coterie.campaign.service.invitations import MOST_HOURS

_templates = Environment(
    loader=PackageLoader("coterie.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

WIDTH, HEIGHT = 1000, 300

THUMB = (120, 48)
"""Width and height of a small picture in a list."""
_MARGIN, _DOTS = 5, 400

_COLOURS, _MOST_DECIMALS = 10, 6

_READINGS = 500
"""A chart has so many places that it can be read at."""

_GROUP_TICKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)


def number(value: float | None, digits: int = 4) -> str:
    """A number for people: four significant digits, thousands apart."""
    if value is None:
        return "–"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}".replace(",", "\u202f").replace("-", "\u2212")
    if abs(value) >= 10**digits:
        return f"{round(value):,}".replace(",", "\u202f").replace("-", "\u2212")
    return f"{value:.{digits}g}".replace("-", "\u2212")


def local(value: float | None, digits: int = 4, decimals: int | None = None) -> str | Markup:
    """The same, marked so that the browser writes it as its language does; with so many `decimals`, if stated."""
    if value is None:
        return number(value)
    if decimals is None:
        shown = number(value, digits)
        return Markup('<data value="{}" data-digits="{}">{}</data>').format(repr(float(value)), digits, shown)
    shown = f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "\u2212")  # + 0.0: no minus before zero
    return Markup('<data value="{}" data-decimals="{}">{}</data>').format(repr(float(value)), decimals, shown)


def decimals_for(widths: Sequence[float]) -> int | None:
    """So many decimals that numbers beside one another show a hundredth of what they differ by; None for odd sizes."""
    wide = sorted(width for width in widths if 0.0 < width < math.inf)
    places = 2 - math.floor(math.log10(wide[len(wide) // 2])) if wide else _MOST_DECIMALS + 1
    return max(0, places) if -_MOST_DECIMALS <= places <= _MOST_DECIMALS else None


def plural(count: int, noun: str, many: str | None = None) -> str:
    """3 groups, 1 group."""
    return f"{number(count)} {noun if count == 1 else many or noun + 's'}"


def feature_name(name: str) -> str:
    """A feature's name for people: those that were only counted are called "feature 7"."""
    return f"feature {name}" if name.isdigit() else name


_templates.filters |= {"number": number, "local": local, "feature_name": feature_name}
_templates.globals |= {"version": __version__, "plural": plural}
_templates.globals |= {"largest_file": LARGEST, "longest_invitation": int(MOST_HOURS)}


def render(template: str, **content: Any) -> bytes:
    """A page."""
    return _templates.get_template(template).render(**content).encode("utf-8")


def colour(group: int | None) -> str:
    """The CSS class of a group's colour: it follows the group's stable id."""
    return "gx" if group is None else f"g{(group - 1) % _COLOURS + 1}"


def round_up(value: float) -> float:
    """The next number of the form 1, 2, 2.5, 4, 5, 8 or 10 times a power of ten: a good end for an axis."""
    if not value > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 2.5, 4, 5, 8, 10) if value <= power * step * (1 + 1e-9))


def evidence_chart(history: dict[str, Any], needed_left: float | None) -> dict[str, Any] | None:
    """Evidence and threshold over the measurements, with room on the right for those that are still expected."""
    times: Sequence[int] = history["t"]
    if len(times) < 2:
        return None
    known = [value for key in ("statistic", "threshold") for value in history[key] if value is not None]
    top = round_up(max(known, default=1.0))
    last = times[-1]
    # The forecast is shown, but never squeezes what has been measured into less than half of the picture.
    end = last + min(needed_left or 0.0, float(last))

    def path(values: Sequence[float | None]) -> str:
        steps: list[str] = []
        pen = "M"
        for t, value in zip(times, values, strict=True):
            if value is None:
                pen = "M"
                continue
            x, y = WIDTH * t / end, HEIGHT * (1 - max(0.0, min(value, top)) / top)
            steps.append(f"M{x:.1f} {y:.1f}" if pen == "M" else f"H{x:.1f}V{y:.1f}")
            pen = "H"
        return "".join(steps)

    x_now, x_end = WIDTH * last / end, float(WIDTH)
    forecast = ""
    statistic, threshold = history["statistic"][-1], history["threshold"][-1]
    if x_end - x_now > 1 and statistic is not None and threshold is not None:
        y0, y1 = (HEIGHT * (1 - max(0.0, value) / top) for value in (statistic, threshold))
        forecast = f"M{x_now:.1f} {y0:.1f}L{x_end:.1f} {y1:.1f}"
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "statistic": path(history["statistic"]),
        "threshold": path(history["threshold"]),
        "forecast": forecast,
        "y_labels": [number(top), number(top / 2), "0"],
        "x_labels": ["0", number(round(end / 2)), number(round(end))],
        "readings": readings(
            [t / end for t in times],
            ["measurements", "evidence", "needed"],
            list(zip(times, history["statistic"], history["threshold"], strict=True)),
        ),
    }


def readings(
    at: Sequence[float], called: Sequence[str], values: Sequence[Sequence[Any]], named: Sequence[str] | None = None
) -> str:
    """What a chart says where it is pointed at, as JSON for chart.js: numbers at places from 0 to 1 across it.

    `named`: what stands at each place, if it has a name.
    """
    step = -(-len(at) // _READINGS)
    some = range((len(at) - 1) % step, len(at), step) if at else range(0)  # the last one is among them
    content = {
        "at": [round(at[i], 4) for i in some],
        "called": list(called),
        "values": [[None if value is None else float(f"{value:.5g}") for value in values[i]] for i in some],
        "named": None if named is None else [named[i] for i in some],
    }
    return json.dumps(content, ensure_ascii=False)


def pulls_chart(pulls: Sequence[int], groups: Sequence[int | None], names: Sequence[str]) -> dict[str, Any]:
    """One column an item, the groups side by side, for more items than can be listed."""
    order = sorted(range(len(pulls)), key=lambda arm: (groups[arm] or 0, arm))
    top = round_up(max([*pulls, 1]))
    step = WIDTH / max(1, len(order))
    paths: dict[str, list[str]] = {}
    for place, arm in enumerate(order):
        height = HEIGHT * pulls[arm] / top
        column = f"M{place * step:.2f} {HEIGHT}v{-height:.1f}h{step:.2f}v{height:.1f}z"
        paths.setdefault(colour(groups[arm]), []).append(column)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "paths": [(name, "".join(columns)) for name, columns in paths.items()],
        "y_labels": [number(top), number(top / 2), "0"],
        "readings": readings(
            [place / len(order) for place in range(len(order))],
            ["measurements"],
            [[pulls[arm]] for arm in order],
            [names[arm] for arm in order],
        ),
    }


def thumbnail(picture: dict[str, Any]) -> dict[str, Any] | None:
    """The items as dots, for a list of campaigns: on two axes, or by value with a row for each group."""
    dots = [item for item in picture["items"][:_DOTS] if item["mean"] and item["mean"][0] is not None]
    if len(dots) < 2:
        return None
    plane = dots[0].get("at") is not None
    ids = sorted({item["group_id"] or 0 for item in dots})

    def at(item: dict[str, Any]) -> tuple[float, float]:
        if plane:
            return item["at"][0] or 0.0, -(item["at"][1] or 0.0)
        return item["mean"][0], float(ids.index(item["group_id"] or 0))

    xs, ys = ([at(item)[axis] for item in dots] for axis in (0, 1))

    def scaled(values: list[float], length: float) -> list[float]:
        low, wide = min(values), max(values) - min(values)
        shares = [(value - low) / wide if wide else 0.5 for value in values]
        return [round(_MARGIN + (length - 2 * _MARGIN) * share, 1) for share in shares]

    marks = zip(scaled(xs, THUMB[0]), scaled(ys, THUMB[1]), dots, strict=True)
    return {"width": THUMB[0], "height": THUMB[1], "dots": [(x, y, colour(item["group_id"])) for x, y, item in marks]}


def plateau_chart(curve: dict[str, Any], marks: Sequence[tuple[str, float]] = ()) -> dict[str, Any]:
    """How many groups there are at least, and how many are enough, for every radius; the number on a log scale.

    `marks`: radii with their names. `plateaus`: where both numbers agree on more than one group, as (from, to, groups);
    `rows`: both numbers at the ticks of the axis, for people who read numbers.
    """
    radii: Sequence[float] = curve["radius"]
    # Between two radii: at least as many as at the next one, and as many are enough as at the one before.
    least, enough = curve["least"][1:], curve["enough"][:-1]
    end, top = radii[-1], 1.15 * max(2, *enough, *least)
    bottom = 0.85

    def x(radius: float) -> float:
        return WIDTH * radius / end

    def y(count: float) -> float:
        return HEIGHT * (1 - math.log(count / bottom) / math.log(top / bottom))

    def steps(counts: Sequence[int]) -> str:
        """A line over all radii, without its beginning."""
        return "".join(f"V{y(count):.1f}H{x(right):.1f}" for count, right in zip(counts, radii[1:], strict=True))

    upper = [max(pair) for pair in zip(least, enough, strict=True)]
    back = "".join(
        f"V{y(count):.1f}H{x(left):.1f}" for count, left in zip(reversed(least), reversed(radii[:-1]), strict=True)
    )
    plateaus = _plateaus(radii, least, enough)
    step = _tick_step(end)
    ticks = [step * place for place in range(int(end / step * (1 + 1e-9)) + 1)]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "unknown": f"M0 {y(upper[0]):.1f}{steps(upper)}{back}z",
        "least": f"M0 {y(least[0]):.1f}{steps(least)}",
        "enough": f"M0 {y(enough[0]):.1f}{steps(enough)}",
        "proven": "".join(f"M{x(start):.1f} {y(count):.1f}H{x(stop):.1f}" for start, stop, count in plateaus),
        "grid": "".join(f"M0 {y(count):.1f}H{WIDTH}" for count in _GROUP_TICKS if count <= top),
        "marks": [(name, f"{100 * radius / end:.2f}%") for name, radius in marks if radius <= end],
        "y_labels": [(number(count), f"{100 * y(count) / HEIGHT:.2f}%") for count in _GROUP_TICKS if count <= top],
        "x_labels": [(number(tick), f"{100 * tick / end:.2f}%") for tick in ticks],
        "readings": readings(
            [radius / end for radius in radii],
            ["radius", "at least", "enough"],
            [(radius, *_numbers_at(curve, radius)) for radius in radii],
        ),
        "plateaus": [plateau for plateau in plateaus if plateau[2] > 1],
        "rows": [(tick, *_numbers_at(curve, tick)) for tick in ticks],
    }


def _plateaus(radii: Sequence[float], least: Sequence[int], enough: Sequence[int]) -> list[tuple[float, float, int]]:
    """Ranges of radii in which both numbers are the same: from, to, the number."""
    plateaus: list[tuple[float, float, int]] = []
    for place, (low, high) in enumerate(zip(least, enough, strict=True)):
        if low != high:
            continue
        if plateaus and plateaus[-1][1:] == (radii[place], low):
            plateaus[-1] = (plateaus[-1][0], radii[place + 1], low)
        else:
            plateaus.append((radii[place], radii[place + 1], low))
    return plateaus


def _tick_step(end: float) -> float:
    """A round distance of ticks, of which there are three to six up to `end`."""
    power = 10.0 ** math.floor(math.log10(end / 5))
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step * (1 + 1e-9) >= end / 5)


def _numbers_at(curve: dict[str, Any], radius: float) -> tuple[int, int]:
    """At least and enough at a radius, as `coterie.session.resolution_curve.ResolutionCurve.at` has them."""
    after, before = bisect_left(curve["radius"], radius), bisect_right(curve["radius"], radius) - 1
    return curve["least"][after] if after < len(curve["least"]) else 1, curve["enough"][before]
