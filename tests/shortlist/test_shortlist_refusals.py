"""What the list of partitions refuses: wrong shapes, types and labels, and two threads at once."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

from coterie._native import Partitions
from coterie.methods.shortlist.elimination import LEAST_LOG, SCALES, SMALL

LISTED = np.array([[0, 0, 1, 1, 2], [0, 1, 1, 2, 2], [2, 2, 1, 1, 0]])
N_LISTED, N_ARMS, DIM = 3, 5, 2
ARGUMENTS: dict[str, dict[str, Any]] = {
    "log_posterior": {"blocks": np.zeros(N_ARMS, dtype=np.int64)},
    "round_logs": {
        "alive": np.ones(N_LISTED, dtype=np.int64),
        "chance": np.full(N_LISTED, 0.3),
        "taken": np.ones(N_ARMS),
        "total": np.ones((N_ARMS, DIM)),
    },
    "expected_growth": {"urgency": np.ones(N_LISTED), "chance": np.full(N_LISTED, 0.3)},
}
"""Of each method, without the results so far."""


def arguments(method: str) -> dict[str, Any]:
    """Right ones."""
    rng = np.random.default_rng(0)
    more = {"small": SMALL, "least_log": LEAST_LOG} if method == "expected_growth" else {}
    return {**ARGUMENTS[method], "pulls": np.full(N_ARMS, 4.0), "sums": rng.normal(size=(N_ARMS, DIM)), **more}


def spoiled(array: np.ndarray, how: int) -> Any:
    """The array, but of another shape, type or layout."""
    gaps = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype=array.dtype)[..., ::2]
    return [
        array[:-1].copy(),
        np.concatenate([array, array[:1]]),
        array[None].copy(),
        array[:0].copy(),
        array.astype(np.float32),
        array.astype(np.int32),
        array.astype(np.float64 if array.dtype == np.int64 else np.int64),
        array.astype(complex),
        array.astype(object),
        array > 0,
        gaps,
        array.astype(array.dtype.newbyteorder()),
        array.tolist(),
        None,
        "0 1 2",
        array.ravel()[0],
    ][how]


@pytest.mark.parametrize("method", ARGUMENTS)
def test_fuzzed_arrays_are_refused(method: str) -> None:
    partitions = Partitions(LISTED, DIM, SCALES)
    right = arguments(method)
    before = getattr(partitions, method)(**right)
    for name, array in right.items():
        for how in range(16) if isinstance(array, np.ndarray) else ():
            with pytest.raises((TypeError, ValueError)) as refused:
                getattr(partitions, method)(**{**right, name: spoiled(array, how)})
            said = (
                rf"(a row of )?{name} must be (a contiguous NumPy array of|of length)|.*incompatible.*{name}: NoneType"
            )
            assert re.match(said, str(refused.value), re.DOTALL)
    for name in right:  # one too few, none that it does not know
        with pytest.raises(TypeError):
            getattr(partitions, method)(**{key: value for key, value in right.items() if key != name})
        with pytest.raises(TypeError):
            getattr(partitions, method)(**right, **{name + "s": 1.0})
    np.testing.assert_equal(getattr(partitions, method)(**right), before)


def test_fuzzed_labels_are_refused_or_judged() -> None:
    rng, refusals = np.random.default_rng(1), 0
    for _ in range(600):
        shape = tuple(rng.integers(0, 5, size=rng.integers(1, 4)).tolist())
        listed = rng.integers(rng.integers(-2, 1), rng.choice([1, 2, 3, 9, 2**62]), size=shape, endpoint=True)
        groups = set(listed.ravel().tolist())
        right = (
            listed.ndim == 2
            and listed.size > 0
            and groups == set(range(len(groups)))
            and all(set(row) == groups for row in listed.tolist())
        )
        if right:
            n_arms = listed.shape[1]
            one = Partitions(listed, 1, SCALES)
            found = one.log_posterior(np.zeros(n_arms, dtype=np.int64), np.ones(n_arms), np.ones((n_arms, 1)))
            assert np.isfinite(found).all()
            continue
        refusals += 1
        error = ValueError if listed.ndim == 2 else TypeError
        with pytest.raises(
            error, match=r"listed must be|needs partitions|labels must be from 0|leaves a group of the list empty"
        ):
            Partitions(listed, 1, SCALES)
    assert 200 < refusals < 590


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dim": 0}, "at least one dimension"),
        ({"dim": -3}, "at least one dimension"),
        ({"scales": np.array([1.0, 0.0])}, "positive and finite"),
        ({"scales": np.array([np.nan])}, "positive and finite"),
        ({"scales": np.zeros(0)}, "needs partitions, arms, scales"),
        ({"listed": LISTED[:, :0].copy()}, "needs partitions, arms, scales"),
        ({"listed": LISTED[:, ::2]}, "listed must be a contiguous NumPy array of int64 with 2 dimensions"),
        ({"listed": LISTED.astype(float)}, "listed must be a contiguous NumPy array of int64"),
    ],
)
def test_wrong_lists_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Partitions(**{"listed": LISTED, "dim": DIM, "scales": SCALES, **change})


@pytest.mark.parametrize("block", [-1, N_ARMS, 2**62])
def test_blocks_that_are_no_numbers_of_blocks_are_refused(block: int) -> None:
    right = arguments("log_posterior")
    with pytest.raises(ValueError, match=f"blocks must be from 0 to 4, got {block}"):
        Partitions(LISTED, DIM, SCALES).log_posterior(**{**right, "blocks": np.full(N_ARMS, block)})


def test_two_threads_at_once_are_told_so_and_others_run_side_by_side() -> None:
    rng = np.random.default_rng(2)
    listed = np.array([rng.permutation(np.arange(40) % 4) for _ in range(120)])
    pulls, sums, chance = np.full(40, 5.0), rng.normal(size=(40, 8)), np.full(120, 1 / 120)
    lists = [Partitions(listed, 8, SCALES) for _ in range(2)]
    answers: list[list[Any]] = [[], [], []]
    wanted = lists[0].round_logs(np.ones(120, dtype=np.int64), chance, pulls, sums, pulls, sums)
    together = threading.Barrier(3)

    def judge(i: int) -> None:
        for _ in range(6):
            together.wait()
            try:
                answers[i].append(
                    lists[i // 2].round_logs(np.ones(120, dtype=np.int64), chance, pulls, sums, pulls, sums)
                )
            except RuntimeError as error:
                answers[i].append(str(error))

    threads = [threading.Thread(target=judge, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [[each for each in own if isinstance(each, str)] for own in answers]
    assert refused[0] + refused[1]
    assert not refused[2]
    assert all("in use by another thread" in words for words in refused[0] + refused[1])
    assert all(isinstance(each, str) or (each == wanted).all() for own in answers for each in own)
