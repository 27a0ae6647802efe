"""Measurements that every method needs, on the same instances, beside the bounds that hold for all of them.

A cell is a method on an instance. One trajectory of the paper's methods serves every δ; CROC and the peers look at δ.
A cell has so many seconds. Pilot trials, one for each core, say how many fit in; these are then run and counted, so
that how many there are does not depend on how they end. Where hardly any fit in, the pilots themselves are counted, and
the table says so; where they, or the trials, take too long, the cell is left out: those that ended would be the short
ones.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.instances import DRAWN, named
from bench.part import Column, Headline, Part, Progress, Row, number, sign, times
from coterie.paper.datasets import distance_ratio
from coterie.simulate.plan import Running, TrialCancelledError, plan_for, run_trial

TRIALS = 128
LIMIT = 5.0
"""Seconds for a cell, CROC has four times as many; pilots may take twice as long."""

ASKED: dict[tuple[str, float], tuple[float, float]] = {
    ("easy", 0.1): (19, 18),
    ("easy", 1e-10): (40, 34),
    ("moderate", 0.1): (210, 180),
    ("moderate", 1e-10): (620, 460),
    ("challenging", 0.1): (790, 690),
    ("challenging", 1e-10): (2300, 1850),
    ("Iris", 0.1): (156, 155),
    ("Iris", 1e-10): (235, 228),
    ("Yeast", 0.1): (1490, 1484),
    ("Yeast", 1e-10): (1490, 1484),
    ("MNIST d=10", 0.01): (502, 500),
    ("MNIST d=50", 0.01): (510, 503),
    ("MNIST d=400", 0.01): (600, 560),
    ("M=40 K=4 d=5 gap 1", 0.1): (1120, 960),
    ("M=100 K=5 d=10 gap 3", 0.1): (420, 365),
}
"""Instances and δ; of CROC at most so many measurements are asked for, and fewer are the aim."""

PAPER = (
    ("BOC, β", "boc", "proven"),
    ("BOC, β̃ *", "boc", "heuristic"),
    ("linear, β̃ *", "boc-linear", "heuristic"),
    ("Uniform, β", "uniform", "proven"),
    ("Uniform, β̃ *", "uniform", "heuristic"),
    ("Oracle, β̃ *", "oracle", "heuristic"),
)
MOST = 2**40
"""Measurements that a peer may take; time ends it before."""


@dataclass(frozen=True)
class Ending:
    """One trial at one δ."""

    t: int
    correct: bool


class Endings(dict[float, list[Ending]]):
    """For each δ. `pilots`: these are the pilot trials, because hardly any others fitted in."""

    pilots = False


One = Callable[[int], Endings]
"""Trial i of a cell, for each δ."""


def of_the_engine(name: str, method: str, kind: str, deltas: tuple[float, ...], running: Running) -> One:
    """Another instance in every trial where it is drawn, else another stream of noise."""

    def plan(trial: int) -> Any:
        instance = named(name, trial)
        ratio = distance_ratio(instance) if method == "boc-linear" else None
        return plan_for(instance, method, deltas, kind, None, ratio)

    shared = None if name in DRAWN else plan(0)
    plan(0).load()

    def one(trial: int) -> Endings:
        own = plan(trial) if shared is None else shared
        seed, child = (1000 + trial, 0) if shared is None else (1000, trial)
        ended = run_trial(own, seed, child, running)
        row = 0 if kind == "proven" else 1
        return Endings(
            {
                delta: [Ending(int(ended.stops[row, column]), bool(ended.correct[row, column]))]
                for delta, column in zip(deltas, own.columns(deltas), strict=True)
            }
        )

    return one


def many(one: One, trials: int, limit: float, running: Running) -> Endings | None:
    """Trials side by side, within the time; None if the first ones take too long."""
    workers = os.cpu_count() or 1

    def batch(indices: range, seconds: float) -> Endings | None:
        alarm = threading.Timer(seconds, running.cancel)
        alarm.start()
        try:
            with ThreadPoolExecutor(workers) as pool:
                try:
                    found = list(pool.map(one, indices))
                except BaseException:  # Ctrl-C, say: end the trials before the pool waits for them
                    pool.shutdown(wait=False, cancel_futures=True)
                    running.cancel()
                    raise
        except TrialCancelledError:
            return None
        finally:
            alarm.cancel()
        return Endings(
            {delta: [ending for each in found for ending in each[delta]] for delta in (found[0] if found else {})}
        )

    start = time.perf_counter()
    pilots = batch(range(trials, trials + workers), 2 * limit)
    count = fitting(trials, limit, time.perf_counter() - start, workers)
    if pilots is None or count >= 2:
        return None if pilots is None else batch(range(count), 4 * limit)
    pilots.pilots = True
    return pilots


def fitting(trials: int, limit: float, taken: float, together: int) -> int:
    """How many trials fit into the rest of the time, if so many together took this long."""
    return min(trials, max(0, int((limit - taken) / taken * together)))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the main thread; where there are no alarms, time has no limit."""

    def end(*_: Any) -> None:
        raise TimeoutError

    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def of_a_peer(peer: Any, name: str, delta: float, trials: int, limit: float) -> Endings | None:
    """The same, one trial after the other: peers are plain Python."""

    def one(trial: int) -> Ending:
        instance = named(name, trial)
        ended = peer.run(instance, delta, np.random.default_rng([1000, trial]), MOST)
        return Ending(int(ended.t), coterie.same_partition(ended.labels, instance.labels))

    start = time.perf_counter()
    try:
        with at_most(2 * limit):
            pilot = [one(trials)]
        count = fitting(trials, limit, time.perf_counter() - start, 1)
        if count < 2:
            found = Endings({delta: pilot})
            found.pilots = True
            return found
        with at_most(4 * limit):
            return Endings({delta: [one(trial) for trial in range(count)]})
    except TimeoutError:  # what has ended by now would be the short ones
        return None


def cell(label: str, ended: Endings | None, delta: float) -> Row:
    """Mean, its standard error, trials, and wrong partitions."""
    row: Row = {"method": label, "mean": None, "median": None, "standard_error": None, "trials": 0, "wrong": None}
    row["pilots"] = False
    endings = (ended or {}).get(delta)
    if ended is not None and endings:
        row["each"], row["pilots"] = [ending.t for ending in endings], ended.pilots
        t = np.array([ending.t for ending in endings], dtype=float)
        row["mean"], row["median"], row["trials"] = float(t.mean()), float(np.median(t)), len(t)
        row["standard_error"] = float(t.std(ddof=1) / np.sqrt(len(t))) if len(t) > 1 else None
        row["wrong"] = sum(not ending.correct for ending in endings)
    return row


def on(name: str, trials: int, limit: float) -> list[Row]:
    """All methods on one instance, for its δ."""
    deltas = tuple(delta for known, delta in ASKED if known == name)
    found: dict[float, list[Row]] = {delta: [] for delta in deltas}
    for delta in deltas:
        running = Running()
        ended = many(of_the_engine(name, "croc", "proven", (delta,), running), trials, 4 * limit, running)
        found[delta].append(cell("CROC", ended, delta))
    for label, method, kind in PAPER:
        running = Running()
        ended = many(of_the_engine(name, method, kind, deltas, running), trials, limit, running)
        for delta in deltas:
            found[delta].append(cell(label, ended, delta))
    for peer in _peers():
        for delta in deltas:
            ended = of_a_peer(peer, name, delta, trials, limit)
            found[delta].append(cell(f"{peer.name} †", ended, delta))
    return [row for delta in deltas for row in beside(name, delta, found[delta])]


def _peers() -> list[Any]:
    try:
        from bench.peers import PEERS
    except ModuleNotFoundError:
        return []
    return list(PEERS.values())


def beside(name: str, delta: float, cells: list[Row]) -> list[Row]:
    """The bounds and the ratios to CROC."""
    instance, (limit, aim) = named(name), ASKED[name, delta]
    croc, crocs = cells[0]["mean"], cells[0].get("each", [])
    found = []
    for each in cells:
        own = each.pop("each", [])
        row = {"case": f"{name}, δ = {delta:g}", "instance": name, "delta": delta, **each}
        bounds, over = [coterie.lower_bound(instance, delta)], None
        if name not in DRAWN:
            over = each["mean"] / croc if own and crocs else None
        elif own:  # another instance in every trial: only what was run on the same ones is compared
            places = range(TRIALS, TRIALS + len(own)) if each["pilots"] else range(len(own))
            bounds = [coterie.lower_bound(named(name, place), delta) for place in places]
            both = 0 if each["pilots"] or cells[0]["pilots"] else min(len(own), len(crocs))
            over = float(np.mean(own[:both]) / np.mean(crocs[:both])) if both else None
        floor = float(np.mean(bounds))
        row |= {"over_croc": over, "lower_bound": floor, "n_arms": instance.n_arms}
        row["over_bound"] = each["mean"] / max(floor, instance.n_arms) if each["mean"] else None
        if each["method"] == "CROC":
            row |= {"limit": limit, "aim": aim, "met": croc is not None and croc <= limit}
        found.append(row)
    return found


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each instance, δ and method."""
    names = ["easy", "Iris"] if quick else list(dict.fromkeys(name for name, _ in ASKED))
    found: list[Row] = []
    for i, name in enumerate(names):
        found += on(name, 8 if quick else TRIALS, LIMIT)
        for row in (row for row in found if row["instance"] == name and row["method"] == "CROC"):
            progress.done(f"{row['case']}: CROC {_mean(row)}, at most {row['limit']}", (i + 1) / len(names))
    return found


def _mean(row: Row) -> str | None:
    if row["mean"] is None:
        return None
    error = row["standard_error"]
    digits = 0 if row["mean"] >= 1e3 else 1
    return f"{row['mean']:,.{digits}f}" + (f" ± {error:.{digits}f}" if error is not None else "")


def headlines(found: list[Row]) -> list[Headline]:
    """CROC against what was asked for; the proven rule of the paper, and the best peer, over CROC."""
    lines = []
    for case in dict.fromkeys(row["case"] for row in found):
        here = {row["method"]: row for row in found if row["case"] == case}
        croc = here["CROC"]
        lines.append(
            Headline(f"{case}: CROC, measurements", _mean(croc) or "–", f"≤ {number(croc['limit'])}", croc["met"])
        )
        for label, row in here.items():
            if label == "BOC, β" and row["over_croc"]:
                lines.append(Headline(f"{case}: BOC with β over CROC", times(row["over_croc"])))
        every = [row for row in here.values() if row["method"].endswith("†")]
        peers = [row for row in every if row["over_croc"]]
        if peers:
            best = min(peers, key=lambda row: row["over_croc"])
            which = f"{best['method'][:-2]}, {best['trials']} trial{'' if best['trials'] == 1 else 's'}"
            which += "" if len(peers) == len(every) else f"; {len(every) - len(peers)} took too long"
            lines.append(Headline(f"{case}: the best peer ({which}) over CROC", times(best["over_croc"])))
    return lines


PART = Part(
    f"Measurements needed: mean ± standard error of up to {TRIALS} trials, those that fit into {LIMIT:g} s (CROC: "
    f"{4 * LIMIT:g} s); p: pilots;\n–: too long. *: no proof; the oracle knows the truth, linear exploration the ratio "
    "of distances. †: bench/peers; one of\nthem runs nearly for ever after a wrong representative. "
    "Bound: d_KL(δ, 1−δ)·D*; /: over the larger of it and M.",
    (
        Column("instance", "case", left=True),
        Column("method", "method", left=True),
        Column("measurements", _mean),
        Column("median", "median", number),
        Column("trials", lambda row: f"{row['trials']}{' p' if row['pilots'] else ''}" if row["trials"] else None),
        Column("wrong", "wrong"),
        Column("/ CROC", "over_croc", times),
        Column("bound; M", lambda row: f"{number(row['lower_bound'])}; {row['n_arms']}"),
        Column("/", "over_bound", times),
        Column("asked for", lambda row: f"≤ {number(row['limit'])} {sign(row['met'])}" if "limit" in row else ""),
    ),
    rows,
    headlines,
    section="case",
    seconds=300,
)  # fmt: skip
