"""CROC asks for the same arms as `tests.oracles.croc`, with the same freezes, rounds, stops and groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from croc_cases import DRAWN, FAMILIES, PINNED, PRICED, drawn_case, engine_facts, priced_case, reference_facts

from tests.oracles.croc import ReferenceCroc


@pytest.mark.parametrize("batch", range(DRAWN // len(FAMILIES)))
def test_drawn_instances_equal_reference(batch: int) -> None:
    """Eight families: 3 to 12 arms in 2 to 4 groups in 1 to 6 dimensions, ties, asks ahead of results, a wrong K."""
    for number in range(batch * len(FAMILIES), (batch + 1) * len(FAMILIES)):
        case = drawn_case(number)
        assert engine_facts(case) == reference_facts(case), f"{number}: {case}"


@pytest.mark.parametrize("name", PINNED)
def test_instances_that_pin_constants_equal_reference(name: str) -> None:
    """The instances on which `test_croc_constants` shows that each constant of the rule changes the run."""
    assert engine_facts(PINNED[name]) == reference_facts(PINNED[name])


@pytest.mark.parametrize("batch", range(PRICED // len(FAMILIES)))
def test_instances_with_costs_equal_reference(batch: int) -> None:
    for number in range(batch * len(FAMILIES), (batch + 1) * len(FAMILIES)):
        case = priced_case(number)
        assert engine_facts(case) == reference_facts(case), f"{number}: {case}"


def test_costs_change_what_is_measured_and_equal_costs_do_not() -> None:
    changed = 0
    for number in range(8):
        plain, priced = drawn_case(number), priced_case(number)
        assert reference_facts(replace(plain, costs=(0.3,) * len(plain.labels))) == reference_facts(plain)
        changed += reference_facts(priced)["arms"] != reference_facts(plain)["arms"]
    assert changed >= 5


def test_drawn_instances_show_what_is_compared() -> None:
    """Or the comparison would say little: runs end in both ways, freeze again, have rounds in flight, raise alarms."""
    seen: Counter[str] = Counter()
    for number in range(DRAWN):
        case = drawn_case(number)
        facts = engine_facts(case)
        seen["by " + facts["proven by"]] += 1
        seen["freezes again"] += len(facts["freezes"]) > 1
        seen["many rounds"] += len(facts["rounds"]) > 4
        seen["rounds in flight"] += len(facts["rounds"]) > 1 and case.workers > 1
        seen["given up"] += min(facts["arms"]) < 0
        seen["alarm"] += facts["alarm"]
        seen["core is not the group"] += any(
            sum(map(len, cores)) < len(labels) for _, labels, cores in facts["freezes"]
        )
    assert DRAWN >= 100
    for what in ("by pairs", "by epoch", "freezes again", "many rounds", "rounds in flight", "given up", "alarm"):
        assert seen[what] >= 3, (what, seen)
    assert seen["core is not the group"] >= 3, seen


def test_reference_refuses_what_it_does_not_cover() -> None:
    """The engine gives arms far from the first result an origin of their own; the reference says that it does not."""
    run = ReferenceCroc(3, 2, 1, 0.05)
    run.tell(0, [0.0])
    with pytest.raises(ValueError, match="within 1024 of the first one, got"):
        run.tell(1, [2000.0])
    with pytest.raises(ValueError, match="arm"):
        run.tell(3, [0.0])
    with pytest.raises(ValueError, match="arm 2 has no open ask"):
        run.forget(2)
