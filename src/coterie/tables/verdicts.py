"""What tests of all pairs of a table prove, in sentences: the same in Python and on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coterie.problem.features import ABOUT_HOLES
from coterie.problem.question import ExactGroups
from coterie.problem.sentences import table_blocks

if TYPE_CHECKING:
    from coterie.tables.analysis import Analysis, PairAnalysis

_NAMED = 12


def condition(finished: str, option: str = "growing=True") -> str:
    """When the answer holds, for whoever reads it; `option` says here that a table grows."""
    if finished == "stated":
        return "The table is finished, as you say: the number of rows did not depend on their values."
    return (
        "This holds if the number of rows did not depend on their values. If you looked and then measured more, or if "
        f"rows will be added: {option}."
    )


def assumed_lines(answer: PairAnalysis) -> list[str]:
    """What is assumed of blocks and of holes, if there are any."""
    blocks, lines = answer.pool.blocks, []
    if blocks is not None:
        assumed = table_blocks(answer.checks.noise, answer.question, blocks.column)
        lines.append(f"Items were compared within {blocks.column} only. Assumed: {assumed}.")
    if answer.pool.has_holes:
        lines.append(f"Rows with holes count where they have numbers. Assumed: {ABOUT_HOLES}.")
    return lines


def verdict_lines(answer: PairAnalysis) -> list[str]:
    """The answer in a few sentences."""
    if not answer.sound:
        return ["Nothing is proven: the rows contradict what was stated about the noise (see above)."]
    asked = answer.question
    if asked is None:
        return _differences(answer)
    if isinstance(asked, ExactGroups):
        return _exact_groups(answer, asked.n_clusters)
    if answer.done:
        count = len(answer.groups)
        lines = [f"Proven: {count} group{'' if count == 1 else 's'}; {asked.claim}; {_wrong(answer)}."]
        near = [f"{name} (also {' and '.join(map(str, groups))})" for name, groups in answer.borders_by_name.items()]
        if near:
            lines.append(f"Near a border, so that another group may be as good: {', '.join(near[:_NAMED])}.")
        return lines
    lines = [f"These rows do not prove {asked.words} with error probability {answer.delta:g}."]
    if answer.coarser is not None:
        shown = ",".join(f"{bound:.12g}" for bound in answer.coarser.apart)
        lines.append(f"They do for a larger apart: {shown}.")
    return lines


def _wrong(answer: PairAnalysis) -> str:
    return f"wrong with probability at most {answer.delta:g}"


def _differences(answer: PairAnalysis) -> list[str]:
    n_arms, pairs = len(answer.pool.names), answer.pairs
    if not pairs.apart:
        if not answer.enough:
            most, blocks = int(answer.pool.counts.max()), answer.pool.blocks
            within = "" if blocks is None else f" within {blocks.column}"
            return [
                f"With {most} measurement{'' if most == 1 else 's'}{within} no two of {n_arms} items can be proven to "
                "differ whatever the noise: it takes more measurements, or something that you know about the noise."
            ]
        return [
            f"No two of the {n_arms} items are proven to differ: there may be no groups at all, or too few "
            "measurements to show them."
        ]
    if answer.done:
        every = "both items differ" if n_arms == 2 else f"all {n_arms} items differ from each other"
        return [
            f"Proven: {every} ({_wrong(answer)}): each is a group of its own, unless small differences do not matter."
        ]
    return [
        f"{_apart(answer)} ({_wrong(answer)}, whatever the number of groups).",
        _number_of_groups(answer) + " That items are alike is not proven by this.",
    ]


def _apart(answer: PairAnalysis) -> str:
    apart, of = len(answer.pairs.apart), answer.pairs.of
    return f"{apart:,} of {of:,} pairs of items {'is' if apart == 1 else 'are'} proven to differ"


def _number_of_groups(answer: PairAnalysis) -> str:
    names, fewest = answer.named(answer.differing), answer.fewest
    which = f": {_first(names)} differ pairwise" if len(names) == fewest and fewest > 1 else ""
    return f"So there are at least {fewest} groups{which}."


def _exact_groups(answer: PairAnalysis, k: int) -> list[str]:
    known = f"{_apart(answer)}, whatever the number of groups."
    if answer.refuted:
        return [f"Proven: there are more groups than {k} ({_wrong(answer)}). {known} {_number_of_groups(answer)}"]
    if answer.done and answer.labels is not None:
        labels = answer.labels
        different = [(i, j) for i in range(len(labels)) for j in range(i) if labels[i] != labels[j]]
        shown = sum(bool(answer.apart[pair]) for pair in different)
        differ = f"{shown:,} of {len(different):,} pairs across groups"
        if shown == len(different):
            differ = "any two items of different groups"
        return [
            f"Proven, if there are exactly {k} groups: these are they, the items of a group are alike "
            f"({_wrong(answer)}).",
            f"Proven without that: {differ} differ.",
        ]
    several = "more than one grouping" if answer.fitting is None else f"{answer.fitting:,} groupings"
    return [
        f"Not settled: {several} into {k} groups fit these rows; if there are exactly {k}, one of them is right "
        f"({_wrong(answer)}).",
        known,
    ]


def thin_lines(answer: Analysis) -> list[str]:
    """Items that lie far from the rest of their group."""
    lines = []
    for item in answer.thin[:_NAMED]:
        own, others = (", ".join(f"{value:.4g}" for value in mean) for mean in (item.mean, item.of_the_others))
        lines.append(
            f"warning: {item.name} ({item.rows} row{'' if item.rows == 1 else 's'}) has mean {own}, the others of its "
            f"group {item.group} have {others}: it lies far from them, and its rows are too few to tell, or some of "
            "them do not belong."
        )
    return lines


def _first(names: Sequence[str]) -> str:
    """Names, not more than a line of them."""
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
