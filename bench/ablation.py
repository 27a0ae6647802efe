"""Where to measure, and when to stop: CROC taken apart, its halves beside those of others.

Every sampling rule with every stopping rule that can go with it, all proven at the same δ, with the same time and
trials (`bench.sampling_stopping`). Universal inference lists all partitions and is left
out where these are too many. The linkage peers (`bench.peers.linkage`) answer a wider question, of which equal groups
are a special case.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.cells import Ending, Endings, One, cell, many, trials_of
from bench.families import DELTA
from bench.instances import named
from bench.part import Column, Headline, Part, Progress, Row, number, times
from bench.peers.linkage import LINKAGE_PEERS
from bench.peers.universal import MOST as MOST_PARTITIONS
from bench.peers.universal import stirling
from bench.sampling_stopping import (
    Challenger,
    InTurn,
    PairsFromTheStart,
    PairsOnly,
    RoundsInTurn,
    Sampler,
    Shape,
    Stop,
    Tracking,
    TrackingRounds,
    universal,
)
from coterie.methods.trials import RunningTrials
from coterie.problem.partition import same_partition
from coterie.problem.settings import Settings
from coterie.simulate.bulk import TrialCancelledError
from tests.oracles.croc import ReferenceCroc

TRIALS = 32
LIMIT = 4.0
"""Seconds of processor time for a cell, the same for all; pilots may take twice as long."""

CAP = 20_000
"""Measurements of a trial."""

SEED = 8000
CASES = (
    "easy",
    "moderate",
    "challenging",
    "M=12, K=11, d=3",
    "20,1,1, gap 2, 50 away, d=1",
    "a chain of 8, d=1",
)
QUICK = ("easy",)

CERTIFICATE, PAIRS, UNIVERSAL, THRESHOLD, LINKAGE = (
    "CROC's certificate", "pairs", "universal inference", "β", "comparisons of distances",
)  # fmt: skip
CROC, TRACKING, IN_TURN, CHALLENGER = "CROC", "BOC's tracking", "in turn", "challenger"

Together = Callable[[Shape, float], tuple[Sampler, Stop]]
Whole = Callable[[int, int, int, float], ReferenceCroc]

APART: dict[tuple[str, str], Together] = {
    (TRACKING, PAIRS): lambda shape, delta: (Tracking(shape, delta), PairsFromTheStart(shape, delta)),
    (IN_TURN, PAIRS): lambda shape, delta: (InTurn(shape, delta), PairsFromTheStart(shape, delta)),
    (CHALLENGER, UNIVERSAL): lambda shape, delta: _challenged(shape, delta),
    (TRACKING, UNIVERSAL): lambda shape, delta: (Tracking(shape, delta), universal(shape, delta)),
    (IN_TURN, UNIVERSAL): lambda shape, delta: (InTurn(shape, delta), universal(shape, delta)),
}
WHOLE: dict[tuple[str, str], Whole] = {
    (CROC, PAIRS): PairsOnly,
    (TRACKING, CERTIFICATE): TrackingRounds,
    (IN_TURN, CERTIFICATE): RoundsInTurn,
}
ENGINE: dict[tuple[str, str], str] = {
    (CROC, CERTIFICATE): "croc", (TRACKING, THRESHOLD): "boc", (IN_TURN, THRESHOLD): "uniform",
}  # fmt: skip
PEERS = ("linkage-atboc", "linkage-elim", "linkage-ebc-h")
WAYS: tuple[tuple[str, str], ...] = (
    (CROC, CERTIFICATE), (TRACKING, CERTIFICATE), (IN_TURN, CERTIFICATE),
    (CROC, PAIRS), (TRACKING, PAIRS), (IN_TURN, PAIRS),
    (CHALLENGER, UNIVERSAL), (TRACKING, UNIVERSAL), (IN_TURN, UNIVERSAL),
    (TRACKING, THRESHOLD), (IN_TURN, THRESHOLD),
    *((peer, LINKAGE) for peer in PEERS),
)  # fmt: skip
"""Sampling and stopping; CROC comes first."""


def _challenged(shape: Shape, delta: float) -> tuple[Sampler, Stop]:
    stop = universal(shape, delta)
    return Challenger(shape, delta, stop), stop


def can(case: str, way: tuple[str, str]) -> bool:
    """Whether all partitions can be listed, for universal inference; all else can always be tried."""
    instance = named(case)
    return way[1] != UNIVERSAL or stirling(instance.n_arms, instance.n_clusters) <= MOST_PARTITIONS


def ended(
    instance: coterie.Instance, way: tuple[str, str], seed: list[int], cap: int, running: RunningTrials
) -> Ending:
    """One trial of a way that is none of the engine's: the noise of its s-th result is the same for all of these."""
    shape = instance.n_arms, instance.n_clusters, instance.dim
    rng = np.random.default_rng(seed)
    told: Any
    if way in APART:
        sampler, stop = APART[way](shape, DELTA)
        told = (sampler, stop)
    elif way in WHOLE:
        sampler = stop = _Whole(WHOLE[way](*shape, DELTA))
        told = (stop,)
    else:
        settings = Settings.of(*shape, DELTA, method=way[0], noise=1.0, groups="linkage")
        sampler = stop = _Peer(way[0], settings)
        told = (stop,)
    t = 0
    while t < cap:
        if running.cancelled:
            raise TrialCancelledError
        arm = sampler.ask()
        x = instance.means[arm] + rng.standard_normal(instance.dim)
        for each in told:
            each.tell(arm, x)
        t += 1
        if stop.done:
            return Ending(t, same_partition(stop.labels, instance.labels))
    return Ending(cap, False, done=False)


class _Whole:
    """CROC with one thing changed: sampler and stop in one."""

    def __init__(self, run: ReferenceCroc) -> None:
        self._run = run

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def labels(self) -> Any:
        return self._run.labels

    def ask(self) -> int:
        found = self._run.ask()
        assert found is not None
        return found

    def tell(self, arm: int, x: Any) -> None:
        self._run.tell(arm, x)


class _Peer:
    """A linkage peer, asked and told."""

    def __init__(self, name: str, settings: Settings) -> None:
        self._run = LINKAGE_PEERS[name].start(settings)

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def labels(self) -> Any:
        assert self._run.guess is not None
        return self._run.guess[0]

    def ask(self) -> int:
        found = self._run.ask()
        assert found is not None
        return found.arm

    def tell(self, arm: int, x: Any) -> None:
        self._run.count(arm, x, 0, True)


def trials(case: str, way: tuple[str, str], cap: int, running: RunningTrials) -> One:
    """Trial i of a way."""
    if way in ENGINE:
        return trials_of(case, ENGINE[way], "proven", (DELTA,), running, cap, SEED)
    return lambda trial: Endings({DELTA: [ended(named(case, trial), way, [SEED, trial], cap, running)]})


def on(case: str, count: int, limit: float, cap: int) -> list[Row]:
    """All ways on one instance, and what they need over CROC."""
    found: list[Row] = []
    for way in WAYS:
        running = RunningTrials()
        runs = many(trials(case, way, cap, running), count, limit, running) if can(case, way) else None
        row = cell(f"{way[0]}, {way[1]}", runs, DELTA)
        row.pop("each", None)
        found.append({"case": case, "sampling": way[0], "stopping": way[1], "cap": cap, **row})
    base = found[0]["median"]
    for row in found:
        beyond = row["median"] is None and row["trials"]
        row["over_croc"] = (cap if beyond else row["median"]) / base if base and row["trials"] else None
        row["at_least"] = beyond  # the median lies beyond the limit: the ratio is a bound
    return found


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each instance and way."""
    cases = QUICK if quick else CASES
    found: list[Row] = []
    for place, case in enumerate(cases):
        found += on(case, *((4, 2.0, 1000) if quick else (TRIALS, LIMIT, CAP)))
        progress.done(f"{case}: CROC, median {number(found[-len(WAYS)]['median'])}", (place + 1) / len(cases))
    return found


def mean_text(row: Row) -> str | None:
    """Mean ± standard error, p for pilots, or that it lies beyond the limit."""
    if not row["trials"]:
        return None
    if row["mean"] is None:
        return f"> {row['cap']:,} in {row['unfinished']}"
    error = "" if row["standard_error"] is None else f" ± {number(row['standard_error'])}"
    return number(row["mean"]) + error + (" p" if row["pilots"] else "")


def over_text(row: Row) -> str | None:
    """The ratio of medians, or a bound on it."""
    return None if row["over_croc"] is None else f"{'> ' if row['at_least'] else ''}{times(row['over_croc'])}"


def headlines(found: list[Row]) -> list[Headline]:
    """The sampling alone, the stopping alone, and universal inference: the range of medians over CROC."""
    ways = {
        "CROC's certificate with BOC's tracking": (TRACKING, CERTIFICATE),
        "CROC's certificate with arms in turn": (IN_TURN, CERTIFICATE),
        "CROC's sampling with pairs only": (CROC, PAIRS),
        "BOC's tracking with pairs": (TRACKING, PAIRS),
    }
    lines = []
    for what, way in ways.items():
        lines += _range(what, [row for row in found if (row["sampling"], row["stopping"]) == way])
    for stopping, what in ((UNIVERSAL, "universal inference, best sampling"), (LINKAGE, "the best linkage peer")):
        best = []
        for case in dict.fromkeys(row["case"] for row in found):
            known = [row for row in found if (row["case"], row["stopping"]) == (case, stopping) and row["over_croc"]]
            best += [min(known, key=lambda row: float(row["over_croc"]))] if known else []
        lines += _range(what, best)
    return lines


def _range(what: str, found: list[Row]) -> list[Headline]:
    known = sorted((row for row in found if row["over_croc"]), key=lambda row: float(row["over_croc"]))
    if not known:
        return []
    text = f"{what}, over CROC, medians on {len(known)} instances"
    return [Headline(text, f"{over_text(known[0])} to {over_text(known[-1])}")]


PART = Part(
    f"Sampling × stopping, all proven, δ = {DELTA:g}: up to {TRIALS} trials of at most {CAP:,} measurements, those "
    f"that fit\ninto {LIMIT:g} s of processor time, for every way the same; p: pilots; –: too long, or too many "
    "partitions to list;\n/ CROC: of medians.",
    (
        Column("instance", "case", left=True),
        Column("sampling", "sampling", left=True),
        Column("stopping", "stopping", left=True),
        Column("measurements", mean_text),
        Column("median", "median", number),
        Column("95 %", "quantile95", number),
        Column("trials", "trials"),
        Column("open", "unfinished"),
        Column("wrong", "wrong"),
        Column("/ CROC", over_text),
    ),
    rows,
    headlines,
    section="case",
    seconds=900,
)
