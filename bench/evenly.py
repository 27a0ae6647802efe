"""Features measured one by one, beside features picked evenly and beside whole measurements: results needed.

*evenly*: features in a random order, pass after pass, each of all items that are not placed yet; groups by k-means on
all of it, frozen and proven with the tests of CROC on all features seen so far. *whole*: CROC on whole measurements, at
a cost of d each. Instances, seeds and δ are those of `bench.features`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import coterie
from bench.deadline import k_means
from bench.features import LIMIT, SEED, Case, cases, trial_of
from bench.part import Column, Headline, Part, Progress, Row
from coterie.methods.features.epoch import Epoch
from coterie.methods.features.method import FeatureRun
from coterie.methods.features.rule import Rule
from coterie.methods.features.search import Ask, Asking
from coterie.problem.settings import Settings
from coterie.simulate.features import play_features

RUNS, QUICK_RUNS = 50, 2
GROWTH = 1.1
"""How many times as many features are seen at each next look at the groups."""
SMALL = (
    "1: n=20 d=1000, 53 ", "1: n=20 d=1000, 1000 ", "2: n=10 ", "2: n=20 ", "2: n=50 d=500, 10", "4: ", "K=3 ",
)  # fmt: skip
"""How the names of the instances begin on which all three are run."""


class EvenRule(Rule):
    """Features in a random order, pass after pass, each measured of all items."""

    @classmethod
    def of(cls, run: FeatureRun, seed: int) -> EvenRule:
        """For a run, in place of its own rule."""
        old, rng = run.rule, np.random.default_rng([seed, 2])
        return cls(run.settings.n_arms, old.groups.n_groups, old.measured, run.features, run.prices, rng, run.constants)

    def _features(self) -> Iterator[int]:
        while True:
            yield from self._rng.permutation(self.features.dim).tolist()

    def course(
        self, freeze: Callable[[], Epoch], begin_round: Callable[[list[Ask]], None], epoch: Epoch | None
    ) -> Asking:
        order, everyone = self._features(), range(self.groups.block.size)
        seen, columns, look_at = set(), 0, 1.0
        while True:
            feature = next(order)
            seen.add(feature)
            columns += 1
            yield [(item, feature, 1) for item in everyone]
            if columns < look_at:
                continue
            look_at = columns * GROWTH
            if not self._grouped(sorted(seen)):
                continue
            epoch, patience = freeze(), columns
            for _ in range(patience):
                feature = next(order)
                seen.add(feature)
                columns += 1
                begin_round([(item, feature, 1) for item in _of_use(epoch)])
                yield []
                if epoch.proven:
                    return

    def _grouped(self, seen: list[int]) -> bool:
        """Whether all that was seen forms groups in which every item is sure enough, and which these are."""
        groups = self.groups
        counts, sums = self.measured.columns(seen)
        block = k_means(sums / np.maximum(counts, 1.0), groups.n_groups, self._rng)
        if np.unique(block).size < groups.n_groups:
            return False
        groups.block, groups.gaps = block, dict.fromkeys(seen, 1.0)
        for _ in range(10):
            logs, _ = groups.margins()
            if not groups.relabel(logs):
                return bool(np.exp(-np.maximum(groups.gap_of(logs), 0.0)).sum() <= self.constants.settled)
        return False


def _of_use(epoch: Epoch) -> list[int]:
    """Items with a test that is not met, and the cores."""
    open_tests = epoch.tests.arm[epoch.met_at == 0]
    return sorted({*open_tests.tolist(), *(item for core in epoch.cores for item in core)})


def evenly(name: str, case: Case, run: int) -> tuple[float, bool | None]:
    """Results that features picked evenly take, and whether the groups are right; None: unfinished."""
    instance = case.make(np.random.default_rng([SEED, run, len(name)]))
    n_groups, dim = instance.centers.shape
    settings = Settings.of(instance.labels.size, n_groups, None, case.delta, noise=case.noise, features=dim)
    trial = play_features(
        settings, instance, SEED + run, case.world, LIMIT, rule=lambda made: EvenRule.of(made, SEED + run)
    )
    return float(trial.results), trial.right


def whole(name: str, case: Case, run: int) -> tuple[float, bool | None]:
    """The same of CROC on whole measurements, each counted as d results."""
    instance = case.make(np.random.default_rng([SEED, run, len(name)]))
    trials = coterie.simulate(
        instance, deltas=case.delta, trials=1, seed=SEED + run, noise=case.noise, world=case.world, workers=1,
        max_pulls=LIMIT // instance.centers.shape[1], progress=False,
    )  # fmt: skip
    t = int(trials.stopping_times.item())
    return float(t * instance.centers.shape[1]), bool(trials.correct.item()) if t > 0 else None


def one_by_one(name: str, case: Case, run: int) -> tuple[float, bool | None]:
    """The same of CROC with features."""
    trial = trial_of(name, case, run)
    return float(trial.results), trial.right


WAYS = {"one by one": one_by_one, "evenly": evenly, "whole": whole}


def _runs(given: tuple[str, str, int]) -> list[tuple[float, bool | None]]:
    way, name, trials = given
    return [WAYS[way](name, cases()[name], run) for run in range(trials)]


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    chosen = [name for name in cases() if name.startswith(SMALL[2:3] if quick else SMALL)]
    cells = [(way, name, trials) for name in chosen for way in WAYS]
    rows: dict[str, Row] = {}
    with ProcessPoolExecutor(2) as pool:
        for done, ((way, name, _), runs) in enumerate(zip(cells, pool.map(_runs, cells), strict=True), 1):
            row = rows.setdefault(name, {"instance": name, "delta": cases()[name].delta, "runs": trials})
            ended = np.array([results for results, right in runs if right is not None])
            row[way] = float(ended.mean()) if ended.size else None
            row[f"{way}, error"] = float(ended.std() / math.sqrt(ended.size)) if ended.size else None
            row[f"{way}, wrong"] = sum(right is False for _, right in runs)
            row[f"{way}, unfinished"] = sum(right is None for _, right in runs)
            progress.done(f"{name}, {way}: {row[way] or math.nan:,.0f}", done / len(cells))
    return list(rows.values())


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    return with_trials(QUICK_RUNS if quick else RUNS, quick, progress, folder)


def headlines(found: list[Row]) -> list[Headline]:
    lines = []
    for way in ("evenly", "whole"):
        fewer = [row[way] / row["one by one"] for row in found if row[way]]
        text = f"{min(fewer):.2g}× to {max(fewer):.3g}×"
        what = {"evenly": "features picked evenly", "whole": "CROC on whole measurements"}[way]
        lines.append(Headline(f"Results needed by {what}, over those of features one by one", text))
    return lines


def _cell(way: str) -> Column:
    def text(row: Row) -> str | None:
        return None if row[way] is None else f"{row[way]:,.0f} ± {row[f'{way}, error']:,.0f}"

    return Column(way, text)


def _sum(key: str) -> Column:
    return Column(key, lambda row: "; ".join(str(row[f"{way}, {key}"]) for way in WAYS))


PART = Part(
    "Results needed where features are measured one by one, picked evenly, and all at once (a cost of d each).",
    (Column("instance", "instance", left=True), Column("δ", "delta"), Column("runs of each", "runs"),
     *map(_cell, WAYS), _sum("wrong"), _sum("unfinished")),
    rows,
    headlines,
    seconds=200.0,
    with_trials=with_trials,
)  # fmt: skip
