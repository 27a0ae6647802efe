"""What a certificate by a list of partitions claims (docs/CROC.md, section 20), read from plain JSON values.

    {"level": log(1/((1−α)δ)), "rounds": [1, …, r], "pairs": [[arm, arm, evidence, count, count], …],
     "partitions": [labels, …], "struck": [[round, evidence], …]}
`pairs` are all settled pairs that it rests on. `struck` has an entry for each partition: the round by which its
evidence reached the level, and that evidence; [0, 0] if a pair struck it off, and for the partition that is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.certificate.fields import agree, field_of, list_of, table_of, whole_numbers
from coterie.problem.checks import FloatArray, IntArray, check_count, short

MOST_PARTITIONS = 4000
"""On a list that is looked at; the method makes shorter ones."""


@dataclass(frozen=True)
class ListClaim:
    """A claim by a list whose shape is right and whose level follows from δ."""

    level: float
    rounds: tuple[int, ...]
    pairs: tuple[IntArray, IntArray, FloatArray, IntArray, IntArray]  # arms, evidence, counts
    partitions: IntArray  # (n, M)
    struck_by: IntArray  # (n) rounds
    evidence: FloatArray  # (n)


def list_claim_of(level: float, n_arms: int, n_clusters: int, given: dict[str, Any]) -> ListClaim:
    """The claim; ValueError or TypeError says what is wrong. `level`: what the evidence of rounds must reach."""
    agree("list.level", field_of(given, "level"), level)
    rounds = tuple(check_count(number, "a round of the list", 1) for number in list_of(given, "rounds"))
    if rounds != tuple(range(1, len(rounds) + 1)):
        raise ValueError(f"list.rounds must be 1, 2, … without a gap, got {short(list(rounds))}")
    pairs = table_of(given, "pairs", 5)
    rows = list_of(given, "partitions")
    if not 1 <= len(rows) <= MOST_PARTITIONS:
        raise ValueError(f"list.partitions must have 1 to {MOST_PARTITIONS} entries, got {len(rows)}")
    partitions = whole_numbers(table_of(given, "partitions", n_arms), "list.partitions", 0, n_clusters - 1)
    struck = table_of(given, "struck", 2)
    if len(struck) != len(rows):
        raise ValueError(f"list.struck must have an entry for each of the {len(rows)} partitions, got {len(struck)}")
    return ListClaim(
        level,
        rounds,
        (
            whole_numbers(pairs[:, 0], "the arms of list.pairs", 0, n_arms - 1),
            whole_numbers(pairs[:, 1], "the arms of list.pairs", 0, n_arms - 1),
            pairs[:, 2],
            whole_numbers(pairs[:, 3], "the counts of list.pairs", 1),
            whole_numbers(pairs[:, 4], "the counts of list.pairs", 1),
        ),
        partitions,
        whole_numbers(struck[:, 0], "the rounds of list.struck", 0, len(rounds)),
        np.asarray(struck[:, 1]),
    )
