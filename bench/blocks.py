"""Blocks: what cells cost where blocks do nothing, what they spare where blocks shift results, and how often they err.

*cost*: measurements in blocks of some room, beside CROC without blocks, in a world in which blocks do nothing. Offsets
would change no figure: a run is the same run whatever they are. *shift*: a new day every 20 measurements, each with its
own shift of one standard deviation, told to CROC as blocks, and not told. *questions*: models that answer right or
wrong; all get the same question, or each another. *shape*: groups that differ in spread alone. *errors*: wrong groups,
with shifts that are drawn and aimed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.part import Column, Headline, Part, Progress, Row, Table

RUNS, SHAPE_RUNS, ERROR_RUNS = 100, 32, 200
"""Of a cell; of one of spread; of one of errors (`tests/blocks/test_blocks_error_rate.py` has 2,000)."""
WITHOUT = 5
"""Runs without blocks for each run in blocks: they are compiled, and cost next to nothing."""
DELTA, SEED, MOST = 0.1, 9100, 4000
DAY, SPREAD = 20, 2.0
"""Measurements of a day, and the standard deviation of a question's difficulty in logits."""
NOISES: dict[str, Any] = {"known": 1.0, "any noise": None}


def on_line(n_arms: int, n_clusters: int, gap: float) -> coterie.Instance:
    """Groups at equal distances on a line."""
    return coterie.Instance(np.arange(n_arms) % n_clusters, gap * np.arange(n_clusters)[:, None])


def at_corners(n_arms: int, n_clusters: int, dim: int, gap: float) -> coterie.Instance:
    """Groups with the same distance between any two."""
    return coterie.Instance(np.arange(n_arms) % n_clusters, gap / np.sqrt(2.0) * np.eye(n_clusters, dim))


SQUARE = coterie.Instance(np.arange(24) % 4, [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
COSTS = {
    "M=12 K=3 gap 1.5": (on_line(12, 3, 1.5), (12, 24, 48), 1.10),
    "M=24 K=4 d=2 gap 2": (SQUARE, (12, 24, 96), 1.10),
    "M=40 K=4 d=5 gap 1": (at_corners(40, 4, 5, 1.0), (12, 48), 1.15),
    "M=100 K=5 d=10 gap 3": (at_corners(100, 5, 10, 3.0), (24, 96), 1.15),
}
"""Instances, rooms of a block, and how many times the measurements without blocks are asked for at most."""
SHIFTED = {"M=10 K=2 gap 0.7": on_line(10, 2, 0.7), "M=12 K=3 gap 0.8": on_line(12, 3, 0.8)}


def cost(runs: int, name: str, told: str) -> list[Row]:
    """Measurements in blocks that do nothing, over those without blocks."""
    instance, rooms, most = COSTS[name]
    common: dict[str, Any] = {"deltas": DELTA, "trials": runs, "seed": SEED, "noise": NOISES[told], "progress": False}
    without = coterie.simulate(instance, **common | {"trials": WITHOUT * runs}).stopping_times[:, 0]
    rows = []
    for room in rooms:
        trials = coterie.simulate(instance, blocks="offset", room=room, max_pulls=10 * MOST, **common)
        times = trials.stopping_times[:, 0]
        error = np.hypot(times.std() / times.mean(), without.std() / without.mean() / np.sqrt(WITHOUT)) / np.sqrt(runs)
        ratio = float(times.mean() / without.mean())
        row = {"kind": "cost", "instance": name, "told": told, "room": room, "runs": runs, "asked": most}
        figures = {"mean": float(times.mean()), "without": float(without.mean()), "ratio": ratio}
        rows.append(row | figures | {"error": float(ratio * error), "wrong": int(trials.errors()[0])})
    return rows


def today(instance: coterie.Instance, noise: Any, run: int) -> tuple[int, bool]:
    """CROC that was told nothing of days: measurements, and whether the groups are right."""
    rng = np.random.default_rng([SEED, run])
    session = coterie.Session(instance.n_arms, instance.n_clusters, 1, DELTA, noise=noise)
    shift = 0.0
    while not session.done and session.t < MOST:
        shift = rng.standard_normal() if session.t % DAY == 0 else shift
        item = session.ask()
        session.tell(item, instance.means[item] + shift + rng.standard_normal())
    return session.t, session.done and bool(coterie.same_partition(session.labels, instance.labels))


def shifted(runs: int, name: str, told: str) -> Row:
    """A shift of one standard deviation a day: told as blocks, over not told."""
    instance, noise = SHIFTED[name], NOISES[told]
    trials = coterie.simulate(
        instance, deltas=DELTA, trials=runs, seed=SEED, noise=noise, blocks="offset", room=DAY, offsets=1.0,
        max_pulls=MOST, progress=False,
    )  # fmt: skip
    times = np.where(trials.stopping_times[:, 0] < 0, MOST, trials.stopping_times[:, 0])
    untold = [today(instance, noise, run) for run in range(runs)]
    mean, without = float(times.mean()), float(np.mean([t for t, _ in untold]))
    row: Row = {"kind": "shift", "instance": name, "told": told, "room": DAY, "runs": runs, "mean": mean}
    wrong = sum(t < MOST and not right for t, right in untold)
    return row | {"without": without, "ratio": mean / without, "wrong": int(trials.errors()[0]), "wrong untold": wrong}


def question(rng: np.random.Generator, arms: Any, means: Any) -> Any:
    """Answers, 1 or 0, of models to one question: its difficulty is drawn once."""
    return (rng.random(means.shape) < 1.0 / (1.0 + np.exp(-(means + SPREAD * rng.standard_normal())))).astype(float)


def own_questions(rng: np.random.Generator, arms: Any, means: Any) -> Any:
    """Answers of models, each to a question of its own."""
    logits = means + SPREAD * rng.standard_normal(means.shape)
    return (rng.random(means.shape) < 1.0 / (1.0 + np.exp(-logits))).astype(float)


ONE_PLACE = coterie.Instance(np.arange(12) % 3, [[0.0], [1e-9], [2e-9]])
"""Groups for worlds that differ otherwise."""
STATED: dict[str, Any] = {"bounded": coterie.Bounded(0, 1), "any noise": None, "counts of one": coterie.Counts(1)}


def questions(runs: int, told: str) -> Row:
    """The same question for all models, beside different questions."""
    instance = on_line(8, 2, 2.0)
    centered = coterie.Instance(instance.labels, instance.centers - 1.0)
    common: dict[str, Any] = {"deltas": DELTA, "trials": runs, "seed": SEED, "noise": STATED[told], "progress": False}
    same = coterie.simulate(centered, blocks="drawn", world=question, max_pulls=10 * MOST, **common)
    different = coterie.simulate(centered, world=own_questions, **common)
    mean, without = float(same.mean()[0]), float(different.mean()[0])
    row: Row = {"kind": "questions", "instance": "8 models, 2 groups 2 logits apart", "told": told, "runs": runs}
    return row | {"mean": mean, "without": without, "ratio": without / mean, "wrong": int(same.errors()[0])}


SPREADS = np.array([1.0, 1.7, 3.0])


def spreads(rng: np.random.Generator, arms: Any, means: Any) -> Any:
    """Groups that differ in nothing but their spread."""
    return SPREADS[np.asarray(arms) % SPREADS.size, None] * rng.standard_normal(np.shape(means))


def shapes(runs: int, room: int) -> Row:
    """Spread in blocks, beside a run without blocks: their offsets have to be seen from cells."""
    noise = coterie.AnyNoise(shape=True)
    common: dict[str, Any] = {"deltas": DELTA, "trials": runs, "seed": SEED, "noise": noise, "progress": False}
    within = coterie.simulate(ONE_PLACE, blocks="offset", room=room, world=spreads, max_pulls=10 * MOST, **common)
    without = coterie.simulate(ONE_PLACE, world=spreads, **common)
    mean, other = float(within.mean()[0]), float(without.mean()[0])
    row: Row = {"kind": "shape", "instance": "M=12 K=3, N(0,1), N(0,1.7²), N(0,3²)", "told": "any noise, shape"}
    row |= {"room": room, "runs": runs, "mean": mean, "without": other, "ratio": mean / other}
    return row | {"wrong": int(within.errors()[0])}


def aimed(rng: np.random.Generator, arms: Any) -> float:
    """Up if the first item of a block has an even number, else down; in every second block drawn."""
    return float(2.0 * rng.standard_normal() if rng.random() < 0.5 else 2.0 - 4.0 * (arms[0] % 2))


ERRORS: dict[str, Any] = NOISES | {
    "Gaussian": "gaussian",
    "Gaussian, scalar": coterie.Gaussian("scalar"),
    "at most": coterie.AtMost(1.0),
    "symmetric": coterie.Symmetric(),
    "any noise, shape": coterie.AnyNoise(shape=True),
}


def errors(runs: int, told: str) -> Row:
    """How often the groups are wrong, where they are hard to tell apart."""
    trials = coterie.simulate(
        on_line(4, 2, 1.0), deltas=DELTA, trials=runs, seed=SEED + 1, noise=ERRORS[told], blocks="offset", room=8,
        offsets=aimed, max_pulls=400, progress=False,
    )  # fmt: skip
    row: Row = {"kind": "errors", "instance": "M=4 K=2 gap 1", "told": told, "room": 8, "runs": runs}
    ended = int((trials.stopping_times[:, 0] > 0).sum())
    return row | {"wrong": int(trials.errors()[0]), "ended": ended}


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """All rows, kind by kind. Ctrl-C ends it with those that are there: what is missing is said."""
    runs, many = (3, 20) if quick else (RUNS, ERROR_RUNS)
    large = {name for name, (instance, *_) in COSTS.items() if instance.n_arms >= 40}
    work: list[tuple[Any, tuple[Any, ...]]] = [
        (cost, (runs, name, told)) for name in COSTS for told in NOISES if not (quick and name in large)
    ]
    work += [(shifted, (runs, name, told)) for name in SHIFTED for told in NOISES]
    work += [(questions, (runs, told)) for told in STATED]
    work += [(shapes, (min(runs, SHAPE_RUNS), room)) for room in (24, 48)]
    work += [(errors, (many, told)) for told in ERRORS]
    found: list[Row] = []
    for place, (measured, given) in enumerate(work):
        try:
            made = measured(*given)
        except KeyboardInterrupt:
            if not found:
                raise
            progress.done(f"stopped: {len(work) - place} of {len(work)} measurements are missing")
            break
        found += made if isinstance(made, list) else [made]
        progress.done(f"{found[-1]['kind']}, {found[-1]['instance']}, {found[-1]['told']}", (place + 1) / len(work))
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """The figures that are asked for."""
    lines = []
    for most in sorted({row["asked"] for row in found if row["kind"] == "cost"}):
        some = [row for row in found if row["kind"] == "cost" and row["asked"] == most]
        worst = max(some, key=lambda row: row["ratio"])
        what = f"Blocks that do nothing, measurements over those without blocks, worst of {len(some)} cells"
        text = (
            f"{worst['ratio']:.2f} ± {worst['error']:.2f} ({worst['instance']}, room {worst['room']}, {worst['told']})"
        )
        lines.append(Headline(what, text, f"at most {most:g}", worst["ratio"] <= most))
    ratios = [row["ratio"] for row in found if row["kind"] == "shift" and row["told"] == "any noise"]
    if ratios:
        what, text = "Days that shift results by 1 σ, any noise: told as blocks over not told", _listed(ratios)
        lines.append(Headline(what, text, "at most 0.75", max(ratios) <= 0.75))
    ratios = [row["ratio"] for row in found if row["kind"] == "questions"]
    if ratios:
        what = "Different questions over the same question for all models (bounded, any noise, counts)"
        lines.append(Headline(what, _listed(ratios), "at least 1.5", min(ratios) >= 1.5))
    shares = [row["wrong"] / row["runs"] for row in found if row["kind"] == "errors"]
    if shares:
        what = "Wrong groups with drawn and aimed shifts, worst noise"
        lines.append(Headline(what, f"{max(shares):.3f}", "at most 0.1", max(shares) <= DELTA))
    return lines


def _listed(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def _count(heading: str, key: str) -> Column:
    return Column(heading, key, lambda number: f"{number:,.0f}")


_HEAD = (Column("instance", "instance", left=True), Column("told", "told", left=True))
_RATIO = Column("ratio", "ratio", lambda ratio: f"{ratio:.2f}")
PART = Part(
    f"Blocks that do nothing: measurements at δ = {DELTA:g} in blocks of some room, beside CROC without blocks.",
    (*_HEAD, Column("room", "room"), _count("in blocks", "mean"), _count("without", "without"), _RATIO,
     Column("±", "error", lambda error: f"{error:.2f}"), Column("wrong", "wrong")),
    rows,
    headlines,
    has=lambda row: row["kind"] == "cost",
    more=(
        Table(
            f"A shift of 1 σ a day of {DAY} measurements: days told as blocks, and not told.",
            (*_HEAD, _count("told", "mean"), _count("not told", "without"), _RATIO, Column("wrong", "wrong"),
             Column("wrong, not told", "wrong untold")),
            lambda row: row["kind"] == "shift",
        ),
        Table(
            f"Models that answer right or wrong, difficulty of questions {SPREAD:g} logits (sd).",
            (*_HEAD, _count("same question", "mean"), _count("different questions", "without"), _RATIO,
             Column("wrong", "wrong")),
            lambda row: row["kind"] == "questions",
        ),
        Table(
            "Groups that differ in spread alone, `AnyNoise(shape=True)`: in blocks, and without blocks.",
            (*_HEAD, Column("room", "room"), _count("in blocks", "mean"), _count("without", "without"), _RATIO,
             Column("wrong", "wrong")),
            lambda row: row["kind"] == "shape",
        ),
        Table(
            f"Wrong groups at δ = {DELTA:g}, offsets of 2 σ, drawn and aimed.",
            (*_HEAD, Column("runs", "runs"), Column("ended", "ended"), Column("wrong", "wrong")),
            lambda row: row["kind"] == "errors",
        ),
    ),
    seconds=900,
)  # fmt: skip
