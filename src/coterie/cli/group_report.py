"""What `coterie group` prints for people: what was read, what looks wrong, the verdict, the groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from coterie.certificate import Certificate
from coterie.cli.campaign_report import print_table
from coterie.cli.campaign_text import first_names
from coterie.cli.group_remarks import in_bursts, out_of_order, remark_lines, too_small
from coterie.cli.letters_report import pair_lines, print_letters
from coterie.methods import method_named
from coterie.tables.finished_words import thin_lines

_MANY = 12
_WIDE = 5  # so many columns of values have a column each in the table of groups


def print_groups(found: dict[str, Any]) -> None:
    """Print what grouping a table gave (`coterie.tables.replay_pool`): warnings first, then verdict and groups."""
    console = Console()
    parts = (
        remark_lines(found),
        _verdict_lines(found),
        _contradiction_lines(found),
        misfit_lines(found),
        [] if found["misfits"] else thin_lines(found),
        _partial_lines(found),
    )
    for line in (line for part in parts for line in part):
        console.print(line, highlight=False, markup=False)
    print_group_table(found, _title(found))
    _print_letters(found)


def item_states(found: dict[str, Any]) -> list[str]:
    """How sure the group of each item is: as the verdict says, in one word or two."""
    names: list[str] = found["names"]
    if "rows" in found:  # a finished table
        off = {one["name"] for one in found["misfits"]}
        state = "proven" if found["done"] and not off else "a guess"
        return ["does not fit" if name in off else "" if found["labels"] is None else state for name in names]
    if found["done"]:
        misfits = {one["name"] for one in found["misfits"]}
        all_of_them = "proven" if _trusted(found) else "no proof"
        return ["does not fit" if name in misfits else all_of_them for name in names]
    partial = found["partial"]
    doubtful = found["alarm"] is not None or too_small(found) or in_bursts(found) or out_of_order(found)
    certain = set() if partial is None or doubtful else set(partial["settled"])
    return ["certain so far" if name in certain else "a guess" for name in names]


def _proves(found: dict[str, Any]) -> bool:
    return method_named(found["method"]).proves(found["threshold"])


def _mixed(found: dict[str, Any]) -> bool:
    return bool(found["homogeneity"] and found["homogeneity"]["mixed"])


def _contradicted(found: dict[str, Any]) -> bool:
    """Whether the measurements speak against the number of groups, the noise, or the order in which they were used."""
    return bool(found["misfits"]) or _mixed(found) or found["alarm"] is not None or out_of_order(found)


def _trusted(found: dict[str, Any]) -> bool:
    return _proves(found) and not too_small(found) and not in_bursts(found) and not _contradicted(found)


# What came out.


def _verdict_lines(found: dict[str, Any]) -> list[str]:
    k, lines, dry = found["n_clusters"], _forecast_lines(found), found["dry"]
    if dry is not None:
        its = "only one measurement" if dry["recorded"] == 1 else f"only {dry['recorded']} measurements"
        lines.append(
            f"{dry['name']} has {its}. After {dry['t']} in all the method asked for one more, so from there on the "
            "rest of the table was used, in turn over the items."
        )
    if found["done"]:
        enough = f"{found['t']} of {found['recorded']} measurements would have been enough"
        if not _proves(found):
            lines.append(f"{enough} (heuristic threshold, no proof).")
        elif found["noise"]["rows_contradict"]:
            lines.append(f"{enough} for the noise stated, which the rows named above contradict: no proof.")
        elif too_small(found):
            lines.append(f"{enough} for the noise stated, which is too small: no proof.")
        elif in_bursts(found):
            trials = found["read"]["cut"]["trials"]
            lines.append(f"{enough} if {trials} were independent of each other, which they are not: no proof.")
        elif out_of_order(found):
            lines.append(
                f"{enough} if the order of the rows had nothing to do with their values (see above): no proof."
            )
        elif not _asks_for_equal_items(found):
            count = len(found["groups"])
            lines.append(
                f"{enough}: {count} group{'' if count == 1 else 's'}; if the noise is {_as_said(found)}, "
                f"{found['question']['claim']}; wrong with probability at most {found['delta']:g}."
            )
            lines += _border_lines(found)
        elif _contradicted(found):
            lines.append(f"{enough} if there were exactly {k} groups and the noise were {_as_said(found)}, but:")
        else:
            lines += [f"{enough}.", f"Proven, if the noise is {_as_said(found)}: {_claimed(found)}."]
        return lines
    lines.append(
        f"All {found['recorded']} measurements are not enough to prove {found['question']['words']} with error "
        f"probability {found['delta']:g}."
    )
    return lines


def _claimed(found: dict[str, Any]) -> str:
    """What is proven without the number of groups, and what with it, as its certificate says, if there is one."""
    if found["certificate"] is not None:
        return Certificate(found["certificate"]).claimed
    return f"{found['question']['claim']}; wrong with probability at most {found['delta']:g}"


def _asks_for_equal_items(found: dict[str, Any]) -> bool:
    """Whether the items of a group are taken to be equal, so that more than the proof can be tested."""
    return bool(found["question"]["kind"] == "groups")


def _forecast_lines(found: dict[str, Any]) -> list[str]:
    """What was expected when every item had been measured, if the table was not expected to be enough."""
    forecast = found["forecast"]
    if forecast is None or forecast["enough"] or found["done"]:
        return []
    coarser = forecast.get("resolution")
    instead = ""
    if coarser is not None:
        apart = coarser["apart"] if isinstance(coarser["apart"], list) else [coarser["apart"]]
        instead = f" They are expected to be enough for --apart {','.join(f'{one:.3g}' for one in apart)}."
    from coterie.session.forecast import WILD  # here: most commands do without sessions

    total = forecast["total"]
    much = "far more" if total > WILD * found["recorded"] else f"about {total:.0f}, more"
    return [
        f"A rough forecast, made when every item had been measured once: it takes {much} than the {found['recorded']} "
        f"measurements that the table has.{instead}"
    ]


def _border_lines(found: dict[str, Any]) -> list[str]:
    """Items that could also belong to another group."""
    near = [
        f"{name} (also group{'' if len(others) == 1 else 's'} {', '.join(map(str, others))})"
        for name, others in found["borders"].items()
    ]
    return [f"Near a border, and could belong elsewhere: {first_names(near)}."] if near else []


def _as_said(found: dict[str, Any]) -> str:
    return "as stated" if found["noise"]["deviations"] is not None else "as assumed"


def _other_cause(found: dict[str, Any]) -> str:
    """What else than the number of groups may be wrong if items do not fit."""
    if found["noise"]["deviations"] is not None:
        return "the noise is larger than stated"
    return "items of a group do not share what is assumed of them"


def _contradiction_lines(found: dict[str, Any]) -> list[str]:
    """The alarm, and whether each group looks like one."""
    k, alarm, looks, lines = found["n_clusters"], found["alarm"], found["homogeneity"], []
    if alarm is not None:
        cause = f"there are at least {k + 1} groups{_suggested_clusters(found, k + 1)}, or {_other_cause(found)}"
        if too_small(found):
            cause = "the noise is larger than stated (see above)"
        lines.append(
            f"Alarm: {first_names(alarm['names'])} are pairwise known to differ, so {cause}. (If there are {k} groups "
            f"and the noise is {_as_said(found)}, an alarm has probability at most {alarm['probability']:g}.)"
        )
    if looks is not None and _mixed(found):
        more = f" Try --clusters {k + 1}." if k + 1 < found["n_arms"] else ""
        lines.append(f"warning: {looks['text'][0].lower()}{looks['text'][1:]}{more}")
    elif looks is not None and not too_small(found) and not found["misfits"]:  # or all that was recorded says more
        lines.append(looks["text"])
    return lines


def misfit_lines(found: dict[str, Any]) -> list[str]:
    k, misfits = found["n_clusters"], found["misfits"]
    """Items that do not fit their group, by all that was recorded."""
    if not _asks_for_equal_items(found):
        return []
    if found["done"] and not misfits:
        if too_small(found):
            return []
        fit = found["fit"]
        if not fit["tested"]:
            return ["Whether all measurements fit these groups is not tested: items need only share their means here."]
        how = {"noise": "", "spread": " by the spread of repeats", "ranks": " by ranks"}[fit["by"]]
        return [f"All {found['recorded']} measurements fit these groups (tested{how} at level {fit['probability']:g})."]
    lines = []
    for number in sorted({one["group"] for one in misfits}):
        names = [one["name"] for one in misfits if one["group"] == number]
        size = len(found["groups"][number - 1]["arms"])
        verb = "does not fit" if len(names) == 1 else "do not fit"
        lines.append(f"warning: {first_names(names)} {verb} group {number} ({len(names)} of its {size} items).")
    if lines:
        lines.append(
            f"There may be more groups than {k}{_suggested_clusters(found, k + 1)}, or {_other_cause(found)}. (All "
            f"{found['recorded']} measurements; if the groups are right, such a warning has probability at most "
            f"{found['fit']['probability']:g}.)"
        )
    return lines


def _partial_lines(found: dict[str, Any]) -> list[str]:
    k, partial, fewer = found["n_clusters"], found["partial"], found["fewer"]
    lines = []
    usable = partial is not None and not too_small(found) and not out_of_order(found)
    if usable and found["alarm"] is None and _asks_for_equal_items(found):
        sure_of, open_ones = partial["settled"], partial["undecided"]
        given = "near the reference of their group" if k is None else f"if there are exactly {k} groups"
        lines.append(f"Certain so far, {given}: {first_names(sure_of) if sure_of else 'no item'}.")
        lines.append(f"Undecided: {first_names(open_ones) if open_ones else 'none'}.")
    if usable:
        pairs = found["pairs"]
        lines += pair_lines(pairs["apart"], pairs["alike"], (len(pairs["apart"]), len(pairs["alike"])), pairs["of"])
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


def _title(found: dict[str, Any]) -> str:
    if found["done"] and not _proves(found):
        return "groups, without proof"
    return "groups" if found["done"] and _trusted(found) else "groups, a guess"


def print_group_table(found: dict[str, Any], title: str) -> None:
    """A line for each group: its items, and its center."""
    groups, columns = found["groups"], found["read"]["values"]
    if not groups:
        return
    members = [", ".join(one["names"]) for one in groups]
    if len(columns) <= _WIDE:
        centers = [[f"{value:.4g}" for value in one["center"]] for one in groups]
        headings = list(columns)
    else:
        centers = [[_named_center(columns, one["center"])] for one in groups]
        headings = ["center"]
    references = [[] for _ in groups] if found["references"] is None else [[name] for name in found["references"]]
    rows = [
        [one["group"], len(one["arms"]), *reference, *center, names]
        for one, reference, center, names in zip(groups, references, centers, members, strict=True)
    ]
    named = [] if found["references"] is None else ["reference"]
    print_table(["group", "items", *named, *headings, "members"], rows, title)


def _print_letters(found: dict[str, Any]) -> None:
    """A compact letter display; once K groups are proven, each group has a letter of its own, and it is left out."""
    pairs, groups = found["pairs"], found["groups"]
    if pairs is None or not groups or too_small(found) or out_of_order(found):
        return
    if found["done"] and found["n_clusters"] is not None and found["alarm"] is None:
        return
    arms = [arm for group in groups for arm in group["arms"]]
    of_items = (found["names"], pairs["letters"], pairs["possible"], found["pulls"])
    names, letters, possible, used = ([column[arm] for arm in arms] for column in of_items)
    print_letters(names, letters, possible, used, "--out, --json")


def _named_center(columns: Sequence[str], center: Sequence[float]) -> str:
    shown = [f"{column} {value:.4g}" for column, value in zip(columns, center, strict=True)]
    return ", ".join(shown[:_MANY]) + (", …" if len(shown) > _MANY else "")
