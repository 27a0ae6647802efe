"""A fixed number of measurements: CROC with a deadline, CROC stopped there, and every item in turn with k-means.

The numbers of measurements are shares of what CROC takes on average; those below one for each item are left out. All
three read what is proven by `Session.partial`; "stopped" is a session without a deadline. Noise is known.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

import coterie
from bench.instances import named
from bench.part import Column, Headline, Part, Progress, Row
from coterie.problem.checks import FloatArray, IntArray

DELTA = 0.1
TRIALS, QUICK_TRIALS = 48, 2
LARGE_TRIALS = 24
"""Of the instances with 40 and with 100 items."""
FIRST = 1000
"""The runs from this one on are those that are kept: no number was chosen by looking at them."""
LARGE = "M=100 K=5 d=10 gap 3"
MEANS = {"easy": 18, "moderate": 184, "challenging": 690, "M=40 K=4 d=5 gap 1": 1120, LARGE: 420}
"""What CROC takes on average."""
SHARES = (0.5, 0.75)
WAYS = ("deadline", "stopped", "in turn")
STARTS, STEPS = 20, 50


def k_means(means: FloatArray, n_groups: int, rng: np.random.Generator) -> IntArray:
    """The best of some starts, each from items drawn by their squared distance to those drawn before."""
    best, labels = np.inf, np.zeros(len(means), dtype=np.int64)
    for _ in range(STARTS):
        centers = means[[rng.integers(len(means))]]
        for _ in range(1, n_groups):
            far = ((means[:, None] - centers) ** 2).sum(axis=2).min(axis=1)
            centers = np.vstack([centers, means[rng.choice(len(means), p=far / far.sum())]])
        for _ in range(STEPS):
            off = ((means[:, None] - centers) ** 2).sum(axis=2)
            own = off.argmin(axis=1)
            moved = [means[own == k].mean(axis=0) if (own == k).any() else centers[k] for k in range(n_groups)]
            if np.allclose(moved, centers):
                break
            centers = np.array(moved)
        if off.min(axis=1).sum() < best:
            best, labels = float(off.min(axis=1).sum()), own
    return labels


def misplaced(guess: IntArray, truth: IntArray) -> int:
    """Items outside their group, when groups are matched as well as can be."""
    size = int(max(guess.max(), truth.max())) + 1
    table = np.zeros((size, size))
    np.add.at(table, (guess, truth), 1.0)
    rows, columns = linear_sum_assignment(-table)
    return int(truth.size - table[rows, columns].sum())


def run_of(way: str, name: str, most: int, trial: int) -> dict[str, float]:
    """What one run has proven and guessed after so many measurements."""
    instance, rng = named(name, trial), np.random.default_rng([27, trial, most])
    truth, n_arms = np.asarray(instance.labels), instance.n_arms
    deadline = most if way == "deadline" else None
    session = coterie.Session(n_arms, instance.n_clusters, instance.dim, delta=DELTA, noise=1.0, deadline=deadline)
    order = rng.permutation(n_arms)
    while session.t < most and not session.done:
        item = int(order[session.t % n_arms]) if way == "in turn" else session.ask()
        session.tell(item, instance.means[item] + rng.standard_normal(instance.dim))
    partial, differ = session.partial(), truth[:, None] != truth
    pairs = np.array(partial.apart, dtype=np.int64).reshape(-1, 2)
    right = differ[pairs[:, 0], pairs[:, 1]]
    guess = session.labels if session.labels is not None else np.zeros(n_arms, dtype=np.int64)
    if way == "in turn":
        counts = np.bincount(session.log_arrays.arms, minlength=n_arms)
        sums = np.zeros((n_arms, instance.dim))
        np.add.at(sums, session.log_arrays.arms, session.log_arrays.array)
        guess = k_means(sums / np.maximum(counts, 1)[:, None], instance.n_clusters, rng)
    expected = session.handover.misplaced_at_least if way == "deadline" else None
    return {
        "apart": float(right.sum() / (differ.sum() / 2)),
        "placed": len(partial.settled) / n_arms,
        "misplaced": misplaced(guess, truth) / n_arms,
        "exact": float(misplaced(guess, truth) == 0),
        "wrong": float((~right).any()),
        "expected": float("nan") if expected is None else expected / n_arms,
        "list": float(any(made["event"] == "statements" for made in session.decisions)),
    }


def _runs(given: tuple[str, str, int, int]) -> list[dict[str, float]]:
    way, name, most, trials = given
    return [run_of(way, name, most, FIRST + trial) for trial in range(trials)]


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    sizes = [(name, round(share * mean)) for name, mean in MEANS.items() for share in SHARES]
    counts = {name: min(trials, LARGE_TRIALS) if name.startswith("M=") else trials for name in MEANS}
    cells = [(way, name, most, counts[name]) for name, most in sizes if most >= named(name).n_arms for way in WAYS]
    found: list[Row] = []
    with ProcessPoolExecutor(2) as pool:
        for done, (cell, runs) in enumerate(zip(cells, pool.map(_runs, cells), strict=True), 1):
            way, name, most, count = cell
            row: Row = {"instance": name, "most": most, "way": way, "trials": count}
            row |= {key: float(np.nanmean([run[key] for run in runs])) for key in runs[0] if key != "expected"}
            expected = [run["expected"] for run in runs if run["expected"] == run["expected"]]
            row["expected"] = float(np.mean(expected)) if expected else None
            row["wrong"] = int(sum(run["wrong"] for run in runs))
            found.append(row)
            said = f"{row['apart']:.3f} apart, {row['misplaced']:.4f} misplaced"
            progress.done(f"{name}, {most} measurements, {way}: {said}", done / len(cells))
    return found


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    return with_trials(QUICK_TRIALS if quick else TRIALS, quick, progress, folder)


def _cells(found: list[Row]) -> list[dict[str, Row]]:
    keys = dict.fromkeys((row["instance"], row["most"]) for row in found)
    return [{row["way"]: row for row in found if (row["instance"], row["most"]) == key} for key in keys]


def headlines(found: list[Row]) -> list[Headline]:
    cells = _cells(found)
    worse = [cell["deadline"]["misplaced"] - cell["stopped"]["misplaced"] for cell in cells]
    than_means = [cell["deadline"]["misplaced"] - cell["in turn"]["misplaced"] for cell in cells]
    fewer = [cell["deadline"]["apart"] - cell["stopped"]["apart"] for cell in cells]
    large = next(cell for cell in cells[::-1] if cell["deadline"]["instance"] == LARGE)
    more = large["deadline"]["apart"] / large["stopped"]["apart"]
    at_most = f"of {len(cells)} cells"
    return [
        Headline("a deadline: misplaced at most as often as CROC stopped there",
                 f"{sum(w <= 0 for w in worse)} {at_most}", "all", all(w <= 0 for w in worse)),
        Headline("a deadline: misplaced at most as often as by k-means, items in turn",
                 f"{sum(w <= 0 for w in than_means)} {at_most}", "all", all(w <= 0 for w in than_means)),
        Headline("a deadline: proven pairs at least those of CROC stopped there",
                 f"{sum(f >= 0 for f in fewer)} {at_most}", "all", all(f >= 0 for f in fewer)),
        Headline(f"{LARGE}, 75 %: pairs proven with a deadline over CROC stopped there",
                 f"{more:.2f}×", "≥ 1.5×", more >= 1.5),
    ]  # fmt: skip


def _share(value: float) -> str:
    return f"{value:.3f}"


PART = Part(
    f"All that may be measured is fixed (delta = {DELTA:g}): different pairs proven apart, items placed, the guess",
    [
        Column("instance", "instance", left=True),
        Column("measurements", "most"),
        Column("", "way", left=True),
        Column("apart", "apart", _share),
        Column("placed", "placed", _share),
        Column("guess exact", "exact", lambda value: f"{value:.2f}"),
        Column("misplaced", "misplaced", lambda value: f"{value:.4f}"),
        Column("expected,\nat least", "expected", lambda value: f"{value:.4f}"),
        Column("runs with\na list", "list", lambda value: f"{value:.2f}"),
        Column("wrong", "wrong"),
        Column("runs", "trials"),
    ],
    rows,
    headlines,
    section="most",
    seconds=400.0,
    with_trials=with_trials,
)
