"""What CROC's binding refuses: whatever is handed in is answered or refused with a sentence, and the run works on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coterie import _native
from coterie.methods.croc.run import CrocRun
from coterie.methods.family import family_for
from coterie.problem.families import Counts, noise_of

M, K, D = 7, 3, 2
LABELS = np.array([0, 0, 1, 1, 2, 2, 2])
CENTERS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
REFUSED = (TypeError, ValueError, IndexError, OverflowError, RuntimeError)
COUNTS = {
    "absorb": 4, "give_up": 2, "follow": 1, "apply": 2, "play": 4, "pair_evidences": 1, "planned": 1, "apply_freeze": 4,
    "apply_round": 3, "apply_alarm": 1, "represent": 2, "settle": 4, "meet_core_pair": 4, "frozen": 1,
    "composition": 1, "round_bet": 1, "is_closed": 1, "restore": 1, "pop": 0, "look": 0, "estimate": 0,
}  # fmt: skip
NOISES = {"known": 1.0, "any": None, "gaussian": "gaussian", "counts": Counts(20)}

ODD: dict[str, list[Any]] = {"f": [-1, 0, 100, np.nan, np.inf], "i": [-1, 0, 1, 2, 100], "u": [0, 1, 2, 255]}
"""Numbers that a memory might have by mistake, by the kind of its array."""


def new_run(noise: str) -> CrocRun:
    return CrocRun(M, K, D, 3.0, family_for(noise_of(NOISES[noise], D), M, K, D))


def measure(run: CrocRun, results: int, seed: int) -> None:
    """So many results at most, as the run asks for them."""
    rng = np.random.default_rng(seed)
    for _ in range(results):
        if (asked := run.pop()) is None:
            return
        x = CENTERS[LABELS[asked[0]]] + rng.standard_normal(D)
        run.absorb(
            asked[0],
            np.clip(np.rint(x + 4.0), 0.0, 20.0) if run.family.name.startswith("counts") else x,
            asked[1],
            True,
        )


def anything(random: np.random.Generator) -> Any:
    """Arguments that somebody might hand in by mistake, most of them almost right."""
    n = int(random.integers(0, 4))
    whole = random.integers(-2, M + 2, size=n)
    real = random.standard_normal((n, int(random.choice([D, 2 * D, 1, 0]))))
    choices: list[Any] = [
        whole, real, real[0] if n else real, np.zeros(D), np.ones(2 * D), np.full(D, np.nan), np.full(D, 1e300),
        real.astype(np.float32), real.T, whole.astype(np.int32), LABELS, LABELS - 1, LABELS + 1, CENTERS,
        CENTERS + np.inf, None, 0, 1, 2, 3, -1, M, 2**62, 2**63, 0.5, float("nan"), float("inf"), True, "x", b"x", [],
        [1], [[0, 1], [2]], [[0, 1], [2, 3], [4, 5, 6]], [[0, 1], [99, 1]], [[0, -1]], (1, 1), (0, 2**62), {},
        np.random.default_rng(1), object(), np.array([None]), np.array([[0, 1, 1, 1]]), np.array([[0, 9, 1, 1]]),
    ]  # fmt: skip
    return choices[int(random.integers(len(choices)))]


def entries(random: np.random.Generator) -> Any:
    """A script of asks and results, often a broken one; None if it was refused."""
    n = int(random.integers(0, 6))
    given: list[Any] = [
        M,
        D,
        random.integers(-1, 5, n),
        random.integers(-2, M + 1, n),
        random.standard_normal((n, 2 * D)),
    ]
    if random.random() < 0.5:
        given[2:4] = random.integers(0, 4, n), random.integers(0, M, n)
    if random.random() < 0.3:
        given[int(random.integers(len(given)))] = anything(random)
    try:
        return _native.CrocEntries(*given)
    except REFUSED:
        return None


@pytest.mark.parametrize("noise", NOISES)
def test_whatever_is_handed_in_the_run_is_of_use_or_says_why_not(noise: str) -> None:
    """3000 calls at random: each is answered, or refused with a sentence; none crashes."""
    random = np.random.default_rng([31, len(noise)])
    refused: list[str] = []
    answered = 0
    run = new_run(noise)
    for step in range(3000):
        if step % 150 == 0:
            run = new_run(noise)
            measure(run, int(random.integers(0, 60)), step)
        name = str(random.choice(list(COUNTS)))
        given = [anything(random) for _ in range(COUNTS[name])]
        if name in ("follow", "apply"):
            given[0] = entries(random)
        if name == "play":
            given[0] = given[0] % 50 if isinstance(given[0], int) else given[0]
            if random.random() < 0.5:
                given[1:] = CENTERS, LABELS, np.random.default_rng(step)
        try:
            getattr(run, name)(*given)
            answered += 1
        except REFUSED as error:
            refused.append(str(error))
    print("3000 calls")
    assert len(refused) > 800
    assert answered > 300
    assert min(len(sentence.split()) for sentence in refused) >= 3


@pytest.mark.parametrize("noise", NOISES)
def test_a_bent_memory_is_refused_or_harmless(noise: str) -> None:
    """Numbers of a memory are changed at random: it is refused, or the run plays on without a crash."""
    random = np.random.default_rng([37, len(noise)])
    run = new_run(noise)
    measure(run, 60, 2)
    good, refused = run.memory(), list[str]()
    for _ in range(300):
        bent = {name: np.array(value) for name, value in good.items()}
        name = str(random.choice(list(bent)))
        kind = int(random.integers(3))
        if kind == 0:
            del bent[name]
        elif kind == 1:
            bent[name] = np.append(bent[name], bent[name].dtype.type(0))
        elif bent[name].size:
            odd: dict[str, list[Any]] = {
                "f": [-1, 0, 100, np.nan, np.inf],
                "i": [-1, 0, 1, 2, 100],
                "u": [0, 1, 2, 255],
            }
            bent[name].reshape(-1)[int(random.integers(bent[name].size))] = random.choice(odd[bent[name].dtype.kind])
        other = new_run(noise)
        try:
            other.restore(bent)
        except ValueError as error:
            refused.append(str(error))
        else:
            measure(other, 60, 3)
    print("300 calls")
    assert 50 < len(refused) < 300
    assert min(len(sentence.split()) for sentence in refused) >= 3
