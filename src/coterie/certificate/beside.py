"""What a certificate says beside its proof, all of it computed from the log: corrections, failures, remarks, words.

A log of format 2 (`log_format` of its certificate) has traces of all that a reader must be told though no proof uses
it. These events may stand anywhere in it:
    {"event": "missed", "arm": m, "kind": "failed", "worker": "…"}      an ask without a result, or with a late one
    {"event": "correction", "result": n, "row": …, "arm": m, "old": [...], "new": [...], "reason": "…", "by": "…",
     "at": "…", "reopened": false}                                    the value of the n-th result was replaced
    {"event": "log", "format": 2, "names": ["…", …]}                  what this log has, and what items are called
      and "features": {...}, where they are measured apart: their names, panels and costs
      and "open": [[ask, arm], ...], the asks before the last answered one that had no result when it ended
and results carry "late": true if the result of a later ask came first, "asked": false if nobody asked for it. Logs of
release 0.2 have nothing of it but missed asks: `verify` checks what they have, and says what cannot be checked.

Results that shift from day to day are a warning, computed a second time here: `coterie.evidence.shifts` has the proof,
and what is only counted.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from coterie.certificate.arithmetic.alarms import LogResults, alarms_of_log, in_words
from coterie.certificate.fields import TOLERANCE, list_of
from coterie.certificate.log import CORRECTION, HEAD, MISSED
from coterie.certificate.traces import (
    check_corrections,
    check_failures,
    check_old_corrections,
    counted_failures,
    failures_in_words,
)
from coterie.problem.checks import FloatArray, IntArray, check_arm, check_count, check_real_array, short
from coterie.problem.families import Model, noise_from_json
from coterie.problem.sentences import revisions_in_words

_VARIANCES, _THRESHOLD, _STRETCHES = (0.02, 0.1, 0.5), math.log(1000.0), (10, 20, 40, 80)
_LEAST, _MOST, _MOST_COLUMNS = 40, 20_000, 16


def shift_in_words(arms: IntArray, values: FloatArray, labels: Sequence[int], days: Sequence[str] | None) -> str | None:
    """A warning that results of a group lie higher on some days, or in some stretches of results, than before.

    The ranks of results among the earlier ones of their group are uniform if nothing shifts; the proof, and what is
    only counted, is in `coterie.evidence.shifts`. `days`: of each result, None if nobody knows them.
    """
    kept = [i for i, arm in enumerate(arms.tolist()) if labels[arm] >= 0][:_MOST]
    if len(kept) < _LEAST or len(kept) < 2 * len(labels) or (days is not None and len(set(days)) < 2):
        return None
    group = [labels[arm] for arm in arms[kept].tolist()]
    if days is None:
        parts = [[place // length for place in range(len(kept))] for length in _STRETCHES]
    else:
        changes = [days[i] != days[j] for i, j in zip(kept[1:], kept, strict=False)]
        parts = [np.cumsum([0, *changes]).tolist()]
    columns = np.unique(np.linspace(0, values.shape[1] - 1, min(values.shape[1], _MOST_COLUMNS)).round().astype(int))
    logs, best = [], (-math.inf, 0, 0)
    for column in columns.tolist():
        scores = _group_scores(values[kept, column], group)
        for which, part in enumerate(parts):
            for variance in _VARIANCES:
                course = _course(scores, part, variance)
                logs.append(course)
                if part[-1] > part[0]:
                    best = max(best, (float(course.max()), column, which))
    evidence = float((np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))).max())
    if evidence < _THRESHOLD:
        return None
    _, column, which = best
    first, second, size = _step(values[kept, column], np.array(group), np.array(parts[which]))
    named = (
        f"results {{}} to {{}} lie {abs(size):.1f} sd {'higher' if size > 0 else 'lower'} than results {{}} to {{}}"
        if days is None
        else f"results of {{}} lie {abs(size):.1f} sd {'higher' if size > 0 else 'lower'} than those of {{}}"
    )
    ends = [(kept[part[0]] + 1, kept[part[-1]] + 1) for part in (second, first)]
    said = named.format(*ends[0], *ends[1]) if days is None else named.format(*(days[end[0] - 1] for end in ends))
    return f"{said}: equal items may look different because they were measured at different times; state days as blocks"


def _group_scores(x: FloatArray, group: Sequence[int]) -> FloatArray:
    """√3·(2R − s + 1)/s of each result, R the number of earlier ones of its group below it, half of the equal ones."""
    earlier: dict[int, list[float]] = {}
    scores = np.zeros(x.size)
    for i, (value, of_group) in enumerate(zip(x.tolist(), group, strict=True)):
        seen = earlier.setdefault(of_group, [])
        low, high = bisect.bisect_left(seen, value), bisect.bisect_right(seen, value)
        scores[i] = math.sqrt(3.0) * (low + high - len(seen)) / (len(seen) + 1.0)
        seen.insert(high, value)
    return scores


def _course(scores: FloatArray, part: Sequence[int], variance: float) -> FloatArray:
    """log Π (1+ρn)^{−1/2}·exp(½ρB²/(1+ρn)) after each result, B and n of each part so far."""
    course = np.zeros(scores.size)
    before = total = 0.0
    n = 0
    for i, score in enumerate(scores.tolist()):
        if i and part[i] != part[i - 1]:
            before, total, n = float(course[i - 1]), 0.0, 0
        total, n = total + score, n + 1
        course[i] = before + 0.5 * variance * total**2 / (1.0 + variance * n) - 0.5 * math.log1p(variance * n)
    return course


def _step(x: FloatArray, group: IntArray, part: IntArray) -> tuple[IntArray, IntArray, float]:
    """The two neighbouring parts that differ most beyond chance, by a fit of groups and parts, and by how many sd."""
    design = np.zeros((x.size, int(group.max()) + 1 + int(part.max()) + 1))
    design[np.arange(x.size), group] = 1.0
    design[np.arange(x.size), int(group.max()) + 1 + part] = 1.0
    fit = np.linalg.lstsq(design, x, rcond=None)[0]
    shift, spread = fit[int(group.max()) + 1 :], float(np.std(x - design @ fit)) or 1e-300
    counts = np.bincount(part).astype(np.float64)
    clear = np.abs(np.diff(shift)) * np.sqrt(counts[:-1] * counts[1:] / (counts[:-1] + counts[1:]))
    clear[np.minimum(counts[:-1], counts[1:]) < min(3.0, counts.max())] = -1.0
    i = int(np.argmax(clear))
    return np.flatnonzero(part == i), np.flatnonzero(part == i + 1), float(shift[i + 1] - shift[i]) / spread


LOG_FORMAT = 2
"""Of logs that have a trace of corrections."""

BESIDE = (MISSED, CORRECTION, HEAD)


class Split(NamedTuple):
    """A log: the events that a proof can use, and those that stand beside it."""

    proof: list[Any]
    missed: list[dict[str, Any]]
    corrections: list[dict[str, Any]]
    heads: list[dict[str, Any]]


def split_log(events: Sequence[Any]) -> Split:
    """The events of a log by what they are for."""
    beside: dict[str, list[dict[str, Any]]] = {kind: [] for kind in BESIDE}
    rest: list[Any] = []
    for event in events:
        kind = event.get("event") if isinstance(event, dict) else None
        (beside[kind] if isinstance(kind, str) and kind in beside else rest).append(event)
    return Split(rest, beside[MISSED], beside[CORRECTION], beside[HEAD])


def stated_beside(certificate: dict[str, Any], events: Sequence[Any]) -> dict[str, Any]:
    """What a certificate of this release says beside its proof, by its own fields and the log."""
    log = split_log(events)
    noise = noise_from_json(certificate["noise"], certificate["dim"])
    stated: dict[str, Any] = {"log_format": LOG_FORMAT, "corrections": log.corrections and [
        {key: value for key, value in correction.items() if key != "event"} for correction in log.corrections
    ]}  # fmt: skip
    if log.missed:
        stated["failures"] = counted_failures(log.missed)
    alarms = alarms_of_log(_results(certificate, log), noise) if _alike(certificate) else []
    return stated | {"remarks": [alarm.to_json() for alarm in alarms]}


def check_beside(certificate: dict[str, Any], log: Split, noise: Model) -> tuple[list[str], list[str]]:
    """Problems and warnings. What the proof uses of certificate and log was read before, and is as it must be."""
    traced, stated = "log_format" in certificate, certificate.get("log_format")
    if traced and (isinstance(stated, bool) or stated != LOG_FORMAT):
        return [f"log_format must be {LOG_FORMAT}, or missing in certificates of release 0.2, got {short(stated)}"], []
    if len(log.heads) > 1 or any(head.get("format") != LOG_FORMAT or not traced for head in log.heads):
        shown, of_log = short(stated) if traced else "nothing", short([head.get("format") for head in log.heads])
        return [f"the certificate says {shown} of its log_format, the log {of_log}: export both anew"], []
    results = [event for event in log.proof if isinstance(event, dict) and event.get("event") == "result"]
    if traced or log.corrections:
        problems, warnings = check_corrections(certificate, log.corrections, results)
    else:
        problems, warnings = check_old_corrections(certificate, results)
        warnings.append(
            "the certificate is of release 0.2 or older, whose logs have no trace of corrections: whether results were "
            "corrected beyond what it lists cannot be checked"
        )
    problems += check_failures(certificate, log.missed, exactly=traced)
    problems += _words(certificate, traced)
    problems += _names(certificate, log.heads, traced)
    if problems:
        return problems, warnings  # what follows reads what they are about
    record = _results(certificate, log)
    if log.missed:
        strict = certificate.get("strict_blocks") is True
        warnings.append(failures_in_words(log.missed, record.arms, certificate.get("names"), strict))
    possible = alarms_of_log(record, noise, TOLERANCE) if _alike(certificate) else []
    sure = [alarm for alarm in possible if alarm.evidence >= alarm.threshold + TOLERANCE]
    warnings += in_words(possible)
    shifted = _shift(certificate, log, record)
    warnings += [shifted] if shifted is not None else []
    if traced:
        problems += _remarks(
            certificate.get("remarks"), [alarm.to_json() for alarm in sure], [alarm.to_json() for alarm in possible]
        )
    return problems, warnings


def _alike(certificate: dict[str, Any]) -> bool:
    """Whether all results of an item have one law: not in blocks, and not where features are measured apart."""
    return certificate.get("blocks") is None and certificate.get("features") is None


def _shift(certificate: dict[str, Any], log: Split, record: LogResults) -> str | None:
    """That results lie higher on some days than on others; a log of a campaign knows the days. Not in blocks."""
    if "question" in certificate or not _alike(certificate):
        return None
    labels = [-1] * record.n_arms
    present = certificate.get("present", range(certificate["n_arms"]))
    for arm, label in zip(present, certificate["labels"], strict=True):
        labels[arm] = label
    results = [event for event in log.proof if event.get("event") == "result"][: record.arms.size]
    days = [event["at"][:10] for event in results if isinstance(event.get("at"), str)]
    known = len(days) == len(results) and len(set(days)) > 1
    return shift_in_words(record.arms, record.values, labels, days if known else None)


def _remarks(stated: Any, sure: list[dict[str, Any]], possible: list[dict[str, Any]]) -> list[str]:
    """The remarks must be the alarms that the log gives; one that rounding decides may be there or not."""
    if not isinstance(stated, list) or not all(isinstance(remark, dict) for remark in stated):
        return [f"remarks must list the alarms that the log gives, got {short(stated)}"]
    by_kind = {remark.get("kind") if isinstance(remark.get("kind"), str) else None: remark for remark in stated}
    problems = [
        f"the log gives an alarm that the remarks do not have: {alarm['seen']}"
        for alarm in sure
        if alarm["kind"] not in by_kind
    ]
    wanted = {alarm["kind"]: alarm for alarm in possible}
    for place, remark in enumerate(stated):
        alarm = wanted.pop(remark.get("kind"), None) if isinstance(remark.get("kind"), str) else None
        if alarm is None or not _same_alarm(remark, alarm):
            problems.append(f"remark {place} of the certificate is not what the log gives: {short(remark)}")
    return problems


def _same_alarm(stated: dict[str, Any], alarm: dict[str, Any]) -> bool:
    if stated.keys() != alarm.keys() or stated["seen"] != alarm["seen"]:
        return False
    numbers = [(stated[name], alarm[name]) for name in ("evidence", "threshold", "level")]
    return all(
        isinstance(number, int | float)
        and not isinstance(number, bool)
        and abs(number - recomputed) <= TOLERANCE * max(1.0, abs(recomputed))
        for number, recomputed in numbers
    )


def _words(certificate: dict[str, Any], needed: bool) -> list[str]:
    """The sentence about revisions, where there were any."""
    sentence = certificate.get("revisions_in_words")
    revisions = certificate.get("revisions")
    if not revisions:
        return [] if sentence is None else ["revisions_in_words is for a run that was revised"]
    if sentence is None and not needed:
        return []
    gone = [arm for revision in revisions for arm in revision["retired"]]
    wanted = revisions_in_words(gone)
    return (
        []
        if sentence == wanted
        else [f"revisions_in_words must say what is promised, {wanted!r}, got {short(sentence)}"]
    )


def _names(certificate: dict[str, Any], heads: list[dict[str, Any]], needed: bool) -> list[str]:
    """Names are those of the log; groups, as a campaign numbers them, are those of the labels."""
    problems = []
    names = certificate.get("names")
    stated = heads[0].get("names") if heads else None
    if (heads or needed) and names != stated:
        problems.append(f"names must be what the log calls the items, {short(stated)}, got {short(names)}")
    apart, of_log = certificate.get("features"), heads[0].get("features") if heads else None
    if (heads or needed) and apart != of_log:
        problems.append(f"features must be what the log says of them, {short(of_log)}, got {short(apart)}")
    groups = certificate.get("groups")
    if groups is not None:
        present = list(certificate.get("present", range(certificate["n_arms"])))
        right = (
            isinstance(groups, list) and len(groups) > max(present) and all(type(number) is int for number in groups)
        )
        if not right or not _same_parts([groups[arm] for arm in present], certificate["labels"]):
            problems.append("groups must number the groups of labels, in another order at most")
    return problems


def _same_parts(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether two numberings are of the same groups."""
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def _results(certificate: dict[str, Any], log: Split) -> LogResults:
    """The results that counted, of all items there ever were, and the pairs of which both were decided on before."""
    revisions = certificate.get("revisions") or []
    events = _until(log.proof, len(revisions), certificate["t"] if not revisions else None)
    results = [event for event in events if event["event"] == "result"]
    n_arms = int(certificate["n_arms"]) + sum(len(revision["retired"]) for revision in revisions)
    arms = np.array([check_arm(event.get("arm"), n_arms) for event in results], dtype=np.int64)
    if certificate.get("features") is not None:  # values of different panels: nothing is looked for in them
        nothing = np.zeros(arms.size)
        return LogResults(arms, nothing[:, None], nothing, nothing, arms[:0], n_arms, np.empty((0, 2), dtype=np.int64))
    values = check_real_array([event.get("values") for event in results], "the values of the results")
    if values.shape != (arms.size, certificate["dim"]):
        raise ValueError(f"every result must have {certificate['dim']} values, they have shape {values.shape}")
    late = np.array([event.get("late") is True for event in results], dtype=np.float64)
    asked = np.array([event.get("asked") is not False for event in results], dtype=np.float64)
    failed = [
        miss["arm"]
        for miss in log.missed
        if miss.get("kind") in ("failed", "expired") and type(miss.get("arm")) is int and 0 <= miss["arm"] < n_arms
    ]
    pairs = np.empty((0, 2), dtype=np.int64)
    if certificate.get("blocks") is None:
        pairs = _pairs(events, certificate["labels"], certificate.get("present"))
    return LogResults(arms, values, late, asked, np.array(failed, dtype=np.int64), n_arms, pairs)


def _until(events: Sequence[Any], revisions: int, t: int | None) -> list[dict[str, Any]]:
    """The events up to the t-th result, or up to the revision after so many."""
    kept, seen, counted = [], 0, 0
    for place, event in enumerate(events):
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            raise ValueError(f"event {place} of the log must be an object with its kind, got {short(event)}")
        seen += event["event"] == "revision"
        if seen > revisions or (event["event"] == "result" and counted == t):
            break
        counted += event["event"] == "result"
        kept.append(event)
    return kept


def _pairs(events: Sequence[dict[str, Any]], labels: Sequence[int], present: Sequence[int] | None) -> IntArray:
    """(n, 2) results of complete rounds, in their order, up to the first that is not complete.

    A round is composed before any of its results, so any pairing by its composition will do: pulls of one item, and of
    items that the candidate of the round has in one group, if that candidate is what is claimed.
    """
    group = dict(enumerate(labels) if present is None else zip(present, labels, strict=True))
    same: dict[int, bool] = {}
    rounds: dict[int, tuple[bool, dict[int, int], dict[int, list[int]]]] = {}
    number = 0
    for event in events:
        if event["event"] == "freeze":
            labelled = {arm: label for arm, label in enumerate(list_of(event, "labels")) if label != -1}
            same[check_count(event.get("epoch"), "epoch", 0)] = labelled.keys() == group.keys() and _same_parts(
                [labelled[arm] for arm in group], list(group.values())
            )
        elif event["event"] == "round":
            alike = same.get(check_count(event.get("epoch"), "epoch", 0), False)
            rounds[check_count(event.get("round"), "round", 1)] = (alike, dict(list_of(event, "pulls")), {})
        elif event["event"] == "result":
            if check_count(event.get("round"), "round", 0) in rounds:
                rounds[event["round"]][2].setdefault(event["arm"], []).append(number)
            number += 1
    pairs: list[tuple[int, int]] = []
    for of_round, (alike, pulls, came) in sorted(rounds.items()):
        if any(len(came.get(m, ())) < n for m, n in pulls.items()):
            break
        left: dict[int, list[tuple[int, int]]] = {}
        for m in sorted(came):
            rows = came[m]
            pairs += zip(rows[::2], rows[1::2], strict=False)
            if len(rows) % 2 and alike:
                left.setdefault(group[m], []).append((_order_in(of_round, m), rows[-1]))
        for single in left.values():
            mixed = [row for _, row in sorted(single)]
            pairs += zip(mixed[::2], mixed[1::2], strict=False)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _order_in(of_round: int, arm: int) -> int:
    """A number that looks random, by which a session pairs items of a round too: whom with whom changes from round to
    round (SplitMix64).
    """
    x = ((of_round * 0xD1342543DE82EF95 + arm + 1) * 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)
