"""What a noise is to a run where features are measured apart: units, what is bet, and what the tests gather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from coterie.methods.features.epoch import MakeEvidence
from coterie.methods.features.evidence import KnownEvidence
from coterie.methods.features.grouping import Groups, errors_of
from coterie.methods.features.measured import Learned, OfRates, Scale, Stated
from coterie.methods.features.unknown import AnyEvidence, CountsEvidence, GaussianEvidence
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Model, Unknown, trials_of
from coterie.problem.noise import Noise
from coterie.problem.settings import SettingError, Settings

KINDS = frozenset({"known", "bounded", "counts", "gaussian", "any"})
"""Of noises for which there is evidence here."""
LEAST_FRACTION = 0.3
MOST_CORRELATED = 2000
"""A covariance of more features is none that anybody states."""

Points: TypeAlias = Callable[[FloatArray, Sequence[int]], FloatArray]
"""(results, their features) → the points that evidence is made of."""


def sds_of(noise: Model) -> FloatArray | None:
    """The standard deviation of each feature, one for all or one each; None if none is stated.

    Results within bounds are sub-Gaussian with half of their range (docs/FEATURES.md).
    """
    if isinstance(noise, Noise):
        return noise.deviations
    stated = noise.statement
    if isinstance(stated, Bounded):
        return np.atleast_1d((np.asarray(stated.hi) - np.asarray(stated.lo)) / 2.0)
    return None


def scale_for(noise: Model) -> Scale:
    """In what the rule measures gaps."""
    sds, trials = sds_of(noise), trials_of(noise)
    if sds is not None:
        return Stated(sds)
    return Learned() if trials is None else OfRates(trials)


def points_of(noise: Model) -> Points:
    """In what units evidence is: of the noise, where it is stated."""
    sds = sds_of(noise)
    if sds is None:
        return lambda x, features: x
    return lambda x, features: x / (sds if sds.size == 1 else sds[list(features)])


def check_noise(settings: Settings) -> None:
    """That there is evidence for the noise where features are measured one by one; `SettingError` says what to do."""
    features, kind, words = settings.features, settings.noise.kind, settings.noise.words
    if features is None:
        return
    if kind not in KINDS:
        raise SettingError(
            f"there is no evidence for {words} where features are measured one by one: state any noise, "
            '"gaussian", counts, bounds or a standard deviation, or leave features out',
            "noise",
        )
    if isinstance(settings.noise, Unknown) and getattr(settings.noise.statement, "shape", None) is True:
        raise SettingError(
            "spread and shape are not bet on where features are measured one by one: leave shape out, or features",
            "noise",
        )
    if features.width > 1 and (kind in ("bounded", "gaussian") or _correlated(settings.noise)):
        raise SettingError(
            "panels of several features need any noise, counts, or a known noise that is independent between "
            f"features, got {words}: measure every feature alone, or state a standard deviation for each",
            "noise",
        )


def _correlated(noise: Model) -> bool:
    if not isinstance(noise, Noise) or noise.is_identity or noise.dim > MOST_CORRELATED:
        return False
    covariance = noise.covariance
    return bool((covariance != np.diag(np.diagonal(covariance))).any())


def evidence_for(noise: Model) -> MakeEvidence:
    """What tests gather."""
    if sds_of(noise) is not None:
        return KnownEvidence
    trials = trials_of(noise)
    if trials is not None:
        return partial(CountsEvidence, trials)
    return GaussianEvidence if noise.kind == "gaussian" else AnyEvidence


def bets_for(noise: Model, groups: Groups) -> list[dict[str, Any]]:
    """What is bet with a freeze on each feature that was found; with rounds, where the noise is not known."""
    if sds_of(noise) is None:
        return [{"feature": feature} for feature in groups.features]
    means, weights = groups.centers()
    return [
        {"feature": feature, "centers": means[:, place].tolist(), "weights": weights[:, place].tolist()}
        for place, feature in enumerate(groups.features)
    ]


def round_bets_for(noise: Model, groups: Groups) -> list[dict[str, Any]]:
    """What is bet with a round on each feature that was found; nothing where all is bet with the freeze."""
    if sds_of(noise) is not None:
        return []
    means, weights = groups.centers()
    gaps = means[:, None] - means[None]
    shares = 1.0 - errors_of(weights) ** 2 / np.maximum(gaps**2, 1e-12)
    fractions = np.clip(shares, LEAST_FRACTION, 1.0)
    bets, trials = [], trials_of(noise)
    for place, feature in enumerate(groups.features):
        bet: dict[str, Any] = {"feature": feature, "fractions": fractions[:, :, place].tolist()}
        sd, centers = groups.measured.sd(feature), means[:, place]
        if trials is not None:
            n = weights[:, place] * trials
            successes = np.clip(centers * sd * weights[:, place], 0.0, n)
            bet["logits"] = (np.log(successes + 0.5) - np.log(n - successes + 0.5)).tolist()
        else:
            bet["centers"] = (centers * sd).tolist()
            if noise.kind == "any":
                bet["scale"] = sd
        bets.append(bet)
    return bets
