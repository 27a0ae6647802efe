"""Every number of CROC's sampling rule is pinned: with another value, a run is another one.

The engine equals the reference on the instances of `croc_cases` (`test_croc_equals_reference`). Here each constant is
changed in the reference, and the reference then differs from itself on one of these instances. So an engine with that
constant changed differs from the reference there, and the comparison fails.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from croc_cases import DRAWN, case_named, engine_facts, reference_facts

from coterie._native import CrocFamily, croc_constants, parts
from coterie.methods.croc import method as croc
from coterie.methods.croc import run as constants
from coterie.methods.croc.run import CrocRun
from tests.oracles.croc import rule


class Pin(NamedTuple):
    """A constant of `tests.oracles.croc.rule`, another value for it, and a case of `croc_cases` that shows it."""

    name: str
    other: Any
    case: int | str


PINS: dict[str, Pin] = {
    "block_ratios": Pin("BLOCK_RATIOS", (1, 3, 4, 8), 0),
    "log_ratio_weights": Pin("RATIO_WEIGHTS", (0.3, 0.1, 0.1, 0.1), 0),
    "scales": Pin("SCALES", 3.0 ** np.arange(3, -8, -1), "one of four, three groups"),
    "log_scale_weights": Pin("SCALE_WEIGHTS", 0.7 * rule.SCALE_WEIGHTS, 1),
    "prefix_room": Pin("ALL_PREFIXES_UP_TO", 16, "results nobody asked for"),
    "grid_step": Pin("GRID_STEP", 32, "results nobody asked for"),
    "alpha": Pin("PAIRS_SHARE", 0.25, 1),
    "first_share": Pin("FIRST_EPOCH_SHARE", 0.7, 8),
    "epochs": Pin("REMEMBERED_EPOCHS", 1, "three groups, K = 2"),
    "core": Pin("CORE_ARMS", 2, 8),
    "flight": Pin("ROUNDS_UNDER_WAY", 4, "sixty workers"),
    "scale_up": Pin("ROUNDS_PER_DOUBLING", 7, "sixty workers"),
    "round_places": Pin("ROUND_PLACES", 3, "sixty workers"),
    "passes": Pin("HARTIGAN_PASSES", 1, 2),
    "one": Pin("ALONE", 1.5, 3),
    "move_tie": Pin("MOVE_TIE", 0.1, 5),
    "posterior_tie": Pin("POSTERIOR_TIE", 1.0, 6),
    "subspace_passes": Pin("SUBSPACE_PASSES", 0, 37),
    "subspace_extra": Pin("SUBSPACE_EXTRA", -1, 13),
    "regroupings": Pin("REGROUPINGS", 0, 6),
    "split_passes": Pin("CUT_PASSES", 0, 37),
    "size_price": Pin("SIZE_PRICE", 0.7, 6),
    "tie": Pin("LEAD_TIE", 0.5, "two groups far apart"),
    "estimate_arms": Pin("ESTIMATE_ARMS", 5, 32),
    "estimate_results": Pin("ESTIMATE_RESULTS", 30, "one of 40 in the middle"),
    "patience_results": Pin("PATIENCE_RESULTS", 60, "one of 40 near the middle"),
    "patience_work": Pin("PATIENCE_WORK", 100, "two of 40 in the middle"),
    "starts_results": Pin("STARTS_RESULTS", 100, "two and two groups, K = 3"),
    "starts_work": Pin("STARTS_WORK", 10, 9),
    "freeze_risk": Pin("FREEZE_RISK", 0.12, 3),
    "largest_risk": Pin("LARGEST_RISK", 0.8, 5),
    "steady": Pin("STEADY_SHARE", 0.04, 5),
    "freeze_looks": Pin("FREEZE_LOOKS", 1, "three of 30 in the middle"),
    "margin_cap": Pin("MARGIN_CAP", 4.5, 6),
    "margin_window": Pin("MARGIN_WINDOW", 1.9, 2),
    "drift": Pin("MARGIN_DRIFT", -3.0, 2),
    "merge_cap": Pin("MERGE_CAP", 1.6, 2),
    "chance_share": Pin("CHANCE_SHARE", 0.15, 3),
    "rival_pulls": Pin("RIVAL_PULLS", 2, 5),
    "balance": Pin("BALANCE", 1, 8),
    "root_floor": Pin("ROOT_FLOOR", 0.6, 21),
    "least_share": Pin("FLOOR_SHARE", 0.2, 21),
    "least_share_in_rounds": Pin("ROUND_FLOOR_SHARE", 0.3, 25),
    "top_up": Pin("POOL_TOP_UP", 0.7, 2),
    "core_price": Pin("CORE_PRICE", 4.0, "costs, cores"),
    "pool_price": Pin("POOL_PRICE", 2.0, "costs, pools"),
    "steps": Pin("FORECAST_STEPS", (0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64), 27),
    "forecast_loss": Pin("FORECAST_LOSS", 0.7, 30),
    "lead_levels": Pin("LEAD_LEVELS", 3, 27),
    "freeze_factor": Pin("FREEZE_FACTOR", 1.0, 27),
    "prior_cost": Pin("FREEZE_DIM_PRICE", 0.2, 27),
    "freeze_least_gap": Pin("FREEZE_LEAST_GAP", 0.4, 27),
    "freeze_least_pulls": Pin("FREEZE_LEAST_PULLS", 2.0, 4),
    "freeze_group_pulls": Pin("FREEZE_GROUP_PULLS", 1.0, 18),
    "least_deficit": Pin("LEAST_DEFICIT", 100.0, 0),
    "look_ahead": Pin("LOOK_AHEAD", 0, 0),
    "doublings": Pin("LEAD_DOUBLINGS", 1, 1),
    "together_share": Pin("TOGETHER_SHARE", 0.22, 0),
    "pairs_per_pull": Pin("PAIRS_PER_PULL", 5, 0),
    "greedy_factor": Pin("GREEDY_FACTOR", -20.0, 0),
    "greedy_extra": Pin("GREEDY_EXTRA", -40.0, 0),
}

LOGARITHMS = ("log_ratio_weights", "log_scale_weights")
"""The engine has the logarithms of these."""

NOT_OF_THE_RULE: dict[str, str] = {
    "of an estimated metric, and of runs that have one (test_croc_metric, test_croc_families)": """
        first_results innovations pulled_in median_to_deviation mostly_ties refresh arm_prior least_shrinkage
        small_sample repeats freeze_risk_unknown sure_risk at_bound enlarge_risk bound_margin most_repeats least_gap
        stale_growth stale_loss""",
    "of an upper bound on the variance (test_croc_variance_bound)": """
        rates largest_rate root_steps root_precision resolution smallest most_ahead worth_a_look""",
    "of a second estimate, in a space of features (test_croc_shape)": """
        shape_results shape_repeats shape_numbers shape_most_information shape_forgetting shape_lead shape_lead_ratio
        shape_least_weight shape_small_share""",
    "digits, not the rule: arms beyond it count from an origin of their own": "near",
    "room: counts beyond P·2^24 are read at the last of the grid": "octaves",
    "room: P is halved for very many arms (test_croc_engine has its values)": "prefix_numbers",
}


def engine_constants() -> dict[str, Any]:
    """The rule's constants in the engine, and the share of δ that its family of a known covariance has for pairs."""
    return croc_constants() | {"alpha": CrocFamily.known().pair_share}


def test_every_constant_of_the_engine_is_pinned_or_explained() -> None:
    others = " ".join(NOT_OF_THE_RULE.values()).split()
    assert len(others) == len(set(others))
    assert sorted(engine_constants()) == sorted([*PINS, *others])


def test_python_has_the_same_shares_as_the_engine() -> None:
    assert constants.ALPHA == CrocFamily.known().pair_share == CrocFamily.gaussian(2, 2, "scalar").pair_share
    assert CrocFamily.gaussian(2, 2, "scalar").variance_share == constants.VARIANCE_SHARE
    run = CrocRun(9, 2, 2, 1.0)
    assert (run.core_room, run.room) == (constants.CORE_ROOM, constants.PREFIX_ROOM)
    counts = constants.grid_counts(64)
    assert counts.size == run.memory()["arms.grid"].shape[0]
    assert [parts.grid_count(place, 64) for place in range(counts.size)] == counts.tolist()


def test_every_constant_of_the_reference_is_pinned() -> None:
    assert sorted(pin.name for pin in PINS.values()) == sorted(name for name in vars(rule) if name.isupper())


@pytest.mark.parametrize("name", PINS)
def test_engine_and_reference_have_the_same_constant(name: str) -> None:
    expected = getattr(rule, PINS[name].name)
    if name in LOGARITHMS:
        expected = np.log(expected)
    np.testing.assert_array_equal(engine_constants()[name], expected)


@cache
def facts_of(case: int | str) -> dict[str, Any]:
    assert isinstance(case, str) or case < DRAWN, "this case is not compared with the engine"
    return reference_facts(case_named(case))


@pytest.mark.parametrize("name", PINS)
def test_another_value_changes_a_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pin = PINS[name]
    expected = facts_of(pin.case)
    assert not np.array_equal(pin.other, getattr(rule, pin.name))
    monkeypatch.setattr(rule, pin.name, pin.other)
    assert reference_facts(case_named(pin.case)) != expected


@pytest.mark.parametrize("name", PINS)
def test_the_engine_with_another_value_differs_from_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conclusion of the tests above, drawn in full."""
    pin = PINS[name]
    other = np.log(pin.other) if name in LOGARITHMS else pin.other
    if name == "alpha":
        monkeypatch.setattr(croc, "family_for", lambda *_: CrocFamily.known(other))
    else:
        kind = getattr(engine_constants()[name], "dtype", None)
        monkeypatch.setattr(croc, "CONSTANTS", {name: other if kind is None else np.array(other, dtype=kind)})
    assert engine_facts(case_named(pin.case)) != facts_of(pin.case)
