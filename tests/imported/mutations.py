"""Single changes of certificates and logs, drawn at random: what somebody who cheats, or a broken file, might make."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

import coterie
from coterie.problem.families import noise_from_json

STRANGE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 99, 1e300, -1e300, 0.5, 1e-12, float("nan"), float("inf"), 2**70, "", "x", [], {},
    [[]], [None], {"": None}, [0, 1], "0",
)  # fmt: skip

Path = tuple[Any, ...]


def a_path(node: Any, rng: np.random.Generator, deep: float = 0.75) -> Path:
    """The way to some part of a document."""
    path: list[Any] = []
    while isinstance(node, dict | list) and len(node) and (not path or rng.random() < deep):
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = keys[int(rng.integers(len(keys)))]
        path.append(key)
        node = node[key]
    return tuple(path)


def at(node: Any, path: Path) -> Any:
    for key in path:
        node = node[key]
    return node


def mutated(document: Any, rng: np.random.Generator) -> tuple[Any, Path, str]:
    """A copy with one change, where it was made, and what it was."""
    changed = copy.deepcopy(document)
    path = a_path(changed, rng)
    inside = at(changed, path[:-1])
    key, old = path[-1], at(changed, path)
    ways = ["strange", "gone", "twice" if isinstance(inside, list) else "strange", "other", "nudged", "moved"]
    way = ways[int(rng.integers(len(ways)))]
    if way == "gone":
        del inside[key]
    elif way == "twice":
        inside.insert(key, copy.deepcopy(old))
    elif way == "moved" and isinstance(inside, list) and len(inside) > 1:
        other = int(rng.integers(len(inside)))
        inside[key], inside[other] = inside[other], inside[key]
    elif way == "other":
        inside[key] = copy.deepcopy(at(changed, a_path(changed, rng)))
    elif way == "nudged" and isinstance(old, int | float) and not isinstance(old, bool):
        inside[key] = [old + 1, old - 1, -old, old * (1 + 1e-5), old + 0.5, old * 2][int(rng.integers(6))]
    elif way == "nudged" and isinstance(old, str):
        inside[key] = old[::-1] + "."
    elif way == "nudged" and isinstance(old, list) and len(old) > 1:
        inside[key] = old[1:]
    else:
        inside[key] = STRANGE[int(rng.integers(len(STRANGE)))]
    return changed, path, way


def claimed(certificate: dict[str, Any]) -> dict[str, Any]:
    """What a reader takes from a certificate: if that is another after a change, the change must be refused."""
    names = (
        "n_arms", "n_clusters", "dim", "delta", "noise", "question", "claim", "assumes", "epsilon", "eta", "height",
        "norm", "claims", "references", "borders", "present", "revisions", "revisions_in_words", "resolutions", "names",
        "resolutions_in_words", "blocks", "strict_blocks", "failures", "groups", "remarks", "features",
    )  # fmt: skip
    found = {name: certificate[name] for name in names if certificate.get(name) is not None}
    found["noise"] = noise_from_json(certificate["noise"], certificate["dim"]).to_json()
    revisions = found.get("revisions", [])
    found["revisions"] = [{key: value for key, value in one.items() if value is not None} for one in revisions]
    numbers: dict[Any, int] = {}
    found["partition"] = [numbers.setdefault(label, len(numbers)) for label in certificate["labels"]]
    found["corrections"] = certificate.get("corrections", [])
    if certificate.get("alarm"):
        found["alarm"] = certificate["alarm"]
    found["says whether its groups look like one"] = certificate.get("homogeneity") is not None
    return found


def check_changes(kept: Sequence[tuple[str, Any, Any]], seed: int, count: int) -> None:
    """That of so many changes of certificates and logs none is accepted that claims something else.

    `kept`: names, certificates and logs. Three of five changes are of certificates, one of five is of two places.
    """
    rng, refused = np.random.default_rng(seed), 0
    for n in range(count):
        name, certificate, log = kept[n % len(kept)]
        other: Any = certificate
        path: Path = ()
        way = ""
        for _ in range(1 if rng.random() < 0.8 else 2):
            if n % 5 < 3:
                other, path, way = mutated(other, rng)
            else:
                log, path, way = mutated(log, rng)
        verdict = coterie.verify(other, log)
        assert verdict.valid == (not verdict.problems)
        assert not any("not a certificate with its log" in problem for problem in verdict.problems), (name, path, way)
        refused += not verdict
        if verdict:
            assert claimed(other) == claimed(certificate), (name, path, way)
    assert refused > 0.8 * count
