"""What a certificate of groups up to a resolution, or of single linkage, claims: docs/RESOLUTION.md, section 9."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from coterie.certificate.freezes import NEARNESS, Asked, bounds_of
from coterie.certificate.revised import NOTHING, Spent
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

    asked: Asked
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


def near_claim_of(given: dict[str, Any], spent: Spent = NOTHING) -> NearClaim:
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
        asked=Asked(kind, head.n_arms, head.dim, head.n_clusters, claimed.norm, claimed.claims, level),
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


class _Claimed(NamedTuple):
    """How far apart is far, and how near is near: for a resolution, or for linkage."""

    norm: str
    claims: str
    epsilon: FloatArray | None
    eta: FloatArray | None
    height: float | None


def _claimed(given: dict[str, Any], head: Head) -> _Claimed:
    """The bounds that are claimed, of a resolution if there is no K, and the sentence that says so."""
    norm = choice_of(given, "norm", NORMS)
    question: Question
    if head.n_clusters is None:
        claims = choice_of(given, "claims", CLAIMS)
        epsilon, eta = bounds_of(given, head.dim, norm)
        question, claimed = Resolution(epsilon, eta, norm, claims), _Claimed(norm, claims, epsilon, eta, None)
    else:
        if norm != "distance":
            raise ValueError(f'the norm of single linkage is "distance", got {short(norm)}')
        height = check_positive(field_of(given, "height"), "height")
        question, claimed = SingleLinkage(head.n_clusters), _Claimed(norm, "", None, None, height)
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
