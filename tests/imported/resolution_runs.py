"""Whole runs for a resolution or single linkage on means that are known, and whether what they claim is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import coterie
from coterie.methods.start import start
from coterie.methods.table import prepared
from coterie.problem.checks import FloatArray
from coterie.problem.settings import Settings

Draw = Callable[[np.random.Generator, FloatArray], FloatArray]


@dataclass(frozen=True)
class Ended:
    """How a run ended. `right`: it was done, and what it claims is true."""

    done: bool
    right: bool
    t: int


def standard(rng: np.random.Generator, mean: FloatArray) -> FloatArray:
    """Gaussian noise of standard deviation 1."""
    return np.asarray(mean + rng.standard_normal(mean.size))


def on_a_line(*values: float) -> FloatArray:
    """Means of one number."""
    return np.array(values)[:, None]


def one_by_one(
    means: FloatArray,
    noise: Any,
    seed: Any,
    delta: float = 0.1,
    most: int = 60_000,
    draw: Draw = standard,
    **question: Any,
) -> Ended:
    """A run that is told each result before it asks again. `question`: resolution, or n_clusters and groups."""
    n_arms, dim = means.shape
    n_clusters = question.pop("n_clusters", None)
    settings, method = prepared(Settings.of(n_arms, n_clusters, dim, delta, noise=noise, **question))
    run, rng = start(settings, method), np.random.default_rng(seed)
    while not run.done and run.t < most:
        pull = run.ask()
        if pull is None:
            break
        x = draw(rng, means[pull.arm])
        run.count(pull.arm, settings.noise.whiten_fully(x[None])[0], pull.round, True)
    return Ended(run.done, run.done and run.is_right(coterie.Instance.of_means(means)), run.t)


def with_workers(means: FloatArray, noise: Any, seed: Any, workers: int, delta: float, **question: Any) -> Ended:
    """A session with so many measurements always under way; which of them comes in next is drawn."""
    n_arms, dim = means.shape
    session = coterie.Session(n_arms, None, dim, delta, noise=noise, **question)
    rng = np.random.default_rng(seed)
    under_way: list[tuple[int, int]] = []
    while not session.done and session.t < 60_000:
        under_way += [(ticket.number, ticket.arm) for ticket in session.open(workers - len(under_way))]
        if session.done or not under_way:
            break
        number, arm = under_way.pop(int(rng.integers(len(under_way))))
        session.tell(arm, standard(rng, means[arm]), number)
    claimed = session.certificate
    right = claimed is not None and holds(claimed, means)
    return Ended(session.done, right, session.t)


def holds(certificate: dict[str, Any], means: FloatArray) -> bool:
    """Whether a claim by references is true, number by number, from what the certificate says alone."""
    labels, references = np.array(certificate["labels"]), certificate["references"]
    epsilon, eta = np.array(certificate["epsilon"]), np.array(certificate["eta"])
    for item, group in enumerate(labels.tolist()):
        if item != references[group] and not (np.abs(means[item] - means[references[group]]) < eta).all():
            return False
    return all(
        (np.abs(means[one] - means[other]) > epsilon).any()
        for place, one in enumerate(references)
        for other in references[:place]
    )
