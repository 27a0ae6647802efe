"""Compact letter displays: items that share a letter are not proven different, as people know it from Tukey's test."""

from __future__ import annotations

import numpy as np

from coterie.problem.checks import IntArray


def letter_columns(apart: np.ndarray) -> list[IntArray]:
    """The items of each letter, for a symmetric matrix (M, M) of which pairs are apart.

    Every two items that are not apart share a letter, no two that are apart do, every item has one, and no letter
    can be left out. A letter is a largest set that cannot be made larger; they are made for pairs without a common
    letter, one after the other, each with as many such pairs as it can have (greedily: fewer letters may be
    possible). In the order of their first items.
    """
    n = len(apart)
    near = ~np.asarray(apart, dtype=bool)
    np.fill_diagonal(near, False)
    open_pairs = near.copy()  # not apart, and no common letter yet
    weights = near.astype(np.float32)
    columns: list[np.ndarray] = []
    alone = np.asarray(~near.any(axis=1))
    for item in np.flatnonzero(alone):
        columns.append(np.arange(n) == item)
    while open_pairs.any():
        first = int(np.argmax(open_pairs.sum(axis=1)))
        member = np.zeros(n, dtype=bool)
        member[first] = True
        candidates, gain = near[first].copy(), open_pairs[first].astype(np.int64)
        left = weights @ candidates.astype(np.float32)  # how many candidates each item would leave; whole numbers
        while candidates.any():
            if left[candidates].min() == candidates.sum() - 1:  # none is apart from another: all of them belong to it
                member |= candidates
                break
            # the item with the most open pairs within the set; ties: the one that leaves most candidates, then the
            # first
            best = int(np.argmax(np.where(candidates, gain * (n + 1) + left, -1)))
            member[best] = True
            left -= weights[candidates & ~near[best]].sum(axis=0)
            candidates &= near[best]
            gain = gain + open_pairs[best]
        columns.append(member)
        open_pairs[np.ix_(member, member)] = False
    return _without_redundant(columns, alone)


def _without_redundant(columns: list[np.ndarray], alone: np.ndarray) -> list[IntArray]:
    """Leave out letters all of whose pairs have another one, the last made first."""
    n = alone.size
    shared = np.zeros((n, n), dtype=np.int64)
    for member in columns:
        shared[np.ix_(member, member)] += 1
    kept = []
    for member in reversed(columns):
        its = np.ix_(member, member)
        block = shared[its]
        np.fill_diagonal(block, 2)
        if member.sum() > 1 and (block >= 2).all():
            shared[its] -= 1
        else:
            kept.append(np.flatnonzero(member))
    return sorted(kept, key=lambda items: items.tolist())


def letter_name(number: int) -> str:
    """a, b, …, z, aa, ab, …"""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(ord("a") + digit) + name
    return name


def letters(apart: np.ndarray) -> tuple[str, ...]:
    """The letters of each item as people write them: "ab"; with a blank between them if one has two signs."""
    columns = letter_columns(apart)
    mark = "" if len(columns) <= 26 else " "
    of: list[list[str]] = [[] for _ in range(len(apart))]
    for number, items in enumerate(columns):
        for item in items.tolist():
            of[item].append(letter_name(number))
    return tuple(mark.join(its) for its in of)
