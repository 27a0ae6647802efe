"""What a measurement gives where features are measured apart: names, panels of features, and what each costs.

A *panel* is a list of features that one measurement gives. If none are stated, every feature is a panel alone. Panels
are known by their numbers, from 0, and by their names (docs/FEATURES.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coterie.problem.checks import check_count, check_real_array, short
from coterie.problem.costs import LARGEST_RATIO

HOLES = "at random"
"""What may be stated about numbers that are missing in a result."""
ABOUT_HOLES = (
    "which numbers of a result are missing has nothing to do with the value of any result, this one or a later one"
)

MOST_FEATURES, MOST_CELLS, MOST_CENTERS = 10**6, 10**9, 10**7
"""Features, items times panels, and groups times features, that a run may have: what is not measured takes no memory,
but the search has to look at it."""


class Panel(NamedTuple):
    """Features that one measurement gives, by their numbers."""

    name: str
    features: tuple[int, ...]


@dataclass(frozen=True)
class Features:
    """Which features there are, which are measured together, and what that costs.

    Build it with `Features.of`.

    Parameters
    ----------
    names
        Of the d features.
    panels
        What one measurement may give; empty: every feature alone.
    panel_costs
        What a measurement of each panel costs beside its item; None: nothing is stated.
    holes
        Whether a result may lack numbers, which are missing at random.
    """

    names: tuple[str, ...]
    panels: tuple[Panel, ...] = ()
    panel_costs: tuple[float, ...] | None = None
    holes: bool = False

    @classmethod
    def of(
        cls,
        features: Any,
        feature_costs: Any = None,
        panels: Any = None,
        panel_costs: Any = None,
        holes: Any = None,
    ) -> Features:
        """Features from what a caller gave; ValueError or TypeError names what cannot be used.

        Parameters
        ----------
        features : int or iterable of str
            How many features there are, or their names.
        feature_costs : sequence or mapping, optional
            What each feature costs where it is measured alone. With panels: those that have a cost, not None, can be
            measured alone too.
        panels : mapping of str to list of features, optional
            What one measurement may give, by names. A feature of none of them is measured alone; without panels every
            feature is.
        panel_costs : sequence or mapping, optional
            What each of these panels costs.
        holes : {"at random"}, optional
            That results may lack numbers, whatever their values.

        Examples
        --------
        >>> from coterie.problem.features import Features
        >>> assays = Features.of(["iron", "zinc", "ph"], panels={"blood": ["iron", "zinc"], "ph": ["ph"]})
        >>> assays.features_of(assays.panel_of("blood"))
        (0, 1)
        """
        if isinstance(features, Features):
            return features
        if isinstance(features, Mapping):
            return cls.from_json(features)
        names = _names_of(features)
        if holes not in (None, False, True, HOLES):
            raise ValueError(f"holes must be {HOLES!r}, or left out if no result lacks a number, got {short(holes)}")
        if panels is None and panel_costs is not None:
            raise ValueError("panel_costs are for panels: give panels too, or feature_costs")
        known = cls(names)
        if panels is None:
            costs = None if feature_costs is None else _costs_of(feature_costs, "feature", known.names)
            return cls(names, (), costs, bool(holes))
        named = _panels_of(panels, known)
        prices = _alone_costs(feature_costs, known, {feature for panel in named for feature in panel.features})
        made = (*(Panel(names[feature], (feature,)) for feature in prices), *named)
        _refuse_twice([panel.name for panel in made], "panels, and features that are measured alone,")
        if all(price is None for price in prices.values()) and panel_costs is None:
            return cls(names, made, None, bool(holes))
        of_named = () if panel_costs is None else _costs_of(panel_costs, "panel", [panel.name for panel in named])
        unpriced = next((names[feature] for feature, price in prices.items() if price is None), None)
        if unpriced is not None:
            raise ValueError(f"feature_costs has no cost of the feature {unpriced!r}, which is in no panel: give one")
        if panel_costs is None:
            raise ValueError("panel_costs must be given where feature_costs are: a cost for each panel")
        costs = tuple(price for price in prices.values() if price is not None) + of_named
        return cls(names, made, _in_one_unit(costs, [panel.name for panel in made], "panel_costs"), bool(holes))

    @property
    def dim(self) -> int:
        """d, the number of features."""
        return len(self.names)

    @property
    def n_panels(self) -> int:
        """How many panels there are."""
        return len(self.panels) or self.dim

    @property
    def width(self) -> int:
        """How many numbers the largest panel gives."""
        return max((len(panel.features) for panel in self.panels), default=1)

    def features_of(self, panel: int) -> tuple[int, ...]:
        """The features of a panel, in the order of its numbers."""
        return self.panels[panel].features if self.panels else (panel,)

    def panel_name(self, panel: int) -> str:
        """What people call a panel."""
        return self.panels[panel].name if self.panels else self.names[panel]

    def panel_of(self, name: str) -> int:
        """The number of a panel; ValueError if there is none of this name."""
        return _number_of(name, self._panel_numbers, "panel" if self.panels else "feature")

    def feature_of(self, name: str) -> int:
        """The number of a feature; ValueError if there is none of this name."""
        return _number_of(name, self._feature_numbers, "feature")

    def stream(self, item: int, panel: int) -> int:
        """A number for an item with a panel: a *stream*, whose asks and results are in a line of their own."""
        return item * self.n_panels + panel

    def split(self, stream: int) -> tuple[int, int]:
        """The item and the panel of a stream."""
        return divmod(stream, self.n_panels)

    @cached_property
    def panels_with(self) -> Mapping[int, tuple[int, ...]]:
        """The panels that give each feature; empty where every feature is measured alone."""
        given: dict[int, list[int]] = {}
        for number, panel in enumerate(self.panels):
            for feature in panel.features:
                given.setdefault(feature, []).append(number)
        return {feature: tuple(numbers) for feature, numbers in given.items()}

    @cached_property
    def _feature_numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def _panel_numbers(self) -> dict[str, int]:
        return {panel.name: number for number, panel in enumerate(self.panels)} or self._feature_numbers

    def ask_cost(self, item_costs: Sequence[float] | None, item: int, panel: int) -> float:
        """What a measurement of a panel of an item costs: 1 if nothing is stated, else what is, added up."""
        if item_costs is None and self.panel_costs is None:
            return 1.0
        of_item = 0.0 if item_costs is None else item_costs[item]
        return of_item + (0.0 if self.panel_costs is None else self.panel_costs[panel])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` gives the same back."""
        numbered = self.names == tuple(map(str, range(self.dim)))
        made: dict[str, Any] = {"names": self.dim if numbered else list(self.names)}
        if self.panels:
            made["panels"] = [[panel.name, list(panel.features)] for panel in self.panels]
        if self.panel_costs is not None:
            made["costs"] = list(self.panel_costs)
        return made | ({"holes": HOLES} if self.holes else {})

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Features:
        """What `to_json` described."""
        given = saved.get("panels", ())
        pairs = [(pair[0], pair[1]) for pair in given if isinstance(pair, list | tuple) and len(pair) == 2]
        if not {"names"} <= set(saved) <= {"names", "panels", "costs", "holes"} or len(pairs) != len(given):
            raise ValueError(f"features must be how many there are, or their names, got {short(dict(saved))}")
        names, panels, costs = _names_of(saved["names"]), dict(pairs), saved.get("costs")
        known = {member for members in panels.values() if isinstance(members, list | tuple) for member in members}
        if panels and known != set(range(len(names))):
            raise ValueError(f"the panels of saved features must have all of them, got {short(panels)}")
        if panels:
            return cls.of(names, panels=panels, panel_costs=costs, holes=saved.get("holes"))
        return cls.of(names, costs, holes=saved.get("holes"))


def _names_of(features: Any) -> tuple[str, ...]:
    """d different names."""
    if isinstance(features, int | np.integer) and not isinstance(features, bool):
        if features > MOST_FEATURES:
            raise ValueError(f"features must be at most {MOST_FEATURES:,}, got {features:,}")
        return tuple(map(str, range(check_count(int(features), "features", 1))))
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        raise TypeError(f"features must be how many there are, or their names, got {short(features)}")
    names = tuple(features)
    if not 0 < len(names) <= MOST_FEATURES:
        raise ValueError(f"features must name at least one feature, and at most {MOST_FEATURES:,}, got {len(names):,}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a feature's name must be text, got {short(name)}")
        if not name.strip() or not name.isprintable() or name != name.strip():
            raise ValueError(f"a feature's name must be printable, with no blanks around it, got {short(name)}")
    _refuse_twice(names, "features")
    return names


def _refuse_twice(names: Sequence[Any], kind: str) -> None:
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{kind} must differ, but {short(name)} is there twice")
        seen.add(name)


def _number_of(name: str, numbers: Mapping[str, int], kind: str) -> int:
    if name not in numbers:
        raise ValueError(f"there is no {kind} {short(name)}: the {kind}s are {short(list(numbers))}")
    return numbers[name]


def _panels_of(panels: Any, known: Features) -> tuple[Panel, ...]:
    """The panels that a caller named."""
    if not isinstance(panels, Mapping):
        raise TypeError(f"panels must be a mapping of names to lists of features, got {short(panels)}")
    if not panels:
        raise ValueError("panels must name at least one panel; leave it out to measure every feature alone")
    made = []
    for name, members in panels.items():
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ValueError(f"a panel's name must be printable text, got {short(name)}")
        if isinstance(members, str | bytes) or not isinstance(members, Iterable):
            raise TypeError(f"the panel {name!r} must be a list of features, got {short(members)}")
        listed = list(members)
        if not listed:
            raise ValueError(f"the panel {name!r} has no features")
        for member in listed:
            if member not in known.names and not _is_number_of(member, known.dim):
                raise ValueError(
                    f"the panel {name!r} has the unknown feature {short(member)}: the features are "
                    f"{short(list(known.names))}"
                )
        _refuse_twice(listed, f"the features of the panel {name!r}")
        numbers = [known.feature_of(member) if isinstance(member, str) else int(member) for member in listed]
        _refuse_twice(numbers, f"the features of the panel {name!r}")
        made.append(Panel(name, tuple(numbers)))
    if any(panel.name in known.names and panel.features != (known.feature_of(panel.name),) for panel in made):
        wrong = next(panel.name for panel in made if panel.name in known.names)
        raise ValueError(f"the panel {wrong!r} has the name of a feature: give it a name of its own")
    return tuple(made)


def _is_number_of(member: Any, dim: int) -> bool:
    whole = isinstance(member, int | np.integer) and not isinstance(member, bool)
    return bool(whole and 0 <= member < dim)


def _alone_costs(given: Any, known: Features, in_panels: set[int]) -> dict[int, float | None]:
    """The features that are measured alone beside panels, with their costs as far as they were stated."""
    costs: dict[int, float | None] = {feature: None for feature in range(known.dim) if feature not in in_panels}
    if given is None:
        return costs
    stated: dict[str, Any]
    if isinstance(given, Mapping):
        stated = {name: cost for name, cost in given.items() if cost is not None}
        wrong = next((name for name in stated if name not in known.names), None)
        if wrong is not None:
            raise ValueError(f"feature_costs has the unknown feature {short(wrong)}: {_listed(known.names)}")
    else:
        if isinstance(given, str | bytes) or not hasattr(given, "__len__") or len(given) != known.dim:
            raise ValueError(
                f"feature_costs must be {known.dim} costs, one for each feature, None for one that is measured in "
                f"panels only, got {short(given)}"
            )
        stated = {name: cost for name, cost in zip(known.names, given, strict=True) if cost is not None}
    prices = _costs_of(list(stated.values()), "feature", list(stated)) if stated else ()
    alone = costs | {known.feature_of(name): price for name, price in zip(stated, prices, strict=True)}
    return dict(sorted(alone.items()))


def _listed(names: Sequence[str]) -> str:
    return f"the features are {short(list(names))}"


def _costs_of(costs: Any, kind: str, names: Sequence[str]) -> tuple[float, ...]:
    """What each of these costs; `kind` is what callers call them."""
    argument = f"{kind}_costs"
    if isinstance(costs, Mapping):
        there = set(names)
        for name in costs:
            if name not in there:
                known = short(list(names))
                raise ValueError(f"{argument} has the unknown {kind} {short(name)}: the {kind}s are {known}")
        for name in names:
            if name not in costs:
                raise ValueError(f"{argument} has no cost of the {kind} {name!r}: give one for each {kind}")
        costs = [costs[name] for name in names]
    if isinstance(costs, str | bytes) or not hasattr(costs, "__len__"):
        raise TypeError(f"{argument} must be {len(names)} positive numbers, one for each {kind}, got {short(costs)}")
    prices = check_real_array(costs if isinstance(costs, np.ndarray) else list(costs), argument)
    if prices.shape != (len(names),):
        raise ValueError(
            f"{argument} must be {len(names)} positive numbers, one for each {kind}, got an array of shape "
            f"{prices.shape}"
        )
    for name, cost in zip(names, prices.tolist(), strict=True):
        if cost <= 0.0:
            raise ValueError(f"{argument} must be positive, got {cost!r} for the {kind} {name!r}")
    return _in_one_unit(tuple(prices.tolist()), names, argument)


def _in_one_unit(prices: tuple[float, ...], names: Sequence[str], argument: str) -> tuple[float, ...]:
    """The same prices, if they are not too far apart to be in one unit."""
    if max(prices) > LARGEST_RATIO * min(prices):
        dearest, cheapest = (names[prices.index(end)] for end in (max(prices), min(prices)))
        raise ValueError(
            f"{argument} must be within a factor of {LARGEST_RATIO:g} of one another, got {min(prices)!r} for "
            f"{cheapest!r} and {max(prices)!r} for {dearest!r}: are they in one unit?"
        )
    return prices


def check_size(features: Features, n_arms: int, n_clusters: int | None) -> None:
    """That a run with so many items and groups can search these features; ValueError says what would fit."""
    cells = n_arms * features.n_panels
    if cells > MOST_CELLS:
        raise ValueError(
            f"{n_arms:,} items times {features.n_panels:,} features or panels are {cells:,} cells, and up to "
            f"{MOST_CELLS:,} fit: {max(1, MOST_CELLS // n_arms):,} features of {n_arms:,} items do, or "
            f"{max(1, MOST_CELLS // features.n_panels):,} items with {features.n_panels:,} features"
        )
    if n_clusters is not None and n_clusters * features.dim > MOST_CENTERS:
        raise ValueError(
            f"the centers of {n_clusters:,} groups in {features.dim:,} features do not fit in memory: up to "
            f"{MOST_CENTERS // features.dim:,} groups with as many features do, or {MOST_CENTERS // n_clusters:,} "
            f"features with as many groups"
        )
