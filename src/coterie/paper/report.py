"""report.html and a Markdown file for each part: ours beside the printed numbers, what agrees, what differs and why.

The page is one file that loads nothing. Its words are in `templates/`, its tables are those of
`coterie.paper.report_tables`.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from coterie.paper.names import TITLES
from coterie.paper.printed import MNIST_DIMS
from coterie.paper.provenance import machine
from coterie.paper.rendering import render
from coterie.paper.report_tables import (
    cell_times_table,
    checks_table,
    comparison_tables,
    part_times_table,
    slopes_table,
)

if TYPE_CHECKING:
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


def write_report(found: Reproduction) -> None:
    """Write the page."""
    page = render(
        "report.html",
        held=sum(check.holds for check in found.checks),
        checked=len(found.checks),
        summary=_summary(found),
        checks=checks_table(found.checks),
        parts=[_part(found, part) for part in found.parts],
        part_times=part_times_table(found),
        cell_times=cell_times_table(found),
        seconds_a_pull=_seconds_a_pull(found),
        **_facts(found),
    )
    found.report.write_text(page, encoding="utf-8")


def markdown_of(part: str, rows: list[Row]) -> str:
    """All tables of a part as Markdown: ours, and beside it what the paper prints."""
    note = "Means ± standard deviations of the measurements (median in brackets where it differs, and for Yeast)"
    note += "" if part == "figure3" else "; difference in combined standard errors"
    note += f" and per cent. d = {', '.join(map(str, MNIST_DIMS))}; δ = 0.01." if part == "table3" else "."
    return render("part.md", title=TITLES[part], tables=comparison_tables(part, rows), note=note)


def _part(found: Reproduction, part: str) -> dict[str, Any]:
    """A section of the page: pictures as data, so that ids inside one do not meet those of another, and tables."""
    pictures = [
        {"name": name, "caption": CAPTIONS.get(name, ""), "base64": base64.b64encode(svg.encode()).decode()}
        for name, svg in found.pictures[part].items()
    ]
    tables = [slopes_table(found.slopes)] if part == "figure3" else []
    tables += comparison_tables(part, found.rows[part])
    return {"name": part, "title": TITLES[part], "pictures": pictures, "tables": tables}


def _summary(found: Reproduction) -> str:
    """What was reproduced and what was not, in words."""
    parts = [part for part in found.parts if part != "table3"]
    fine = [part for part in parts if all(check.holds for check in found.checks if check.part == part)]
    text = f"Reproduced: {', '.join(fine) or 'none'}." if parts else ""
    if "table3" in found.parts:
        text += " Not reproduced as described: table3, whose numbers fit another scale; see there why."
    if rest := [part for part in parts if part not in fine]:
        text += f" With a check that does not hold: {', '.join(rest)}."
    return text


def _facts(found: Reproduction) -> dict[str, Any]:
    """Seed, trials, time, machine, and the command that does it again."""
    taken_over = sum(result.taken_over for result in found.results.values())
    redone = sum(result.redone for result in found.results.values())
    remarks = [f"{taken_over} trials taken over from an earlier run"] if taken_over else []
    remarks += [] if found.cluster is None else [f"on the Dask cluster {found.cluster}"]
    remarks += [f"{redone} damaged lines found and their trials run again"] if redone else []
    part = found.parts[0] if len(found.parts) == 1 else "all"
    trials = "" if found.trials is None else f" --trials {found.trials}"
    return {
        "seed": found.seed,
        "trials": "as many trials as the tables say"
        if found.trials is None
        else f"{found.trials} trials a cell (fewer with β)",
        "minutes": found.seconds / 60,
        "remarks": remarks,
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": ", ".join(f"{name} {value}" for name, value in machine().items()),
        "command": f"coterie reproduce {part}{trials} --seed {found.seed}",
    }


def _seconds_a_pull(found: Reproduction) -> float | None:
    """Core time of a pull of BOC on Yeast, if that was run."""
    yeast = found.results.get("yeast-boc")
    return None if yeast is None else yeast.seconds / yeast.pulls
