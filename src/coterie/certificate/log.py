"""The measurement log that a certificate is checked against: its events, its CSV form, and what verify reads from it.

Events, in the order in which they count (docs/CROC.md):
    {"event": "result", "arm": m, "round": r, "values": [...]}               r = 0: outside rounds
      and "alone": true if it was asked for while nothing else was (for Gaussian noise whose variance results bound),
      "asked": false if nobody asked for it, "late": true if the result of a later ask came before it
    {"event": "freeze", "epoch": j, "labels": [...], "cores": [[...], ...]}  j = 0, 1, 2, …
    {"event": "round", "round": r, "epoch": j, "pulls": [[arm, count], ...]} r = 1, 2, …, before any result of the round
    {"event": "list", "epoch": 0, "pairs": [[arm, arm, count, count], ...]}  in place of all freezes (docs/CROC.md, 20);
      its rounds have, under "settled", the pairs that were settled since the list or the last round
and, beside the proof, those of `coterie.certificate.beside`: asks that were missed, corrections, names of items.
A revision on the way is an event too: `coterie.certificate.revised` reads such logs.
With a certificate of format 1 a round comes after all results of the one before; in format 2 rounds may overlap.
Where the noise is not known, rounds (and freezes, if it is Gaussian) also carry a bet: `coterie.certificate.bets`.
The freezes of groups up to a resolution and of single linkage are others, there are no round events, and a resolution
that was chosen on the way is an event: `coterie.certificate.resolution_log`. The CSV form is one for all. It has the
columns event, arm, round, v0 … v{d-1}, detail, the last one JSON for all that is no result, and for results with a mark.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.certificate.exact import Sums, Units
from coterie.certificate.strict import read_json
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_arm,
    check_count,
    check_labels,
    check_real_array,
    short,
)
from coterie.problem.noise import Noise

MARKS = {"alone": True, "asked": False, "late": True}
"""Of a result: what a log says only where it is so."""
ORIGIN = ("at", "worker", "token")
"""Who told a result and when, where a campaign knows it: text for people, on which no proof depends."""

DECIDED = ("freeze", "list", "round", "resolution", "revision")
"""Events that are no results: what was decided."""

MISSED, CORRECTION, ITEMS = "missed", "correction", "items"
"""Events that no proof uses: `coterie.certificate.beside`."""

_LARGEST_FIELD = 2**31 - 1  # a freeze of many arms is longer than the csv module takes unasked


@dataclass(frozen=True)
class Frozen:
    """A frozen candidate: `at` counts the results before it, `cores` holds the arms of Q_k, sorted."""

    number: int
    at: int
    labels: IntArray
    cores: tuple[tuple[int, ...], ...]

    def agrees(self, other: Frozen) -> bool:
        """Whether both describe the same freeze."""
        mine, its = (self.number, self.at, self.cores), (other.number, other.at, other.cores)
        return mine == its and np.array_equal(self.labels, other.labels)


@dataclass(frozen=True)
class Round:
    """A round: the arms that it pulls (ascending), and the sums of their results; a row an arm if it is complete."""

    number: int
    epoch: int
    arms: IntArray
    sums: Sums
    complete: bool
    at: int = 0  # results before it was composed
    settled: IntArray = field(default_factory=lambda: np.empty((0, 4), dtype=np.int64))


@dataclass(frozen=True)
class Listing:
    """A list of partitions: the results before it was made, and the settled pairs (arm, arm, count, count) behind it.

    A pair is settled by so many of the first results of its two arms.
    """

    at: int
    pairs: IntArray


@dataclass(frozen=True)
class Record:
    """The first t results of a log and what was frozen and composed on the way."""

    units: Units
    arms: IntArray  # (t)
    results: Sums  # t rows, each of one result
    freezes: tuple[Frozen, ...]
    rounds: tuple[Round, ...]
    listing: Listing | None = None
    round_of: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # (t) of each result; 0: none


def frozen_of(number: Any, at: Any, labels: Any, cores: Any, n_arms: int, n_clusters: int) -> Frozen:
    """A freeze from plain values: K nonempty groups, and in each a nonempty core."""
    cleaned = check_labels(labels, n_clusters)
    if cleaned.size != n_arms:
        raise ValueError(f"the freeze labels {cleaned.size} arms, there are {n_arms}")
    if not isinstance(cores, list | tuple) or len(cores) != n_clusters:
        raise ValueError(f"cores must list the core arms of each of the {n_clusters} groups, got {short(cores)}")
    sets = []
    for group, core in enumerate(cores):
        if not isinstance(core, list | tuple) or not core:
            raise ValueError(f"the core of group {group} must be a list of at least one arm, got {short(core)}")
        arms = tuple(sorted(check_arm(arm, n_arms) for arm in core))
        if len(set(arms)) != len(arms):
            raise ValueError(f"the core of group {group} names an arm twice: {short(core)}")
        for arm in arms:
            if cleaned[arm] != group:
                raise ValueError(f"arm {arm} is in the core of group {group} but labelled {int(cleaned[arm])}")
        sets.append(arms)
    return Frozen(check_count(number, "epoch", 0), check_count(at, "frozen_at", 0), cleaned, tuple(sets))


@dataclass
class Composed:
    """A round as far as it has been read: its arms in the order listed, and which of the log's results are its own."""

    epoch: int
    arms: tuple[int, ...]
    to_come: dict[int, int]  # results to come, of each arm
    missing: int
    rows: list[int]  # those that came
    bet: Any = None  # as it stands in the log
    at: int = 0
    settled: IntArray = field(default_factory=lambda: np.empty((0, 4), dtype=np.int64))


class Reading:
    """What has been read of a log so far, and the rules that the next event must keep."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, overlap: bool) -> None:
        self.n_arms, self.n_clusters, self.dim, self.overlap = n_arms, n_clusters, dim, overlap
        self.arms: list[int] = []
        self.numbers: list[int] = []  # the rounds of results
        self.values: list[Any] = []
        self.alone: list[bool] = []
        self.freezes: list[Frozen] = []
        self.freeze_bets: list[Any] = []  # as they stand in the log
        self.rounds: list[Composed] = []
        self.listing: Listing | None = None

    def result(self, event: dict[str, Any]) -> None:
        arm, number = check_arm(event.get("arm"), self.n_arms), check_count(event.get("round"), "round", 0)
        values = event.get("values")
        if not isinstance(values, list | tuple | np.ndarray) or len(values) != self.dim:
            raise ValueError(f"a result must have {self.dim} values, got {short(values)}")
        alone = event.get("alone", False)
        if not isinstance(alone, bool):
            raise ValueError(f"alone must be true or false, got {short(alone)}")
        if number > 0:
            if number > len(self.rounds) or (number < len(self.rounds) and not self.overlap):
                raise ValueError(f"a result of round {number} while the last round is {len(self.rounds)}")
            its = self.rounds[number - 1]
            if its.to_come.get(arm, 0) == 0:
                raise ValueError(f"round {number} has no pull (left) of arm {arm}")
            its.to_come[arm] -= 1
            its.missing -= 1
            its.rows.append(len(self.arms))
        self.arms.append(arm)
        self.numbers.append(number)
        self.values.append(values)
        self.alone.append(alone)

    def freeze(self, event: dict[str, Any]) -> None:
        found = frozen_of(
            event.get("epoch"),
            len(self.arms),
            event.get("labels"),
            event.get("cores"),
            self.n_arms,
            self.n_clusters,
        )
        if self.listing is not None:
            raise ValueError("a freeze after a list of partitions, which has the whole share of both")
        if found.number != len(self.freezes):
            raise ValueError(f"freeze {found.number} is out of order: {len(self.freezes)} comes next")
        self.freezes.append(found)
        self.freeze_bets.append(event.get("bet"))

    def round(self, event: dict[str, Any]) -> None:
        number = check_count(event.get("round"), "round", 1)
        if number != len(self.rounds) + 1:
            raise ValueError(f"round {number} is out of order: {len(self.rounds) + 1} comes next")
        if not self.overlap and self.rounds and self.rounds[-1].missing:
            missing = self.rounds[-1].missing
            raise ValueError(f"round {number} begins while {missing} results of round {number - 1} are missing")
        epoch = check_count(event.get("epoch"), "epoch", 0)
        if epoch >= (len(self.freezes) if self.listing is None else 1):
            raise ValueError(f"round {number} is for epoch {epoch}, which is not frozen yet")
        pulls = event.get("pulls")
        if not isinstance(pulls, list | tuple) or not pulls:
            raise ValueError(f"round {number} must say how often it pulls which arm, got {short(pulls)}")
        composition: dict[int, int] = {}
        for pair in pulls:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ValueError(f"round {number} must list [arm, count] pairs, got {short(pair)}")
            arm = check_arm(pair[0], self.n_arms)
            if arm in composition:
                raise ValueError(f"round {number} lists arm {arm} twice")
            composition[arm] = check_count(pair[1], "count", 1)
        arms, missing = tuple(composition), sum(composition.values())
        settled = self._pairs(event.get("settled", []))
        if settled.size and self.listing is None:
            raise ValueError(f"round {number} names settled pairs, but is of no list")
        self.rounds.append(Composed(epoch, arms, composition, missing, [], event.get("bet"), len(self.arms), settled))

    def made_list(self, event: dict[str, Any]) -> None:
        if self.freezes or self.rounds or self.listing is not None:
            raise ValueError("a list of partitions comes before all freezes and rounds, and once")
        if check_count(event.get("epoch"), "epoch", 0) != 0:
            raise ValueError(f"a list of partitions is epoch 0, got {short(event.get('epoch'))}")
        self.listing = Listing(len(self.arms), self._pairs(event.get("pairs")))

    def _pairs(self, given: Any) -> IntArray:
        """(n, 4): two arms, and how many of the first results of each."""
        if not isinstance(given, list | tuple):
            raise ValueError(f"settled pairs must be a list, got {short(given)}")
        found = []
        for one in given:
            if not isinstance(one, list | tuple) or len(one) != 4:
                raise ValueError(f"a settled pair must be [arm, arm, count, count], got {short(one)}")
            arm, other = (check_arm(each, self.n_arms) for each in one[:2])
            if arm == other:
                raise ValueError(f"a settled pair must be of two arms, got {short(one)}")
            found.append([arm, other, *(check_count(each, "count", 1) for each in one[2:])])
        return np.array(found, dtype=np.int64).reshape(-1, 4)


def read_events(events: Sequence[Any], n_arms: int, n_clusters: int, dim: int, t: int, overlap: bool) -> Reading:
    """The events up to the t-th result; what comes after it is left aside. ValueError says what is wrong.

    `overlap`: whether a round may be composed while results of earlier ones are missing.
    """
    reading = Reading(n_arms, n_clusters, dim, overlap)
    readers = {"result": reading.result, "freeze": reading.freeze, "round": reading.round, "list": reading.made_list}
    for place, event in enumerate(events):
        kind = event.get("event") if isinstance(event, dict) else None
        if not isinstance(kind, str) or kind not in readers:
            raise ValueError(
                f"event {place} of the log must be a result, a freeze, a list or a round, got {short(event)}"
            )
        if kind == "result" and len(reading.arms) == t:
            break
        try:
            readers[kind](event)
        except (ValueError, TypeError) as error:
            raise ValueError(f"event {place} of the log: {error}") from None
    if len(reading.arms) < t:
        raise ValueError(f"the log holds {len(reading.arms)} results, the certificate counts {t}: it is not complete")
    return reading


def parse_log(events: Sequence[Any], n_arms: int, n_clusters: int, noise: Noise, t: int, overlap: bool) -> Record:
    """The record of the first t results, of a known noise: `read_events`, and the sums of what was read."""
    reading = read_events(events, n_arms, n_clusters, noise.dim, t, overlap)
    units = Units(noise)
    results = units.results(values_of(reading))
    arms = np.array(reading.arms, dtype=np.int64)
    rounds = tuple(_finished(number, its, arms, results) for number, its in enumerate(reading.rounds, 1))
    round_of = np.array(reading.numbers, dtype=np.int64)
    return Record(units, arms, results, tuple(reading.freezes), rounds, reading.listing, round_of)


def values_of(reading: Reading) -> FloatArray:
    """(t, d): the values of all results, in the user's units; ValueError if one is no finite number."""
    values = check_real_array(reading.values, "the values of the results")
    return values.reshape(len(reading.arms), reading.dim)


def _finished(number: int, read: Composed, arms: IntArray, results: Sums) -> Round:
    # A complete round has a result of each of its arms; an incomplete one may be composed of anything, and is not used.
    rows = np.array([] if read.missing else read.rows, dtype=np.int64)
    pulled, place = np.unique(arms[rows], return_inverse=True)
    sums = results.rows(rows).pooled(place, pulled.size)
    return Round(number, read.epoch, pulled, sums, not read.missing, read.at, read.settled)


def write_log(path: str | os.PathLike[str], events: Sequence[dict[str, Any]], dim: int) -> None:
    """Write a log as CSV; `read_log` gives the same events back, every number exactly."""
    d = check_count(dim, "dim", 1)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["event", "arm", "round", *(f"v{i}" for i in range(d)), "detail"])
        for event in events:
            kind = event["event"]
            if kind == "result":
                values = [repr(float(value)) for value in event["values"]]
                if len(values) != d:
                    raise ValueError(f"a result must have {d} values, got {short(event['values'])}")
                marks: dict[str, Any] = {
                    name: mark for name, mark in MARKS.items() if bool(event.get(name, not mark)) is mark
                }
                marks |= {name: event[name] for name in ORIGIN if name in event}
                detail = json.dumps(marks) if marks else ""
                writer.writerow([kind, event["arm"], event["round"], *values, detail])
            elif kind in DECIDED or kind in (CORRECTION, ITEMS):
                detail = json.dumps({key: value for key, value in event.items() if key not in ("event", "round")})
                writer.writerow([kind, "", event.get("round", ""), *[""] * d, detail])
            elif kind == MISSED:
                about = {key: value for key, value in event.items() if key not in ("event", "arm")}
                writer.writerow([kind, event["arm"], "", *[""] * d, json.dumps(about)])
            else:
                raise ValueError(f"an event must be a result or one of {', '.join(DECIDED)}, got {short(kind)}")


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The events of a CSV log. ValueError names the line that is not one."""
    before = csv.field_size_limit(_LARGEST_FIELD)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return _events(csv.reader(file, strict=True), os.fspath(path))
    except UnicodeDecodeError:
        raise ValueError(f"{os.fspath(path)} is not a text file") from None
    finally:
        csv.field_size_limit(before)


def _events(rows: Any, name: str) -> list[dict[str, Any]]:
    try:
        header = next(rows, None)
        dim = 0 if header is None else len(header) - 4
        if dim < 1 or header != ["event", "arm", "round", *(f"v{i}" for i in range(dim)), "detail"]:
            raise ValueError(f"{name} is not a log: its first line must be event,arm,round,v0,...,detail")
        events = []
        for row in rows:
            try:
                events.append(_event(row, dim))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {rows.line_num} of {name}: {error}") from None
        return events
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num} of {name}: {error}") from None


def _event(row: list[str], dim: int) -> dict[str, Any]:
    if len(row) != dim + 4:
        raise ValueError(f"expected {dim + 4} columns, got {len(row)}")
    kind, arm, number, *values, detail = row
    if kind == "result":
        found = {"event": kind, "arm": int(arm), "round": int(number), "values": [float(value) for value in values]}
        return found | _marks(detail)
    if kind == MISSED:
        about = read_json(detail)
        if not isinstance(about, dict) or "event" in about or "arm" in about:
            raise ValueError(f"the detail of a missed ask must say its kind, got {short(detail)}")
        return {"event": kind, "arm": int(arm), **about}
    if kind not in DECIDED and kind not in (CORRECTION, ITEMS):
        raise ValueError(f"an event must be a result or one of {', '.join(DECIDED)}, got {short(kind)}")
    content = read_json(detail)
    if not isinstance(content, dict):
        raise ValueError(f"the detail of a {kind} must be a JSON object, got {short(detail)}")
    for key in ("event", "round"):
        if key in content:
            raise ValueError(f"the detail of a {kind} must not name its {key}, which has a column of its own")
    return {"event": kind, "round": int(number), **content} if kind == "round" else {"event": kind, **content}


def _marks(detail: str) -> dict[str, Any]:
    """What the detail of a result says."""
    if not detail:
        return {}
    content = read_json(detail)
    known = isinstance(content, dict) and all(
        isinstance(mark, str) if name in ORIGIN else name in MARKS and isinstance(mark, bool)
        for name, mark in content.items()
    )
    if not known or not content:
        raise ValueError(
            f'the detail of a result must be empty, {{"alone": true}} or {{"asked": false}}, got {short(detail)}'
        )
    return {name: mark for name, mark in content.items() if name in ORIGIN or mark is MARKS[name]}
