"""Every number of CROC's sampling rule is pinned: with another value, a run is another one.

The engine equals the reference on the instances of `croc_cases` (`test_croc_equals_reference`). Here each constant is
changed in the reference, and the reference then differs from itself on one of these instances. So an engine with that
constant changed differs from the reference there, and the comparison fails.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from croc_cases import DRAWN, case_named, engine_facts, reference_facts

import coterie.engine.croc
from coterie.engine.croc.state import KNOWN_COVARIANCE
from coterie.reference_croc import rule


class Pin(NamedTuple):
    """A constant of `coterie.reference_croc.rule`, another value for it, and a case of `croc_cases` that shows it."""

    name: str
    other: Any
    case: int | str


PINS: dict[str, Pin] = {
    "BLOCK_RATIOS": Pin("BLOCK_RATIOS", (1, 3, 4, 8), 0),
    "LOG_RATIO_WEIGHTS": Pin("RATIO_WEIGHTS", (0.3, 0.1, 0.1, 0.1), 0),
    "SCALES": Pin("SCALES", 3.0 ** np.arange(3, -8, -1), "one of four, three groups"),
    "LOG_SCALE_WEIGHTS": Pin("SCALE_WEIGHTS", 0.7 * rule.SCALE_WEIGHTS, 1),
    "PREFIX_ROOM": Pin("ALL_PREFIXES_UP_TO", 16, "results nobody asked for"),
    "GRID_STEP": Pin("GRID_STEP", 32, "results nobody asked for"),
    "ALPHA": Pin("PAIRS_SHARE", 0.25, 1),
    "FIRST_SHARE": Pin("FIRST_EPOCH_SHARE", 0.7, 8),
    "EPOCHS": Pin("REMEMBERED_EPOCHS", 1, "three groups, K = 2"),
    "CORE": Pin("CORE_ARMS", 2, 8),
    "FLIGHT": Pin("ROUNDS_UNDER_WAY", 4, "sixty workers"),
    "SCALE_UP": Pin("ROUNDS_PER_DOUBLING", 7, "sixty workers"),
    "ROUND_PLACES": Pin("ROUND_PLACES", 3, "sixty workers"),
    "PASSES": Pin("HARTIGAN_PASSES", 1, 2),
    "ONE": Pin("ALONE", 1.5, 3),
    "MOVE_TIE": Pin("MOVE_TIE", 0.1, 5),
    "POSTERIOR_TIE": Pin("POSTERIOR_TIE", 1.0, 6),
    "SUBSPACE_PASSES": Pin("SUBSPACE_PASSES", 0, 37),
    "SUBSPACE_EXTRA": Pin("SUBSPACE_EXTRA", -1, 13),
    "REGROUPINGS": Pin("REGROUPINGS", 0, 6),
    "SPLIT_PASSES": Pin("CUT_PASSES", 0, 37),
    "SIZE_PRICE": Pin("SIZE_PRICE", 0.7, 6),
    "TIE": Pin("LEAD_TIE", 0.5, "two groups far apart"),
    "ESTIMATE_ARMS": Pin("ESTIMATE_ARMS", 5, 32),
    "ESTIMATE_RESULTS": Pin("ESTIMATE_RESULTS", 30, "one of 40 in the middle"),
    "PATIENCE_RESULTS": Pin("PATIENCE_RESULTS", 60, "one of 40 near the middle"),
    "PATIENCE_WORK": Pin("PATIENCE_WORK", 100, "two of 40 in the middle"),
    "STARTS_RESULTS": Pin("STARTS_RESULTS", 100, "two and two groups, K = 3"),
    "STARTS_WORK": Pin("STARTS_WORK", 10, 9),
    "FREEZE_RISK": Pin("FREEZE_RISK", 0.12, 3),
    "LARGEST_RISK": Pin("LARGEST_RISK", 0.8, 5),
    "STEADY": Pin("STEADY_SHARE", 0.04, 5),
    "FREEZE_LOOKS": Pin("FREEZE_LOOKS", 1, "three of 30 in the middle"),
    "MARGIN_CAP": Pin("MARGIN_CAP", 4.5, 6),
    "MARGIN_WINDOW": Pin("MARGIN_WINDOW", 1.9, 2),
    "DRIFT": Pin("MARGIN_DRIFT", -3.0, 2),
    "MERGE_CAP": Pin("MERGE_CAP", 1.6, 2),
    "CHANCE_SHARE": Pin("CHANCE_SHARE", 0.15, 3),
    "RIVAL_PULLS": Pin("RIVAL_PULLS", 2, 5),
    "BALANCE": Pin("BALANCE", 1, 8),
    "ROOT_FLOOR": Pin("ROOT_FLOOR", 0.6, 21),
    "LEAST_SHARE": Pin("FLOOR_SHARE", 0.2, 21),
    "LEAST_SHARE_IN_ROUNDS": Pin("ROUND_FLOOR_SHARE", 0.3, 25),
    "TOP_UP": Pin("POOL_TOP_UP", 0.7, 2),
    "CORE_PRICE": Pin("CORE_PRICE", 4.0, "costs, cores"),
    "POOL_PRICE": Pin("POOL_PRICE", 2.0, "costs, pools"),
    "STEPS": Pin("FORECAST_STEPS", (0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64), 27),
    "FORECAST_LOSS": Pin("FORECAST_LOSS", 0.7, 30),
    "LEAD_LEVELS": Pin("LEAD_LEVELS", 3, 27),
    "FREEZE_FACTOR": Pin("FREEZE_FACTOR", 1.0, 27),
    "PRIOR_COST": Pin("FREEZE_DIM_PRICE", 0.2, 27),
    "FREEZE_LEAST_GAP": Pin("FREEZE_LEAST_GAP", 0.4, 27),
    "FREEZE_LEAST_PULLS": Pin("FREEZE_LEAST_PULLS", 2.0, 4),
    "FREEZE_GROUP_PULLS": Pin("FREEZE_GROUP_PULLS", 1.0, 18),
    "LEAST_DEFICIT": Pin("LEAST_DEFICIT", 100.0, 0),
    "LOOK_AHEAD": Pin("LOOK_AHEAD", 0, 0),
    "DOUBLINGS": Pin("LEAD_DOUBLINGS", 1, 1),
    "TOGETHER_SHARE": Pin("TOGETHER_SHARE", 0.22, 0),
    "PAIRS_PER_PULL": Pin("PAIRS_PER_PULL", 5, 0),
    "GREEDY_FACTOR": Pin("GREEDY_FACTOR", -20.0, 0),
    "GREEDY_EXTRA": Pin("GREEDY_EXTRA", -40.0, 0),
}

LOGARITHMS = ("LOG_RATIO_WEIGHTS", "LOG_SCALE_WEIGHTS")
"""The engine has the logarithms of these."""

NOT_OF_THE_RULE: dict[str, str] = {
    "places in arrays, and codes": """
        T DONE QUEUE_HEAD QUEUE_TAIL OPEN_ROUNDS ROUND TO_ASK FREEZES ESTIMATED CHANGED LEFT_GROUP PRICED MODE UNSEEN
        CERTIFIED_EPOCH ALARM PLANNED HEAPED CANDIDATES TOUCHED STARTED OLDEST ENTRY_TAIL ASKED_IN CLOSED FAR N_INTS
        NEVER BY_PAIRS BY_EPOCH FIRST_PASS PAIRS EXPLORE ROUNDS CERTIFIED LOG_INVERSE_DELTA PAIR_LEVEL
        MISGROUPING_RISK GREEDY_LIMIT GREEDY_SPENT MERGE_MARGIN CHANCE ARMS_RISK LOG_FROZEN_SHARE N_NUMBERS SPLIT
        MERGED_A MERGED_B CHANCE_A CHANCE_B FACTOR PULLS_NEEDED BET SCORE POOL FREEZE GATHER QUALITY N_KERNELS
        METRIC METRIC_SHAPE WINSORISED SHUFFLED ARM_SCALES DEGREES MEASURED_AT FROM_ZERO LOOKED POOLS_BY_GROWTH
        FAR_SHARE FULL DIAGONAL SCALAR TRIALS VARIANCE_BOUND OPEN_PULLS ALONE RESIDUALS BOUND_RESIDUALS BOUNDED_AT
        BOUND_LEVEL BOUND_TRUST
        ASK RESULT GIVE_UP LOOK OPEN_ROUND ESTIMATE POSITION APPLYING ENDED DECIDED PROVEN PROVEN_ASKING OTHER_ARM
        NO_ROOM""",
    "made from another constant": "CORE_ROOM",
    "of an estimated metric, and of runs that have one (test_croc_metric, test_croc_families)": """
        FIRST_RESULTS INNOVATIONS PULLED_IN MEDIAN_TO_DEVIATION MOSTLY_TIES REFRESH ARM_PRIOR LEAST_SHRINKAGE
        SMALL_SAMPLE REPEATS FREEZE_RISK_UNKNOWN SURE_RISK AT_BOUND ENLARGE_RISK BOUND_MARGIN MOST_REPEATS LEAST_GAP
        STALE_GROWTH STALE_LOSS""",
    "of families of evidence: bets are recorded, and may be anything": """
        CLIP LEAST_TRUST ORDER ORDER_NUMBERS LEAST_WEIGHT FAR_EXPECTED FAR_STEP FAR_TRUST GROWTH_SHARE HALVINGS LARGEST
        NEGLIGIBLE LARGEST_LOSS LARGEST_SIGN PRECISION NEWTON_STEPS""",
    "of an upper bound on the variance (test_croc_variance_bound)": """
        VARIANCE_SHARE RATES LARGEST_RATE ROOT_STEPS ROOT_PRECISION RESOLUTION SMALLEST MOST_AHEAD WORTH_A_LOOK""",
    "when plain steps are used while others are compiled, with the same decisions": "MOST_COPIED PATIENCE",
    "a table of upper bounds that saves work and decides nothing": "CREST CREST_STEP",
    "digits, not the rule: arms beyond it count from an origin of their own": "NEAR",
    "room: counts beyond P·2^24 are read at the last of the grid": "OCTAVES",
    "room: P is halved for very many arms (test_croc_engine has its values)": "PREFIX_NUMBERS",
}


def engine_modules() -> list[ModuleType]:
    """The files of CROC's engine."""
    found = pkgutil.walk_packages(coterie.engine.croc.__path__, "coterie.engine.croc.")
    return [importlib.import_module(module.name) for module in found]


def engine_constants() -> dict[str, Any]:
    """Numbers, and arrays of numbers, in capitals at the top of the engine's files."""
    return {
        name: value
        for module in engine_modules()
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, int | float | np.ndarray)
    }


def test_every_constant_of_the_engine_is_pinned_or_explained() -> None:
    others = " ".join(NOT_OF_THE_RULE.values()).split()
    assert len(others) == len(set(others))
    assert sorted(engine_constants()) == sorted([*PINS, *others])


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


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") != "1", reason="compiled code has its constants built in")
@pytest.mark.parametrize("name", PINS)
def test_the_engine_with_another_value_differs_from_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conclusion of the tests above, drawn in full where that is possible: `make checked` does it."""
    pin = PINS[name]
    other = np.log(pin.other) if name in LOGARITHMS else pin.other
    if isinstance(engine_constants()[name], np.ndarray):
        other = np.array(other)
    forget_tables()
    for module in engine_modules():
        if hasattr(module, name):
            monkeypatch.setattr(module, name, other)
    share = KNOWN_COVARIANCE.pair_share
    if name == "ALPHA":  # the family was made from it
        object.__setattr__(KNOWN_COVARIANCE, "pair_share", other)
    try:
        found = engine_facts(case_named(pin.case))
    finally:
        object.__setattr__(KNOWN_COVARIANCE, "pair_share", share)
        forget_tables()
    assert found != facts_of(pin.case)


def forget_tables() -> None:
    """Tables that the engine makes once from its constants."""
    for module in engine_modules():
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
