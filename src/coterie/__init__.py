"""Coterie: which of these items are alike, when every look at an item costs something and is noisy.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024), on one exact and fast engine. Names are
loaded when first used, so that importing the package takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

_HOMES = {
    "Instance": "coterie.problem.instance",
    "Noise": "coterie.problem.noise",
    "Exactly": "coterie.problem.noise",
    "Resolution": "coterie.problem.question",
    "Gaussian": "coterie.problem.families",
    "Counts": "coterie.problem.families",
    "Exponential": "coterie.problem.families",
    "Poisson": "coterie.problem.families",
    "Bounded": "coterie.problem.families",
    "AnyNoise": "coterie.problem.families",
    "AtMost": "coterie.problem.families",
    "Symmetric": "coterie.problem.families",
    "same_partition": "coterie.problem.partition",
    "hardness": "coterie.evidence.allocation",
    "allocation": "coterie.evidence.allocation",
    "lower_bound": "coterie.evidence.allocation",
    "closest_alternative": "coterie.evidence.stopping",
    "Alternative": "coterie.evidence.stopping",
    "threshold": "coterie.evidence.stopping",
    "pair_evidence": "coterie.evidence.pairs",
    "kmeans_maximin": "coterie.methods.maximin",
    "Session": "coterie.session",
    "BlockFull": "coterie.session",
    "SessionDone": "coterie.session",
    "Waiting": "coterie.session",
    "cluster": "coterie.session",
    "acluster": "coterie.session",
    "resolution_curve": "coterie.session.resolution_curve",
    "ResolutionCurve": "coterie.session.resolution_curve",
    "simulate": "coterie.simulate.trials",
    "Trials": "coterie.simulate.trials",
    "plan_budget": "coterie.simulate.budgets",
    "BudgetPlan": "coterie.simulate.budgets",
    "worlds": "coterie.worlds",
    "BanditClustering": "coterie.tables.estimator",
    "group": "coterie.tables.grouping",
    "Grouping": "coterie.tables.grouping",
    "letters": "coterie.tables.letters",
    "verify": "coterie.certificate",
    "Verdict": "coterie.certificate",
    "Certificate": "coterie.certificate",
    "methods": "coterie.methods",
    "plot": "coterie.plot",
    "datasets": "coterie.datasets",
    "client": "coterie.client",
}

__all__ = [*_HOMES, "__version__"]

if TYPE_CHECKING:
    from coterie import client as client
    from coterie import datasets as datasets
    from coterie import methods as methods
    from coterie import plot as plot
    from coterie import worlds as worlds
    from coterie.certificate import Certificate as Certificate
    from coterie.certificate import Verdict as Verdict
    from coterie.certificate import verify as verify
    from coterie.evidence.allocation import allocation as allocation
    from coterie.evidence.allocation import hardness as hardness
    from coterie.evidence.allocation import lower_bound as lower_bound
    from coterie.evidence.pairs import pair_evidence as pair_evidence
    from coterie.evidence.stopping import Alternative as Alternative
    from coterie.evidence.stopping import closest_alternative as closest_alternative
    from coterie.evidence.stopping import threshold as threshold
    from coterie.methods.maximin import kmeans_maximin as kmeans_maximin
    from coterie.problem.families import AnyNoise as AnyNoise
    from coterie.problem.families import AtMost as AtMost
    from coterie.problem.families import Bounded as Bounded
    from coterie.problem.families import Counts as Counts
    from coterie.problem.families import Exponential as Exponential
    from coterie.problem.families import Gaussian as Gaussian
    from coterie.problem.families import Poisson as Poisson
    from coterie.problem.families import Symmetric as Symmetric
    from coterie.problem.instance import Instance as Instance
    from coterie.problem.noise import Exactly as Exactly
    from coterie.problem.noise import Noise as Noise
    from coterie.problem.partition import same_partition as same_partition
    from coterie.problem.question import Resolution as Resolution
    from coterie.session import BlockFull as BlockFull
    from coterie.session import Session as Session
    from coterie.session import SessionDone as SessionDone
    from coterie.session import Waiting as Waiting
    from coterie.session.cluster import acluster as acluster
    from coterie.session.cluster import cluster as cluster
    from coterie.session.resolution_curve import ResolutionCurve as ResolutionCurve
    from coterie.session.resolution_curve import resolution_curve as resolution_curve
    from coterie.simulate.budgets import BudgetPlan as BudgetPlan
    from coterie.simulate.budgets import plan_budget as plan_budget
    from coterie.simulate.trials import Trials as Trials
    from coterie.simulate.trials import simulate as simulate
    from coterie.tables.estimator import BanditClustering as BanditClustering
    from coterie.tables.grouping import Grouping as Grouping
    from coterie.tables.grouping import group as group
    from coterie.tables.letters import letters as letters


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coterie' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    value = home if _HOMES[name] == f"coterie.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
