"""`coterie campaign new`: what is asked for, the items, the features, and what measuring each costs."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.campaign import next_ask, open_store
from coterie.cli.campaign_measure import split_commas
from coterie.cli.methods import MeasuringMethod, Register
from coterie.cli.noise import NoiseOption, noise_from_text, noise_sentence
from coterie.cli.options import (
    DEFAULT_THRESHOLD,
    Alike,
    Apart,
    Claim,
    Clusters,
    Delta,
    DistanceRatio,
    Groups,
    Json,
    Norm,
    Sheet,
    StoppingThreshold,
    Store,
    asked_for,
    whole_if_it_is,
)
from coterie.cli.printing import print_json
from coterie.problem import features as problem_features
from coterie.problem.families import noise_of, trials_of
from coterie.problem.features import ABOUT_HOLES, HOLES
from coterie.problem.question import CLAIMS, GROUPS, NORMS, ExactGroups, Resolution
from coterie.problem.sentences import rates_in_words
from coterie.problem.settings import BLOCKS, DELTA, METHOD, question_of
from coterie.tables.reading.item_lists import COST_COLUMNS, read_items

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
    try:
        return int(given)
    except ValueError:
        pass
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


NamesFile = Annotated[
    Path | None,
    typer.Option(
        "--names-file", help="The same: a text file with one on each line, or a CSV or Excel file with a column name."
    ),
]


class Expiry(StrEnum):
    """What happens to a lease whose time is over."""

    skip = "skip"
    wait = "wait"


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call the campaign.")],
    clusters: Clusters = None,
    alike: Alike = None,
    apart: Apart = None,
    norm: Norm = NORMS[0],
    claim: Claim = CLAIMS[0],
    groups: Groups = GROUPS[0],
    arms: Annotated[
        int | None, typer.Option("--items", "--arms", "-a", help="How many items there are, if they have no names.")
    ] = None,
    names: Annotated[str | None, typer.Option("--names", help="The items' names, as a,b,c.")] = None,
    names_file: NamesFile = None,
    sheet: Sheet = None,
    dim: Annotated[
        int | None,
        typer.Option("--dim", help="How many numbers a measurement has.", show_default="as many as --values, or 1"),
    ] = None,
    delta: Delta = DELTA,
    noise: NoiseOption = None,
    method: MeasuringMethod = METHOD,
    register: Register = None,
    threshold: StoppingThreshold = DEFAULT_THRESHOLD,
    distance_ratio: DistanceRatio = None,
    lease_seconds: Annotated[
        float, typer.Option("--lease-seconds", help="How many seconds a worker may take for a measurement.")
    ] = 3600.0,
    on_expiry: Annotated[
        Expiry,
        typer.Option(
            "--on-expiry",
            help="skip: a measurement that does not come in time is given up (losses must have nothing to do with "
            "values); wait: results that come later wait for it.",
        ),
    ] = Expiry.skip,
    pass_on: Annotated[
        float | None,
        typer.Option(
            "--pass-on",
            help="When everybody waits for one ask, somebody else is asked too after so many times the median of the "
            "times that answers took, and the first result counts (delays must have nothing to do with values); "
            "0: never.",
            show_default="2; 0 with --on-expiry wait",
        ),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option("--values", help="What the numbers are called, as ph,turbidity.", show_default="v0, v1, …"),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            "--costs",
            help="What a measurement of each item costs, as 1,1,20, or a file of them, one on each line or item,cost.",
            show_default="the column cost of --names-file",
        ),
    ] = None,
    cost_unit: Annotated[str | None, typer.Option("--cost-unit", help="The unit of the costs, as EUR.")] = None,
    confirm: Annotated[
        float,
        typer.Option(
            "--confirm",
            help="Go on after the proof for so many measurements more, as a share of those that it took (0.5: half as "
            "many), to see whether a group hides two.",
        ),
    ] = 0.0,
    blocks: Annotated[
        str | None,
        typer.Option(
            "--blocks",
            metavar="|".join(BLOCKS),
            help="offset: all results of one block (a plate, a day, a rater) may be shifted together; drawn: every "
            "block is a question drawn afresh. Items are then compared inside a block only: ask --block names it.",
            show_default="results do not depend on where they are measured",
        ),
    ] = None,
    strict_blocks: Annotated[
        bool,
        typer.Option("--strict-blocks", help="What was asked for together and is not all measured counts for nothing."),
    ] = False,
    features: Features = None,
    feature_costs: FeatureCosts = None,
    panel: Panels = None,
    panel_costs: PanelCosts = None,
    holes: Holes = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline",
            help="All that may be measured: so many measurements or, with costs, so much may be spent. Then it hands "
            "over what is proven, and a guess for the rest.",
        ),
    ] = None,
    store: Store = "coterie.db",
    as_json: Json = False,
) -> None:
    """Create a campaign."""
    listed, costs_of_file = read_item_list(names, names_file, sheet)
    called = split_commas(values)
    if arms is None and listed is None:
        raise ValueError("say how many items there are, with --items, or name them, with --names or --names-file")
    if arms is not None and listed is not None and arms != len(listed):
        raise ValueError(f"--items is {arms}, but there are {len(listed)} names")
    count = arms if arms is not None else len(listed or [])
    measured = features_from_text(features, feature_costs, panel, panel_costs, holes)
    known = problem_features.Features.of(**measured) if measured else None
    numbers = dim if dim is not None else len(called or [""]) if known is None else known.dim
    if numbers < 1:
        raise ValueError(f"--dim must be at least 1, got {numbers}")
    stated = noise_from_text(noise, numbers)
    asked = asked_for(clusters, alike, apart, norm, claim, groups, numbers)
    with open_store(store, create=True) as campaigns:
        made = campaigns.create(
            name,
            count,
            dim=numbers,
            **asked,
            delta=delta,
            method=method,
            threshold=threshold.value,
            noise=stated,
            names=listed,
            distance_ratio=distance_ratio,
            lease_seconds=lease_seconds,
            on_expiry=on_expiry.value,
            pass_on=pass_on,
            value_names=called,
            costs=costs_of_file if costs is None else read_costs(costs, listed),
            cost_unit=cost_unit,
            confirm=confirm,
            blocks=blocks,
            strict_blocks=strict_blocks,
            deadline=whole_if_it_is(deadline),
            one_of_its_name=True,
            **measured,
        )
    if as_json:
        print_json(made)
        return
    each = f"{numbers} number{'' if numbers == 1 else 's'} each"
    if known is not None:
        of = f"{numbers} feature{'' if numbers == 1 else 's'}"
        each = f"{known.n_panels} panels of {of}" if known.panels else f"{of}, measured one by one"
    question = question_of(count, dim=numbers, **asked)
    typer.echo(f"campaign {made['name']} is {made['id']}: {count} items, {question.words}, {each}")
    if isinstance(question, Resolution):
        model = noise_of(stated, numbers)
        question = question.in_counts(trials_of(model))
        rates = rates_in_words(question, model)
        typer.echo(f"What will be proven: {question.claim}{'' if rates is None else f' ({rates})'}.")
    elif not isinstance(question, ExactGroups):
        typer.echo(f"What will be proven: {question.claim}.")
    typer.echo(noise_sentence(stated, numbers, question.kind, blocks, strict_blocks))
    if known is not None and known.holes:
        typer.echo(f"assumed: {ABOUT_HOLES}")
    if noise is None:
        typer.echo("(If you know more about the noise, say so with --noise: it takes fewer measurements.)")
    typer.echo(next_ask(made["name"], store, blocks))


def read_item_list(
    given: str | None, file: Path | None, sheet: str | None = None
) -> tuple[list[str] | None, list[float] | None]:
    """The items' names, from --names or from a file, and what each costs if the file says so; None if nothing is given.

    What there is to know about the file is said on the error stream.
    """
    if given is not None and file is not None:
        raise ValueError("give --names or --names-file, not both")
    if sheet is not None and file is None:
        raise ValueError("--sheet is of an Excel file: name it with --names-file")
    if given is not None and "," not in given and re.search(r"[;\t]", given):
        raise ValueError(f"--names are separated by commas, as a,b,c, got {given!r}")
    if file is None:
        return split_commas(given), None
    listed = read_items(file.name, file.read_bytes(), sheet)
    for remark in listed.remarks:
        typer.echo(f"remark: {remark}", err=True)
    return listed.names, listed.costs


def read_costs(given: str, names: Sequence[str] | None) -> list[float]:
    """What a measurement of each item costs: numbers as 1,1,20, or a file of them."""
    parts = _costs_in(Path(given), names) if Path(given).is_file() else split_commas(given) or []
    return [_read_cost(part, f"item {i}") for i, part in enumerate(parts)]


def _costs_in(file: Path, names: Sequence[str] | None) -> list[str]:
    """The costs of a file: one on each line, or `item,cost` in any order of the items."""
    rows = [row for row in csv.reader(file.read_text(encoding="utf-8-sig").splitlines()) if any(row)]
    if all(len(row) == 1 for row in rows):
        return [row[0].strip() for row in rows if row[0].strip().casefold() not in COST_COLUMNS]
    if names is None:
        raise ValueError(f"{file} has costs by name, and the items have no names: name them, or give one cost a line")
    by_name: dict[str, str] = {}
    for row in rows:
        name, cost = row[0].strip(), row[-1].strip()
        if cost.casefold() in COST_COLUMNS:
            continue
        if name not in names or name in by_name:
            raise ValueError(f"{file}: {'two costs for' if name in by_name else 'no item is called'} {name!r}")
        by_name[name] = cost
    missing = [name for name in names if name not in by_name]
    if missing:
        raise ValueError(
            f"{file} has no cost for {', '.join(missing[:5])}: give one for each of the {len(names)} items"
        )
    return [by_name[name] for name in names]


def _read_cost(given: str, whose: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"a cost is a positive number, got {given!r} for {whose}") from None
