"""What `coterie group` prints for people: what is proven, groups, letters, what to ask next; then remarks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coterie.cli.group_remarks import assumed_of_noise, by_weight, remarks, void_lines
from coterie.cli.printing import (
    first_names,
    number_or_dash,
    order_sentence,
    pair_lines,
    plural,
    print_letters,
    print_lines,
    print_table,
)
from coterie.tables.analysis import PairAnalysis
from coterie.tables.checks.misfits import MISFIT_PROBABILITY
from coterie.tables.verdicts import assumed_lines, condition, thin_lines

if TYPE_CHECKING:
    from coterie.tables.analysis import Analysis
    from coterie.tables.growing import ReplayAnalysis

_MANY = 12
_SHOWN = 3  # remarks that are printed unless all are asked for
_WIDE = 5  # so many columns of values have a column each in a table


def item_states(answer: PairAnalysis | ReplayAnalysis) -> list[str]:
    """How sure the group of each item is: as the verdict says, in one word or two."""
    misfits = {misfit.arm for misfit in answer.misfits}
    certain: set[int] = set()
    if isinstance(answer, PairAnalysis):
        state = "proven" if answer.done and not misfits else "a guess"
        state = "" if answer.labels is None else state
    elif answer.done:
        state = "proven" if _trusted(answer) else "no proof"
    else:
        state = "a guess"
        if answer.partial is not None and answer.session.alarm is None and not answer.contradicted:
            certain = set(answer.partial.settled)
    return [
        "does not fit" if arm in misfits else "certain so far" if arm in certain else state
        for arm in range(len(answer.pool.names))
    ]


# Tests of all pairs: a finished table, or no question.


def print_pair_analysis(answer: PairAnalysis, command: Sequence[str], noise: str | None, verbose: bool) -> None:
    """Print what tests of all pairs have shown.

    `command`: how the table was read, to which options are added; `noise`: as it was stated; `verbose`: all remarks.
    """
    stated = "" if noise is None else f" --noise {shlex.quote(noise)}"
    lines = void_lines(answer)
    if not answer.contradicted:
        lines += answer.verdict
        lines += misfit_lines(answer) if answer.question is not None and answer.done else []
        lines += assumed_of_noise(answer)
        if answer.finished is None:
            lines.append(order_sentence(answer.order.seed))
        else:
            lines += [*assumed_lines(answer), condition(answer.finished, "--growing")]
    print_lines(lines)
    if not answer.contradicted:
        if answer.question is not None:
            _print_groups(answer, "groups" if answer.done else "groups, a guess")
        if answer.question is None or not answer.done:
            _print_letters_and_means(answer)
    if answer.question is None:
        print_lines(_next_lines(answer, shlex.join(command), stated))
    elif answer.settles is not None and not answer.contradicted:
        print_lines(
            [
                f"With {answer.settles} groups these rows settle which they are:",
                f"  {shlex.join(command)} --clusters {answer.settles}{stated}",
            ]
        )
    thin = [] if answer.contradicted else thin_lines(answer)
    _print_remarks([*thin, *remarks(answer), *_block_hint(answer, shlex.join(command), stated)], verbose)


def _block_hint(answer: PairAnalysis, command: str, noise: str) -> list[str]:
    """The command that compares within blocks, where a column looks as if it named some."""
    column, pool = answer.reading.likely_block, answer.pool
    if column is None or answer.finished is None or (pool.picked and column in pool.columns):
        return []
    if answer.question is not None and not answer.asks_for_equal_items:
        return []
    clusters = "" if answer.n_clusters is None else f" --clusters {answer.n_clusters}"
    return [
        f"note: every item is in most of the entries of {column}. If results of one {column} are shifted together, "
        "compare items within it; then differences between them do not blur the answer:\n"
        f"  {command} --block {shlex.quote(column)}{clusters}{noise}"
    ]


def _print_letters_and_means(answer: PairAnalysis) -> None:
    names, letters, columns = answer.pool.names, answer.pairs.letters, answer.pool.columns
    shown = columns if len(columns) <= _WIDE else []
    rows = [
        [names[arm], letters[arm], *(number_or_dash(value) for value in answer.means[arm, : len(shown)]), int(count)]
        for arm, count in enumerate(answer.pool.counts)
    ]
    rows.sort(key=lambda row: str(row[1]))
    print_letters(["item", "letters", *(f"mean {column}" for column in shown), "measured"], rows, "--json")


def _next_lines(answer: PairAnalysis, command: str, noise: str) -> list[str]:
    """How groups are asked for; a command is printed if these rows have an answer to it."""
    lines = ["For groups, say how many there are, with --clusters, if you know it."]
    if len(answer.pool.names) < 3:
        return []
    if answer.contradicted:
        return lines
    if answer.fewest == len(answer.pool.names):  # each item is a group of its own
        lines = []
    elif answer.settles is not None:
        lines[-1] += f" With {answer.settles} these rows settle which they are:"
        lines.append(f"  {command} --clusters {answer.settles}{noise}")
    allows = answer.allows
    if allows is not None:
        stated = noise if allows.noise is None else f" --noise {allows.noise}"
        kind = (allows.noise or "").partition(":")[0]
        if_so = {"": "These", "gaussian": "If the noise is Gaussian, these"}
        which = if_so.get(kind, "If all values lie within these bounds, these")
        alike, apart = (",".join(f"{bound:.12g}" for bound in bounds) for bounds in (allows.alike, allows.apart))
        count = plural(allows.groups, "group")
        lines += [
            f"{'Or say' if lines else 'Say'} which differences matter, with --alike and --apart. {which} rows prove "
            f"{count} with:",
            f"  {command} --alike {alike} --apart {apart}{stated}",
        ]
    return lines


# A method that was run on a table that grows.


def print_replay_analysis(answer: ReplayAnalysis, verbose: bool) -> None:
    """Print what running a method on a table has shown: verdict and groups, then remarks."""
    lines = [*void_lines(answer), *_verdict_lines(answer), *_contradiction_lines(answer), *misfit_lines(answer)]
    if not answer.out_of_order:
        lines += [*assumed_of_noise(answer), order_sentence(answer.order.seed)]
    print_lines(lines + _partial_lines(answer))
    title = "groups, a guess"
    if answer.done and not answer.proves:
        title = "groups, without proof"
    elif answer.done and _trusted(answer):
        title = "groups"
    _print_groups(answer, title)
    _print_letters_and_groups(answer)
    _print_remarks([*([] if answer.misfits else thin_lines(answer)), *remarks(answer)], verbose)


def _mixed(answer: ReplayAnalysis) -> bool:
    looks = answer.session.homogeneity
    return looks is not None and bool(looks.mixed)


def _refuted(answer: ReplayAnalysis) -> bool:
    """Whether the measurements speak against the number of groups, or the order in which they were used."""
    return bool(answer.misfits) or _mixed(answer) or answer.session.alarm is not None or answer.out_of_order


def _trusted(answer: ReplayAnalysis) -> bool:
    return answer.proves and not answer.contradicted and not _refuted(answer)


def _verdict_lines(answer: ReplayAnalysis) -> list[str]:
    lines, dry = _forecast_lines(answer), answer.dry
    if dry is not None:
        count = "only one measurement" if dry.recorded == 1 else f"only {dry.recorded} measurements"
        lines.append(
            f"{dry.name} has {count}. After {dry.t} in all the method asked for one more, so from there on the rest of "
            "the table was used, in turn over the items."
        )
    if answer.done:
        return lines + _proof_lines(answer)
    assert answer.question is not None
    lines.append(
        f"All {answer.recorded} measurements are not enough to prove {answer.question.words} with error probability "
        f"{answer.delta:g}."
    )
    return lines


def _proof_lines(answer: ReplayAnalysis) -> list[str]:
    """What is proven; or why that many measurements would have been enough, and nothing is."""
    asked = answer.question
    assert asked is not None
    enough = f"{answer.session.t} of {answer.recorded} measurements would have been enough"
    if not answer.proves:
        return [f"{enough} (heuristic threshold, no proof)."]
    if answer.checks.rows_contradict:
        return [f"{enough} for the noise stated, which the rows named above contradict: no proof."]
    if answer.noise_too_small:
        return [f"{enough} for the noise stated, which is too small: no proof."]
    if answer.pool.cut is not None and answer.in_bursts:
        return [f"{enough} if {answer.pool.cut.trials} were independent of each other, which they are not: no proof."]
    if answer.out_of_order:
        return [f"{enough} if the order of the rows had nothing to do with their values (see above): no proof."]
    wrong = f"wrong with probability at most {answer.delta:g}"
    if not answer.asks_for_equal_items:
        count = plural(len(answer.groups), "group")
        proven = f"{enough}: {count}; if the noise is {_as_said(answer)}, {asked.claim}; {wrong}."
        near = [
            f"{name} (also group{'' if len(others) == 1 else 's'} {', '.join(map(str, others))})"
            for name, others in answer.borders_by_name.items()
        ]
        return [proven, *([f"Near a border, and could belong elsewhere: {first_names(near)}."] if near else [])]
    if _refuted(answer):
        return [f"{enough} if there were exactly {asked.n_clusters} groups and the noise were {_as_said(answer)}, but:"]
    claimed = f"{asked.claim}; {wrong}" if answer.certificate is None else answer.certificate.claimed
    return [f"{enough}.", f"Proven, if the noise is {_as_said(answer)}: {claimed}."]


def _forecast_lines(answer: ReplayAnalysis) -> list[str]:
    """What was expected when every item had been measured, if the table was not expected to be enough."""
    forecast = answer.forecast
    if forecast is None or forecast.enough or answer.done:
        return []
    instead = ""
    if forecast.coarser is not None:
        apart = ",".join(f"{bound:.3g}" for bound in forecast.coarser.apart)
        instead = f" They are expected to be enough for --apart {apart}."
    from coterie.session.forecast import WILD  # here: most commands do without sessions

    far = forecast.total > WILD * answer.recorded
    much = "far more" if far else f"about {forecast.total:.0f}, more"
    return [
        f"A rough forecast, made when every item had been measured once: it takes {much} than the {answer.recorded} "
        f"measurements that the table has.{instead}"
    ]


def _as_said(answer: Analysis) -> str:
    return "as stated" if answer.checks.deviations is not None else "as assumed"


def _other_cause(answer: Analysis) -> str:
    """What else than the number of groups may be wrong if items do not fit."""
    if answer.checks.deviations is not None:
        return "the noise is larger than stated"
    return "items of a group do not share what is assumed of them"


def _more_groups(answer: Analysis) -> str:
    """How one more group is asked for, if there are items enough."""
    k = (answer.n_clusters or 0) + 1
    return f" (try --clusters {k})" if k < len(answer.pool.names) else ""


def _contradiction_lines(answer: ReplayAnalysis) -> list[str]:
    """The alarm, and whether each group looks like one."""
    k, alarm, looks, lines = answer.n_clusters or 0, answer.session.alarm, answer.homogeneity_text, []
    if alarm is not None:
        cause = f"there are at least {k + 1} groups{_more_groups(answer)}, or {_other_cause(answer)}"
        if answer.noise_too_small:
            cause = "the noise is larger than stated (see above)"
        lines.append(
            f"Alarm: {first_names(answer.named(alarm.arms))} are pairwise known to differ, so {cause}. (If there are "
            f"{k} groups and the noise is {_as_said(answer)}, an alarm has probability at most {alarm.probability:g}.)"
        )
    if looks is not None and _mixed(answer):
        more = f" Try --clusters {k + 1}." if k + 1 < len(answer.pool.names) else ""
        lines.append(f"warning: {looks[0].lower()}{looks[1:]}{more}")
    elif looks is not None and not answer.noise_too_small and not answer.misfits:  # or all that was recorded says more
        lines.append(looks)
    return lines


def _partial_lines(answer: ReplayAnalysis) -> list[str]:
    k, known, fewer, lines = answer.n_clusters, answer.partial, answer.fewer, []
    if known is not None and not answer.done and not answer.noise_too_small and not answer.out_of_order:
        if answer.session.alarm is None and answer.asks_for_equal_items:
            settled, undecided = answer.named(known.settled), answer.named(known.undecided)
            lines.append(f"Certain so far, if there are exactly {k} groups: {first_names(settled) or 'no item'}.")
            lines.append(f"Undecided: {first_names(undecided) or 'none'}.")
        pairs = answer.pairs
        assert pairs is not None
        lines += pair_lines(pairs.apart, pairs.alike, (len(pairs.apart), len(pairs.alike)), pairs.of)
    if fewer is not None and fewer.n_clusters == 1:
        lines.append(
            "Every item fits one single group: there may be no groups at all, or too few measurements to show them."
        )
    elif fewer is not None:
        lines.append(
            f"For {fewer.n_clusters} groups {fewer.t} of these measurements are enough, and every item fits its group: "
            f"there may be fewer groups than {k} (try --clusters {fewer.n_clusters}), or too few measurements to show "
            f"{k}."
        )
    return lines


def _print_letters_and_groups(answer: ReplayAnalysis) -> None:
    """A compact letter display; once K groups are proven, each group has a letter of its own, and it is left out."""
    pairs = answer.pairs
    if pairs is None or not answer.groups or answer.noise_too_small or answer.out_of_order:
        return
    if answer.done and answer.n_clusters is not None and answer.session.alarm is None:
        return
    names, used = answer.pool.names, answer.session.pulls.tolist()
    rows = [
        [names[arm], pairs.letters[arm], ", ".join(map(str, pairs.possible[arm])), used[arm]]
        for group in answer.groups
        for arm in group.arms
    ]
    print_letters(["item", "letters", "possible groups", "used"], rows, "--out, --json")


# Both.


def misfit_lines(answer: Analysis) -> list[str]:
    """Items that do not fit their group, by all that was recorded."""
    if not answer.asks_for_equal_items:
        return []
    by = answer.checks.fitted_by
    if answer.done and not answer.misfits:
        if answer.noise_too_small:
            return []
        if answer.pool.blocks is not None:
            return ["Whether all measurements fit these groups is not tested in blocks."]
        if by is None:
            return ["Whether all measurements fit these groups is not tested: items need only share their means here."]
        how = {"noise": "", "spread": " by the spread of repeats", "ranks": " by ranks"}[by]
        return [f"All {answer.recorded} measurements fit these groups (tested{how} at level {MISFIT_PROBABILITY:g})."]
    lines = []
    for number in sorted({misfit.group for misfit in answer.misfits}):
        names = [misfit.name for misfit in answer.misfits if misfit.group == number]
        size = len(answer.groups[number - 1].arms)
        verb = "does not fit" if len(names) == 1 else "do not fit"
        lines.append(f"warning: {first_names(names)} {verb} group {number} ({len(names)} of its {size} items).")
    if lines:
        lines.append(
            f"There may be more groups than {answer.n_clusters}{_more_groups(answer)}, or {_other_cause(answer)}. (All "
            f"{answer.recorded} measurements; if the groups are right, such a warning has probability at most "
            f"{MISFIT_PROBABILITY:g}.)"
        )
    return lines


def _print_groups(answer: Analysis, title: str) -> None:
    """A line for each group: its items, its reference if it has one, and its center."""
    columns = answer.pool.columns
    if not answer.groups:
        return
    wide = len(columns) > _WIDE
    rows = []
    for group in answer.groups:
        center = [number_or_dash(value) for value in group.center]
        if wide:
            numbers = [f"{column} {value}" for column, value in zip(columns, center, strict=True)]
            center = [", ".join(numbers[:_MANY]) + (", …" if len(numbers) > _MANY else "")]
        reference = [] if answer.references is None else answer.named([answer.references[group.group - 1]])
        rows.append([group.group, len(group.arms), *reference, *center, ", ".join(group.names)])
    reference = [] if answer.references is None else ["reference"]
    print_table(["group", "items", *reference, *(["center"] if wide else columns), "members"], rows, title)


def _print_remarks(texts: Sequence[str], verbose: bool) -> None:
    """Print remarks, what matters most first; only the first few unless all are asked for."""
    ordered = by_weight(texts)
    shown = ordered if verbose else ordered[:_SHOWN]
    more = len(ordered) - len(shown)
    print_lines(["", *(line for text in shown for line in text.split("\n"))])
    if more:
        print_lines([f"{plural(more, 'more remark')}: --verbose"])
