"""Bets: the numbers by which a round's results will be judged where the noise is not known, and a log that has them.

A bet comes with the event of its round, before any result of it, or with a freeze:
    "bet": {"from": [d numbers], "numbers": [...]}
"from" is the origin o from which positions x − o count. `ROUND` and `FREEZE` say what the numbers of each family are,
in their order; tables are listed row by row, and an entry l, k is about an arm of group l against one of group k.

Any bet that was fixed before the results which it judges is valid (docs/EVIDENCE.md): a bad one only proves nothing. So
it is not checked that a bet follows from the past, only that it is there in time, complete and in its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.log import Composed, Frozen, read_events, values_of
from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.problem.families import Unknown


class Part(NamedTuple):
    """Numbers of a bet that belong together."""

    name: str
    shape: str  # "": one; "k": one a group; "kd": a vector a group; "kk": a table of groups; "p": one a row of pulls
    range: str  # a key of RANGES


RANGES = {
    "finite": "finite",
    "share": "between 0 and 1",
    "fraction": "above 0 and at most 1",
    "positive": "above 0",
    "not negative": "at least 0",
    "order": "a whole number from 1 to 64",
}
FRACTIONS = Part("f", "kk", "fraction")

ROUND: dict[str, tuple[Part, ...]] = {
    "any": (
        Part("w", "", "share"),
        Part("J", "", "order"),
        Part("G", "kd", "finite"),
        Part("h", "k", "finite"),
        FRACTIONS,
        Part("Δ", "kk", "positive"),
    ),
    "gaussian": (Part("U", "kd", "finite"), FRACTIONS),
    "counts": (Part("L", "kd", "finite"), FRACTIONS),
    "bounded": (Part("G", "kd", "finite"), FRACTIONS, Part("Δ²", "kk", "not negative")),
    "at-most": (Part("U", "kd", "finite"), FRACTIONS),
    "symmetric": (Part("G", "kd", "finite"), FRACTIONS, Part("s²", "p", "positive")),
}
FREEZE: dict[str, tuple[Part, ...]] = {"gaussian": (Part("G", "kd", "finite"), Part("Δ", "kk", "positive"))}


@dataclass(frozen=True)
class Bet:
    """The origin of a bet, and its parts by name, each in its shape."""

    origin: FloatArray
    parts: dict[str, FloatArray]


@dataclass(frozen=True)
class BetRound:
    """A round with its bet: the arms in the order listed, and, if it is complete, its results, one a row."""

    number: int
    epoch: int
    listed: IntArray
    complete: bool
    bet: Bet
    arms: IntArray  # (n)
    positions: FloatArray  # (n, d): x − o, in the units of the evidence
    values: FloatArray  # (n, d): x, in the user's units


@dataclass(frozen=True)
class BetRecord:
    """What a log with bets says about its first t results. `freeze_bets` is empty if the family has none."""

    noise: Unknown
    arms: IntArray  # (t)
    values: FloatArray  # (t, d), in the user's units
    alone: NDArray[np.bool_]  # (t) which were asked for while nothing else was
    freezes: tuple[Frozen, ...]
    freeze_bets: tuple[Bet, ...]
    rounds: tuple[BetRound, ...]


def parse_bets(events: Sequence[Any], n_arms: int, n_clusters: int, noise: Unknown, t: int) -> BetRecord:
    """The record of the first t results with all bets; ValueError says what is wrong, and names the round or freeze."""
    reading = read_events(events, n_arms, n_clusters, noise.dim, t, True)
    if reading.listing is not None:
        raise ValueError(f"a list of partitions is for a known noise, not for {noise.kind!r}")
    values = values_of(reading)
    _check_values(noise, values, reading.arms)
    parts = FREEZE.get(noise.kind, ())
    shape = {"k": n_clusters, "d": noise.dim}
    frozen = [
        _bet(given, parts, shape, f"freeze {j}", noise.kind) for j, given in enumerate(reading.freeze_bets) if parts
    ]
    fully, arms = noise.whiten_fully(values), np.array(reading.arms, dtype=np.int64)
    rounds = [_round(number, one, noise, shape, arms, values, fully) for number, one in enumerate(reading.rounds, 1)]
    alone = np.array(reading.alone, dtype=bool)
    return BetRecord(noise, arms, values, alone, tuple(reading.freezes), tuple(frozen), tuple(rounds))


def _check_values(noise: Unknown, values: FloatArray, arms: list[int]) -> None:
    """Results must not contradict what was stated about the noise; the error names the first that does."""
    try:
        noise.check(values)
    except ValueError:
        for row, value in enumerate(values):
            try:
                noise.check(value[None])
            except ValueError as error:
                raise ValueError(
                    f"result {row + 1} of the log, {short(value.tolist())} of arm {arms[row]}, contradicts what the "
                    f"certificate assumes: {error}"
                ) from None
        raise


def _round(
    number: int,
    read: Composed,
    noise: Unknown,
    shape: dict[str, int],
    arms: IntArray,
    values: FloatArray,
    fully: FloatArray,
) -> BetRound:
    sizes = shape | {"p": len(read.arms)}
    bet = _bet(read.bet, ROUND[noise.kind], sizes, f"round {number}", noise.kind)
    rows = np.array([] if read.missing else read.rows, dtype=np.int64)
    d = noise.dim
    positions = (fully[rows, :d] - bet.origin) + fully[rows, d:]
    listed = np.array(read.arms, dtype=np.int64)
    return BetRound(number, read.epoch, listed, not read.missing, bet, arms[rows], positions, values[rows])


def _bet(given: Any, parts: tuple[Part, ...], sizes: dict[str, int], of: str, kind: str) -> Bet:
    if given is None:
        raise ValueError(f"{of} has no bet: with the noise {kind!r} it must come with it, before any result")
    if not isinstance(given, dict) or "from" not in given or "numbers" not in given:
        raise ValueError(f'the bet of {of} must be an object with "from" and "numbers", got {short(given)}')
    try:
        origin = _flat(given["from"], "from", sizes["d"])
        shapes = [tuple(sizes[letter] for letter in part.shape) for part in parts]
        lengths = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
        numbers = _flat(given["numbers"], "numbers", sum(lengths))
        cut = np.split(numbers, np.cumsum(lengths)[:-1])
        found = {part.name: piece.reshape(shape) for part, piece, shape in zip(parts, cut, shapes, strict=True)}
        for part in parts:
            _check_range(part, found[part.name])
    except (ValueError, TypeError) as error:
        raise ValueError(f"the bet of {of}: {error}") from None
    return Bet(origin, found)


def _flat(given: Any, name: str, length: int) -> FloatArray:
    if not isinstance(given, list | tuple):
        raise TypeError(f"{name} must be a list of {length} numbers, got {short(given)}")
    if len(given) != length:
        raise ValueError(f"{name} must be {length} numbers, got {len(given)}")
    numbers = check_real_array(given, name)
    if numbers.shape != (length,):
        raise ValueError(f"{name} must be {length} numbers, got {short(given)}")
    return numbers


def _check_range(part: Part, numbers: FloatArray) -> None:
    wrong = {
        "finite": np.zeros(numbers.shape, dtype=bool),
        "share": (numbers < 0.0) | (numbers > 1.0),
        "fraction": (numbers <= 0.0) | (numbers > 1.0),
        "positive": numbers <= 0.0,
        "not negative": numbers < 0.0,
        "order": (numbers != np.floor(numbers)) | (numbers < 1.0) | (numbers > 64.0),
    }[part.range]
    if part.shape == "kk":
        wrong &= ~np.eye(len(numbers), dtype=bool)  # no test compares a group with itself
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        where = f"[{', '.join(map(str, place))}]" if place else ""
        raise ValueError(f"{part.name}{where} must be {RANGES[part.range]}, got {float(numbers[place])!r}")
