"""What a certificate of groups up to a resolution, or of single linkage, claims: docs/RESOLUTION.md, section 9."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from coterie.certificate.claim import (
    LOG_FIRST_SHARE,
    LOG_SHARE_RATIO,
    Head,
    Tests,
    epochs_of,
    head_of,
    tests_of,
    variance_share_of,
)
from coterie.certificate.fields import agree, choice_of, field_of, object_of
from coterie.certificate.freezes import NEARNESS, FrozenGroups, FrozenTests, LogSubject, bounds_of
from coterie.certificate.revised import NOTHING, SpentError
from coterie.problem.checks import FloatArray, IntArray, check_count, check_positive, short
from coterie.problem.families import Gaussian, Unknown
from coterie.problem.question import CLAIMS, NORMS, Question, Resolution, SingleLinkage
from coterie.problem.sentences import claim_in_words

ALPHA = 0.1  # the share of δ that is left to partial answers


@dataclass(frozen=True)
class NearClaim(Head):
    """A claim of nearness whose levels follow from its δ.

    `epsilon` and `eta` (d) are of a resolution, `height` is of linkage. `epochs` is as given: it is compared with the
    log, and so are `choices`, resolutions that were chosen on the way. `epoch` is the one that proves.
    `log_inverse_left`: log(1/δ), of what revisions have left of δ.
    """

    asked: LogSubject
    log_inverse_left: float
    epsilon: FloatArray | None
    eta: FloatArray | None
    height: float | None
    epochs: tuple[dict[str, Any], ...]
    epoch: int
    near: Tests
    far: Tests
    borders: dict[int, tuple[int, ...]]
    choices: tuple[dict[str, Any], ...]
    choices_in_words: str | None


def near_claim_of(given: dict[str, Any], spent: SpentError = NOTHING) -> NearClaim:
    """The claim of a certificate; ValueError or TypeError says what is wrong with it."""
    kind = choice_of(given, "question", NEARNESS)
    head = head_of(given, kind)
    _check_groups(given, kind, head.n_groups)
    agree("alpha", field_of(given, "alpha"), ALPHA)
    share = variance_share_of(given, isinstance(head.noise, Unknown) and isinstance(head.noise.statement, Gaussian))
    claimed = _claimed(given, head)
    # What revisions have left: epochs count on, and bounds on the variance are bought anew each time.
    left = head.log_inverse_delta - spent.epochs * LOG_SHARE_RATIO
    if share > 0.0:
        left -= spent.revisions * (math.log1p(-ALPHA) + math.log1p(-share))

    def level(epoch: int) -> float:
        return left - (math.log1p(-ALPHA) + math.log1p(-share)) - LOG_FIRST_SHARE - epoch * LOG_SHARE_RATIO

    def epoch_of(entry: dict[str, Any], j: int) -> dict[str, Any]:
        check_count(entry["number"], f"the number of epoch {j}", 0)
        return entry

    epochs = epochs_of(given, head.t, epoch_of)
    epoch = check_count(field_of(given, "epoch"), "epoch", 0)
    if epoch >= len(epochs):
        raise ValueError(f"the certificate rests on epoch {epoch}, but lists only {len(epochs)}")
    choices, words = _choices(given, kind)
    return NearClaim(
        **vars(head),
        asked=LogSubject(kind, head.n_arms, head.dim, head.n_clusters, claimed.norm, claimed.claims, level),
        log_inverse_left=left,
        epsilon=claimed.epsilon,
        eta=claimed.eta,
        height=claimed.height,
        epochs=epochs,
        epoch=epoch,
        near=tests_of(given, "near_tests", head.n_arms, head.n_arms),
        far=tests_of(given, "far_tests", head.n_arms, head.n_arms),
        borders=_borders(object_of(given, "borders"), head.labels),
        choices=choices,
        choices_in_words=words,
    )


class _ClaimedBounds(NamedTuple):
    """How far apart is far, and how near is near: for a resolution, or for linkage."""

    norm: str
    claims: str
    epsilon: FloatArray | None
    eta: FloatArray | None
    height: float | None


def _claimed(given: dict[str, Any], head: Head) -> _ClaimedBounds:
    """The bounds that are claimed, of a resolution if there is no K, and the sentence that says so."""
    norm = choice_of(given, "norm", NORMS)
    question: Question
    if head.n_clusters is None:
        claims = choice_of(given, "claims", CLAIMS)
        epsilon, eta = bounds_of(given, head.dim, norm)
        question, claimed = Resolution(epsilon, eta, norm, claims), _ClaimedBounds(norm, claims, epsilon, eta, None)
    else:
        if norm != "distance":
            raise ValueError(f'the norm of single linkage is "distance", got {short(norm)}')
        height = check_positive(field_of(given, "height"), "height")
        question, claimed = SingleLinkage(head.n_clusters), _ClaimedBounds(norm, "", None, None, height)
    sentence = claim_in_words(question, head.delta, claimed.height)
    if field_of(given, "claim") != sentence:
        raise ValueError(f"claim must say what is claimed, {sentence!r}, got {short(given['claim'])}")
    return claimed


def _check_groups(given: dict[str, Any], kind: str, n_groups: int) -> None:
    """The number of groups, and that nothing of another question is said."""
    if check_count(field_of(given, "n_groups"), "n_groups", 1) != n_groups:
        raise ValueError(f"n_groups must be {n_groups}, the groups of labels, got {short(given['n_groups'])}")
    strange = ("alarm", "homogeneity") + (("n_clusters", "height") if kind == Resolution.kind else ("epsilon", "eta"))
    for name in strange:
        if given.get(name) is not None:
            raise ValueError(f"{name} is of another question and must be null, got {short(given[name])}")


def _choices(given: dict[str, Any], kind: str) -> tuple[tuple[dict[str, Any], ...], str | None]:
    """Resolutions that were chosen on the way, as given, and the sentence about them: the log must say the same."""
    listed, words = given.get("resolutions"), given.get("resolutions_in_words")
    if listed is None and words is None:
        return (), None
    if kind != Resolution.kind:
        raise ValueError(f"resolutions are of another question and must be null, got {short(listed or words)}")
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(entry, dict) for entry in listed):
        raise ValueError(f"resolutions must list those that were chosen on the way, got {short(listed)}")
    if not isinstance(words, str):
        raise TypeError(f"resolutions_in_words must be a sentence, got {short(words)}")
    return tuple(listed), words


def _borders(given: dict[str, Any], labels: IntArray) -> dict[int, tuple[int, ...]]:
    """Items, as text, with the other groups that they could belong to, ascending."""
    borders: dict[int, tuple[int, ...]] = {}
    items = {str(arm): arm for arm in range(labels.size)}
    for name, groups in given.items():
        if name not in items:
            raise ValueError(f"borders: {short(name)} is no item, they are 0..{labels.size - 1}")
        numbers = _groups(groups, int(labels.max()) + 1, f"borders of item {name}")
        if not numbers or int(labels[items[name]]) in numbers:
            raise ValueError(f"borders of item {name} must list groups other than its own, got {short(groups)}")
        borders[items[name]] = numbers
    return borders


def _groups(given: Any, n_groups: int, name: str) -> tuple[int, ...]:
    """Numbers of groups, ascending, none twice."""
    if not isinstance(given, list | tuple):
        raise TypeError(f"{name} must be a list of groups, got {short(given)}")
    numbers = tuple(check_count(group, f"a group in the {name}", 0) for group in given)
    if list(numbers) != sorted(set(numbers)) or any(group >= n_groups for group in numbers):
        raise ValueError(f"{name} must be groups from 0 to {n_groups - 1}, ascending, got {short(given)}")
    return numbers


# Whether the tests of a frozen candidate add up to its claim: if the claim is false, one of their nulls is true.
#
# A near test proves that two arms differ by less than its bound, a far test that they differ by more. All tests of a
# freeze have to be met (docs/RESOLUTION.md, section 3), so tests beyond those that are needed do no harm.


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
