"""Tables in blocks: the ways that people use are done right, and what is told apart by Tukey is told apart here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bench.block_tables import CELLS, WAYS, nemenyi, simulated, told_apart, two_way_tukey, wilcoxon
from bench.table_data import tables_in_blocks


def test_nemenyi_s_critical_difference_is_the_published_one() -> None:
    """Demšar (2006): four classifiers on 14 data sets differ if mean ranks are 1.25 apart (α = 0.05)."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        table = rng.normal(size=(14, 4)) + 0.7 * np.arange(4)
        ranks = stats.rankdata(table, axis=1).mean(axis=0)
        apart = np.abs(ranks[:, None] - ranks)
        if stats.friedmanchisquare(*table.T).pvalue <= 0.05 and (np.abs(apart - 1.2536) > 1e-3).all():
            assert np.array_equal(nemenyi(table, 0.05), apart > 1.2536)


def test_two_way_tukey_of_two_items_is_the_paired_t_test() -> None:
    table = tables_in_blocks()["sleep, 10 patients"]
    p = stats.ttest_rel(table[:, 0], table[:, 1]).pvalue
    assert two_way_tukey(table, p * 1.0001)[0, 1]
    assert not two_way_tukey(table, p * 0.9999)[0, 1]


def test_holm_of_one_pair_is_wilcoxon() -> None:
    table = tables_in_blocks()["sleep, 10 patients"]
    p = stats.wilcoxon(table[:, 0], table[:, 1]).pvalue
    assert wilcoxon(table, p)[0, 1]
    assert not wilcoxon(table, p * 0.9999)[0, 1]


@pytest.mark.parametrize("name", tables_in_blocks())
def test_real_tables_lose_no_pair(name: str) -> None:
    table = tables_in_blocks()[name]
    apart = told_apart(table, 0.05)
    assert (apart[WAYS[4]] >= apart[WAYS[2]]).all(), "closed testing tells apart all that Tukey does"
    assert apart[WAYS[3]].sum() >= max(apart[WAYS[0]].sum(), apart[WAYS[1]].sum())


def test_a_cell_counts_pairs_and_wrong_tables() -> None:
    cell = simulated(next(iter(CELLS)), 1, 0.05, seed=1)
    assert set(cell) == set(WAYS)
    assert all(0.0 <= mean <= 12.0 and wrong in (0, 1) for mean, wrong in cell.values())
