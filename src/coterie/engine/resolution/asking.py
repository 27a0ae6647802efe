"""From settings to a question with its evidence."""

from __future__ import annotations

import numpy as np

from coterie.engine.resolution.evidence import Evidence
from coterie.engine.resolution.linkage import AskedLinkage
from coterie.engine.resolution.questions import Asked, AskedResolution
from coterie.problem.question import Resolution, SingleLinkage
from coterie.problem.settings import Settings


def asked_for(settings: Settings) -> Asked:
    """The question of a run."""
    question, dim = settings.question, settings.dim
    evidence = Evidence(settings.noise, question, settings.n_arms, dim, settings.delta)
    if isinstance(question, SingleLinkage):
        return AskedLinkage(evidence, question.n_clusters, dim)
    assert isinstance(question, Resolution)
    epsilon, eta = question.epsilon(dim), question.eta(dim)
    bounds = {"epsilon": epsilon.tolist(), "eta": eta.tolist()}
    return AskedResolution(evidence, np.ones(dim), epsilon / eta, question.claims == "any-two", bounds)
