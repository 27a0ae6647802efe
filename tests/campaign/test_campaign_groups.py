"""Stable ids of groups: they follow by overlap; merges and splits are events."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coterie.campaign import Campaigns
from coterie.campaign.state.facts import apply_change, change_of, first_groups, next_id_after
from coterie.problem.partition import same_partition


def follow(labels: list[list[int]]) -> tuple[list[list[int]], list[dict[str, Any] | None]]:
    """The ids of every step, and the changes."""
    first = first_groups(np.array(labels[0]))
    ids, next_id = apply_change(None, first), next_id_after(1, first)
    steps, changes = [ids.tolist()], []
    for now in labels[1:]:
        change = change_of(ids, next_id, np.array(now))
        if change is not None:
            ids, next_id = apply_change(ids, change), next_id_after(next_id, change)
        steps.append(ids.tolist())
        changes.append(change)
    return steps, changes


def test_renumbering_is_no_change() -> None:
    steps, changes = follow([[0, 0, 1, 2], [1, 1, 0, 2], [2, 2, 1, 0]])
    assert changes == [None, None]
    assert steps[-1] == [1, 1, 2, 3]


def test_an_arm_that_moves_keeps_both_ids() -> None:
    steps, changes = follow([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]])
    assert steps[-1] == [1, 1, 2, 2, 2]
    assert changes == [{"moved": [[2, 1, 2]], "split": [], "merged": []}]


def test_a_split_and_the_merge_that_comes_with_it() -> None:
    steps, changes = follow([[0, 0, 0, 0, 1, 2], [0, 0, 1, 1, 2, 2]])
    assert changes[0] is not None
    assert changes[0]["split"] == [{"group": 4, "from": 1}]
    assert changes[0]["merged"] in ([{"group": 3, "into": 2}], [{"group": 2, "into": 3}])
    assert steps[-1][:4] == [1, 1, 4, 4]
    assert steps[-1][4] == steps[-1][5] in (2, 3)


def test_an_id_is_never_used_again() -> None:
    there, back = [0, 0, 0, 0, 1, 2], [0, 0, 1, 1, 2, 2]
    steps, _ = follow([there, back, there, back])
    used: set[int] = set()
    for before, after in itertools.pairwise(steps):
        used |= set(before)
        born = set(after) - set(before)
        assert not born & used


@given(st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=2, max_size=8))
def test_ids_keep_the_groups_and_the_largest_overlap(labels: list[list[int]]) -> None:
    steps, changes = follow([np.unique(row, return_inverse=True)[1].tolist() for row in labels])
    for given_labels, ids in zip(labels, steps, strict=True):
        assert same_partition(given_labels, ids)
    for (before, after), change in zip(itertools.pairwise(steps), changes, strict=True):
        moved = [] if change is None else change["moved"]
        assert [m for m, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [m for m, _, _ in moved]
        # No renaming of the new groups would keep more arms where they are than the overlaps' best matching.
        kept = sum(a == b for a, b in zip(before, after, strict=True))
        from scipy.optimize import linear_sum_assignment

        table = np.zeros((max(before) + 1, max(after) + 1))
        np.add.at(table, (before, after), 1)
        rows, columns = linear_sum_assignment(table, maximize=True)
        assert kept == table[rows, columns].sum()


def test_groups_of_a_campaign_are_followed_in_the_log(store: Campaigns) -> None:
    id = store.create("x", 4, 2, 1, noise=1.0)["id"]
    for k, (arm, value) in enumerate([(0, 0.0), (1, 0.2), (2, 5.0), (3, 4.8)]):
        store.tell(id, [{"id": str(k), "arm": arm, "values": [value]}])
    groups = store.status(id)["groups"]
    assert [(group["id"], group["arms"], group["label"]) for group in groups] == [(1, [0, 1], 0), (2, [2, 3], 1)]
    # Arm 0 turns out to be like 2 and 3: group 2 takes it over, though the labels now count from it.
    store.tell(id, [{"id": f"more{k}", "arm": 0, "values": [6.0]} for k in range(30)])
    found = store.status(id)
    assert found["labels"] == [0, 1, 0, 0]
    assert [(group["id"], group["arms"], group["label"]) for group in found["groups"]] == [
        (1, [1], 1),
        (2, [0, 2, 3], 0),
    ]
    notes = [event for event in store.events(id)["events"] if event["kind"] == "groups"]
    assert notes[0]["first"] == [1, 1, 2, 2]
    assert notes[-1]["moved"] == [[0, 1, 2]]
