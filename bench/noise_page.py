"""Tables of docs/MEASURED.md from the kept results of `coterie bench noise`: what each statement costs, what voids it.

`python -m bench.page` writes them between their marks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.part import RESULTS, Row, number
from bench.running import kept

KNOWN = "known"
NONE = "–"


def tables(place: str, folder: Path = RESULTS) -> str:
    """The table of a place on the page; nothing if no results were kept."""
    content = kept("noise", folder)
    return "" if content is None else PLACES[place](content["rows"])


def costs(rows: list[Row]) -> str:
    """Measurements of every statement as multiples of those with the known noise, where that is known."""
    some = [row for row in rows if row["promised"]]
    cases = list(dict.fromkeys(row["case"] for row in some if row["method"] == KNOWN))
    told = list(dict.fromkeys(row["method"] for row in some if row["case"] in cases))
    found = {(row["case"], row["method"], row["delta"]): row["mean"] for row in some}

    def factor(case: str, method: str, delta: float) -> str:
        mean, known = found.get((case, method, delta)), found.get((case, KNOWN, delta))
        return NONE if mean is None or known is None else f"{mean / known:.2f}"

    return _markdown(
        ["told", *cases],
        [[method, *(_each_delta(some, factor, case, method) for case in cases)] for method in told],
    )


def other_noises(rows: list[Row]) -> str:
    """Measurements in worlds whose noise no known covariance describes."""
    some = [row for row in rows if row["promised"]]
    gaussian = {row["case"] for row in some if row["method"] == KNOWN}
    some = [row for row in some if row["case"] not in gaussian]
    cases, told = (list(dict.fromkeys(row[key] for row in some)) for key in ("case", "method"))
    found = {(row["case"], row["method"], row["delta"]): row["mean"] for row in some}

    def measurements(case: str, method: str, delta: float) -> str:
        mean = found.get((case, method, delta))
        return NONE if mean is None else number(mean)

    return _markdown(
        ["instance and world", *told],
        [[case, *(_each_delta(some, measurements, case, method) for method in told)] for case in cases],
    )


def not_covered(rows: list[Row]) -> str:
    """Worlds that a statement does not cover: measurements, and how many of the runs were wrong."""
    some = [row for row in rows if not row["promised"]]
    return _markdown(
        ["instance and world", "told", "measurements", "wrong"],
        [
            [row["case"], row["method"], NONE if row["mean"] is None else number(row["mean"]),
             f"{row['wrong']} of {row['trials']}"]
            for row in some
        ],
    )  # fmt: skip


PLACES = {"noise_costs": costs, "noise_other": other_noises, "noise_not_covered": not_covered}


def _each_delta(rows: list[Row], text: Callable[[str, str, float], str], case: str, method: str) -> str:
    """The figures of a statement for every δ of its case, the largest first; one dash if there are none."""
    deltas = sorted({row["delta"] for row in rows if row["case"] == case}, reverse=True)
    figures = [text(case, method, delta) for delta in deltas]
    return NONE if set(figures) == {NONE} else " / ".join(figures)


def _markdown(heading: list[str], lines: list[list[str]]) -> str:
    ruled = [heading, ["---"] + ["---:"] * (len(heading) - 1), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in ruled) + "\n"
