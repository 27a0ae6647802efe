"""Measurements that CROC, BOC with its proven threshold and the peers need on the families of `bench.families`.

All have the same limit of measurements, the same processor time and the same number of trials, as far as these fit
into that time; the table says how many there were where they did not. A median beyond the limit of measurements is not
known; what is divided by it, or it by something, is then a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.cells import Endings, cell, many, trials_of
from bench.families import DELTA, FAMILIES, Family, yardstick
from bench.part import Column, Headline, Progress, Row, Table, number, sign, times
from bench.peers import PEERS
from coterie.methods.trials import RunningTrials

TRIALS = 32
LIMIT = 1.0
"""Seconds of processor time for a cell, the same for every method; pilots may take twice as long."""

CAP = 1_000_000
"""Measurements of a trial."""

SEED = 3000
QUICK = ("20,1,1, gap 2, 50 away, d=1", "M=12, K=11, d=3")
BOC = "BOC, β"
LEAST_BOC, LEAST_PEER, MOST_SPREAD = 5.0, 1.0, 20.0
"""Asked for: BOC's median over CROC's, the best peer's median over CROC's, CROC's longest run over its median."""


def rows(quick: bool, progress: Progress, share: Callable[[float], float]) -> list[Row]:
    """One row for each family. `share`: how much of the part is done when so much of the families is."""
    names = QUICK if quick else tuple(FAMILIES)
    trials, limit, cap = (8, 1.0, 20_000) if quick else (TRIALS, LIMIT, CAP)
    found = []
    for i, name in enumerate(names):
        found.append(on(FAMILIES[name], trials, limit, cap))
        text = f"{name}: CROC, median {median_text(found[-1], 'CROC') or 'takes too long'}"
        progress.done(text, share((i + 1) / len(names)))
    return found


def on(family: Family, trials: int, limit: float, cap: int) -> Row:
    """All methods on one family."""

    def ended_trials(method: str) -> Endings | None:
        running = RunningTrials()
        return many(trials_of(family.name, method, "proven", (DELTA,), running, cap, SEED), trials, limit, running)

    ended = {"CROC": ended_trials("croc"), BOC: ended_trials("boc"), **{name: ended_trials(name) for name in PEERS}}
    return compared(family, {label: cell(label, each, DELTA) for label, each in ended.items()}, cap)


def compared(family: Family, cells: dict[str, Row], cap: int) -> Row:
    """The row of a family: every method's cell, and the ratios to CROC."""
    for each in cells.values():
        each.pop("each", None)
    croc, boc = cells["CROC"], cells[BOC]
    peers = {name: cells[name]["median"] for name in PEERS if cells[name]["median"] is not None}
    best = min(peers, key=lambda name: peers[name], default=None)
    row: Row = {
        "family": family.name, "n_arms": family.instance.n_arms, "n_clusters": family.instance.n_clusters,
        "dim": family.instance.dim, "yardstick": yardstick(family.instance), "cap": cap,
        "trials": max(each["trials"] for each in cells.values()), "asked": family.median_at_most, "methods": cells,
        "best_peer": best, "boc_over_croc": None,
        "boc_at_least": boc["median"] is None, "peer_over_croc": None, "spread": None,
    }  # fmt: skip
    if croc["median"] is not None:
        if boc["trials"]:  # a median that is not known lies beyond the limit
            row["boc_over_croc"] = (boc["median"] or cap) / croc["median"]
        row["peer_over_croc"] = None if best is None else peers[best] / croc["median"]
        row["spread"] = None if croc["largest"] is None else croc["largest"] / croc["median"]
    row["met"] = croc["median"] is not None and (row["asked"] is None or croc["median"] <= row["asked"])
    return row


def is_family(row: Row) -> bool:
    return "family" in row


def median_text(row: Row, label: str) -> str | None:
    """The median, or that it lies beyond the limit; how many did not end, and of how many if not of all; p: pilots."""
    own = row["methods"][label]
    if not own["trials"]:
        return None
    text = number(own["median"]) if own["median"] is not None else f"> {row['cap']:,}"
    said = [f"{own['unfinished']} open"] if own["unfinished"] and own["median"] is not None else []
    said += [str(own["trials"])] if own["trials"] < row.get("trials", 0) and not own["pilots"] else []
    return text + (f" ({'; '.join(said)})" if said else "") + (" p" if own["pilots"] else "")


def _median(label: str) -> Callable[[Row], str | None]:
    return lambda row: median_text(row, label)


def _of_croc(key: str) -> Callable[[Row], Any]:
    return lambda row: row["methods"]["CROC"][key]


def _boc_ratio(row: Row) -> str | None:
    ratio = row["boc_over_croc"]
    return None if ratio is None else f"{'> ' if row['boc_at_least'] else ''}{times(ratio)}"


def headlines(found: list[Row]) -> list[Headline]:
    """The medians that were asked for, and the worst of all families."""
    lines = [
        Headline(f"{row['family']}: CROC, median", median_text(row, "CROC") or "–", f"≤ {row['asked']}", row["met"])
        for row in found
        if row["asked"] is not None
    ]
    if not found:
        return lines
    count = f"{len(found)} families"
    bounds: tuple[tuple[str, str, str, Callable[[float], bool]], ...] = (
        ("BOC with β over CROC, medians, least", "boc_over_croc", f"≥ {LEAST_BOC:g}×", lambda x: x >= LEAST_BOC),
        ("best peer over CROC, medians, least", "peer_over_croc", f"> {LEAST_PEER:g}×", lambda x: x > LEAST_PEER),
    )
    for what, key, asked, kept in bounds:
        known = [row for row in found if row[key] is not None]
        if known:
            least = min(known, key=lambda row: row[key])
            text = f"{count}: {what} ({least['family']})"
            lines.append(Headline(text, times(least[key]), asked, kept(least[key]) and len(known) == len(found)))
    runs = sum(row["methods"]["CROC"]["trials"] for row in found)
    unfinished = sum(row["methods"]["CROC"]["unfinished"] or 0 for row in found)
    late = sum(not row["methods"]["CROC"]["trials"] for row in found)
    text = f"{unfinished} of {runs:,}" + (f"; {late} too long" if late else "")
    lines.append(Headline(f"{count}: CROC, unfinished at {found[0]['cap']:,}", text, "0", not unfinished and not late))
    known = [row for row in found if row["spread"] is not None]
    if known:
        worst = max(known, key=lambda row: row["spread"])
        kept_within = worst["spread"] <= MOST_SPREAD and len(known) == len(found)
        text = f"{count}: CROC, longest run over the median, largest ({worst['family']})"
        lines.append(Headline(text, times(worst["spread"]), f"≤ {MOST_SPREAD:g}×", kept_within))
    return lines


TABLES = (
    Table(
        f"CROC on families of instances, δ = {DELTA:g}: up to {TRIALS} trials of at most {CAP:,} measurements, those "
        f"that fit into\n{LIMIT:g} s of processor time. Yardstick: D*·(log 1/δ + d/2) + M.",
        (
            Column("family", "family", left=True),
            Column("yardstick", "yardstick", number),
            Column("median", _of_croc("median"), number),
            Column("95 %", _of_croc("quantile95"), number),
            Column("largest", _of_croc("largest"), number),
            Column("/ median", "spread", times),
            Column("unfinished", _of_croc("unfinished")),
            Column("wrong", _of_croc("wrong")),
            Column("trials", _of_croc("trials")),
            Column("goal", lambda row: "" if row["asked"] is None else f"≤ {row['asked']} {sign(row['met'])}"),
        ),
        is_family,
    ),
    Table(
        "Beside them, medians: BOC with the proven threshold, the peers of bench/peers, and the best of these over "
        "CROC, all with\nthe same time and trials; in brackets how many trials if fewer fitted in. p: pilots, –: too "
        "long, open: unfinished.",
        (
            Column("family", "family", left=True),
            *(Column(label, _median(label)) for label in ("CROC", BOC, *PEERS)),
            Column("BOC / CROC", _boc_ratio),
            Column("best peer / CROC", "peer_over_croc", times),
        ),
        is_family,
    ),
)
