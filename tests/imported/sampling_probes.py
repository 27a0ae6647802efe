"""Single decisions of the sampling rule on states that are made for them, by the engine and by the plain oracle.

Whole runs meet some decisions too seldom to pin the numbers behind them. A probe moves one thing, step by step, past
the place where the decision changes; both sides say what they decide at every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import plain_freezing as freezing
import plain_groupings as groupings
import plain_sampling as oracle
from plain_linkage import LinkageRule, PlainLinkage
from sampling_cases import Case, oracle_run

from coterie.methods.resolution import estimates, linkage
from coterie.methods.resolution.candidate import Candidate, Forecaster
from coterie.methods.resolution.estimates import BelievedMeans, Tally
from coterie.methods.resolution.linkage import AskedLinkage
from coterie.methods.resolution.method import asked_for
from coterie.methods.resolution.questions import AskedResolution
from coterie.methods.resolution.run import FreezingRun
from coterie.problem.partition import canonical
from coterie.problem.question import Resolution

LEVEL = 3.0


def tally_of(case: Case, means: Any, counts: Any) -> Tally:
    asked = asked_for(case.settings)
    tally = Tally(len(means), len(means[0]), asked.evidence.known_variance, asked.evidence.least_variance)
    tally.means[:], tally.counts[:] = means, counts
    return tally


def known_of(run: freezing.PlainRun, means: Any, counts: Any) -> freezing.Known:
    return freezing.Known(list(counts), [np.array(mean, dtype=float) for mean in means], run.variance)


# Arms 0 to 2 and 5 in one group, 3 and 4 in another; arm 5 moves from the first towards the second.

LABELS, LEADS = [0, 0, 0, 1, 1, 0], [0, 3]


def six(case: Case, at: float, other: float) -> Any:
    means = np.zeros((6, np.shape(case.means)[1]))
    means[:, 0] = [0.0, 0.02, -0.02, other, other + 0.02, at]
    return means


def engine_six(case: Case, means: Any, counts: Any) -> tuple[FreezingRun, AskedResolution, Candidate]:
    asked = asked_for(case.settings)
    assert isinstance(asked, AskedResolution)
    run = FreezingRun(asked, 6, -math.log(case.delta))
    run.tally = tally_of(case, means, counts)
    forecaster = Forecaster(asked.family, asked.near, asked.far, False)
    sketch = forecaster._sketched(run.tally, np.array(LABELS), np.array(LEADS), LEVEL)
    return run, asked, forecaster.planned(sketch, run.tally, LEVEL)


def oracle_six(case: Case, means: Any, counts: Any) -> tuple[oracle.PlainSampling, freezing.Known, freezing.Candidate]:
    run = oracle_run(case)
    assert isinstance(run, oracle.PlainSampling)
    known = known_of(run, means, counts)
    return run, known, run.sketch(LABELS, LEADS, known, LEVEL)


def of_six(norm: str, d: int) -> Case:
    return Case(np.zeros((6, d)), 1.0, 0, Resolution(0.5, 2.0, norm))


SIXES = {"each": of_six("each", 1), "distance": of_six("distance", 2)}
PLACES = [(1.0, at) for at in np.arange(0.55, 0.9, 0.01)] + [(1.5, at) for at in np.arange(0.86, 0.96, 0.0013)]


def engine_misplaced(case: Case) -> Any:
    found = []
    for other, at in PLACES:
        run, asked, candidate = engine_six(case, six(case, at, other), [8] * 6)
        run.freeze(candidate)
        assert run.epoch is not None
        found.append(asked.misplaced(run.epoch, run.tally))
    return found


def oracle_misplaced(case: Case) -> Any:
    found = []
    for other, at in PLACES:
        run, known, candidate = oracle_six(case, six(case, at, other), [8] * 6)
        run.freeze(candidate)
        assert run.epoch is not None
        found.append(run.misplaced(run.epoch, known))
    return found


TAKEN = [(taken, pending) for taken in (*range(1, 60), *range(60, 600, 5)) for pending in (0, 2, 3)]


def two_doubtful(case: Case) -> Any:
    means = six(case, 0.74, 1.5)
    means[1, 0] = 0.7
    return means


def engine_lacking(case: Case) -> Any:
    run, _, candidate = engine_six(case, two_doubtful(case), [8] * 6)
    found = []
    for taken, pending in TAKEN:
        run.tally.pending[5] = pending
        found.append(run._lacking(candidate, np.array([999, 20, 999, 999, 999, taken])).tolist())
    return found


def oracle_lacking(case: Case) -> Any:
    run, known, candidate = oracle_six(case, two_doubtful(case), [8] * 6)
    found = []
    for taken, pending in TAKEN:
        run.pending[5] = pending
        found.append(run.lacking(candidate, known, [999, 20, 999, 999, 999, taken]))
    return found


SPENT = range(0, 300, 20)
TOGETHER = np.array([[0.0], [0.03], [-0.02], [0.01], [0.02], [-0.03]])
"""Both groups at one place: the far claim of a freeze that has them apart is contradicted by all results."""


def engine_goes_on(case: Case) -> Any:
    found: list[Any] = []
    for contrasts in range(6):
        run, _, candidate = engine_six(case, six(case, 0.1, 1.5), [8] * 6)
        run.freeze(candidate)
        assert run.epoch is not None
        for arm in (0, 3):
            for _ in range(contrasts):
                run.epoch.add(arm, TOGETHER[arm])
        found.append([f"{run._forecast_again(run.epoch, spent):.9g}" for spent in SPENT])
        run.tally = tally_of(case, TOGETHER, [40] * 6)
        found.append(run._still_best(run.epoch))
    return found


def oracle_goes_on(case: Case) -> Any:
    found: list[Any] = []
    for contrasts in range(6):
        run, known, candidate = oracle_six(case, six(case, 0.1, 1.5), [8] * 6)
        run.freeze(candidate)
        assert run.epoch is not None
        for arm in (0, 3):
            run.epoch.stacks[arm] += [TOGETHER[arm]] * contrasts
        for test in candidate.tests:
            test.met = test.reading.evidence() >= run.epoch.level
        again = [run.again_without(run.epoch, known, spent) for spent in SPENT]
        found.append([f"{one:.9g}" for one in again])
        run.results = [[mean] * 40 for mean in TOGETHER]
        found.append(run.goes_on(run.epoch))
    return found


BUDGETS = range(4, 200, 7)


def engine_factors(case: Case) -> Any:
    run, _, _ = engine_six(case, six(case, 0.6, 1.5), [8] * 6)
    run._asked_results[:] = 8
    return [None if (one := run.factor_for(budget)) is None else round(one, 9) for budget in BUDGETS]


def oracle_factors(case: Case) -> Any:
    run, known, _ = oracle_six(case, six(case, 0.6, 1.5), [8] * 6)
    costs = []
    for eighth in range(49):
        run.near = np.ones(1) * 2 ** (eighth / 8)
        costs.append(run.best(known, run.level).cost)
    run.near = np.ones(1)
    fits = [[2 ** (eighth / 8) for eighth, cost in enumerate(costs) if cost <= budget] for budget in BUDGETS]
    return [round(one[0], 9) if one else None for one in fits]


# The search over numbers of groups, with forecasts that are made up; groups of many items; references that nearly tie.

TABLES = [np.random.default_rng([21, seed]).lognormal(0.0, 0.25, 40).tolist() for seed in range(80)]
POINTS = np.random.default_rng(22).uniform(0.0, 9.0, (14, 1))
ON_A_LINE = Case(POINTS, 1.0, 0, (0.5, 2.0))


def engine_search() -> Any:
    asked = asked_for(ON_A_LINE.settings)
    tally = tally_of(ON_A_LINE, POINTS, [3] * 14)
    found = []
    for table in TABLES:
        forecaster: Any = Forecaster(asked.family, np.ones(1), np.full(1, 0.25), False)

        def made_up(tally: Any, labels: Any, references: Any, level: float, table: Any = table) -> Any:
            k = int(labels.max()) + 1
            return SimpleNamespace(cost=table[k if references is None else 0], references=np.arange(k))

        forecaster._sketched, forecaster.planned = made_up, lambda sketch, tally, level: sketch
        best = forecaster.best(tally, LEVEL)
        found.append((best.references.size, best.cost))
    return found


def oracle_search() -> Any:
    run: Any = oracle_run(ON_A_LINE)
    run.far = np.full(1, 0.25)
    known = known_of(run, POINTS, [3] * 14)
    trees = run.trees([mean / np.sqrt(known.variance) for mean in known.means], known.means)
    run.trees = lambda white, means: trees  # the same in every table
    found = []
    for table in TABLES:

        def made_up(labels: Any, references: Any, known: Any, level: float, table: Any = table) -> Any:
            k = max(labels) + 1
            return SimpleNamespace(cost=table[k if references is None else 0], references=list(range(k)))

        run.sketch = made_up
        best = run.best(known, LEVEL)
        found.append((len(best.references), best.cost))
    return found


def clouds() -> list[Any]:
    found = []
    for seed in range(60):
        rng = np.random.default_rng([23, seed])
        points, counts = rng.standard_normal((40, 1 + seed % 2)), rng.integers(1, 9, 40)
        found.append((points, counts, groupings.by_appearance(rng.integers(0, 4, 40).tolist())))
    return found


def engine_refined() -> Any:
    passed = [estimates.refined(points, counts, np.array(labels)) for points, counts, labels in clouds()]
    return [canonical(one).tolist() for one in passed]


def oracle_refined() -> Any:
    return [groupings.refined(list(points), counts.tolist(), labels) for points, counts, labels in clouds()]


SHIFTS = np.arange(-3e-4, 3e-4, 3.3e-6)


def near_tie(shift: float) -> tuple[Any, Any]:
    return np.array([[0.0], [0.45], [0.55 + shift], [1.0]]), np.array([[0.02], [0.04], [0.01], [0.02]])


def engine_central() -> Any:
    found = []
    for shift in SHIFTS:
        means, doubt = near_tie(shift)
        forecaster = Forecaster(asked_for(ON_A_LINE.settings).family, np.ones(1), np.zeros(1), False)
        view = BelievedMeans(means, doubt, means, np.ones(4))
        found.append(int(forecaster._references(view, [np.arange(4)])[0]))
    return found


def oracle_central() -> Any:
    found = []
    for shift in SHIFTS:
        means, doubt = near_tie(shift)
        view = oracle.Believed(list(means), list(doubt), [], [])
        run = oracle_run(ON_A_LINE)
        assert isinstance(run, oracle.PlainSampling)
        found.append(run.central([0, 1, 2, 3], view))
    return found


# Single linkage: items whose first coordinate is stretched, so that balls pay more or less; and balls at any price.

SIX_POINTS = [[0.246, -0.089], [0.056, -0.101], [0.06, 0.571], [-0.15, 0.83], [-0.254, 1.251], [0.773, 0.214]]
PAIRS = [[0.0, 0.0], [0.003, 0.0], [0.0, 0.002], [0.004, 0.003], [9.0, 0.0], [9.0, 0.002]]
LINKED = Case(np.zeros((6, 2)), 1.0, 0, n_clusters=2)
STRETCHED = [np.array(SIX_POINTS) * [stretch, 1.0] for stretch in np.arange(0.4, 1.1, 0.013)]
STRETCHED += [np.array(PAIRS) * [stretch, 1.0] for stretch in (0.5, 1.0)]


def engine_linked() -> Any:
    found = []
    for means in STRETCHED:
        asked = asked_for(LINKED.settings)
        assert isinstance(asked, AskedLinkage)
        best = asked.best(tally_of(LINKED, means, [30] * 6), LEVEL)
        stated = asked.stated(best)
        balls = [[lead, round(radius, 9), items] for lead, radius, items in stated["balls"]]
        found.append([round(stated["height"], 9), balls, f"{best.cost:.9g}"])
    return found


def oracle_linked() -> Any:
    found = []
    for means in STRETCHED:
        run = oracle_run(LINKED)
        assert isinstance(run, PlainLinkage)
        best = run.best(known_of(run, means, [30] * 6), LEVEL)
        found.append([*best.stated, f"{best.cost:.9g}"])
    return found


def at_any_price(side: Callable[[], Any], module: Any) -> Any:
    """What a side says if balls are taken whatever they cost."""
    usual, module.FREE = module.FREE, 1e9
    try:
        return side()
    finally:
        module.FREE = usual


Side = Callable[[], Any]
PROBES: dict[str, tuple[Side, Side]] = {
    "misplaced, each": (lambda: engine_misplaced(SIXES["each"]), lambda: oracle_misplaced(SIXES["each"])),
    "misplaced, distance": (
        lambda: engine_misplaced(SIXES["distance"]),
        lambda: oracle_misplaced(SIXES["distance"]),
    ),
    "lacking": (lambda: engine_lacking(SIXES["each"]), lambda: oracle_lacking(SIXES["each"])),
    "goes on": (lambda: engine_goes_on(SIXES["each"]), lambda: oracle_goes_on(SIXES["each"])),
    "a wider resolution": (lambda: engine_factors(SIXES["each"]), lambda: oracle_factors(SIXES["each"])),
    "numbers of groups": (
        lambda: [estimates.numbers_of_groups(n) for n in range(1, 90)],
        lambda: [groupings.numbers_of_groups(n) for n in range(1, 90)],
    ),
    "search": (engine_search, oracle_search),
    "refined": (engine_refined, oracle_refined),
    "central": (engine_central, oracle_central),
    "linked": (engine_linked, oracle_linked),
    "balls at any price": (
        lambda: at_any_price(engine_linked, linkage),
        lambda: at_any_price(oracle_linked, LinkageRule),
    ),
}
