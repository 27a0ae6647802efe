"""What a run is told before its first measurement: one frozen `Settings`, checked once, used by every interface.

`Session`, `cluster`, tables, campaigns, the HTTP interface and the command line take settings from people. Each
collects what it was given and calls `Settings.of`; an error says which setting is at fault in `field`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, TypedDict

from coterie.problem.checks import SettingError as SettingError
from coterie.problem.checks import SettingTypeError as SettingTypeError
from coterie.problem.checks import blaming as blaming
from coterie.problem.checks import (
    check_count,
    check_delta,
    check_distance_ratio,
    check_real,
    check_threshold_kind,
    short,
)
from coterie.problem.checks import checked as checked
from coterie.problem.costs import check_cost_unit, check_costs, check_deadline, cost_of
from coterie.problem.families import Model, noise_of, trials_of
from coterie.problem.features import Features, check_size
from coterie.problem.instance import Instance
from coterie.problem.question import GROUPS, ExactGroups, Question, Resolution, SingleLinkage
from coterie.problem.question import question_of as question_of

DELTA, METHOD, THRESHOLD = 0.05, "croc", "proven"
"""What holds if nothing is said."""

MOST_CHANGE = 1e9
"""By which factor `apart` of a resolution may be changed on the way: results are rescaled, and keep their digits."""


class FurtherOptions(TypedDict, total=False):
    """The settings that have a default, but for δ and the method."""

    threshold: str
    noise: Any
    resolution: Any
    groups: str
    distance_ratio: float | None
    instance: Instance | None
    names: Iterable[str] | None
    costs: Any
    cost_unit: str | None
    confirm: float
    blocks: str | None
    strict_blocks: bool
    features: Any
    feature_costs: Any
    panels: Any
    panel_costs: Any
    holes: str | None
    deadline: float | None


class Options(FurtherOptions, total=False):
    """The settings that have a default, for interfaces that pass them on as they were given."""

    delta: float
    method: str


@dataclass(frozen=True)
class Settings:
    """A checked description of a run: M arms, the question, d numbers a measurement, δ, method, noise, names.

    A noise of None, which holds if nothing is said, is any noise: nothing is assumed about it. `costs`: what one
    measurement of each arm costs, in `cost_unit`, any name for it; None: all cost the same. `confirm`: so many
    measurements more after the proof, as a share of those of the proof. `blocks`: what results of one block share, one
    of `BLOCKS`; None: nothing. `strict_blocks`: whether a cell that is not measured to its end counts for nothing.
    `features`: what can be measured of an item, where a measurement is one feature, or a panel of some; None: all.
    `deadline`: all that may be measured, a number of measurements, or what they cost where there are costs.

    Build it with `Settings.of`, then hand it to `coterie.methods.prepared`, which checks what the method needs.
    """

    n_arms: int
    question: Question
    dim: int
    delta: float
    method: str
    threshold: str
    noise: Model
    distance_ratio: float | None = None
    instance: Instance | None = None
    names: tuple[str, ...] | None = None
    costs: tuple[float, ...] | None = None
    cost_unit: str | None = None
    confirm: float = 0.0
    blocks: str | None = None
    strict_blocks: bool = False
    features: Features | None = None
    deadline: float | None = None

    @classmethod
    def of(
        cls,
        n_arms: Any,
        n_clusters: Any = None,
        dim: Any = None,
        delta: Any = DELTA,
        method: Any = METHOD,
        threshold: Any = THRESHOLD,
        noise: Any = None,
        distance_ratio: Any = None,
        instance: Any = None,
        names: Any = None,
        *,
        resolution: Any = None,
        groups: Any = GROUPS[0],
        costs: Any = None,
        cost_unit: Any = None,
        confirm: Any = 0.0,
        blocks: Any = None,
        strict_blocks: Any = False,
        features: Any = None,
        feature_costs: Any = None,
        panels: Any = None,
        panel_costs: Any = None,
        holes: Any = None,
        deadline: Any = None,
    ) -> Settings:
        """Settings from what a caller gave; `SettingError` names the setting at fault and says what to do.

        Either `n_clusters` is given or `resolution`. In place of `n_arms` and `names`: the items, such as their names.
        """
        items, names = items_of(n_arms, names)
        n_arms = n_arms if items is None else len(items)
        arms = checked("n_arms", check_count, n_arms, "n_arms", 1)
        measured = _checked_features(features, feature_costs, panels, panel_costs, holes)
        dim = dim if measured is None else checked("dim", _dim_of_features, dim, measured)
        question = question_of(n_arms, n_clusters, dim, resolution, groups)
        d = checked("dim", check_count, dim, "dim", 1)
        model = checked("noise", noise_of, noise, d)
        if isinstance(question, Resolution):
            question = checked("resolution", question.in_counts, trials_of(model))
        prices = None if costs is None else tuple(checked("costs", check_costs, costs, arms).tolist())
        if measured is not None:
            checked("features", check_size, measured, arms, question.n_clusters)
        has_costs = costs is not None or (measured is not None and measured.panel_costs is not None)
        return cls(
            arms,
            question,
            d,
            checked("delta", check_delta, delta),
            method,  # `coterie.methods` knows which there are
            checked("threshold", check_threshold_kind, threshold),
            model,
            None if distance_ratio is None else checked("distance_ratio", check_distance_ratio, distance_ratio),
            checked("instance", _checked_instance, instance, (arms, question.n_clusters, d)),
            None if names is None else checked("names", _checked_names, names, arms),
            prices,
            checked("cost_unit", check_cost_unit, cost_unit, has_costs),
            checked("confirm", _checked_confirm, confirm, question),
            *_checked_blocks(blocks, strict_blocks),
            measured,
            checked("deadline", check_deadline, deadline, arms, prices, 0.0, blocks, measured),
        )

    @property
    def n_clusters(self) -> int | None:
        """K; None if the question is for a resolution, and K is found."""
        return self.question.n_clusters

    @property
    def resolution(self) -> Resolution | None:
        """The resolution that is asked for, if one is."""
        return self.question if isinstance(self.question, Resolution) else None

    @property
    def groups(self) -> str:
        """What makes a group of K: "equal" items, or "linkage"."""
        return GROUPS[int(isinstance(self.question, SingleLinkage))]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(M, K, d), where K was given."""
        n_clusters = self.n_clusters
        if n_clusters is None:
            raise ValueError("there is no K: the question is for groups up to a resolution")
        return self.n_arms, n_clusters, self.dim

    def name_of(self, arm: int) -> str:
        """What people call an arm: its name, or its number."""
        return str(arm) if self.names is None else self.names[arm]

    def cost_of(self, pulls: Any) -> float | None:
        """What so many measurements of each arm cost in all; None if there are no costs."""
        return cost_of(self.costs, pulls)

    def with_resolution(self, given: Any) -> Settings:
        """A copy that asks for another ε and η; `SettingError` if no resolution is asked for, or for bad values."""
        asked = self.resolution
        if asked is None:
            raise SettingError(
                f"the question is for {self.question.words}: it has no alike and apart to choose. Start anew with "
                "resolution=(alike, apart) in place of n_clusters",
                "resolution",
            )
        chosen = checked("resolution", asked.changed_to, given)
        chosen = checked("resolution", chosen.in_counts, trials_of(self.noise))
        if len(chosen.apart) > 1:
            chosen = checked("resolution", chosen.for_dim, self.dim)
        bounds = zip(chosen.eta(self.dim).tolist(), asked.eta(self.dim).tolist(), strict=True)
        if any(max(now / first, first / now) > MOST_CHANGE for now, first in bounds):
            raise SettingError(
                f"apart must be within a factor of {MOST_CHANGE:g} of the first one, {short(list(asked.apart))}, got "
                f"{short(list(chosen.apart))}: for results in other units start anew",
                "resolution",
            )
        return replace(self, question=chosen)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` gives the same settings back."""
        instance = self.instance
        truth = None
        if instance is not None:
            truth = {"labels": instance.labels.tolist(), "centers": instance.centers.tolist()}
        return (
            {
                "n_arms": self.n_arms,
                "n_clusters": self.n_clusters,
                "dim": self.dim,
                "delta": self.delta,
                "method": self.method,
                "threshold": self.threshold,
                "noise": self.noise.to_json(),
                "distance_ratio": self.distance_ratio,
                "instance": truth,
                "names": None if self.names is None else list(self.names),
            }
            | self.question.to_json()
            | self._costs_to_json()
            | ({"confirm": self.confirm} if self.confirm > 0.0 else {})
            | ({} if self.blocks is None else {"blocks": self.blocks})
            | ({"strict_blocks": True} if self.strict_blocks else {})
            | ({} if self.deadline is None else {"deadline": self.deadline})
            | ({} if self.features is None else {"features": self.features.to_json()})
        )

    def _costs_to_json(self) -> dict[str, Any]:
        """Written where there are costs only: settings without them are as in releases that knew none."""
        costs = {} if self.costs is None else {"costs": list(self.costs)}
        return costs | ({} if self.cost_unit is None else {"cost_unit": self.cost_unit})

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Settings:
        """The settings that `to_json` described.

        A noise of null is the standard Gaussian: the first release wrote it so, and any noise is saved by its name.
        """
        known = {field: saved[field] for field in FIELDS if field in saved}
        if known.get("noise") is None:
            known["noise"] = 1.0
        truth = known.get("instance")
        if truth is not None:
            known["instance"] = checked("instance", lambda: Instance(truth["labels"], truth["centers"]))
        return cls.of(**known)


FIELDS = tuple(
    field
    for field in signature(Settings.of).parameters
    if field not in ("feature_costs", "panels", "panel_costs", "holes")  # `features` has them all
)
"""The settings by name, in the order in which `Session` takes them."""

ALWAYS_SAVED = tuple(
    field
    for field in FIELDS
    if field not in ("resolution", "groups", "costs", "cost_unit", "confirm", "blocks", "strict_blocks")
    and field not in ("features", "deadline")
)
"""The settings that every saved session has; the others are written where they are asked for."""


def items_of(given: Any, names: Any) -> tuple[list[Any] | None, Any]:
    """The items, if they were given in place of their number, and the names: their own text, if they were."""
    if isinstance(given, str) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
        # As a list: they are read more than once.
        return None, list(names) if isinstance(names, Iterable) and not isinstance(names, str) else names
    if names is not None:
        raise SettingError(f"n_arms has the items already, {short(given)}: leave names out", "names")
    items = list(given)
    return items, [str(item) for item in items]


def _checked_features(features: Any, *more: Any) -> Features | None:
    """The features, with what was said about them: costs of features, panels, costs of panels, holes."""
    named = dict(zip(("feature_costs", "panels", "panel_costs", "holes"), more, strict=True))
    if features is None:
        field = next((field for field, given in named.items() if given is not None), None)
        if field is not None:
            together = "; one panel of all of them is a whole measurement" if field == "holes" else ""
            given = short(named[field])
            raise SettingError(f"{field}={given} is for features: give features=[…] too{together}", field)
        return None
    try:
        return Features.of(features, **named)
    except (ValueError, TypeError) as error:
        field = next((field for field in named if str(error).startswith(field)), "features")
        kind = SettingTypeError if isinstance(error, TypeError) else SettingError
        raise kind(str(error), field) from None


def _dim_of_features(dim: Any, features: Features) -> int:
    """How many numbers there are of an item: as many as features."""
    if dim is not None and check_count(dim, "dim", 1) != features.dim:
        raise ValueError(f"dim is the number of features, {features.dim}: leave it out, got {dim}")
    return features.dim


MOST_CONFIRM = 10.0
"""The largest share of the measurements that may follow the proof."""


def _checked_confirm(confirm: Any, question: Question) -> float:
    share = 0.0 if confirm is None else check_real(confirm, "confirm")
    if not 0.0 <= share <= MOST_CONFIRM:
        raise ValueError(
            f"confirm must be a share of the measurements from 0 to {MOST_CONFIRM:g}, such as 0.5 for half as many "
            f"again after the proof, got {short(confirm)}"
        )
    if share > 0.0 and not isinstance(question, ExactGroups):
        raise ValueError(
            f"confirm={share:g} looks for groups that hide two equal ones, but the question is for {question.words}, "
            "whose items may differ: leave it out"
        )
    return share


BLOCKS = ("offset", "drawn")
"""What results of one block may share: an offset (a plate, a day, a rater), or a question that was drawn afresh."""


def _checked_blocks(blocks: Any, strict: Any) -> tuple[str | None, bool]:
    if blocks is not None and (not isinstance(blocks, str) or blocks not in BLOCKS):
        raise SettingError(
            'blocks must be "offset" (plates, days, raters: all results of a block may be shifted together), "drawn" '
            f"(every block is a question drawn afresh), or None, got {short(blocks)}",
            "blocks",
        )
    if not isinstance(strict, bool):
        raise SettingTypeError(f"strict_blocks must be True or False, got {short(strict)}", "strict_blocks")
    if strict and blocks is None:
        raise SettingError(
            'strict_blocks is for blocks: give blocks="offset" or "drawn", or leave it out', "strict_blocks"
        )
    return blocks, strict


def _checked_instance(instance: Any, shape: tuple[int, int | None, int]) -> Instance | None:
    if instance is None:
        return None
    if not isinstance(instance, Instance):
        raise ValueError(
            f"a method that knows the truth needs the true instance, got {short(instance)}: give a coterie.Instance"
        )
    if (instance.n_arms, instance.dim) != shape[::2] or shape[1] not in (None, instance.n_clusters):
        raise ValueError(
            f"the instance has {instance.n_arms} arms, {instance.n_clusters} clusters and dimension "
            f"{instance.dim}, the session {shape[0]}, {shape[1]} and {shape[2]}"
        )
    return instance


def _checked_names(names: Any, n_arms: int) -> tuple[str, ...]:
    given = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if not all(isinstance(name, str) for name in given) or isinstance(names, str):
        raise TypeError(f"names must be {n_arms} strings, got {short(names)}")
    if len(given) != n_arms:
        raise ValueError(f"names must be {n_arms} strings, one for each arm, got {len(given)}")
    if len(set(given)) != n_arms:
        twice = next(name for name in given if given.count(name) > 1)
        raise ValueError(f"names must differ, got {twice!r} more than once")
    return tuple(given)
