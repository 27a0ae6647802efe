"""The certificate of a run that measures features apart: what each test of the last candidate reached, and when."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from coterie.methods.contract import Decision
from coterie.methods.features.evidence import CORE, GROUP, PAIR

if TYPE_CHECKING:
    from coterie.methods.features.method import FeatureRun


def certificate_of(run: FeatureRun, decisions: list[Decision]) -> dict[str, Any] | None:
    """The proof as plain data, in the format of other proofs of K groups; None before there is one."""
    epoch, settings = run.epoch, run.settings
    if not run.done or epoch is None:
        return None
    tests, n_arms, n_clusters = epoch.tests, settings.n_arms, int(settings.n_clusters or 0)
    labels = epoch.labels.tolist()

    def rows(kind: int) -> list[list[Any]]:
        chosen = tests.kind == kind
        others = tests.other if kind == PAIR else tests.against
        columns = tests.arm[chosen], others[chosen], epoch.evidence[chosen], epoch.met_at[chosen]
        return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    fields = ("frozen_at", "share", "level", "labels", "cores")
    return {
        "format": "coterie-certificate-2",
        "n_arms": n_arms,
        "n_clusters": n_clusters,
        "dim": run.features.dim,
        "features": run.features.to_json(),
        "delta": math.exp(-run.log_inverse_delta),
        "log_inverse_delta": run.log_inverse_delta,
        "alpha": 0.0,
        "equal_pairs": (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2,
        "pair_level": None,
        "prefix_room": None,
        "t": run.t,
        "epochs": [
            {"number": made["epoch"]} | {name: made[name] for name in fields}
            for made in decisions
            if made["event"] == "freeze"
        ],
        "labels": labels,
        "by": "epoch",
        "representatives": [core[0] for core in epoch.cores],
        "epoch": {
            "number": epoch.number,
            "rounds": list(epoch.rounds),
            "group_tests": rows(GROUP),
            "core_tests": rows(CORE),
            "pair_tests": rows(PAIR),
            "by_pairs": [],
        },
    }
