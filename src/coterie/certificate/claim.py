"""What every certificate of a run claims, read from plain JSON values: sizes, groups, δ and noise.

`head_of` reads what all questions have in common; `coterie.certificate.group_claim` (K groups) and
`coterie.certificate.near_claim` (a resolution, single linkage) read the proof. What follows from the question and δ
alone is checked on the way. Names and symbols of docs/CROC.md: `share` is π_j, `level` is b_j.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from coterie.certificate.fields import EXACT, agree, field_of, list_of, table_of, whole_numbers
from coterie.certificate.freezes import labels_of, references_of
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_count,
    check_delta,
    check_log_inverse_delta,
    check_shape,
    short,
)
from coterie.problem.families import AnyNoise, Bounded, Counts, Model, Unknown, noise_from_json
from coterie.problem.features import Features
from coterie.problem.question import ExactGroups, Resolution
from coterie.problem.sentences import assumption_in_words

FORMAT = "coterie-certificate-2"

# The constants of the rule. They are part of the format: a share chosen after the results would prove nothing.
VARIANCE_SHARE = 0.1  # of δ, for an upper bound on the variance, where one is needed
LOG_FIRST_SHARE, LOG_SHARE_RATIO = math.log(0.8), math.log(0.2)  # π_j = 0.8·0.2^j

PROVES_NEARNESS = ("known", "gaussian", "bounded", "counts")
"""Noises under which results can show that two items are near each other."""

BLOCKS = ("offset", "drawn")

BY_FEATURE = ("known", "bounded", "counts", "gaussian", "any")
"""Noises under which features that are measured apart prove something."""

Epoch = TypeVar("Epoch")


@dataclass(frozen=True)
class Head:
    """What a certificate says whatever its question: its shape is right, and its δ is one.

    `n_clusters`: K, None for a resolution. `leads`: an arm of each group, its representative or reference. `blocks`:
    "offset" or "drawn" of a run in blocks, else ""; `strict`: a cell that stayed unfinished never counts. `features`:
    where they are measured apart.
    """

    n_arms: int
    n_clusters: int | None
    dim: int
    labels: IntArray
    leads: IntArray
    delta: float
    log_inverse_delta: float
    noise: Model
    t: int
    blocks: str
    strict: bool
    features: Features | None

    @property
    def n_groups(self) -> int:
        """How many groups are claimed."""
        return int(self.leads.size)


@dataclass(frozen=True)
class Tests:
    """Tests as a certificate lists them, one a row: an arm against a group or a second arm.

    `counts`: the last round that a test uses; for nearness, the number of its contrasts.
    """

    arms: IntArray
    others: IntArray
    evidence: FloatArray
    counts: IntArray


def head_of(given: dict[str, Any], kind: str) -> Head:
    """The head of a certificate of this question; ValueError or TypeError says what is wrong with it."""
    if given.get("format") != FORMAT:
        raise ValueError(f"not a certificate: format must be {FORMAT}, got {short(given.get('format'))}")
    n_clusters = None
    if kind == Resolution.kind:
        n_arms, dim = (check_count(field_of(given, name), name, 1) for name in ("n_arms", "dim"))
    else:
        n_arms, n_clusters, dim = check_shape(*(field_of(given, name) for name in ("n_arms", "n_clusters", "dim")))
    labels = labels_of(field_of(given, "labels"), n_arms, n_clusters)
    name = "representatives" if kind == ExactGroups.kind else "references"
    leads = np.array(references_of(field_of(given, name), labels, name), dtype=np.int64)
    log_inverse_delta = check_log_inverse_delta(field_of(given, "log_inverse_delta"))
    delta = check_delta(field_of(given, "delta"))
    if not abs(log_inverse_delta + math.log(delta)) <= EXACT:
        raise ValueError(f"log_inverse_delta must be {-math.log(delta)!r}, got {log_inverse_delta!r}")
    noise = noise_from_json(field_of(given, "noise"), dim)
    if kind != ExactGroups.kind and noise.kind not in PROVES_NEARNESS:
        raise ValueError(f"under the noise {noise.kind!r} no results show that items are near each other")
    blocks, strict = _blocks_of(given, noise, kind)
    features = _features_of(given, noise, kind, blocks)
    _check_assumption(given, noise, kind, blocks, strict, features)
    t = check_count(field_of(given, "t"), "t", 1)
    return Head(n_arms, n_clusters, dim, labels, leads, delta, log_inverse_delta, noise, t, blocks, strict, features)


def _blocks_of(given: dict[str, Any], noise: Model, kind: str) -> tuple[str, bool]:
    """What a certificate says of blocks; under which noises they prove something is in docs/BLOCKS.md."""
    blocks, strict = given.get("blocks"), given.get("strict_blocks", False)
    if not isinstance(strict, bool) or (strict and blocks is None):
        raise ValueError(f"strict_blocks must be true or false, and is for a run in blocks, got {short(strict)}")
    if blocks is None:
        return "", False
    if not isinstance(blocks, str) or blocks not in BLOCKS:
        raise ValueError(f"blocks must be one of {', '.join(BLOCKS)}, or missing, got {short(blocks)}")
    if kind != ExactGroups.kind:
        raise ValueError(f"blocks are for exactly K groups, not for the question {kind!r}")
    stated = noise.statement if isinstance(noise, Unknown) else None
    one_trial = isinstance(stated, Counts) and stated.trials == 1 and noise.dim == 1
    if blocks == "drawn" and not (one_trial or isinstance(stated, Bounded | AnyNoise)):
        raise ValueError(
            f"drawn blocks prove nothing under the noise {noise.kind!r}: they are for results within bounds, counts of "
            "one trial (one number a result), and any noise"
        )
    return blocks, strict


def _features_of(given: dict[str, Any], noise: Model, kind: str, blocks: str) -> Features | None:
    """What a certificate says of features that were measured apart; docs/FEATURES.md has the noises that prove it."""
    stated = given.get("features")
    if stated is None:
        return None
    if not isinstance(stated, dict):
        raise TypeError(f"features must be an object, got {short(stated)}")
    if blocks or kind != ExactGroups.kind:
        raise ValueError("features that are measured apart are for exactly K groups, without blocks")
    features = Features.from_json(stated)
    if features.dim != noise.dim:
        raise ValueError(f"dim must be the number of features, {features.dim}, got {noise.dim}")
    if noise.kind not in BY_FEATURE:
        raise ValueError(f"features that are measured apart prove nothing under the noise {noise.kind!r}")
    if isinstance(noise, Unknown) and isinstance(noise.statement, AnyNoise) and noise.statement.shape:
        raise ValueError("spread and shape are not bet on where features are measured apart")
    if features.width > 1 and noise.kind not in ("any", "counts") and not _independent(noise):
        raise ValueError("panels of several features need any noise, counts, or a known noise without correlations")
    return features


def _independent(noise: Model) -> bool:
    plain: Any = noise.to_json()
    return noise.kind == "known" and np.ndim(plain["noise"] if isinstance(plain, dict) else plain) < 2


def _check_assumption(
    given: dict[str, Any], noise: Model, kind: str, blocks: str, strict: bool, features: Features | None
) -> None:
    """That the certificate says in words what its noise assumes; of K groups and a known noise 0.2 did not say it."""
    silent = kind == ExactGroups.kind and not isinstance(noise, Unknown)
    if silent and "assumes" not in given and "log_format" not in given and not blocks and features is None:
        return
    sentence = assumption_in_words(noise, kind, blocks or None, strict, features is not None and features.holes)
    if field_of(given, "assumes") != sentence:
        raise ValueError(
            f"assumes must say what the noise {noise.kind!r} assumes, {sentence!r}, got {short(given['assumes'])}"
        )


def variance_share_of(given: dict[str, Any], needed: bool) -> float:
    """The share of δ for an upper bound on the variance; 0 where none is needed."""
    if needed:
        agree("variance_share", field_of(given, "variance_share"), VARIANCE_SHARE)
        return VARIANCE_SHARE
    if given.get("variance_share") is not None:
        raise ValueError(f"variance_share is for Gaussian noise of unknown size, got {short(given['variance_share'])}")
    return 0.0


def epochs_of(given: dict[str, Any], t: int, read: Callable[[dict[str, Any], int], Epoch]) -> tuple[Epoch, ...]:
    """All epochs, each as `read` gives it, with its number: they count from 0, and none was frozen after t results."""
    epochs = []
    for j, entry in enumerate(list_of(given, "epochs")):
        if not isinstance(entry, dict):
            raise ValueError(f"epoch {j} of the certificate must be an object, got {short(entry)}")
        try:
            if field_of(entry, "number") != j or isinstance(entry["number"], bool):
                raise ValueError(f"its number must be {j}, got {short(entry['number'])}")
            at = check_count(field_of(entry, "frozen_at"), "frozen_at", 0)
            if at > t:
                raise ValueError(f"it was frozen at {at}, after the last of the {t} results that count")
            epochs.append(read(entry, j))
        except (ValueError, TypeError) as error:
            raise ValueError(f"epoch {j} of the certificate: {error}") from None
    return tuple(epochs)


def tests_of(given: dict[str, Any], name: str, n_arms: int, n_others: int) -> Tests:
    """Tests from a list of rows [arm, other, evidence, count]."""
    table = table_of(given, name, 4)
    return Tests(
        whole_numbers(table[:, 0], f"the arms of {name}", 0, n_arms - 1),
        whole_numbers(table[:, 1], f"the second entries of {name}", 0, n_others - 1),
        table[:, 2],
        whole_numbers(table[:, 3], f"the last entries of {name}", 1),
    )
