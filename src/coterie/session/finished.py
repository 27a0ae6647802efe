"""A run that has found the groups, as it was recorded: it needs no rule and no engine.

So a release with other rules shows, exports and verifies everything that was ever proven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from coterie.methods.contract import Decision, MethodRun, Pull
from coterie.methods.reports import Evidence, Weakest
from coterie.problem.checks import FloatArray, IntArray
from coterie.session.conversation import Conversation


def outcome_of(conversation: Conversation) -> dict[str, Any] | None:
    """Once `done`, what a later release needs to show and export the result; plain JSON."""
    run = conversation.run
    if not run.done:
        return None
    if isinstance(run, FinishedRun):
        return run.outcome
    assert run.guess is not None
    labels, centers = run.guess
    evidence = run.evidence()
    weakest = None if evidence.weakest is None else asdict(evidence.weakest)
    decisions = [decision for _, decision in conversation.decisions]
    return (
        {
            "t": run.t,
            "labels": labels.tolist(),
            "centers": centers.tolist() if conversation.settings.features is None else _sparse(centers),
            "pulls": run.pulls.tolist(),
            "evidence": {
                "statistic": _plain(evidence.statistic),
                "threshold": _plain(evidence.threshold),
                "weakest": None if weakest is None else {key: _plain(value) for key, value in weakest.items()},
            },
            "alarm": None if run.alarm is None else list(run.alarm),
            "certificate": run.certificate(decisions) if conversation.method.certifies else None,
            "partial": None,  # read from the log by now; release 0.1 needs the entry
        }
        | _plain_references(run)
        | ({} if run.confirmed is None else {"confirmed": list(run.confirmed)})
    )


def _plain_references(run: MethodRun) -> dict[str, Any]:
    """The reference items, and the items near a border, of groups that have them."""
    if run.references is None:
        return {}
    borders = {str(arm): [int(group) for group in groups] for arm, groups in run.borders.items()}
    return {"references": [int(arm) for arm in run.references], "borders": borders}


def _sparse(centers: FloatArray) -> dict[str, Any]:
    """Centers (K, d) as plain JSON: of the features that any group has results of, None where one has none."""
    there = np.flatnonzero(~np.isnan(centers).all(axis=0))
    rows = [[None if x != x else x for x in row] for row in centers[:, there].tolist()]
    return {"dim": int(centers.shape[1]), "features": there.tolist(), "values": rows}


def dense_centers(saved: Any) -> FloatArray:
    """(K, d) the centers of an outcome; with features NaN where a group has no results."""
    if not isinstance(saved, dict):
        return np.array(saved, dtype=np.float64)
    centers = np.full((len(saved["values"]), saved["dim"]), np.nan)
    centers[:, saved["features"]] = np.array(saved["values"], dtype=np.float64)
    return centers


def _plain(number: Any) -> Any:
    """A number as JSON has them: no infinity, no NaN."""
    return None if isinstance(number, float) and not math.isfinite(number) else number


class PastRun(MethodRun):
    """The run of a stage that is over, or of a record that has ended: it has no results, and nothing asks it."""

    def __init__(self, n_arms: int) -> None:
        self._n_arms = n_arms

    @property
    def done(self) -> bool:
        return False

    @property
    def t(self) -> int:
        return 0

    @property
    def pulls(self) -> IntArray:
        return np.zeros(self._n_arms, dtype=np.int64)

    @property
    def guess(self) -> None:
        return None

    def ask(self) -> Pull | None:
        raise AssertionError("this stage is over: nothing is asked or counted")

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        raise AssertionError("this stage is over: nothing is asked or counted")

    def evidence(self) -> Evidence:
        raise AssertionError("this stage is over: it has no evidence")


class FinishedRun(MethodRun):
    """A recorded outcome behind the contract of a run. Nothing is asked or counted any more."""

    def __init__(self, outcome: dict[str, Any]) -> None:
        self.outcome = outcome
        self._pulls = np.array(outcome["pulls"], dtype=np.int64)
        self._labels = np.array(outcome["labels"], dtype=np.int64)
        self._centers = dense_centers(outcome["centers"])

    @property
    def done(self) -> bool:
        return True

    @property
    def confirmed(self) -> tuple[int, int] | None:
        counted = self.outcome.get("confirmed")
        return None if counted is None else (int(counted[0]), int(counted[1]))

    @property
    def t(self) -> int:
        return int(self.outcome["t"])

    @property
    def pulls(self) -> IntArray:
        return self._pulls.copy()

    @property
    def guess(self) -> tuple[IntArray, FloatArray]:
        return self._labels.copy(), self._centers.copy()

    @property
    def alarm(self) -> tuple[int, ...] | None:
        arms = self.outcome["alarm"]
        return None if arms is None else tuple(arms)

    @property
    def references(self) -> tuple[int, ...] | None:
        arms = self.outcome.get("references")
        return None if arms is None else tuple(arms)

    @property
    def borders(self) -> Mapping[int, Sequence[int]]:
        return {int(arm): groups for arm, groups in self.outcome.get("borders", {}).items()}

    def forecast(self) -> float | None:
        return float(self.t)

    def cost_left(self) -> float | None:
        return 0.0

    def ask(self) -> Pull | None:
        return None

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        raise AssertionError("the groups are found: nothing counts any more")

    def evidence(self) -> Evidence:
        saved = self.outcome["evidence"]
        weakest = saved["weakest"]
        statistic, threshold = (math.inf if saved[k] is None else saved[k] for k in ("statistic", "threshold"))
        return Evidence(statistic, threshold, None if weakest is None else Weakest(**weakest))

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        certificate: dict[str, Any] | None = self.outcome["certificate"]
        return certificate
