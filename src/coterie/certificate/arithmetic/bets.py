"""Bets: the numbers by which a round's results are judged where the noise is not known, and who is compared with whom.

A bet comes with the event of its round, before any result of it, or with a freeze:
    "bet": {"from": [d numbers], "numbers": [...]}
"from" is the origin o from which positions x − o count. `ROUND` and `FREEZE` say what the numbers of each family are,
in their order; tables are listed row by row, and an entry l, k is about an arm of group l against one of group k.

Of a run in blocks the rounds are cells, with the same bets. For any noise positions there are x − x̄ − o, seen from the
mean x̄ of the cell; and the freezes of a known noise state `KNOWN_FREEZE`.

Any bet that was fixed before the results which it judges is valid (docs/EVIDENCE.md): a bad one only proves nothing. So
it is not checked that a bet follows from the past, only that it is there in time, complete and in its range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from coterie.certificate.arithmetic.features import check_features, features_of
from coterie.certificate.composed import Composition
from coterie.certificate.freezes import Freeze
from coterie.certificate.reading import Log
from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.problem.families import AnyNoise, Unknown


class Part(NamedTuple):
    """Numbers of a bet that belong together."""

    name: str
    # "": one; "k": one a group; "kd": a vector a group; "kk": a table of groups; "p": one a row of pulls; "d": one a
    # number of a result; "kD": one a group and feature; "s": one a score
    shape: str
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
    "poisson": (Part("L", "kd", "finite"), FRACTIONS),
    "exponential": (Part("L", "kd", "finite"), FRACTIONS),
    "bounded": (Part("G", "kd", "finite"), FRACTIONS, Part("Δ²", "kk", "not negative")),
    "at-most": (Part("U", "kd", "finite"), FRACTIONS),
    "symmetric": (Part("G", "kd", "finite"), FRACTIONS, Part("s²", "p", "positive")),
}
FREEZE: dict[str, tuple[Part, ...]] = {"gaussian": (Part("G", "kd", "finite"), Part("Δ", "kk", "positive"))}
KNOWN_FREEZE = (Part("U", "kd", "finite"), Part("τ²", "kk", "positive"))
"""What the freeze of a known noise states in blocks: centers in units of the noise, and how far off their differences
may be. Without blocks both follow from the results before the freeze."""

SHAPE = "any, with shape"
"""The key of `AnyNoise(shape=True)`, whose freezes also name the features that its rounds' bets are about."""
ROUND[SHAPE] = (
    *ROUND["any"],
    Part("o", "d", "finite"),
    Part("s", "d", "positive"),
    Part("P", "kD", "finite"),
    Part("p", "k", "finite"),
    Part("f of shape", "kk", "fraction"),
)
FREEZE[SHAPE] = (Part("weights", "s", "share"),)
SCORES = ("location", "shape", "small")
"""What the weights of a freeze are of."""


def key_of(noise: Unknown) -> str:
    """The key of a noise in `ROUND` and `FREEZE`."""
    return SHAPE if isinstance(noise.statement, AnyNoise) and noise.statement.shape else noise.kind


@dataclass(frozen=True)
class Bet:
    """The origin of a bet, and its parts by name, each in its shape."""

    origin: FloatArray
    parts: dict[str, FloatArray]


@dataclass(frozen=True)
class BetRound:
    """A round or cell with its bet: the arms in the order listed, and, if it is complete, its results, one a row."""

    number: int
    listed: IntArray
    bet: Bet
    arms: IntArray  # (n)
    positions: FloatArray  # (n, d): x − o, in the units of the evidence
    values: FloatArray  # (n, d): x, in the user's units
    in_block: bool = False  # a cell, whose results are all shifted alike
    features: FloatArray | None = None  # (n, D): φ(x), if the bet is about the shape too


@dataclass(frozen=True)
class BetRecord:
    """A log with its bets. `freeze_bets` is empty if the family has none."""

    noise: Unknown
    log: Log
    freeze_bets: tuple[Bet, ...]
    rounds: tuple[BetRound, ...]


def bets_of(log: Log, noise: Unknown, n_clusters: int) -> BetRecord:
    """All bets of a log; ValueError says what is wrong, and names the round or freeze."""
    if log.listing is not None:
        raise ValueError(f"a list of partitions is for a known noise, not for {noise.kind!r}")
    contradiction = log.contradiction(noise)
    if contradiction is not None:
        row, reason = contradiction
        raise ValueError(
            f"result {row + 1} of the log, {short(log.values[row].tolist())} of arm {log.arms[row]}, contradicts what "
            f"the certificate assumes: {reason}"
        )
    key, sizes = key_of(noise), {"k": n_clusters, "d": noise.dim, "s": len(SCORES)}
    parts = FREEZE.get(key, ())
    frozen = [_bet(freeze.bet, parts, sizes, f"freeze {freeze.number}", noise.kind) for freeze in log.freezes if parts]
    named = {}
    if key == SHAPE:
        named = {freeze.number: _named(freeze, bet, noise.dim) for freeze, bet in zip(log.freezes, frozen, strict=True)}
    fully = noise.whiten_fully(log.values)
    rounds = [_round(composed, noise, sizes, log, fully, named.get(composed.epoch)) for composed in log.rounds]
    return BetRecord(noise, log, tuple(frozen), tuple(rounds))


def known_freeze_bet(freeze: Freeze, n_clusters: int, dim: int) -> Bet:
    """What a freeze in blocks states under a known noise."""
    given = {"from": [0.0] * dim} | freeze.bet if isinstance(freeze.bet, dict) else freeze.bet
    return _bet(given, KNOWN_FREEZE, {"k": n_clusters, "d": dim}, f"freeze {freeze.number}", "known")


Named: TypeAlias = tuple[tuple[str, ...], int | None]
"""Features, and the seed of random ones."""


def _named(freeze: Freeze, bet: Bet, dim: int) -> Named:
    """The features that a freeze names. Its weights must add up to no more than 1."""
    total = float(bet.parts["weights"].sum())
    if total > 1.0 + 1e-12:
        raise ValueError(f"the bet of freeze {freeze.number}: its weights must add up to 1 at most, got {total!r}")
    try:
        return check_features(freeze.bet.get("features"), freeze.bet.get("seed"), dim)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the bet of freeze {freeze.number}: {error}") from None


def _round(
    composed: Composition, noise: Unknown, sizes: dict[str, int], log: Log, fully: FloatArray, named: Named | None
) -> BetRound:
    number, rows, d = composed.number, composed.rows, noise.dim
    arms, listed = log.arms[rows], np.array(composed.arms, dtype=np.int64)
    if composed.epoch < 0:  # a cell before all freezes, in which no test is
        return BetRound(number, listed, Bet(np.zeros(d), {}), arms, log.values[rows], log.values[rows], True)
    sizes = sizes | {"p": len(composed.arms), "D": 0 if named is None else len(named[0])}
    in_block = composed.block is not None
    of = f"{'cell' if in_block else 'round'} {number}"
    bet = _bet(composed.bet, ROUND[key_of(noise)], sizes, of, noise.kind)
    start = bet.origin
    if in_block and noise.kind not in ("bounded", "counts") and rows.size:
        start = fully[rows[0], :d]  # only differences count: an offset cancels before anything is rounded
    positions = (fully[rows, :d] - start) + fully[rows, d:]
    if in_block and noise.kind == "any" and rows.size:
        positions = positions - positions.mean(axis=0) - bet.origin
    features = None if named is None else features_of(*named, positions, bet.parts["o"], bet.parts["s"])
    return BetRound(number, listed, bet, arms, positions, log.values[rows], in_block, features)


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
        by_name = {part.name: piece.reshape(shape) for part, piece, shape in zip(parts, cut, shapes, strict=True)}
        for part in parts:
            _check_range(part, by_name[part.name])
    except (ValueError, TypeError) as error:
        raise ValueError(f"the bet of {of}: {error}") from None
    return Bet(origin, by_name)


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


@dataclass(frozen=True)
class Sides:
    """The tests that a round gives something to, one a row: an arm of group `own` against a pool of group `other`.

    Results of a round belong to rows: `arm_of` gives each its arm, `pool_of` its pool, -1 for none.
    """

    tests: IntArray  # which of the tests that were asked about
    own: IntArray
    other: IntArray
    arm: IntArray  # the row of the arm, among those of the round
    pool: IntArray  # the row of the pool
    arm_of: IntArray
    pool_of: IntArray
    arm_counts: IntArray
    pool_counts: IntArray

    @property
    def counts(self) -> tuple[FloatArray, FloatArray]:
        """a and A: how many results both sides of each test have."""
        return self.arm_counts[self.arm].astype(np.float64), self.pool_counts[self.pool].astype(np.float64)

    @property
    def spread(self) -> FloatArray:
        """v = 1/a + 1/A of each test."""
        a, pulls = self.counts
        return 1.0 / a + 1.0 / pulls

    def totals(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(tests, d) twice: sums of these values (one a result) over the arm, and over the pool, of each test."""
        of_arms = np.zeros((self.arm_counts.size, values.shape[1]))
        np.add.at(of_arms, self.arm_of, values)
        of_pools = np.zeros((self.pool_counts.size, values.shape[1]))
        pooled = self.pool_of >= 0
        np.add.at(of_pools, self.pool_of[pooled], values[pooled])
        return of_arms[self.arm], of_pools[self.pool]

    def contrast(self, positions: FloatArray) -> FloatArray:
        """(tests, d): C, the mean of the arm's results minus that of the pool's."""
        a, pulls = self.counts
        of_arms, of_pools = self.totals(positions)
        return np.asarray(of_arms / a[:, None] - of_pools / pulls[:, None])

    def rows(self, part: slice) -> Sides:
        """Some of the tests."""
        return Sides(
            self.tests[part], self.own[part], self.other[part], self.arm[part], self.pool[part],
            self.arm_of, self.pool_of, self.arm_counts, self.pool_counts,
        )  # fmt: skip


def sides_of(
    bet_round: BetRound, freeze: Freeze, pools: str, arms: IntArray, others: IntArray, wanted: IntArray
) -> Sides:
    """The sides of tests in a complete round, for those of `wanted` (their numbers) that have results on both.

    `pools` is "group", "core" or "arm" and says what `others` counts.
    """
    labels, n_groups = freeze.labels, len(freeze.cores)
    present, arm_of = np.unique(bet_round.arms, return_inverse=True)
    row = np.full(labels.size, -1)
    row[present] = np.arange(present.size)
    if pools == "arm":
        n_pools, pool_of, pool_row = present.size, arm_of, row
    else:
        n_pools, pool_of, pool_row = n_groups, labels[bet_round.arms], np.arange(n_groups)
        if pools == "core":
            pool_of = np.where(freeze.in_core[bet_round.arms], pool_of, -1)
    arm_counts = np.bincount(arm_of, minlength=present.size)
    pool_counts = np.bincount(pool_of[pool_of >= 0], minlength=n_pools)
    arm, pool = row[arms[wanted]], pool_row[others[wanted]]
    use = (arm >= 0) & (pool >= 0)
    use[use] = pool_counts[pool[use]] > 0
    tests = wanted[use]
    own = labels[arms[tests]]
    other = labels[others[tests]] if pools == "arm" else others[tests]
    return Sides(tests, own, other, arm[use], pool[use], arm_of, pool_of, arm_counts, pool_counts)


def padded(rows: IntArray, n_rows: int) -> IntArray:
    """(n_rows, most): the numbers of the results that belong to each row, then -1; those of row -1 are left out."""
    there = np.flatnonzero(rows >= 0)
    order = there[np.argsort(rows[there], kind="stable")]
    counts = np.bincount(rows[there], minlength=n_rows)
    place = np.arange(order.size) - (np.cumsum(counts) - counts)[rows[order]]
    table = np.full((n_rows, int(counts.max(initial=0))), -1)
    table[rows[order], place] = order
    return table
