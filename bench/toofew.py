"""One group more than CROC is told: does anything beside the proof speak up?

Groups of equal sizes lie on a line, neighbours so many standard deviations apart: three of them and K = 2, or four and
K = 3. A run ends with an alarm, or with a proof beside which a group is called mixed, or with a proof and nothing else;
and it goes on for half as many measurements (`confirm=0.5`), after which the groups are looked at again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.families import DELTA
from bench.part import Column, Headline, Part, Progress, Row
from coterie.evidence.hidden_groups import hidden_evidence
from coterie.evidence.homogeneity import mixed_threshold

RUNS = 60
MOST = 20_000
"""Measurements of a run."""
CONFIRM = 0.5

GAPS = (1.5, 2.0, 3.0, 4.0)
SHAPES = ((3, 4), (4, 3))
"""Groups, and items of each; K is one less."""
SEED = 6000
TRIALS = 100
NOISES: dict[str, Any] = {
    "known": 1.0,
    "any noise": None,
    "Gaussian": "gaussian",
    "counts": coterie.Counts(TRIALS),
    "bounded": coterie.Bounded(0, 1),
    "at most": coterie.AtMost(1.0),
    "symmetric": coterie.Symmetric(),
}


def reading(told: str, level: float, rng: np.random.Generator) -> float:
    """A measurement of an item whose mean is so many standard deviations above the middle."""
    if told == "counts":  # a standard deviation of 5 of 100
        return float(rng.binomial(TRIALS, min(max(0.5 + 0.05 * level, 0.0), 1.0)))
    if told == "bounded":  # a beta distribution with a standard deviation of 0.05
        mean = 0.5 + 0.05 * level
        size = mean * (1.0 - mean) / 0.0025 - 1.0
        return float(rng.beta(mean * size, (1.0 - mean) * size))
    return level + float(rng.standard_normal())


def ending(told: str, n_groups: int, items: int, gap: float, run: int, missing: int = 1) -> tuple[str, str]:
    """What one run has to say at its proof, and after the measurements that follow it.

    Each is alarm, mixed, silent, or unfinished. `missing`: by how many K is too small.
    """
    rng = np.random.default_rng([SEED, n_groups, items, int(10 * gap), run])
    truth = rng.permutation(np.repeat(np.arange(n_groups), items))
    levels = gap * (np.arange(n_groups) - 0.5 * (n_groups - 1))
    session = coterie.Session(truth.size, n_groups - missing, 1, DELTA, noise=NOISES[told], confirm=CONFIRM)
    at_proof = "unfinished"
    while not session.done and session.t < MOST:
        arm = session.ask()
        session.tell(arm, reading(told, float(levels[truth[arm]]), rng))
        if session.proven and at_proof == "unfinished":
            at_proof = _said(session)
    return at_proof, _said(session) if session.done else "unfinished"


def _said(session: coterie.Session) -> str:
    if session.alarm is not None:
        return "alarm"
    rows, labels, k = session.counted, session.labels, session.n_clusters
    assert labels is not None
    assert k is not None
    log = session.log_arrays  # as `session.homogeneity`, without the difference that would have been seen
    evidence = hidden_evidence(session.noise, log.arms_of(rows), log.array[rows], labels, k)
    return "mixed" if evidence.max() >= mixed_threshold(k) else "silent"


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each noise, shape and gap: how many runs ended how."""
    runs = 4 if quick else RUNS
    cells = [(told, *shape, gap) for told in NOISES for shape in SHAPES for gap in GAPS]
    found: list[Row] = []
    for place, (told, n_groups, items, gap) in enumerate(cells):
        ends = [ending(told, n_groups, items, gap, run) for run in range(runs)]
        row: Row = {"told": told, "groups": n_groups, "items": items, "gap": gap, "runs": runs}
        for when, some in zip(("proof", "end"), zip(*ends, strict=True), strict=True):
            row |= {f"{how} at {when}": some.count(how) for how in ("alarm", "mixed", "silent", "unfinished")}
        found.append(row)
        progress.done(
            f"{told}, {n_groups} groups, gap {gap:g}: {row['silent at proof']} silent", (place + 1) / len(cells)
        )
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """How often nothing speaks up."""
    return [
        Headline(
            f"One group more than K, neighbours {what}: proven without a word",
            f"{_percent(some, 'proof'):.0f} % at the proof, {_percent(some, 'end'):.0f} % after half as many more",
        )
        for what, some in (
            ("1.5 to 2 σ apart", [row for row in found if row["gap"] <= 2.0]),
            ("3 to 4 σ apart", [row for row in found if row["gap"] > 2.0]),
        )
    ]


def _percent(some: list[Row], when: str) -> float:
    return float(100.0 * sum(row[f"silent at {when}"] for row in some) / sum(row["runs"] for row in some))


def _share(title: str, how: str) -> Column:
    return Column(title, lambda row: f"{100 * row[how] / row['runs']:.0f} %")


PART = Part(
    f"Groups of equal size on a line, and K is one less; δ = {DELTA:g}, {RUNS} runs each: what is said beside the "
    "proof, and after half as many measurements more (`confirm=0.5`).",
    (
        Column("told", "told", left=True),
        Column("groups", "groups"),
        Column("items of\neach", "items"),
        Column("neighbours\napart, σ", "gap", lambda gap: f"{gap:g}"),
        _share("alarm", "alarm at proof"),
        _share("a group\nlooks mixed", "mixed at proof"),
        _share("nothing", "silent at proof"),
        _share("after it:\nnothing", "silent at end"),
        _share("unfinished", "unfinished at end"),
    ),
    rows,
    headlines,
    section="items",
    seconds=400,
)
