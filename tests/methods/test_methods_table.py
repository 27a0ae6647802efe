"""The methods by name, and the levels that the engine's stopping rule adds the counts to."""

from __future__ import annotations

import math

import numpy as np
import pytest

import coterie
from coterie.methods import METHODS, method_named
from coterie.methods.paper.method import KINDS, levels_for
from tests.oracles import paper as reference


def test_methods_are_those_of_the_reference() -> None:
    assert set(METHODS) == {*reference.METHODS, "croc", "shortlist"}  # these two are ours, not the paper's
    assert all(method_named(name) is METHODS[name] and METHODS[name].name == name for name in METHODS)
    assert len({method.sampling for method in METHODS.values()}) == len(METHODS)
    assert [name for name in METHODS if "distance_ratio" in METHODS[name].needs] == ["boc-linear"]
    assert [name for name in METHODS if "instance" in METHODS[name].needs] == ["oracle"]
    assert all(method.sentence for method in METHODS.values())


@pytest.mark.parametrize("name", ["BOC", "boc ", "", "random"])
def test_unknown_method_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown method {name!r}: choose one of croc, shortlist, boc, boc-linear"):
        method_named(name)


@pytest.mark.parametrize("name", [None, 3, b"boc", ["boc"]])
def test_a_method_that_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(TypeError, match="the method must be one of croc, shortlist, boc"):
        method_named(name)


@pytest.mark.parametrize(("n_arms", "dim"), [(3, 1), (7, 4), (150, 4)])
def test_levels_and_counts_add_up_to_the_threshold(n_arms: int, dim: int) -> None:
    deltas = (0.5, 0.1, 1e-10)
    pulls = np.random.default_rng(n_arms).integers(1, 500, size=n_arms)
    levels = levels_for(KINDS, [-math.log(delta) for delta in deltas], n_arms, dim)
    proven = 2 * dim * np.log(4 + np.log(pulls)).sum() + levels[0]  # equation_beta
    heuristic = dim * math.log(1 + math.log(pulls.sum())) + levels[1]
    for i, delta in enumerate(deltas):
        assert proven[i] == pytest.approx(coterie.threshold(delta, pulls, dim), rel=1e-12)
        assert heuristic[i] == pytest.approx(coterie.threshold(delta, pulls, dim, "heuristic"), rel=1e-12)
    assert (np.diff(levels, axis=1) > 0).all()


def test_a_threshold_that_is_not_asked_for_is_nan() -> None:
    levels = levels_for(("heuristic",), (1.0, 2.0), 5, 2)
    assert np.isnan(levels[0]).all()
    assert levels[1].tolist() == [1.0, 2.0]
    levels = levels_for(("proven",), (1.0, 2.0), 5, 2)
    assert np.isfinite(levels[0]).all()
    assert np.isnan(levels[1]).all()
