"""Options of `coterie campaign new` that say which features can be measured, alone or together, and what that costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.problem.features import HOLES

Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="Where every look at an item gives one of many features: their names, as ph,iron,zinc, a file with one on "
        "each line, or how many there are. An ask then says the item and the feature.",
    ),
]
FeatureCosts = Annotated[
    str | None,
    typer.Option("--feature-costs", help="What each feature costs alone, as 1,5,5 or as ph=1,iron=5.", metavar="COSTS"),
]
Panels = Annotated[
    list[str] | None,
    typer.Option("--panel", help="Features that one look gives together, as blood=iron,zinc. May be repeated."),
]
PanelCosts = Annotated[
    str | None, typer.Option("--panel-costs", help="What each panel costs, as blood=5.", metavar="COSTS")
]
Holes = Annotated[
    str | None,
    typer.Option(
        "--holes",
        metavar="at-random",
        help="Results may lack numbers, and count where they can; which are missing has nothing to do with any value.",
    ),
]


def features_from_text(
    features: str | None,
    feature_costs: str | None,
    panels: list[str] | None,
    panel_costs: str | None,
    holes: str | None,
) -> dict[str, Any]:
    """The settings that these options state; ValueError says how they are written."""
    if holes is not None and holes.strip().replace("-", " ") != HOLES:
        raise ValueError(f"--holes must be at-random, or left out, got {holes!r}")
    stated: dict[str, Any] = {
        "features": None if features is None else _names(features),
        "feature_costs": _costs(feature_costs, "--feature-costs"),
        "panels": None if not panels else dict(_panel(panel) for panel in panels),
        "panel_costs": _costs(panel_costs, "--panel-costs"),
        "holes": None if holes is None else HOLES,
    }
    given = [name for name, value in stated.items() if value is not None]
    if given and stated["features"] is None:
        option = {"panels": "panel"}.get(given[0], given[0].replace("_", "-"))
        raise ValueError(f"--{option} is for features: name them with --features")
    return {name: stated[name] for name in given}


def _names(given: str) -> int | list[str]:
    """The features: how many, a file, or a list."""
    if given.strip().isdecimal():
        return int(given)
    if Path(given).is_file():
        return [line.strip() for line in Path(given).read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    return [name.strip() for name in given.split(",")]


def _panel(given: str) -> tuple[str, list[str]]:
    name, mark, members = given.partition("=")
    if not mark or not name.strip():
        raise ValueError(f"a panel is written as blood=iron,zinc, got {given!r}")
    return name.strip(), [member.strip() for member in members.split(",")]


def _costs(given: str | None, option: str) -> list[float | None] | dict[str, float] | None:
    """Costs in order, with nothing for a feature that is not measured alone; or by name."""
    if given is None:
        return None
    parts = [part.strip() for part in given.split(",")]
    if any("=" in part for part in parts):
        pairs = [part.rpartition("=") for part in parts]
        return {name.strip(): _cost(cost, option) for name, _, cost in pairs}
    return [None if not part else _cost(part, option) for part in parts]


def _cost(given: str, option: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"{option}: a cost is a positive number, got {given!r}") from None
