"""Pairs of results whose difference is pure noise: both were decided on before either was known.

A round is composed before any of its asks, and asked for to its end; so any pairing of its asks that was fixed with it
will do. Two pulls of one arm have the same mean in any case; two arms of a group have if the group is right. Outside
rounds, two asks of one arm are a pair if the second was made while the first was open.
"""

from __future__ import annotations

import numpy as np

from coterie.problem.checks import IntArray
from coterie.problem.partition import canonical
from coterie.session.record_arrays import RecordArrays
from coterie.theory.prefix_ranks import fixed_noise


def round_pairs(
    number: int, pulls: dict[int, int], labels: IntArray | None
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The pairing of a round's asks: ((arm, its i-th pull), (arm, its j-th pull)), from its number and composition.

    Pulls of one arm first; of the arms with a pull left, `labels` says which have the same mean (None: nobody knows).
    """
    found = []
    left: dict[int, list[int]] = {}
    for arm in sorted(pulls):
        for i in range(0, pulls[arm] - 1, 2):
            found.append(((arm, i), (arm, i + 1)))
        if pulls[arm] % 2 == 1 and labels is not None:
            left.setdefault(int(labels[arm]), []).append(arm)
    for arms in left.values():
        single = np.array(arms, dtype=np.int64)
        mixed = single[np.argsort(fixed_noise(np.full(single.size, number), single), kind="stable")].tolist()
        for one, other in zip(mixed[::2], mixed[1::2], strict=False):
            found.append(((one, pulls[one] - 1), (other, pulls[other] - 1)))
    return found


def committed_pairs(record: RecordArrays, labels: IntArray | None) -> IntArray:
    """(n, 2) results of the pairs so far, in the order in which they were decided on; none after one that is open.

    Arms of one group are paired in rounds whose candidate is `labels`.
    """
    frozen = {one["epoch"]: one["labels"] for _, one in record.decisions if one["event"] == "freeze"}
    wanted = None if labels is None else canonical(labels)
    same = {
        epoch: wanted is not None and np.array_equal(canonical(np.array(its)), wanted) for epoch, its in frozen.items()
    }
    steps: list[tuple[int, list[tuple[int, int]]]] = [
        (place, [(first, second)]) for place, first, second in record.pairs_asked_together()
    ]
    for one in record.rounds():
        if one.complete:
            pairing = round_pairs(one.number, one.pulls, labels if same.get(one.epoch) else None)
            steps.append((one.place, [(one.results[a][i], one.results[b][j]) for (a, i), (b, j) in pairing]))
        else:
            steps.append((one.place, [(-1, -1)]))
    found: list[tuple[int, int]] = []
    for _, pairs in sorted(steps, key=lambda step: step[0]):
        if any(first < 0 for first, _ in pairs):
            break
        found += pairs
    return np.array(found, dtype=np.int64).reshape(-1, 2)
