"""Tables as CSV and Markdown."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coterie.paper.printed import MNIST_DIMS
from coterie.paper.summary import Row

TITLES = {
    "table1": "Table 1: Iris and Yeast, BOC and Uniform (table_real)",
    "table2": "Table 2: forced against linear exploration (table_linear)",
    "table3": "Table 3: MNIST (the paper's label table1, in its appendix)",
    "figure3": "Figure 3: the synthetic instances (figure_main)",
}

INSTANCE_NAMES = {
    "iris": "Iris",
    "yeast": "Yeast",
    "challenging-rescaled": "challenging, rescaled to D* = 2",
    "easy": "easy",
    "moderate": "moderate",
    "challenging": "challenging",
}

METHOD_NAMES = {
    ("boc", "heuristic"): "BOC, heuristic β̃",
    ("boc", "proven"): "BOC, proven β",
    ("boc-linear", "heuristic"): "BOC with linear exploration, β̃",
    ("uniform", "heuristic"): "Uniform, β̃",
    ("uniform", "proven"): "Uniform, β",
    ("oracle", "heuristic"): "Oracle, β̃",
    ("oracle", "proven"): "Oracle, β",
    ("croc", "certificate"): "CROC (proven)",
}


def instance_name(key: str) -> str:
    """For people."""
    if key.startswith("mnist"):
        _, dim, reading = key.split("-")
        return f"MNIST d = {dim}, " + ("implied scale" if reading == "implied" else "as described, D* = 2")
    return INSTANCE_NAMES[key]


def power(delta: float) -> str:
    """1e-05 as 1e-5."""
    digits, _, exponent = f"{delta:.0e}".partition("e")
    return f"{digits}e{int(exponent)}"


def write_csv(path: Path, rows: Sequence[Any]) -> None:
    """One line for each row, its fields as columns."""
    listed = [row.to_dict() for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, listed[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(listed)


def blocks_of(part: str, rows: list[Row]) -> list[tuple[str, list[Row], str]]:
    """(heading, rows, what the rows are told apart by) of the tables of a part: one for each instance or reading."""
    if part == "table3":
        return [
            (
                "at the scale that the printed numbers imply"
                if reading == "implied"
                else "as the text describes it: rescaled to D* = 2",
                [row for row in rows if row.instance.endswith(reading)],
                "d",
            )
            for reading in ("implied", "described")
        ]
    instances = list(dict.fromkeys(row.instance for row in rows))
    return [(instance_name(name), [row for row in rows if row.instance == name], "δ") for name in instances]


def key_of(row: Row, by: str) -> str:
    """The first column of a row."""
    return row.instance.split("-")[1] if by == "d" else power(row.delta)


def columns_of(rows: list[Row]) -> list[tuple[str, str]]:
    """The (method, threshold) pairs in the order in which they are shown: printed ones first."""
    order = list(METHOD_NAMES)
    return sorted({(row.method, row.threshold) for row in rows}, key=order.index)


def markdown_of(part: str, rows: list[Row]) -> str:
    """All tables of a part: ours, and beside it what the paper prints."""
    lines = [f"# {TITLES[part]}", ""]
    for heading, block, by in blocks_of(part, rows):
        columns = columns_of(block)
        lines += [f"## {heading}", ""]
        names = []
        for column in columns:
            names.append(METHOD_NAMES[column])
            if any(row.printed is not None for row in block if (row.method, row.threshold) == column):
                names += ["printed", "difference"]
        lines += [
            "| " + " | ".join([by, *names, "wrong"]) + " |",
            "| " + " | ".join(["---", *("---:" for _ in names), "---:"]) + " |",
        ]
        cells = {(key_of(row, by), row.method, row.threshold): row for row in block}
        for key in dict.fromkeys(key_of(row, by) for row in block):
            shown = [key]
            wrong = stops = 0
            for column in columns:
                row = cells.get((key, *column))
                shown += markdown_cells(row, any(r.printed is not None for r in block
                                                 if (r.method, r.threshold) == column))  # fmt: skip
                wrong, stops = (wrong + row.wrong, stops + row.trials) if row else (wrong, stops)
            lines.append("| " + " | ".join([*shown, f"{wrong} of {stops}"]) + " |")
        lines.append("")
    lines.append(
        "Means ± standard deviations of the measurements (median in brackets where it differs, and for Yeast)"
        + ("" if part == "figure3" else "; difference in combined standard errors")
        + (f" and per cent. d = {', '.join(map(str, MNIST_DIMS))}; δ = 0.01." if part == "table3" else ".")
    )
    return "\n".join(lines) + "\n"


def markdown_cells(row: Row | None, with_printed: bool) -> list[str]:
    """Ours, and the printed number with the difference if the column has any."""
    if row is None:
        return ["–"] * (3 if with_printed else 1)
    shown = [number(row)]
    if with_printed:
        shown += [
            f"{row.printed:,.1f} ± {row.printed_std:,.1f}",
            f"{row.difference_in_errors:+.1f} ({row.difference:+.1%})",
        ]
    return shown


def number(row: Row) -> str:
    """Mean ± deviation, with the median where the distribution is lopsided, and what was given up."""
    text = f"{row.mean:,.1f} ± {row.std:,.1f}"
    if row.instance == "yeast" or abs(row.median - row.mean) > 0.01 * row.mean:  # Yeast's distribution is lumpy
        text += f" ({row.median:,.0f})"
    return text
