"""Times that are compared are taken in turn, round by round, so that whatever else the machine does hits all alike."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench.part import ROOT
from coterie.methods import method_named
from coterie.methods.paper import BOC, LINEAR, ORACLE, UNIFORM
from coterie.methods.paper.method import allocation_of_groups, levels_for
from coterie.methods.paper.run import Run
from coterie.paper.datasets import distance_ratio
from coterie.problem.instance import Instance

NEVER = 1e15
"""log(1/δ) of a level that no run reaches."""

SAMPLING = {"boc": BOC, "boc-linear": LINEAR, "uniform": UNIFORM, "oracle": ORACLE}
"""The engine's numbers of the paper's sampling rules."""

NO_ARMS = np.zeros(0, dtype=np.int64)


def in_turn(contestants: Mapping[str, Callable[[int], float]], rounds: int) -> dict[str, list[float]]:
    """What each gives in each round. A round before the first, to load and warm up, does not count."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(rounds + 1):
        for name, measure in contestants.items():
            found[name].append(measure(i))
    return {name: each[1:] for name, each in found.items()}


def ratio(above: list[float], below: list[float]) -> dict[str, float]:
    """Median of the rounds' own ratios, and the smallest and the largest of them."""
    each = np.array(above) / np.array(below)
    return {"median": float(np.median(each)), "low": float(each.min()), "high": float(each.max())}


def endless(instance: Instance, method: str) -> Run:
    """A run of one of the paper's methods that never stops."""
    levels = levels_for(("heuristic",), (NEVER,), instance.n_arms, instance.dim)
    needs = method_named(method).needs
    oracle = (instance.labels, allocation_of_groups(instance)) if "instance" in needs else None
    ratio = distance_ratio(instance) if "distance_ratio" in needs else None
    shape = instance.n_arms, instance.n_clusters, instance.dim
    return Run(*shape, SAMPLING[method], levels, distance_ratio=ratio, oracle=oracle)


def seconds_a_pull(
    instance: Instance, pulls: int, method: str = "boc", warm: int = 0, seed: int = 0, at_least: float = 0.0
) -> float:
    """The whole loop with its random numbers, after the first pass over the arms and `warm` more pulls.

    Runs are repeated until they have taken `at_least` so many seconds.
    """
    taken, runs = 0.0, 0
    while taken <= at_least and runs < 1000:
        run, rng = endless(instance, method), np.random.default_rng([seed, runs])
        run.play(instance.n_arms + warm, instance.centers, instance.labels, rng, NO_ARMS)
        start = time.perf_counter()
        run.play(pulls, instance.centers, instance.labels, rng, NO_ARMS)
        taken += time.perf_counter() - start
        runs += 1
    return taken / (runs * pulls)


def apart(function: str, *arguments: Any, env: dict[str, str] | None = None, before: tuple[str, ...] = ()) -> Any:
    """What module:function gives for these arguments, in a process of its own; both ways as JSON."""
    module, name = function.split(":")
    code = (
        f"import json, sys; sys.path.insert(0, sys.argv[2]); from {module} import {name};"
        f"print(json.dumps({name}(*json.loads(sys.argv[1]))))"
    )
    words = [*before, sys.executable, "-c", code, json.dumps(arguments), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    if done.returncode:
        raise RuntimeError(f"{function}{arguments}: exit code {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])
