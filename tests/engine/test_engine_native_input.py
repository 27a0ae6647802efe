"""What is clearly wrong is refused where Python meets the engine: with a sentence, and nothing is changed by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coterie import _native
from coterie.methods.paper import ASK, ASKED, BOC, FORGET, LINEAR, ORACLE, UNASKED, UNIFORM
from coterie.methods.paper.run import Run

M, K, D = 7, 3, 2
LEVELS = np.array([[1e3, 1e9], [1e3, 1e9]])
LABELS = np.arange(M) % K
CENTERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 5.0]])
SHARES = np.full(K, 1.0 / M)
NONE = np.zeros(0, dtype=np.int64)
REFUSED = (ValueError, TypeError, IndexError)


def new_run(rule: int = BOC) -> _native.PaperRun:
    return _native.PaperRun(
        M, K, D, rule, LEVELS, 0.01 if rule == LINEAR else None, *((LABELS, SHARES) if rule == ORACLE else (None, None))
    )


def played(rule: int = BOC, steps: int = 40) -> _native.PaperRun:
    run = new_run(rule)
    run.play(steps, CENTERS, LABELS, np.random.default_rng(1), NONE)
    return run


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


WRONG_SHAPES: list[tuple[Any, ...]] = [
    (0, 1, 1, BOC, LEVELS),
    (-1, 1, 1, BOC, LEVELS),
    (M, 0, D, BOC, LEVELS),
    (M, M + 1, D, BOC, LEVELS),
    (M, K, 0, BOC, LEVELS),
    (2**62, 2, 2**62, BOC, LEVELS),
    (2**50, 2**49, 1, BOC, LEVELS),
    (2**64, K, D, BOC, LEVELS),
    (M, K, D, 4, LEVELS),
    (M, K, D, -1, LEVELS),
    (M, K, D, BOC, LEVELS[0]),
    (M, K, D, BOC, LEVELS[:1].copy()),
    (M, K, D, BOC, LEVELS[:, :0].copy()),
    (M, K, D, BOC, LEVELS[:, ::2]),
    (M, K, D, BOC, LEVELS.astype(np.float32)),
    (M, K, D, BOC, LEVELS.tolist()),
    (M, K, D, BOC, None),
    (M, K, D, BOC, LEVELS, 0.1),
    (M, K, D, LINEAR, LEVELS),
    (M, K, D, LINEAR, LEVELS, np.nan),
    (M, K, D, LINEAR, LEVELS, -0.1),
    (M, K, D, ORACLE, LEVELS),
    (M, K, D, ORACLE, LEVELS, None, LABELS, None),
    (M, K, D, ORACLE, LEVELS, None, LABELS[:-1].copy(), SHARES),
    (M, K, D, ORACLE, LEVELS, None, LABELS + 1, SHARES),
    (M, K, D, ORACLE, LEVELS, None, LABELS - 1, SHARES),
    (M, K, D, ORACLE, LEVELS, None, LABELS.astype(np.int32), SHARES),
    (M, K, D, ORACLE, LEVELS, None, LABELS, SHARES[:-1].copy()),
    (M, K, D, ORACLE, LEVELS, None, LABELS, SHARES * np.nan),
    (M, K, D, BOC, LEVELS, None, LABELS, SHARES),
]


@pytest.mark.parametrize("arguments", WRONG_SHAPES, ids=range(len(WRONG_SHAPES)))
def test_a_run_of_wrong_shape_is_not_made(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(REFUSED, match=r"\w+ \w+ \w+"):
        _native.PaperRun(*arguments)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


WRONG_CALLS: list[Callable[[Any], Any]] = [
    lambda run: run.play(-1, CENTERS, LABELS, rng(), NONE),
    lambda run: run.play(2**64, CENTERS, LABELS, rng(), NONE),
    lambda run: run.play(3, CENTERS[:, :1].copy(), LABELS, rng(), NONE),
    lambda run: run.play(3, CENTERS[:2].copy(), LABELS, rng(), NONE),
    lambda run: run.play(3, CENTERS.T, LABELS, rng(), NONE),
    lambda run: run.play(3, CENTERS + np.inf, LABELS, rng(), NONE),
    lambda run: run.play(3, CENTERS + 1e300, LABELS, rng(), NONE),
    lambda run: run.play(3, CENTERS[:0].copy(), LABELS, rng(), NONE),
    lambda run: run.play(3, CENTERS, LABELS[:-1].copy(), rng(), NONE),
    lambda run: run.play(3, CENTERS, LABELS + 1, rng(), NONE),
    lambda run: run.play(3, CENTERS, -LABELS, rng(), NONE),
    lambda run: run.play(3, np.vstack([CENTERS, CENTERS]), LABELS + 3, rng(), NONE),
    lambda run: run.play(3, CENTERS, LABELS.astype(float), rng(), NONE),
    lambda run: run.play(3, CENTERS, LABELS, None, NONE),
    lambda run: run.play(3, CENTERS, LABELS, np.random.RandomState(0), NONE),
    lambda run: run.play(3, CENTERS, LABELS, rng(), np.zeros(3)),
    lambda run: run.play(3, CENTERS, LABELS, rng(), np.zeros((2, 2), dtype=np.int64)),
    lambda run: run.play(3, CENTERS, LABELS, rng(), np.zeros(6, dtype=np.int64)[::2]),
    lambda run: run.play(3, CENTERS, LABELS, rng(), np.broadcast_to(np.int64(0), (3,))),
    lambda run: run.play("3", CENTERS, LABELS, rng(), NONE),
    lambda run: run.follow(np.array([M]), np.zeros((1, D)), np.array([UNASKED])),
    lambda run: run.follow(np.array([-1]), np.zeros((1, D)), np.array([UNASKED])),
    lambda run: run.follow(np.array([-1]), np.zeros((1, D)), np.array([FORGET])),
    lambda run: run.follow(np.array([M]), np.zeros((1, D)), np.array([ASK])),
    lambda run: run.follow(np.array([0]), np.zeros((1, D)), np.array([4])),
    lambda run: run.follow(np.array([0]), np.zeros((1, D)), np.array([-1])),
    lambda run: run.follow(np.array([0]), np.zeros((1, D + 1)), np.array([UNASKED])),
    lambda run: run.follow(np.array([0]), np.zeros((2, D)), np.array([UNASKED])),
    lambda run: run.follow(np.array([0]), np.zeros((1, D)), np.array([UNASKED, UNASKED])),
    lambda run: run.follow(np.array([0]), np.full((1, D), np.nan), np.array([UNASKED])),
    lambda run: run.follow(np.array([0]), np.full((1, D), -np.inf), np.array([ASKED])),
    lambda run: run.follow(np.array([0]), np.full((1, D), 1e300), np.array([UNASKED])),
    lambda run: run.follow(np.array([0.0]), np.zeros((1, D)), np.array([UNASKED])),
    lambda run: run.follow([0], np.zeros((1, D)), np.array([UNASKED])),
    lambda run: run.follow(np.array([0]), np.zeros((1, D), dtype=complex), np.array([UNASKED])),
    lambda run: run.commit(M, 1),
    lambda run: run.commit(-1, 1),
    lambda run: run.commit(0, 2),
    lambda run: run.commit(0, 0),
    lambda run: run.commit(0.5, 1),
    lambda run: run.restore({}),
    lambda run: run.restore(None),
    lambda run: run.restore(3),
]


@pytest.mark.parametrize("call", WRONG_CALLS, ids=range(len(WRONG_CALLS)))
@pytest.mark.parametrize("steps", [0, 40])
def test_a_wrong_call_is_refused_and_changes_nothing(call: Callable[[Any], Any], steps: int) -> None:
    run = played(steps=steps)
    before = run.memory()
    with pytest.raises(REFUSED, match=r"\w+ \w+ \w+"):
        call(run)
    assert same(run.memory(), before)
    run.play(5, CENTERS, LABELS, rng(), NONE)
    assert run.t == steps + 5


def anything(random: np.random.Generator) -> Any:
    """Arguments that somebody might hand in by mistake, most of them almost right."""
    n = int(random.integers(0, 4))
    whole = random.integers(-2, M + 2, size=n)
    real = random.standard_normal((n, int(random.choice([D, D, D, 1, 0]))))
    choices: list[Any] = [
        whole, real, real.astype(np.float32), real.T, whole.astype(np.int32), whole[::-1], real[:, :0], whole % 4,
        LABELS.copy(), CENTERS, CENTERS * 1e200, CENTERS * np.nan, LABELS - 1, NONE, NONE.astype(float), None, 3, -1,
        2**63, 0.5, "x", b"x", [], [1], {}, np.float64(1.0), np.int64(2), np.zeros((2, 2, 2)), rng(),
        rng().bit_generator, object(), np.array("x"), np.array([None]), True,
    ]  # fmt: skip
    return choices[int(random.integers(len(choices)))]


@pytest.mark.parametrize("rule", [BOC, LINEAR, UNIFORM, ORACLE])
def test_whatever_is_handed_in_the_run_goes_on(rule: int) -> None:
    """3000 calls at random: each is answered, or refused with a sentence; the run works on after them."""
    random = np.random.default_rng([17, rule])
    run, refused = new_run(rule), []
    for _ in range(3000):
        name = str(random.choice(["play", "follow", "follow", "commit", "restore"]))
        count = {"play": 5, "follow": 3, "commit": 2, "restore": 1}[name]
        given = [anything(random) for _ in range(count)]
        if name == "play":
            given[0] = given[0] if not isinstance(given[0], int) else given[0] % 50
            if random.random() < 0.5:
                given[1:4] = CENTERS, LABELS, rng()
        try:
            getattr(run, name)(*given)
        except REFUSED as error:
            refused.append(str(error))
    print("3000 calls")
    assert 1000 < len(refused) < 3000
    assert min(len(sentence.split()) for sentence in refused) >= 3
    before = run.t
    run.play(200, CENTERS, LABELS, rng(), NONE)
    assert run.t >= before


@pytest.mark.parametrize("rule", [BOC, LINEAR, UNIFORM, ORACLE])
def test_a_bent_memory_is_refused_or_harmless(rule: int) -> None:
    """Numbers of a memory are changed at random: it is refused, or the run plays on without a crash."""
    random = np.random.default_rng([23, rule])
    good, refused = played(rule, 60).memory(), []
    for _ in range(600):
        bent = {name: np.array(value) for name, value in good.items()}
        for _ in range(int(random.integers(1, 4))):
            name = str(random.choice(list(bent)))
            kind = int(random.integers(4))
            if kind == 0:
                del bent[name]
            elif kind == 1:
                with np.errstate(invalid="ignore"):
                    bent[name] = bent[name].astype(random.choice(["f4", "i4", "f8", "i8", "u1"]))
            elif kind == 2:
                bent[name] = np.append(bent[name], bent[name].dtype.type(0))
            elif bent[name].size:
                odd = [-1, 0, 1, 2, 100, *((np.nan, np.inf, 1e300, -1e-300) if bent[name].dtype.kind == "f" else ())]
                bent[name].reshape(-1)[int(random.integers(bent[name].size))] = random.choice(odd)
            if name not in bent:
                break
        run = new_run(rule)
        try:
            run.restore(bent)
        except ValueError as error:
            refused.append(str(error))
        else:
            run.play(100, CENTERS, LABELS, rng(), NONE)
    print("600 calls")
    assert 100 < len(refused) < 600
    assert min(len(sentence.split()) for sentence in refused) >= 3


def test_an_array_may_be_noted_in_and_read() -> None:
    """What is noted is not taken for the truth."""
    both, apart, labels = new_run(), new_run(), LABELS.copy()
    both.play(40, CENTERS, labels, rng(), labels)
    apart.play(40, CENTERS, LABELS, rng(), NONE)
    assert same(both.memory(), apart.memory())
    np.testing.assert_array_equal(labels, np.arange(M))


def test_a_refused_memory_leaves_the_run_as_it_was() -> None:
    run, other = (Run(M, K, D, BOC, LEVELS) for _ in range(2))
    run.play(30, CENTERS, LABELS, rng(), NONE)
    before, bent = run.memory(), run.memory()
    bent["guess.labels"][0] = K
    with pytest.raises(ValueError, match="memory of such a run"):
        run.restore(bent)
    assert same(run.memory(), before)
    other.restore({name: np.asarray(value) for name, value in before.items()})  # as a snapshot keeps them
    assert same(other.memory(), before)
    assert other.next == run.next
    with pytest.raises(ValueError, match="another size"):
        Run(M + 1, K, D, BOC, LEVELS).restore(before)


def test_what_is_shown_of_a_run_cannot_be_written() -> None:
    run = played()
    for array in (run.pulls, run.labels, run.centers, run.sums, run.shares, run.origin, run.stops, run.correct):
        assert not array.flags.writeable
    labels = played().labels  # of a run that nobody else holds
    np.testing.assert_array_equal(labels, run.labels)
