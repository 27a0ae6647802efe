"""What a certificate claims, read from plain JSON values; what follows from M, K and δ alone is checked here.

There are two formats. In "coterie-certificate-1" rounds come one after the other and pairs read the first P results of
an arm; in "coterie-certificate-2" rounds may overlap and pairs read further, on a grid. Each is checked by its rules.
Names and docs/CROC.md's symbols: `share` is π_j, `level` is b_j, `equal_pairs` is H, `prefix_room` is P.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.log import Frozen, frozen_of
from coterie.certificate.strict import read_json
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_arm,
    check_count,
    check_delta,
    check_labels,
    check_log_inverse_delta,
    check_real,
    check_real_array,
    check_shape,
    short,
)
from coterie.problem.noise import Noise

FORMATS = {"coterie-certificate-1": 1, "coterie-certificate-2": 2}
PREFIX_ROOMS = (8, 16, 32, 64)  # of format 2; format 1 takes any

# The constants of the rule. They are part of the format: a share chosen after the results would prove nothing.
ALPHA = 0.2  # the share of δ for the pairs from the start
LOG_FIRST_SHARE, LOG_SHARE_RATIO = math.log(0.8), math.log(0.2)  # π_j = 0.8·0.2^j
HOMOGENEITY_LEVEL = 0.01  # how often a warning is wrong at most, for all groups together

TOLERANCE = 1e-6
"""How far stated evidence may be from the recomputed one, relative and absolute."""
EXACT, RELATIVE = 1e-9, 1e-12
"""The same for what follows from M, K and δ by formula, absolute and relative: of δ itself 1e-9 of it."""


@dataclass(frozen=True)
class PairsClaim:
    """Every arm against the representatives of the other groups: M·(K−1) tests, one a row."""

    arms: IntArray
    groups: IntArray
    evidence: FloatArray
    pulls_arm: IntArray
    pulls_representative: IntArray


@dataclass(frozen=True)
class Tests:
    """Tests of one kind in an epoch: arm against a group (or a second arm), with the last round that each uses."""

    arms: IntArray
    others: IntArray
    evidence: FloatArray
    rounds: IntArray


@dataclass(frozen=True)
class EpochClaim:
    """The tests of the epoch that certified."""

    number: int
    rounds: tuple[int, ...]
    group_tests: Tests
    core_tests: Tests
    pair_tests: Tests
    by_pairs: tuple[IntArray, IntArray, FloatArray, IntArray, IntArray]  # arm, arm, evidence, pulls of each


@dataclass(frozen=True)
class Claim:
    """A certificate whose shape is right and whose levels follow from its δ.

    `homogeneity` and `alarm` are of format 2, and None where nothing is said; `alarm` names arms that refute K.
    """

    format: int
    n_arms: int
    n_clusters: int
    noise: Noise
    t: int
    labels: IntArray
    representatives: IntArray
    prefix_room: int
    pair_level: float
    freezes: tuple[Frozen, ...]
    levels: tuple[float, ...]
    pairs: PairsClaim | None
    epoch: EpochClaim | None
    homogeneity: FloatArray | None
    alarm: tuple[int, ...] | None


def close(stated: FloatArray, found: FloatArray) -> NDArray[np.bool_]:
    """Where stated numbers agree with the recomputed ones; never with one that is not finite."""
    near = np.abs(stated - found) <= TOLERANCE * np.maximum(1.0, np.abs(found))
    return np.asarray(near & np.isfinite(found))


def read_certificate(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The certificate in a JSON file. ValueError if it is not strict JSON, or not an object."""
    try:
        with open(path, encoding="utf-8") as file:
            content = read_json(file.read())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is not a JSON file: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{os.fspath(path)} must hold a JSON object, got {short(content)}")
    return content


def claim_of(given: dict[str, Any]) -> Claim:
    """The claim of a certificate; ValueError or TypeError says what is wrong with it."""
    name = given.get("format")
    if not isinstance(name, str) or name not in FORMATS:
        raise ValueError(f"not a certificate: format must be one of {', '.join(FORMATS)}, got {short(name)}")
    number = FORMATS[name]
    n_arms, n_clusters, dim = check_shape(_get(given, "n_arms"), _get(given, "n_clusters"), _get(given, "dim"))
    labels = _group_labels(_get(given, "labels"), n_arms, n_clusters)
    representatives = _list(given, "representatives", n_clusters)
    for group, arm in enumerate(representatives):
        if labels[check_arm(arm, n_arms)] != group:
            raise ValueError(f"the representative of group {group} is arm {arm}, of group {int(labels[arm])}")
    log_inverse_delta = check_log_inverse_delta(_get(given, "log_inverse_delta"))
    of_delta = -math.log(check_delta(_get(given, "delta")))
    if not abs(log_inverse_delta - of_delta) <= EXACT:
        raise ValueError(f"log_inverse_delta must be {of_delta!r}, got {log_inverse_delta!r}")
    _agree("alpha", _get(given, "alpha"), ALPHA)
    equal_pairs = (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2
    if check_count(_get(given, "equal_pairs"), "equal_pairs", 1) != equal_pairs:
        raise ValueError(f"equal_pairs must be {equal_pairs}, (M-K+1)(M-K)/2, got {given['equal_pairs']!r}")
    pair_level = math.log(equal_pairs) - math.log(ALPHA) + log_inverse_delta
    _agree("pair_level", _get(given, "pair_level"), pair_level)
    t = check_count(_get(given, "t"), "t", 1)
    freezes, levels = [], []
    for j, entry in enumerate(_list(given, "epochs")):
        level = log_inverse_delta - math.log(1.0 - ALPHA) - LOG_FIRST_SHARE - j * LOG_SHARE_RATIO
        levels.append(level)
        freezes.append(_epoch(entry, j, level, t, n_arms, n_clusters))
    by = _get(given, "by")
    if by not in ("pairs", "epoch"):
        raise ValueError(f'by must be "pairs" or "epoch", got {short(by)}')
    claim = Claim(
        number,
        n_arms,
        n_clusters,
        Noise.from_json(_get(given, "noise"), dim),
        t,
        labels,
        np.array(representatives, dtype=np.int64),
        _prefix_room(_get(given, "prefix_room"), number),
        pair_level,
        tuple(freezes),
        tuple(levels),
        _pairs(_object(given, "pairs"), labels, n_clusters) if by == "pairs" else None,
        _epoch_tests(_object(given, "epoch"), n_arms, n_clusters) if by == "epoch" else None,
        _homogeneity(given.get("homogeneity"), n_clusters) if number > 1 else None,
        _alarm(given.get("alarm"), n_arms) if number > 1 else None,
    )
    if claim.epoch is not None:
        _check_candidate(claim, claim.epoch.number)
    return claim


def _check_candidate(claim: Claim, epoch: int) -> None:
    """The epoch on which a claim rests is listed, and its candidate is what is claimed."""
    if epoch >= len(claim.freezes):
        raise ValueError(f"the certificate rests on epoch {epoch}, but lists only {len(claim.freezes)}")
    if not np.array_equal(claim.freezes[epoch].labels, claim.labels):
        raise ValueError(f"labels are not the candidate of epoch {epoch}, on which it rests")


def _prefix_room(value: Any, number: int) -> int:
    room = check_count(value, "prefix_room", 1)
    if number > 1 and room not in PREFIX_ROOMS:
        raise ValueError(f"prefix_room must be one of {', '.join(map(str, PREFIX_ROOMS))}, got {room}")
    return room


def _homogeneity(given: Any, n_clusters: int) -> FloatArray | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise TypeError(f"homogeneity must be an object, got {short(given)}")
    _agree("homogeneity.level", _get(given, "level"), HOMOGENEITY_LEVEL)
    _agree("homogeneity.threshold", _get(given, "threshold"), math.log(n_clusters / HOMOGENEITY_LEVEL))
    stated = check_real_array(_list(given, "evidence", n_clusters), "homogeneity.evidence")
    if stated.shape != (n_clusters,):
        raise ValueError(f"homogeneity.evidence must be {n_clusters} numbers, got shape {stated.shape}")
    return stated


def _alarm(given: Any, n_arms: int) -> tuple[int, ...] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise TypeError(f"alarm must be an object or null, got {short(given)}")
    return tuple(check_arm(arm, n_arms) for arm in _list(given, "arms"))


def _epoch(entry: Any, j: int, level: float, t: int, n_arms: int, n_clusters: int) -> Frozen:
    if not isinstance(entry, dict):
        raise ValueError(f"epoch {j} must be an object, got {short(entry)}")
    try:
        if _get(entry, "number") != j or isinstance(entry["number"], bool):
            raise ValueError(f"its number must be {j}, got {short(entry['number'])}")
        share = math.exp(LOG_FIRST_SHARE + j * LOG_SHARE_RATIO)
        stated = check_real(_get(entry, "share"), "share")
        if not math.isclose(stated, share, rel_tol=EXACT):
            raise ValueError(f"share must be {share!r} (0.8·0.2^j), got {stated!r}")
        _agree("level", _get(entry, "level"), level)
        at, labels, cores = (_get(entry, name) for name in ("frozen_at", "labels", "cores"))
        found = frozen_of(j, at, labels, cores, n_arms, n_clusters)
        if found.at > t:
            raise ValueError(f"it was frozen at {found.at}, after the last of the {t} results that count")
    except (ValueError, TypeError) as error:
        raise ValueError(f"epoch {j} of the certificate: {error}") from None
    return found


def _pairs(given: dict[str, Any], labels: IntArray, n_clusters: int) -> PairsClaim:
    others = [[k for k in range(n_clusters) if k != label] for label in labels.tolist()]
    evidence = _off_diagonal(given, "evidence", labels, n_clusters)
    counts = []
    for name in ("pulls_arm", "pulls_representative"):
        stated = _off_diagonal(given, name, labels, n_clusters)
        counts.append(_whole(stated, f"pairs.{name}", 1))
    arms = np.repeat(np.arange(labels.size), n_clusters - 1)
    return PairsClaim(arms, np.array(others, dtype=np.int64).ravel(), evidence, counts[0], counts[1])


def _off_diagonal(given: dict[str, Any], name: str, labels: IntArray, n_clusters: int) -> FloatArray:
    rows = _list(given, name, labels.size)
    kept = []
    for arm, (row, label) in enumerate(zip(rows, labels.tolist(), strict=True)):
        if not isinstance(row, list | tuple) or len(row) != n_clusters:
            raise ValueError(f"pairs.{name} must have {n_clusters} entries for arm {arm}, got {short(row)}")
        if row[label] is not None:
            raise ValueError(f"pairs.{name} of arm {arm} against its own group must be null, got {short(row[label])}")
        kept.append([*row[:label], *row[label + 1 :]])
    return check_real_array(kept, f"pairs.{name}").ravel()


def _epoch_tests(given: dict[str, Any], n_arms: int, n_clusters: int) -> EpochClaim:
    rounds = tuple(check_count(number, "a round of the epoch", 1) for number in _list(given, "rounds"))
    pairs = _table(given, "by_pairs", 5)
    return EpochClaim(
        check_count(_get(given, "number"), "the epoch's number", 0),
        rounds,
        _tests(given, "group_tests", n_arms, n_clusters),
        _tests(given, "core_tests", n_arms, n_clusters),
        _tests(given, "pair_tests", n_arms, n_arms),
        (
            _whole(pairs[:, 0], "the arms of by_pairs", 0, n_arms - 1),
            _whole(pairs[:, 1], "the arms of by_pairs", 0, n_arms - 1),
            pairs[:, 2],
            _whole(pairs[:, 3], "the pulls of by_pairs", 1),
            _whole(pairs[:, 4], "the pulls of by_pairs", 1),
        ),
    )


def _tests(given: dict[str, Any], name: str, n_arms: int, n_others: int) -> Tests:
    table = _table(given, name, 4)
    return Tests(
        _whole(table[:, 0], f"the arms of {name}", 0, n_arms - 1),
        _whole(table[:, 1], f"the second entries of {name}", 0, n_others - 1),
        table[:, 2],
        _whole(table[:, 3], f"the rounds of {name}", 1),
    )


def _table(given: dict[str, Any], name: str, width: int) -> FloatArray:
    rows = _list(given, name)
    table = check_real_array(rows, name) if rows else np.empty((0, width))
    if table.ndim != 2 or table.shape[1] != width:
        raise ValueError(f"{name} must have rows of {width} numbers, got shape {table.shape}")
    return table


def _whole(values: FloatArray, name: str, least: int, most: int = 2**53) -> IntArray:
    wrong = (values != np.floor(values)) | (values < least) | (values > most)
    if wrong.any():
        raise ValueError(
            f"{name} must be whole numbers from {least}"
            f"{'' if most == 2**53 else f' to {most}'}, got {float(values[int(np.argmax(wrong))])!r}"
        )
    return values.astype(np.int64)


def _group_labels(value: Any, n_arms: int, n_clusters: int) -> IntArray:
    if not isinstance(value, list | tuple):
        raise TypeError(f"labels must be a list, got {short(value)}")
    if len(value) != n_arms:  # before anything of the size of n_arms or n_clusters is made
        raise ValueError(f"the certificate labels {len(value)} arms, its n_arms is {n_arms}")
    return check_labels(value, n_clusters)


def _get(given: dict[str, Any], name: str) -> Any:
    if name not in given:
        raise ValueError(f"{name} is missing")
    return given[name]


def _list(given: dict[str, Any], name: str, length: int | None = None) -> list[Any] | tuple[Any, ...]:
    value = _get(given, name)
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list, got {short(value)}")
    if length is not None and len(value) != length:
        raise ValueError(f"{name} must have {length} entries, got {len(value)}")
    return value


def _object(given: dict[str, Any], name: str) -> dict[str, Any]:
    value = _get(given, name)
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be an object, got {short(value)}")
    return value


def _agree(name: str, stated: Any, found: float) -> None:
    if not abs(check_real(stated, name) - found) <= EXACT + RELATIVE * abs(found):
        raise ValueError(f"{name} must be {found!r}, got {stated!r}")
