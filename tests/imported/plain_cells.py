"""Certificates and logs of runs in blocks, straight from docs/BLOCKS.md, in plain loops: an oracle, and slow.

The factors of single cells are those of `plain_bets`. What is new is here: cells instead of rounds, centring in the
cell, pairs from the start by cells, lapses and generations, drawn blocks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from plain_bets import (
    Numbers,
    betting,
    dot,
    exchangeable,
    heavy_tails,
    mean,
    minus,
    odds,
    signs,
    smallest_bracket,
)

from coterie.problem.families import noise_from_json
from coterie.problem.sentences import assumption_in_words

Certificate = dict[str, Any]
Events = list[dict[str, Any]]

NOISES: dict[str, Any] = {
    "known": 0.5,
    "known, covariance": [[1.0, 0.3], [0.3, 0.5]],
    "any": {"family": "any"},
    "gaussian": {"family": "gaussian", "shape": "full"},
    "gaussian, scalar": {"family": "gaussian", "shape": "scalar"},
    "counts": {"family": "counts", "trials": 6},
    "bounded": {"family": "bounded", "lo": [-1.0, 0.0], "hi": [4.0, 5.0]},
    "at-most": {"family": "at-most", "covariance": [[2.0, 0.5], [0.5, 1.0]]},
    "symmetric": {"family": "symmetric"},
    "drawn, any": {"family": "any"},
    "drawn, bounded": {"family": "bounded", "lo": [-1.0, 0.0], "hi": [4.0, 5.0]},
    "drawn, counts": {"family": "counts", "trials": 1},
}
NAMES = list(NOISES)
LABELS = [0, 1, 0, 2, 1, 0, 2, 1, 0]
CORES = [[0, 2], [1, 4], [3]]
WRONG = [0, 1, 0, 2, 1, 0, 2, 0, 0]
CENTERS = np.array([[0.5, 0.5], [3.3, 1.0], [1.0, 4.3]])
RATES = np.array([[0.1, 0.2], [0.8, 0.3], [0.3, 0.9]])
ONE_RATE = np.array([[0.05], [0.5], [0.95]])
DELTA = 0.1
CELLS = {"bounded": 24, "drawn, bounded": 44, "drawn, any": 16, "drawn, counts": 60, "symmetric": 14}
SCALES = [(4.0 ** (3 - i), p) for i, p in enumerate([0.08, 0.19, 0.25, 0.25, 0.12])]
SCALES += [(4.0 ** (-2 - i), 0.055 / 2**i) for i in range(6)]


class Lab:
    """A log in the making: cells are composed, results come in any order, plates are closed too early."""

    def __init__(self, name: str, seed: int, strict: bool = False, gap: float = 1.0, misled: bool = False) -> None:
        self.rng, self.gap, self.misled = np.random.default_rng(seed), gap, misled
        self.blocks, self.strict = "drawn" if name.startswith("drawn") else "offset", strict
        self.dim = 1 if name == "drawn, counts" else 2
        self.noise = noise_from_json(NOISES[name], self.dim)
        self.kind, self.labels = self.noise.kind, LABELS
        self.events: Events = []
        self.open: dict[int, list[int]] = {}
        self.offsets: dict[int, Any] = {}
        self.cells = self.frozen = 0

    def draw(self, arm: int, offset: Any) -> list[float]:
        """A result: what a block does to all alike is the offset, a logit for counts."""
        rng, label = self.rng, self.labels[arm]
        if self.kind == "counts":
            rates = ONE_RATE[label] if self.dim == 1 else RATES[label]
            logits = np.log(rates / (1 - rates)) + offset[: self.dim]
            trials: Any = self.noise.to_json()
            return [float(n) for n in rng.binomial(trials["trials"], 1 / (1 + np.exp(-logits)))]
        center = self.gap * CENTERS[label]
        if self.kind == "bounded":
            x = np.clip(center + offset * 0.1 + rng.uniform(-0.4, 0.4, 2), [-1.0, 0.0], [4.0, 5.0])
        elif self.kind == "symmetric":
            x = center + offset + rng.normal(size=2) * (0.3 + 0.1 * (arm % 3))
        else:
            x = center + offset + rng.normal(size=2) * 0.5
        return [float(value) for value in x]

    def compose(self, block: str, pulls: Sequence[int]) -> int:
        self.cells += 1
        event: dict[str, Any] = {"event": "cell", "cell": self.cells, "block": block}
        event |= {"epoch": self.frozen - 1 if self.frozen else None, "pulls": list(pulls)}
        if self.frozen and self.kind != "known":
            event["bet"] = self.bet(pulls)
        self.events.append(event)
        self.open[self.cells] = list(pulls)
        self.offsets[self.cells] = self.rng.normal(size=2)
        return self.cells

    def answer(self, left: int = 0) -> None:
        """Results of open cells in any order, until only so many are to come."""
        while sum(map(len, self.open.values())) > left:
            some = [cell for cell, arms in self.open.items() if arms]
            cell = some[int(self.rng.integers(len(some)))]
            arm = self.open[cell].pop(int(self.rng.integers(len(self.open[cell]))))
            values = self.draw(arm, self.offsets[cell])
            self.events.append({"event": "result", "arm": arm, "cell": cell, "values": values})

    def unasked(self, arm: int, block: str | None = None) -> None:
        event = {"event": "result", "arm": arm, "asked": False, "values": self.draw(arm, np.zeros(2))}
        self.events.append(event | ({} if block is None else {"block": block}))

    def lapse(self, cell: int) -> None:
        missing = self.open.pop(cell)
        assert missing, "it is complete"
        self.events.append({"event": "lapse", "cell": cell, "missing": missing, "strict": self.strict})

    def freeze(self, labels: list[int]) -> None:
        event: dict[str, Any] = {"event": "freeze", "epoch": self.frozen, "labels": labels, "cores": CORES}
        centers = self.guess()
        if self.kind == "known":
            spread = self.rng.uniform(0.05, 0.2, (3, 3)) * (1e-6 if self.misled else 1.0)
            centers = centers * (0.0 if self.misled else 1.0)
            event["bet"] = {"numbers": [*centers.ravel().tolist(), *spread.ravel().tolist()]}
        elif self.kind == "gaussian":
            event["bet"] = {"from": [0.0, 0.0], "numbers": [*centers.ravel().tolist(), *self.distances()]}
        self.events.append(event)
        self.frozen += 1

    def guess(self) -> Any:
        centers = self.gap * CENTERS
        covariance: Any = self.noise.to_json()
        covariance = covariance["covariance"] if self.kind == "at-most" else covariance
        if self.kind in ("known", "at-most"):
            root = np.linalg.cholesky(covariance) if np.ndim(covariance) == 2 else covariance * np.eye(2)
            centers = centers @ np.linalg.inv(root).T
        return centers + self.rng.normal(size=centers.shape) * 0.05

    def distances(self) -> list[float]:
        gaps = np.linalg.norm(CENTERS[:, None] - CENTERS[None], axis=2) * self.gap + np.eye(3)
        return [float(gap) for gap in gaps.ravel()]

    def bet(self, pulls: Sequence[int]) -> dict[str, Any]:
        rng, centers = self.rng, self.guess()
        fraction = rng.uniform(0.7, 1.0, 9).tolist()
        origin = rng.normal(size=self.dim) * 0.1
        numbers: list[float] = []
        if self.kind == "any":  # positions count from the mean of the cell
            seen = centers - np.mean([centers[LABELS[arm]] for arm in pulls], axis=0) - origin
            heights = (seen**2).sum(axis=1) / 2 / 0.25
            first = [float(rng.uniform()), int(rng.integers(1, 5))]
            numbers = [*first, *(seen / 0.25).ravel(), *heights, *fraction, *self.distances()]
        elif self.kind in ("gaussian", "at-most"):
            numbers = [*centers.ravel(), *fraction]
        elif self.kind == "counts":
            rates = ONE_RATE if self.dim == 1 else RATES
            numbers = [*np.log(rates / (1 - rates)).ravel(), *fraction]
        elif self.kind == "bounded":
            numbers = [*centers.ravel(), *fraction, *(gap**2 for gap in self.distances())]
        elif self.kind == "symmetric":
            numbers = [*centers.ravel(), *fraction, *rng.uniform(0.2, 0.6, len(set(pulls)))]
        return {"from": origin.tolist(), "numbers": [float(number) for number in numbers]}


class Plain:
    """What a log says, and the certificates that follow from it."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.events, self.kind, self.dim = lab, lab.events, lab.kind, lab.dim
        self.stated: Any = lab.noise.to_json()
        self.results = [event for event in self.events if event["event"] == "result"]
        self.freezes = [event for event in self.events if event["event"] == "freeze"]
        self.cells = {event["cell"]: event for event in self.events if event["event"] == "cell"}
        self.lapsed = [event["cell"] for event in self.events if event["event"] == "lapse"]
        self.came: dict[int, list[tuple[int, list[float]]]] = {cell: [] for cell in self.cells}
        for event in self.results:
            if "cell" in event:
                self.came[event["cell"]].append((event["arm"], self.white(event["values"])))
        generation, self.generation = 0, {}
        for event in self.events:
            generation += event["event"] == "lapse" and event["strict"]
            if event["event"] == "cell":
                self.generation[event["cell"]] = generation

    def white(self, values: list[float]) -> list[float]:
        """In units of the noise that was stated, where one was."""
        covariance = self.stated["covariance"] if self.kind == "at-most" else self.stated
        if self.kind not in ("known", "at-most"):
            return values
        if np.ndim(covariance) == 0:
            return [value / covariance for value in values]
        return [float(value) for value in np.linalg.inv(np.linalg.cholesky(covariance)) @ values]

    def ended(self, cell: int) -> bool:
        complete = len(self.came[cell]) == len(self.cells[cell]["pulls"])
        return complete or (cell in self.lapsed and not self.lab.strict)

    def usable(self, epoch: int) -> list[int]:
        of_epoch = [cell for cell, event in self.cells.items() if event["epoch"] == epoch]
        return list(itertools.takewhile(self.ended, of_epoch))

    def pair(self, i: int, j: int, last: int) -> float | None:
        """Lemma 2; None if a cell is still open."""
        n, total = 0.0, [0.0] * self.dim
        for cell in range(1, last + 1):
            if self.generation[cell] != self.generation[last] or not {i, j} <= set(self.cells[cell]["pulls"]):
                continue
            if not self.ended(cell):
                return None
            x, y = ([value for arm, value in self.came[cell] if arm == m] for m in (i, j))
            if x and y:
                w = len(x) * len(y) / (len(x) + len(y))
                n, total = n + w, [s + w * c for s, c in zip(total, minus(mean(x), mean(y)), strict=True)]
        terms = [
            math.log(p) - self.dim / 2 * math.log(1 + rho * n) + rho * dot(total, total) / (1 + rho * n) / 2
            for rho, p in SCALES
        ]
        return max(terms) + math.log(math.fsum(math.exp(term - max(terms)) for term in terms))

    def test(self, epoch: int, arm: int, pool: Sequence[int], last: int, half: bool) -> float:
        """log e of a frozen test after the cell `last`."""
        labels, used = self.freezes[epoch]["labels"], [cell for cell in self.usable(epoch) if cell <= last]
        l, k = labels[arm], labels[pool[0]]  # noqa: E741
        sides = {cell: self.sides(cell, arm, pool) for cell in used}
        if self.kind == "known":
            return self.directed(epoch, l, k, [both for both in sides.values() if both[0] and both[1]])
        if self.kind == "gaussian":
            return self.unknown_covariance(epoch, l, k, sides, half)
        total = 0.0
        for cell, (x, y) in sides.items():
            if not x or not y:
                continue
            numbers, stated = Numbers(self.cells[cell]["bet"]["numbers"], 3), self.stated
            if self.kind == "any":
                factor = exchangeable(numbers, l, k, x, y)
            elif self.kind == "counts" and self.dim == 1:
                factor = odds_of_one(numbers, l, k, x, y)
            elif self.kind == "counts":
                factor = odds(numbers, l, k, x, y, stated["trials"])
            elif self.kind == "bounded":
                factor = betting(numbers, l, k, x, y, minus(stated["hi"], stated["lo"]))
            elif self.kind == "at-most":
                factor = heavy_tails(numbers, l, k, x, y)
            else:
                arms = sorted(set(self.cells[cell]["pulls"]))
                of_arm = dict(zip(arms, numbers.left[-len(arms) :], strict=True))
                s_y = [of_arm[m] for m, _ in self.came[cell] if m in pool]
                factor = signs(numbers, l, k, x, y, of_arm[arm], s_y)
            total += math.log(factor)
        return total

    def sides(self, cell: int, arm: int, pool: Sequence[int]) -> tuple[list[Any], list[Any]]:
        came = self.came[cell]
        if self.kind == "any" and came:
            origin = self.cells[cell]["bet"]["from"]
            middle = mean([value for _, value in came])
            came = [(m, minus(minus(value, middle), origin)) for m, value in came]
        return [value for m, value in came if m == arm], [value for m, value in came if m in pool]

    def directed(self, epoch: int, l: int, k: int, sides: Sequence[Any]) -> float:  # noqa: E741
        numbers = Numbers(self.freezes[epoch]["bet"]["numbers"], 3)
        centers, spread = numbers.table(self.dim), numbers.table(3)[l][k]
        theta, n, total = minus(centers[l], centers[k]), 0.0, [0.0] * self.dim
        for x, y in sides:
            v = 1 / len(x) + 1 / len(y)
            n, total = n + 1 / v, [s + c / v for s, c in zip(total, minus(mean(x), mean(y)), strict=True)]
        moved = [t + spread * s for t, s in zip(theta, total, strict=True)]
        gain = (dot(moved, moved) / (1 + n * spread) - dot(theta, theta)) / (2 * spread)
        return gain - self.dim / 2 * math.log(1 + n * spread)

    def unknown_covariance(self, epoch: int, l: int, k: int, sides: dict[int, Any], half: bool) -> float:  # noqa: E741
        labels, frozen = self.freezes[epoch]["labels"], Numbers(self.freezes[epoch]["bet"]["numbers"], 3)
        g, apart = frozen.table(2), frozen.table(3)[l][k]
        eta = [gap / apart for gap in minus(g[l], g[k])]
        gain = scatter = 0.0
        count = 0
        for cell, (x, y) in sides.items():
            numbers = Numbers(self.cells[cell]["bet"]["numbers"], 3)
            u, f = numbers.table(2), numbers.table(3)[l][k]
            rests = [minus(value, u[labels[m]]) for m, value in self.came[cell]]
            if rests:
                rests = [minus(rest, mean(rests)) for rest in rests]
                if self.stated["shape"] == "scalar":
                    scatter += dot(eta, eta) * math.fsum(dot(rest, rest) for rest in rests)
                    count += 2 * (len(rests) - 1)
                else:
                    scatter += math.fsum(dot(eta, rest) ** 2 for rest in rests)
                    count += len(rests) - 1
            if x and y:
                t, v = f * dot(eta, minus(u[l], u[k])), 1 / len(x) + 1 / len(y)
                gain += (2 * t * dot(eta, minus(mean(x), mean(y))) - t * t) / v
        return smallest_bracket(gain, scatter, count, 0.5 if half else 1.0)

    def head(self, by: str, generation: int = 0) -> Certificate:
        known = self.kind == "known"
        alpha, epochs, counted, equal = 0.2 if known else 0.0, [], 0, (9 - 3 + 1) * (9 - 3) // 2
        for event in self.events:
            counted += event["event"] == "result"
            if event["event"] == "freeze":
                share = 0.8 * 0.2 ** event["epoch"]
                stated = {"number": event["epoch"], "frozen_at": counted, "share": share}
                stated |= {"level": math.log(1 / ((1 - alpha) * DELTA * share))}
                epochs.append(stated | {"labels": event["labels"], "cores": event["cores"]})
        pair_share = 0.2 * (0.8 * 0.2**generation if self.lab.strict else 1.0)
        document: Certificate = {
            "pair_level": math.log(equal / (pair_share * DELTA)) if known else None,
            "format": "coterie-certificate-2", "log_format": 2, "corrections": [], "remarks": [],
            "n_arms": 9, "n_clusters": 3, "dim": self.dim, "delta": DELTA, "log_inverse_delta": -math.log(DELTA),
            "alpha": alpha, "equal_pairs": equal, "prefix_room": None,
            "noise": self.stated, "blocks": self.lab.blocks, "lapsed": self.lapsed,
            "assumes": assumption_in_words(self.lab.noise, "groups", self.lab.blocks, self.lab.strict),
            "t": len(self.results), "labels": LABELS, "by": by, "representatives": [core[0] for core in CORES],
            "epochs": epochs, "homogeneity": None, "alarm": None,
        }  # fmt: skip
        return (
            document
            | ({"strict_blocks": True} if self.lab.strict else {})
            | ({"generation": generation} if self.lab.strict and known else {})
        )

    def settled(self, i: int, j: int, level: float, generation: int) -> list[Any]:
        for cell in self.cells:
            value = self.pair(i, j, cell) if self.generation[cell] == generation else None
            if value is not None and value >= level:
                return [i, j, value, cell]
        raise AssertionError(f"more cells are needed for {i} and {j}")

    def by_pairs(self, generation: int = 0) -> Certificate:
        document = self.head("pairs", generation)
        leads, level = document["representatives"], document["pair_level"]
        rows = [self.settled(m, leads[k], level, generation) for m in range(9) for k in range(3) if k != LABELS[m]]
        return document | {"pairs": rows}

    def by_epoch(self, epoch: int, generation: int = 0, halves: bool | None = None) -> Certificate:
        """By cells of the epoch, the rest by pairs from the start. `halves`: at half levels, right or not."""
        document = self.head("epoch", generation)
        level, cells = document["epochs"][epoch]["level"], self.usable(epoch)
        section: dict[str, Any] = {"number": epoch, "cells": cells, "group_tests": [], "core_tests": []}
        section |= {"pair_tests": [], "by_pairs": []}
        if halves is None:
            halves = not (self.lab.blocks == "drawn" and self.kind == "bounded")

        def test(kind: str, arm: int, other: int, pool: Sequence[int], half: bool, lead: int) -> None:
            half = half and halves
            for cell in cells:
                value = self.test(epoch, arm, pool, cell, half)
                if value >= (level / 2 if half else level):
                    section[kind].append([arm, other, value, cell])
                    return
            if self.kind != "known":
                raise AssertionError(f"more cells are needed: {kind} of {arm} and {other} has {value} of {level}")
            section["by_pairs"].append(self.settled(arm, lead, document["pair_level"], generation))

        in_core = [arm for core in CORES for arm in core]
        groups = [[m for m in range(9) if LABELS[m] == k] for k in range(3)]
        for arm, k in itertools.product(range(9), range(3)):
            if k != LABELS[arm]:
                test("core_tests", arm, k, CORES[k], arm not in in_core, CORES[k][0])
                if arm not in in_core:
                    test("group_tests", arm, k, groups[k], False, CORES[k][0])
        for p, q in itertools.product(CORES[1], CORES[0]):
            test("pair_tests", p, q, [q], True, q)
        return document | {"epoch": section}


def odds_of_one(numbers: Numbers, l: int, k: int, x: Any, y: Any) -> float:  # noqa: E741
    """Conditional odds of one result, 0 or 1, against a pool of such: 1 of all is as likely to be anyone's."""
    logits, f = numbers.table(1), numbers.table(numbers.k)[l][k]
    psi = math.exp(f * (logits[l][0] - logits[k][0]))
    share = sum(value[0] for value in [*x, *y]) / (len(x) + len(y))
    return float(psi ** x[0][0] / (share * psi + 1 - share))


def lab_of(name: str, seed: int = 1, strict: bool = False, cells: int | None = None, **more: Any) -> Lab:
    """Plates with two cells each, several open at once; a wrong freeze, a right one, a lapse, an open cell at last."""
    lab = Lab(name, seed, strict, **more)
    drawn = lab.blocks == "drawn"
    every = list(range(9))
    for plate in range(2):
        for half in range(2):
            pulls = every if drawn else [*every[half::2], int(lab.rng.integers(9)), plate]
            lab.compose(f"before {plate}{'.' + str(half) if drawn else ''}", pulls)
        lab.answer(3)
    lab.unasked(4, "somewhere else")
    lab.freeze(WRONG)
    lab.compose("wrong", every)
    lab.answer(2)
    if strict:
        lab.lapse(max(cell for cell, arms in lab.open.items() if arms))  # of the wrong epoch
    lab.freeze(LABELS)
    n = CELLS.get(name, 10) if cells is None else cells
    for number in range(n):
        pulls = every if drawn else [a for a in [*every, 0, 1, 3, *([7] * 4 if number == 2 else [])] if a != number % 9]
        block = f"plate {number if drawn else number // 2}"
        cell = lab.compose(block, lab.rng.permutation(pulls).tolist())
        if number == 3 and not strict:
            lab.answer(1)
            late = next(cell for cell, arms in lab.open.items() if arms)
            lab.lapse(late)
        lab.answer(int(lab.rng.integers(8)))
    lab.answer()
    lab.compose("last", [0, 1, 2])
    lab.answer(1)
    assert cell < lab.cells
    return lab


def made(name: str, seed: int = 1, strict: bool = False) -> tuple[Certificate, Events]:
    """A certificate of the second epoch, by brute force, with its log."""
    lab = lab_of(name, seed, strict)
    return Plain(lab).by_epoch(1, 1 if strict else 0), lab.events


def made_by_pairs(seed: int = 1, strict: bool = False) -> tuple[Certificate, Events]:
    """The same by pairs from the start, with enough cells for all of them."""
    lab = lab_of("known", seed, strict, cells=14)
    return Plain(lab).by_pairs(1 if strict else 0), lab.events


def made_by_both(seed: int = 1, strict: bool = False) -> tuple[Certificate, Events]:
    """Pairs from the start for tests that a bad guess at the freeze leaves unmet: groups lie far apart."""
    lab = lab_of("known", seed, strict, cells=4, gap=4.0, misled=True)
    document = Plain(lab).by_epoch(1, 1 if strict else 0)
    return document, lab.events
