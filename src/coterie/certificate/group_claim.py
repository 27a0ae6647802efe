"""What a certificate of K groups claims: pairs from the start, the tests of an epoch, or a list of partitions.

Where the noise is not known (docs/EVIDENCE.md) there are no pairs from the start, α = 0; but for Gaussian noise whose
variance results bound, in units of which pairs then are. Names and symbols of docs/CROC.md: `equal_pairs` is H,
`prefix_room` is P. A list of partitions (docs/CROC.md, section 20) is

    {"level": log(1/((1−α)δ)), "rounds": [1, …, r], "pairs": [[arm, arm, evidence, count, count], …],
     "partitions": [labels, …], "struck": [[round, evidence], …]}
`pairs` are all settled pairs that it rests on. `struck` has an entry for each partition: the round by which its
evidence reached the level, and that evidence; [0, 0] if a pair struck it off, and for the partition that is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.certificate.claim import (
    LOG_FIRST_SHARE,
    LOG_SHARE_RATIO,
    VARIANCE_SHARE,
    Head,
    Tests,
    epochs_of,
    head_of,
    tests_of,
    variance_share_of,
)
from coterie.certificate.fields import EXACT, agree, field_of, list_of, object_of, off_diagonal, table_of, whole_numbers
from coterie.certificate.freezes import Freeze, frozen_of
from coterie.certificate.revised import NOTHING, SpentError
from coterie.problem.checks import FloatArray, IntArray, check_arm, check_count, check_real, check_real_array, short
from coterie.problem.families import bounds_variance
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups

PREFIX_ROOMS = (8, 16, 32, 64)
ALPHA = 0.2  # the share of δ for the pairs from the start
HOMOGENEITY_LEVEL = 0.01  # how often a warning is wrong at most, for all groups together
MOST_PARTITIONS = 4000
"""On a list that is looked at; the method makes shorter ones."""


@dataclass(frozen=True)
class PairTests:
    """Pairs of arms that differ by so many of their first results, one a row; in blocks by cells up to `n_first`."""

    first: IntArray
    second: IntArray
    evidence: FloatArray
    n_first: IntArray
    n_second: IntArray
    bound_at: IntArray  # how many results the bound on the variance is from; 0 if the noise is known


@dataclass(frozen=True)
class EpochClaim:
    """The tests of the epoch that certified."""

    number: int
    rounds: tuple[int, ...]
    group_tests: Tests
    core_tests: Tests
    pair_tests: Tests
    joint_tests: JointTests | None  # where there are no halves
    by_pairs: PairTests


@dataclass(frozen=True)
class JointTests:
    """Two pairs of core arms at a time, one a row: of results bounded in drawn blocks."""

    arms: IntArray  # (n, 4)
    evidence: FloatArray
    counts: IntArray


@dataclass(frozen=True)
class ListClaim:
    """A list of partitions, and what struck off all but one."""

    level: float
    rounds: tuple[int, ...]
    pairs: PairTests
    partitions: IntArray  # (n, M)
    struck_by: IntArray  # (n) rounds
    evidence: FloatArray  # (n)


@dataclass(frozen=True)
class GroupClaim(Head):
    """A claim of K groups whose levels follow from its δ; it rests on one of `pairs`, `epoch` and `listed`.

    Without pairs from the start, for most noises that are not known, `prefix_room` is 0 and `pair_level` infinite.
    `variance_level` is log(1/(w·δ)), and 0 if no bound on the variance is needed. `homogeneity` and `alarm` are None
    where nothing is said; `alarm` names arms that refute K. `lapsed`: cells that ended unfinished; `generation`: of
    the cells of pairs, under strict blocks.
    """

    prefix_room: int
    pair_level: float
    variance_level: float
    freezes: tuple[Freeze, ...]
    levels: tuple[float, ...]
    pairs: PairTests | None
    epoch: EpochClaim | None
    listed: ListClaim | None
    homogeneity: FloatArray | None
    homogeneity_rule: int
    alarm: tuple[int, ...] | None
    lapsed: tuple[int, ...]
    generation: int

    @property
    def has_halves(self) -> bool:
        """Whether some tests need half of their level only: contrasts of disjoint ones must be uncorrelated."""
        return not (self.blocks == "drawn" and self.noise.kind == "bounded")


def group_claim_of(given: dict[str, Any], spent: SpentError = NOTHING) -> GroupClaim:
    """The claim of a certificate; ValueError or TypeError says what is wrong with it. `spent`: before a revision."""
    head = head_of(given, ExactGroups.kind)
    known = isinstance(head.noise, Noise)
    # After a revision nothing rests on a bound: which results it is from must not be chosen by retiring items.
    apart = head.features is not None
    bounded = bounds_variance(head.noise) and not spent.revisions and not head.blocks and not apart
    alpha = ALPHA if (known or bounded) and not apart else 0.0
    agree("alpha", field_of(given, "alpha"), alpha)
    variance_share = variance_share_of(given, bounded)
    equal_pairs = _equal_pairs(given, head, known, spent)
    generation = _generation(given, head, alpha, spent)
    pair_level, room = _pair_level(given, head, equal_pairs, generation) if alpha > 0.0 else (math.inf, 0)
    if not known and given.get("homogeneity") is not None and _rule(given["homogeneity"]) == 1:
        shown = short(given["homogeneity"])  # the first rule is for a known noise
        raise ValueError(f"with the noise {head.noise.kind!r} homogeneity must be null, got {shown}")
    if not alpha:
        _check_no_pairs(given, head.noise.kind)
    levels: list[float] = []
    frozen_share = 1.0 - alpha
    if bounds_variance(head.noise) and not head.blocks and not apart:
        frozen_share = 1.0 - ALPHA - VARIANCE_SHARE  # of an unrevised run

    def epoch_of(entry: dict[str, Any], j: int) -> Freeze:
        log_share = LOG_FIRST_SHARE + (spent.epochs + j) * LOG_SHARE_RATIO
        levels.append(head.log_inverse_delta - math.log(frozen_share) - log_share)
        return _epoch(entry, j, levels[-1], math.exp(log_share), head)

    freezes = epochs_of(given, head.t, epoch_of)
    by = field_of(given, "by")
    if by not in ("pairs", "epoch", "list"):
        raise ValueError(f'by must be "pairs", "epoch" or "list", got {short(by)}')
    if by == "list" and (not known or spent.revisions or freezes or head.blocks):
        raise ValueError("a list of partitions is for a known noise, without freezes, revisions and blocks")
    most = head.t if bounded else 0
    claim = GroupClaim(
        **vars(head),
        prefix_room=room,
        pair_level=pair_level,
        variance_level=head.log_inverse_delta - math.log(variance_share) if bounded else 0.0,
        freezes=freezes,
        levels=tuple(levels),
        pairs=_pairs(given, head, most) if by == "pairs" else None,
        epoch=_epoch_tests(object_of(given, "epoch"), head, most) if by == "epoch" else None,
        listed=_list(object_of(given, "list"), head) if by == "list" else None,
        homogeneity=None if head.blocks or apart else _homogeneity(given, head.n_groups),
        homogeneity_rule=_rule(given.get("homogeneity")),
        alarm=_alarm(given.get("alarm"), head.n_arms),
        lapsed=tuple(check_count(cell, "a lapsed cell", 1) for cell in list_of(given, "lapsed")) if head.blocks else (),
        generation=generation,
    )
    if claim.epoch is not None:
        _check_candidate(claim, claim.epoch.number)
        if not known or head.blocks or apart:
            _check_sides(claim, claim.epoch)
    return claim


def _equal_pairs(given: dict[str, Any], head: Head, known: bool, spent: SpentError) -> int:
    """H: (M-K+1)(M-K)/2, or after a revision what `coterie.certificate.revised` says."""
    left = head.n_arms - head.n_groups
    wanted, why = (left + 1) * left // 2, "(M-K+1)(M-K)/2"
    if known and spent.equal_pairs is not None:
        wanted, why = spent.equal_pairs, "by its revisions"
    if check_count(field_of(given, "equal_pairs"), "equal_pairs", 1) != wanted:
        raise ValueError(f"equal_pairs must be {wanted}, {why}, got {given['equal_pairs']!r}")
    return wanted


def _pair_level(given: dict[str, Any], head: Head, equal_pairs: int, generation: int) -> tuple[float, int]:
    """What the evidence of a pair must reach, log(H/(αδ)), and P; in blocks there are no prefixes, and P is 0."""
    level = math.log(equal_pairs) - math.log(ALPHA) + head.log_inverse_delta
    if head.strict:
        level -= LOG_FIRST_SHARE + generation * LOG_SHARE_RATIO
    agree("pair_level", field_of(given, "pair_level"), level)
    if head.blocks:
        return level, 0
    room = check_count(field_of(given, "prefix_room"), "prefix_room", 1)
    if room not in PREFIX_ROOMS:
        raise ValueError(f"prefix_room must be one of {', '.join(map(str, PREFIX_ROOMS))}, got {room}")
    return level, room


def _check_no_pairs(given: dict[str, Any], kind: str) -> None:
    """Without a known noise nothing may rest on pairs from the start."""
    for name in ("pair_level", "prefix_room", "alarm"):
        value = given.get(name) if name == "alarm" else field_of(given, name)
        if value is not None:
            raise ValueError(f"with the noise {kind!r} {name} must be null, got {short(value)}")
    if field_of(given, "by") != "epoch":
        raise ValueError(f'with the noise {kind!r} by must be "epoch", got {short(given["by"])}')
    if list_of(object_of(given, "epoch"), "by_pairs"):
        raise ValueError(f"with the noise {kind!r} there are no pairs from the start: by_pairs must be empty")


def _check_sides(claim: GroupClaim, tests: EpochClaim) -> None:
    """Which side of a test is the arm matters to a bet, so it is fixed with the freeze, and never chosen afterwards."""
    for name, some in (("group_tests", tests.group_tests), ("core_tests", tests.core_tests)):
        for i in np.flatnonzero(claim.labels[some.arms] == some.others)[:1].tolist():
            raise ValueError(f"{name}: arm {some.arms[i]} is tested against its own group, {some.others[i]}")
    pairs = [("pair_tests", tests.pair_tests.arms, tests.pair_tests.others)]
    if tests.joint_tests is not None:
        arms = tests.joint_tests.arms
        pairs += [("joint_tests", arms[:, 0], arms[:, 1]), ("joint_tests", arms[:, 2], arms[:, 3])]
    for name, first, second in pairs:
        for i in np.flatnonzero(claim.labels[first] <= claim.labels[second])[:1].tolist():
            raise ValueError(
                f"{name}: arm {first[i]} against arm {second[i]}, but the first arm must be the one whose group has "
                f"the larger number; they are of the groups {claim.labels[first[i]]} and {claim.labels[second[i]]}"
            )


def _check_candidate(claim: GroupClaim, epoch: int) -> None:
    """The epoch on which a claim rests is listed, and its candidate is what is claimed."""
    if epoch >= len(claim.freezes):
        raise ValueError(f"the certificate rests on epoch {epoch}, but lists only {len(claim.freezes)}")
    if not np.array_equal(claim.freezes[epoch].labels, claim.labels):
        raise ValueError(f"labels are not the candidate of epoch {epoch}, on which it rests")


def _rule(given: Any) -> int:
    """Which rule the stated homogeneity follows: 2 says so, 1 (release 0.2) says nothing."""
    stated = isinstance(given, dict) and "rule" in given
    return check_count(given["rule"], "homogeneity.rule", 2) if stated else 1


def _homogeneity(certificate: dict[str, Any], n_groups: int) -> FloatArray | None:
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
    agree("homogeneity.threshold", field_of(given, "threshold"), math.log(n_groups / HOMOGENEITY_LEVEL))
    stated = check_real_array(list_of(given, "evidence", n_groups), "homogeneity.evidence")
    if stated.shape != (n_groups,):
        raise ValueError(f"homogeneity.evidence must be {n_groups} numbers, got shape {stated.shape}")
    return stated


def _alarm(given: Any, n_arms: int) -> tuple[int, ...] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise TypeError(f"alarm must be an object or null, got {short(given)}")
    return tuple(check_arm(arm, n_arms) for arm in list_of(given, "arms"))


def _epoch(entry: dict[str, Any], j: int, level: float, share: float, head: Head) -> Freeze:
    stated = check_real(field_of(entry, "share"), "share")
    if not math.isclose(stated, share, rel_tol=EXACT):
        raise ValueError(f"share must be {share!r} (0.8·0.2^j), got {stated!r}")
    agree("level", field_of(entry, "level"), level)
    for name in ("labels", "cores"):
        field_of(entry, name)
    return frozen_of(entry, j, entry["frozen_at"], head.n_arms, head.n_groups)


def _generation(given: dict[str, Any], head: Head, alpha: float, spent: SpentError) -> int:
    """That of the cells of pairs under strict blocks, else 0.

    In blocks, and where features are measured apart, there are no prefixes of stacks, no test of groups that takes
    results for alike, and no revisions.
    """
    strict = head.strict and alpha > 0.0
    if not strict and "generation" in given:
        raise ValueError(f"generation is for pairs in strict blocks, got {short(given['generation'])}")
    if not head.blocks and head.features is None:
        return 0
    where = "in blocks" if head.blocks else "where features are measured apart"
    for name in ("prefix_room", "homogeneity"):
        if given.get(name) is not None:
            raise ValueError(f"{where} {name} must be null, got {short(given[name])}")
    if spent.revisions:
        raise ValueError(f"{where} a run cannot be revised, but the certificate names revisions")
    return check_count(given.get("generation", 0), "generation", 0) if strict else 0


def _pairs(certificate: dict[str, Any], head: Head, most: int) -> PairTests:
    """Every arm against the representatives of the other groups: M·(K−1) tests.

    `most`: results that a bound on the variance may be from, 0 if there is none.
    """
    if head.blocks:
        return _pairs_in_blocks(certificate, head)
    given = object_of(certificate, "pairs")
    others = [[k for k in range(head.n_groups) if k != label] for label in head.labels.tolist()]
    evidence = off_diagonal(given, "evidence", head.labels, head.n_groups)
    n_first, n_second = (
        whole_numbers(off_diagonal(given, name, head.labels, head.n_groups), f"pairs.{name}", 1)
        for name in ("pulls_arm", "pulls_representative")
    )
    bounds = np.zeros_like(n_first)
    if most > 0:
        bounds = whole_numbers(
            off_diagonal(given, "variance_at", head.labels, head.n_groups), "pairs.variance_at", 1, most
        )
    arms = np.repeat(np.arange(head.n_arms), head.n_groups - 1)
    leads = head.leads[np.array(others, dtype=np.int64).ravel()]
    return PairTests(arms, leads, evidence, n_first, n_second, bounds)


def _pairs_in_blocks(given: dict[str, Any], head: Head) -> PairTests:
    """The same by cells: a row for each arm and each representative of another group, which may come first."""
    pairs = _cell_pairs(given, "pairs", head.n_arms)
    listed = set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    for m, label in enumerate(head.labels.tolist()):
        for k, lead in enumerate(head.leads.tolist()):
            if k != label and (m, lead) not in listed and (lead, m) not in listed:
                raise ValueError(f"pairs has no row for arm {m} and arm {lead}, which represents group {k}")
    return pairs


def _cell_pairs(given: dict[str, Any], name: str, n_arms: int) -> PairTests:
    """Pairs from rows [arm, arm, evidence, cell]."""
    tests = tests_of(given, name, n_arms, n_arms)
    return PairTests(tests.arms, tests.others, tests.evidence, tests.counts, tests.counts, np.zeros_like(tests.counts))


def _epoch_tests(given: dict[str, Any], head: Head, most: int) -> EpochClaim:
    n_arms, n_groups = head.n_arms, head.n_groups
    part = "cell" if head.blocks else "round"
    rounds = tuple(check_count(number, f"a {part} of the epoch", 1) for number in list_of(given, f"{part}s"))
    by_pairs = _cell_pairs(given, "by_pairs", n_arms) if head.blocks else _listed_pairs(given, "by_pairs", n_arms, most)
    number = check_count(field_of(given, "number"), "the epoch's number", 0)
    group_tests, core_tests = (tests_of(given, name, n_arms, n_groups) for name in ("group_tests", "core_tests"))
    pair_tests, joint_tests = tests_of(given, "pair_tests", n_arms, n_arms), _joint_tests(given, n_arms)
    return EpochClaim(number, rounds, group_tests, core_tests, pair_tests, joint_tests, by_pairs)


def _joint_tests(given: dict[str, Any], n_arms: int) -> JointTests | None:
    """Rows [arm, arm, arm, arm, evidence, cell]."""
    if given.get("joint_tests") is None:
        return None
    table = table_of(given, "joint_tests", 6)
    arms = [whole_numbers(table[:, i], "the arms of joint_tests", 0, n_arms - 1) for i in range(4)]
    counts = whole_numbers(table[:, 5], "the last entries of joint_tests", 1)
    return JointTests(np.stack(arms, axis=1), table[:, 4], counts)


def _listed_pairs(given: dict[str, Any], name: str, n_arms: int, most: int) -> PairTests:
    """Pairs from rows [arm, arm, evidence, count, count], and the place of the bound if there is one."""
    table = table_of(given, name, 6 if most > 0 else 5)
    bounds = table[:, 5] if most > 0 else np.zeros(len(table))
    return PairTests(
        whole_numbers(table[:, 0], f"the arms of {name}", 0, n_arms - 1),
        whole_numbers(table[:, 1], f"the arms of {name}", 0, n_arms - 1),
        table[:, 2],
        whole_numbers(table[:, 3], f"the counts of {name}", 1),
        whole_numbers(table[:, 4], f"the counts of {name}", 1),
        whole_numbers(bounds, f"the places of the bounds of {name}", min(most, 1), most),
    )


def _list(given: dict[str, Any], head: Head) -> ListClaim:
    """A list of partitions; the evidence of rounds must reach the level of what pairs leave of δ."""
    level = head.log_inverse_delta - math.log(1.0 - ALPHA)
    agree("list.level", field_of(given, "level"), level)
    rounds = tuple(check_count(number, "a round of the list", 1) for number in list_of(given, "rounds"))
    if rounds != tuple(range(1, len(rounds) + 1)):
        raise ValueError(f"list.rounds must be 1, 2, … without a gap, got {short(list(rounds))}")
    pairs = _listed_pairs(given, "pairs", head.n_arms, 0)
    rows = list_of(given, "partitions")
    if not 1 <= len(rows) <= MOST_PARTITIONS:
        raise ValueError(f"list.partitions must have 1 to {MOST_PARTITIONS} entries, got {len(rows)}")
    table = table_of(given, "partitions", head.n_arms)
    partitions = whole_numbers(table, "list.partitions", 0, head.n_groups - 1)
    struck = table_of(given, "struck", 2)
    if len(struck) != len(rows):
        raise ValueError(f"list.struck must have an entry for each of the {len(rows)} partitions, got {len(struck)}")
    struck_by = whole_numbers(struck[:, 0], "the rounds of list.struck", 0, len(rounds))
    return ListClaim(level, rounds, pairs, partitions, struck_by, np.asarray(struck[:, 1]))
