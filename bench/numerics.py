"""Rounding in long runs: what the engine keeps up against the same from all measurements, added up without error.

Ten million pulls of a world with centers at 10⁶ and gaps of 1. Every drawn value is a double, so sums of them are
added up as whole numbers (`ExactSums`); all that follows from the sums is computed in rational arithmetic. Errors of
sums and centers are stated twice: relative to the value itself, about 10⁶ a pull, and to the gap, 1 a pull, as an
error of 10⁻⁹ of the value could hide the gap's third digit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bench.exact import FAR, ExactSums, Rounds, Truth, World, flat, relative, statistic
from bench.part import Column, Headline, Part, Progress, Row, sign
from bench.rounds import SAMPLING
from coterie.methods.croc.run import CrocRun
from coterie.methods.paper.method import levels_for
from coterie.methods.paper.run import Run

PULLS = 10_000_000
QUICK_PULLS, QUICK_STRETCH = 100_000, 20_000
STRETCH = 100_000
"""Pulls between two looks: the exact sums are brought up to date, and the second run is put right."""

SPARE = 10_000
"""Room for a few pulls more, where the last ones are forced."""

ASKED = 1e-9
NEVER = 1e15  # log(1/δ): a level that no run reaches
SEED = 7


SEPARATED = World("gaps of 1", np.arange(20) % 4, np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), 1.0)
OVERLAPPING = World(
    "gaps of 1, one of 2⁻¹¹ that noise hides",
    np.array([0, 1, 2, 0, 1, 2]),
    np.array([[0, 0], [2**-11, 0], [0, 1.0]]),  # 10⁶ + 2⁻¹¹ is a double
    2**-11,
)


def new_run(world: World, method: str) -> Run:
    n_arms, (n_clusters, dim) = world.labels.size, world.centers.shape
    return Run(n_arms, n_clusters, dim, SAMPLING[method], levels_for(("heuristic",), (NEVER,), n_arms, dim))


def put_right(run: Run, world: World, noise: ExactSums) -> None:
    """Replace the running sums by the exact ones, rounded once; the engine then sums up all the rest anew."""
    memory = run.memory()
    truth = Truth(world, noise, memory["origin"], run.labels, len(world.centers))
    memory["arms.sums"] = np.array([[float(x) for x in row] for row in truth.sums])
    memory["guess.since_summed"] = 2**40
    run.restore(memory)


def _placed(rows: Any, counts: Any, origin: list[Fraction]) -> list[list[Fraction]]:
    """Sums of so many results relative to an origin, in the coordinates of the measurements."""
    return [
        [Fraction(x) + n * o for x, o in zip(row, origin, strict=True)]
        for row, n in zip(rows.tolist(), counts, strict=True)
    ]


def paper_method(world: World, method: str, pulls: int = PULLS, part: int = STRETCH) -> list[dict[str, Any]]:
    """The run, the same put right every so often, and the same with its centers near 0, side by side."""
    run, right, near = (new_run(world, method) for _ in range(3))
    rngs = [np.random.default_rng(SEED) for _ in range(3)]
    noise, stream = ExactSums(world.labels.size, world.centers.shape[1]), np.random.default_rng(SEED)
    dim = world.centers.shape[1]
    plain = np.zeros((world.labels.size, dim))  # running sums without an origin
    noted = [np.zeros(pulls + SPARE, dtype=np.int64) for _ in range(3)]
    where = [world.centers + FAR, world.centers + FAR, world.centers]
    certified, parts, seconds = 0, 0, 0.0
    differs: list[int | None] = [None, None]

    def go_on(steps: int) -> None:
        nonlocal seconds
        start, begun = run.t, time.perf_counter()
        run.play(steps, where[0], world.labels, rngs[0], noted[0])
        seconds += time.perf_counter() - begun
        arms, drawn = noted[0][start : run.t], stream.standard_normal((steps, dim))
        noise.add(arms, drawn)
        np.add.at(plain, arms, where[0][world.labels[arms]] + drawn)
        for i, other in enumerate((right, near)):
            if differs[i] is None:
                other.play(steps, where[i + 1], world.labels, rngs[i + 1], noted[i + 1])
                other_way = noted[i + 1][start : run.t] != arms
                if other_way.any():
                    differs[i] = start + int(np.argmax(other_way))
        if differs[0] is None:
            put_right(right, world, noise)

    while run.t < pulls - 1:
        go_on(min(part, pulls - 1 - run.t))
        certified += run.memory()["certified"]
        parts += 1
    # A forced pull leaves the guess as it was: wait for the next one that is not.
    while run.memory()["guess.moved"].any():
        go_on(1)
    before = Truth(world, noise, run.memory()["origin"], run.labels, len(world.centers))
    go_on(1)
    pulls = run.t
    s, (z1, z2, z) = run.memory(), run.statistic
    sums, group_sums, centers = s["arms.sums"], s["guess.sums"], s["guess.centers"]
    truth = Truth(world, noise, s["origin"], s["guess.labels"], len(world.centers))
    assert truth.pulls == s["arms.pulls"].tolist()
    assert truth.totals == s["guess.totals"].tolist()
    exact_z1, exact_z2 = sum(truth.scatter(before.centers), Fraction(0)), truth.closest(before.centers)
    origin = flat(s["origin"])

    def of_gap(rows: Any, counts: Any) -> list[list[Fraction]]:
        return [[n * Fraction(world.gap)] * len(row) for row, n in zip(rows, counts, strict=True)]

    ones = [1] * truth.n_clusters
    their_centers = [[x / n for x in row] for row, n in zip(truth.group_values, truth.totals, strict=True)]
    guessed = not s["guess.moved"].any()
    name = f"{method}, {world.name}"
    path = f"{certified / parts:.0%} of the looks on the separated path, {seconds / pulls * 1e6:.2f} µs a pull"
    found = [
        _row(name, pulls, "arms' sums", relative(_placed(sums, truth.pulls, origin), truth.values),
             relative(sums, truth.sums, of_gap(truth.sums, truth.pulls)), path),
        _row(name, pulls, "groups' sums", relative(_placed(group_sums, truth.totals, origin), truth.group_values),
             relative(group_sums, truth.group_sums, of_gap(truth.group_sums, truth.totals))),
        _row(name, pulls, "statistic Z1", relative(z1, exact_z1)),
        _row(name, pulls, "statistic Z2", relative(z2, exact_z2)),
        _row(name, pulls, "statistic Z", relative(z, statistic(exact_z1, exact_z2)), None,
             f"Z1 {z1:.6g}, Z2 {z2:.6g}, Z {z:.6g}"),
        _row(name, pulls, "Σ log(4 + log N)", relative(run.log_sum, truth.log_sum())),
    ]  # fmt: skip
    if guessed:
        found += [
            _row(name, pulls, "centers", relative(_placed(centers, ones, origin), their_centers),
                 relative(centers, truth.centers, of_gap(truth.centers, ones))),
            _row(name, pulls, "scatter", relative(s["guess.scatter"], truth.scatter(truth.centers))),
        ]  # fmt: skip
    found.append(
        _row(name, pulls, "for comparison: plain sums, no origin", relative(plain, truth.values),
             relative(plain, truth.values, of_gap(truth.values, truth.pulls)), asked=False)
    )  # fmt: skip
    found += [
        _same_arms(name, pulls, f"a run put right every {part:,} pulls", differs[0]),
        _same_arms(name, pulls, "a run with the same noise and centers near 0", differs[1]),
    ]
    return found


def _queue_by_queue(run: CrocRun, world: World, centers: Any, rng: Any, pulls: int) -> Iterator[tuple[Any, int]]:
    """Play a CROC run plan by plan: the arms of each, and the round that they are of, 0 for none."""
    run.play(world.labels.size, centers, world.labels, rng)
    yield np.arange(world.labels.size), 0
    while run.t < pulls:
        arms, number = run.planned(), run.round if run.has_open_rounds else 0
        run.play(arms.size, centers, world.labels, rng)
        yield arms, number


def croc(world: World, pulls: int = PULLS, part: int = STRETCH) -> list[dict[str, Any]]:
    """CROC at a level that it never reaches, so that its rounds go on; and the same with its centers near 0."""
    n_arms, (n_clusters, dim) = world.labels.size, world.centers.shape
    run, near = (CrocRun(n_arms, n_clusters, dim, NEVER) for _ in range(2))
    rngs, stream = [np.random.default_rng(SEED) for _ in range(2)], np.random.default_rng(SEED)
    far = world.centers + FAR
    exact = ExactSums(n_arms, dim)  # of the results less FAR
    beside = _queue_by_queue(near, world, world.centers, rngs[1], pulls)
    rounds: Rounds | None = None
    waiting: list[tuple[Any, int]] = []
    differs: int | None = None
    taken, seconds = 0, 0.0
    frozen: tuple[Any, Any] | None = None

    def look() -> None:
        """Bring the exact sums and the tests up to date."""
        nonlocal taken, rounds, frozen
        arms = np.concatenate([some for some, _ in waiting])
        numbers = np.repeat([number for _, number in waiting], [some.size for some, _ in waiting])
        values = far[world.labels[arms]] + stream.standard_normal((arms.size, dim)) - FAR
        exact.add(arms, values)
        if rounds is None:
            at = run.frozen(0).frozen_at
            assert 0 < at <= arms.size
            labels = run.frozen(0).labels.copy()
            totals, sums = np.zeros(n_clusters, dtype=np.longdouble), np.zeros((n_clusters, dim), dtype=np.longdouble)
            np.add.at(totals, labels[arms[:at]], 1)
            np.add.at(sums, labels[arms[:at]], values[:at].astype(np.longdouble))
            frozen = totals, sums / totals[:, None]
            rounds = Rounds(labels, run.frozen(0).in_core == 1, n_clusters, dim)
        rounds.add(numbers[numbers > 0], arms[numbers > 0], values[numbers > 0])
        taken += arms.size
        waiting.clear()

    start = time.perf_counter()
    for arms, number in _queue_by_queue(run, world, far, rngs[0], pulls):
        waiting.append((arms, number))
        if differs is None:
            other, its_number = next(beside)
            if number != its_number or not np.array_equal(arms, other):
                differs = run.t - arms.size
        if run.t - taken >= part or run.t >= pulls:
            look()
    seconds = time.perf_counter() - start
    assert rounds is not None
    assert frozen is not None
    assert run.freezes == 1  # its tests are those of one epoch
    epoch = run.frozen(0)
    assert exact.pulls.tolist() == run.pulls.tolist()
    n, origin = run.pulls.tolist(), flat(run.origin)
    values = [[x + count * Fraction(FAR) for x in row] for row, count in zip(exact.sums, n, strict=True)]
    sums = [[Fraction(x) + count * o for x, o in zip(row, origin, strict=True)]
            for row, count in zip(run.sums.tolist(), n, strict=True)]  # fmt: skip
    of_gap = [[count * Fraction(world.gap)] * dim for count in n]
    members = [[m for m, k in enumerate(run.labels.tolist()) if k == g] for g in range(n_clusters)]
    centers = [[sum(values[m][q] for m in some) / sum(n[m] for m in some) for q in range(dim)] for some in members]
    placed = [[Fraction(x) + o for x, o in zip(row, origin, strict=True)] for row in run.positions.tolist()]
    name = f"croc, {world.name}"
    found = [
        _row(name, run.t, "arms' sums", relative(sums, values), relative(sums, values, of_gap),
             f"{run.round:,} rounds, both runs and the exact sums {seconds:.0f} s"),
        _row(name, run.t, "centers", relative(placed, centers),
             relative(placed, centers, [[Fraction(world.gap)] * dim] * n_clusters)),
    ]  # fmt: skip
    for pool, tests in (("core", epoch.against_core), ("group", epoch.against_group)):
        weight, total = tests.weight, tests.kept
        used = (weight > 0) & (np.arange(n_clusters) != rounds.labels[:, None])
        exact_weight, exact_sum = rounds.weights[pool][used], rounds.sums[pool][used]
        error = np.abs(total[used] - exact_sum).max(axis=1) / (exact_weight * world.gap)
        found.append(
            _row(name, run.t, f"tests against a {pool}: contrasts",
                 float(np.abs(weight[used] / exact_weight - 1).max()), float(error.max()), "weights; sums")
        )  # fmt: skip
        with np.errstate(all="ignore"):
            theirs = _directed_now(epoch, pool)[used]
            ours = rounds.evidence(pool, *frozen)[used]
        found.append(_row(name, run.t, f"tests against a {pool}: log E", float(np.abs(theirs / ours - 1).max()), None,
                          f"smallest {float(ours.min()):.6g}"))  # fmt: skip
    found.append(_same_arms(name, run.t, "a run with the same noise and centers near 0", differs))
    return found


def _directed_now(epoch: Any, pool: str) -> Any:
    """log E as the engine's sums give it, computed in long doubles so that only what is kept up is judged."""
    kept = Rounds(epoch.labels, epoch.in_core == 1, *epoch.centers.shape)
    tests = epoch.against_core if pool == "core" else epoch.against_group
    kept.weights[pool], kept.sums[pool] = tests.weight.astype(np.longdouble), tests.kept.astype(np.longdouble)
    return kept.evidence(pool, epoch.totals.astype(np.longdouble), epoch.centers.astype(np.longdouble))


def _row(
    what: str,
    pulls: int,
    quantity: str,
    error: float,
    of_gap: float | None = None,
    detail: str = "",
    asked: bool = True,
) -> dict[str, Any]:
    worst = max(error, of_gap or 0.0)
    print(
        f"  {what}: {quantity}: {error:.2e}" + (f", of the gap {of_gap:.2e}" if of_gap is not None else ""),
        detail,
        flush=True,
    )
    return {
        "what": what, "pulls": pulls, "quantity": quantity, "relative": error, "relative_to_gap": of_gap,
        "asked": f"≤ {ASKED:g}" if asked else "", "met": worst <= ASKED if asked else None, "detail": detail,
    }  # fmt: skip


def _same_arms(what: str, pulls: int, other: str, differs: int | None) -> dict[str, Any]:
    """`differs`: the first pull at which another arm was chosen."""
    same = pulls if differs is None else differs
    print(f"  {what}: the first {same:,} of {pulls:,} arms are those of {other}", flush=True)
    return {
        "what": what, "pulls": pulls, "quantity": f"arms, against {other}", "relative": None, "relative_to_gap": None,
        "asked": "identical", "met": differs is None, "detail": f"the first {same:,} of {pulls:,} are the same",
    }  # fmt: skip


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    if quick:
        return paper_method(SEPARATED, "boc", QUICK_PULLS, QUICK_STRETCH)
    measured: list[Row] = []
    for world, method in ((SEPARATED, "boc"), (SEPARATED, "uniform"), (OVERLAPPING, "boc")):
        measured += paper_method(world, method)
    return measured + croc(SEPARATED)


def headlines(measured: list[Row]) -> list[Headline]:
    """The worst error of each run, and whether its arms are the same."""
    lines = []
    for what in dict.fromkeys(row["what"] for row in measured):
        judged = [row for row in measured if row["what"] == what and row["met"] is not None]
        errors = [row for row in judged if row["relative"] is not None]
        worst = max(max(row["relative"], row["relative_to_gap"] or 0.0) for row in errors)
        met = all(row["met"] for row in errors)
        lines.append(
            Headline(f"{what}: worst relative error of all sums, {errors[0]['pulls']:,} pulls", f"{worst:.1e}",
                     f"≤ {ASKED:g}", met)
        )  # fmt: skip
        same = [row["met"] for row in judged if row["relative"] is None]
        lines.append(Headline(f"{what}: arms", "identical" if all(same) else "differ", "identical", all(same)))
    return lines


PART = Part(
    f"Rounding after {PULLS:,} pulls, centers at 10⁶: what is kept up against exact sums.",
    (
        Column("run", "what", left=True),
        Column("quantity", "quantity", left=True),
        Column("relative error", lambda row: "" if row["relative"] is None else f"{row['relative']:.1e}"),
        Column("of the gap", lambda row: "" if row["relative_to_gap"] is None else f"{row['relative_to_gap']:.1e}"),
        Column("goal", "asked", left=True),
        Column("", lambda row: sign(row["met"])),
        Column("", "detail", left=True),
    ),
    rows,
    headlines,
    section="what",
    seconds=300,
)
