"""What the report marks as agreeing is what is asked of its table."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.paper.report import agrees
from coterie.paper.slopes import Slope, slope_checks
from coterie.paper.summary import Row, checks_of


def row(part: str, **more: Any) -> Row:
    settings: dict[str, Any] = {
        "part": part, "instance": "yeast", "method": "boc", "threshold": "heuristic", "delta": 0.1, "trials": 256,
        "mean": 100.0, "std": 1.0, "standard_error": 0.1, "median": 100.0, "wrong": 0, "given_up": 0,
        "lower_bound": 1.0, "printed": 100.0, "printed_std": 1.0, "difference": 0.0, "difference_in_errors": 0.0,
    }  # fmt: skip
    return Row(**(settings | more))


@pytest.mark.parametrize(
    ("part", "errors", "share", "good"),
    [
        ("table1", 2.9, 0.2, True),
        ("table1", -3.1, -0.001, False),
        ("table2", 10.0, 0.01, False),
        ("table3", 100.0, 0.049, True),
        ("table3", -1.0, -0.051, False),
    ],
)
def test_agreement_is_judged_as_the_table_asks(part: str, errors: float, share: float, good: bool) -> None:
    assert agrees(row(part, difference=share, difference_in_errors=errors)) is good


def test_checks_fail_when_they_should() -> None:
    croc = row("table1", method="croc", threshold="certificate", printed=None)
    proven = row("table1", threshold="proven", printed=None, mean=1000.0)
    fine = checks_of("table1", [row("table1"), proven, croc])
    assert [check.holds for check in fine] == [True, True, True, True]
    far = row("table1", difference_in_errors=-3.2)
    worse = row("table1", method="croc", threshold="certificate", printed=None, mean=1001.0, wrong=60)
    found = checks_of("table1", [far, proven, worse])
    assert [check.holds for check in found] == [False, False, False, False]


def slope(method: str, **more: float) -> Slope:
    base = {
        "hardness": 1.0,
        "limit": 1.0,
        "fitted_paper": 2.0,
        "fitted_end": 1.1,
        "error_end": 0.0,
        "predicted_end": 1.1,
    }
    return Slope("easy", "proven", method, **(base | more))


def test_slope_checks_fail_when_they_should() -> None:
    uniform = slope("uniform", limit=2.0, fitted_paper=3.0, fitted_end=2.2, predicted_end=2.2)
    assert all(check.holds for check in slope_checks([slope("boc"), uniform]))
    steep = slope("boc", fitted_end=1.3, predicted_end=1.3)
    assert [check.holds for check in slope_checks([steep, uniform])] == [False, True, True]
    off = slope("boc", predicted_end=1.3)
    assert [check.holds for check in slope_checks([off, uniform])] == [True, False, True]
    for wrong in (1.9, 2.5, 3.5):  # below its limit, far above it, rising
        bad = slope("uniform", limit=2.0, fitted_paper=3.0, fitted_end=wrong, predicted_end=wrong)
        assert [check.holds for check in slope_checks([slope("boc"), bad])] == [True, True, False]
