"""Revisions: items that join or are retired on the way, more groups, a smaller δ. What one is, and its checks.

Arms keep their numbers and names for ever: a new item has the next number, a retired one keeps its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from coterie.problem.checks import check_arm, check_count, check_delta, short
from coterie.problem.costs import check_costs
from coterie.problem.question import ExactGroups, SingleLinkage
from coterie.problem.settings import SettingError, Settings, checked

MOST_JOINING = 1_000_000
"""Items that may join at once."""

FIELDS = ("add", "costs", "retire", "n_clusters", "delta")
"""What can be revised, by name."""


@dataclass(frozen=True)
class Revision:
    """What is another from here on; what stays is 0, empty or None.

    `added`: how many items join, `names` what they are called where items have names, `costs` what
    one measurement of each costs where items have costs. `retired`: numbers of items.
    """

    added: int = 0
    names: tuple[str, ...] = ()
    retired: tuple[int, ...] = ()
    n_clusters: int | None = None
    delta: float | None = None
    costs: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "added": self.added,
            "names": list(self.names),
            "retired": list(self.retired),
            "n_clusters": self.n_clusters,
            "delta": self.delta,
        } | ({"costs": list(self.costs)} if self.costs else {})

    @classmethod
    def from_json(cls, saved: Any) -> Revision:
        """What `to_json` gave; ValueError names what is wrong. Whether it fits a session is not looked at."""
        if not isinstance(saved, dict) or not {"added", "retired", "n_clusters", "delta"} <= set(saved):
            raise ValueError(f"a revision must have added, retired, n_clusters and delta, got {short(saved)}")
        names, retired = saved.get("names") or [], saved["retired"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"names of a revision must be strings, got {short(names)}")
        if not isinstance(retired, list):
            raise ValueError(f"retired must be a list of items, got {short(retired)}")
        return cls(
            check_count(saved["added"], "added", 0),
            tuple(names),
            tuple(check_count(arm, "a retired item", 0) for arm in retired),
            None if saved["n_clusters"] is None else check_count(saved["n_clusters"], "n_clusters", 2),
            None if saved["delta"] is None else check_delta(saved["delta"]),
            tuple(check_costs(saved["costs"], saved["added"]).tolist()) if saved.get("costs") else (),
        )


class Items(NamedTuple):
    """All items there ever were, 0 … M−1, and those of them that are retired."""

    n_ever: int
    retired: tuple[int, ...] = ()

    @property
    def present(self) -> list[int]:
        """Items that are not retired, ascending."""
        gone = set(self.retired)
        return [arm for arm in range(self.n_ever) if arm not in gone]

    def after(self, revision: Revision) -> Items:
        """The items after a revision."""
        return Items(self.n_ever + revision.added, tuple(sorted({*self.retired, *revision.retired})))


def settings_after(settings: Settings, revision: Revision) -> Settings:
    """What holds after a revision; `n_arms` and `names` are of all items, the retired ones too."""
    names = None if settings.names is None else (*settings.names, *revision.names)
    question = settings.question
    if revision.n_clusters is not None:
        kind = SingleLinkage if isinstance(question, SingleLinkage) else ExactGroups
        question = kind(revision.n_clusters)
    delta = settings.delta if revision.delta is None else revision.delta
    costs = None if settings.costs is None else (*settings.costs, *revision.costs)
    n_arms = settings.n_arms + revision.added
    return replace(settings, n_arms=n_arms, names=names, question=question, delta=delta, costs=costs)


def among(settings: Settings, present: Sequence[int]) -> Settings:
    """The settings of a run that knows the present items only, numbered among themselves."""
    names = None if settings.names is None else tuple(settings.names[arm] for arm in present)
    costs = None if settings.costs is None else tuple(settings.costs[arm] for arm in present)
    return replace(settings, n_arms=len(present), names=names, costs=costs)


def revision_of(
    settings: Settings, items: Items, add: Any, retire: Any, n_clusters: Any, delta: Any, costs: Any = None
) -> Revision:
    """A revision from what a caller gave, checked; `SettingError` names the value and says what to do.

    `add`: names of the items that join, or how many join where items have no names; `costs`: what one measurement of
    each of them costs, where items have costs. `retire`: names or numbers.
    """
    added, names = _joining(settings, items, add)
    priced = _prices(settings, added, costs)
    retired = _leaving(settings, items, retire)
    groups = None if n_clusters is None else _more_groups(settings, n_clusters)
    level = None if delta is None else _smaller_delta(settings, delta)
    revision = Revision(added, names, retired, groups, level, priced)
    if revision == Revision():
        raise SettingError("nothing to revise: name items that join or retire, more groups, or a smaller delta", "add")
    present = len(items.after(revision).present)
    wanted = settings.n_clusters if groups is None else groups
    if wanted is not None and present <= wanted:
        field = "n_clusters" if groups is not None and not retired else "retire"
        raise SettingError(
            f"{present} items would be left for {wanted} groups: there must be at least {wanted + 1}. Retire fewer "
            "items, or let others join first",
            field,
        )
    if present < 2:
        raise SettingError(f"{present} items would be left: at least 2 must stay", "retire")
    return revision


def _joining(settings: Settings, items: Items, add: Any) -> tuple[int, tuple[str, ...]]:
    if add is None or (isinstance(add, list | tuple) and not add):
        return 0, ()
    if settings.names is None:
        count = checked("add", check_count, add, "add, how many items join (items have no names here),", 1)
        if count > MOST_JOINING:
            raise SettingError(f"at most {MOST_JOINING} items may join at once, got {count}", "add")
        return count, ()
    given = [add] if isinstance(add, str) else list(add) if isinstance(add, Iterable) else [add]
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise SettingError(f"an item that joins needs a name, got {short(name)}", "add")
        if name in settings.names:
            arm = settings.names.index(name)
            was = "was retired, and its name stays its own" if arm in items.retired else "is there already"
            raise SettingError(f"item {name!r} {was}: choose another name", "add")
        if given.count(name) > 1:
            raise SettingError(f"item {name!r} is to join twice: each name once", "add")
    return len(given), tuple(given)


def _prices(settings: Settings, added: int, costs: Any) -> tuple[float, ...]:
    """What the items that join cost: needed where items have costs, refused where they have none."""
    if settings.costs is None:
        if costs is not None:
            raise SettingError(f"items have no costs here, got {short(costs)}: leave costs out", "costs")
        return ()
    if added == 0:
        if costs is not None:
            raise SettingError(f"costs are for items that join, and none does, got {short(costs)}", "costs")
        return ()
    if costs is None:
        raise SettingError(
            f"items have costs here: say with costs what one measurement of each of the {added} items that join costs",
            "costs",
        )
    given = [costs] if isinstance(costs, int | float) else costs
    prices = tuple(checked("costs", check_costs, given, added).tolist())
    checked("costs", check_costs, [*settings.costs, *prices], len(settings.costs) + added)
    return prices


def _leaving(settings: Settings, items: Items, retire: Any) -> tuple[int, ...]:
    if retire is None:
        return ()
    given = list(retire) if isinstance(retire, Iterable) and not isinstance(retire, str) else [retire]
    leaving = []
    for item in given:
        if isinstance(item, str):
            if settings.names is None or item not in settings.names:
                known = (
                    "items have no names here" if settings.names is None else f"known: {short(list(settings.names))}"
                )
                raise SettingError(f"unknown item {item!r}: {known}", "retire")
            arm = settings.names.index(item)
        else:
            arm = checked("retire", check_arm, item, settings.n_arms)
        if arm in items.retired:
            raise SettingError(f"item {settings.name_of(arm)!r} is retired already", "retire")
        if arm in leaving:
            raise SettingError(f"item {settings.name_of(arm)!r} is to be retired twice: name it once", "retire")
        leaving.append(arm)
    return tuple(sorted(leaving))


def _more_groups(settings: Settings, n_clusters: Any) -> int:
    if settings.n_clusters is None:
        raise SettingError("the number of groups is found here, from the resolution: it cannot be given", "n_clusters")
    wanted = checked("n_clusters", check_count, n_clusters, "n_clusters", 2)
    if wanted <= settings.n_clusters:
        raise SettingError(
            f"n_clusters can only be raised on the way: it is {settings.n_clusters}, got {wanted}. For fewer groups "
            "start anew and import the measurements",
            "n_clusters",
        )
    return wanted


def _smaller_delta(settings: Settings, delta: Any) -> float:
    wanted = checked("delta", check_delta, delta)
    if not wanted < settings.delta:
        raise SettingError(
            f"delta can only be lowered on the way: it is {settings.delta:g}, got {wanted:g}. A larger error "
            "probability chosen after looking at the results would hold for no run: whoever stops at a larger delta "
            "whenever that happens to be enough errs more often than it says",
            "delta",
        )
    return wanted


PAIR_SLACK = 0.00171875
"""1 − Σ p(ρ) of the paired evidence: the share of the pairs' part of δ that their mixture leaves unspent."""


def equal_pairs_ever(n_first: int, n_ever: int) -> int:
    """H of the pairs from the start after a revision (docs/CROC.md, section 17): chosen so that nothing was seen first.

    All pairs of the first items; with items that joined, n³/(M·slack) of the n items that there ever were.
    """
    if n_ever == n_first:
        return n_first * (n_first - 1) // 2
    return math.ceil(n_ever**3 / (n_first * PAIR_SLACK))
