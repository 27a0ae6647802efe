"""The table of guarantees: counts are noted, added up, and have the confidence bound that their name says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from error_rates import Guarantee, assert_rate_at_most
from scipy.stats import binom

from bench import guarantees


def test_counts_are_noted_before_they_are_judged_and_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "counted.jsonl"
    monkeypatch.setenv("COTERIE_COUNTED", str(file))
    of = Guarantee("bounded", blocks="drawn")
    assert_rate_at_most(0.2, 3, 60, of)
    assert_rate_at_most(0.2, 4, 40, of)
    assert_rate_at_most(0.2, 0, 10)  # of no guarantee
    with pytest.raises(AssertionError, match=r"39 of 40 are wrong, at most 22 may be at the rate 0\.2"):
        assert_rate_at_most(0.2, 39, 40, Guarantee("counts"))
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    assert json.loads(lines[0])["test"].endswith("added_up")
    first, second = guarantees.summed(lines)
    assert (first["noise"], first["blocks"], first["runs"], first["wrong"]) == ("bounded", "drawn", 100, 7)
    assert (second["noise"], second["wrong"]) == ("counts", 39)
    said = {line.what: line for line in guarantees.headlines([first, second])}
    assert [line.met for line in said.values()] == [False, False]


@pytest.mark.parametrize(("wrong", "runs"), [(0, 60), (3, 60), (59, 60), (104, 5000)])
def test_the_bound_is_where_so_few_errors_have_five_percent(wrong: int, runs: int) -> None:
    assert binom.cdf(wrong, runs, guarantees.upper_bound(wrong, runs)) == pytest.approx(0.05)
    assert guarantees.upper_bound(runs, runs) == 1.0
