"""What `coterie group` says before its answer: what was read, rows that do not belong, their order, the noise."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from coterie.cli.campaign_text import first_names, order_sentence
from coterie.cli.option_words import in_option_words

_MANY = 12
_FEW = 3  # values that are shown of a column with heavy tails
_SHORT = 4  # a covariance of so many columns is printed


def remark_lines(found: dict[str, Any]) -> list[str]:
    """All that is said about a table before the answer."""
    return [
        *_reading_lines(found["read"]),
        *([] if "rows" in found else [order_sentence(found["order"])]),  # of a finished table no order plays a role
        *_order_lines(found),
        *_slip_lines(found),
        *_noise_lines(found),
    ]


def too_small(found: dict[str, Any]) -> bool:
    """Whether the measurements contradict the noise stated: they vary more, or some of them do not belong."""
    noise = found["noise"]
    return "too small" in (*noise["verdicts"], noise["direction"]) or bool(noise["rows_contradict"])


def out_of_order(found: dict[str, Any]) -> bool:
    """Whether rows were used in the order of the file, and that goes with their values."""
    return found["row_order"] is not None and not found["order"]["shuffled"]


# What was read.


def _reading_lines(read: dict[str, Any]) -> list[str]:
    source, items, fewest, most = read["source"], read["items"], read["fewest"], read["most"]
    each = f"{most} each" if fewest == most else f"{fewest} to {most} each"
    column = "" if read["item_column"] is None else f" (column {read['item_column']})"
    lines = [f"{source}: {items} items{column}, {read['measurements']} measurements, {each}."]
    if read["guessed"]:
        lines.append(
            f"{read['item_column']} is the only column without numbers, so it names the items (--items picks)."
        )
    lines += read["remarks"]
    if read["numbers_for_names"]:
        lines.append(
            f"warning: the first line was read as the names of the columns, but {first_names(read['values'])} "
            f"{'is a number' if len(read['values']) == 1 else 'are numbers'}; if it is a measurement, put a line of "
            "names above it."
        )
    if most == 1:
        lines.append("warning: every item was measured only once; does the right column name the items (--items)?")
        if len(read["values"]) > 1:
            lines.append("If each cell of a line is one measurement of its item, say --wide.")
    elif read["once"]:
        lines.append(f"Measured only once: {first_names(read['once'])} (a name mistyped makes a new item).")
    for names in read["spelt_alike"][:_MANY]:
        lines.append(f"warning: {' and '.join(names)} are taken for different items; one item needs one spelling.")
    left = ", ".join(f"{one['column']} ({one['why']})" for one in read["left_out"] if not one["by_content"])
    out = f" Left out: {left}." if left else ""
    values = f"Values: {', '.join(read['values'])} (--values picks).{out}"
    holes = read["holes"]
    if holes:
        named = f"{len(holes)} row{'' if len(holes) == 1 else 's'} with an empty cell: {first_names(holes)}"
        lines.append(f"Left out, {named}. The proof assumes that the values are not the reason for it.")
    counters = [] if read["cut"] is not None or len(read["counters"]) == len(read["values"]) else read["counters"]
    if counters:
        rest = ",".join(one for one in read["values"] if one not in counters)
        lines.append(
            f"warning: {first_names(counters)} {'is' if len(counters) == 1 else 'are'} used as a measurement; if it "
            f"only says when or which, leave it out: --values {shlex.quote(rest)}"
        )
    cut = _cut_lines(read["cut"], read["measurements"])
    return [*lines, values, *_unmeasured_lines(read), *cut, *_column_lines(read)]


def _unmeasured_lines(read: dict[str, Any]) -> list[str]:
    """Columns of numbers that were left out because of what they hold."""
    found = [one for one in read["left_out"] if one["by_content"]]
    if not found:
        return []
    named = ", ".join(f"{one['column']} ({one['why']})" for one in found[:_MANY])
    every = [*read["values"], *(one["column"] for one in found)]
    option = shlex.quote(",".join(f'"{one}"' if "," in one else one for one in every))
    return [
        f"note: left out, since {'it measures' if len(found) == 1 else 'they measure'} nothing: {named}. If that is "
        f"wrong, name all columns of values: --values {option}"
    ]


def _cut_lines(cut: dict[str, Any] | None, count: int) -> list[str]:
    """How successes and trials became counts out of one total."""
    if cut is None:
        return []
    successes, trials, batch = cut["successes"], cut["trials"], cut["batch"]
    if count == cut["rows"] and not cut["left"]:
        lines = [f"Every row has {successes} of {batch} {trials}."]
    else:
        left = f"; {cut['left']} {trials} at the ends are left over" if cut["left"] else ""
        lines = [
            f"{cut['rows']} rows of {successes} and {trials}: all {trials} of an item, in an order drawn by the seed, "
            f"make {count} measurements, each the {successes} of {batch} {trials}{left}."
        ]
    if cut["bursts"]:
        lines.append(
            f"warning: the rates of an item's rows differ more than independent {trials} allow (p = {cut['p']:.2g}): "
            f"{successes} come in bursts, or the rate changes. Then there is no proof: make rows of equally many "
            f"{trials}, and leave --noise out."
        )
    return lines


def in_bursts(found: dict[str, Any]) -> bool:
    """Whether successes were stated to be independent, and the rows of the table say that they are not."""
    return found["read"]["cut"] is not None and found["read"]["cut"]["bursts"]


def _column_lines(read: dict[str, Any]) -> list[str]:
    """Columns that say nothing, or nothing more than another."""
    lines, constant = [], read["constant"]
    if len(constant) == len(read["values"]):
        return ["warning: all results are equal: there is nothing by which items could be told apart."]
    if constant:
        verb = "has one value in all rows and says" if len(constant) == 1 else "have one value in all rows and say"
        lines.append(f"warning: {first_names(constant)} {verb} nothing; leave it out with --values.")
    for first, second in read["copies"][:_MANY]:
        lines.append(
            f"warning: {second} follows from {first} (equal, or in other units): it counts the same result twice. "
            "Leave one of the two out with --values."
        )
    return lines


# Rows.


def _order_lines(found: dict[str, Any]) -> list[str]:
    seen = found["row_order"]
    if seen is None:
        return []
    return [f"{'warning' if out_of_order(found) else 'note'}: {in_option_words(seen['text'])}"]


def _slip_lines(found: dict[str, Any]) -> list[str]:
    slips, lines = found["slips"], []
    single = [one for one in slips["rows"] if not one["heavy_tails"]]
    for one in single[:_MANY]:
        lines.append(f"warning: {one['text']}")
    if len(single) > _MANY:
        lines.append(f"warning: … and {len(single) - _MANY} more (--json lists them).")
    if single:
        lines.append(
            "(Such rows were used like all others; only the spread of repeats leaves them out. Correct a slip in the "
            "file, from the notebook. If the noise is Gaussian, any row of a table is named with probability at most "
            f"{slips['probability']:g}.)"
        )
    for column in slips["heavy_tails"]:
        far = [one for one in slips["rows"] if one["column"] == column]
        shown = ", ".join(f"{one['place']} ({one['name']}: {one['value']:.6g})" for one in far[:_FEW])
        count = "" if not far else f" {len(far)} of them do not belong to Gaussian noise at all, the farthest {shown}."
        lines.append(
            f"warning: the noise of {column} has heavy tails: more values than Gaussian noise allows lie far from the "
            f"item's other results.{count} No standard deviation describes such noise: leave --noise out."
        )
    return lines


# The noise.


def _noise_lines(found: dict[str, Any]) -> list[str]:
    noise, columns = found["noise"], found["read"]["values"]
    if noise["deviations"] is None:
        return _unknown_noise_lines(found)
    stated, spread = noise["deviations"], noise["spread"]
    if spread is None:
        listed = ", ".join(f"{column} {value:.4g}" for column, value in zip(columns, stated, strict=True))
        return [f"Noise as stated: {listed}. No item was measured twice, so it cannot be checked."]
    beside = [
        f"{column} {given:.4g} (repeats vary by {seen:.3g})"
        for column, given, seen in zip(columns, stated, spread, strict=True)
    ]
    shown = "; ".join(beside[:_MANY]) + (" …" if len(beside) > _MANY else "")
    lines = [f"Noise as stated: {shown}; {noise['freedom']} degrees of freedom{_without(noise)}."]
    small, large = ([i for i, v in enumerate(noise["verdicts"]) if v == what] for what in ("too small", "too large"))
    if small or noise["direction"] is not None:
        which = f"repeats of {_columns(columns, small)} vary" if small else _in_a_direction(noise, columns)
        lines.append(
            f"warning: {which} more than the noise stated, so nothing is proven. {_advice(noise)}, or find out why "
            "they vary (a drift, a sample mixed up)."
        )
    elif noise["rows_contradict"]:
        lines.append(
            "warning: the rows named above cannot come from the noise stated, so nothing is proven. Correct slips in "
            "the file, or leave --noise out: under any noise results may lie that far off."
        )
    if large:
        lines.append(
            f"note: repeats of {_columns(columns, large)} vary less than the noise stated. That does not harm the "
            "proof, but takes more measurements than a smaller --noise."
        )
    return lines


def _unknown_noise_lines(found: dict[str, Any]) -> list[str]:
    """What is assumed where no size of the noise was stated, and what the repeats tell about it."""
    noise, columns = found["noise"], found["read"]["values"]
    words, assumption = noise["words"], noise["assumption"]
    lines = [f"Noise: {words}. Assumed: {assumption}. Nothing is assumed or checked about how much results vary."]
    if noise["kind"] == "at-most":
        lines = [f"Noise: {words}. Assumed: {assumption}."]
    if noise["spread"] is None:
        return [*lines, "No item was measured twice, so the table does not tell how much results vary."]
    seen = [f"{column} {value:.3g}" for column, value in zip(columns, noise["spread"], strict=True)]
    shown = ", ".join(seen[:_MANY]) + (" …" if len(seen) > _MANY else "")
    lines.append(f"Repeats vary by {shown} ({noise['freedom']} degrees of freedom{_without(noise)}).")
    if noise["kind"] == "any" and found["read"]["whole"] is not None:
        low, high = found["read"]["whole"]
        ratings = (
            f"note: all values are whole numbers from {low} to {high}. If they are ratings, and items of equal mean "
            f"are alike to you whatever the shares, state --noise bounded:{low},{high} with the ends of the scale "
            "(docs/howto/ratings.md)."
        )
        zero_or_one = (
            "note: all values are 0 or 1. If the results of an item are independent of each other, state --noise "
            "counts: then fewer are needed (docs/howto/clicks.md)."
        )
        lines.append(zero_or_one if (low, high) == (0, 1) and len(columns) == 1 else ratings)
    elif noise["kind"] == "any" and not found["slips"]["heavy_tails"]:
        lines += _proposal_lines(noise)
    small = [i for i, verdict in enumerate(noise["verdicts"]) if verdict == "too small"]
    if small or noise["direction"] is not None:
        which = f"repeats of {_columns(columns, small)} vary" if small else "a weighted sum of columns varies"
        lines.append(
            f"warning: {which} more than the noise stated, whatever its distribution, so nothing is proven. State a "
            "larger bound, or leave --noise out, or find out why they vary (a slip, a drift, a sample mixed up)."
        )
    if noise["kind"] == "gaussian" and not any(noise["spread"]) and len(found["read"]["constant"]) < len(columns):
        lines.append(
            "warning: repeats of an item are always the same: that is no Gaussian noise, and nothing is proven by it. "
            "Check that they are measurements, and not copies of one, or leave --noise out."
        )
    return lines


def _proposal_lines(noise: dict[str, Any]) -> list[str]:
    """What could be stated if the noise is known to be Gaussian."""
    if not noise["enough"] or noise["upper_covariance"] is None or min(noise["upper"]) <= 0.0:
        return []
    option = proposed_option(noise)
    how = f"--noise {option}" if option is not None else "the covariance that --propose-noise FILE writes"
    return [
        "note: if you know that the noise is Gaussian, and the same for all items, --noise gaussian may need fewer "
        f"measurements; {how} has a margin for chance (docs/CAMPAIGNS.md, What is my noise?)."
    ]


def _without(noise: dict[str, Any]) -> str:
    count = noise["without_rows"]
    return "" if count == 0 else f", without the {'row' if count == 1 else f'{count} rows'} named above"


def _columns(columns: Sequence[str], which: Sequence[int]) -> str:
    return first_names([columns[i] for i in which])


def _in_a_direction(noise: dict[str, Any], columns: Sequence[str]) -> str:
    pair = noise["together"]
    if pair is None:
        return "no single column, but a weighted sum of them varies"
    first, second = (columns[i] for i in pair["columns"])
    return f"columns vary together ({first} and {second}: correlation {pair['correlation']:.2f}), in some direction"


def _advice(noise: dict[str, Any]) -> str:
    """A noise that is large enough in every direction: a covariance, if the columns vary together and it is short."""
    upper, whole = noise["upper"], isinstance(noise["stated"], list) and isinstance(noise["stated"][0], list)
    if upper is None or min(upper) <= 0.0:
        return "State a larger noise, or none"
    covariance = covariance_option(noise["upper_covariance"])
    larger = deviations_option([max(pair) for pair in zip(upper, noise["deviations"], strict=True)])
    if covariance is not None and (whole or noise["together"] is not None):
        return f"State a covariance: --noise {covariance}, or --noise {larger}, which takes more measurements"
    return f"Use --noise {larger}"


def proposed_option(noise: dict[str, Any]) -> str | None:
    """The noise proposed, as --noise takes it: a covariance; of one column its root. None if it is too long."""
    if len(noise["upper"]) == 1:
        return deviations_option(noise["upper"])
    return covariance_option(noise["upper_covariance"])


def deviations_option(values: Sequence[float]) -> str:
    """Standard deviations, as --noise takes them."""
    return ",".join(f"{value:g}" for value in values)


def covariance_option(covariance: Sequence[Sequence[float]] | None) -> str | None:
    """A covariance, as --noise takes it, quoted for the shell; None if it is too long to be copied."""
    if covariance is None or len(covariance) > _SHORT:
        return None
    return "'[" + ",".join("[" + ",".join(f"{value:g}" for value in row) + "]" for row in covariance) + "]'"
