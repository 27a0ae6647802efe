"""Runs that measure features apart, played by hand: their logs and certificates, by formulas one test at a time.

Nothing here looks for features or groups: a right candidate is frozen, and rounds of random asks follow until all of
its tests are met.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coterie.certificate.beside import stated_beside
from coterie.problem.families import noise_of
from coterie.problem.features import Features
from coterie.problem.sentences import assumption_in_words

Rows = list[tuple[int, int, dict[int, float]]]  # arm, panel, value of each feature


def log_e(rows_of_rounds: list[Rows], bets: dict[int, Any], own: set[int], pool: set[int], k: tuple[int, int]) -> float:
    """FEATURES.md, section 2, for independent features: `bets` of feature → (round it joined, centers, weights)."""
    total = 0.0
    for feature, (joined, centers, weights) in bets.items():
        n = s = 0.0
        for number, rows in enumerate(rows_of_rounds):
            if number < joined:
                continue
            for panel in {panel for _, panel, _ in rows}:
                sides = [
                    [x[feature] for arm, of, x in rows if of == panel and arm in side and feature in x]
                    for side in (own, pool)
                ]
                if all(sides):
                    v = 1.0 / len(sides[0]) + 1.0 / len(sides[1])
                    n += 1.0 / v
                    s += (sum(sides[0]) / len(sides[0]) - sum(sides[1]) / len(sides[1])) / v
        theta, square = centers[k[0]] - centers[k[1]], 1.0 / weights[k[0]] + 1.0 / weights[k[1]]
        # The integral of exp(θs − θ²n/2) over θ ~ N(theta, square).
        total += 0.5 * (s + theta / square) ** 2 / (n + 1.0 / square) - 0.5 * theta**2 / square
        total -= 0.5 * math.log1p(n * square)
    return total


def tests_of(labels: list[int], cores: list[list[int]], level: float) -> list[tuple[str, int, int, set[int], float]]:
    """Each test: its kind, the arm, the group or arm it is against, the arms of its pool, its level."""
    made: list[tuple[str, int, int, set[int], float]] = []
    for arm, label in enumerate(labels):
        for k, core in enumerate(cores):
            if k != label:
                inside = arm in cores[label]
                made.append(("core_tests", arm, k, set(core), level if inside else level / 2.0))
                if not inside:
                    group = {other for other, of in enumerate(labels) if of == k}
                    made.append(("group_tests", arm, k, group, level))
    for p, k in enumerate(labels):
        for q, other in enumerate(labels):
            if k > other and p in cores[k] and q in cores[other] and min(len(cores[k]), len(cores[other])) > 1:
                made.append(("pair_tests", p, q, {q}, level / 2.0))
    return made


def played(
    seed: int = 0, noise: Any = 1.0, panels: Any = None, holes: bool = False, n_arms: int = 6, delta: float = 0.05
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A certificate and the log that proves it: three groups of items that differ in some of eight features."""
    rng, n_clusters, names = np.random.default_rng(seed), 3, [f"f{k}" for k in range(8)]
    features = Features.of(names, panels=panels, holes="at random" if holes else None)
    model = noise_of(noise, 8)
    labels = [arm % n_clusters for arm in range(n_arms)]
    sds = np.broadcast_to(np.asarray(noise, dtype=float), 8)
    means = np.zeros((n_clusters, 8))
    means[1, 2], means[2, 5], means[1:, 6] = 3.0, -3.0, 2.0

    def measure(arm: int, panel: int) -> list[float | None]:
        members = list(features.features_of(panel))
        x: list[float | None] = ((means[labels[arm], members] + rng.normal(size=len(members))) * sds[members]).tolist()
        if holes:
            x = [None if rng.random() < 0.2 else value for value in x]
        return x if any(value is not None for value in x) else measure(arm, panel)

    events: list[dict[str, Any]] = [{"event": "log", "format": 2, "features": features.to_json()}]
    for _ in range(40):  # the search
        arm, panel = int(rng.integers(n_arms)), int(rng.integers(features.n_panels))
        events.append({"event": "result", "arm": arm, "panel": panel, "round": 0, "values": measure(arm, panel)})
    cores = [[arm for arm, label in enumerate(labels) if label == k][:2] for k in range(n_clusters)]
    cores[0] = cores[0][:1]

    def bet(feature: int) -> dict[str, Any]:
        return {"feature": feature, "centers": means[:, feature].tolist(), "weights": [4.0, 3.0, 5.0]}

    share, first = 0.8, [bet(2), bet(6)]
    level = math.log(1.0 / (delta * share))
    freeze = {"event": "freeze", "epoch": 0, "labels": labels, "cores": cores, "features": first}
    frozen_at = len(events) - 1  # the first event is no result
    events.append(freeze)
    bets = {entry["feature"]: (0, entry["centers"], entry["weights"]) for entry in first}
    rounds: list[Rows] = []
    open_tests, met = tests_of(labels, cores, level), dict[str, list[list[Any]]]()
    while open_tests:
        number = len(rounds)
        asks = {
            (arm, int(rng.choice(features.n_panels))): int(rng.integers(1, 4))
            for arm in range(n_arms) for _ in range(4)
        }  # fmt: skip
        made: dict[str, Any] = {"event": "round", "round": number + 1, "epoch": 0}
        made["asks"] = [[arm, panel, count] for (arm, panel), count in asks.items()]
        if number == 1:
            made["joins"] = [bet(5)]
            bets[5] = (1, made["joins"][0]["centers"], made["joins"][0]["weights"])
        events.append(made)
        rows: Rows = []
        pulls = [ask for ask, count in asks.items() for _ in range(count)]
        for place in rng.permutation(len(pulls)).tolist():
            arm, panel = pulls[place]
            values = measure(arm, panel)
            events.append({"event": "result", "arm": arm, "panel": panel, "round": number + 1, "values": values})
            known = zip(features.features_of(panel), values, strict=True)
            rows.append((arm, panel, {feature: x / float(sds[feature]) for feature, x in known if x is not None}))
        rounds.append(rows)
        still = []
        for test in open_tests:
            kind, arm, other, pool, needed = test
            k = labels[other] if kind == "pair_tests" else other
            evidence = log_e(rounds, bets, {arm}, pool, (labels[arm], k))
            if evidence >= needed:
                met.setdefault(kind, []).append([arm, other, evidence, number + 1])
            else:
                still.append(test)
        open_tests = still
    certificate: dict[str, Any] = {
        "format": "coterie-certificate-2", "n_arms": n_arms, "n_clusters": n_clusters, "dim": 8,
        "features": features.to_json(), "delta": delta, "log_inverse_delta": -math.log(delta), "alpha": 0.0,
        "equal_pairs": (n_arms - 2) * (n_arms - 3) // 2, "pair_level": None, "prefix_room": None,
        "t": sum(event["event"] == "result" for event in events), "labels": labels, "by": "epoch",
        "noise": model.to_json(),
        "assumes": assumption_in_words(model, "groups", holes=holes),
        "alarm": None, "confirm": None, "homogeneity": None,
        "epochs": [{"number": 0, "frozen_at": frozen_at, "share": share, "level": level, "labels": labels,
                    "cores": cores}],
        "representatives": [core[0] for core in cores],
        "epoch": {"number": 0, "rounds": list(range(1, len(rounds) + 1)), "by_pairs": [],
                  **{kind: met.get(kind, []) for kind in ("group_tests", "core_tests", "pair_tests")}},
    }  # fmt: skip
    return certificate | stated_beside(certificate, events), events
