"""What the engine behind a session knows, as named arrays: the one place of the recording that looks inside.

Names are those of the engine that the recording was made with (commit `OLD_ENGINE` of record.py). An engine with other
names gives what it has by `memory()`, and the tables `OLD_NAMES_CROC` and `OLD_NAMES_PAPER` say what each is called
here. `live_croc` and `live_paper` leave of it what has a meaning now: no slots of rounds that are over, no rows that no
result has reached. Whoever fills these tables may take any layout that `live_…` understands, or give the live parts.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

TABLES = frozenset({"base", "slope", "crest", "log_factorial", "price", "reserve"})
"""Of CROC's state: what follows from its size and the prices alone. Not recorded."""

LAYOUT = frozenset({
    "heap", "slot", "first_slot", "heap_of", "HEAPED", "round_first", "QUEUE_HEAD", "QUEUE_TAIL", "ENTRY_TAIL",
    "queued",
})  # fmt: skip
"""Where things lie, and marks that are zero outside plans. Not recorded: the order of heaps shows in the asks."""

WORK = frozenset({"scratch", "to_centers", "names", "taken"})
"""Work space in the state of the paper's methods. Not recorded, as is all of `Work` and `Forest`."""

NOT_EXPOSED: frozenset[str] = frozenset({
    # what a run is told at its beginning: of its family, its prices and δ
    "PRICED", "METRIC", "METRIC_SHAPE", "WINSORISED", "SHUFFLED", "ARM_SCALES", "FROM_ZERO", "POOLS_BY_GROWTH",
    "VARIANCE_BOUND", "LOG_INVERSE_DELTA", "LOG_FROZEN_SHARE", "BOUND_LEVEL",
    # of the last ask: `pop` returns it
    "ASKED_IN",
    # of the paper's methods: which one it is, its floor of exploration, a number that work space is built anew by
    "METHOD", "FLOOR", "PARTS",
})  # fmt: skip
"""Recorded names that the engine at hand does not have, each with a reason in the line above it: not compared."""

OLD_NAMES_CROC: dict[str, str] = {
    "arms.t": "T", "proof": "DONE", "queue.head": "QUEUE_HEAD", "queue.tail": "QUEUE_TAIL",
    "flight.open": "OPEN_ROUNDS", "flight.last": "ROUND", "flight.to_ask": "TO_ASK", "freezes": "FREEZES",
    "estimate.at": "ESTIMATED", "estimate.changed_at": "CHANGED", "estimate.left_group": "LEFT_GROUP",
    "queue.mode": "MODE", "arms.unseen": "UNSEEN", "certified_epoch": "CERTIFIED_EPOCH", "pairs.alarm": "ALARM",
    "plan.planned_at": "PLANNED", "heaps.fits": "HEAPED", "plan.n_candidates": "CANDIDATES",
    "arms.n_touched": "TOUCHED", "estimate.started_at": "STARTED", "flight.oldest": "OLDEST",
    "flight.tail": "ENTRY_TAIL", "flight.closed": "CLOSED", "arms.far": "FAR", "risk.split": "SPLIT",
    "risk.merged_a": "MERGED_A", "risk.merged_b": "MERGED_B", "risk.chance_a": "CHANCE_A", "risk.chance_b": "CHANCE_B",
    "metric.degrees": "DEGREES", "metric.measured_at": "MEASURED_AT", "plan.looked_at": "LOOKED",
    "arms.open_pulls": "OPEN_PULLS", "bound.residuals": "RESIDUALS", "bound.residuals_seen": "BOUND_RESIDUALS",
    "bound.at": "BOUNDED_AT",
    "pairs.level": "PAIR_LEVEL", "risk.total": "MISGROUPING_RISK", "plan.greedy_limit": "GREEDY_LIMIT",
    "risk.merge_margin": "MERGE_MARGIN", "risk.chance": "CHANCE", "risk.arms": "ARMS_RISK",
    "metric.far_share": "FAR_SHARE", "bound.trust": "BOUND_TRUST", "plan.greedy_spent": "GREEDY_SPENT",
    "pairs.bound": "settled_bound", "queue.arms": "queue", "queue.holds": "queued", "metric.to_units": "metric",
    "bound.squares": "residual_squares", "flight.entry_sums": "entry_sums", "flight.entry_scores": "entry_scores",
    "flight.bets": "round_bet", "flight.scores": "round_scores",
}  # fmt: skip
"""What a name of the engine's `memory()` of a CROC run is called here; others are called by their last part."""

_EPOCH_NAMES = {
    "frozen_at": "frozen_at", "frozen_number": "number", "level": "level", "frozen": "labels",
    "frozen_totals": "totals", "frozen_centers": "centers", "core": "core", "in_core": "in_core", "shared": "shared",
    "met_group": "against_group.met", "met_core": "against_core.met", "met_pair": "core_pairs.met",
    "weight_group": "against_group.weight", "weight_core": "against_core.weight", "weight_pair": "core_pairs.weight",
    "sum_group": "against_group.kept", "sum_core": "against_core.kept", "sum_pair": "core_pairs.kept",
    "last_group": "against_group.last", "last_core": "against_core.last", "last_pair": "core_pairs.last",
    "last_bound": "against_core.bound", "last_bound_pair": "core_pairs.bound",
}  # fmt: skip


def _old_croc(memory: Arrays) -> Arrays:
    """The memory of a native run of CROC by the old names."""
    found: Arrays = {}
    for name, value in memory.items():
        array = value if isinstance(value, np.ndarray) else np.array(value)[()]
        if name.startswith(("flight.rounds.", "flight.entries.")):
            _, what, part = name.split(".")
            found[f"{'round' if what == 'rounds' else 'entry'}_{part}"] = array
        elif not name.startswith(("epochs", "flight.rounds", "pairs.counts", "arms.alone", "bound.root")):
            found[OLD_NAMES_CROC.get(name, name.rsplit(".", 1)[-1])] = array
    found["ALONE"] = np.int64(memory["arms.alone"] + 1)
    found["root"] = np.full(min(found["residual_squares"].size, 1), memory["bound.root"])
    found["settled_pulls"] = np.stack([memory["pairs.counts.arm"], memory["pairs.counts.lead"]], axis=-1)
    for name, part in _EPOCH_NAMES.items():
        found[name] = np.stack([memory[f"epochs.{e}.{part}"] for e in range(memory["epochs"])])
    return found


OLD_NAMES_PAPER: dict[str, str] = {
    "t": "T", "unseen": "UNSEEN", "ready": "READY", "stale": "STALE", "pending": "PENDING", "certified": "CERTIFIED",
    "fresh": "FRESH", "maximin.cached": "CACHED", "maximin.since_cached": "SINCE_CACHED",
    "maximin.full_runs": "FULL_RUNS", "maximin.passes.used": "PASSES", "maximin.passes.whole_looks": "REPLAYED_PASSES",
    "allocation.active": "EDGES", "allocation.cold_solves": "COLD_SOLVES", "guess.since_measured": "SINCE_MEASURED",
    "guess.since_summed": "SINCE_SUMMED", "guess.degenerate": "DEGENERATE", "guess.log_sum": "LOG_SUM",
    "statistic.z1": "Z1", "statistic.z2": "Z2", "statistic.z": "Z", "guess.sums": "group_sums",
    "arms.touched.arms": "dirty", "arms.touched.inside": "is_dirty", "allocation.active.tail": "edge_from",
    "allocation.active.head": "edge_to",
}  # fmt: skip
"""… of a run of the paper's methods."""


def _old_paper(memory: Arrays) -> Arrays:
    """The memory of a native run of the paper's methods by the old names, as `live_paper` takes them."""
    part = "maximin.passes.pass"
    found: Arrays = {
        OLD_NAMES_PAPER.get(name, name.rsplit(".", 1)[-1]): np.asarray(value)
        for name, value in memory.items()
        if not name.startswith(part) and name not in ("levels.correct", "allocation.shaped")
    }
    found["DIRTY"] = np.int64(found["dirty"].size)
    passes = range(int(memory[part]))

    def of_passes(name: str) -> list[Any]:
        return [memory[f"{part}.{i}.{name}"] for i in passes]

    for name in ("labels", "totals", "changes", "margin", "quiet", "spent"):
        whole = name in ("labels", "changes", "spent")
        found[f"pass_{name}"] = np.array(of_passes(name), dtype=np.int64 if whole else np.float64)
    for name in ("reference", "centers", "sums"):
        found[f"pass_{name}"] = np.concatenate([*of_passes(name), np.zeros((0, found["centers"].shape[1]))])
    found["pass_listed"] = np.array(of_passes("close"), dtype=np.int64)
    most = max(found["pass_listed"], default=0)
    found["pass_close"] = np.zeros((len(passes), 2, most), dtype=np.int64)
    found["pass_half"] = np.zeros((len(passes), most))
    for i, n in enumerate(found["pass_listed"].tolist()):
        for place, name in enumerate(("arm", "label")):
            found["pass_close"][i, place, :n] = memory[f"{part}.{i}.close.{name}"]
        found["pass_half"][i, :n] = memory[f"{part}.{i}.close.half_margin"]
    return found


EPOCHS, FLIGHT, PREFIX_ROOM = 3, 64, 64

Arrays = dict[str, Any]


def state_of(session: Any) -> Arrays:
    """The live state of the run behind a session, by name; empty for a run that is finished."""
    return _of_run(session._conversation.run)


def _of_run(run: Any) -> Arrays:
    kind = type(run).__name__
    if kind == "ConfirmingRun":
        return {"extra": run._extra, "open": run._open} | _of_run(run.inner)
    if kind == "PresentArms":
        return _of_run(run.inner)
    if kind == "GuardedRun":
        return _of_run(run.method_run)
    if kind == "CrocMethodRun":
        return croc_state(run._run)
    if kind == "PaperMethodRun":
        return paper_state(run._run)
    if kind == "ShortlistRun":
        return _of_shortlist(run)
    if kind in ("ResolutionRun", "LinkageRun"):
        return _of_resolution(run._run)
    if kind == "FinishedRun":
        return {}
    raise TypeError(f"no state is known of a {kind}")


def _of_shortlist(run: Any) -> Arrays:
    found = {f"list.{name}": getattr(run, f"_{name}") for name in ("differ", "pulls", "sums", "under_way")}
    if run._list is None:
        return found | croc_state(run._croc._run)
    one = run._list
    found |= {f"list.{name}": getattr(one, name) for name in ("listed", "alive", "log_e", "struck_by", "possible")}
    return found | {"list.rounds": np.array([one.composed, one.used])}


def _of_resolution(run: Any) -> Arrays:
    tally = run.tally
    found = {"tally.counts": tally.counts, "tally.pending": tally.pending, "tally.means": tally.means}
    if run.epoch is not None:
        found |= {f"epoch.{name}": getattr(run.epoch, name) for name in ("labels", "count", "met_at", "pending")}
    return found


def croc_state(run: Any) -> Arrays:
    """Of CROC's engine run."""
    return live_croc(_old_croc(run.memory()))


def live_croc(raw: Arrays) -> Arrays:
    """Of CROC's arrays by their old names: those that are compared, as far as they have a meaning now."""
    s = {name: array for name, array in raw.items() if name not in TABLES | LAYOUT}
    n_epochs = min(int(s["FREEZES"]), EPOCHS)
    for name in s:
        if name.startswith(("frozen", "core", "in_core", "met_", "weight_", "sum_", "last_", "shared", "level")):
            s[name] = s[name][:n_epochs]
    most = int(s["pulls"].max())
    room = s["prefixes"].shape[0] - 1
    s["prefixes"] = s["prefixes"][: min(room, most) + 1]
    if most > room > 0:
        steps = np.arange(room // 8)
        counts = np.concatenate([(room + 8 * steps) * 2**j for j in range(24)])
        s["grid"] = s["grid"][: int(np.searchsorted(counts, most, side="right"))]
    else:
        s["grid"] = s["grid"][:0]
    s["queue"] = s["queue"][int(raw["QUEUE_HEAD"]) : int(raw["QUEUE_TAIL"])]
    s["candidates"] = s["candidates"][: max(int(s["CANDIDATES"]), 0)]
    s["touched"] = s["touched"][: max(int(s["TOUCHED"]), 0)]
    numbers = np.arange(int(s["OLDEST"]), int(s["ROUND"]) + 1) % FLIGHT
    first, size = raw["round_first"][numbers], s["round_size"][numbers]
    entries = np.concatenate([np.arange(a, a + n) for a, n in zip(first, size, strict=True)] or [numbers])
    for name in s:
        if name.startswith("round_"):
            s[name] = s[name][numbers]
        elif name.startswith("entry_"):
            s[name] = s[name][entries]
    s["round_cursor"] = s["round_cursor"] - first
    return s


def paper_state(run: Any) -> Arrays:
    """Of an engine run of the paper's methods."""
    return live_paper(_old_paper(run.memory()))


def live_paper(raw: Arrays) -> Arrays:
    """Of the arrays of the paper's methods by their old names: those that are compared, as far as they mean something.

    The cached run of Alg. 2 is left out while it does not match the data.
    """
    s = {name: array for name, array in raw.items() if name not in LAYOUT | WORK}
    passes = min(int(s["PASSES"]), s["pass_changes"].size) if int(s["CACHED"]) == 1 else 0
    k = s["totals"].size
    for name in s:
        if name in ("pass_reference", "pass_centers", "pass_sums"):
            s[name] = s[name][: passes * k]
        elif name.startswith("pass_"):
            s[name] = s[name][:passes]
    listed = s["pass_listed"].tolist()
    s["pass_close"] = np.concatenate([s["pass_close"][p, :, :n] for p, n in enumerate(listed)] or [np.zeros((2, 0))], 1)
    s["pass_half"] = np.concatenate([s["pass_half"][p, :n] for p, n in enumerate(listed)] or [np.zeros(0)])
    if passes == 0:
        s["to_starts"] = s["to_starts"][:0]
    s["dirty"] = s["dirty"][: int(s["DIRTY"])]
    for name in ("edge_from", "edge_to", "multiplier"):
        s[name] = s[name][: int(s["EDGES"])]
    return s


class HandedIn:
    """A CROC run with a family of evidence from outside the engine: the tests' own, beside the package at hand."""

    def __init__(self, family: str, shape: tuple[int, int, int], log_inverse_delta: float) -> None:
        sys.path.append(str(Path(__file__).parents[1] / "imported"))  # where record.py is run by itself
        families = importlib.import_module("handed_in_families")
        sizes = shape[1:] if family == "exchangeable" else ()
        run_class = importlib.import_module("coterie.methods.croc.run").CrocRun
        self.run = run_class(*shape, log_inverse_delta, getattr(families, family)(*sizes))

    def ask(self) -> tuple[int, int] | None:
        """The next arm and its round; None once all is proven."""
        found = self.run.pop()
        return None if found is None else (int(found[0]), int(found[1]))

    def tell(self, arm: int, x: Any, of_round: int) -> None:
        """A result that was asked for."""
        self.run.absorb(arm, x, of_round, True)

    def give_up(self, arm: int, of_round: int) -> None:
        """An ask whose result will not come."""
        self.run.give_up(arm, of_round)

    @property
    def done(self) -> bool:
        """Whether the groups are proven."""
        return bool(self.run.done)

    @property
    def labels(self) -> Any:
        """The groups."""
        return self.run.labels

    def state(self) -> Arrays:
        """As `state_of` gives it."""
        return croc_state(self.run)
