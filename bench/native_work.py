"""What `bench.native` measures, in a process of its own for each engine: cases by name, thread seconds as the answer.

Works with the old engine and with the new one: `bench` and `coterie` are those of the tree that PYTHONPATH names.
A line of JSON in: a case, a seed, how often. A line out: thread seconds, how many pulls, asks or trials they took, and
a digest of what came out, which is the same for both engines if they decided the same.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import coterie
from bench.instances import drawn, named, separated
from bench.rounds import NO_ARMS, endless
from coterie.methods.trials import NO_END
from coterie.problem.instance import Instance
from coterie.simulate.bulk import plan_for, run_trials
from coterie.simulate.worlds import Clicks


def is_there(module: str) -> bool:
    """Whether this tree has the module, and the packages that it is in."""
    package = module.rpartition(".")[0]
    return (not package or is_there(package)) and importlib.util.find_spec(module) is not None


def imported(name: str, *modules: str) -> Any:
    """From the first of these modules that this tree has: the old one had other names for them."""
    for module in modules:
        if is_there(module):
            return getattr(importlib.import_module(module), name)
    raise ImportError(f"{name} is in none of {', '.join(modules)}")


CrocRun = imported("CrocRun", "coterie.engine.croc.run", "coterie.methods.croc.run")
family_for = imported("family_for", "coterie.methods.croc_families", "coterie.methods.family")
play_to_next_plan = imported("play_to_next_plan", "coterie.methods.croc_trials", "coterie.methods.trials")

DRAWN = "M=40 K=4 d=5 gap 1"
PULLS = {"Iris": 900, "Yeast": 14_500, "challenging": 2_000, DRAWN: 2_000}
"""About those of a BOC trial at δ = 0.1."""

WALL: list[float] = []
"""Seconds on the wall, where a case takes them."""

FIRST = 2_000
"""Measurements of a trial with other noise than a known one, at most."""


def pulls_of(run: Any) -> list[float]:
    """Of each arm: whoever has the same ones after hundreds of pulls has asked for the same."""
    found: list[float] = np.asarray(getattr(run, "state", run).pulls, dtype=float).tolist()
    return found


def boc(instance: Instance, pulls: int, seed: int) -> tuple[float, int, Any]:
    """After the first pass over the arms, random numbers included."""
    run, rng = endless(instance, "boc"), np.random.default_rng(seed)
    run.play(instance.n_arms, instance.centers, instance.labels, rng, NO_ARMS)
    start = time.thread_time()
    run.play(pulls, instance.centers, instance.labels, rng, NO_ARMS)
    return time.thread_time() - start, pulls, pulls_of(run)


def croc(instance: Instance, seed: int) -> tuple[float, int, Any]:
    """A whole trial at δ = 0.1, the first pass included."""
    run = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, -np.log(0.1))
    rng = np.random.default_rng(seed)
    start = time.thread_time()
    run.play(NO_END, instance.centers, instance.labels, rng)
    return time.thread_time() - start, run.t, pulls_of(run)


def noise(instance: Instance, stated: Any, world: Any, seed: int) -> tuple[float, int, Any]:
    """A trial of CROC with this noise, or its first measurements, drawn and taken in as `simulate` does it."""
    plan = plan_for(instance, "croc", (0.1,), "proven", noise=stated, world=world)
    shape = instance.n_arms, instance.n_clusters, instance.dim
    run, rng = CrocRun(*shape, -np.log(0.1), family_for(plan.noise, *shape)), np.random.default_rng(seed)
    start, left = time.thread_time(), FIRST
    while not run.done and left > 0:
        left -= play_to_next_plan(run, plan, rng, left)
    return time.thread_time() - start, FIRST - left, pulls_of(run)


def live(instance: Instance, seed: int) -> tuple[float, int, Any]:
    """A session by CROC, known noise: an ask and a tell, until the groups are proven."""
    session = coterie.Session(instance.n_arms, instance.n_clusters, instance.dim, noise=1.0)
    rng = np.random.default_rng(seed)
    values = instance.centers[instance.labels][None] + rng.standard_normal((40, instance.n_arms, instance.dim))
    turn, arms = [0] * instance.n_arms, []
    start = time.thread_time()
    while not session.done:
        arm = session.ask()
        session.tell(arm, values[turn[arm] % 40, arm])
        turn[arm] += 1
        arms.append(arm)
    return time.thread_time() - start, len(arms), arms


def floor(dim: int, pulls: int, seed: int) -> tuple[float, int, Any]:
    """The d Gaussians of a measurement alone, drawn in a compiled loop: the old engine's process has it."""
    from bench.rivals import draw

    out, rng = np.zeros(dim), np.random.default_rng(seed)
    draw(rng, 1, out)
    start = time.thread_time()
    draw(rng, pulls, out)
    return time.thread_time() - start, pulls, None


def threads(instance: Instance, method: str, trials: int, workers: int, seed: int) -> tuple[float, int, Any]:
    """Trials in so many threads: seconds of all threads, not of this one, and the seconds on the wall beside them."""
    plan, stops = plan_for(instance, method, (0.1,), "heuristic"), [0] * trials

    def finished(outcome: Any) -> None:
        stops[outcome.trial] = int(next(iter(outcome.stops.values())).times[0])

    wall, cpu = time.perf_counter(), time.process_time()
    run_trials(plan, seed, range(trials), workers=workers, finished=finished)
    WALL.append(time.perf_counter() - wall)
    return time.process_time() - cpu, trials, stops


def cases() -> dict[str, Callable[..., Any]]:
    """By name; each takes a seed."""
    found: dict[str, Callable[..., Any]] = {}
    for name, pulls in PULLS.items():
        found[f"BOC, {name}"] = partial(boc, named(name), pulls)
        found[f"CROC, {name}"] = partial(croc, named(name))
    thousand, wide = separated(1_000, 10, 8), separated(500, 10, 400)
    found["BOC, M=1000"] = partial(boc, thousand, 30_000)
    found["CROC, M=1000"] = partial(croc, drawn(1_000, 10, 8, 3.0))
    found["BOC, d=400"] = partial(boc, wide, 4_000)
    found["CROC, d=400"] = partial(croc, drawn(100, 5, 400, 8.0))
    found["400 Gaussians"] = partial(floor, 400, 4_000)
    challenging = named("challenging")
    rates = Instance(challenging.labels, 0.2 + np.minimum(0.1 * challenging.centers, 0.5))
    found["CROC, any noise"] = partial(noise, challenging, None, None)
    found["CROC, Gaussian"] = partial(noise, challenging, "gaussian", None)
    found["CROC, counts"] = partial(noise, rates, coterie.Counts(100), Clicks(100))
    found["ask + tell, Iris"] = partial(live, named("Iris"))
    found["ask + tell, M=150 gap 1.5"] = partial(live, drawn(150, 3, 4, 1.5))
    for name, method, trials in (("Yeast", "boc", 16), ("challenging", "croc", 400), ("Iris", "croc", 1024)):
        for workers in (1, 2):
            found[f"{method.upper()}, {name}: {trials} trials, threads: {workers}"] = partial(
                threads, named(name), method, trials, workers
            )
    return found


def digest(what: Any) -> int:
    return zlib.crc32(json.dumps(what).encode())


def answer(case: Callable[[int], tuple[float, int, Any]], seed: int, often: int) -> dict[str, Any]:
    """A case so often, with other seeds."""
    WALL.clear()
    each = [case(1_000 * seed + i) for i in range(often)]
    return {
        "seconds": sum(one[0] for one in each),
        "count": sum(one[1] for one in each),
        "digest": [digest(one[2]) for one in each],
        "wall": sum(WALL),
    }


def main() -> None:
    """Answer until there is no more to do."""
    sys.stdout, out = sys.stderr, sys.stdout  # whatever else says something does not spoil the answers
    every = cases()
    print(json.dumps({"coterie": coterie.__file__}), file=out, flush=True)
    for line in sys.stdin:
        name, seed, often = json.loads(line)
        print(json.dumps(answer(every[name], seed, often)), file=out, flush=True)


if __name__ == "__main__":
    main()
