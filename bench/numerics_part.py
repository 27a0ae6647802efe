"""The part `numerics`: how its rows are printed. What is measured is in `bench.numerics`."""

from __future__ import annotations

from pathlib import Path

from bench import numerics
from bench.part import Column, Headline, Part, Progress, Row, sign

QUICK_PULLS, QUICK_PART = 100_000, 20_000


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    if quick:
        return numerics.paper_method(numerics.SEPARATED, "boc", QUICK_PULLS, QUICK_PART)
    return numerics.rows()


def headlines(found: list[Row]) -> list[Headline]:
    """The worst error of each run, and whether its arms are the same."""
    lines = []
    for what in dict.fromkeys(row["what"] for row in found):
        judged = [row for row in found if row["what"] == what and row["met"] is not None]
        errors = [row for row in judged if row["relative"] is not None]
        worst = max(max(row["relative"], row["relative_to_gap"] or 0.0) for row in errors)
        met = all(row["met"] for row in errors)
        lines.append(
            Headline(f"{what}: worst relative error of all sums, {errors[0]['pulls']:,} pulls", f"{worst:.1e}",
                     f"≤ {numerics.ASKED:g}", met)
        )  # fmt: skip
        same = [row["met"] for row in judged if row["relative"] is None]
        lines.append(Headline(f"{what}: arms", "identical" if all(same) else "differ", "identical", all(same)))
    return lines


PART = Part(
    f"Rounding after {numerics.PULLS:,} pulls, centers at 10⁶: what is kept up against exact sums.",
    (
        Column("run", "what", left=True),
        Column("quantity", "quantity", left=True),
        Column("relative error", lambda row: "" if row["relative"] is None else f"{row['relative']:.1e}"),
        Column("of the gap", lambda row: "" if row["relative_to_gap"] is None else f"{row['relative_to_gap']:.1e}"),
        Column("goal", "asked", left=True),
        Column("", lambda row: sign(row["met"])),
        Column("", "detail", left=True),
    ),
    rows,
    headlines,
    section="what",
    seconds=300,
)
