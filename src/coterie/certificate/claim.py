"""What a certificate claims, read from plain JSON values; what follows from M, K and δ alone is checked here.

There are two formats. In "coterie-certificate-1" rounds come one after the other and pairs read the first P results of
an arm; in "coterie-certificate-2" rounds may overlap and pairs read further, on a grid. Each is checked by its rules.
Format 2 also takes a noise that is not known (docs/EVIDENCE.md): then there are no pairs from the start, α = 0; but for
Gaussian noise whose variance results bound, in units of which pairs then are.
Names and docs/CROC.md's symbols: `share` is π_j, `level` is b_j, `equal_pairs` is H, `prefix_room` is P.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.fields import (
    EXACT,
    TOLERANCE,
    agree,
    field_of,
    list_of,
    object_of,
    table_of,
    whole_numbers,
)
from coterie.certificate.list_claim import ListClaim, list_claim_of
from coterie.certificate.log import Frozen, frozen_of
from coterie.certificate.revised import NOTHING, Spent
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
from coterie.problem.families import Model, Unknown, bounds_variance, noise_from_json
from coterie.problem.noise import Noise

FORMATS = {"coterie-certificate-1": 1, "coterie-certificate-2": 2}
PREFIX_ROOMS = (8, 16, 32, 64)  # of format 2; format 1 takes any

# The constants of the rule. They are part of the format: a share chosen after the results would prove nothing.
ALPHA = 0.2  # the share of δ for the pairs from the start
VARIANCE_SHARE = 0.1  # … and for an upper bound on the variance, where pairs need one
LOG_FIRST_SHARE, LOG_SHARE_RATIO = math.log(0.8), math.log(0.2)  # π_j = 0.8·0.2^j
HOMOGENEITY_LEVEL = 0.01  # how often a warning is wrong at most, for all groups together


@dataclass(frozen=True)
class PairsClaim:
    """Every arm against the representatives of the other groups: M·(K−1) tests, one a row."""

    arms: IntArray
    groups: IntArray
    evidence: FloatArray
    pulls_arm: IntArray
    pulls_representative: IntArray
    variance_at: IntArray  # how many results the bound on the variance is from; 0 if the noise is known


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
    by_pairs: tuple[IntArray, IntArray, FloatArray, IntArray, IntArray, IntArray]  # … evidence, pulls, variance_at


@dataclass(frozen=True)
class Claim:
    """A certificate whose shape is right and whose levels follow from its δ.

    `homogeneity` and `alarm` are of format 2, and None where nothing is said; `alarm` names arms that refute K. Without
    pairs from the start, for most noises that are not known, `prefix_room` is 0 and `pair_level` infinite.
    `variance_level` is log(1/(w·δ)), and 0 if no bound on the variance is needed.
    """

    format: int
    n_arms: int
    n_clusters: int
    noise: Model
    t: int
    labels: IntArray
    representatives: IntArray
    prefix_room: int
    pair_level: float
    variance_level: float
    freezes: tuple[Frozen, ...]
    levels: tuple[float, ...]
    pairs: PairsClaim | None
    epoch: EpochClaim | None
    homogeneity: FloatArray | None
    alarm: tuple[int, ...] | None
    listed: ListClaim | None = None
    homogeneity_rule: int = 1


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


def claim_of(given: dict[str, Any], spent: Spent = NOTHING) -> Claim:
    """The claim of a certificate; ValueError or TypeError says what is wrong with it. `spent`: before a revision."""
    name = given.get("format")
    if not isinstance(name, str) or name not in FORMATS:
        raise ValueError(f"not a certificate: format must be one of {', '.join(FORMATS)}, got {short(name)}")
    number = FORMATS[name]
    n_arms, n_clusters, dim = check_shape(
        field_of(given, "n_arms"), field_of(given, "n_clusters"), field_of(given, "dim")
    )
    labels = _group_labels(field_of(given, "labels"), n_arms, n_clusters)
    representatives = list_of(given, "representatives", n_clusters)
    for group, arm in enumerate(representatives):
        if labels[check_arm(arm, n_arms)] != group:
            raise ValueError(f"the representative of group {group} is arm {arm}, of group {int(labels[arm])}")
    log_inverse_delta = check_log_inverse_delta(field_of(given, "log_inverse_delta"))
    of_delta = -math.log(check_delta(field_of(given, "delta")))
    if not abs(log_inverse_delta - of_delta) <= EXACT:
        raise ValueError(f"log_inverse_delta must be {of_delta!r}, got {log_inverse_delta!r}")
    noise = _noise(given, dim, number)
    known = isinstance(noise, Noise)
    # After a revision nothing rests on a bound: which results it is from must not be chosen by retiring items.
    bounded = bounds_variance(noise) and not spent.revisions
    alpha = ALPHA if known or bounded else 0.0
    agree("alpha", field_of(given, "alpha"), alpha)
    variance_share = _variance_share(given, bounded)
    equal_pairs = _equal_pairs(given, number, (n_arms, n_clusters), known, spent)
    frozen_share = 1.0 - ALPHA - VARIANCE_SHARE if bounds_variance(noise) else 1.0 - alpha  # of an unrevised run
    if known or bounded:
        pair_level = math.log(equal_pairs) - math.log(ALPHA) + log_inverse_delta
        agree("pair_level", field_of(given, "pair_level"), pair_level)
        room = _prefix_room(field_of(given, "prefix_room"), number)
        if bounded:
            _check_rule(given, noise.kind)
    else:
        pair_level, room = math.inf, 0
        _check_no_pairs(given, noise.kind)
    t = check_count(field_of(given, "t"), "t", 1)
    freezes, levels = [], []
    for j, entry in enumerate(list_of(given, "epochs")):
        log_share = LOG_FIRST_SHARE + (spent.epochs + j) * LOG_SHARE_RATIO
        levels.append(log_inverse_delta - math.log(frozen_share) - log_share)
        freezes.append(_epoch(entry, j, levels[-1], log_share, t, n_arms, n_clusters))
    by = field_of(given, "by")
    if by not in ("pairs", "epoch", "list"):
        raise ValueError(f'by must be "pairs", "epoch" or "list", got {short(by)}')
    if by == "list" and (not known or number == 1 or spent.revisions or freezes):
        raise ValueError("a list of partitions is for a known noise, format 2, without freezes and revisions")
    by_list = partial(list_claim_of, log_inverse_delta - math.log(1.0 - ALPHA), n_arms, n_clusters)
    claim = Claim(
        number,
        n_arms,
        n_clusters,
        noise,
        t,
        labels,
        np.array(representatives, dtype=np.int64),
        room,
        pair_level,
        log_inverse_delta - math.log(variance_share) if bounded else 0.0,
        tuple(freezes),
        tuple(levels),
        _pairs(object_of(given, "pairs"), labels, n_clusters, t if bounded else 0) if by == "pairs" else None,
        _epoch_tests(object_of(given, "epoch"), n_arms, n_clusters, t if bounded else 0) if by == "epoch" else None,
        _homogeneity(given, n_clusters) if number > 1 else None,
        _alarm(given.get("alarm"), n_arms) if number > 1 else None,
        by_list(object_of(given, "list")) if by == "list" else None,
        _rule(given.get("homogeneity")),
    )
    if claim.epoch is not None:
        _check_candidate(claim, claim.epoch.number)
        if not known:
            _check_sides(claim, claim.epoch)
    return claim


def _noise(given: dict[str, Any], dim: int, number: int) -> Model:
    """The noise that the certificate assumes, and the sentence that says so."""
    noise = noise_from_json(field_of(given, "noise"), dim)
    if isinstance(noise, Unknown) and number == 1:
        raise ValueError(f"a certificate of format 1 has a known noise, got {short(given['noise'])}")
    needed = isinstance(noise, Unknown) or "assumes" in given or "log_format" in given
    if needed and field_of(given, "assumes") != noise.assumption:
        raise ValueError(
            f"assumes must say what the noise {noise.kind!r} assumes, {noise.assumption!r}, "
            f"got {short(given['assumes'])}"
        )
    return noise


def _equal_pairs(given: dict[str, Any], number: int, shape: tuple[int, int], known: bool, spent: Spent) -> int:
    """H: (M-K+1)(M-K)/2, or after a revision what `coterie.certificate.revised` says."""
    if spent.revisions and number == 1:
        raise ValueError("a certificate of format 1 has no revisions")
    left = shape[0] - shape[1]
    found, why = (left + 1) * left // 2, "(M-K+1)(M-K)/2"
    if known and spent.equal_pairs is not None:
        found, why = spent.equal_pairs, "by its revisions"
    if check_count(field_of(given, "equal_pairs"), "equal_pairs", 1) != found:
        raise ValueError(f"equal_pairs must be {found}, {why}, got {given['equal_pairs']!r}")
    return found


def _variance_share(given: dict[str, Any], bounded: bool) -> float:
    """The share of δ for an upper bound on the variance."""
    if bounded:
        agree("variance_share", field_of(given, "variance_share"), VARIANCE_SHARE)
        return VARIANCE_SHARE
    if given.get("variance_share") is not None:
        raise ValueError(f"variance_share is for Gaussian noise of unknown size, got {short(given['variance_share'])}")
    return 0.0


def _check_no_pairs(given: dict[str, Any], kind: str) -> None:
    """Without a known noise nothing may rest on pairs from the start."""
    _check_rule(given, kind)
    for name in ("pair_level", "prefix_room", "alarm"):
        value = given.get(name) if name == "alarm" else field_of(given, name)
        if value is not None:
            raise ValueError(f"with the noise {kind!r} {name} must be null, got {short(value)}")
    if field_of(given, "by") != "epoch":
        raise ValueError(f'with the noise {kind!r} by must be "epoch", got {short(given["by"])}')
    if list_of(object_of(given, "epoch"), "by_pairs"):
        raise ValueError(f"with the noise {kind!r} there are no pairs from the start: by_pairs must be empty")


def _check_sides(claim: Claim, tests: EpochClaim) -> None:
    """Which side of a test is the arm matters to a bet, so it is fixed with the freeze, and never chosen afterwards."""
    for name, some in (("group_tests", tests.group_tests), ("core_tests", tests.core_tests)):
        for i in np.flatnonzero(claim.labels[some.arms] == some.others)[:1].tolist():
            raise ValueError(f"{name}: arm {some.arms[i]} is tested against its own group, {some.others[i]}")
    pairs = tests.pair_tests
    for i in np.flatnonzero(claim.labels[pairs.arms] <= claim.labels[pairs.others])[:1].tolist():
        raise ValueError(
            f"pair_tests: arm {pairs.arms[i]} against arm {pairs.others[i]}, but the first arm must be the one whose "
            f"group has the larger number; they are of the groups {claim.labels[pairs.arms[i]]} and "
            f"{claim.labels[pairs.others[i]]}"
        )


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


def _check_rule(given: dict[str, Any], kind: str) -> None:
    """The first rule of homogeneity is for a known noise."""
    if given.get("homogeneity") is not None and _rule(given["homogeneity"]) == 1:
        raise ValueError(f"with the noise {kind!r} homogeneity must be null, got {short(given['homogeneity'])}")


def _rule(given: Any) -> int:
    """Which rule the stated homogeneity follows: 2 says so, 1 (release 0.2) says nothing."""
    return (
        1 if not isinstance(given, dict) or "rule" not in given else check_count(given["rule"], "homogeneity.rule", 2)
    )


def _homogeneity(certificate: dict[str, Any], n_clusters: int) -> FloatArray | None:
    """The stated evidence; since release 0.3 every certificate has some, so that none can be left out."""
    given = certificate.get("homogeneity")
    traced = "log_format" in certificate
    if given is None and not traced:
        return None
    if not isinstance(given, dict):
        raise TypeError(f"homogeneity must be an object, got {short(given)}")
    if _rule(given) > 2 or (traced and _rule(given) != 2):
        raise ValueError(f"homogeneity.rule must be 2, got {short(given.get('rule'))}")
    agree("homogeneity.level", field_of(given, "level"), HOMOGENEITY_LEVEL)
    agree("homogeneity.threshold", field_of(given, "threshold"), math.log(n_clusters / HOMOGENEITY_LEVEL))
    stated = check_real_array(list_of(given, "evidence", n_clusters), "homogeneity.evidence")
    if stated.shape != (n_clusters,):
        raise ValueError(f"homogeneity.evidence must be {n_clusters} numbers, got shape {stated.shape}")
    return stated


def _alarm(given: Any, n_arms: int) -> tuple[int, ...] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise TypeError(f"alarm must be an object or null, got {short(given)}")
    return tuple(check_arm(arm, n_arms) for arm in list_of(given, "arms"))


def _epoch(entry: Any, j: int, level: float, log_share: float, t: int, n_arms: int, n_clusters: int) -> Frozen:
    if not isinstance(entry, dict):
        raise ValueError(f"epoch {j} must be an object, got {short(entry)}")
    try:
        if field_of(entry, "number") != j or isinstance(entry["number"], bool):
            raise ValueError(f"its number must be {j}, got {short(entry['number'])}")
        share = math.exp(log_share)
        stated = check_real(field_of(entry, "share"), "share")
        if not math.isclose(stated, share, rel_tol=EXACT):
            raise ValueError(f"share must be {share!r} (0.8·0.2^j), got {stated!r}")
        agree("level", field_of(entry, "level"), level)
        at, labels, cores = (field_of(entry, name) for name in ("frozen_at", "labels", "cores"))
        found = frozen_of(j, at, labels, cores, n_arms, n_clusters)
        if found.at > t:
            raise ValueError(f"it was frozen at {found.at}, after the last of the {t} results that count")
    except (ValueError, TypeError) as error:
        raise ValueError(f"epoch {j} of the certificate: {error}") from None
    return found


def _pairs(given: dict[str, Any], labels: IntArray, n_clusters: int, most: int) -> PairsClaim:
    """`most`: results that a bound on the variance may be from, 0 if there is none."""
    others = [[k for k in range(n_clusters) if k != label] for label in labels.tolist()]
    evidence = _off_diagonal(given, "evidence", labels, n_clusters)
    counts = []
    for name in ("pulls_arm", "pulls_representative"):
        stated = _off_diagonal(given, name, labels, n_clusters)
        counts.append(whole_numbers(stated, f"pairs.{name}", 1))
    bounds = np.zeros_like(counts[0])
    if most > 0:
        bounds = whole_numbers(_off_diagonal(given, "variance_at", labels, n_clusters), "pairs.variance_at", 1, most)
    arms = np.repeat(np.arange(labels.size), n_clusters - 1)
    return PairsClaim(arms, np.array(others, dtype=np.int64).ravel(), evidence, counts[0], counts[1], bounds)


def _off_diagonal(given: dict[str, Any], name: str, labels: IntArray, n_clusters: int) -> FloatArray:
    rows = list_of(given, name, labels.size)
    kept = []
    for arm, (row, label) in enumerate(zip(rows, labels.tolist(), strict=True)):
        if not isinstance(row, list | tuple) or len(row) != n_clusters:
            raise ValueError(f"pairs.{name} must have {n_clusters} entries for arm {arm}, got {short(row)}")
        if row[label] is not None:
            raise ValueError(f"pairs.{name} of arm {arm} against its own group must be null, got {short(row[label])}")
        kept.append([*row[:label], *row[label + 1 :]])
    return check_real_array(kept, f"pairs.{name}").ravel()


def _epoch_tests(given: dict[str, Any], n_arms: int, n_clusters: int, most: int) -> EpochClaim:
    rounds = tuple(check_count(number, "a round of the epoch", 1) for number in list_of(given, "rounds"))
    pairs = table_of(given, "by_pairs", 6 if most > 0 else 5)
    bounds = pairs[:, 5] if most > 0 else np.zeros(len(pairs))
    return EpochClaim(
        check_count(field_of(given, "number"), "the epoch's number", 0),
        rounds,
        _tests(given, "group_tests", n_arms, n_clusters),
        _tests(given, "core_tests", n_arms, n_clusters),
        _tests(given, "pair_tests", n_arms, n_arms),
        (
            whole_numbers(pairs[:, 0], "the arms of by_pairs", 0, n_arms - 1),
            whole_numbers(pairs[:, 1], "the arms of by_pairs", 0, n_arms - 1),
            pairs[:, 2],
            whole_numbers(pairs[:, 3], "the pulls of by_pairs", 1),
            whole_numbers(pairs[:, 4], "the pulls of by_pairs", 1),
            whole_numbers(bounds, "the places of the bounds of by_pairs", min(most, 1), most),
        ),
    )


def _tests(given: dict[str, Any], name: str, n_arms: int, n_others: int) -> Tests:
    table = table_of(given, name, 4)
    return Tests(
        whole_numbers(table[:, 0], f"the arms of {name}", 0, n_arms - 1),
        whole_numbers(table[:, 1], f"the second entries of {name}", 0, n_others - 1),
        table[:, 2],
        whole_numbers(table[:, 3], f"the rounds of {name}", 1),
    )


def _group_labels(value: Any, n_arms: int, n_clusters: int) -> IntArray:
    if not isinstance(value, list | tuple):
        raise TypeError(f"labels must be a list, got {short(value)}")
    if len(value) != n_arms:  # before anything of the size of n_arms or n_clusters is made
        raise ValueError(f"the certificate labels {len(value)} arms, its n_arms is {n_arms}")
    return check_labels(value, n_clusters)
