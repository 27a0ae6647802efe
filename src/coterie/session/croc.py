"""The driver of CROC: results count in the order in which they were asked for, and freezes and rounds are events.

"The s-th measurement of an arm" must not depend on values (docs/CROC.md, "The order of results"): a result waits until
every earlier ask for its arm is answered or given up. A result that nobody asked for takes its place on arrival.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.state import ALPHA, CORE_ROOM, share_of_epoch
from coterie.problem.checks import FloatArray, IntArray
from coterie.session.evidence import Evidence, Partial, Weakest


@dataclass
class _Place:
    """A place in an arm's line: an ask, or a result that nobody asked for."""

    ticket: int | None
    of_round: int
    row: int = -1
    value: FloatArray | None = None


class CrocDriver:
    """CROC at work."""

    def __init__(self, shape: tuple[int, int, int], log_inverse_delta: float) -> None:
        self._run = CrocRun(*shape, log_inverse_delta)
        self._shape, self._log_inverse_delta = shape, log_inverse_delta
        self._lines: dict[int, deque[_Place]] = {}
        self._places: dict[int, _Place] = {}
        self.events: list[dict[str, Any]] = []
        self.history: list[list[Any]] = []
        self._epochs: list[dict[str, Any]] = []
        self._rounds = 0

    def _note(self, what: str, *more: int) -> None:
        """Keep what was done, in order, as runs of the same: asks, tells, and what was given up."""
        if more or not self.history or self.history[-1][0] != what:
            self.history.append([what, *(more or (1,))])
        else:
            self.history[-1][1] += 1

    def ask(self, ticket: int) -> int | None:
        arm, of_round = self._run.pop()
        self._note("ask")
        self._note_events()
        if self.done:  # results since the last plan were enough
            self._run.give_up(arm, of_round)
            return None
        self._places[ticket] = place = _Place(ticket, of_round)
        self._lines.setdefault(arm, deque()).append(place)
        return arm

    def tell(self, tickets: list[int | None], arms: list[int], white: FloatArray, rows: range) -> None:
        for ticket, arm, x, row in zip(tickets, arms, white, rows, strict=True):
            if self.done:
                return
            self._note("tell")
            if ticket is None:
                place = _Place(None, 0)
                self._lines.setdefault(arm, deque()).append(place)
            else:
                place = self._places.pop(ticket)
            place.row, place.value = row, x
            self._release(arm)

    def forget(self, ticket: int, arm: int) -> None:
        self._note("forget", ticket)
        if self.done:
            return
        place = self._places.pop(ticket)
        self._lines[arm].remove(place)
        self._run.give_up(arm, place.of_round)
        self._release(arm)

    def _release(self, arm: int) -> None:
        """Count the results at the head of the arm's line."""
        line = self._lines[arm]
        while line and line[0].value is not None and not self.done:
            place = line.popleft()
            assert place.value is not None
            self.events.append({"event": "result", "arm": arm, "round": place.of_round, "row": place.row})
            self._run.absorb(arm, place.value, place.of_round, place.ticket is not None)
            self._note_events()

    def _note_events(self) -> None:
        """A freeze and a round are events of the log, written before the next measurement is asked for."""
        run, s = self._run, self._run.state
        if run.freezes > len(self._epochs):
            slot = len(self._epochs) % len(s.level)
            cores = s.core[slot].reshape(-1, CORE_ROOM)
            epoch = {
                "number": len(self._epochs),
                "frozen_at": int(s.frozen_at[slot]),
                "share": share_of_epoch(len(self._epochs)),
                "level": float(s.level[slot]),
                "labels": s.frozen[slot].tolist(),
                "cores": [[int(arm) for arm in core if arm >= 0] for core in cores],
            }
            self._epochs.append(epoch)
            self.events.append(
                {"event": "freeze", "epoch": epoch["number"], "labels": epoch["labels"], "cores": epoch["cores"]}
            )
        if run.round > self._rounds:
            self._rounds = run.round
            pulls = [[int(m), int(s.round_pulls[m])] for m in np.flatnonzero(s.round_pulls)]
            number = int(s.frozen_number[run.open_epoch])
            self.events.append({"event": "round", "round": run.round, "epoch": number, "pulls": pulls})

    # What is known.

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def t(self) -> int:
        return self._run.t

    @property
    def pulls(self) -> IntArray:
        pulls: IntArray = self._run.state.pulls.copy()
        return pulls

    @property
    def waiting(self) -> int:
        """Results that wait for an earlier ask of their arm."""
        return sum(place.value is not None for line in self._lines.values() for place in line)

    @property
    def alarm(self) -> int | None:
        return self._run.alarm

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return (self._run.state.labels, self._run.state.centers) if self._run.ready else None

    def _open_tests(self) -> list[tuple[float, float, int, int, int | None]]:
        """(evidence, level, arm, group, against) of tests: the open epoch's unmet ones, or the unmet pairs."""
        s = self._run.state
        found: list[tuple[float, float, int, int, int | None]] = []
        slot = self._run.matching_epoch
        if slot >= 0:
            for test in self._present_tests(slot):
                if not test["met"]:
                    found.append((test["evidence"], test["level"], test["arm"], test["group"], test["against"]))
        if not found:
            other = np.arange(self._shape[1])[None] != s.labels[:, None]
            unmet = other & (s.settled == 0)
            for m, k in np.argwhere(unmet if unmet.any() else other):  # all met: the next plan ends the run
                lead = int(s.representative[k])
                found.append((float(s.evidence[m, k]), self._run.pair_level, int(m), int(k), lead))
        return found

    def evidence(self) -> Evidence:
        if not self._run.ready or self.alarm is not None:  # with K refuted, no test leads to a proof
            return Evidence(0.0, self._run.pair_level, None)
        if self.done:
            tests = [(t["evidence"], t["level"], t["arm"], t["group"], t["against"]) for t in self._met_tests()]
            value, level, arm, group, against = min(tests, key=lambda test: test[0] - test[1])
            return Evidence(value, level, Weakest(arm, group, value, level, against, 0.0))
        # With several workers all pairs may be settled before the plan is made anew: then the weakest of those.
        tests = self._open_tests() or [
            (t["evidence"], t["level"], t["arm"], t["group"], t["against"]) for t in self._settled_pairs()
        ]
        value, level, arm, group, against = max(tests, key=lambda test: test[1] - test[0])
        value = max(value, 0.0)
        return Evidence(value, level, Weakest(arm, group, value, level, against, self._run.pulls_left()))

    def partial(self, labels: IntArray | None) -> Partial:
        """What the pairs from the start have settled so far."""
        s = self._run.state
        if not self._run.ready:
            return Partial((), (), None, (), tuple(range(self._shape[0])))
        leads = [int(arm) for arm in s.representative]
        differ = tuple((int(m), leads[k]) for m, k in np.argwhere(s.settled == 1))
        apart = all(s.settled[leads[k], j] == 1 for k in range(len(leads)) for j in range(len(leads)) if j != k)
        own = s.labels
        met = (s.settled == 1).sum(axis=1) - s.settled[np.arange(self._shape[0]), own]
        sure = (met == self._shape[1] - 1) & apart
        arms = np.arange(self._shape[0])
        return Partial(tuple(leads), differ, labels, tuple(arms[sure].tolist()), tuple(arms[~sure].tolist()))

    # The certificate.

    def _frozen_tests(self, slot: int) -> list[dict[str, Any]]:
        """Every test of an epoch with its evidence, its level and the round at which it was met."""
        s = self._run.state
        labels, core = s.frozen[slot], s.in_core[slot] == 1
        b = float(s.level[slot])
        tests: list[dict[str, Any]] = []
        for m in range(self._shape[0]):
            for k in range(self._shape[1]):
                if k == labels[m]:
                    continue
                lead = int(s.core[slot, k * CORE_ROOM])
                kinds = [("core", s.weight_core, s.sum_core, s.met_core, s.last_core, b if core[m] else b / 2)]
                if not core[m]:
                    kinds.append(("group", s.weight_group, s.sum_group, s.met_group, s.last_group, b))
                for kind, weight, total, met, last, level in kinds:
                    place = (slot, m, k)
                    row = {"kind": kind, "arm": m, "group": k, "against": lead if kind == "core" else None}
                    if met[place] == 1 and last[place] < 0:
                        counts = -int(s.last_core[place]), -int(s.last_group[place])
                        row |= {"kind": "pair", "against": lead, "counts": counts, "level": self._run.pair_level}
                        row["evidence"] = self._run.pair_evidence(m, lead, *counts)
                    else:
                        value = self._directed(slot, weight[place], total[place], int(labels[m]), k)
                        row |= {"evidence": value, "level": level, "round": int(last[place])}
                    tests.append(row | {"met": bool(met[place])})
        tests += self._core_pair_tests(slot, b)
        return tests

    def _present_tests(self, slot: int) -> list[dict[str, Any]]:
        """The same for an epoch whose candidate is the estimate, with groups numbered as they are now."""
        s = self._run.state
        now = s.labels[s.core[slot, ::CORE_ROOM]]
        return [test | {"group": int(now[test["group"]])} for test in self._frozen_tests(slot)]

    def _core_pair_tests(self, slot: int, b: float) -> list[dict[str, Any]]:
        s = self._run.state
        core = s.core[slot].reshape(-1, CORE_ROOM)
        tests: list[dict[str, Any]] = []
        for i in range(core.size):
            for j in range(i // CORE_ROOM * CORE_ROOM):
                p, q = int(core.flat[i]), int(core.flat[j])
                k, h = i // CORE_ROOM, j // CORE_ROOM
                if p < 0 or q < 0 or core[k, 1] < 0 or core[h, 1] < 0:
                    continue
                row: dict[str, Any] = {"arm": p, "group": h, "against": q, "met": bool(s.met_pair[slot, i, j])}
                if row["met"] and s.last_pair[slot, i, j] < 0:
                    counts = -int(s.last_pair[slot, i, j]), -int(s.last_pair[slot, j, i])
                    row |= {"kind": "pair", "counts": counts, "level": self._run.pair_level}
                    row["evidence"] = self._run.pair_evidence(p, q, *counts)
                else:
                    value = self._directed(slot, s.weight_pair[slot, i, j], s.sum_pair[slot, i, j], k, h)
                    row |= {"kind": "cores", "evidence": value, "level": b / 2, "round": int(s.last_pair[slot, i, j])}
                tests.append(row)
        return tests

    def _directed(self, slot: int, weight: float, total: FloatArray, home: int, k: int) -> float:
        if weight == 0.0:
            return 0.0
        s = self._run.state
        spread = 1.0 / s.frozen_totals[slot, home] + 1.0 / s.frozen_totals[slot, k]
        theta = s.frozen_centers[slot, home] - s.frozen_centers[slot, k]
        growth = 1.0 + weight * spread
        moved = theta + spread * total
        gain = float(moved @ moved) / growth - float(theta @ theta)
        return float(-0.5 * theta.size * math.log(growth) + gain / (2.0 * spread))

    def _met_tests(self) -> list[dict[str, Any]]:
        return self._settled_pairs() if self._run.by_pairs else self._frozen_tests(self._run.epoch)

    def _settled_pairs(self) -> list[dict[str, Any]]:
        s = self._run.state
        return [
            {
                "arm": m,
                "group": k,
                "against": int(s.representative[k]),
                "evidence": float(s.evidence[m, k]),
                "level": self._run.pair_level,
            }
            for m in range(self._shape[0])
            for k in range(self._shape[1])
            if k != s.labels[m]
        ]

    def certificate(self) -> dict[str, Any]:
        """The proof as plain data (docs/CROC.md, "The certificate"); `coterie.verify` re-checks it from the log."""
        s, run = self._run.state, self._run
        n_arms, n_clusters, dim = self._shape
        found: dict[str, Any] = {
            "format": "coterie-certificate-1",
            "n_arms": n_arms,
            "n_clusters": n_clusters,
            "dim": dim,
            "delta": math.exp(-self._log_inverse_delta),
            "log_inverse_delta": self._log_inverse_delta,
            "alpha": ALPHA,
            "equal_pairs": (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2,
            "pair_level": run.pair_level,
            "prefix_room": s.prefixes.shape[1] - 1,
            "t": run.t,
            "epochs": self._epochs,
        }
        if run.by_pairs:
            own = np.arange(n_clusters)[None] == s.labels[:, None]

            def listed(values: Any) -> list[list[Any]]:
                return [
                    [None if mine else value for value, mine in zip(row, skip, strict=True)]
                    for row, skip in zip(values.tolist(), own, strict=True)
                ]

            return found | {
                "labels": s.labels.tolist(),
                "by": "pairs",
                "representatives": s.representative.tolist(),
                "pairs": {
                    "evidence": listed(s.evidence),
                    "pulls_arm": listed(s.settled_pulls[:, :, 0]),
                    "pulls_representative": listed(s.settled_pulls[:, :, 1]),
                },
            }
        number = int(s.frozen_number[run.epoch])
        tests = self._frozen_tests(run.epoch)
        rounds = [event["round"] for event in self.events if event["event"] == "round" and event["epoch"] == number]
        pairs = {
            (test["arm"], test["against"]): [test["arm"], test["against"], test["evidence"], *test["counts"]]
            for test in tests
            if test["kind"] == "pair"
        }
        of_kind = {
            name: [[t["arm"], t["against"] if kind == "cores" else t["group"], t["evidence"], t["round"]]
                   for t in tests if t["kind"] == kind]
            for name, kind in (("group_tests", "group"), ("core_tests", "core"), ("pair_tests", "cores"))
        }  # fmt: skip
        return found | {
            "labels": s.frozen[run.epoch].tolist(),
            "by": "epoch",
            "representatives": [core[0] for core in self._epochs[number]["cores"]],
            "epoch": {"number": number, "rounds": rounds, **of_kind, "by_pairs": list(pairs.values())},
        }
