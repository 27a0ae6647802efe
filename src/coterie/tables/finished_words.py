"""What a finished table proves, in sentences: the same at every door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coterie.problem.question import ExactGroups

_NAMED = 12


def condition(rows: str, option: str = "growing=True") -> str:
    """When the answer holds, for whoever reads it; `option` says at this door that a table grows."""
    if rows == "stated":
        return "The table is finished, as you say: the number of rows did not depend on their values."
    return (
        "This holds if the number of rows did not depend on their values. If you looked and then measured more, or if "
        f"rows will be added: {option}."
    )


def verdict(found: dict[str, Any]) -> list[str]:
    """The answer in a few sentences."""
    if not found["sound"]:
        return ["Nothing is proven: the rows contradict what was stated about the noise (see above)."]
    asked = found["question"]
    if asked is None:
        return _differences(found)
    if asked["kind"] == ExactGroups.kind:
        return _exact_groups(found)
    wrong = f"wrong with probability at most {found['delta']:g}"
    if found["done"]:
        count = len(found["groups"]) if "groups" in found else max(found["labels"]) + 1
        lines = [f"Proven: {count} group{'' if count == 1 else 's'}; {asked['claim']}; {wrong}."]
        near = found["borders"]
        if near:
            listed = ", ".join(f"{name} (also {_numbers(groups)})" for name, groups in list(near.items())[:_NAMED])
            lines.append(f"Near a border, so that another group may be as good: {listed}.")
        return lines
    lines = [f"These rows do not prove {asked['words']} with error probability {found['delta']:g}."]
    if found["allows"] is not None:
        apart = found["allows"]["apart"]
        shown = ",".join(f"{one:.12g}" for one in (apart if isinstance(apart, list) else [apart]))
        lines.append(f"They do for a larger apart: {shown}.")
    return lines


def _differences(found: dict[str, Any]) -> list[str]:
    n_arms, pairs = found["n_arms"], found["pairs"]
    wrong = f"wrong with probability at most {found['delta']:g}"
    if not pairs["apart"]:
        if not found["enough"]:
            most = max(found["counts"])
            return [
                f"With {most} measurement{'' if most == 1 else 's'} no two of {n_arms} items can be proven to differ "
                "whatever the noise: it takes more measurements, or something that you know about the noise."
            ]
        return [
            f"No two of the {n_arms} items are proven to differ: there may be no groups at all, or too few "
            "measurements to show them."
        ]
    if found["done"]:
        return [
            f"Proven: all {n_arms} items differ from each other ({wrong}): each is a group of its own, unless small "
            "differences do not matter."
        ]
    return [
        f"{len(pairs['apart']):,} of {pairs['of']:,} pairs of items are proven to differ ({wrong}, whatever the number "
        "of groups).",
        _number_of_groups(found) + " That items are alike is not proven by this.",
    ]


def _number_of_groups(found: dict[str, Any]) -> str:
    some, fewest = found["at_least"], found["fewest"]
    which = f": {first(some)} differ pairwise" if len(some) == fewest and fewest > 1 else ""
    return f"So there are at least {fewest} groups{which}."


def _exact_groups(found: dict[str, Any]) -> list[str]:
    k, pairs = found["n_clusters"], found["pairs"]
    wrong = f"wrong with probability at most {found['delta']:g}"
    count = f"{len(pairs['apart']):,} of {pairs['of']:,} pairs of items"
    known = f"{count} are proven to differ, whatever the number of groups."
    if found["refuted"]:
        return [f"Proven: there are more groups than {k} ({wrong}). {known} {_number_of_groups(found)}"]
    if found["done"]:
        labels, names = found["labels"], found["names"]
        place = {name: arm for arm, name in enumerate(names)}
        across = sum(labels[i] != labels[j] for i in range(len(labels)) for j in range(i))
        shown = sum(labels[place[one]] != labels[place[other]] for one, other in pairs["apart"])
        differ = (
            "any two items of different groups" if shown == across else f"{shown:,} of {across:,} pairs across groups"
        )
        return [
            f"Proven, if there are exactly {k} groups: these are they, the items of a group are alike ({wrong}).",
            f"Proven without that: {differ} differ.",
        ]
    fitting = found["fitting"]
    several = "more than one grouping" if fitting is None else f"{fitting:,} groupings"
    return [
        f"Not settled: {several} into {k} groups fit these rows; if there are exactly {k}, one of them is right "
        f"({wrong}).",
        known,
    ]


def thin_lines(found: dict[str, Any]) -> list[str]:
    """Items that lie far from the rest of their group."""
    lines = []
    for one in found["thin"][:_NAMED]:
        own, others = (", ".join(f"{value:.4g}" for value in one[key]) for key in ("mean", "of_the_others"))
        lines.append(
            f"warning: {one['name']} ({one['rows']} row{'' if one['rows'] == 1 else 's'}) has mean {own}, the others "
            f"of its group {one['group']} have {others}: it lies far from them, and its rows are too few to tell, or "
            "some of them do not belong."
        )
    return lines


def first(names: Sequence[str]) -> str:
    """Names, not more than a line of them."""
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _numbers(groups: Sequence[int]) -> str:
    return " and ".join(map(str, groups))
