"""The certificate of groups up to a resolution, or of single linkage: plain data that `coterie.verify` re-checks.

docs/RESOLUTION.md, section 9, lists the fields; what a freeze decides is written there as it stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.evidence.near_far.gaussian import SHARE_OF_BOUNDS
from coterie.methods.contract import Decision
from coterie.methods.resolution.run import ALPHA
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.question import ExactGroups, Resolution
from coterie.problem.sentences import assumption_in_words, choices_in_words, claim_in_words
from coterie.problem.settings import Settings

_OF_FREEZE = ("level", "labels", "references", "epsilon", "eta", "height", "balls", "near", "far")


def certificate_of(
    settings: Settings,
    t: int,
    freezes: Sequence[Decision],
    epoch: int,
    near: Sequence[tuple[float, int]],
    far: Sequence[tuple[float, int]],
    means: FloatArray,
) -> dict[str, Any]:
    """The proof as plain data, once all tests of a freeze are met.

    `t`: results that counted. `freezes`: all of the run, in order, each with `frozen_at`, the results that had counted
    before it. `epoch`: which of them is proven. `near`, `far`: evidence and contrasts of each of its tests, in its
    order. `means`: (M, d) of all results that counted, in the user's units, from any one origin.
    """
    question, proven = settings.question, freezes[epoch]
    assert not isinstance(question, ExactGroups)
    document: dict[str, Any] = {"format": "coterie-certificate-2", "question": question.kind}
    if isinstance(question, Resolution):
        at = Resolution(proven["epsilon"], proven["eta"], question.norm, question.claims)
        document["claim"] = claim_in_words(at, settings.delta)
        document |= {"claims": question.claims, "norm": question.norm}
        document |= {"epsilon": list(proven["epsilon"]), "eta": list(proven["eta"])}
        borders = borders_of(means, np.array(proven["labels"]), proven["references"], at)
    else:
        document["claim"] = claim_in_words(question, settings.delta, float(proven["height"]))
        document |= {"norm": "distance", "height": float(proven["height"]), "n_clusters": question.n_clusters}
        borders = {}
    if settings.noise.kind == "gaussian":
        document["variance_share"] = SHARE_OF_BOUNDS
    return document | {
        "delta": settings.delta,
        "log_inverse_delta": -math.log(settings.delta),
        "alpha": ALPHA,
        "noise": settings.noise.to_json(),
        "assumes": assumption_in_words(settings.noise, question.kind),
        "n_arms": settings.n_arms,
        "dim": settings.dim,
        "t": int(t),
        "n_groups": len(proven["references"]),
        "labels": [int(label) for label in proven["labels"]],
        "references": [int(arm) for arm in proven["references"]],
        "epochs": [epoch_of(freeze) for freeze in freezes],
        "epoch": epoch,
        "near_tests": _rows(proven["near"], near),
        "far_tests": _rows(proven["far"], far),
        "borders": {str(item): list(groups) for item, groups in borders.items()},
    }


def epoch_of(freeze: Mapping[str, Any]) -> dict[str, Any]:
    """A freeze as a certificate lists it."""
    kept = {name: freeze[name] for name in _OF_FREEZE if freeze.get(name) is not None}
    return {"number": freeze["epoch"], "frozen_at": freeze["frozen_at"], **kept}


def changes_of(freezes: Sequence[Decision], choices: Sequence[Decision]) -> dict[str, Any]:
    """What a certificate says where other ε and η were chosen on the way: each choice, and all of it in words."""
    if not choices:
        return {}
    kept = ("epoch", "chosen_at", "epsilon", "eta")
    frozen = [(freeze["epsilon"], freeze["eta"]) for freeze in freezes]
    chosen = [(choice["epoch"], choice["chosen_at"], (choice["epsilon"], choice["eta"])) for choice in choices]
    return {
        "resolutions": [{name: choice[name] for name in kept} for choice in choices],
        "resolutions_in_words": choices_in_words(frozen, chosen),
    }


def borders_of(
    means: FloatArray, labels: IntArray, references: Sequence[int], resolution: Resolution
) -> dict[int, tuple[int, ...]]:
    """Items that could belong to other groups too, and to which: by all results they are within η of those as well.

    Of the reference of a group, or for the claim "any-two" of all its items. A reference itself belongs to its group.
    """
    scaled = means / resolution.eta(means.shape[1])
    borders: dict[int, tuple[int, ...]] = {}
    for item, own in enumerate(labels.tolist()):
        if item in references:
            continue
        groups = []
        for group, reference in enumerate(references):
            mates = np.flatnonzero(labels == group) if resolution.claims == "any-two" else np.array([reference])
            gaps = np.abs(scaled[mates] - scaled[item])
            lengths = np.sqrt((gaps**2).sum(axis=1)) if resolution.norm == "distance" else gaps.max(axis=1)
            if group != own and (lengths < 1.0).all():
                groups.append(group)
        if groups:
            borders[item] = tuple(groups)
    return borders


def _rows(tests: Sequence[Any], states: Sequence[tuple[float, int]]) -> list[list[Any]]:
    return [
        [int(test[0]), int(test[1]), float(evidence), int(n)] for test, (evidence, n) in zip(tests, states, strict=True)
    ]
