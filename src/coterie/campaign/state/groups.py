"""Stable ids of groups: when the groups change, ids follow by overlap, and merges and splits have names.

A change is kept as plain data: {"moved": [[arm, from, to], …], "split": [{"group", "from"}], "merged": [{"group",
"into"}]}; the first groups as {"first": [the id of each arm]}. Where K is given, a split comes with a merge; with a
resolution the number of groups may change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem.checks import IntArray


def first_groups(labels: IntArray) -> dict[str, Any]:
    """Ids from 1, in the order of the labels."""
    return {"first": (labels + 1).tolist()}  # 0 for retired items


def change_of(ids: IntArray, next_id: int, labels: IntArray) -> dict[str, Any] | None:
    """How groups whose arms have these ids became the groups that `labels` says; None if nothing changed.

    Old and new groups are matched so that as many arms as possible keep their id (equal matches: the one that SciPy's
    assignment of the groups in ascending order finds). A group matched to nothing of its own gets a new id.
    """
    here = labels >= 0  # retired items have no group, and those that joined have none yet: 0
    known = here & (ids > 0)
    old, of_old = np.unique(ids[known], return_inverse=True)
    new, of_new = np.unique(labels[here], return_inverse=True)
    overlap = np.zeros((old.size, new.size), dtype=np.int64)
    np.add.at(overlap, (of_old, of_new[known[here]]), 1)
    if old.size == new.size and (np.count_nonzero(overlap, axis=0) == 1).all() and (ids[here] > 0).all():
        return None

    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(overlap, maximize=True)
    kept = {int(k): int(old[h]) for h, k in zip(rows, columns, strict=True) if overlap[h, k] > 0}
    named = np.empty(new.size, dtype=np.int64)
    split = []
    for k in range(new.size):
        if k in kept:
            named[k] = kept[k]
        else:
            named[k] = next_id
            whence = int(old[int(np.argmax(overlap[:, k]))]) if overlap[:, k].any() else 0
            split.append({"group": next_id, "from": whence})
            next_id += 1
    gone = [h for h in range(old.size) if int(old[h]) not in kept.values()]
    merged = [{"group": int(old[h]), "into": int(named[int(np.argmax(overlap[h]))])} for h in gone]
    now = np.zeros_like(ids)
    now[here] = named[of_new]
    moved = [[int(arm), int(ids[arm]), int(now[arm])] for arm in np.flatnonzero(now != ids)]
    return {"moved": moved, "split": split, "merged": merged}


def apply_change(ids: IntArray | None, change: dict[str, Any]) -> IntArray:
    """The id of each arm after a change."""
    if ids is None:
        return np.array(change["first"], dtype=np.int64)
    after = ids.copy()
    for arm, _, to in change["moved"]:
        after[arm] = to
    return after


def next_id_after(next_id: int, change: dict[str, Any]) -> int:
    """The lowest id that no group has had."""
    if "first" in change:
        return int(max(change["first"])) + 1
    return max([next_id, *(int(entry["group"]) + 1 for entry in change["split"])])
