"""Certificates of finished tables: honest ones are accepted, and changes that matter are refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

import coterie


def table(dim: int = 1, items: int = 5, rows: int = 12, gap: float = 4.0, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {f"i{k}": k % 3 * gap + rng.normal(size=(rows + k % 2, dim)) for k in range(items)}


def counts() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.binomial(10, 0.1 + 0.35 * (k % 3), size=20).astype(float) for k, name in enumerate("abcdef")}


def rates(events: bool, dim: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)  # a table that three groups fit; with a probability of up to δ they do not
    draw = rng.poisson if events else rng.exponential
    return {f"i{k}": draw(2.0 * 6.0 ** (k % 3), (20 + k % 2, dim)).astype(float) for k in range(5)}


CASES: list[tuple[dict[str, np.ndarray], dict[str, Any]]] = [
    (table(), {}),
    (table(), {"n_clusters": 3}),
    (table(2), {"n_clusters": 3, "growing": False}),
    (table(items=3), {"noise": "gaussian"}),
    (table(items=11), {"noise": "gaussian", "n_clusters": 3}),
    (table(2), {"noise": "gaussian", "n_clusters": 3}),
    (table(3), {"noise": coterie.Gaussian("scalar")}),
    (table(3), {"noise": coterie.Gaussian("diagonal")}),
    (table(), {"noise": 1.0, "n_clusters": 3}),
    (table(2), {"noise": 1.0}),
    (table(), {"noise": coterie.AtMost(1.0), "n_clusters": 3}),
    (table(2), {"noise": coterie.Symmetric(), "n_clusters": 3}),
    (table(gap=9.0, rows=40), {"noise": coterie.Bounded(-5, 25), "n_clusters": 3}),
    (counts(), {"noise": coterie.Counts(10), "n_clusters": 3}),
    (rates(True), {"noise": coterie.Poisson(), "n_clusters": 3}),
    (rates(True, 2), {"noise": coterie.Poisson(), "n_clusters": 3}),
    (rates(False, 2), {"noise": coterie.Exponential(), "n_clusters": 3}),
    (table(rows=30), {"noise": "gaussian", "resolution": (0.5, 3.0)}),
    (table(2, rows=30), {"noise": 1.0, "resolution": coterie.Resolution(0.5, 3.0, "distance", "any-two")}),
    (counts(), {"noise": coterie.Counts(10), "resolution": (0.5, 3.0)}),
    (table(gap=9.0, rows=60), {"noise": coterie.Bounded(-5, 25), "resolution": (1.0, 8.0)}),
    (table(rows=30), {"noise": "gaussian", "n_clusters": 3, "groups": "linkage"}),
]
NAMES = [f"{given.get('noise')}, {[key for key in given if key != 'noise']}" for _, given in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_honest_certificates_hold_and_changed_ones_do_not(case: tuple[dict[str, np.ndarray], dict[str, Any]]) -> None:
    found = coterie.group(case[0], **case[1])
    certificate, events = found.certificate, found.events
    assert certificate is not None
    asked = "n_clusters" in case[1] or "resolution" in case[1]
    assert (certificate["labels"] is not None) == (asked or len(case[0]) == 3)
    plain = json.loads(json.dumps(certificate))
    verdict = coterie.verify(plain, events)
    assert verdict.valid, verdict.problems
    assert coterie.verify(plain, events[::-1]).valid, "the order of rows plays no role"
    for changed in changes(plain):
        refused = coterie.verify(changed, events)
        assert not refused.valid, {key: value for key, value in changed.items() if plain.get(key) != value}
        assert refused.problems
    spoilt = copy.deepcopy(events)
    for event in spoilt:
        event["values"] = [events[0]["values"][0]] * len(event["values"])  # all rows equal
    assert not coterie.verify(plain, spoilt).valid
    assert not coterie.verify(plain, events[1:]).valid


def changes(plain: dict[str, Any]) -> list[dict[str, Any]]:
    """Changes that claim more than was proven, or about something else."""
    found: list[dict[str, Any]] = []
    for key in plain:
        found.append({name: value for name, value in plain.items() if name != key})
    found.append(plain | {"extra": 1})
    listed = {tuple(one[:2]) for one in plain["apart"]}
    pairs = [(i, j) for i in range(plain["n_arms"]) for j in range(i + 1, plain["n_arms"])]
    for i, j in [pair for pair in pairs if pair not in listed][:2]:
        entry = [i, j] if len(plain["apart"][0]) == 2 else [i, j, 1e-6]
        found.append(plain | {"apart": [*plain["apart"], entry]})
    found.append(plain | {"apart": [*plain["apart"], plain["apart"][0]]})
    if len(plain["apart"][0]) == 3:
        found.append(
            plain | {"apart": [[*plain["apart"][0][:2], plain["apart"][0][2] / 2 + 1e-5], *plain["apart"][1:]]}
        )
    found.append(plain | {"groups_at_least": plain["groups_at_least"] + 1})
    found.append(
        plain | {"differing": list(range(plain["n_arms"]))} if len(listed) < len(pairs) else plain | {"rows": 1}
    )
    found.append(plain | {"delta": plain["delta"] / 2})  # the claim in words says another one
    found.append(plain | {"rows": "stated" if plain["rows"] == "assumed" else "assumed"})
    found.append(plain | {"claim": "all is well"})
    found.append(plain | {"assumes": "nothing"})
    found.append(plain | {"seed": 7})
    found.append(plain | {"draws": 17})
    found.append(plain | {"test": "guess"})
    found.append(plain | {"format": 2})
    found.append(plain | {"t": plain["t"] + 1})
    found.append(plain | {"asked": {"kind": "groups", "n_clusters": plain["n_arms"]}})
    found.append(plain | {"asked": {"kind": "differences", "more": 1}})
    if plain["labels"] is not None and len(set(plain["labels"])) < plain["n_arms"]:
        moved = [*plain["labels"]]
        moved[-1] = (moved[-1] + 1) % (max(moved) + 1)
        found.append(plain | {"labels": moved})
        found.append(plain | {"labels": [99, *plain["labels"][1:]]})
        found.append(plain | {"labels": [0] * plain["n_arms"]})
        found.append(plain | {"labels": None})  # then less is claimed than the words say
    if plain["references"] is not None:
        found.append(plain | {"references": plain["references"][::-1]})
        found.append(plain | {"references": [10**6] * len(plain["references"])})
    return found


WEIRD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**12,
    1e300,
    float("nan"),
    "x",
    [],
    [[]],
    {},
    {"kind": "groups"},
    [0, 1],
    [[0, 1, 2, 3]],
)


@pytest.mark.slow
@pytest.mark.parametrize("case", [CASES[1], CASES[14]], ids=["tests", "intervals"])
def test_no_exception_whatever_stands_there(case: tuple[dict[str, np.ndarray], dict[str, Any]]) -> None:
    found = coterie.group(case[0], **case[1])
    plain = json.loads(json.dumps(found.certificate))
    for key in plain:
        for value in WEIRD:
            if value == plain[key]:
                continue
            verdict = coterie.verify(plain | {key: value}, found.events)
            if key not in ("apart", "differing", "groups_at_least"):  # of which less may be claimed
                assert not verdict.valid, (key, value)
    for event in (None, {}, {"event": "freeze"}, {"event": "result", "arm": 99, "round": 0, "values": [1.0]}):
        assert not coterie.verify(plain, [*found.events, event]).valid
