"""Certificates of groups up to a resolution and of single linkage with their logs, by a fixed design: an oracle.

A wrong candidate is frozen first, then the right one; every item is pulled in turn until all tests of the second freeze
are met. Results that nobody asked for, and a late one of the first epoch, come in between. Evidence: `plain_near_far`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import plain_near_far as plain
from scipy import optimize

Certificate = dict[str, Any]
Events = list[dict[str, Any]]
DELTA = 0.1
EPSILON, ETA = 0.3, 1.0  # as shares of the scale

POINTS = np.array([[0.0, 0.0], [0.25, 0.1], [-0.2, 0.2], [3.0, 0.3], [3.3, 0.0], [0.2, -3.0], [1.7, 0.15]])
LABELS, REFERENCES = [0, 0, 0, 1, 1, 2, 3], [0, 3, 5, 6]
WRONG, WRONG_REFERENCES = [0, 0, 1, 1, 1, 2, 2], [1, 4, 6]
CHAIN = np.array([[0.0, 0.0], [0.3, 0.0], [0.6, 0.1], [4.6, 0.0], [4.9, 0.1], [0.3, 4.9]])
CHAIN_LABELS, CHAIN_REFERENCES = [0, 0, 0, 1, 1, 2], [1, 3, 5]
HEIGHT, RADIUS = 1.1, 1.2


@dataclass
class Case:
    """What a certificate is about: a noise as JSON, means (M, d) in the user's units, how results are drawn."""

    noise: Any
    means: Any
    scale: list[float]
    draw: Callable[[np.random.Generator, Any], Any]
    world: plain.World
    norm: str = "each"
    claims: str = "references"
    linkage: bool = False
    ratio: int = 2
    first: int = 4
    assumes: str = ""
    variance: Any = None  # of a result in each coordinate, in scaled units, for the guesses
    unit: float = 1.0  # of linkage, by which the height and the radii are multiplied


class Log:
    """A log in the making, and its epochs as a certificate lists them."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.rng = case, np.random.default_rng(seed)
        self.events: Events = []
        self.epochs: list[dict[str, Any]] = []

    def pull(self, arm: int, of_round: int, **marks: Any) -> list[float]:
        values: list[float] = np.asarray(self.case.draw(self.rng, self.case.means[arm]), dtype=float).tolist()
        self.events.append({"event": "result", "arm": arm, "round": of_round, "values": values, **marks})
        return values

    def first_results(self, n: int) -> list[list[list[float]]]:
        """The first n results of every arm that were asked for."""
        asked = [event for event in self.events if event.get("asked", True)]
        return [[e["values"] for e in asked if e["arm"] == arm][:n] for arm in range(len(self.case.means))]

    def freeze(self, labels: list[int], references: list[int]) -> dict[str, Any]:
        j, delta = len(self.epochs), 0.9 * DELTA if self.case.world.kind == "gaussian" else DELTA
        content: dict[str, Any] = {
            "level": math.log(1 / (0.9 * delta * 0.8 * 0.2**j)),
            "labels": labels,
            "references": references,
        }
        content |= (linkage_tests if self.case.linkage else tests_of)(self.case, labels, references)
        at = sum(event["event"] == "result" for event in self.events)
        self.epochs.append({"number": j, "frozen_at": at, **content})
        self.events.append({"event": "freeze", "epoch": j, **content})
        return content


def made(case: Case, seed: int = 1) -> tuple[Certificate, Events]:
    """A certificate that holds, and its log."""
    log, arms = Log(case, seed), range(len(case.means))
    for s in range(case.first):
        for arm in arms:
            log.pull(arm, 0)
        if s == 1:
            log.pull(2, 0, asked=False)
    if case.world.kind == "gaussian":
        case.world.covariance = plain.variance_bounds(log.first_results(case.first - 1), case.world.shape, DELTA)
    log.freeze(*(([0, 0, 1, 1, 1, 2], [0, 4, 5]) if case.linkage else (WRONG, WRONG_REFERENCES)))
    for arm in arms:
        log.pull(arm, 1)
    frozen = log.freeze(*((CHAIN_LABELS, CHAIN_REFERENCES) if case.linkage else (LABELS, REFERENCES)))
    log.pull(1, 1)  # it was asked for before the freeze, and is late
    log.pull(0, 0, asked=False)
    return certificate(case, log.events, log.epochs, met(log, frozen)), log.events


def met(log: Log, frozen: dict[str, Any]) -> list[tuple[float, int]]:
    """Pull until all tests of a freeze are met; the evidence of each, and its contrasts."""
    case = log.case
    stacks: list[list[list[float]]] = [[] for _ in case.means]
    tests = [(kind, test) for kind in ("near", "far") for test in frozen[kind]]
    readings = [plain.Reading(case.world, kind, test, stacks[test[0]], stacks[test[1]]) for kind, test in tests]
    found: dict[int, tuple[float, int]] = {}
    leads = range(len(stacks)) if case.linkage else frozen["references"]
    turn = [arm for arm in range(len(stacks)) for _ in range(case.ratio if arm in leads else 1)]
    for arm in turn * 400:
        stacks[arm].append(log.pull(arm, 2))
        for i, reading in enumerate(readings):
            if i not in found and reading.evidence() >= frozen["level"]:
                found[i] = reading.evidence(), reading.n
        if len(found) == len(tests):
            return [found[i] for i in range(len(tests))]
    raise AssertionError(f"not met: {[test[:2] for i, (_, test) in enumerate(tests) if i not in found]}")


def certificate(case: Case, events: Events, epochs: Any, found: Any) -> Certificate:
    n_arms, d = np.shape(case.means)
    proven = epochs[-1]
    rows = [[*test[:2], *met] for test, met in zip([*proven["near"], *proven["far"]], found, strict=True)]
    eta = [ETA * s for s in case.scale]
    epsilon = [EPSILON * s for s in case.scale]
    head: Certificate
    if case.linkage:
        claim = (
            "the 3 groups of single linkage: within a group one gets from any item to any other by steps shorter than "
            f"a height h, and items of different groups are more than h apart, with h = {HEIGHT * case.unit:g}"
        )
        head = {"question": "linkage", "height": HEIGHT * case.unit, "n_clusters": 3}
    else:
        claim = {
            "references": "every item of a group is within {} of its reference, "
            "any two references are more than {} apart",
            "any-two": "any two items of a group are within {}, any two groups have items more than {} apart",
        }[case.claims].format(text(eta), text(epsilon))
        head = {"question": "resolution", "claims": case.claims, "epsilon": epsilon, "eta": eta}
    if case.world.kind == "gaussian":
        head["variance_share"] = 0.1
    return {
        "format": "coterie-certificate-2",
        "log_format": 2,
        "corrections": [],
        "remarks": [],
        **head,
        "claim": f"{claim}; wrong with probability at most {DELTA:g}",
        "norm": case.norm,
        "delta": DELTA,
        "log_inverse_delta": -math.log(DELTA),
        "alpha": 0.1,
        "noise": case.noise,
        "assumes": case.assumes,
        "n_arms": n_arms,
        "dim": d,
        "t": sum(event["event"] == "result" for event in events),
        "n_groups": len(proven["references"]),
        "labels": proven["labels"],
        "references": proven["references"],
        "epochs": epochs,
        "epoch": 1,
        "near_tests": rows[: len(proven["near"])],
        "far_tests": rows[len(proven["near"]) :],
        "borders": {} if case.linkage else borders(case, events),
    }


def text(bounds: list[float]) -> str:
    if len(set(bounds)) == 1:
        return f"{bounds[0]:g}"
    return "(" + ", ".join(f"{one:g}" for one in bounds) + ")"


def borders(case: Case, events: Events) -> dict[str, list[int]]:
    means = [
        np.mean([e["values"] for e in events if e.get("arm") == arm], axis=0) / (ETA * np.array(case.scale))
        for arm in range(len(case.means))
    ]
    found: dict[str, list[int]] = {}
    for arm, own in enumerate(LABELS):
        for group, reference in enumerate(REFERENCES):
            mates = [reference] if case.claims == "references" else [a for a, k in enumerate(LABELS) if k == group]
            gaps = [means[arm] - means[mate] for mate in mates]
            away = [np.linalg.norm(gap) if case.norm == "distance" else np.abs(gap).max() for gap in gaps]
            if arm not in REFERENCES and group != own and max(away) < 1:
                found.setdefault(str(arm), []).append(group)
    return found


# Tests of a freeze, with parameters for the true means: any others would be as valid.


def tests_of(case: Case, labels: list[int], references: list[int]) -> dict[str, Any]:
    d = len(case.scale)
    near_bound, far_bound = [1.0] * d, [EPSILON / ETA] * d
    if case.claims == "references":
        pairs = [(arm, references[k]) for arm, k in enumerate(labels) if arm != references[k]]
        apart = list(combinations(references, 2))
    else:
        pairs = [(a, b) for a, b in combinations(range(len(labels)), 2) if labels[a] == labels[b]]
        apart = [(references[k], references[j]) for j, k in combinations(range(len(references)), 2)]
    ratio = case.ratio if case.claims == "references" else 1
    return {
        "epsilon": [EPSILON * s for s in case.scale],
        "eta": [ETA * s for s in case.scale],
        "near": [[a, b, ratio, near_bound, near_parameters(case, a, b, ratio, near_bound)] for a, b in pairs],
        "far": [[a, b, 1, far_bound, far_parameters(case, a, b, 1, far_bound)] for a, b in apart],
    }


def linkage_tests(case: Case, labels: list[int], references: list[int]) -> dict[str, Any]:
    d, near = len(case.scale), []
    balls: list[tuple[int, float, list[int]]] = []
    height, radius = HEIGHT * case.unit, RADIUS * case.unit

    def near_test(a: int, b: int, bound: float) -> list[Any]:
        return [a, b, case.ratio, [bound] * d, near_parameters(case, a, b, case.ratio, [bound] * d)]

    for group, lead in enumerate(references):
        items = [arm for arm, label in enumerate(labels) if label == group]
        near += [near_test(a, b, height) for a, b in pairwise(items)]
        near += [near_test(arm, lead, radius) for arm in items if arm != lead]
        balls.append((lead, radius if len(items) > 1 else 0.0, items))
    far = []
    for one, other in combinations(balls, 2):
        bound = [height + one[1] + other[1]] * d
        far.append([one[0], other[0], 1, bound, far_parameters(case, one[0], other[0], 1, bound)])
    return {"height": height, "balls": [list(ball) for ball in balls], "near": near, "far": far}


def gap_of(case: Case, a: int, b: int) -> Any:
    return (np.array(case.means[a]) - np.array(case.means[b])) / np.array(case.world.scale)


def near_parameters(case: Case, a: int, b: int, ratio: int, bound: list[float]) -> dict[str, Any]:
    gap, v = gap_of(case, a, b), 1 + 1 / ratio
    if case.world.kind == "counts":
        return near_tilts(case, a, b, ratio, bound)
    if case.norm == "distance" and case.world.kind == "exactly":
        return {"kappas": [0.0, 0.3 * bound[0], 0.6 * bound[0]], "weights": [0.4, 0.3, 0.3]}
    if case.norm == "distance" and case.world.kind != "bounded":
        return {"from": (0.9 * gap).tolist(), "spread": 0.05}
    h = np.array(bound) / (math.sqrt(gap.size) if case.norm == "distance" else 1.0)
    drifts = np.maximum(np.stack([h - gap, h + gap], axis=1), 0.3 * h[:, None])
    return {
        "rates": (drifts / (v * np.asarray(case.variance)[:, None] + drifts**2 * (case.world.kind == "bounded")))
        .ravel()
        .tolist()
    }


def far_parameters(case: Case, a: int, b: int, ratio: int, bound: list[float]) -> dict[str, Any]:
    gap, v = gap_of(case, a, b), 1 + 1 / ratio
    if case.world.kind == "counts":
        return far_tilts(case, a, b, ratio, bound)
    if case.norm == "distance":
        direction = gap / np.linalg.norm(gap)
        drift = float(direction @ gap) - bound[0]
    else:
        direction = np.sign(gap) * np.maximum(np.abs(gap) - np.array(bound), 1e-3)
        drift = float(direction @ gap) - float(np.abs(direction) @ np.array(bound))
    spread = v * float(direction**2 @ np.asarray(case.variance))
    drift = max(drift, 0.1 * math.sqrt(spread))
    return {"direction": direction.tolist(), "rate": drift / (spread + drift**2 * (case.world.kind == "bounded"))}


def rates_of(case: Case, a: int, b: int) -> tuple[Any, Any]:
    return np.array(case.means[a]) / case.world.trials, np.array(case.means[b]) / case.world.trials


def near_tilts(case: Case, a: int, b: int, ratio: int, bound: list[float]) -> dict[str, Any]:
    (p, q), d, t = rates_of(case, a, b), len(case.scale), case.world.trials
    item, reference, multipliers = [], [], []
    for i in range(2 * d):
        c, sign = i // 2, (1.0, -1.0)[i % 2]
        h = bound[c] / (math.sqrt(d) if case.norm == "distance" else 1.0) * case.world.scale[c] / t
        tilt = max(h - sign * (p[c] - q[c]), 0.2 * h) / ((1 + 1 / ratio) * (p[c] + q[c]) / 2 * (1 - (p[c] + q[c]) / 2))
        item.append(-sign * tilt)
        reference.append(sign * tilt / ratio)

        costs = partial(near_cost, ratio, item[-1], reference[-1], sign, h)
        multipliers.append([best(partial(costs, f)) for f in plain.FACTORS])
    return {"item": item, "reference": reference, "multipliers": multipliers}


def near_cost(ratio: int, item: float, reference: float, sign: float, h: float, f: float, m: float) -> float:
    phi = plain.roughly_largest
    return phi(f * item, -sign * m) + ratio * phi(f * reference, sign * m / ratio) - m * h


def far_tilts(case: Case, a: int, b: int, ratio: int, bound: list[float]) -> dict[str, Any]:
    p, q = rates_of(case, a, b)
    scale, t = np.array(case.world.scale), case.world.trials
    gap = (p - q) * t / scale
    if case.norm == "distance":
        direction = gap / np.linalg.norm(gap) * max(np.linalg.norm(gap) - bound[0], 0.05)
    else:
        direction = np.sign(gap) * np.maximum(np.abs(gap) - np.array(bound), 0.0)
        direction[int(np.argmax(np.abs(gap)))] += 0.01
    variance = (p + q) / 2 * (1 - (p + q) / 2)
    item = direction * scale / t / (1 + 1 / ratio) / variance
    reference = -item / ratio
    toward = direction * t / scale
    multipliers = []

    def cost(f: float, m: float) -> float:
        nu = (m * toward).tolist()
        return plain.far_cost(case.world, ratio, bound, item.tolist(), reference.tolist(), f, nu, plain.roughly_largest)

    for f in plain.FACTORS:
        m = best(partial(cost, f))
        multipliers.append((m * toward).tolist())
    return {"item": item.tolist(), "reference": reference.tolist(), "multipliers": multipliers}


def best(cost: Callable[[float], float]) -> float:
    return float(optimize.minimize_scalar(cost, bounds=(0, 50), method="bounded", options={"xatol": 1e-3}).x)


# Cases.

KNOWN = (
    "results are Gaussian with exactly the covariance stated, or vary less (sub-Gaussian), and do not depend on one "
    "another"
)
EXACTLY = "results are Gaussian with exactly the covariance stated and do not depend on one another"


def known(norm: str, claims: str, exactly: bool = False, full: bool = False, linkage: bool = False) -> Case:
    """Noise of standard deviation 0.3 in scaled units, about."""
    scale = [1.0, 1.0] if exactly or linkage or full else [1.0, 2.0]
    world_scale = [1.0, 1.0] if linkage else [ETA * s for s in scale]
    covariance = np.array([[0.09, 0.03], [0.03, 0.06]]) if full else np.diag([0.09, 0.09 * scale[1] ** 2])
    if exactly:
        covariance = 0.09 * np.eye(2)
    root = np.linalg.cholesky(covariance)
    noise: Any = covariance.tolist() if full else np.sqrt(np.diag(covariance)).tolist()
    if exactly:
        noise = {"family": "exactly", "noise": 0.3}
    points = CHAIN if linkage else POINTS
    return Case(
        noise,
        (points * scale).tolist(),
        scale,
        lambda rng, mean: mean + root @ rng.normal(size=2),
        plain.World("exactly" if exactly else "known", norm, world_scale, covariance.tolist()),
        norm,
        claims,
        linkage,
        assumes=EXACTLY if exactly else KNOWN,
        variance=np.diag(covariance) / np.array(world_scale) ** 2,
    )


def gaussian(shape: str, norm: str, claims: str = "references", linkage: bool = False) -> Case:
    words = {
        "full": "one covariance",
        "diagonal": "one standard deviation for each number of a result, and these numbers vary independently",
        "scalar": "one standard deviation for all numbers of a result, and these vary independently",
    }[shape]
    scale = [1.0, 1.0] if linkage else [1.0, 2.0]
    deviations = np.array([0.3, 0.3]) if shape == "scalar" else 0.3 * np.array(scale)
    points = CHAIN if linkage else POINTS
    n_arms = len(points)
    first = 1 + math.ceil(120 / (n_arms * (2 if shape == "scalar" else 1)))
    return Case(
        {"family": "gaussian", "shape": shape},
        (points * scale).tolist(),
        scale,
        lambda rng, mean: mean + deviations * rng.normal(size=2),
        plain.World("gaussian", norm, scale, shape=shape),
        norm,
        claims,
        linkage,
        first=first + 1,
        assumes="results are Gaussian and do not depend on one another; all items share "
        f"{words}, which need not be known",
        variance=1.5 * deviations**2 / np.array(scale) ** 2,
    )


def bounded(norm: str, claims: str = "references", linkage: bool = False) -> Case:
    lo, hi = ([-0.5, -0.5], [5.5, 5.5]) if linkage else ([-2.0, -9.0], [5.0, 4.0])
    scale = [1.0, 1.0] if linkage else [1.0, 2.0]
    points = CHAIN if linkage else POINTS
    return Case(
        {"family": "bounded", "lo": lo, "hi": hi},
        (points * scale).tolist(),
        scale,
        lambda rng, mean: mean + 0.4 * rng.uniform(-1, 1, size=2),
        plain.World("bounded", norm, scale, widths=[b - a for a, b in zip(lo, hi, strict=True)]),
        norm,
        claims,
        linkage,
        assumes=f"results lie between {lo} and {hi} and do not depend on one another; nothing else",
        variance=np.array([0.16 / 3, 0.16 / 3]) / np.array(scale) ** 2,
    )


def counts(norm: str, trials: int, claims: str = "references", linkage: bool = False) -> Case:
    """Rates from the points, brought into (0, 1)."""
    scale = [1.0, 1.0] if linkage else [0.12 * trials, 0.12 * trials]
    unit = 0.16 * trials if linkage else 1.0
    means = unit * CHAIN + 0.1 * trials if linkage else (0.12 * POINTS + 0.45) * trials
    what = "0 or 1" if trials == 1 else f"a number of successes out of {trials} trials"
    return Case(
        {"family": "counts", "trials": trials},
        means.tolist(),
        scale,
        lambda rng, mean: rng.binomial(trials, np.array(mean) / trials),
        plain.World("counts", norm, scale, trials=trials),
        norm,
        claims,
        linkage,
        assumes=f"each number of a result is {what}, and all trials are independent, those of different numbers too",
        unit=unit,
    )


CASES: dict[str, Callable[[], Case]] = {
    "known, each": lambda: known("each", "references"),
    "known, each, any two": lambda: known("each", "any-two"),
    "known, each, covariance": lambda: known("each", "references", full=True),
    "known, distance": lambda: known("distance", "references"),
    "known, distance, any two": lambda: known("distance", "any-two"),
    "exactly, distance": lambda: known("distance", "references", exactly=True),
    "exactly, each": lambda: known("each", "references", exactly=True),
    "known, linkage": lambda: known("distance", "", linkage=True),
    "exactly, linkage": lambda: known("distance", "", exactly=True, linkage=True),
    "gaussian scalar, each": lambda: gaussian("scalar", "each"),
    "gaussian diagonal, each": lambda: gaussian("diagonal", "each", "any-two"),
    "gaussian full, each": lambda: gaussian("full", "each"),
    "gaussian full, distance": lambda: gaussian("full", "distance"),
    "gaussian scalar, distance": lambda: gaussian("scalar", "distance"),
    "gaussian diagonal, linkage": lambda: gaussian("diagonal", "distance", "", linkage=True),
    "bounded, each": lambda: bounded("each"),
    "bounded, each, any two": lambda: bounded("each", "any-two"),
    "bounded, distance": lambda: bounded("distance"),
    "bounded, linkage": lambda: bounded("distance", "", linkage=True),
    "counts, each": lambda: counts("each", 20),
    "counts, each, any two": lambda: counts("each", 20, "any-two"),
    "counts, distance": lambda: counts("distance", 20),
    "counts, linkage": lambda: counts("distance", 20, "", linkage=True),
}
