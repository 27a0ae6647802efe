"""Charts as numbers and SVG paths, from the same dictionaries that the API sends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from coterie.web.rendering import number

WIDTH, HEIGHT = 1000, 300
_COLOURS = 10


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
    }


def pulls_chart(pulls: Sequence[int], groups: Sequence[int | None]) -> dict[str, Any]:
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
    }
