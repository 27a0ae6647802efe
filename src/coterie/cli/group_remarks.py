"""What `coterie group` says beside its answer: what voids a proof, rows that do not belong, what was read, the noise.

A remark is a text of one or more lines; how much it matters shows at how it begins (`by_weight`).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coterie.cli.options import in_option_words
from coterie.cli.printing import first_names

if TYPE_CHECKING:
    from coterie.problem.families import Model
    from coterie.tables.analysis import Analysis
    from coterie.tables.checks.assumptions import CheckedPool
    from coterie.tables.pool import Cut, Reading

_MANY = 12
_FEW = 3  # values that are shown of a column with heavy tails
_SHORT = 4  # a covariance of so many columns is printed
_NOTES = ("note: ", "Left out", "Measured only once: ")


def remarks(answer: Analysis) -> list[str]:
    """All that is said about a table beside the answer."""
    noise = answer.checks.noise
    return [
        *_slip_remarks(answer),
        *([] if answer.out_of_order else _order_remarks(answer)),
        *_reading_remarks(answer.reading),
        *(_known_noise_remarks(answer) if answer.checks.deviations is not None else _noise_remarks(answer, noise)),
    ]


def by_weight(texts: Sequence[str]) -> list[str]:
    """Remarks, what matters most first: warnings, then what was left out or could be done better, then what is so."""
    return sorted(texts, key=lambda text: 0 if text.startswith("warning: ") else 1 if text.startswith(_NOTES) else 2)


def assumed_of_noise(answer: Analysis) -> list[str]:
    """What is assumed about a noise whose size was not stated; of blocks it stands with the rest of what is assumed."""
    noise = answer.checks.noise
    if answer.checks.deviations is not None or answer.pool.blocks is not None:
        return []
    return [f"Noise: {noise.words}. Assumed: {noise.assumption}."]


# What voids a proof: part of the answer.


def void_lines(answer: Analysis) -> list[str]:
    """Why nothing is proven although it may look so: the rows contradict what was stated about them."""
    return [f"Nothing is proven: {reason}" for reason in [*_void_noise(answer), *_void_rows(answer)]]


def _void_noise(answer: Analysis) -> list[str]:
    checks, columns = answer.checks, answer.pool.columns
    small = [i for i, verdict in enumerate(checks.verdicts) if verdict == "too small"]
    if small or checks.direction is not None:
        if checks.deviations is not None:
            which = f"repeats of {_columns(columns, small)} vary" if small else _in_a_direction(checks, columns)
            return [
                f"{which} more than the noise stated. {_advice(checks)}, or find out why they vary (a drift, a sample "
                "mixed up)."
            ]
        which = f"repeats of {_columns(columns, small)} vary" if small else "a weighted sum of columns varies"
        return [
            f"{which} more than the noise stated, whatever its distribution. State a larger bound, or leave --noise "
            "out, or find out why they vary (a slip, a drift, a sample mixed up)."
        ]
    if checks.rows_contradict:
        places = list(dict.fromkeys(answer.pool.place(slip.row) for slip in checks.beyond))
        return [
            f"{first_names(places)} cannot come from the noise stated. Correct slips in the file, or leave --noise "
            "out: under any noise results may lie that far off."
        ]
    return []


def _void_rows(answer: Analysis) -> list[str]:
    reasons, cut = [], answer.pool.cut
    if cut is not None and cut.bursts:
        reasons.append(
            f"the rates of an item's rows differ more than independent {cut.trials} allow (p = {cut.p:.2g}): "
            f"{cut.successes} come in bursts, or the rate changes. Make rows of equally many {cut.trials}, and leave "
            "--noise out."
        )
    if answer.out_of_order and answer.row_order is not None:
        reasons.append(in_option_words(answer.row_order.text).replace(", so nothing is proven.", "."))
    return reasons


# What was read.


def _reading_remarks(read: Reading) -> list[str]:
    source, items, fewest, most = read.source, read.items, read.fewest, read.most
    each = f"{most} each" if fewest == most else f"{fewest} to {most} each"
    column = "" if read.item_column is None else f" (column {read.item_column})"
    within = "" if read.blocks is None else f", in {read.blocks.count} blocks (column {read.blocks.column})"
    whole = [f"{source}: {items} items{column}, {read.measurements} measurements, {each}{within}."]
    if read.guessed:
        whole.append(f"{read.item_column} is the only column without numbers, so it names the items (--items picks).")
    unused = ", ".join(f"{left.column} ({left.why})" for left in read.left_out if not left.by_content)
    out = f" Left out: {unused}." if unused else ""
    whole.append(f"Values: {', '.join(read.values)} (--values picks).{out}")
    lines = ["\n".join(whole), *read.remarks]
    if read.numbers_for_names:
        lines.append(
            f"warning: the first line was read as the names of the columns, but {first_names(read.values)} "
            f"{'is a number' if len(read.values) == 1 else 'are numbers'}; if it is a measurement, put a line of "
            "names above it."
        )
    if most == 1:
        wide = "\nIf each cell of a line is one measurement of its item, say --wide." if len(read.values) > 1 else ""
        lines.append(
            f"warning: every item was measured only once; does the right column name the items (--items)?{wide}"
        )
    elif read.once:
        lines.append(f"Measured only once: {first_names(read.once)} (a name mistyped makes a new item).")
    for names in read.spelt_alike[:_MANY]:
        lines.append(f"warning: {' and '.join(names)} are taken for different items; one item needs one spelling.")
    holes = read.holes
    if holes:
        named = f"{len(holes)} row{'' if len(holes) == 1 else 's'} with an empty cell: {first_names(holes)}"
        lines.append(f"Left out, {named}. The proof assumes that the values are not the reason for it.")
    if read.missing:
        named = first_names([f"{column} ({count})" for column, count in read.missing])
        lines.append(f"Numbers that are missing: {named}. Rows count where they have numbers.")
    counters = [] if read.cut is not None or len(read.counters) == len(read.values) else read.counters
    if counters:
        rest = ",".join(column for column in read.values if column not in counters)
        lines.append(
            f"warning: {first_names(counters)} {'is' if len(counters) == 1 else 'are'} used as a measurement; if it "
            f"only says when or which, leave it out: --values {shlex.quote(rest)}"
        )
    cut = _cut_lines(read.cut, read.measurements)
    return [*lines, *_unmeasured_lines(read), *cut, *_column_lines(read)]


def _unmeasured_lines(read: Reading) -> list[str]:
    """Columns of numbers that were left out because of what they hold."""
    unmeasured = [left for left in read.left_out if left.by_content]
    if not unmeasured:
        return []
    named = ", ".join(f"{left.column} ({left.why})" for left in unmeasured[:_MANY])
    columns = [*read.values, *(left.column for left in unmeasured)]
    option = shlex.quote(",".join(f'"{column}"' if "," in column else column for column in columns))
    return [
        f"note: left out, since {'it measures' if len(unmeasured) == 1 else 'they measure'} nothing: {named}. If that "
        f"is wrong, name all columns of values: --values {option}"
    ]


def _cut_lines(cut: Cut | None, count: int) -> list[str]:
    """How successes and trials became counts out of one total."""
    if cut is None:
        return []
    successes, trials, batch = cut.successes, cut.trials, cut.batch
    if count == cut.rows and not cut.left:
        lines = [f"Every row has {successes} of {batch} {trials}."]
    else:
        left = f"; {cut.left} {trials} at the ends are left over" if cut.left else ""
        lines = [
            f"{cut.rows} rows of {successes} and {trials}: all {trials} of an item, in an order drawn by the seed, "
            f"make {count} measurements, each the {successes} of {batch} {trials}{left}."
        ]
    return lines


def _column_lines(read: Reading) -> list[str]:
    """Columns that say nothing, or nothing more than another."""
    lines, constant = [], read.constant
    if len(constant) == len(read.values):
        return ["warning: all results are equal: there is nothing by which items could be told apart."]
    if constant:
        verb = "has one value in all rows and says" if len(constant) == 1 else "have one value in all rows and say"
        lines.append(f"warning: {first_names(constant)} {verb} nothing; leave it out with --values.")
    for first, second in read.copies[:_MANY]:
        lines.append(
            f"warning: {second} follows from {first} (equal, or in other units): it counts the same result twice. "
            "Leave one of the two out with --values."
        )
    return lines


# Rows.


def _order_remarks(answer: Analysis) -> list[str]:
    seen = answer.row_order
    if seen is None:
        return []
    return [f"note: {in_option_words(seen.text)}"]


def _slip_remarks(answer: Analysis) -> list[str]:
    from coterie.tables.checks.slips import SLIP_PROBABILITY

    checks, pool, lines = answer.checks, answer.pool, []
    single = [slip for slip in checks.slips.values if slip.column not in checks.slips.heavy]
    named = [f"warning: {checks.sentence(slip)}" for slip in single[:_MANY]]
    if len(single) > _MANY:
        named.append(f"warning: … and {len(single) - _MANY} more (--json lists them).")
    if single:
        named.append(
            "(Such rows were used like all others; only the spread of repeats leaves them out. Correct a slip in the "
            "file, from the notebook. If the noise is Gaussian, any row of a table is named with probability at most "
            f"{SLIP_PROBABILITY:g}.)"
        )
        lines.append("\n".join(named))
    for column in checks.slips.heavy:
        far = [slip for slip in checks.slips.values if slip.column == column]
        shown = ", ".join(f"{pool.place(slip.row)} ({pool.item_of(slip.row)}: {slip.value:.6g})" for slip in far[:_FEW])
        count = "" if not far else f" {len(far)} of them do not belong to Gaussian noise at all, the farthest {shown}."
        lines.append(
            f"warning: the noise of {pool.columns[column]} has heavy tails: more values than Gaussian noise allows lie "
            f"far from the item's other results.{count} No standard deviation describes such noise: leave --noise out."
        )
    return lines


# The noise.


def _known_noise_remarks(answer: Analysis) -> list[str]:
    """A noise that was stated, beside what the repeats tell."""
    checks, columns = answer.checks, answer.pool.columns
    stated, spread = checks.deviations, checks.spread.deviations
    assert stated is not None
    if spread is None:
        listed = ", ".join(f"{column} {value:.4g}" for column, value in zip(columns, stated, strict=True))
        return [f"Noise as stated: {listed}. No item was measured twice, so it cannot be checked."]
    beside = [
        f"{column} {given:.4g} (repeats vary by {seen:.3g})"
        for column, given, seen in zip(columns, stated, spread, strict=True)
    ]
    shown = "; ".join(beside[:_MANY]) + (" …" if len(beside) > _MANY else "")
    lines = [f"Noise as stated: {shown}; {checks.spread.freedom} degrees of freedom{_without(checks)}."]
    large = [i for i, verdict in enumerate(checks.verdicts) if verdict == "too large"]
    if large:
        lines.append(
            f"note: repeats of {_columns(columns, large)} vary less than the noise stated. That does not harm the "
            "proof, but takes more measurements than a smaller --noise."
        )
    return lines


def _noise_remarks(answer: Analysis, noise: Model) -> list[str]:
    """Where no size of the noise was stated: what the repeats tell about it."""
    checks, columns = answer.checks, answer.pool.columns
    spread = checks.spread.deviations
    words = f"Noise: {noise.words}. " if answer.pool.blocks is not None else ""
    free = "" if noise.kind == "at-most" else "Nothing is assumed or checked about how much results vary."
    lines = []
    if spread is None:
        lines.append("No item was measured twice, so the table does not tell how much results vary.")
        return [*lines, words + free] if words + free else lines
    seen = [f"{column} {value:.3g}" for column, value in zip(columns, spread, strict=True)]
    shown = ", ".join(seen[:_MANY]) + (" …" if len(seen) > _MANY else "")
    repeats = f"Repeats vary by {shown} ({checks.spread.freedom} degrees of freedom{_without(checks)})."
    lines.append(" ".join(part for part in (f"{words}{free}".strip(), repeats) if part))
    lines += _better_noise(answer)
    if noise.kind == "gaussian" and not spread.any() and len(answer.reading.constant) < len(columns):
        lines.append(
            "warning: repeats of an item are always the same: that is no Gaussian noise, and nothing is proven by it. "
            "Check that they are measurements, and not copies of one, or leave --noise out."
        )
    return lines


def _better_noise(answer: Analysis) -> list[str]:
    """What could be stated about the noise where nothing was, so that fewer measurements are needed."""
    checks = answer.checks
    if checks.noise.kind != "any":
        return []
    if answer.reading.whole is None:
        return [] if checks.slips.heavy else _proposal_lines(checks)
    low, high = answer.reading.whole
    if (low, high) == (0, 1) and len(answer.pool.columns) == 1:
        return [
            "note: all values are 0 or 1. If the results of an item are independent of each other, state --noise "
            "counts: then fewer are needed (docs/howto/clicks.md)."
        ]
    return [
        f"note: all values are whole numbers from {low} to {high}. If they are ratings, and items of equal mean "
        f"are alike to you whatever the shares, state --noise bounded:{low},{high} with the ends of the scale "
        "(docs/howto/ratings.md)."
    ]


def _proposal_lines(checks: CheckedPool) -> list[str]:
    """What could be stated if the noise is known to be Gaussian: a covariance; of one column its root."""
    spread = checks.spread
    upper, covariance = spread.upper(), spread.upper_covariance()
    if spread.freedom < spread.enough or covariance is None or upper is None or min(upper) <= 0.0:
        return []
    option = _deviations_option(upper) if len(upper) == 1 else _covariance_option(covariance)
    how = f"--noise {option}" if option is not None else "the covariance that --propose-noise FILE writes"
    return [
        "note: if you know that the noise is Gaussian, and the same for all items, --noise gaussian may need fewer "
        f"measurements; {how} has a margin for chance (docs/CAMPAIGNS.md, What is my noise?)."
    ]


def _without(checks: CheckedPool) -> str:
    count = checks.without_rows
    left_out = "the row that may be a slip" if count == 1 else f"the {count} rows that may be slips"
    return f", without {left_out}" if count else ""


def _columns(columns: Sequence[str], which: Sequence[int]) -> str:
    return first_names([columns[i] for i in which])


def _in_a_direction(checks: CheckedPool, columns: Sequence[str]) -> str:
    pair = checks.spread.most_correlated()
    if pair is None:
        return "no single column, but a weighted sum of them varies"
    first, second, correlation = pair
    both = f"{columns[first]} and {columns[second]}: correlation {correlation:.2f}"
    return f"columns vary together ({both}), in some direction"


def _advice(checks: CheckedPool) -> str:
    """A noise that is large enough in every direction: a covariance, if the columns vary together and it is short."""
    upper, stated, given = checks.spread.upper(), checks.deviations, checks.noise.to_json()
    if upper is None or stated is None or min(upper) <= 0.0:
        return "State a larger noise, or none"
    as_covariance = isinstance(given, list) and isinstance(given[0], list)
    covariance = _covariance_option(checks.spread.upper_covariance())
    larger = _deviations_option([max(pair) for pair in zip(upper, stated, strict=True)])
    if covariance is not None and (as_covariance or checks.spread.most_correlated() is not None):
        return f"State a covariance: --noise {covariance}, or --noise {larger}, which takes more measurements"
    return f"Use --noise {larger}"


def _deviations_option(values: Sequence[float]) -> str:
    """Standard deviations, as --noise takes them."""
    return ",".join(f"{value:g}" for value in values)


def _covariance_option(covariance: Sequence[Sequence[float]] | None) -> str | None:
    """A covariance, as --noise takes it, quoted for the shell; None if it is too long to be copied."""
    if covariance is None or len(covariance) > _SHORT:
        return None
    return "'[" + ",".join("[" + ",".join(f"{value:g}" for value in row) + "]" for row in covariance) + "]'"
