"""Does a finished table prove what its certificate says? Everything is recomputed from the rows.

The certificate of a table (format 1) is plain JSON:

- `question`: "table"; `asked`: {"kind": "differences"}, {"kind": "groups" or "linkage", "n_clusters": K}, or
  {"kind": "resolution", "resolution": {alike, apart, norm, claim}};
- `n_arms`, `dim`, `t`: items, numbers of a row, rows; `delta`; `noise` as in other certificates;
- `rows`: "assumed" or "stated" that the number of rows did not depend on their values;
- `test`: which test compared pairs ("permutations", of very many rows those of means, "signs", "ranks", "ranges", "t",
  "f", "hotelling", "chi-square", "fisher", "binomial", "beta", "bets", "moments", "intervals"); `seed`: of its draws
  and pairings, the first 53 bits of SHA-256 of the sorted rows; `draws`: how many, null if all arrangements were tried;
- `apart`: [[i, j, p], …], the pairs that are proven to differ, i < j, with the p-value of their test; [i, j] with
  intervals, where they differ by more than `alike`;
- `groups_at_least`: how many groups there are at least; `differing`: items that pairwise differ;
- `labels`: the groups that are proven, null if none are; `references`: of a resolution, one for each group;
- `blocks`, if items were compared within blocks: {"column": what names them, "names": […], "digest": SHA-256 of all
  rows}; the tests are then "block-permutations", "block-signs", "block-ranks", "mantel-haenszel", or one of the above;
- `holes`, if rows lack some numbers: {"assumed": "at random", "digest": SHA-256 of all rows}; the test is then "holes",
  or "intervals";
- `claim`, `assumes`: the same in words.

The log has the rows as results outside rounds, with the name of their block, if there are any; their order plays no
role. A number that is missing is null, and no row lacks all. A digest is of the lines [arm, [values]], in blocks
[arm, "block", [values]], as JSON, sorted, with a line break between them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.certificate.arithmetic.table_blocks import BlockTests, HoleTests
from coterie.certificate.arithmetic.table_proofs import Closure, Nearness, difference_bounds, linkage_gap
from coterie.certificate.arithmetic.table_tests import TableTests
from coterie.certificate.fields import TOLERANCE, Checks, list_of
from coterie.certificate.freezes import LogSubject, labels_of
from coterie.certificate.reading import Log, read_events
from coterie.problem.checks import FloatArray, IntArray, check_count, check_delta, check_real, short
from coterie.problem.families import Model, Unknown, noise_from_json
from coterie.problem.features import HOLES
from coterie.problem.question import ExactGroups, Question, Resolution, SingleLinkage
from coterie.problem.sentences import ROWS, table_assumption, table_claim

MOST_ITEMS = 500
FIELDS = {
    "format", "question", "asked", "n_arms", "dim", "t", "delta", "noise", "rows", "test", "seed", "draws", "apart",
    "groups_at_least", "differing", "labels", "references", "claim", "assumes",
}  # fmt: skip


def check_table(certificate: dict[str, Any], events: Sequence[Any]) -> Checks:
    """What is wrong with a certificate. ValueError or TypeError if it, or its log, is malformed."""
    checks = TableChecks(certificate, events)
    checks.check()
    return checks


class TableChecks(Checks):
    """The checks of the certificate of a finished table."""

    def __init__(self, given: dict[str, Any], events: Sequence[Any]) -> None:
        super().__init__()
        wrong = sorted((set(given) - {"blocks", "holes"}) ^ FIELDS)
        if wrong:
            raise ValueError(f"{wrong[0]} is {'missing' if wrong[0] in FIELDS else 'no field of it'}")
        if given["format"] != 1 or isinstance(given["format"], bool):
            raise ValueError(f"the format of a table's certificate must be 1, got {short(given['format'])}")
        self.given = given
        self.n_arms = check_count(given["n_arms"], "n_arms", 2)
        if self.n_arms > MOST_ITEMS:
            raise ValueError(f"n_arms must be at most {MOST_ITEMS}, got {self.n_arms}")
        self.dim = check_count(given["dim"], "dim", 1)
        self.delta = check_delta(given["delta"])
        self.noise: Model = noise_from_json(given["noise"], self.dim)
        if given["rows"] not in ROWS:
            raise ValueError(f"rows must be one of {', '.join(ROWS)}, got {short(given['rows'])}")
        self.asked = _asked(given["asked"], self.n_arms)
        self.labels: list[int] | None = None
        if given["labels"] is not None:
            n_groups = self.n_arms if self.asked is None else self.asked.n_clusters
            self.labels = labels_of(given["labels"], self.n_arms, n_groups).tolist()
        self.pairs = [(i, j) for i in range(self.n_arms) for j in range(i + 1, self.n_arms)]
        self.tests = len(self.pairs)
        self.holes = "holes" in given
        self.log = self._log(events)
        self.stacks = self._stacks()
        self.blocks: IntArray | None = None
        self.column: str | None = None
        if "blocks" in given:
            self.column, self.blocks = _blocks(given["blocks"], events)
        if self.holes:
            _check_holes(given["holes"], events)
        if "blocks" not in given and any(isinstance(event, dict) and "block" in event for event in events):
            raise ValueError("the rows of the log have blocks, of which the certificate says nothing")
        self.stated = self._stated()

    def check(self) -> None:
        """Every check there is."""
        proven = self.labels is not None
        for name, sentence in (
            ("claim", table_claim(self.asked, proven, self.delta)),
            ("assumes", table_assumption(self.noise, self.asked, self.given["rows"], self.column, self.holes)),
        ):
            if self.given[name] != sentence:
                self.say(f"{name} must be {sentence!r}, got {short(self.given[name])}")
        if self.problems:
            return  # of what is claimed, not whether it holds
        if isinstance(self.asked, Resolution | SingleLinkage):
            self._by_intervals(self.asked)
        else:
            self._by_tests(self.asked)

    def _log(self, events: Sequence[Any]) -> Log:
        """The rows."""
        t = check_count(self.given["t"], "t", 1)
        if len(events) != t:
            raise ValueError(f"the certificate has {t} rows, the log {len(events)}")
        log = read_events(events, LogSubject("table", self.n_arms, self.dim, holes=self.holes), t)
        contradiction = log.contradiction(self.noise) if isinstance(self.noise, Unknown) else None
        if contradiction is not None:
            row, reason = contradiction
            raise ValueError(f"row {row + 1} of the log, of arm {log.arms[row]}: {reason}")
        return log

    def _stacks(self) -> list[FloatArray]:
        """The rows of each item."""
        stacks = self.log.stacks(np.ones(len(self.log.arms), dtype=bool), self.n_arms)
        for arm, rows in enumerate(stacks):
            if not len(rows):
                raise ValueError(f"arm {arm} has no row in the log")
        return stacks

    def _stated(self) -> dict[tuple[int, int], float | None]:
        tested = not isinstance(self.asked, Resolution | SingleLinkage)
        pairs: dict[tuple[int, int], float | None] = {}
        for entry in list_of(self.given, "apart"):
            if not isinstance(entry, list | tuple) or len(entry) != 2 + tested:
                raise ValueError(f"apart must have entries of {2 + tested} numbers, got {short(entry)}")
            i, j = (check_count(item, "an item of apart", 0) for item in entry[:2])
            if not i < j < self.n_arms or (i, j) in pairs:
                raise ValueError(f"apart must have every pair once, the smaller item first, got {short(entry)}")
            pairs[i, j] = check_real(entry[2], "the p-value of a pair") if tested else None
        return pairs

    def _same(self, name: str, wanted: Any) -> None:
        if self.given[name] != wanted or isinstance(self.given[name], bool):
            self.say(f"{name} must be {wanted!r}, got {short(self.given[name])}")

    def _at_least(self, apart: set[tuple[int, int]], fewest: int) -> None:
        items = [check_count(item, "an item of differing", 0) for item in list_of(self.given, "differing")]
        for k, j in enumerate(items):
            for i in items[:k]:
                if (min(i, j), max(i, j)) not in apart:
                    self.say(f"differing: items {i} and {j} are not shown to differ")
        stated = check_count(self.given["groups_at_least"], "groups_at_least", 0)
        if stated > max(fewest, len(items)):
            self.say(f"groups_at_least is {stated}, but only {max(fewest, len(items))} are shown")

    # Tests of pairs.

    def _by_tests(self, asked: Question | None) -> None:
        tests: TableTests | BlockTests | HoleTests
        if self.holes:
            tests = self._with_holes().run()
        elif self.blocks is None:
            tests = TableTests(self.stacks, self.noise, self.delta)
        else:
            tests = BlockTests(self.log.arms, self.blocks, self.log.values, self.noise, self.delta).run()
        self._same("test", tests.name)
        self._same("seed", tests.seed)
        self._same("draws", tests.draws)
        self._same("references", None)
        if self.problems:
            return
        closure = Closure(tests, self.delta)
        for pair, p in self.stated.items():
            assert p is not None
            if not abs(p - tests.p[pair]) <= TOLERANCE * (tests.p[pair] + 1e-9):
                recomputed = tests.p[pair]
                self.say(
                    f"p of items {pair[0]} and {pair[1]}: the certificate says {p:.9g}, the rows give {recomputed:.9g}"
                )
            if pair not in closure.apart:
                self.say(f"items {pair[0]} and {pair[1]} are not shown to differ")
        fewest = 0 if closure.fitting is None else min((len(blocks) for blocks in closure.fitting), default=0)
        self._at_least(closure.apart, fewest)
        if self.labels is None:
            return
        if asked is None:
            if len(closure.apart) < len(self.pairs):
                self.say("the items are claimed to be a group each, but not all pairs are shown to differ")
        elif not closure.only_grouping(int(asked.n_clusters or 0), self.labels):
            self.say(f"the groups are not shown to be the only {asked.n_clusters} that fit the rows")

    def _with_holes(self) -> HoleTests:
        return HoleTests(self.log.arms, self.log.values, self.n_arms, self.noise, self.delta, self.blocks)

    # Intervals.

    def _by_intervals(self, asked: Resolution | SingleLinkage) -> None:
        self._same("test", "intervals")
        self._same("seed", None)
        self._same("draws", None)
        if self.holes:
            bounds = self._with_holes().bounds()
        elif self.blocks is None:
            bounds = difference_bounds(self.stacks, self.noise, self.delta)
        else:
            bounds = BlockTests(self.log.arms, self.blocks, self.log.values, self.noise, self.delta).bounds()
        if isinstance(asked, SingleLinkage):
            self._same("references", None)
            far = np.sqrt((bounds[0] ** 2).sum(axis=2)) > 0.0
            gaps = [] if self.labels is None else [linkage_gap(bounds, self.labels)]
        else:
            nearness = Nearness(bounds, asked)
            far, gaps = nearness.far, []
            if self.labels is not None:
                gaps = list(nearness.gaps(self.labels, self._references(asked)))
            else:
                self._same("references", None)
        apart = {(i, j) for i, j in self.pairs if far[i, j]}
        for i, j in self.stated.keys() - apart:
            self.say(f"items {i} and {j} are not shown to be apart")
        self._at_least(apart, 0)
        for gap in gaps:
            if gap is not None:
                self.say(gap)

    def _references(self, asked: Resolution) -> list[int] | None:
        if asked.claims != "references":
            self._same("references", None)
            return None
        assert self.labels is not None
        stated = list_of(self.given, "references", max(self.labels) + 1)
        references = [check_count(item, "a reference", 0) for item in stated]
        if max(references) >= self.n_arms:
            raise ValueError(f"a reference must be one of {self.n_arms} items, got {max(references)}")
        return references


def _blocks(given: Any, events: Sequence[Any]) -> tuple[str, IntArray]:
    """The column of the blocks, and the block of each row; ValueError if the rows are not those of the certificate."""
    if not isinstance(given, dict) or set(given) != {"column", "names", "digest"}:
        raise ValueError(f"blocks must have column, names and digest, got {short(given)}")
    column, names = given["column"], given["names"]
    known = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not isinstance(column, str) or not known or len(set(names)) < max(2, len(names)):
        raise ValueError(f"blocks must have a column and at least two names, all different, got {short(given)}")
    numbers = {name: number for number, name in enumerate(names)}
    of_rows = []
    for row, event in enumerate(events):
        name = event.get("block")
        if not isinstance(name, str) or name not in numbers:
            fault = (
                "has no block" if name is None else f"is of block {short(name)}, which the certificate does not have"
            )
            raise ValueError(f"row {row + 1} of the log {fault}")
        of_rows.append(numbers[name])
    unused = sorted(set(range(len(names))) - set(of_rows))
    if unused:
        raise ValueError(f"block {short(names[unused[0]])} of the certificate has no row in the log")
    if _digest(events) != given["digest"]:
        raise ValueError("the rows of the log, or their blocks, are not those of the certificate: its digest differs")
    return column, np.array(of_rows, dtype=np.int64)


def _check_holes(given: Any, events: Sequence[Any]) -> None:
    """ValueError if holes are not as they were stated, or not where they were."""
    if not isinstance(given, dict) or set(given) != {"assumed", "digest"} or given["assumed"] != HOLES:
        raise ValueError(f"holes must be assumed to be {HOLES!r}, with a digest, got {short(given)}")
    if not any(value is None for event in events for value in event["values"]):
        raise ValueError("the certificate says that rows have holes, but no number is missing in the log")
    if _digest(events) != given["digest"]:
        raise ValueError("the rows of the log, or their holes, are not those of the certificate: its digest differs")


def _digest(events: Sequence[Any]) -> str:
    lines = []
    for event in events:
        values = [None if value is None else float(value) for value in event["values"]]
        lines.append(json.dumps([int(event["arm"]), *([event["block"]] if "block" in event else []), values]))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _asked(given: Any, n_arms: int) -> Question | None:
    if not isinstance(given, dict):
        raise TypeError(f"asked must be an object, got {short(given)}")
    kind = given.get("kind")
    fields = {"differences": {"kind"}, "resolution": {"kind", "resolution"}}
    if not isinstance(kind, str) or set(given) != fields.get(kind, {"kind", "n_clusters"}):
        raise ValueError(f"asked must be a question about a table, got {short(given)}")
    if kind not in (*fields, "groups", "linkage"):
        raise ValueError(f"asked must be a question about a table, got {short(given)}")
    if kind == "resolution":
        if not isinstance(given["resolution"], dict):
            raise TypeError(f"the resolution must be an object, got {short(given['resolution'])}")
        return Resolution.of(given["resolution"])
    if kind == "differences":
        return None
    k = check_count(given["n_clusters"], "n_clusters", 2)
    if k >= n_arms:
        raise ValueError(f"n_clusters must be less than the number of items, {n_arms}, got {k}")
    return ExactGroups(k) if kind == "groups" else SingleLinkage(k)
