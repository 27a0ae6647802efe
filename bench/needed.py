"""Measurements that every method needs, on the same instances, beside the bounds that hold for all of them.

A cell is a method on an instance (`bench.cells`). One trajectory of the paper's methods serves every δ; CROC and the
peers look at δ. The first table has the instances of the paper and two that are drawn, the others have the families of
`bench.families`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import coterie
from bench import family_cells
from bench.cells import cell, many, trials_of
from bench.family_cells import is_family
from bench.instances import DRAWN, named
from bench.part import Column, Headline, Part, Progress, Row, number, sign, times
from bench.peers import PEERS
from coterie.methods.trials import RunningTrials

TRIALS = 64
LIMIT = 2.0
"""Seconds of processor time for a cell, the same for every method; pilots may take twice as long."""

HOME = 0.35
"""How much of the time of the part goes into the first table."""

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


def on(name: str, trials: int, limit: float) -> list[Row]:
    """All methods on one instance, for its δ."""
    deltas = tuple(delta for known, delta in ASKED if known == name)
    found: dict[float, list[Row]] = {delta: [] for delta in deltas}

    def alone(label: str, method: str, delta: float) -> Row:
        """The cell of a method whose sampling looks at δ: each δ has trials of its own."""
        running = RunningTrials()
        return cell(label, many(trials_of(name, method, "proven", (delta,), running), trials, limit, running), delta)

    for delta in deltas:
        found[delta].append(alone("CROC", "croc", delta))
    for label, method, kind in PAPER:
        running = RunningTrials()
        ended = many(trials_of(name, method, kind, deltas, running), trials, limit, running)
        for delta in deltas:
            found[delta].append(cell(label, ended, delta))
    for peer in PEERS:
        for delta in deltas:
            found[delta].append(alone(f"{peer} †", peer, delta))
    return [row for delta in deltas for row in beside(name, delta, found[delta])]


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
            over = each["mean"] / croc if each["mean"] and croc else None
        elif own:  # another instance in every trial: only what was run on the same ones is compared
            places = range(TRIALS, TRIALS + len(own)) if each["pilots"] else range(len(own))
            bounds = [coterie.lower_bound(named(name, place), delta) for place in places]
            both = 0 if each["pilots"] or cells[0]["pilots"] else min(len(own), len(crocs))
            over = float(np.mean(own[:both]) / np.mean(crocs[:both])) if both else None
            over = over if over is not None and np.isfinite(over) else None  # an unfinished one has no mean
        floor = float(np.mean(bounds))
        row |= {"over_croc": over, "lower_bound": floor, "n_arms": instance.n_arms, "wanted": cells[0]["trials"]}
        row["over_bound"] = each["mean"] / max(floor, instance.n_arms) if each["mean"] else None
        if each["method"] == "CROC":
            row |= {"limit": limit, "aim": aim, "met": croc is not None and croc <= limit}
        found.append(row)
    return found


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each instance, δ and method, then one for each family."""
    names = ["easy", "Iris"] if quick else list(dict.fromkeys(name for name, _ in ASKED))
    found: list[Row] = []
    for i, name in enumerate(names):
        found += on(name, 8 if quick else TRIALS, LIMIT)
        for row in (row for row in found if row["instance"] == name and row["method"] == "CROC"):
            progress.done(f"{row['case']}: CROC {_mean(row)}, at most {row['limit']}", HOME * (i + 1) / len(names))
    return found + family_cells.rows(quick, progress, lambda share: HOME + (1 - HOME) * share)


def _mean(row: Row) -> str | None:
    if row["mean"] is None:
        return None
    error = row["standard_error"]
    digits = 0 if row["mean"] >= 1e3 else 1
    return f"{row['mean']:,.{digits}f}" + (f" ± {error:.{digits}f}" if error is not None else "")


def is_too_slow(row: Row) -> bool:
    """Whether fewer trials of a peer fitted into its time than there are of CROC."""
    return bool(row["method"].endswith("†") and (row["pilots"] or row["trials"] < row.get("wanted", TRIALS)))


def _over_croc(row: Row) -> str | None:
    """The ratio; of a peer that is too slow, a bound: with two standard errors less."""
    if not is_too_slow(row):
        return None if row["over_croc"] is None else times(row["over_croc"])
    if not row["over_croc"] or not row["standard_error"]:
        return "too slow"
    least = row["over_croc"] * (1.0 - 2.0 * row["standard_error"] / row["mean"])
    return f"too slow: ≥ {times(least)}" if least > 0 else "too slow"


def _counts(row: Row) -> str | None:
    if not row["trials"]:
        return None
    return f"{row['trials']}{' p' if row['pilots'] else ''}; {row.get('unfinished', 0)}; {row['wrong']}"


def headlines(found: list[Row]) -> list[Headline]:
    """CROC against what was asked for; the proven rule of the paper, and the best peer, over CROC. Then families."""
    lines = []
    families, home = [row for row in found if is_family(row)], [row for row in found if not is_family(row)]
    for case in dict.fromkeys(row["case"] for row in home):
        here = {row["method"]: row for row in home if row["case"] == case}
        croc = here["CROC"]
        lines.append(
            Headline(f"{case}: CROC, measurements", _mean(croc) or "–", f"≤ {number(croc['limit'])}", croc["met"])
        )
        for label, row in here.items():
            if label == "BOC, β" and row["over_croc"]:
                lines.append(Headline(f"{case}: BOC with β over CROC", times(row["over_croc"])))
        every = [row for row in here.values() if row["method"].endswith("†")]
        peers = [row for row in every if row["over_croc"] and not is_too_slow(row)]
        if peers:
            best = min(peers, key=lambda row: row["over_croc"])
            which = f"{best['method'][:-2]}, {best['trials']} trial{'' if best['trials'] == 1 else 's'}"
            which += "" if len(peers) == len(every) else f"; {len(every) - len(peers)} took too long"
            lines.append(Headline(f"{case}: the best peer ({which}) over CROC", times(best["over_croc"])))
    return lines + family_cells.headlines(families)


PART = Part(
    f"Measurements needed: mean ± standard error of up to {TRIALS} trials, those that fit into {LIMIT:g} s of "
    "processor time, which every\nmethod has; p: pilots; –: too long; open: unfinished. *: no proof; the oracle knows "
    "the truth, linear exploration the ratio of\ndistances. †: bench/peers; one does not end after a wrong "
    "representative; too slow: fewer trials than CROC's fitted in, and ≥ has two standard errors less. Bound: "
    "d_KL(δ, 1−δ)·D*; /: over it or M.",
    (
        Column("instance", "case", left=True),
        Column("method", "method", left=True),
        Column("measurements", _mean),
        Column("median", "median", number),
        Column("95 %", "quantile95", number),
        Column("trials;\nopen;\nwrong", _counts),
        Column("/ CROC", _over_croc),
        Column("bound; M", lambda row: f"{number(row['lower_bound'])}; {row['n_arms']}"),
        Column("/", "over_bound", times),
        Column("goal", lambda row: f"≤ {number(row['limit'])} {sign(row['met'])}" if "limit" in row else ""),
    ),
    rows,
    headlines,
    section="case",
    seconds=900,
    has=lambda row: not is_family(row),
    more=family_cells.TABLES,
)  # fmt: skip
