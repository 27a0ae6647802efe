"""Runs of all five methods with fixed seeds: what was asked for, when it stopped, the groups, the certificate.

`python tests/recording/record.py FILE` writes what this release does; `test_recording.py` compares it with the kept
recording, which a release that changes a sampling rule on purpose makes anew.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import coterie
from coterie import Instance, Session

Case = Callable[[], dict[str, Any]]

METHODS = ("croc", "boc", "boc-linear", "uniform", "oracle")
SHAPES: dict[str, Instance] = {
    "two apart": Instance([0, 0, 1, 1], [[0.0], [4.0]]),
    "three in a plane": Instance([0, 0, 1, 1, 1, 2, 2, 0], [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]),
    "one dominates": Instance([0] * 10 + [1, 2], [[0.0], [2.5], [5.0]]),
    "close": Instance([0, 0, 0, 1, 1, 1], [[0.0, 0.0, 0.0], [1.2, 0.6, 0.0]]),
}
NOISES: dict[str, Any] = {"unit": 1.0, "scaled": 0.5, "covariance": [[1.0, 0.3], [0.3, 2.0]]}


def started(instance: Instance, method: str, delta: float, noise: Any = 1.0) -> Session:
    """A session for an instance, with what the method needs to know."""
    return Session(
        instance.n_arms,
        instance.n_clusters,
        instance.dim,
        delta=delta,
        method=method,
        noise=noise,
        distance_ratio=0.5 if method == "boc-linear" else None,
        instance=instance if method == "oracle" else None,
    )


def as_first_recorded(certificate: dict[str, Any] | None) -> dict[str, Any] | None:
    """A certificate without what has been added since the recording was made."""
    if certificate is None:
        return None
    since = ("assumes", "remarks", "log_format", "corrections", "failures", "confirm", "homogeneity")
    return {key: value for key, value in certificate.items() if key not in since}


def digest(content: Any) -> str:
    """A short name of a content: equal for equal floats only."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def found(session: Session, arms: list[int]) -> dict[str, Any]:
    """What a run has come to."""
    assert session.labels is not None
    assert session.centers is not None
    result: dict[str, Any] = {
        "arms": digest(arms),
        "first arms": arms[:40],
        "asks": len(arms),
        "done": session.done,
        "t": session.t,
        "labels": session.labels.tolist(),
        "centers": session.centers.tolist(),
        "pulls": session.pulls.tolist(),
        "evidence": [session.evidence.statistic, session.evidence.threshold],
    }
    if session.method == "croc":
        result["events"] = digest([event for event in session.events if event["event"] in ("freeze", "round")])
        result["counted"] = digest(
            [[event["arm"], event["round"]] for event in session.events if event["event"] == "result"]
        )
        if session.done:
            result["certificate"] = as_first_recorded(session.certificate)
    return result


def one_by_one(instance: Instance, method: str, delta: float, seed: int, noise: Any = 1.0, most: int = 20_000) -> Any:
    """Ask, tell, until it is done."""
    rng = np.random.default_rng(seed)
    session = started(instance, method, delta, noise)
    arms: list[int] = []
    while not session.done and len(arms) < most:
        try:
            arm = session.ask()
        except coterie.SessionDone:
            break
        arms.append(arm)
        session.tell(arm, instance.means[arm] + session.noise.color(rng.standard_normal(instance.dim)))
    return found(session, arms)


def with_workers(instance: Instance, method: str, delta: float, seed: int, workers: int, most: int = 6_000) -> Any:
    """Several workers: results come in another order than the asks, some never do, some were not asked for."""
    rng = np.random.default_rng(seed)
    session = started(instance, method, delta)
    arms: list[int] = []
    while not session.done and len(arms) < most:
        while len(session.pending) < workers and not session.done:
            try:
                arms.append(session.ask())
            except coterie.SessionDone:
                break
        if session.done or not session.pending:
            break
        ticket, arm = session.pending[int(rng.integers(len(session.pending)))]
        chance = rng.random()
        if chance < 0.05:
            session.forget(ticket)
        elif chance < 0.1:
            other = int(rng.integers(instance.n_arms))
            session.tell(other, instance.means[other] + rng.standard_normal(instance.dim))
        else:
            session.tell(arm, instance.means[arm] + rng.standard_normal(instance.dim), ticket)
    return found(session, arms)


def simulated(method: str, name: str) -> dict[str, Any]:
    """Bulk trials."""
    trials = coterie.simulate(
        SHAPES[name],
        method,
        deltas=(0.1, 0.001),
        threshold="proven",
        trials=6,
        seed=5,
        distance_ratio=0.5 if method == "boc-linear" else None,
        progress=False,
        workers=1,
    )
    return {"times": trials.stopping_times.tolist(), "correct": trials.correct.tolist()}


def cases() -> Iterator[tuple[str, Case]]:
    """All runs by name."""
    for method in METHODS:
        for name, instance in SHAPES.items():
            seeds = range(4) if method == "croc" else range(2)
            for seed in seeds:
                delta = (0.1, 0.01)[seed % 2]
                yield (
                    f"{method}, {name}, seed {seed}",
                    partial(one_by_one, instance, method, delta, seed),
                )
            yield f"{method}, {name}, simulated", partial(simulated, method, name)
        for workers in (3, 8):
            yield (
                f"{method}, {workers} workers",
                partial(with_workers, SHAPES["three in a plane"], method, 0.05, workers, workers),
            )
        for name, noise in NOISES.items():
            yield (
                f"{method}, {name} noise",
                partial(one_by_one, SHAPES["three in a plane"], method, 0.05, 11, noise),
            )


def record(only: Callable[[str], bool] = lambda name: True) -> dict[str, Any]:
    """All runs."""
    return {name: case() for name, case in cases() if only(name)}


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        json.dump(record(), file, indent=0, sort_keys=True)
        file.write("\n")
