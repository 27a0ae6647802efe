"""What `coterie group` prints for people: what was read, what looks wrong, the verdict, the groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from coterie.cli.campaign_report import print_table
from coterie.cli.campaign_text import first_names, order_sentence
from coterie.methods import method_named
from coterie.tables.fit import MISFIT_PROBABILITY

_MANY = 12
_SHORT = 4  # a covariance of so many columns is printed
_WIDE = 5  # so many columns of values have a column each in the table of groups


def print_groups(found: dict[str, Any]) -> None:
    """Print what grouping a table gave (`coterie.tables.replay_pool`): warnings first, then verdict and groups."""
    console = Console()
    parts = (
        _reading_lines(found["read"]),
        [order_sentence(found["order"])],
        _noise_lines(found),
        _verdict_lines(found),
        _contradiction_lines(found),
        _misfit_lines(found),
        _partial_lines(found),
    )
    for line in (line for part in parts for line in part):
        console.print(line, highlight=False, markup=False)
    _print_table(found)


def item_states(found: dict[str, Any]) -> list[str]:
    """How sure the group of each item is: as the verdict says, in one word or two."""
    names: list[str] = found["names"]
    if found["done"]:
        misfits = {one["name"] for one in found["misfits"]}
        all_of_them = "proven" if _trusted(found) else "no proof"
        return ["does not fit" if name in misfits else all_of_them for name in names]
    partial = found["partial"]
    certain = set() if partial is None or found["alarm"] is not None or _too_small(found) else set(partial["settled"])
    return ["certain so far" if name in certain else "a guess" for name in names]


def _proves(found: dict[str, Any]) -> bool:
    return method_named(found["method"]).proves(found["threshold"])


def _too_small(found: dict[str, Any]) -> bool:
    return "too small" in (*found["noise"]["verdicts"], found["noise"]["direction"])


def _mixed(found: dict[str, Any]) -> bool:
    return bool(found["homogeneity"] and found["homogeneity"]["mixed"])


def _contradicted(found: dict[str, Any]) -> bool:
    """Whether the measurements speak against the number of groups, or against the noise."""
    return bool(found["misfits"]) or _mixed(found) or found["alarm"] is not None


def _trusted(found: dict[str, Any]) -> bool:
    return _proves(found) and not _too_small(found) and not _contradicted(found)


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
    if most == 1:
        lines.append("warning: every item was measured only once; does the right column name the items (--items)?")
    elif read["once"]:
        lines.append(f"Measured only once: {first_names(read['once'])} (a name mistyped makes a new item).")
    for names in read["spelt_alike"][:_MANY]:
        lines.append(f"warning: {' and '.join(names)} are taken for different items; one item needs one spelling.")
    left = ", ".join(f"{one['column']} ({one['why']})" for one in read["left_out"])
    out = f" Left out: {left}." if left else ""
    return [*lines, f"Values: {', '.join(read['values'])} (--values picks).{out}"]


def _noise_lines(found: dict[str, Any]) -> list[str]:
    noise, columns = found["noise"], found["read"]["values"]
    stated, spread = noise["deviations"], noise["spread"]
    if spread is None:
        listed = ", ".join(f"{column} {value:.4g}" for column, value in zip(columns, stated, strict=True))
        return [f"Noise as stated: {listed}. No item was measured twice, so it cannot be checked."]
    beside = [
        f"{column} {given:.4g} (repeats vary by {seen:.3g})"
        for column, given, seen in zip(columns, stated, spread, strict=True)
    ]
    shown = "; ".join(beside[:_MANY]) + (" …" if len(beside) > _MANY else "")
    lines = [f"Noise as stated: {shown}; {noise['freedom']} degrees of freedom."]
    small, large = ([i for i, v in enumerate(noise["verdicts"]) if v == what] for what in ("too small", "too large"))
    if small or noise["direction"] is not None:
        which = f"repeats of {_columns(columns, small)} vary" if small else _in_a_direction(noise, columns)
        lines.append(
            f"warning: {which} more than the noise stated, so nothing is proven. {_advice(noise)}, or find out why "
            "they vary (a drift, a sample mixed up)."
        )
    if large:
        lines.append(
            f"note: repeats of {_columns(columns, large)} vary less than the noise stated. That does not harm the "
            "proof, but takes more measurements than a smaller --noise."
        )
    return lines


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
        return "State a larger noise"
    covariance = covariance_option(noise["upper_covariance"])
    larger = deviations_option([max(pair) for pair in zip(upper, noise["deviations"], strict=True)])
    if covariance is not None and (whole or noise["together"] is not None):
        return f"State a covariance: --noise {covariance}, or --noise {larger}, which takes more measurements"
    return f"Use --noise {larger}"


def deviations_option(values: Sequence[float]) -> str:
    """Standard deviations, as --noise takes them."""
    return ",".join(f"{value:g}" for value in values)


def covariance_option(covariance: Sequence[Sequence[float]] | None) -> str | None:
    """A covariance, as --noise takes it, quoted for the shell; None if it is too long to be copied."""
    if covariance is None or len(covariance) > _SHORT:
        return None
    return "'[" + ",".join("[" + ",".join(f"{value:g}" for value in row) + "]" for row in covariance) + "]'"


# What came out.


def _verdict_lines(found: dict[str, Any]) -> list[str]:
    k, lines, dry = found["n_clusters"], [], found["dry"]
    if dry is not None:
        its = "only measurement was" if dry["recorded"] == 1 else f"{dry['recorded']} measurements were"
        lines.append(
            f"{dry['name']} ran dry: its {its} used up when {dry['t']} had been taken in all. The rest of the pool "
            "was added, in turn over the items."
        )
    if found["done"]:
        enough = f"{found['t']} of {found['recorded']} measurements would have been enough"
        if not _proves(found):
            lines.append(f"{enough} (heuristic threshold, no proof).")
        elif _too_small(found):
            lines.append(f"{enough} for the noise stated, which is too small: no proof.")
        elif _contradicted(found):
            lines.append(f"{enough} if there were exactly {k} groups and the noise were as stated, but:")
        else:
            lines.append(
                f"{enough}: if there are exactly {k} groups and the noise is as stated, these groups are wrong with "
                f"probability at most {found['delta']:g}."
            )
        return lines
    lines.append(
        f"All {found['recorded']} measurements are not enough to prove {k} groups with error probability "
        f"{found['delta']:g}."
    )
    return lines


def _contradiction_lines(found: dict[str, Any]) -> list[str]:
    """The alarm, and whether each group looks like one."""
    k, alarm, looks, lines = found["n_clusters"], found["alarm"], found["homogeneity"], []
    if alarm is not None:
        cause = (
            f"there are at least {k + 1} groups{_suggested_clusters(found, k + 1)}, or the noise is larger than stated"
        )
        if _too_small(found):
            cause = "the noise is larger than stated (see above)"
        lines.append(
            f"Alarm: {first_names(alarm['names'])} are pairwise known to differ, so {cause}. (If there are {k} groups "
            f"and the noise is as stated, an alarm has probability at most {alarm['probability']:g}.)"
        )
    if looks is not None and _mixed(found):
        more = f" Try --clusters {k + 1}." if k + 1 < found["n_arms"] else ""
        lines.append(f"warning: {looks['text'][0].lower()}{looks['text'][1:]}{more}")
    elif looks is not None and not _too_small(found) and not found["misfits"]:  # or all that was recorded says more
        lines.append(looks["text"])
    return lines


def _misfit_lines(found: dict[str, Any]) -> list[str]:
    k, misfits = found["n_clusters"], found["misfits"]
    if found["done"] and not misfits:
        if _too_small(found):
            return []
        return [f"All {found['recorded']} measurements fit these groups (tested at level {MISFIT_PROBABILITY:g})."]
    lines = []
    for number in sorted({one["group"] for one in misfits}):
        names = [one["name"] for one in misfits if one["group"] == number]
        size = len(found["groups"][number - 1]["arms"])
        verb = "does not fit" if len(names) == 1 else "do not fit"
        lines.append(f"warning: {first_names(names)} {verb} group {number} ({len(names)} of its {size} items).")
    if lines:
        lines.append(
            f"There may be more groups than {k}{_suggested_clusters(found, k + 1)}, or the noise is larger than "
            f"stated. (All {found['recorded']} measurements; if the groups are right, such a warning has probability "
            f"at most {MISFIT_PROBABILITY:g}.)"
        )
    return lines


def _partial_lines(found: dict[str, Any]) -> list[str]:
    k, partial, fewer = found["n_clusters"], found["partial"], found["fewer"]
    lines = []
    if partial is not None and found["alarm"] is None and not _too_small(found):
        sure_of, open_ones = partial["settled"], partial["undecided"]
        lines.append(
            f"Certain so far, if there are exactly {k} groups: {first_names(sure_of) if sure_of else 'no item'}."
        )
        lines.append(f"Undecided: {first_names(open_ones) if open_ones else 'none'}.")
    if partial is not None and not _too_small(found):
        apart = [f"{one} from {other}" for one, other in partial["differ"]]
        lines.append(f"Known to differ: {first_names(apart) if apart else 'none yet'}.")
    if fewer is not None:
        lines.append(_fewer_groups_line(k, fewer))
    return lines


def _fewer_groups_line(k: int, fewer: dict[str, Any]) -> str:
    less = fewer["n_clusters"]
    if less == 1:
        return "Every item fits one single group: there may be no groups at all, or too few measurements to show them."
    return (
        f"For {less} groups {fewer['t']} of these measurements are enough, and every item fits its group: there may be "
        f"fewer groups than {k} (try --clusters {less}), or too few measurements to show {k}."
    )


def _suggested_clusters(found: dict[str, Any], k: int) -> str:
    return f" (try --clusters {k})" if k < found["n_arms"] else ""


def _print_table(found: dict[str, Any]) -> None:
    groups, columns = found["groups"], found["read"]["values"]
    if not groups:
        return
    title = "groups" if found["done"] and _trusted(found) else "groups, a guess"
    if found["done"] and not _proves(found):
        title = "groups, without proof"
    members = [", ".join(one["names"]) for one in groups]
    if len(columns) <= _WIDE:
        centers = [[f"{value:.4g}" for value in one["center"]] for one in groups]
        headings = list(columns)
    else:
        centers = [[_named_center(columns, one["center"])] for one in groups]
        headings = ["center"]
    rows = [
        [one["group"], len(one["arms"]), *center, names]
        for one, center, names in zip(groups, centers, members, strict=True)
    ]
    print_table(["group", "items", *headings, "members"], rows, title)


def _named_center(columns: Sequence[str], center: Sequence[float]) -> str:
    shown = [f"{column} {value:.4g}" for column, value in zip(columns, center, strict=True)]
    return ", ".join(shown[:_MANY]) + (", …" if len(shown) > _MANY else "")
