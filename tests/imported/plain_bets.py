"""Certificates and logs of a noise that is not known, by the formulas of docs/EVIDENCE.md in plain loops: an oracle.

Slow: means over all choices of j results are taken one by one, hypergeometric sums in exact fractions, and the smallest
value over y by looking at many y.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from plain_certificates import homogeneity

from coterie.problem.families import noise_of

Certificate = dict[str, Any]
Events = list[dict[str, Any]]
Rng = np.random.Generator

NOISES: dict[str, Any] = {
    "any": None,
    "gaussian": {"family": "gaussian", "shape": "full"},
    "gaussian, scalar": {"family": "gaussian", "shape": "scalar"},
    "gaussian, diagonal": {"family": "gaussian", "shape": "diagonal"},
    "counts": {"family": "counts", "trials": 5},
    "counts, single": {"family": "counts", "trials": 1},
    "bounded": {"family": "bounded", "lo": [-1.0, 0.0], "hi": [4.0, 5.0]},
    "at-most": {"family": "at-most", "covariance": [[2.0, 0.5], [0.5, 1.0]]},
    "symmetric": {"family": "symmetric"},
}
NAMES = list(NOISES)
LABELS = [0, 1, 0, 2, 1, 0, 2, 1, 0]
CORES = [[0, 2], [1, 4], [3]]
CENTERS = np.array([[0.5, 0.5], [3.5, 1.0], [1.0, 4.5]])
RATES = np.array([[0.1, 0.2], [0.8, 0.3], [0.3, 0.9]])
DIM, DELTA = 2, 0.1


def dot(a: Any, b: Any) -> float:
    return math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def minus(a: Any, b: Any) -> list[float]:
    return [float(x) - float(y) for x, y in zip(a, b, strict=True)]


def mean(rows: Sequence[Any]) -> list[float]:
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


# One round's factor of a test: x and y are the results of the arm and of the pool, minus the origin.


class Numbers:
    """The numbers of a bet, taken one after the other."""

    def __init__(self, numbers: Sequence[float], n_groups: int) -> None:
        self.left, self.k = list(numbers), n_groups

    def take(self, n: int) -> list[float]:
        taken, self.left = self.left[:n], self.left[n:]
        return taken

    def table(self, columns: int) -> list[list[float]]:
        return [self.take(columns) for _ in range(self.k)]


def exchangeable(numbers: Numbers, l: int, k: int, x: Any, y: Any) -> float:  # noqa: E741
    (w, order), g, h = numbers.take(2), numbers.table(DIM), numbers.take(numbers.k)
    f, apart = numbers.table(numbers.k)[l][k], numbers.table(numbers.k)[l][k]

    def position(z: Any) -> float:
        return ((dot(g[l], z) - h[l]) - (dot(g[k], z) - h[k])) / apart

    def robust(p: float) -> float:
        kappa = math.exp(-6.125)
        near, far = (math.exp(-((p - side * apart / 2) ** 2) / 2) + kappa for side in (1, -1))
        return f * (math.log(near) - math.log(far))

    total = 0.0
    j = min(len(x), int(order))
    for weight, score in ((1 - w, lambda p: f * apart * p), (w, robust)):
        mine = [math.exp(min(6.0, max(-6.0, score(position(z))))) for z in x]
        everyone = mine + [math.exp(min(6.0, max(-6.0, score(position(z))))) for z in y]
        means = []
        for some in (mine, everyone):
            products = [math.prod(chosen) for chosen in itertools.combinations(some, j)]
            means.append(math.fsum(products) / len(products))
        total += weight * means[0] / means[1]
    return total


def odds(numbers: Numbers, l: int, k: int, x: Any, y: Any, trials: int) -> float:  # noqa: E741
    logits, f = numbers.table(DIM), numbers.table(numbers.k)[l][k]
    value = 1.0
    for q in range(DIM):
        psi = Fraction(math.exp(f * (logits[l][q] - logits[k][q])))
        mine, total = sum(int(z[q]) for z in x), sum(int(z[q]) for z in [*x, *y])
        a, b = len(x) * trials, len(y) * trials
        mean = sum(
            (Fraction(math.comb(a, s) * math.comb(b, total - s)) * psi**s for s in range(min(a, total) + 1)),
            Fraction(0),
        ) / math.comb(a + b, total)
        value *= float(psi**mine / mean)
    return value


def betting(numbers: Numbers, l: int, k: int, x: Any, y: Any, width: Sequence[float]) -> float:  # noqa: E741
    g, f, square = numbers.table(DIM), numbers.table(numbers.k)[l][k], numbers.table(numbers.k)[l][k]
    v = 1 / len(x) + 1 / len(y)
    stake = [f * gap / (v + f * f * square) for gap in minus(g[l], g[k])]
    at_stake = sum(abs(s) * w for s, w in zip(stake, width, strict=True))
    if at_stake > 0.95:
        stake = [s * 0.95 / at_stake for s in stake]
    return 1 + dot(stake, minus(mean(x), mean(y)))


def heavy_tails(numbers: Numbers, l: int, k: int, x: Any, y: Any) -> float:  # noqa: E741
    u, f = numbers.table(DIM), numbers.table(numbers.k)[l][k]
    theta, v = [f * gap for gap in minus(u[l], u[k])], 1 / len(x) + 1 / len(y)
    score, most = dot(theta, minus(mean(x), mean(y))) / v, dot(theta, theta) / v
    return (1 + score + score**2 / 2) / (1 + most / 2)


def signs(numbers: Numbers, l: int, k: int, x: Any, y: Any, s_x: float, s_y: Sequence[float]) -> float:  # noqa: E741
    g, f = numbers.table(DIM), numbers.table(numbers.k)[l][k]
    score = f * dot(minus(g[l], g[k]), minus(mean(x), mean(y)))
    score /= s_x / len(x) + sum(s_y) / len(y) ** 2  # s_y has an entry a result
    return 2 / (1 + math.exp(-2 * min(1.5, max(-1.5, score))))


RATES_OF_V = [0.0, *(2.0 ** (3 - i) for i in range(13))]


def bracket(y: float, gain: float, scatter: float, count: int, half: float) -> float:
    terms = [
        math.log(0.5 if rate == 0 else 0.5 / 13) + count / 2 * math.log1p(rate) - rate * scatter * y
        for rate in RATES_OF_V
    ]
    top = max(terms)
    return half * (top + math.log(math.fsum(math.exp(term - top) for term in terms))) + gain * y


def smallest_bracket(gain: float, scatter: float, count: int, half: float) -> float:
    """The least of many y, closer and closer around the best."""
    if gain <= 0:
        return -math.inf if gain < 0 else half * math.log(0.5)
    grid = [0.0, *np.geomspace(1e-9, 1e9, 150) / scatter]
    for _ in range(10):
        values = [bracket(y, gain, scatter, count, half) for y in grid]
        i = int(np.argmin(values))
        grid = list(np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], 20))
    return min(values)


# Logs.


class Talk:
    """A log in the making; bets are good guesses, or anything at all if `wild`."""

    def __init__(self, noise: Any, rng: Rng, wild: bool = False, labels: Sequence[int] = LABELS) -> None:
        self.noise, self.rng, self.wild, self.labels = noise_of(noise, DIM), rng, wild, list(labels)
        self.stated: Any = self.noise.to_json()
        self.kind, self.k = self.noise.kind, max(labels) + 1
        self.events: Events = []
        self.asked: list[tuple[int, int]] = []
        self.rounds = self.frozen = 0

    def draw(self, arm: int) -> list[float]:
        rng, label = self.rng, self.labels[arm]
        if self.kind == "counts":
            trials = self.stated["trials"]
            return [float(n) for n in rng.binomial(trials, RATES[label])]
        if self.kind == "bounded":
            x = CENTERS[label] + rng.uniform(-0.5, 0.5, DIM)
        elif self.kind == "symmetric":
            x = CENTERS[label] + rng.normal(size=DIM) * (0.3 + 0.1 * (arm % 3))
        else:
            x = CENTERS[label] + rng.normal(size=DIM) * 0.6
        return [float(value) for value in x]

    def pull(self, arm: int, of_round: int = 0) -> None:
        self.events.append({"event": "result", "arm": arm, "round": of_round, "values": self.draw(arm)})

    def answer(self, left: int = 0) -> None:
        while len(self.asked) > left:
            self.pull(*self.asked.pop(int(self.rng.integers(len(self.asked)))))

    def freeze(self, labels: list[int], cores: list[list[int]]) -> None:
        event = {"event": "freeze", "epoch": self.frozen, "labels": labels, "cores": cores}
        if self.kind == "gaussian":
            centers, (_, distance) = self.guess(), self.tables()
            event["bet"] = {"from": self.origin(), "numbers": [*centers.ravel().tolist(), *distance]}
        self.events.append(event)
        self.frozen += 1

    def compose(self, epoch: int, pulls: list[list[int]]) -> None:
        self.rounds += 1
        bet = self.bet(len(pulls))
        self.events.append(
            {"event": "round", "round": self.rounds, "epoch": epoch, "pulls": pulls, "seed": 7, "bet": bet}
        )
        self.asked += [(arm, self.rounds) for arm, count in pulls for _ in range(count)]

    def origin(self) -> list[float]:
        return [0.25, -0.125] if self.kind != "counts" else [0.0, 0.0]

    def guess(self) -> Any:
        centers = (
            CENTERS @ np.linalg.inv(np.linalg.cholesky(self.stated["covariance"])).T
            if (self.kind == "at-most")
            else CENTERS
        )
        return (centers - self.origin())[: self.k] + self.rng.normal(size=(self.k, DIM)) * (4.0 if self.wild else 0.05)

    def tables(self) -> tuple[list[float], list[float]]:
        """f, and distances of the guesses or anything."""
        fraction = self.rng.uniform(0.01 if self.wild else 0.7, 1.0, (self.k, self.k))
        fraction = (fraction + fraction.T) / 2
        gaps = np.linalg.norm(CENTERS[: self.k, None] - CENTERS[None, : self.k], axis=2) + np.eye(self.k)
        if self.wild:
            gaps = gaps * self.rng.uniform(0.2, 3.0, gaps.shape)
        return fraction.ravel().tolist(), gaps.ravel().tolist()

    def bet(self, n_pulls: int) -> dict[str, Any]:
        rng, centers, (fraction, distance) = self.rng, self.guess(), self.tables()
        numbers: list[float] = []
        if self.kind == "any":
            heights = (centers**2).sum(axis=1) / 2 / 0.36
            order = int(rng.integers(1, 7))
            numbers = [float(rng.uniform()), order, *(centers / 0.36).ravel(), *heights, *fraction, *distance]
        elif self.kind in ("gaussian", "at-most"):
            numbers = [*centers.ravel(), *fraction]
        elif self.kind == "counts":
            rates = np.clip(RATES[: self.k] + rng.normal(size=(self.k, DIM)) * 0.03, 0.05, 0.95)
            logits = rng.normal(size=rates.shape) * 3.0 if self.wild else np.log(rates / (1 - rates))
            numbers = [*logits.ravel(), *fraction]
        elif self.kind == "bounded":
            numbers = [*centers.ravel(), *fraction, *(gap**2 for gap in distance)]
        elif self.kind == "symmetric":
            numbers = [*centers.ravel(), *fraction, *rng.uniform(2.0, 6.0, n_pulls)]
        return {"from": self.origin(), "numbers": [float(number) for number in numbers]}


class Plain:
    """What a log says, and the certificate that follows from it."""

    def __init__(self, noise: Any, events: Events) -> None:
        self.noise, self.events = noise_of(noise, DIM), events
        self.stated: Any = self.noise.to_json()
        self.kind = self.noise.kind
        self.results = [event for event in events if event["event"] == "result"]
        self.freezes = [event for event in events if event["event"] == "freeze"]
        self.rounds = {event["round"]: event for event in events if event["event"] == "round"}
        self.k = len(self.freezes[0]["cores"])

    def usable_rounds(self, epoch: int) -> list[int]:
        usable = []
        for number, event in self.rounds.items():
            if event["epoch"] == epoch:
                if sum(r["round"] == number for r in self.results) < sum(n for _, n in event["pulls"]):
                    break
                usable.append(number)
        return usable

    def positions(self, number: int, arms: Sequence[int]) -> list[list[float]]:
        values = [(r["arm"], r["values"]) for r in self.results if r["round"] == number]
        origin = self.rounds[number]["bet"]["from"]
        if self.kind == "at-most":
            inverse = np.linalg.inv(np.linalg.cholesky(self.stated["covariance"]))
            values = [(arm, inverse @ value) for arm, value in values]
        if self.kind == "counts":
            return [value for arm, value in values if arm in arms]
        return [minus(value, origin) for arm, value in values if arm in arms]

    def evidence(self, epoch: int, arm: int, pool: Sequence[int], last: int, half: bool) -> float:
        """log e of a test after the round `last`."""
        freeze = self.freezes[epoch]
        labels = freeze["labels"]
        l, k = labels[arm], labels[pool[0]]  # noqa: E741
        if self.kind == "gaussian":
            return self._gaussian(epoch, arm, pool, last, half)
        total = 0.0
        for number in self.usable_rounds(epoch):
            x, y = self.positions(number, [arm]), self.positions(number, pool)
            if number > last or not x or not y:
                continue
            numbers = Numbers(self.rounds[number]["bet"]["numbers"], self.k)
            stated = self.stated
            if self.kind == "any":
                factor = exchangeable(numbers, l, k, x, y)
            elif self.kind == "counts":
                factor = odds(numbers, l, k, x, y, stated["trials"])
            elif self.kind == "bounded":
                factor = betting(numbers, l, k, x, y, minus(stated["hi"], stated["lo"]))
            elif self.kind == "at-most":
                factor = heavy_tails(numbers, l, k, x, y)
            else:
                pulls = self.rounds[number]["pulls"]
                of_arm = dict(zip([m for m, _ in pulls], numbers.left[-len(pulls) :], strict=True))
                s_y = [of_arm[r["arm"]] for r in self.results if r["round"] == number and r["arm"] in pool]
                factor = signs(numbers, l, k, x, y, of_arm[arm], s_y)
            total += math.log(factor)
        return total

    def _gaussian(self, epoch: int, arm: int, pool: Sequence[int], last: int, half: bool) -> float:
        freeze = self.freezes[epoch]
        labels, frozen = freeze["labels"], Numbers(freeze["bet"]["numbers"], self.k)
        l, k = labels[arm], labels[pool[0]]  # noqa: E741
        g, apart = frozen.table(DIM), frozen.table(self.k)[l][k]
        eta = [gap / apart for gap in minus(g[l], g[k])]
        shape = self.stated["shape"]
        gain = scatter = 0.0
        count = 0
        for number in self.usable_rounds(epoch):
            if number > last:
                break
            numbers = Numbers(self.rounds[number]["bet"]["numbers"], self.k)
            u, f = numbers.table(DIM), numbers.table(self.k)[l][k]
            for m in range(len(labels)):
                for z in self.positions(number, [m]):
                    rest = minus(z, u[labels[m]])
                    scatter += dot(eta, eta) * dot(rest, rest) if shape == "scalar" else dot(eta, rest) ** 2
                    count += DIM if shape == "scalar" else 1
            x, y = self.positions(number, [arm]), self.positions(number, pool)
            if x and y:
                t, v = f * dot(eta, minus(u[l], u[k])), 1 / len(x) + 1 / len(y)
                gain += (2 * t * dot(eta, minus(mean(x), mean(y))) - t * t) / v
        return smallest_bracket(gain, scatter, count, 0.5 if half else 1.0)

    def certificate(self, epoch: int) -> Certificate:
        labels, cores = self.freezes[epoch]["labels"], self.freezes[epoch]["cores"]
        n_arms, rounds = len(labels), self.usable_rounds(epoch)
        epochs, counted = [], 0
        equal = (n_arms - self.k + 1) * (n_arms - self.k) // 2
        described: Any = self.noise.to_json()
        bounded = described.get("shape") in ("scalar", "diagonal")  # then pairs may count too
        for event in self.events:
            counted += event["event"] == "result"
            if event["event"] == "freeze":
                share = 0.8 * 0.2 ** event["epoch"]
                stated = {"number": event["epoch"], "frozen_at": counted, "share": share}
                level = math.log(1 / ((0.7 if bounded else 1.0) * DELTA * share))
                stated |= {"level": level, "labels": event["labels"], "cores": event["cores"]}
                epochs.append(stated)
        level = epochs[epoch]["level"]
        section: dict[str, Any] = {"number": epoch, "rounds": rounds, "group_tests": [], "core_tests": []}
        section |= {"pair_tests": [], "by_pairs": []}

        def test(kind: str, arm: int, other: int, pool: Sequence[int], half: bool) -> None:
            for number in rounds:
                value = self.evidence(epoch, arm, pool, number, half)
                if value >= (level / 2 if half else level):
                    section[kind].append([arm, other, value, number])
                    return
            raise AssertionError(f"more rounds are needed: {kind} of {arm} and {other} reached {value}, not {level}")

        in_core = [arm for core in cores for arm in core]
        groups = [[m for m in range(n_arms) if labels[m] == k] for k in range(self.k)]
        for arm, k in itertools.product(range(n_arms), range(self.k)):
            if k != labels[arm]:
                test("core_tests", arm, k, cores[k], arm not in in_core)
                if arm not in in_core:
                    test("group_tests", arm, k, groups[k], False)
        for one, other in itertools.combinations([core for core in cores if len(core) > 1], 2):
            for p, q in itertools.product(other, one):
                test("pair_tests", p, q, [q], True)
        return {
            "format": "coterie-certificate-2",
            "log_format": 2,
            "corrections": [],
            "remarks": [],
            "n_arms": n_arms,
            "n_clusters": self.k,
            "dim": DIM,
            "delta": DELTA,
            "log_inverse_delta": -math.log(DELTA),
            "alpha": 0.2 if bounded else 0.0,
            "equal_pairs": equal,
            "pair_level": math.log(equal / (0.2 * DELTA)) if bounded else None,
            "prefix_room": 64 if bounded else None,
            "noise": self.noise.to_json(),
            "assumes": self.noise.assumption,
            "t": len(self.results),
            "labels": labels,
            "by": "epoch",
            "representatives": [core[0] for core in cores],
            "epochs": epochs,
            "homogeneity": homogeneity(self.noise, self.events, labels),
            "alarm": None,
            "epoch": section,
        } | ({"variance_share": 0.1} if bounded else {})


def log_of(name: str, seed: int, rounds: int, wild: bool = False) -> Events:
    """Two freezes, the first of a wrong candidate; overlapping rounds of uneven composition, the last incomplete."""
    talk = Talk(NOISES[name], np.random.default_rng(seed), wild)
    for arm in range(len(LABELS)):
        talk.pull(arm)
    talk.freeze([0, 1, 0, 2, 1, 0, 2, 0, 0], CORES)
    talk.compose(0, [[arm, 1] for arm in range(len(LABELS))])
    talk.answer(4)
    talk.freeze(LABELS, CORES)
    for number in range(rounds):
        pulls = [[a, 1 + int(a in (1, 3, 0)) + 4 * int(a == 7 and number == 2)] for a in range(9)]
        talk.compose(1, [[a, n] for a, n in pulls if a != 5 or number % 3][:: -1 if number % 2 else 1])
        talk.answer(int(talk.rng.integers(12)))
        if number == 1:
            talk.pull(2)
    talk.answer()
    talk.compose(1, [[0, 2], [1, 1]])
    talk.answer(1)
    return talk.events


ROUNDS = {"counts, single": 26, "bounded": 20, "symmetric": 12}


def made(name: str, seed: int = 1) -> tuple[Certificate, Events]:
    """A certificate of the second epoch, by brute force, with its log."""
    events = log_of(name, seed, ROUNDS.get(name, 9))
    return Plain(NOISES[name], events).certificate(1), events
