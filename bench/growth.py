"""How the time a pull of BOC, the time a measurement of CROC and CROC's measurements grow with M, K and d.

Every point in a process of its own, but in a quick run. BOC: groups well apart, after the first pass over the arms and
1 000 pulls more.
CROC: a whole run at δ = 0.1 with smallest gap 12, the first pass included. Exponents by least squares of log on log.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.instances import separated
from bench.pace import measured, peak
from bench.part import Column, Headline, Part, Progress, Row, number
from bench.rounds import NO_ARMS, apart, endless

USUAL = {"M": 1_000, "K": 10, "d": 8}
POINTS: dict[str, tuple[int, ...]] = {
    "M": (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "K": (2, 3, 5, 10, 20, 30, 50),
    "d": (1, 3, 10, 30, 100, 200, 400, 700, 1_000),
}
QUICK_POINTS: dict[str, tuple[int, ...]] = {"M": (300, 1_000, 3_000), "K": (2, 10, 20), "d": (1, 30, 100)}
FIT_FROM = {"M": 1_000, "K": 10, "d": 100}
"""Below, what does not depend on K or d is most of the time; the exponent would say nothing."""

BOC_TIME, CROC_TIME, CROC_COUNT = "BOC, µs a pull", "CROC, µs a measurement", "CROC, measurements"
CHUNKS = 5


def boc_pace(n_arms: int, n_clusters: int, dim: int, pulls: int) -> Row:
    """In this process: median seconds a pull over a few stretches, of the first pass, and peak memory."""
    instance = separated(n_arms, n_clusters, dim)
    small = separated(20, 2, 2)
    rng = np.random.default_rng(1)
    endless(small, "boc").play(100, small.centers, small.labels, rng, NO_ARMS)  # loads
    run = endless(instance, "boc")
    start = time.process_time()
    run.play(n_arms, instance.centers, instance.labels, rng, NO_ARMS)
    first, each = time.process_time() - start, []
    run.play(1000, instance.centers, instance.labels, rng, NO_ARMS)
    for _ in range(CHUNKS):
        start = time.process_time()
        run.play(pulls, instance.centers, instance.labels, rng, NO_ARMS)
        each.append((time.process_time() - start) / pulls)
    return {"microseconds": float(np.median(each)) * 1e6, "first_pass": first, "gib": peak()}


def exponent(x: Any, y: Any, start: float) -> dict[str, float] | None:
    """Least squares of log y on log x from x = start: slope, its standard error. None for fewer than three points."""
    from scipy.stats import linregress

    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    used = x >= start
    if used.sum() < 3:
        return None
    line = linregress(np.log(x[used]), np.log(y[used]))
    return {
        "slope": float(line.slope), "error": float(line.stderr), "factor": float(np.exp(line.intercept)),
        "from": float(x[used].min()), "to": float(x[used].max()),
    }  # fmt: skip


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each point, and one for each fit."""
    found: list[Row] = []
    done = 0
    points = QUICK_POINTS if quick else POINTS
    total = sum(map(len, points.values()))
    for axis, values in points.items():
        own: list[Row] = []
        for value in values:
            n_arms, n_clusters, dim = (USUAL | {axis: value}).values()
            shape = n_arms, n_clusters, dim
            if quick:
                boc, croc = boc_pace(*shape, 2_000), measured(*shape, 12.0)
            else:
                boc, croc = apart("bench.growth:boc_pace", *shape, 50_000), apart("bench.pace:measured", *shape, 12.0)
            own.append(
                {
                    "axis": axis, "value": value, BOC_TIME: boc["microseconds"], CROC_TIME: croc["microseconds"],
                    CROC_COUNT: croc["t"], "boc_first_pass": boc["first_pass"], "boc_gib": boc["gib"],
                    "croc_gib": croc["gib"], "right": croc["right"],  # right: proven, too
                }
            )  # fmt: skip
            done += 1
            text = f"{axis} = {value:,}: BOC {boc['microseconds']:.2f} µs a pull, CROC {croc['microseconds']:.1f} µs"
            progress.done(text, done / total)
        found += own
        found += _fits(axis, own, min(FIT_FROM[axis], values[0]) if quick else FIT_FROM[axis])
    draw(found, folder)
    return found


def _fits(axis: str, own: list[Row], start: float) -> list[Row]:
    series = (BOC_TIME, CROC_TIME, CROC_COUNT) if axis == "M" else (BOC_TIME, CROC_TIME)
    fits = {}
    for name in series:
        used = [row for row in own if name == BOC_TIME or row["right"]]  # a run that was cut off says nothing
        fits[name] = exponent([row["value"] for row in used], [row[name] for row in used], start)
    return [{"axis": axis, "value": None, "fits": {name: fit for name, fit in fits.items() if fit is not None}}]


def draw(found: list[Row], folder: Path) -> None:
    """growth-m.png, growth-k.png and growth-d.png."""
    from matplotlib.ticker import NullFormatter

    from coterie.plot.canvas import axes_for, colour_of, marker_of

    for axis in dict.fromkeys(row["axis"] for row in found):
        points = [row for row in found if row["axis"] == axis and row["value"] is not None]
        fits = next(row["fits"] for row in found if row["axis"] == axis and row["value"] is None)
        x = [row["value"] for row in points]
        ax = axes_for(None)
        panels = [ax]
        if axis == "M":  # measurements are not times: a panel of their own
            figure: Any = ax.figure
            figure.clear()
            panels = list(figure.subplots(1, 2))
        for i, name in enumerate((BOC_TIME, CROC_TIME, *((CROC_COUNT,) if axis == "M" else ()))):
            panel = panels[-1] if name == CROC_COUNT else panels[0]
            panel.plot(x, [row[name] for row in points], marker_of(i), color=colour_of(i), label=name.split(",")[0])
            if name in fits:
                fit = fits[name]
                ends = np.array([fit["from"], fit["to"]])
                label = f"exponent {fit['slope']:.2f} ± {fit['error']:.2f}"
                panel.plot(ends, fit["factor"] * ends ** fit["slope"], color=colour_of(i), linewidth=1, label=label)
        for panel in panels:
            panel.set(xscale="log", yscale="log", xlabel=axis)
            if axis == "K":  # little more than a decade: name the points themselves
                panel.set_xticks(x, labels=[str(value) for value in x])
            for side in (panel.xaxis, panel.yaxis):
                side.set_minor_formatter(NullFormatter())
            panel.spines[["top", "right"]].set_visible(False)
            panel.grid(color="#E4E4E4", linewidth=0.6)
            panel.set_axisbelow(True)
            panel.legend(fontsize="small", frameon=False)
        panels[0].set_ylabel("µs a pull or measurement")
        if axis == "M":
            panels[1].set_ylabel("measurements")
        held = ", ".join(f"{other} = {value:,}" for other, value in USUAL.items() if other != axis)
        panels[0].set_title(held, loc="left", fontsize="small")
        save(ax.figure, folder / f"growth-{axis.lower()}.png")


def save(figure: Any, path: Path) -> None:
    """As a PNG of few colours, which is a third of the size."""
    from io import BytesIO

    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    raw = BytesIO()
    figure.savefig(raw, format="png", dpi=150)
    Image.open(raw).convert("RGB").quantize(64).save(path, optimize=True)


def _fit_text(name: str) -> Any:
    def text(row: Row) -> str:
        if row["value"] is not None:
            shown = f"{row[name]:,.0f}" if name == CROC_COUNT else f"{row[name]:.2f}"
            return shown if name == BOC_TIME or row["right"] else f"({shown})"
        fit = row["fits"].get(name)
        return "" if fit is None else f"^{fit['slope']:.2f} ± {fit['error']:.2f}"

    return text


def _range(row: Row) -> str:
    fits = list(row.get("fits", {}).values())
    return "" if not fits else f"exponents, from {number(fits[0]['from'])}"


def headlines(found: list[Row]) -> list[Headline]:
    return [
        Headline(
            f"{name}: exponent in {row['axis']} from {number(fit['from'])} to {number(fit['to'])}",
            f"{fit['slope']:.2f} ± {fit['error']:.2f}",
        )
        for row in found
        if row["value"] is None
        for name, fit in row["fits"].items()
    ]


PART = Part(
    f"Growth in M, K and d; otherwise {', '.join(f'{name} = {value:,}' for name, value in USUAL.items())}. "
    "Seconds of the processor; random numbers\n"
    "included. One run a point; in brackets: not proven or wrong, and not fitted.",
    (
        Column("", "axis", left=True),
        Column("value", lambda row: _range(row) if row["value"] is None else f"{row['value']:,}"),
        *(Column(name, _fit_text(name)) for name in (BOC_TIME, CROC_TIME, CROC_COUNT)),
        Column("BOC: first pass, s", lambda row: row.get("boc_first_pass", ""), lambda x: f"{x:.2f}" if x != "" else x),
        Column("BOC, GiB", lambda row: row.get("boc_gib", ""), lambda x: f"{x:.2f}" if x != "" else x),
        Column("CROC, GiB", lambda row: row.get("croc_gib", ""), lambda x: f"{x:.2f}" if x != "" else x),
    ),
    rows,
    headlines,
    section="axis",
    seconds=150,
)
