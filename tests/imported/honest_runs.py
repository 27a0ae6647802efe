"""Runs of every kind of session, small and drawn at random: their certificates, with their logs, must hold."""

from __future__ import annotations

from typing import Any

import numpy as np

import coterie

KINDS = (
    "known", "covariance", "any", "gaussian", "scalar", "diagonal", "counts", "bounded", "at-most", "symmetric",
    "shortlist", "resolution", "resolution, gaussian", "resolution, bounded", "resolution, counts",
    "linkage", "linkage, bounded", "poisson", "exponential",
)  # fmt: skip

EXACT = (*KINDS[:11], "poisson", "exponential")
"""Those about exactly K groups."""


def honest_run(kind: str, seed: int, most: int = 800) -> coterie.Session | None:
    """A run, with corrections, given-up asks, several workers, costs, revisions; None if it did not end."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    dim = int(rng.integers(1, 3))
    m, k = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    labels = np.concatenate([np.arange(k), rng.integers(0, k, m - k)])
    session = _session(kind, m, k, dim, rng)
    draw = _draw(kind, k, dim, rng)
    slips, crew, loses = rng.random() < 0.4, int(rng.integers(1, 4)), rng.random() < 0.3
    revises = kind in EXACT and kind not in ("shortlist", "counts", "bounded") and rng.random() < 0.3
    wrong: dict[int, Any] = {}
    while not session.done and session.n_measurements < most:
        asks = []
        for _ in range(crew):
            try:
                asks.append((session.ask(), session.next_ticket - 1))
            except coterie.SessionDone:
                break
        for i in rng.permutation(len(asks)).tolist():
            arm, ticket = asks[i]
            if ticket not in dict(session.pending):  # nobody needs it any more
                break
            if loses and rng.random() < 0.1:
                session.forget(ticket)
                continue
            right = draw(int(labels[arm]))
            told = right
            if slips and rng.random() < 0.05:
                told = draw(int(rng.integers(k)))
                wrong[session.n_measurements] = right
            session.tell(arm, told, ticket=ticket)
        if wrong and rng.random() < 0.2:
            row = min(wrong)
            session.correct(row, wrong.pop(row), "a slip", by="ann", at="today")
        if revises and session.n_measurements > 3 * m:
            revises = False
            labels = _revise(session, labels, k, rng)
    return session if session.done else None


def _session(kind: str, m: int, k: int, dim: int, rng: np.random.Generator) -> coterie.Session:
    noise: Any = {
        "known": 1.0, "covariance": np.eye(dim) + 0.3, "any": None, "gaussian": "gaussian",
        "scalar": coterie.Gaussian("scalar"), "diagonal": coterie.Gaussian("diagonal"), "counts": coterie.Counts(20),
        "bounded": coterie.Bounded(0, 1), "at-most": coterie.AtMost(1.0), "symmetric": coterie.Symmetric(),
        "poisson": coterie.Poisson(), "exponential": coterie.Exponential(),
        "shortlist": 1.0, "resolution": 1.0, "linkage": 1.0,
    }.get(kind) if ", " not in kind else {
        "gaussian": "gaussian", "bounded": coterie.Bounded(0, 1), "counts": coterie.Counts(20),
    }[kind.split(", ")[1]]  # fmt: skip
    more: dict[str, Any] = {}
    if kind.startswith("resolution"):
        far = {"resolution, bounded": (0.15, 0.5), "resolution, counts": (3.0, 12.0)}.get(kind, (1.0, 4.0))
        more = {"resolution": far}
    elif kind.startswith("linkage"):
        more = {"groups": "linkage", "n_clusters": k}
    else:
        more = {"n_clusters": k, "method": "shortlist" if kind == "shortlist" else "croc"}
        if rng.random() < 0.3 and kind != "shortlist":
            more |= {"costs": (1.0 + rng.random(m)).tolist()}
    return coterie.Session(m, dim=dim, delta=float(rng.choice([0.2, 0.05])), noise=noise, **more)


def _draw(kind: str, k: int, dim: int, rng: np.random.Generator) -> Any:
    """Measurements of the groups."""
    gap = float(rng.uniform(2.5, 6.0))

    def draw(group: int) -> Any:
        if kind.endswith("counts"):
            return rng.binomial(20, (0.1, 0.9, 0.5)[group], dim).astype(float).tolist()
        if kind == "poisson":
            return rng.poisson((1.0, 20.0, 6.0)[group], dim).astype(float).tolist()
        if kind == "exponential":
            return rng.exponential((1.0, 200.0, 15.0)[group], dim).tolist()
        if kind.endswith("bounded"):
            return (0.05 + 0.4 * group + 0.1 * rng.random(dim)).tolist()
        return (gap * group + rng.standard_normal(dim)).tolist()

    return draw


def _revise(session: coterie.Session, labels: Any, k: int, rng: np.random.Generator) -> Any:
    """An item joins, or leaves a group of several, or δ is lowered."""
    choice = int(rng.integers(3))
    if choice == 0:
        more: dict[str, Any] = {} if session.costs is None else {"costs": [1.5]}
        session.revise(add=1, **more)
        return np.append(labels, rng.integers(k))
    counts = np.bincount(labels)
    many = np.flatnonzero(counts[labels] > 1)
    if choice == 1 and many.size and labels.size - 1 > k:
        session.revise(retire=[int(many[-1])])
    else:
        session.revise(delta=session.delta / 2)
    return labels
