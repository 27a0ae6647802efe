"""What CROC's measurements over log(1/δ) tend to as δ → 0: computed from its rounds, and measured (docs/CROC.md, 18).

*Computed.* After the freeze of the true partition, for a large level b, a test with contrasts of variances v_r has the
evidence ½Δ²·Σ 1/v_r but for O(√b) of noise, and what is before the freeze does not depend on δ. So the limit of
T/log(1/δ) is that of rounds without noise, composed by the rule of docs/CROC.md, section 7; `limit` plays these for a
large b. Nothing in it is fitted.

*Measured.* The engine's runs at δ = 1e-10 … 1e-300, and beyond, where only log(1/δ) is a number. The slope between two
δ is without what does not depend on δ.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

import coterie
from bench.families import grouped, on_a_line
from bench.part import Column, Headline, Part, Progress, Row, number, times
from coterie.methods.croc.run import CrocRun
from coterie.problem.checks import FloatArray
from tests.oracles.croc import rule

TRIALS = 16
SEED = 11_000
LOGS = {"1e-10": 10.0, "1e-30": 30.0, "1e-100": 100.0, "1e-300": 300.0, "1e-3000": 3000.0}
"""δ and log10(1/δ)."""

QUICK_LOGS = {"1e-30": 30.0, "1e-100": 100.0}
FINE = 500.0
"""The level over the smallest squared gap at which rounds without noise are played: exact to about 1/FINE."""


def cases() -> dict[str, coterie.Instance]:
    """The paper's three, one arm against four, equal groups, and a large group with two single arms."""
    found = {name: coterie.datasets.synthetic(name) for name in ("easy", "moderate", "challenging")}
    found["one against four"] = coterie.Instance([0, 1, 1, 1, 1], [[0.0], [1.0]])
    found["three of 8"] = grouped((8, 8, 8), on_a_line((0.0, 1.0, 2.0), 2))
    found["40,1,1"] = grouped((40, 1, 1), on_a_line((0.0, 2.0, 3.0), 1))
    return found


def limit(instance: coterie.Instance, fine: float = FINE) -> float:
    """T/b of rounds without noise, for the true partition as candidate."""
    m, k, labels = instance.n_arms, instance.n_clusters, instance.labels
    gaps = ((instance.centers[:, None] - instance.centers[None]) ** 2).sum(axis=2)
    unit = gaps[~np.eye(k, dtype=bool)].min()
    b = fine * unit
    members = [np.flatnonzero(labels == group) for group in range(k)]
    cores = [own if own.size <= rule.CORE_ARMS + 1 else own[: rule.CORE_ARMS] for own in members]
    in_core = np.isin(np.arange(m), np.concatenate(cores))
    gap = gaps[labels]  # (M, K): an arm's squared distance to each center
    other = labels[:, None] != np.arange(k)
    need = {"core": np.where(in_core[:, None], b, 0.5 * b), "group": np.where(in_core[:, None], 0.0, b)}
    have = {kind: np.zeros((m, k)) for kind in need}
    pairs = [(p, q) for x in range(k) for y in range(x) for p in cores[x] for q in cores[y] if _both(cores, x, y)]
    first, second = (np.array([pair[i] for pair in pairs], dtype=int) for i in (0, 1))
    pair_gap, pair_have = gaps[labels[first], labels[second]], np.zeros(len(pairs))
    pulls: FloatArray = np.zeros(m)
    while True:
        unmet = {kind: other & (have[kind] < need[kind]) for kind in need}
        open_pairs = pair_have < 0.5 * b
        if not (unmet["core"].any() or unmet["group"].any() or open_pairs.any()):
            return float(pulls.sum() / b)
        marked = (unmet["core"] | unmet["group"]).any(axis=1)
        marked[first[open_pairs]] = marked[second[open_pairs]] = True
        a = (marked | (pulls < rule.ROUND_FLOOR_SHARE * pulls.sum() / m)).astype(float)
        for group in range(k):
            lacks = 0.0
            for kind, pool in (("core", cores[group]), ("group", members[group])):
                wanted = math.ceil(rule.POOL_TOP_UP * math.sqrt(unmet[kind][:, group].sum()))
                lacks = max(lacks, wanted - a[pool].sum())
            for _ in range(int(lacks)):
                a[cores[group][np.argmin((pulls + a)[cores[group]])]] += 1.0
        for kind, pools in (("core", cores), ("group", members)):
            sums = np.array([a[pool].sum() for pool in pools])
            have[kind] += 0.5 * gap * _over(a[:, None], sums[None, :])
        pair_have += 0.5 * pair_gap * _over(a[first], a[second])
        pulls += a


def _both(cores: list[np.ndarray], x: int, y: int) -> bool:
    return cores[x].size > 1 and cores[y].size > 1


def _over(a: FloatArray, pool: FloatArray) -> FloatArray:
    """1/v = 1/(1/a + 1/A), 0 where a side has no pulls."""
    return np.asarray(np.divide(a * pool, a + pool, out=np.zeros(np.broadcast(a, pool).shape), where=(a * pool) > 0))


def stops(instance: coterie.Instance, log_inverse_delta: float, trials: int) -> FloatArray:
    """Measurements of the engine's runs."""
    found = np.zeros(trials)
    for trial in range(trials):
        run = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, log_inverse_delta)
        while not run.done:
            run.play(1_000_000, instance.centers, instance.labels, np.random.default_rng([SEED, trial]))
        found[trial] = run.t
    return found


def on(case: str, instance: coterie.Instance, logs: dict[str, float], trials: int) -> list[Row]:
    """A row for each δ: T over the bound, and the slope from the δ before."""
    hardness, found = float(coterie.hardness(instance)), []
    computed = limit(instance) / hardness
    before: tuple[float, float] | None = None
    for name, exponent in logs.items():
        log = exponent * math.log(10.0)
        t = stops(instance, log, trials)
        mean, error = float(t.mean()), float(t.std(ddof=1) / math.sqrt(trials))
        slope = None if before is None else (mean - before[1]) / (log - before[0]) / hardness
        found.append(
            {"case": case, "delta": name, "log": log, "trials": trials, "mean": mean, "error": error, "slope": slope,
             "hardness": hardness, "ratio": mean / (hardness * log), "limit": computed}
        )  # fmt: skip
        before = log, mean
    return found


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each instance and δ."""
    chosen = cases()
    chosen = {name: chosen[name] for name in ("easy", "one against four")} if quick else chosen
    found: list[Row] = []
    for place, (case, instance) in enumerate(chosen.items()):
        found += on(case, instance, QUICK_LOGS if quick else LOGS, 2 if quick else TRIALS)
        last = found[-1]
        progress.done(
            f"{case}: {times(last['ratio'])} the bound, limit {times(last['limit'])}", (place + 1) / len(chosen)
        )
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """The limit over D*, the slope at the end, for each instance."""
    lines = []
    for case in dict.fromkeys(row["case"] for row in found):
        last = [row for row in found if row["case"] == case][-1]
        what = f"{case}: slope of CROC's measurements in log(1/δ) up to δ = {last['delta']}, over D*"
        lines.append(Headline(what, f"{last['slope']:.3f}, computed limit {last['limit']:.3f}"))
    return lines


PART = Part(
    f"CROC as δ → 0: mean ± standard error of {TRIALS} runs; T over D*·log(1/δ); the slope in log(1/δ) from the δ "
    "above, over D*;\nand the limit of both, computed from rounds without noise.",
    (
        Column("instance", "case", left=True),
        Column("δ", "delta", left=True),
        Column("measurements", lambda row: f"{row['mean']:,.0f} ± {number(row['error'])}"),
        Column("/ D*·log(1/δ)", "ratio", lambda value: f"{value:.3f}"),
        Column("slope / D*", "slope", lambda value: f"{value:.3f}"),
        Column("limit", "limit", lambda value: f"{value:.3f}"),
    ),
    rows,
    headlines,
    section="case",
    seconds=120,
)
