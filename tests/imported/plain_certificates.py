"""Certificates of format 2 with their logs, by the formulas of docs/CROC.md in exact fractions: slow, and an oracle.

Logarithms and exponentials are floats; every sum, mean, contrast and squared length is exact, wherever results lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from coterie.evidence.hidden_groups import hidden_evidence
from coterie.problem.families import Model, noise_from_json
from coterie.problem.noise import Noise

Vector = list[Fraction]
Inner = Callable[[Vector, Vector], Fraction]
Certificate = dict[str, Any]
Events = list[dict[str, Any]]

PAIR_SCALES = [(Fraction(4) ** (3 - i), p) for i, p in enumerate([0.08, 0.19, 0.25, 0.25, 0.12])]
PAIR_SCALES += [(Fraction(4) ** (-2 - i), 0.055 / 2**i) for i in range(6)]


def exact(values: Sequence[float]) -> Vector:
    return [Fraction(value) for value in values]


def mean(vectors: Sequence[Vector]) -> Vector:
    return [sum(column, Fraction(0)) / len(vectors) for column in zip(*vectors, strict=True)]


def minus(a: Vector, b: Vector) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]


def inner_product(noise: Any, dim: int) -> Inner:
    """a·Σ⁻¹·b: lengths in units of the noise."""
    if noise is None or np.ndim(noise) < 2:
        deviations = np.broadcast_to(1.0 if noise is None else noise, dim).tolist()
        return lambda a, b: sum(
            (x * y / Fraction(s) ** 2 for x, y, s in zip(a, b, deviations, strict=True)), Fraction(0)
        )

    def inner(a: Vector, b: Vector) -> Fraction:
        rows = [[*exact(row), x] for row, x in zip(noise, b, strict=True)]
        for i in range(dim):  # Gauss, without pivots: Σ is positive definite
            rows[i] = [x / rows[i][i] for x in rows[i]]
            for j in range(dim):
                if j != i:
                    rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
        return sum((x * row[dim] for x, row in zip(a, rows, strict=True)), Fraction(0))

    return inner


def log_sum(terms: Sequence[float]) -> float:
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


@cache
def grid(room: int) -> list[int]:
    """The counts that pairs read, up to 2^30."""
    pieces = room // 8
    beyond = [room * 2**j * (1 + Fraction(i, pieces)) for j in range(30) for i in range(pieces)]
    return [*range(1, room), *(int(n) for n in beyond if n.denominator == 1 and n <= 2**30)]


def counts_read(n_a: int, n_b: int, ratio: int, room: int) -> int:
    """How many results of a are read against blocks of b."""
    n = min(n_a, n_b // ratio)
    if n * ratio <= room:
        return n
    return max(g for g in grid(room) if g <= n * ratio) // ratio


def pair(x: Sequence[Vector], y: Sequence[Vector], inner: Inner, room: int) -> float:
    """The evidence from the start of two stacks."""
    best = -math.inf
    for ratio, weight in ((1, 0.4), (2, 0.1), (4, 0.1), (8, 0.1)):
        for a, b in ((x, y), (y, x)):
            n = counts_read(len(a), len(b), ratio, room)
            if n > 0:
                gap = minus(mean(a[:n]), mean(b[: n * ratio]))
                energy = n * inner(gap, gap) / (1 + Fraction(1, ratio))
                terms = [
                    math.log(p) - len(gap) / 2 * math.log(1 + rho * n) + float(rho * n / (1 + rho * n) * energy / 2)
                    for rho, p in PAIR_SCALES
                ]
                best = max(best, math.log(weight) + log_sum(terms))
    return best


def directed(contrasts: Sequence[tuple[Vector, Fraction]], theta: Vector, spread: Fraction, inner: Inner) -> float:
    """The evidence of a frozen test from its contrasts C_r with their variances v_r."""
    n = sum((1 / v for _, v in contrasts), Fraction(0))
    total = [sum((c[q] / v for c, v in contrasts), Fraction(0)) for q in range(len(theta))]
    moved = [t + spread * s for t, s in zip(theta, total, strict=True)]
    growth = 1 + n * spread
    gain = (inner(moved, moved) / growth - inner(theta, theta)) / (2 * spread)
    return float(gain) - len(theta) / 2 * math.log(growth)


def group_evidence(stacks: Sequence[Sequence[Vector]], inner: Inner) -> float:
    """The evidence that the arms of one group, given by their stacks, do not have one mean."""
    if len(stacks) == 1:
        return 0.0
    d = len(stacks[0][0])
    means, counts = [mean(stack) for stack in stacks], [len(stack) for stack in stacks]

    def curbed(n: int, rho: Fraction) -> Fraction:
        return rho * n * n / (1 + rho * n)

    spread = []
    for i in range(11):
        rho = Fraction(4) ** (3 - i)
        gs = [curbed(n, rho) for n in counts]
        center = [sum((w * x[q] for w, x in zip(gs, means, strict=True)), Fraction(0)) / sum(gs) for q in range(d)]
        away = [minus(x, center) for x in means]
        energy = sum((w * inner(v, v) for w, v in zip(gs, away, strict=True)), Fraction(0))
        spread.append(float(energy / 2) - d / 2 * sum(math.log(1 + rho * n) for n in counts))
    odd = []
    for m, own in enumerate(means):
        others = [x for other, stack in enumerate(stacks) if other != m for x in stack]
        gap = minus(own, mean(others))
        distance = inner(gap, gap)
        for i in range(11):
            for j in range(6):
                rho, its = Fraction(4) ** (3 - i), Fraction(4) ** (-2 * j)
                g, h = curbed(counts[m], rho), curbed(len(others), its)
                price = math.log(1 + rho * counts[m]) + math.log(1 + its * len(others))
                odd.append(float(g * h / (g + h) * distance / 2) - d / 2 * price)
    return log_sum([math.log(0.5 / 11) + log_sum(spread), math.log(0.5 / len(odd)) + log_sum(odd)])


class Conversation:
    """A log in the making. Rounds may be composed at any time; `answer` brings in what has been asked for."""

    def __init__(self, means: Sequence[Sequence[float]], noise: Any, seed: int) -> None:
        self.means, self.noise = means, noise
        self.rng = np.random.default_rng(seed)
        if noise is not None and np.ndim(noise) == 2:
            self.root = np.linalg.cholesky(noise)
        else:
            self.root = np.diag(np.broadcast_to(1.0 if noise is None else noise, len(means[0])))
        self.events: Events = []
        self.asked: list[tuple[int, int]] = []  # arm and round of open asks
        self.composed = self.frozen = 0

    def pull(self, arm: int, of_round: int = 0) -> None:
        values = np.asarray(self.means[arm]) + self.root @ self.rng.normal(size=len(self.root))
        self.events.append({"event": "result", "arm": arm, "round": of_round, "values": values.tolist()})

    def freeze(self, labels: list[int], cores: list[list[int]]) -> None:
        self.events.append({"event": "freeze", "epoch": self.frozen, "labels": labels, "cores": cores})
        self.frozen += 1

    def compose(self, epoch: int, pulls: list[list[int]]) -> None:
        self.composed += 1
        self.events.append({"event": "round", "round": self.composed, "epoch": epoch, "pulls": pulls})
        self.asked += [(arm, self.composed) for arm, count in pulls for _ in range(count)]

    def answer(self, left: int = 0) -> None:
        """Results of open asks in any order, until only so many are open."""
        while len(self.asked) > left:
            self.pull(*self.asked.pop(int(self.rng.integers(len(self.asked)))))


def homogeneity(noise: Model, events: Events, labels: list[int]) -> dict[str, Any]:
    """Whether each group looks like one, as sessions say it: the verifier has code of its own for it."""
    results = [event for event in events if event["event"] == "result"]
    arms, values = np.array([one["arm"] for one in results]), np.array([one["values"] for one in results])
    n_groups = max(labels) + 1
    evidence = hidden_evidence(noise, arms, values, np.array(labels), n_groups).tolist()
    return {"rule": 2, "level": 0.01, "evidence": evidence, "threshold": math.log(n_groups / 0.01)}


class Plain:
    """What a log says at its end, and the certificate that follows from it."""

    def __init__(self, events: Events, labels: list[int], noise: Any, delta: float, room: int) -> None:
        self.events, self.labels, self.noise, self.delta, self.room = events, labels, noise, delta, room
        results = [event for event in events if event["event"] == "result"]
        self.results = [(event["arm"], event["round"], exact(event["values"])) for event in results]
        self.dim = len(results[0]["values"])
        self.inner = inner_product(noise, self.dim)
        self.n_arms, self.n_clusters = len(labels), max(labels) + 1
        self.stacks = [[x for arm, _, x in self.results if arm == m] for m in range(self.n_arms)]
        self.groups = [[m for m in range(self.n_arms) if labels[m] == k] for k in range(self.n_clusters)]
        self.representatives = [group[0] for group in self.groups]

    def head(self, by: str) -> Certificate:
        equal = (self.n_arms - self.n_clusters + 1) * (self.n_arms - self.n_clusters) // 2
        epochs, counted = [], 0
        for event in self.events:
            counted += event["event"] == "result"
            if event["event"] == "freeze":
                share = 0.8 * 0.2 ** event["epoch"]
                level = math.log(1 / (0.8 * self.delta * share))
                stated = {"number": event["epoch"], "frozen_at": counted, "share": share, "level": level}
                epochs.append(stated | {"labels": event["labels"], "cores": event["cores"]})
        return {
            "format": "coterie-certificate-2",
            "log_format": 2,
            "corrections": [],
            "remarks": [],
            "n_arms": self.n_arms,
            "n_clusters": self.n_clusters,
            "dim": self.dim,
            "delta": self.delta,
            "log_inverse_delta": -math.log(self.delta),
            "alpha": 0.2,
            "equal_pairs": equal,
            "pair_level": math.log(equal / (0.2 * self.delta)),
            "prefix_room": self.room,
            "noise": self.noise,
            "assumes": noise_from_json(self.noise, self.dim).assumption,
            "t": len(self.results),
            "labels": self.labels,
            "by": by,
            "representatives": self.representatives,
            "epochs": epochs,
            "homogeneity": homogeneity(Noise.of(self.noise, self.dim), self.events, self.labels),
            "alarm": None,
        }

    def pair(self, a: int, b: int) -> float:
        return pair(self.stacks[a], self.stacks[b], self.inner, self.room)

    def by_pairs(self) -> Certificate:
        table: dict[str, list[list[Any]]] = {"evidence": [], "pulls_arm": [], "pulls_representative": []}
        for m, label in enumerate(self.labels):
            leads = [None if k == label else lead for k, lead in enumerate(self.representatives)]
            table["evidence"].append([None if q is None else self.pair(m, q) for q in leads])
            table["pulls_arm"].append([None if q is None else len(self.stacks[m]) for q in leads])
            table["pulls_representative"].append([None if q is None else len(self.stacks[q]) for q in leads])
        return self.head("pairs") | {"pairs": table}

    def usable_rounds(self, epoch: int) -> list[int]:
        """The epoch's rounds before its first incomplete one."""
        usable = []
        for event in self.events:
            if event["event"] == "round" and event["epoch"] == epoch:
                came = sum(of_round == event["round"] for _, of_round, _ in self.results)
                if came < sum(count for _, count in event["pulls"]):
                    break
                usable.append(event["round"])
        return usable

    def frozen_test(self, freeze: dict[str, Any], arm: int, pool: list[int], rounds: list[int]) -> float:
        """The evidence of an arm against a pool, in these rounds."""
        labels = freeze["labels"]
        before = self.results[: freeze["frozen_at"]]
        own, its = ([x for m, _, x in before if labels[m] == labels[side]] for side in (arm, pool[0]))
        contrasts = []
        for number in rounds:
            mine = [x for m, r, x in self.results if r == number and m == arm]
            pooled = [x for m, r, x in self.results if r == number and m in pool]
            if mine and pooled:
                variance = Fraction(1, len(mine)) + Fraction(1, len(pooled))
                contrasts.append((minus(mean(mine), mean(pooled)), variance))
        spread = Fraction(1, len(own)) + Fraction(1, len(its))
        return directed(contrasts, minus(mean(own), mean(its)), spread, self.inner)

    def by_epoch(self, epoch: int, listed: int | None = None) -> Certificate:
        """By the rounds of an epoch where they reach their levels, else by pairs from the start with core arms."""
        found = self.head("epoch")
        freeze = found["epochs"][epoch]
        level, cores = freeze["level"], freeze["cores"]
        rounds = self.usable_rounds(epoch)[:listed]
        section: dict[str, Any] = {"number": epoch, "rounds": rounds, "group_tests": [], "core_tests": []}
        section |= {"pair_tests": [], "by_pairs": []}

        def test(kind: str, arm: int, other: int, pool: list[int], wanted: float, lead: int) -> None:
            for n in range(1, len(rounds) + 1):
                value = self.frozen_test(freeze, arm, pool, rounds[:n])
                if value >= wanted:
                    section[kind].append([arm, other, value, rounds[n - 1]])
                    return
            value = self.pair(arm, lead)
            assert value >= found["pair_level"], "more results are needed"
            row = [arm, lead, value, len(self.stacks[arm]), len(self.stacks[lead])]
            if row not in section["by_pairs"]:
                section["by_pairs"].append(row)

        in_core = {arm for core in cores for arm in core}
        for (arm, label), k in product(enumerate(self.labels), range(self.n_clusters)):
            if k != label:
                test("core_tests", arm, k, cores[k], level if arm in in_core else level / 2, cores[k][0])
                if arm not in in_core:
                    test("group_tests", arm, k, self.groups[k], level, cores[k][0])
        large = [core for core in cores if len(core) > 1]
        for p, q in chain.from_iterable(product(core, its) for core, its in combinations(large, 2)):
            test("pair_tests", p, q, [q], level / 2, q)
        return found | {"epoch": section}


def overlapping_rounds(
    labels: list[int],
    centers: Sequence[Sequence[float]],
    cores: list[list[int]],
    *,
    noise: Any = None,
    delta: float = 0.1,
    room: int = 64,
    seed: int = 0,
    before: int = 6,
    rounds: int = 12,
    left: int | None = None,
) -> tuple[Certificate, Events]:
    """Pulls, a wrong freeze, a right one, then rounds of which several are open at a time; some never end."""
    talk = Conversation([centers[label] for label in labels], noise, seed)
    arms = range(len(labels))
    for _ in range(before):
        for arm in arms:
            talk.pull(arm)
    moved = next(arm for arm in arms if all(arm not in core for core in cores))
    talk.freeze([(label + 1) % len(centers) if arm == moved else label for arm, label in enumerate(labels)], cores)
    talk.compose(0, [[arm, 1] for arm in arms])
    talk.answer(len(labels) // 2)
    talk.pull(moved)
    talk.freeze(labels, cores)
    for number in range(rounds):
        resting = number % len(labels)  # one arm rests in every round, another is pulled twice
        talk.compose(1, [[arm, 1 + (arm == (resting + 1) % len(labels))] for arm in arms if arm != resting])
        talk.answer(2 * len(labels))
        if number == 3:
            talk.compose(0, [[0, 2], [arms[-1], 1]])
    talk.answer(len(labels) // 2 if left is None else left)
    return Plain(talk.events, labels, noise, delta, room).by_epoch(1), talk.events


def by_pairs(
    labels: list[int],
    centers: Sequence[Sequence[float]],
    pulls: Sequence[int],
    *,
    noise: Any = None,
    delta: float = 0.1,
    room: int = 64,
    seed: int = 0,
) -> tuple[Certificate, Events]:
    """Every arm pulled so often, in turn."""
    talk = Conversation([centers[label] for label in labels], noise, seed)
    for s in range(max(pulls)):
        for arm, most in enumerate(pulls):
            if s < most:
                talk.pull(arm)
    return Plain(talk.events, labels, noise, delta, room).by_pairs(), talk.events
