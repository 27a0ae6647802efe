"""Certificates with their logs: made by hand from plain formulas, of real runs, and kept ones. Shared by the tests.

`assets` holds certificates of release 0.2, which every later release must verify.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import plain_certificates
import pytest

import coterie
from coterie.certificate import read_certificate, read_log
from coterie.evidence.pairs import directed_log, pair_evidence

Certificate = dict[str, Any]
Events = list[dict[str, Any]]

# A plain generator: known labels, N pulls of each arm, freezes, then rounds in which every arm is pulled once.

LABELS = [0, 1, 0, 2, 0, 1, 0, 1, 1, 2, 1, 0]
CENTERS = np.array([[0.0, 0.0], [1.8, 0.0], [0.0, 9.0]])
CORES = [[0, 2, 4], [1, 5], [3, 9]]
ROOM = 64


def head(delta: float, labels: list[int], by: str, t: int, epochs: list[dict[str, Any]]) -> Certificate:
    m, k = len(labels), max(labels) + 1
    pairs = (m - k + 1) * (m - k) // 2
    return {
        "format": "coterie-certificate-2",
        "n_arms": m,
        "n_clusters": k,
        "dim": 2,
        "delta": delta,
        "log_inverse_delta": -math.log(delta),
        "alpha": 0.2,
        "equal_pairs": pairs,
        "pair_level": math.log(pairs / (0.2 * delta)),
        "prefix_room": ROOM,
        "noise": None,
        "t": t,
        "labels": labels,
        "by": by,
        "representatives": [labels.index(g) for g in range(k)],
        "epochs": epochs,
    }


def stacks_of(events: Events) -> dict[int, list[list[float]]]:
    stacks: dict[int, list[list[float]]] = defaultdict(list)
    for event in events:
        if event["event"] == "result":
            stacks[event["arm"]].append(event["values"])
    return stacks


def made_by_pairs() -> tuple[Certificate, Events]:
    rng = np.random.default_rng(1)
    events: Events = []
    for s in range(14):
        for arm, label in enumerate(LABELS):
            if s < 9 or arm in (0, 1, 3):  # representatives are measured more
                values = (CENTERS[label] * 2.2 + rng.normal(size=2)).tolist()
                events.append({"event": "result", "arm": arm, "round": 0, "values": values})
    t = len(events)
    claim = head(0.1, LABELS, "pairs", t, [])
    stacks = stacks_of(events)
    table: dict[str, list[list[Any]]] = {"evidence": [], "pulls_arm": [], "pulls_representative": []}
    for arm, label in enumerate(LABELS):
        for row in table.values():
            row.append([None] * 3)
        for k, lead in enumerate(claim["representatives"]):
            if k != label:
                table["evidence"][arm][k] = pair_evidence(stacks[arm], stacks[lead], prefix_room=ROOM)
                table["pulls_arm"][arm][k] = len(stacks[arm])
                table["pulls_representative"][arm][k] = len(stacks[lead])
    return claim | {"pairs": table}, events


class Rounds:
    """A log of freezes and rounds in the making."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(2)
        self.events: Events = []
        self.epochs: list[dict[str, Any]] = []

    @property
    def t(self) -> int:
        return sum(event["event"] == "result" for event in self.events)

    def pull(self, arm: int, number: int) -> None:
        values = (CENTERS[LABELS[arm]] + self.rng.normal(size=2)).tolist()
        self.events.append({"event": "result", "arm": arm, "round": number, "values": values})

    def freeze(self, labels: list[int], cores: list[list[int]]) -> None:
        j = len(self.epochs)
        share = 0.8 * 0.2**j
        at = self.t
        self.events.append({"event": "freeze", "epoch": j, "labels": labels, "cores": cores})
        self.epochs.append(
            {
                "number": j,
                "frozen_at": at,
                "share": share,
                "level": math.log(1 / (0.8 * 0.1 * share)),
                "labels": labels,
                "cores": cores,
            }
        )

    def compose(self, number: int, epoch: int, pulls: list[list[int]]) -> None:
        self.events.append({"event": "round", "round": number, "epoch": epoch, "pulls": pulls})
        for arm, count in pulls[::-1]:
            for _ in range(count):
                self.pull(arm, number)
            if arm == 3:
                self.pull(11, 0)  # explored on the way


def made_by_epoch() -> tuple[Certificate, Events]:
    log = Rounds()
    for _ in range(6):
        for arm in range(12):
            log.pull(arm, 0)
    wrong = [0, 1, 0, 2, 0, 1, 0, 1, 1, 2, 1, 1]
    log.freeze(wrong, CORES)
    log.compose(1, 0, [[arm, 1] for arm in range(12)])
    for arm in range(12):
        log.pull(arm, 0)
    log.freeze(LABELS, CORES)
    for number in range(2, 14):
        # the core of group 1 is pulled twice; arm 7 rests in every third round
        log.compose(number, 1, [[a, 2 if a in (1, 5) else 1] for a in range(12) if a != 7 or number % 3])
        if number == 5:
            log.pull(0, 0)
    log.compose(14, 0, [[3, 1], [0, 4]])
    claim = head(0.1, LABELS, "epoch", log.t, log.epochs)
    claim["epoch"] = epoch_section(claim, log.events)
    return claim, log.events


def first_round(claim: Certificate, events: Events, arm: int, k: int, pool: list[int], wanted: float) -> list[Any]:
    """Evidence of a test of epoch 1 and the round in which it first reaches the level, by brute force."""
    labels, at = claim["labels"], claim["epochs"][1]["frozen_at"]
    before = [event for event in events if event["event"] == "result"][:at]
    own, other = ([e["values"] for e in before if labels[e["arm"]] == group] for group in (labels[arm], k))
    gap = np.mean(own, axis=0) - np.mean(other, axis=0)
    spread = 1 / len(own) + 1 / len(other)
    weight, total = 0.0, np.zeros(2)
    for number in rounds_of(events, 1):
        mine, its = ([e["values"] for e in events if e.get("arm") in arms and e["round"] == number]
                     for arms in ([arm], pool))  # fmt: skip
        if mine and its:
            variance = 1 / len(mine) + 1 / len(its)
            weight += 1 / variance
            total = total + (np.mean(mine, axis=0) - np.mean(its, axis=0)) / variance
            value = directed_log(weight, total, gap, spread)
            if value >= wanted:
                return [value, number]
    raise AssertionError("more rounds are needed")


def rounds_of(events: Events, epoch: int) -> list[int]:
    return [event["round"] for event in events if event["event"] == "round" and event["epoch"] == epoch]


def epoch_section(claim: Certificate, events: Events) -> dict[str, Any]:
    """Tests of epoch 1 by brute force; group 2 is so far away that pairs from the start settle it."""
    labels, level = claim["labels"], claim["epochs"][1]["level"]
    stacks = stacks_of([event for event in events if event["event"] == "result"][: claim["epochs"][1]["frozen_at"]])
    section: dict[str, Any] = {"number": 1, "rounds": rounds_of(events, 1)}
    section |= {"group_tests": [], "core_tests": [], "pair_tests": [], "by_pairs": []}

    def add_pair(arm: int, other: int) -> None:
        value = pair_evidence(stacks[arm], stacks[other], prefix_room=ROOM)
        section["by_pairs"].append([arm, other, value, len(stacks[arm]), len(stacks[other])])

    in_core = [arm for core in CORES for arm in core]
    groups = [[arm for arm in range(12) if labels[arm] == k] for k in range(3)]
    for arm, k in product(range(12), range(3)):
        if k == labels[arm]:
            continue
        if 2 in (k, labels[arm]):
            add_pair(arm, CORES[k][0])
            continue
        wanted = level if arm in in_core else level / 2
        section["core_tests"].append([arm, k, *first_round(claim, events, arm, k, CORES[k], wanted)])
        if arm not in in_core:
            section["group_tests"].append([arm, k, *first_round(claim, events, arm, k, groups[k], level)])
    for p, q in product(CORES[0], CORES[1]):
        section["pair_tests"].append([p, q, *first_round(claim, events, p, 1, [q], level / 2)])
    for p, q in product([*CORES[0], *CORES[1]], CORES[2][1:]):
        add_pair(q, p)
    return section


# Real runs.


def run_of(
    labels: Any, centers: Any, delta: float, seed: int, noise: Any = 1.0, batch: int = 1
) -> tuple[Certificate, Events]:
    """A session to its end; with a batch, results come back in an order of their own."""
    labels, centers = np.asarray(labels), np.asarray(centers, dtype=float)
    rng = np.random.default_rng(seed)
    session = coterie.Session(len(labels), len(centers), centers.shape[1], delta=delta, method="croc", noise=noise)
    while not session.done:
        session.ask(batch)
        for ticket, arm in rng.permutation(session.pending):
            x = rng.normal(size=centers.shape[1])
            session.tell(int(arm), centers[labels[arm]] + session.noise.color(x), ticket=int(ticket))
    assert session.certificate is not None
    return session.certificate, session.events


def instance(known: coterie.Instance, delta: float, seed: int, **more: Any) -> tuple[Certificate, Events]:
    return run_of(known.labels, known.centers, delta, seed, **more)


def synthetic(name: str, delta: float, seed: int, **more: Any) -> tuple[Certificate, Events]:
    return instance(coterie.datasets.synthetic(name), delta, seed, **more)


MAKERS: dict[str, Callable[[], tuple[Certificate, Events]]] = {
    "made by pairs": made_by_pairs,
    "made by epoch": made_by_epoch,
    "easy": lambda: synthetic("easy", 0.1, 0),
    "easy 1e-10": lambda: synthetic("easy", 1e-10, 1),
    "easy 1e-300": lambda: synthetic("easy", 1e-300, 1),
    "moderate": lambda: synthetic("moderate", 0.1, 2),
    "moderate in batches": lambda: synthetic("moderate", 0.01, 3, batch=7),
    "moderate 1e-10": lambda: synthetic("moderate", 1e-10, 4),
    "challenging": lambda: synthetic("challenging", 0.1, 5),
    "noise": lambda: run_of(
        [0, 1, 1, 0, 2, 2, 0], [[0, 0], [9, 0], [3, 30]], 0.05, 6, noise=[[9.0, 3.0], [3.0, 16.0]], batch=3
    ),
    "one dimension": lambda: run_of([0, 0, 1, 1, 1, 0, 1, 0, 0], [[0.0], [1.5]], 0.1, 7, noise=0.5),
    "far away": lambda: run_of([0, 1, 2, 0, 1, 2], [[-1e11], [0.0], [9e11]], 0.05, 8),
    "iris": lambda: instance(coterie.datasets.iris().with_hardness(2.0), 0.1, 1),
    "many dimensions": lambda: run_of([0, 1] * 10, np.eye(2, 40) * 9, 1e-4, 9),
    "overlapping": lambda: plain_certificates.overlapping_rounds(
        LABELS, CENTERS.tolist(), CORES, rounds=16
    ),  # with gaps: rounds before others that are complete are not
    "overlapping, noise": lambda: plain_certificates.overlapping_rounds(
        LABELS, [[0.0, 0.0], [3.0, 0.0], [0.0, 9.0]], CORES, noise=[[2.0, 0.5], [0.5, 1.0]], seed=3, rounds=24
    ),
    "beyond the room": lambda: plain_certificates.by_pairs(
        [0, 1, 0, 1, 0], [[0.0], [1.2]], [300, 260, 45, 37, 50], room=8
    ),
}
ASSETS = sorted(Path(__file__).parent.joinpath("assets").glob("*.json"))
MAKERS |= {
    f"kept {path.stem}": lambda path=path: (read_certificate(path), read_log(path.with_suffix(".csv")))  # type: ignore[misc]
    for path in ASSETS
}


@cache
def _case(name: str) -> str:
    return json.dumps(MAKERS[name]())


@pytest.fixture(scope="session")
def case() -> Callable[[str], tuple[Certificate, Events]]:
    """A certificate with its log by the name of its maker: a fresh copy each time, for tests to change."""

    def fresh(name: str) -> tuple[Certificate, Events]:
        certificate, events = json.loads(_case(name))
        return certificate, events

    return fresh
