"""Certificates of finished tables in blocks: honest ones are accepted, and forged blocks are refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.certificate import read_log, write_log


def table(
    dim: int = 1, items: int = 4, blocks: int = 10, times: int = 1, holes: float = 0.0, seed: int = 1
) -> list[dict[str, Any]]:
    """Rows of items in three groups 5 apart, on days that shift everything."""
    rng = np.random.default_rng(seed)
    rows = []
    for day in range(blocks):
        shift = 4.0 * rng.normal(size=dim)
        for item in range(items):
            for _ in range(times):
                values = 5.0 * (item % 3) + shift + rng.normal(size=dim)
                if rng.random() >= holes:
                    numbers = {f"v{k}": float(value) for k, value in enumerate(values)}
                    rows.append({"item": f"i{item}", "day": f"day {day}"} | numbers)
    return rows


def counts() -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    return [
        {"item": f"i{item}", "day": day, "v0": int(rng.binomial(20, 0.1 + 0.02 * day + 0.25 * (item % 3)))}
        for day in range(12)
        for item in range(4)
    ]


CASES: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
    (table(), {}),
    (table(blocks=20), {"n_clusters": 3}),
    (table(times=3, blocks=4), {}),
    (table(2, blocks=20), {"n_clusters": 3}),
    (table(holes=0.2, blocks=25), {}),
    (table(items=11, blocks=20), {}),
    (table(), {"noise": "gaussian"}),
    (table(holes=0.3), {"noise": "gaussian", "n_clusters": 3}),
    (table(2), {"noise": coterie.Gaussian("diagonal")}),
    (table(3), {"noise": coterie.Gaussian("scalar")}),
    (table(2), {"noise": "gaussian"}),
    (table(), {"noise": 1.0, "n_clusters": 3}),
    (table(2, holes=0.2), {"noise": 1.0}),
    (table(), {"noise": coterie.AtMost(1.0)}),
    (table(times=3), {"noise": coterie.Symmetric()}),
    (table(blocks=60), {"noise": coterie.Bounded(-25, 35)}),
    (counts(), {"noise": coterie.Counts(20)}),
    (table(), {"noise": "gaussian", "resolution": (0.5, 4.5)}),
    (table(holes=0.2, blocks=14), {"noise": 1.0, "resolution": (0.5, 4.5)}),
    (table(blocks=200), {"noise": coterie.Bounded(-25, 35), "resolution": (1.0, 40.0)}),
    (table(), {"noise": "gaussian", "n_clusters": 3, "groups": "linkage"}),
]
NAMES = [f"{k}: {given.get('noise')}, {[key for key in given if key != 'noise']}" for k, (_, given) in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_honest_certificates_hold_and_forged_blocks_do_not(case: tuple[list[dict[str, Any]], dict[str, Any]]) -> None:
    grouping = coterie.group(case[0], blocks="day", **case[1])
    plain, events = json.loads(json.dumps(grouping.certificate)), grouping.events
    assert plain is not None
    verdict = coterie.verify(plain, events)
    assert verdict.valid, verdict.problems
    assert coterie.verify(plain, events[::-1]).valid, "the order of rows plays no role"
    for words, forged, log in forgeries(plain, list(events)):
        assert not coterie.verify(forged, log).valid, words


def forgeries(
    plain: dict[str, Any], events: list[dict[str, Any]]
) -> list[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    blocks = plain["blocks"]
    renamed, bare, swapped, all_swapped = (copy.deepcopy(events) for _ in range(4))
    renamed[0]["block"] = "another day"
    for event in bare:
        del event["block"]
    first, second = events[0]["block"], next(e["block"] for e in events if e["block"] != events[0]["block"])
    other = next(k for k, e in enumerate(events) if e["block"] == second and e["values"] != events[0]["values"])
    swapped[0]["block"], swapped[other]["block"] = second, first
    for event in all_swapped:
        event["block"] = {first: second, second: first}.get(event["block"], event["block"])
    one_bare = copy.deepcopy(events)
    del one_bare[3]["block"]
    without = {key: value for key, value in plain.items() if key != "blocks"}
    names = list(blocks["names"])
    return [
        ("a changed name in the log", plain, renamed),
        ("no blocks in the log", plain, bare),
        ("one row without a block", plain, one_bare),
        ("two rows in each other's block", plain, swapped),
        ("two blocks in each other's place", plain, all_swapped),
        ("no blocks in the certificate", without, events),
        ("no blocks at all", without, bare),
        ("another column", plain | {"blocks": blocks | {"column": "hour"}}, events),
        ("a changed name", plain | {"blocks": blocks | {"names": ["x", *names[1:]]}}, events),
        ("a block too many", plain | {"blocks": blocks | {"names": [*names, "x"]}}, events),
        ("a block twice", plain | {"blocks": blocks | {"names": [*names, names[0]]}}, events),
        ("another digest", plain | {"blocks": blocks | {"digest": "0" * 64}}, events),
        ("no digest", plain | {"blocks": {key: blocks[key] for key in ("column", "names")}}, events),
        ("no object", plain | {"blocks": "day"}, events),
    ]


def test_a_certificate_without_blocks_does_not_take_a_log_with_them() -> None:
    rows = table()
    plain = coterie.group([{key: row[key] for key in ("item", "v0")} for row in rows], noise="gaussian")
    in_blocks = coterie.group(rows, blocks="day", noise="gaussian")
    assert plain.certificate is not None
    verdict = coterie.verify(plain.certificate, in_blocks.events)
    assert not verdict.valid
    assert "blocks" in " ".join(verdict.problems)


def test_a_p_value_or_a_pair_that_was_changed_is_refused() -> None:
    grouping = coterie.group(table(holes=0.1), blocks="day")
    plain = json.loads(json.dumps(grouping.certificate))
    i, j, p = plain["apart"][0]
    for apart in ([[i, j, p / 2.0], *plain["apart"][1:]], [[0, 3, 1e-3], *plain["apart"]]):
        assert not coterie.verify(plain | {"apart": apart}, grouping.events).valid
    assert not coterie.verify(plain | {"test": "permutations"}, grouping.events).valid
    assert not coterie.verify(plain | {"seed": plain["seed"] + 1}, grouping.events).valid


def test_blocks_survive_the_log_as_csv(tmp_path: Path) -> None:
    grouping = coterie.group(table(), blocks="day")
    write_log(tmp_path / "log.csv", grouping.events, 1)
    assert read_log(tmp_path / "log.csv") == list(grouping.events)
