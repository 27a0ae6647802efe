"""Logs and certificates of runs that measure features apart, from the method itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.certificate.beside import stated_beside
from coterie.methods.features.method import FeatureRun
from coterie.problem.sentences import assumption_in_words
from coterie.problem.settings import Settings

STATED = ("frozen_at", "share", "level")
"""Of a freeze: what follows from its place and number."""


def proof_of(
    noise: Any, seed: int = 0, panels: Any = None, holes: float = 0.0, gap: float = 5.0, n_arms: int = 8, d: int = 12
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A certificate and its log: two groups that differ in a quarter of the features; `holes`: the share missing."""
    rng, names = np.random.default_rng(seed), [f"f{k}" for k in range(d)]
    stated: dict[str, Any] = {"features": names, "panels": panels, "holes": "at random" if holes else None}
    settings = Settings.of(n_arms, 2, delta=0.05, noise=noise, **stated)
    features = settings.features
    assert features is not None
    labels, told = np.arange(n_arms) % 2, np.arange(d) % 4 == 0
    run = FeatureRun(settings)
    events: list[dict[str, Any]] = [{"event": "log", "format": 2, "features": features.to_json()}]
    decisions: list[dict[str, Any]] = []
    while True:
        pull = run.ask()
        made = run.new_decisions()
        decisions += made
        events += [{key: value for key, value in entry.items() if key not in STATED} for entry in made]
        if pull is None:
            break
        members = np.array(features.features_of(pull.panel))
        shift = (labels[pull.arm] == 1) & told[members]
        if settings.noise.kind == "counts":
            x = rng.binomial(20, np.where(shift, 0.9, 0.1)).astype(float)
        elif settings.noise.kind == "bounded":
            x = np.where(shift, 0.9, 0.1) + rng.uniform(-0.1, 0.1, members.size)
        else:
            x = gap * shift + rng.normal(size=members.size)
        x[1:][rng.random(members.size - 1) < holes] = np.nan
        values = [None if value != value else value for value in x.tolist()]
        events.append({"event": "result", "arm": pull.arm, "panel": pull.panel, "round": pull.round, "values": values})
        run.count_panel(pull.arm, pull.panel, x, pull.round, True)
    proof = run.certificate(decisions)
    assert proof is not None
    beside: dict[str, Any] = {
        "delta": settings.delta, "noise": settings.noise.to_json(), "alarm": None, "confirm": None, "homogeneity": None,
        "assumes": assumption_in_words(settings.noise, "groups", holes=holes > 0.0),
    }  # fmt: skip
    return proof | beside | stated_beside(proof | beside, events), events
