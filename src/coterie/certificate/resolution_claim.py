"""What a certificate of groups up to a resolution, or of single linkage, claims; read strictly from plain JSON values.

What follows from the question and δ alone is checked here. docs/RESOLUTION.md, section 9, lists the fields.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from coterie.certificate.claim import LOG_FIRST_SHARE, LOG_SHARE_RATIO
from coterie.certificate.fields import EXACT, agree, field_of, list_of, object_of, table_of, whole_numbers
from coterie.certificate.resolution_log import Asked, bounds_of, labels_of, references_of
from coterie.certificate.revised import NOTHING, Spent
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_count,
    check_delta,
    check_log_inverse_delta,
    check_positive,
    check_shape,
    short,
)
from coterie.problem.families import Gaussian, Model, Unknown, noise_from_json
from coterie.problem.question import CLAIMS, NORMS, Question, Resolution, SingleLinkage
from coterie.problem.sentences import assumption_in_words, claim_in_words

FORMAT = "coterie-certificate-2"
KINDS = (Resolution.kind, SingleLinkage.kind)
PROVES_NEARNESS = ("known", "gaussian", "bounded", "counts")
"""Noises under which results can show that two items are near each other."""

# The constants of the rule. They are part of the format: a share chosen after the results would prove nothing.
ALPHA = 0.1  # the share of δ that is left to partial answers
VARIANCE_SHARE = 0.1  # … and to an upper bound on the variance, where it is not known


@dataclass(frozen=True)
class StatedTests:
    """Tests as a certificate lists them, one a row: `counts` is n, of contrasts."""

    items: IntArray
    references: IntArray
    evidence: FloatArray
    counts: IntArray


@dataclass(frozen=True)
class ResolutionClaim:
    """A certificate whose shape is right and whose levels follow from its δ.

    `epsilon` and `eta` (d) are of a resolution, `height` is of linkage. `epochs` is as given: it is compared with the
    log, and so are `choices`, resolutions that were chosen on the way. `epoch` is the one that proves.
    """

    asked: Asked
    noise: Model
    log_inverse_delta: float
    t: int
    labels: IntArray
    references: tuple[int, ...]
    epsilon: FloatArray | None
    eta: FloatArray | None
    height: float | None
    epochs: tuple[dict[str, Any], ...]
    epoch: int
    near: StatedTests
    far: StatedTests
    borders: dict[int, tuple[int, ...]]
    choices: tuple[dict[str, Any], ...]
    choices_in_words: str | None


def is_of_resolution(given: dict[str, Any]) -> bool:
    """Whether a certificate answers one of the questions of this file: those of K groups do not name their question."""
    return "question" in given


def resolution_claim_of(given: dict[str, Any], spent: Spent = NOTHING) -> ResolutionClaim:
    """The claim of a certificate; ValueError or TypeError says what is wrong with it."""
    if given.get("format") != FORMAT:
        raise ValueError(
            f"not a certificate of this question: format must be {FORMAT}, got {short(given.get('format'))}"
        )
    kind = given["question"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"question must be one of {', '.join(KINDS)}, got {short(kind)}")
    n_arms, dim = check_count(field_of(given, "n_arms"), "n_arms", 1), check_count(field_of(given, "dim"), "dim", 1)
    n_clusters = None
    if kind == SingleLinkage.kind:
        n_clusters = check_shape(n_arms, field_of(given, "n_clusters"), dim)[1]
    labels = labels_of(field_of(given, "labels"), n_arms, n_clusters)
    references = references_of(field_of(given, "references"), labels)
    delta = check_delta(field_of(given, "delta"))
    log_inverse_delta = check_log_inverse_delta(field_of(given, "log_inverse_delta"))
    if not abs(log_inverse_delta + math.log(delta)) <= EXACT:
        raise ValueError(f"log_inverse_delta must be {-math.log(delta)!r}, got {log_inverse_delta!r}")
    _check_groups(given, kind, len(references))
    noise = noise_from_json(field_of(given, "noise"), dim)
    _check_noise(given, noise, kind)
    agree("alpha", field_of(given, "alpha"), ALPHA)
    share = _variance_share(given, noise)
    claimed = _claimed(given, dim, n_clusters, delta)
    # What revisions have left: epochs count on, and bounds on the variance are bought anew each time.
    log_inverse_delta -= spent.epochs * LOG_SHARE_RATIO
    if share > 0.0:
        log_inverse_delta -= spent.revisions * (math.log1p(-ALPHA) + math.log1p(-share))

    def level(epoch: int) -> float:
        left = math.log1p(-ALPHA) + math.log1p(-share)
        return log_inverse_delta - left - LOG_FIRST_SHARE - epoch * LOG_SHARE_RATIO

    t = check_count(field_of(given, "t"), "t", 1)
    epochs = tuple(_epoch(entry, j, t) for j, entry in enumerate(list_of(given, "epochs")))
    epoch = check_count(field_of(given, "epoch"), "epoch", 0)
    if epoch >= len(epochs):
        raise ValueError(f"the certificate rests on epoch {epoch}, but lists only {len(epochs)}")
    return ResolutionClaim(
        Asked(kind, n_arms, dim, claimed.norm, claimed.claims, n_clusters, level),
        noise,
        log_inverse_delta,
        t,
        labels,
        references,
        claimed.epsilon,
        claimed.eta,
        claimed.height,
        epochs,
        epoch,
        _tests(given, "near_tests", n_arms),
        _tests(given, "far_tests", n_arms),
        _borders(object_of(given, "borders"), labels),
        *_choices(given, kind),
    )


class _Claimed(NamedTuple):
    """How far apart is far, and how near is near: for a resolution, or for linkage."""

    norm: str
    claims: str
    epsilon: FloatArray | None
    eta: FloatArray | None
    height: float | None


def _claimed(given: dict[str, Any], dim: int, n_clusters: int | None, delta: float) -> _Claimed:
    """The bounds that are claimed, of a resolution if there is no K, and the sentence that says so."""
    norm = _choice(given, "norm", NORMS)
    question: Question
    if n_clusters is None:
        claims = _choice(given, "claims", CLAIMS)
        epsilon, eta = bounds_of(field_of(given, "epsilon"), field_of(given, "eta"), dim, norm)
        question, found = Resolution(epsilon, eta, norm, claims), _Claimed(norm, claims, epsilon, eta, None)
    else:
        if norm != "distance":
            raise ValueError(f'the norm of single linkage is "distance", got {short(norm)}')
        height = check_positive(field_of(given, "height"), "height")
        question, found = SingleLinkage(n_clusters), _Claimed(norm, "", None, None, height)
    sentence = claim_in_words(question, delta, found.height)
    if field_of(given, "claim") != sentence:
        raise ValueError(f"claim must say what is claimed, {sentence!r}, got {short(given['claim'])}")
    return found


def _check_groups(given: dict[str, Any], kind: str, n_groups: int) -> None:
    """The number of groups, and that nothing of another question is said."""
    if check_count(field_of(given, "n_groups"), "n_groups", 1) != n_groups:
        raise ValueError(f"n_groups must be {n_groups}, the groups of labels, got {short(given['n_groups'])}")
    strange = ("alarm", "homogeneity") + (("n_clusters", "height") if kind == Resolution.kind else ("epsilon", "eta"))
    for name in strange:
        if given.get(name) is not None:
            raise ValueError(f"{name} is of another question and must be null, got {short(given[name])}")


def _check_noise(given: dict[str, Any], noise: Model, kind: str) -> None:
    """The noise must be one under which nearness can be shown, and the sentence must say what it assumes."""
    if noise.kind not in PROVES_NEARNESS:
        raise ValueError(f"under the noise {noise.kind!r} no results show that items are near each other")
    sentence = assumption_in_words(noise, kind)
    if field_of(given, "assumes") != sentence:
        raise ValueError(
            f"assumes must say what the noise {noise.kind!r} assumes, {sentence!r}, got {short(given['assumes'])}"
        )


def _variance_share(given: dict[str, Any], noise: Model) -> float:
    if isinstance(noise, Unknown) and isinstance(noise.statement, Gaussian):
        agree("variance_share", field_of(given, "variance_share"), VARIANCE_SHARE)
        return VARIANCE_SHARE
    if given.get("variance_share") is not None:
        raise ValueError(f"variance_share is for Gaussian noise of unknown size, got {short(given['variance_share'])}")
    return 0.0


def _choice(given: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    value = field_of(given, name)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {short(value)}")
    return value


def _epoch(entry: Any, j: int, t: int) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError(f"epoch {j} of the certificate must be an object, got {short(entry)}")
    if check_count(entry.get("number"), f"the number of epoch {j}", 0) != j:
        raise ValueError(f"epoch {j} of the certificate: its number must be {j}, got {short(entry['number'])}")
    at = check_count(entry.get("frozen_at"), f"frozen_at of epoch {j}", 0)
    if at > t:
        raise ValueError(f"epoch {j} was frozen at {at}, after the last of the {t} results that count")
    return entry


def _choices(given: dict[str, Any], kind: str) -> tuple[tuple[dict[str, Any], ...], str | None]:
    """Resolutions that were chosen on the way, as given, and the sentence about them: the log must say the same."""
    listed, words = given.get("resolutions"), given.get("resolutions_in_words")
    if listed is None and words is None:
        return (), None
    if kind != Resolution.kind:
        raise ValueError(f"resolutions are of another question and must be null, got {short(listed or words)}")
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(one, dict) for one in listed):
        raise ValueError(f"resolutions must list those that were chosen on the way, got {short(listed)}")
    if not isinstance(words, str):
        raise TypeError(f"resolutions_in_words must be a sentence, got {short(words)}")
    return tuple(listed), words


def _tests(given: dict[str, Any], name: str, n_arms: int) -> StatedTests:
    table = table_of(given, name, 4)
    return StatedTests(
        whole_numbers(table[:, 0], f"the items of {name}", 0, n_arms - 1),
        whole_numbers(table[:, 1], f"the references of {name}", 0, n_arms - 1),
        table[:, 2],
        whole_numbers(table[:, 3], f"the counts of {name}", 1),
    )


def _borders(given: dict[str, Any], labels: IntArray) -> dict[int, tuple[int, ...]]:
    """Items, as text, with the other groups that they could belong to, ascending."""
    found: dict[int, tuple[int, ...]] = {}
    names = {str(arm): arm for arm in range(labels.size)}
    for name, groups in given.items():
        if name not in names:
            raise ValueError(f"borders: {short(name)} is no item, they are 0..{labels.size - 1}")
        numbers = _groups(groups, int(labels.max()) + 1, f"borders of item {name}")
        if not numbers or int(labels[names[name]]) in numbers:
            raise ValueError(f"borders of item {name} must list groups other than its own, got {short(groups)}")
        found[names[name]] = numbers
    return found


def _groups(given: Any, n_groups: int, name: str) -> tuple[int, ...]:
    """Numbers of groups, ascending, none twice."""
    if not isinstance(given, list | tuple):
        raise TypeError(f"{name} must be a list of groups, got {short(given)}")
    numbers = tuple(check_count(group, f"a group in the {name}", 0) for group in given)
    if list(numbers) != sorted(set(numbers)) or any(group >= n_groups for group in numbers):
        raise ValueError(f"{name} must be groups from 0 to {n_groups - 1}, ascending, got {short(given)}")
    return numbers
