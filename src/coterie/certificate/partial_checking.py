"""Does a log prove what a partial certificate says: pairs of items that differ, and items that are placed?

It is for K groups, a known noise, and a run that was not revised (docs/DEADLINE.md). Its fields, beside those of every
certificate:
    pairs: [[item, item, evidence, count, count], …], the strongest first
    statements: null, or {"epoch": j, "level": log(1/δ'), "representatives": [[item, group, evidence, round], …],
      "proven": [[item, group, evidence, round], …], "open": u}, of the list that the log froze: the item, of a row, is
      not equal to the representative of the group, by all rounds of the list up to that one
    apart: [[item, item], …], placed: [item, …]   what follows: items that differ, and items of the group of `labels`
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coterie.certificate.arithmetic.known import Record, Sums, paired, record_of
from coterie.certificate.arithmetic.known import Stacks as KnownStacks
from coterie.certificate.beside import Split
from coterie.certificate.claim import LOG_FIRST_SHARE, LOG_SHARE_RATIO, Head, head_of
from coterie.certificate.composed import Composition
from coterie.certificate.fields import (
    Checks,
    against,
    agree,
    close,
    field_of,
    first_places,
    list_of,
    object_of,
    reaches,
    table_of,
    whole_numbers,
)
from coterie.certificate.freezes import LogSubject
from coterie.certificate.group_claim import ALPHA, PREFIX_ROOMS
from coterie.certificate.reading import FrozenStatements, Log, read_events
from coterie.problem.checks import FloatArray, check_count, check_real_array, short
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups


def check_partial(given: dict[str, Any], log: Split) -> Checks:
    """What is wrong with a partial certificate. ValueError or TypeError if it, or its log, is malformed."""
    head = head_of(given, ExactGroups.kind)
    if not isinstance(head.noise, Noise) or head.blocks or "present" in given or given.get("revisions"):
        raise ValueError("a partial certificate is for a known noise, without blocks and revisions")
    if given.get("homogeneity") is not None or given.get("alarm") is not None:
        raise ValueError("a partial certificate says nothing of homogeneity, and there is none after an alarm")
    agree("alpha", field_of(given, "alpha"), ALPHA)
    room = check_count(field_of(given, "prefix_room"), "prefix_room", 1)
    if room not in PREFIX_ROOMS:
        raise ValueError(f"prefix_room must be one of {', '.join(map(str, PREFIX_ROOMS))}, got {room}")
    left = head.n_arms - head.n_groups
    agree("equal_pairs", field_of(given, "equal_pairs"), (left + 1) * left // 2)
    events = read_events(log.proof, LogSubject(ExactGroups.kind, head.n_arms, head.dim, head.n_groups), head.t)
    checks, record = Checks(), record_of(events, head.noise)
    differ = np.zeros((head.n_arms, head.n_arms), dtype=bool)
    _check_pairs(checks, given, head, KnownStacks(record, head.n_arms, min(room, head.t)), differ)
    if given.get("statements") is not None:
        _Statements(checks, object_of(given, "statements"), head, events, record).check(differ)
    _check_claims(checks, given, head, differ)
    return checks


def _check_pairs(checks: Checks, given: dict[str, Any], head: Head, stacks: KnownStacks, differ: np.ndarray) -> None:
    """Pairs one after another: each must reach the level for the pairs that can be equal still. INOUT: differ."""
    table, n = table_of(given, "pairs", 5), head.n_arms
    first, second = (whole_numbers(table[:, i], "the items of pairs", 0, n - 1) for i in (0, 1))
    n_first, n_second = (whole_numbers(table[:, i], "the counts of pairs", 1) for i in (3, 4))
    if (first == second).any() or len({*map(frozenset, zip(first.tolist(), second.tolist(), strict=True))}) < len(
        table
    ):
        raise ValueError("pairs must be of two items each, and none may be listed twice")
    for i in first_places((n_first > stacks.heights[first]) | (n_second > stacks.heights[second])):
        raise ValueError(f"items {first[i]} and {second[i]}: the certificate uses more results than the log has")
    evidence = paired(stacks, first, second, n_first, n_second)
    checks.tests += len(table)
    for i in first_places(~close(table[:, 2], evidence)):
        checks.say(f"evidence that items {first[i]} and {second[i]} differ: {against(table[i, 2], evidence[i])}")
    equal = (n - head.n_groups + 1) * (n - head.n_groups) // 2
    unsettled = np.minimum(equal, n * (n - 1) // 2 - np.arange(len(table)))
    level = head.log_inverse_delta - math.log(ALPHA) + np.log(np.maximum(unsettled, 1))
    enough = reaches(evidence, level)
    for i in first_places(~enough):
        checks.say(f"items {first[i]} and {second[i]} are not shown to differ: evidence {evidence[i]:.6g} is below "
                   f"{level[i]:.6g}")  # fmt: skip
    upto = len(table) if enough.all() else int(np.argmin(enough))  # a level rests on all pairs before
    differ[first[:upto], second[:upto]] = differ[second[:upto], first[:upto]] = True


class _Statements:
    """The statements of a frozen list, recomputed round by round."""

    def __init__(self, checks: Checks, given: dict[str, Any], head: Head, log: Log, record: Record) -> None:
        self.checks, self.head, self.record = checks, head, record
        if log.statements is None:
            raise ValueError("the certificate has statements, but the log froze none")
        self.frozen: FrozenStatements = log.statements
        epoch = check_count(field_of(given, "epoch"), "the epoch of the statements", 0)
        if epoch != self.frozen.number:
            raise ValueError(f"the statements are of epoch {self.frozen.number} in the log, not of epoch {epoch}")
        share = math.log(1.0 - ALPHA) + LOG_FIRST_SHARE + epoch * LOG_SHARE_RATIO
        self.level = head.log_inverse_delta - share
        agree("statements.level", field_of(given, "level"), self.level)
        self.rounds = [composed for composed in log.rounds if composed.epoch == epoch]
        whole = [composed.complete for composed in self.rounds]
        self.usable = whole.index(False) if False in whole else len(whole)  # none may be left out
        self.leads = self._rows(given, "representatives")
        self.items = self._rows(given, "proven")
        self.open = check_count(field_of(given, "open"), "statements.open", 0)

    def _rows(self, given: dict[str, Any], name: str) -> tuple[np.ndarray, np.ndarray, FloatArray, np.ndarray]:
        table = table_of(given, name, 4)
        items = whole_numbers(table[:, 0], f"the items of statements.{name}", 0, self.head.n_arms - 1)
        groups = whole_numbers(table[:, 1], f"the groups of statements.{name}", 0, self.head.n_groups - 1)
        if len(set(zip(items.tolist(), groups.tolist(), strict=True))) < len(table):
            raise ValueError(f"statements.{name} lists a statement twice")
        return items, groups, table[:, 2], whole_numbers(table[:, 3], f"the rounds of statements.{name}", 1)

    def check(self, differ: np.ndarray) -> None:
        """INOUT: differ, with what is proven if all of it is in order."""
        before, leads = len(self.checks.problems), self.frozen.representatives
        items, groups, _, last = self.items
        pairs = {(k, group) for group in range(len(leads)) for k in range(group)}
        place = {lead: k for k, lead in enumerate(leads)}
        stated = list(zip(self.leads[0].tolist(), self.leads[1].tolist(), strict=True))
        if any((place.get(item, len(leads)), group) not in pairs for item, group in stated):
            raise ValueError("statements.representatives must be of a representative and the group of a later one")
        if items.size and len(stated) < len(pairs):
            self.checks.say("no statement counts before all representatives are shown to differ from one another")
        self._recompute(*self.leads, np.full(len(stated), self.level))
        for i in first_places(~self.frozen.listed[items, groups]):
            lead = leads[groups[i]]
            raise ValueError(f"that item {items[i]} is not equal to item {lead} is not in the list that was frozen")
        ready = int(self.leads[3].max(initial=0))
        for i in first_places(last < ready):
            self.checks.say(f"a statement about item {items[i]} is proven by round {last[i]}, before round {ready}, "
                            "which shows that the representatives differ")  # fmt: skip
        unproven = self.frozen.listed.copy()
        needed = np.zeros(items.size)
        for number in np.unique(last).tolist():
            now = last == number
            unproven[items[now], groups[now]] = False
            needed[now] = self.level + math.log1p(int(unproven.any(axis=1).sum()))
        still_open = int(unproven.any(axis=1).sum())
        if self.open != still_open:
            self.checks.say(f"{still_open} items have a statement that is not proven, not {self.open}")
        self._recompute(*self.items, needed)
        if len(self.checks.problems) == before and len(stated) == len(pairs):
            at = np.array(leads)
            differ[np.ix_(at, at)] |= ~np.eye(at.size, dtype=bool)
            differ[items, at[groups]] = differ[at[groups], items] = True

    def _recompute(
        self, items: np.ndarray, groups: np.ndarray, stated: FloatArray, last: np.ndarray, needed: FloatArray
    ) -> None:
        """That evidence is as stated, and enough, by the rounds of the list up to the stated one."""
        numbers = [composed.number for composed in self.rounds[: self.usable]]
        for i in first_places(~np.isin(last, numbers)):
            raise ValueError(f"round {last[i]} is no complete round of the list, or follows one that is not complete")
        evidence = np.zeros(items.size)
        for composed in self.rounds[: self.usable]:
            use = np.flatnonzero(last >= composed.number)
            evidence[use] += self._gained(composed, items[use], groups[use])
        self.checks.tests += items.size
        for i in first_places(~close(stated, evidence)):
            self.checks.say(f"evidence of item {items[i]} against group {groups[i]}: {against(stated[i], evidence[i])}")
        for i in first_places(~reaches(evidence, needed)):
            self.checks.say(f"item {items[i]} is not shown to differ from the representative of group {groups[i]}: "
                            f"evidence {evidence[i]:.6g} is below {needed[i]:.6g}")  # fmt: skip

    def _gained(self, composed: Composition, items: np.ndarray, groups: np.ndarray) -> FloatArray:
        """log of the factors of a round: 0 for a statement that it does not measure."""
        centers, variances, weights = self._bet(composed)
        row = {item: i for i, item in enumerate(composed.arms)}
        sums = {arm: i for i, arm in enumerate(sorted(composed.arms))}  # rows of the record's sums
        of_round: Sums = self.record.rounds[composed.number - 1].sums
        gained = np.zeros(items.size)
        for i, (item, group) in enumerate(zip(items.tolist(), groups.tolist(), strict=True)):
            lead = self.frozen.representatives[group]
            if item not in row or lead not in row:
                continue
            own, other = of_round.rows(np.array([sums[item]])), of_round.rows(np.array([sums[lead]]))
            contrast = self.record.units.gap(own, other)[0]
            v = float(1.0 / own.counts[0] + 1.0 / other.counts[0])
            likely = {k: w for k, w in enumerate(weights[row[item]].tolist()) if k != group and w > 0.0}
            terms = []
            for k, weight in likely.items():
                theta, wide = centers[k] - centers[group], v + variances[k] + variances[group]
                log_ratio = self.head.dim / 2.0 * math.log(v / wide)
                log_ratio += float(contrast @ contrast) / (2.0 * v)
                log_ratio -= float((contrast - theta) @ (contrast - theta)) / (2.0 * wide)
                terms.append(math.log(weight / sum(likely.values())) + log_ratio)
            if terms:
                gained[i] = float(np.logaddexp.reduce(terms))
        return gained

    def _bet(self, composed: Composition) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What a round bets on: any centers, variances above 0, weights of 0 or more, written down before it."""
        if not isinstance(composed.bet, dict):
            raise ValueError(f"round {composed.number} of the list has no bet, got {short(composed.bet)}")
        k, d, n = self.head.n_groups, self.head.dim, len(composed.arms)
        parts = []
        for name, shape in (("centers", (k, d)), ("variances", (k,)), ("weights", (n, k))):
            values = check_real_array(field_of(composed.bet, name), f"{name} of round {composed.number}")
            if values.shape != shape:
                raise ValueError(f"{name} of round {composed.number} must have shape {shape}, got {values.shape}")
            parts.append(values)
        if (parts[1] <= 0.0).any() or (parts[2] < 0.0).any():
            raise ValueError(f"round {composed.number} has variances or weights below 0")
        return parts[0], parts[1], parts[2]


# What follows, if there are K groups.


def _check_claims(checks: Checks, given: dict[str, Any], head: Head, differ: np.ndarray) -> None:
    apart = table_of(given, "apart", 2)
    first, second = (whole_numbers(apart[:, i], "the items of apart", 0, head.n_arms - 1) for i in (0, 1))
    placed = whole_numbers(check_real_array(list_of(given, "placed") or [], "placed").ravel(), "placed", 0,
                           head.n_arms - 1)  # fmt: skip
    places = _places(differ, head.leads.tolist())
    for i in first_places(~(differ[first, second] | ~_together(places)[first, second])):
        checks.say(f"that items {first[i]} and {second[i]} differ does not follow")
    own = places[placed, head.labels[placed]] & (places[placed].sum(axis=1) == 1)
    for i in first_places(~own):
        checks.say(f"that item {placed[i]} is in group {head.labels[placed[i]]} does not follow")


def _together(places: np.ndarray) -> np.ndarray:
    """(M, M) which items may be in one group."""
    return np.asarray(np.einsum("ak,bk->ab", places.astype(np.int64), places.astype(np.int64)) > 0)


def _places(differ: np.ndarray, leads: list[int]) -> np.ndarray:
    """(M, K) in which group each item may be, if the leads differ pairwise; else in every group."""
    everywhere = np.ones((len(differ), len(leads)), dtype=bool)
    if not all(differ[a, b] for a in leads for b in leads if a != b):
        return everywhere
    places = ~differ[:, leads]
    changed = True
    while changed:
        changed = False
        for item in np.flatnonzero(places.sum(axis=1) == 1).tolist():
            group = int(np.argmax(places[item]))
            strangers = differ[item] & places[:, group]
            changed |= bool(strangers.any())
            places[strangers, group] = False
    return places if places.any(axis=1).all() else everywhere
