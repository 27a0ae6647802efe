"""Whether the tests of a frozen candidate add up to its claim: if the claim is false, one of their nulls is true.

A near test proves that two arms differ by less than its bound, a far test that they differ by more. All tests of a
freeze have to be met (docs/RESOLUTION.md, section 3), so tests beyond those that are needed do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from coterie.certificate.freezes import FrozenGroups, FrozenTests
from coterie.problem.checks import FloatArray, IntArray

ROUNDING = 1e-12
"""By how much a bound may be off, relative to it."""


def gaps_in_cover(freeze: FrozenGroups, kind: str, claims: str) -> Iterator[str]:
    """What the tests of a freeze leave open, or what is wrong with their bounds, in words."""
    if kind == "linkage":
        yield from _linkage(freeze)
        return
    assert freeze.epsilon is not None
    assert freeze.eta is not None
    yield from _bounds(freeze.near, np.ones_like(freeze.eta), "near", "η")
    yield from _bounds(freeze.far, freeze.epsilon / freeze.eta, "far", "ε")
    yield from _references(freeze) if claims == "references" else _any_two(freeze)


def _bounds(tests: FrozenTests, wanted: FloatArray, name: str, symbol: str) -> Iterator[str]:
    right = (np.abs(tests.bound - wanted) <= ROUNDING * np.maximum(1.0, wanted)).all(axis=1)
    for i in np.flatnonzero(~right).tolist():
        yield (
            f"the bounds of the {name} test of arms {tests.item[i]} and {tests.reference[i]} must be {symbol}, in "
            f"units of η {wanted.tolist()}, got {tests.bound[i].tolist()}"
        )


def _pairs(tests: FrozenTests) -> set[tuple[int, int]]:
    return set(zip(tests.low.tolist(), tests.high.tolist(), strict=True))


def _references(freeze: FrozenGroups) -> Iterator[str]:
    near, far = _pairs(freeze.near), _pairs(freeze.far)
    for arm, group in enumerate(freeze.labels.tolist()):
        lead = freeze.references[group]
        if arm != lead and (min(arm, lead), max(arm, lead)) not in near:
            yield f"no test that arm {arm} is near arm {lead}, the reference of its group"
    for a, b in combinations(sorted(freeze.references), 2):
        if (a, b) not in far:
            yield f"no test that the references {a} and {b} are far apart"


def _any_two(freeze: FrozenGroups) -> Iterator[str]:
    near = _pairs(freeze.near)
    n_groups = len(freeze.references)
    for group in range(n_groups):
        for pair in combinations(np.flatnonzero(freeze.labels == group).tolist(), 2):
            if pair not in near:
                yield f"no test that arms {pair[0]} and {pair[1]}, of one group, are near each other"
    apart = {frozenset((int(freeze.labels[a]), int(freeze.labels[b]))) for a, b in _pairs(freeze.far)}
    for first, second in combinations(range(n_groups), 2):
        if frozenset((first, second)) not in apart:
            yield f"no test that groups {first} and {second} have items far apart"


def _linkage(freeze: FrozenGroups) -> Iterator[str]:
    height, labels = freeze.height, freeze.labels
    assert height is not None
    within: dict[tuple[int, int], float] = {}  # the smallest bound under which two arms are shown to be
    for *arms, bound in zip(freeze.near.low.tolist(), freeze.near.high.tolist(), freeze.near.bound[:, 0], strict=True):
        pair = (arms[0], arms[1])
        within[pair] = min(float(bound), within.get(pair, np.inf))

    edges = [pair for pair, bound in within.items() if bound <= height and labels[pair[0]] == labels[pair[1]]]
    pieces = _pieces(labels.size, edges)
    for group, lead in enumerate(freeze.references):
        for arm in np.flatnonzero((labels == group) & (pieces != pieces[lead])).tolist():
            yield f"arms {lead} and {arm} of group {group} are not joined by tests of steps below the height {height:g}"

    covered = np.zeros(labels.size, dtype=bool)
    for ball in freeze.balls:
        covered[[ball.reference, *ball.items]] = True
        for arm in ball.items:
            pair = (min(arm, ball.reference), max(arm, ball.reference))
            if arm != ball.reference and not within.get(pair, np.inf) <= ball.radius:
                yield f"no test that arm {arm} is within {ball.radius:g} of arm {ball.reference}, its ball's center"
    for arm in np.flatnonzero(~covered).tolist():
        yield f"arm {arm} is in no ball"
    yield from _balls_apart(freeze, height)


def _balls_apart(freeze: FrozenGroups, height: float) -> Iterator[str]:
    """Balls of different groups that are not shown to be far enough apart."""
    n_arms = freeze.labels.size
    order = np.argsort(freeze.far.low * n_arms + freeze.far.high, kind="stable")
    tested, starts = np.unique((freeze.far.low * n_arms + freeze.far.high)[order], return_index=True)
    beyond = np.maximum.reduceat(freeze.far.bound[order, 0], starts) if starts.size else np.empty(0)
    tested, beyond = np.append(tested, -1), np.append(beyond, -np.inf)  # what stands for no test
    centers = np.array([ball.reference for ball in freeze.balls], dtype=np.int64)
    radii = np.array([ball.radius for ball in freeze.balls])
    for i in range(centers.size - 1):
        a, others = centers[i], centers[i + 1 :]
        pairs = np.minimum(a, others) * n_arms + np.maximum(a, others)
        places = np.searchsorted(tested[:-1], pairs)
        shown = np.where(tested[places] == pairs, beyond[places], -np.inf)
        wanted = height + radii[i] + radii[i + 1 :]
        lacking = (freeze.labels[others] != freeze.labels[a]) & ~(shown >= wanted * (1.0 - ROUNDING))
        for j in np.flatnonzero(lacking).tolist():
            yield (
                f"no test that arms {a} and {others[j]} are more than {wanted[j]:g} apart, the height and the radii of "
                "their balls"
            )


def _pieces(n_arms: int, edges: list[tuple[int, int]]) -> IntArray:
    """The smallest arm of the connected piece of each arm."""
    lead = np.arange(n_arms)
    for a, b in edges:
        first, second = int(lead[a]), int(lead[b])
        if first != second:
            lead[lead == max(first, second)] = min(first, second)
    return lead
