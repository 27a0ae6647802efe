"""Far values: contrasts are exact to 1e-9 wherever the results lie, and what floats cannot hold is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known

import coterie
from coterie.evidence.pairs import BLOCK_RATIOS, RATIO_WEIGHTS, mixture_log
from coterie.methods.croc.run import CrocRun
from coterie.problem.noise import Noise


def exact_evidence(x: list[list[Fraction]], y: list[list[Fraction]]) -> float:
    """Pair evidence of two stacks of whitened results, the contrasts in rational numbers."""
    best = -math.inf
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True):
        for first, second in ((x, y), (y, x)):
            n = min(len(first), len(second) // ratio)
            if n == 0 or (ratio == 1 and first is y):
                continue
            square = Fraction(0)
            for q in range(len(x[0])):
                one, two = sum(row[q] for row in first[:n]), sum(row[q] for row in second[: n * ratio])
                mean = Fraction(one) / n - Fraction(two) / (n * ratio)
                square += mean * mean
            energy = float(square * n * ratio / (ratio + 1))
            best = max(best, math.log(weight) + float(mixture_log(n, energy, len(x[0]))))
    return best


scales = st.sampled_from([1e-300, 1e-150, 1e-9, 0.37, 1.0, 12.5, 1e9, 1e50])
offsets = st.sampled_from([0.0, 1.0, 1e3, 1e6, 1e9, 3.3e10, 1e11])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=scales,
    offset=offsets,
    apart=st.sampled_from([0.0, 1.0, 500.0, 1e5, 1e8, 1e11]),
    dim=st.integers(1, 3),
)
def test_pair_evidence_keeps_its_digits(seed: int, scale: float, offset: float, apart: float, dim: int) -> None:
    """Two near arms far from the rest, at any offset and scale: their evidence is that of rational arithmetic."""
    rng = np.random.default_rng(seed)
    noise = Noise.of(scale, dim)
    places = offset + apart * np.array([0.0, 1.0, 1.0, -1.0])
    counts = rng.integers(1, 30, 4)
    stacks = [scale * (places[m] + rng.standard_normal((counts[m], dim))) for m in range(4)]
    run = CrocRun(4, 2, dim, 1e12)
    for s in range(30):
        for m in rng.permutation(4):
            if s < counts[m]:
                run.absorb(int(m), noise.whiten_fully(stacks[m][s : s + 1])[0], 0, False)
    exact = [[[Fraction(float(v)) / Fraction(scale) for v in row] for row in stack] for stack in stacks]
    for i, j in ((1, 2), (2, 1), (0, 3), (0, 1)):
        found = run.pair_evidence(i, j, int(counts[i]), int(counts[j]))
        wanted = exact_evidence(exact[i], exact[j])
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), offset=offsets)
def test_whitening_by_a_covariance_keeps_its_digits(seed: int, offset: float) -> None:
    """Whitened results and their rest are linear: differences of far results are those of near ones."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3))
    noise = Noise.of(root @ root.T + np.eye(3), 3)
    x = offset + rng.standard_normal((6, 3))
    white = noise.whiten_fully(x)
    np.testing.assert_array_equal(white[:, :3], noise.whiten(x))
    matrix = noise.whiten(np.eye(3))
    for i in range(1, 6):
        found = (white[i, :3] - white[0, :3]) + (white[i, 3:] - white[0, 3:])
        for q in range(3):
            exact = sum(
                (Fraction(float(x[i, j])) - Fraction(float(x[0, j]))) * Fraction(float(matrix[j, q])) for j in range(3)
            )
            assert found[q] == pytest.approx(float(exact), rel=1e-12, abs=1e-14)


def run_far(seed: int, places: np.ndarray, scale: float, offset: float, delta: float) -> coterie.Session:
    rng = np.random.default_rng(seed)
    session = coterie.Session(len(places), len(np.unique(places)), 1, delta, noise=scale)
    while not session.done:
        assert session.t < 5000
        arm = session.ask()
        session.tell(arm, scale * (offset + places[arm] + rng.standard_normal(1)))
    return session


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 1e50])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e11])
def test_far_data_are_grouped_and_verified(scale: float, offset: float) -> None:
    """Close groups at an offset, in any units: proven, right, and verified from the log."""
    truth = np.array([0, 0, 1, 1, 2, 2])
    for seed in range(3):
        session = run_far(seed, np.array([0.0, 0.0, 2.0, 2.0, 5.0, 5.0]), scale, offset, 1e-4)
        assert coterie.same_partition(session.labels, truth)
        assert coterie.verify(session.certificate, session.events).problems == []
        centers = known(session.centers).ravel() / scale - offset
        np.testing.assert_allclose(centers, [0.0, 2.0, 5.0], atol=3.0)


@pytest.mark.parametrize("apart", [1e3, 1e6, 1e9, 1e11])
def test_groups_that_are_far_apart_with_close_ones_among_them(apart: float) -> None:
    """The first result lies far from the others: they lose no digits by that."""
    places = np.array([apart, apart, apart + 2.0, 0.0, 0.0, 2.0, 2.0])
    truth = np.array([0, 0, 1, 2, 2, 3, 3])
    for seed in range(4):
        session = run_far(seed, places, 1.0, 0.0, 1e-3)
        assert coterie.same_partition(session.labels, truth)
        assert coterie.verify(session.certificate, session.events).problems == []


@pytest.mark.parametrize("method", ["croc", "boc"])
@pytest.mark.parametrize("value", [1.1e12, -1e15, 1e50, 1e300])
def test_values_that_floats_do_not_resolve_are_refused(method: str, value: float) -> None:
    session = coterie.Session(4, 2, 1, method=method, noise=1.0)
    arm = session.ask()
    with pytest.raises(ValueError, match=r"within 1e\+12 standard deviations of 0.*subtract a fixed number"):
        session.tell(arm, [value])
    assert session.t == 0
    assert session.pending == [(0, arm)]
    session.tell(arm, [1.0])


def test_results_of_one_item_too_far_apart_are_refused() -> None:
    """A slip of the finger by a factor of 10⁷, say: named, and nothing is changed."""
    session = coterie.Session(4, 2, 2, noise=0.1, names=["a", "b", "c", "d"])
    session.tell("b", [1.0, 2.0])
    with pytest.raises(ValueError, match=r"within 1e\+06 standard deviations of its first, got .* for item 1"):
        session.tell("b", [1.0, 2e7])
    with pytest.raises(ValueError, match="for item 0"):
        session.tell([0, 2, 0], [[0.0, 0.0], [0.0, 0.0], [9e6, 0.0]])
    assert session.t == 1
    session.tell("c", [1.0, 2e7])  # another item may lie there
    session.tell("b", [9e4, 2.0])


@pytest.mark.slow
def test_wrong_proofs_of_far_data_within_delta() -> None:
    """Equal arms far away, whose sums used to be rounded: 200 runs at δ = 0.05. False alarm: 1e-6."""
    from scipy.stats import binom

    places = np.array([1e10, 0.0, 0.0, 0.0, 0.6, 0.6])
    truth = np.array([0, 1, 1, 1, 2, 2])
    wrong = sum(not coterie.same_partition(run_far(seed, places, 1.0, 0.0, 0.05).labels, truth) for seed in range(200))
    assert wrong <= binom.isf(1e-6, 200, 0.05), f"{wrong} of 200"
