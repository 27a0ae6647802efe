"""The tables of the report: ours beside the printed numbers, checks, slopes, and the times of all cells.

A `Table` has a title, columns, rows and notes; templates render it as HTML and as Markdown. Cells say what they mean,
not how they look: a difference is two numbers, and each format writes them in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from coterie.paper.cells import METHOD_NAMES, READING_NAMES, READINGS, cells_of, instance_name, power
from coterie.paper.summary import Check, Row, agrees, judged_by_share

if TYPE_CHECKING:
    from coterie.paper.reproduce import Reproduction
    from coterie.paper.slopes import Slope


@dataclass(frozen=True)
class Column:
    """A column: its heading, whether it holds words (else numbers), and whether a line stands to its left."""

    title: str
    words: bool = False
    opens_group: bool = False
    short_title: str | None = None

    @property
    def narrow_title(self) -> str:
        """The heading where the columns are narrow."""
        return self.title if self.short_title is None else self.short_title


@dataclass(frozen=True)
class Text:
    """A cell that both formats show as it is. `tone` is "good", "bad" or neither; `link` is an address."""

    kind: ClassVar[str] = "text"
    text: str
    tone: str = ""
    link: str = ""


@dataclass(frozen=True)
class Difference:
    """How far a mean is from the printed one: in combined standard errors, and as a share of the printed one."""

    kind: ClassVar[str] = "difference"
    errors: float
    share: float
    judged_by_share: bool
    agrees: bool

    @property
    def tone(self) -> str:
        """Whether it agrees, as a class of the style sheet."""
        return "good" if self.agrees else "bad"


@dataclass(frozen=True)
class WrongCount:
    """How many of how many stops gave wrong groups; `details` say which methods' they were."""

    kind: ClassVar[str] = "wrong"
    tone: ClassVar[str] = ""
    wrong: int
    stops: int
    details: tuple[str, ...] = ()


Cell: TypeAlias = Text | Difference | WrongCount | None
"""None: there is no such number."""


@dataclass(frozen=True)
class Table:
    """A table. With `row_headings` the first cell of a row is the heading of the row."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: Sequence[str] = ()
    row_headings: bool = False


def comparison_tables(part: str, rows: list[Row]) -> list[Table]:
    """The tables of a part, one for each instance; for table3, whose rows are the d, one for each reading."""
    if part == "table3":
        readings = {reading: [row for row in rows if row.instance.endswith(reading)] for reading in READINGS}
        return [_comparison(READING_NAMES[reading], own, "d") for reading, own in readings.items()]
    instances = dict.fromkeys(row.instance for row in rows)
    return [_comparison(instance_name(name), [row for row in rows if row.instance == name], "δ") for name in instances]


def columns_of(rows: list[Row]) -> list[tuple[str, str]]:
    """The (method, threshold) pairs in the order in which they are shown."""
    order = list(METHOD_NAMES)
    return sorted({(row.method, row.threshold) for row in rows}, key=order.index)


def _comparison(title: str, rows: list[Row], by: str) -> Table:
    """A line for each `by` ("δ" or "d"); for each method our mean and, where the paper has it, the printed one."""
    methods = columns_of(rows)
    printed = {(row.method, row.threshold) for row in rows if row.printed is not None}
    columns = [Column(by, words=True)]
    for method in methods:
        columns.append(Column(METHOD_NAMES[method], opens_group=True))
        columns += [Column("printed"), Column("difference", short_title="off by")] if method in printed else []
    cells = {(_heading(row, by), row.method, row.threshold): row for row in rows}
    lines = []
    for heading in dict.fromkeys(_heading(row, by) for row in rows):
        own = {method: cells.get((heading, *method)) for method in methods}
        shown = [cell for method, row in own.items() for cell in _cells_of_row(row, method in printed)]
        wrong = _wrong_count([row for row in own.values() if row is not None])
        lines.append([Text(heading), *shown, wrong])
    columns.append(Column("wrong", opens_group=True))
    return Table(columns, lines, title, [_note(rows)], row_headings=True)


def _heading(row: Row, by: str) -> str:
    """The first cell of a row's line."""
    return row.instance.split("-")[1] if by == "d" else power(row.delta)


def _cells_of_row(row: Row | None, with_printed: bool) -> list[Cell]:
    """Our mean and, if its method has printed ones, the printed mean and the difference."""
    if row is None:
        return [None] * (3 if with_printed else 1)
    shown: list[Cell] = [Text(mean_text(row))]
    if with_printed:
        assert row.difference is not None
        assert row.difference_in_errors is not None
        shown += [
            Text(f"{row.printed:,.1f} ± {row.printed_std:,.1f}"),
            Difference(row.difference_in_errors, row.difference, judged_by_share(row), agrees(row)),
        ]
    return shown


def mean_text(row: Row) -> str:
    """Mean ± standard deviation, with the median where the distribution is lopsided."""
    text = f"{row.mean:,.1f} ± {row.std:,.1f}"
    if row.instance == "yeast" or abs(row.median - row.mean) > 0.01 * row.mean:  # Yeast's distribution is lumpy
        text += f" ({row.median:,.0f})"
    return text


def _wrong_count(rows: list[Row]) -> WrongCount:
    remarks = [f"{METHOD_NAMES[row.method, row.threshold]}: {row.wrong}" for row in rows if row.wrong]
    remarks += [f"{METHOD_NAMES[row.method, row.threshold]}: {row.given_up} given up" for row in rows if row.given_up]
    return WrongCount(sum(row.wrong for row in rows), sum(row.trials for row in rows), tuple(remarks))


def _note(rows: list[Row]) -> str:
    counts = sorted({row.trials for row in rows})
    trials = str(counts[0]) if len(counts) == 1 else f"{counts[-1]} (with the proven β {counts[0]})"
    return (
        f"mean ± standard deviation (median where it differs, and for Yeast) of {trials} trials; off by: combined "
        "standard errors (se) and per cent; CROC makes a run of its own for each δ, and in the figure for fewer of them"
    )


def checks_table(checks: Sequence[Check]) -> Table:
    """What should hold, and whether it does."""
    columns = [Column(title, words=True) for title in ("part", "", "what should hold", "what was found")]
    lines = [
        [
            Text(check.part, link=f"#{check.part}"),
            Text("✓", "good") if check.holds else Text("✗", "bad"),
            Text(check.claim),
            Text(check.detail),
        ]
        for check in checks
    ]
    return Table(columns, lines)


def slopes_table(slopes: Sequence[Slope]) -> Table:
    """The fitted slopes of figure3 beside the formula and D*."""
    numbers = ("D*", "slope, δ 1e-1 … 1e-10", "slope, δ 1e-200 … 1e-300", "formula", "limit", "in D*")
    columns = [Column("instance", words=True), Column("method", words=True), *map(Column, numbers)]
    lines = [
        [
            Text(instance_name(slope.instance)),
            Text(METHOD_NAMES[slope.method, slope.threshold]),
            Text(f"{slope.hardness:.4g}"),
            Text(f"{slope.fitted_paper:.4g}"),
            Text(f"{slope.fitted_end:.4g} ± {slope.error_end:.2g}"),
            Text("–" if slope.predicted_end is None else f"{slope.predicted_end:.4g}"),
            Text(f"{slope.limit:.4g}"),
            Text(f"{slope.fitted_end / slope.hardness:.3f}"),
        ]
        for slope in slopes
    ]
    return Table(columns, lines, "Fitted slopes beside D*")


def part_times_table(reproduction: Reproduction) -> Table:
    """The time of each part, of table3 for each reading; a cell that two parts share counts in both."""
    lines = []
    for part in reproduction.parts:
        own = [reproduction.results[cell.name] for cell in cells_of(part, reproduction.trials)]
        groups = [(part, own)]
        if part == "table3":
            groups = [
                (f"table3, {reading}", [result for result in own if result.cell.instance.endswith(reading)])
                for reading in READINGS
            ]
        lines += [
            [
                Text(name),
                Text(str(len(results))),
                Text(f"{sum(result.seconds for result in results):.1f} s"),
                Text(f"{sum(result.wall for result in results):.1f} s"),
            ]
            for name, results in groups
        ]
    return Table([Column("part", words=True), *map(Column, ("cells", "core time", "time passed"))], lines)


def cell_times_table(reproduction: Reproduction) -> Table:
    """Trials, pulls and time of every cell."""
    numbers = ("thresholds", "trials", "pulls", "core time", "time passed", "pulls/s and core")
    columns = [Column("instance", words=True), Column("method", words=True), *map(Column, numbers)]
    lines = [
        [
            Text(instance_name(result.cell.instance)),
            Text(result.cell.method),
            Text(", ".join(result.by_threshold)),
            Text(str(result.cell.trials)),
            Text(f"{result.pulls:,}"),
            Text(f"{result.seconds:.1f} s"),
            Text(f"{result.wall:.1f} s"),
            Text(f"{result.pulls_per_second:,.0f}"),
        ]
        for result in reproduction.results.values()
    ]
    return Table(columns, lines)
