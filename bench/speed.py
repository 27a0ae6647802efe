"""Pulls a second of every method, beside other ways to write the paper's rule and the cost of the random numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from bench import rivals
from bench.instances import named
from bench.part import Column, Headline, Part, Progress, Row, number, times
from bench.rounds import in_turn, ratio, seconds_a_pull
from bench.scipy_boc import time_scipy_boc
from coterie.methods import method_named
from coterie.methods.croc.run import CrocRun
from coterie.methods.trials import NO_END
from coterie.problem.instance import Instance

ROUNDS = 9
PULLS = {"Iris": 900, "Yeast": 14_500, "MNIST d=10": 6_300, "MNIST d=400": 60_000, "challenging": 2_000}
"""About those of a BOC trial with β̃ at δ = 0.1, at d = 400 the first quarter: from the end of the first pass."""

OURS = {"boc": "BOC", "boc-linear": "BOC, linear exploration", "uniform": "Uniform", "oracle": "Oracle", "croc": "CROC"}
INSTALLED, ALONE = "scikit-learn + SciPy, as installed", "scikit-learn + SciPy, one thread"
SCRATCH, FLOOR = "from scratch, compiled", "the random numbers alone"
ASKED = {INSTALLED: 80_000, ALONE: 80_000, SCRATCH: 150}
"""On Yeast: how many times as fast BOC is to be."""


def croc_pace(instance: Instance, seed: int, at_least: float) -> float:
    """Seconds a measurement of whole trials at δ = 0.1, the first pass over the arms included."""
    taken, t, runs = 0.0, 0, 0
    while taken <= at_least:
        run = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, -np.log(0.1))
        rng = np.random.default_rng([seed, runs])
        start = time.perf_counter()
        run.play(NO_END, instance.centers, instance.labels, rng)
        taken += time.perf_counter() - start
        t += run.t
        runs += 1
    return taken / t


def scipy_pace(instance: Instance, pulls: int, before: int, into: dict[str, list[float]]) -> Callable[[int], float]:
    """Measures scikit-learn and SciPy as installed; their time with one thread, from the same call, goes to `into`."""

    def measure(i: int) -> float:
        found = time_scipy_boc(instance, pulls, i, before)
        if i > 0:  # round 0 is the warm-up of `in_turn`
            into[ALONE].append(found["one thread"])
        time.sleep(0.05)  # OpenMP's threads go on spinning for a while: not into the next contestant's time
        return found["as installed"]

    return measure


def measured(name: str, quick: bool) -> list[Row]:
    """All contestants on one instance."""
    instance, least = named(name), 0.005 if quick else 0.04
    pulls = min(PULLS[name], 3_000) if quick else PULLS[name]
    before = max(1, (instance.n_arms + PULLS[name] // 2) // instance.n_arms)  # results of an arm in mid-trial
    one = rivals.compiled_from_scratch(instance, 3, 0, before)  # to see how many pulls take a good while
    beside: dict[str, list[float]] = {ALONE: []}
    contestants: dict[str, Callable[[int], float]] = {
        label: partial(_ours, instance, pulls, method, least) for method, label in OURS.items()
    }
    contestants[SCRATCH] = lambda i: rivals.compiled_from_scratch(instance, max(3, int(least / one)), i, before)
    contestants[FLOOR] = lambda i: rivals.random_numbers_alone(instance.dim, int(least / 1e-8 / instance.dim), i)
    contestants[INSTALLED] = scipy_pace(instance, 2 if quick else 5, before, beside)
    found = in_turn(contestants, 2 if quick else ROUNDS) | beside
    order = [*OURS.values(), SCRATCH, ALONE, INSTALLED, FLOOR]
    return [
        {
            "instance": name, "way": way, "pulls_a_second": 1 / float(np.median(found[way])),
            "over_boc": ratio(found[way], found["BOC"]), "over_floor": ratio(found[way], found[FLOOR]),
            "rounds": len(found[way]),
        }
        for way in order
    ]  # fmt: skip


def _ours(instance: Instance, pulls: int, method: str, least: float, i: int) -> float:
    if method_named(method).certifies:
        return croc_pace(instance, i, least)
    return seconds_a_pull(instance, pulls, method, seed=i, at_least=least)


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    found: list[Row] = []
    names = ("Iris", "challenging") if quick else tuple(PULLS)
    for i, name in enumerate(names):
        found += measured(name, quick)
        boc = next(row for row in found if row["instance"] == name and row["way"] == "BOC")
        progress.done(f"{name}: BOC {boc['pulls_a_second']:,.0f} pulls a second", (i + 1) / len(names))
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """Times of the others over BOC's."""
    lines = []
    for row in found:
        value, yeast = row["over_boc"]["median"], row["instance"] == "Yeast"
        if row["way"] in ASKED:
            asked = ASKED[row["way"]] if yeast else None
            lines.append(
                Headline(
                    f"{row['instance']}: a pull, {row['way']}, over BOC's", times(value),
                    "" if asked is None else f"≥ {asked:,}×", None if asked is None else value >= asked,
                )
            )  # fmt: skip
        elif row["way"] == "BOC":
            lines.append(Headline(f"{row['instance']}: BOC's pull over its random numbers", times(_floor(row))))
    return lines


def _floor(row: Row) -> float:
    value: float = row["over_floor"]["median"]
    return value


def _spread(row: Row) -> str:
    return f"{number(row['over_boc']['low'])} – {number(row['over_boc']['high'])}"


PART = Part(
    "Pulls a second, one thread. Times are compared round by round: medians of the rounds' ratios, and their range.\n"
    "The paper's methods are timed from the end of the first pass over the arms; their threshold does not change the\n"
    "speed. CROC: whole trials at δ = 0.1, the first pass included. The other ways start in mid-trial.",
    (
        Column("instance", "instance", left=True),
        Column("way", "way", left=True),
        Column("pulls a second", "pulls_a_second", number),
        Column("time / BOC's", lambda row: row["over_boc"]["median"], times),
        Column("range", _spread),
        Column("/ random numbers", _floor, times),
    ),
    rows,
    headlines,
    section="instance",
    seconds=120,
)
