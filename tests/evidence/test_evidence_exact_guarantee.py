"""Finished tables: a pair that is alike is said to differ, or a wrong grouping is called proven, in at most δ of all.

Null and partly null tables of every family: ties, few and unequal numbers of rows, and unequal spread where the family
allows it. A test fails by chance with probability below 1e-6. `coterie bench tables` has the same with more tables.
"""

from __future__ import annotations

import pytest
from error_rates import Guarantee, assert_rate_at_most

from bench import block_tables
from bench.null_tables import FAMILIES, wrong_tables

DELTA, TABLES = 0.1, 400


@pytest.mark.guarantee
@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_tables_are_rare(family: str) -> None:
    wrong = wrong_tables(family, TABLES, DELTA, seed=23)
    assert_rate_at_most(DELTA, wrong, TABLES, Guarantee(family, question="finished table"))


@pytest.mark.guarantee
@pytest.mark.parametrize("family", block_tables.FAMILIES)
def test_wrong_tables_in_blocks_are_rare(family: str) -> None:
    wrong = block_tables.wrong_tables(family, TABLES, DELTA, seed=23)
    assert_rate_at_most(DELTA, wrong, TABLES, Guarantee(family, question="finished table", blocks="given"))
