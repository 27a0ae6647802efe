"""Known noise and the user's units: whitening changes neither the arms nor the stop, nor does a far-away origin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from known import known

import coterie

METHODS = ("boc", "boc-linear", "uniform", "oracle")
INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [3.0, 0.5], [-1.0, 5.0]])
COVARIANCE = np.array([[4.0, -1.2], [-1.2, 0.9]])

# What the session is told, and the matrix that turns unit noise into it.
NOISES: dict[str, tuple[Any, np.ndarray]] = {
    "one standard deviation": (0.02, 0.02 * np.eye(2)),
    "a vector": ([0.5, 30.0], np.diag([0.5, 30.0])),
    "a covariance": (COVARIANCE, np.linalg.cholesky(COVARIANCE)),
    "a Noise": (coterie.Noise.of(3.0, 2), 3.0 * np.eye(2)),
}


def drive(
    inst: coterie.Instance, method: str, factor: np.ndarray, shift: float = 0.0, **more: Any
) -> tuple[coterie.Session, list[int]]:
    """A session to its stop on y = L·z + shift, where z has unit noise about INST's means: always the same z."""
    if method == "boc-linear":
        more["distance_ratio"] = 0.4
    if method == "oracle":
        more["instance"] = inst
    session = coterie.Session(inst.n_arms, inst.n_clusters, inst.dim, method=method, **{"noise": 1.0, **more})
    rng = np.random.default_rng(21)
    arms: list[int] = []
    while not session.done:
        arms.append(session.ask())
        z = INST.means[arms[-1]] + rng.normal(size=2)
        session.tell(arms[-1], factor @ z + shift)
    return session, arms


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NOISES)
def test_known_noise_keeps_the_arms_and_the_stop(method: str, name: str) -> None:
    noise, factor = NOISES[name]
    plain, arms = drive(INST, method, np.eye(2))
    told = coterie.Instance(INST.labels, INST.centers @ factor.T)
    session, same_arms = drive(told, method, factor, noise=noise)
    assert same_arms == arms
    assert len(arms) > 12
    assert np.array_equal(known(session.labels), known(plain.labels))
    assert plain.centers is not None
    np.testing.assert_allclose(known(session.centers), plain.centers @ factor.T, rtol=1e-9, atol=1e-9)
    assert session.evidence.statistic == pytest.approx(plain.evidence.statistic, rel=1e-9)
    assert session.evidence.threshold == pytest.approx(plain.evidence.threshold, rel=1e-12)
    np.testing.assert_allclose(session.log[0][1], factor @ plain.log[0][1], rtol=1e-12)  # the log is as told


@pytest.mark.parametrize("kind", ["proven", "heuristic"])
def test_wrong_noise_changes_the_stop(kind: str) -> None:
    """The noise is really used: ten times the spread, taken for unit noise, stops on too little evidence."""
    right, _ = drive(INST, "boc", 10.0 * np.eye(2), noise=10.0, threshold=kind)
    wrong, _ = drive(INST, "boc", 10.0 * np.eye(2), threshold=kind)
    assert wrong.t < right.t


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("noise", [1.0, 0.5, COVARIANCE])
def test_a_far_away_origin_keeps_the_arms_and_the_stop(method: str, noise: Any) -> None:
    near, arms = drive(INST, method, np.eye(2), noise=noise)
    shifted = coterie.Instance(INST.labels, INST.centers + 1e6)
    far, same_arms = drive(shifted, method, np.eye(2), shift=1e6, noise=noise)
    assert same_arms == arms
    assert np.array_equal(known(far.labels), known(near.labels))
    assert near.centers is not None
    np.testing.assert_allclose(known(far.centers), near.centers + 1e6, rtol=0, atol=1e-8)
    assert far.evidence.statistic == pytest.approx(near.evidence.statistic, rel=1e-6)


def test_a_batch_with_a_covariance_keeps_every_bit_of_single_tells() -> None:
    """Solving for many right-hand sides at once rounds differently from one at a time."""
    rng = np.random.default_rng(22)
    dim = 5
    root = rng.normal(size=(dim, dim))
    settings: Any = {"noise": root @ root.T + np.eye(dim)}
    single, batch = (
        coterie.Session(6, 3, dim, **{"noise": 1.0, **settings}),
        coterie.Session(6, 3, dim, **{"noise": 1.0, **settings}),
    )
    arms = np.tile(np.arange(6), 30)
    values = rng.normal(size=(180, dim))
    for arm, x in zip(arms, values, strict=True):
        single.tell(int(arm), x)
    batch.tell(arms, values)
    loaded = coterie.Session.from_dict(single.to_dict())
    for other in (batch, loaded):
        assert np.array_equal(known(other.centers), known(single.centers))
        assert other.evidence == single.evidence
