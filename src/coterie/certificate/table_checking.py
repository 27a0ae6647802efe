"""Does a finished table prove what its certificate says? Everything is recomputed from the rows.

The certificate of a table (format 1) is plain JSON:

- `question`: "table"; `asked`: {"kind": "differences"}, {"kind": "groups" or "linkage", "n_clusters": K}, or
  {"kind": "resolution", "resolution": {alike, apart, norm, claim}};
- `n_arms`, `dim`, `t`: items, numbers of a row, rows; `delta`; `noise` as in other certificates;
- `rows`: "assumed" or "stated" that the number of rows did not depend on their values;
- `test`: which test compared pairs ("permutations", "signs", "ranks", "ranges", "t", "f", "hotelling", "chi-square",
  "fisher", "bets", "moments", "intervals"); `seed`: of its draws and pairings, the first 53 bits of SHA-256 of the
  sorted rows; `draws`: how many, null if all arrangements were tried;
- `apart`: [[i, j, p], …], the pairs that are proven to differ, i < j, with the p-value of their test; [i, j] with
  intervals, where they differ by more than `alike`;
- `groups_at_least`: how many groups there are at least; `differing`: items that pairwise differ;
- `labels`: the groups that are proven, null if none are; `references`: of a resolution, one for each group;
- `claim`, `assumes`: the same in words.

The log has the rows as results outside rounds; their order plays no role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.certificate.fields import TOLERANCE, list_of
from coterie.certificate.table_closure import Closure
from coterie.certificate.table_intervals import Nearness, difference_bounds, linkage_gap
from coterie.certificate.table_tests import TableTests
from coterie.problem.checks import FloatArray, check_count, check_delta, check_real, check_real_array, short
from coterie.problem.families import Model, Unknown, noise_from_json
from coterie.problem.question import ExactGroups, Question, Resolution, SingleLinkage
from coterie.problem.table_sentences import ROWS, table_assumption, table_claim

KIND = "table"
MOST_ITEMS = 500
MOST_PROBLEMS = 20
FIELDS = {
    "format", "question", "asked", "n_arms", "dim", "t", "delta", "noise", "rows", "test", "seed", "draws", "apart",
    "groups_at_least", "differing", "labels", "references", "claim", "assumes",
}  # fmt: skip


def is_of_table(given: dict[str, Any]) -> bool:
    """Whether a certificate is that of a table."""
    return given.get("question") == KIND


def check_table(given: dict[str, Any], events: Sequence[Any]) -> tuple[list[str], int]:
    """What is wrong with a certificate, nothing if it holds, and how many pairs were recomputed.

    ValueError or TypeError if the certificate or the log is malformed.
    """
    checking = _Checking(given, events)
    checking.everything()
    return checking.problems, len(checking.pairs)


class _Checking:
    def __init__(self, given: dict[str, Any], events: Sequence[Any]) -> None:
        wrong = sorted(set(given) ^ FIELDS)
        if wrong:
            raise ValueError(f"{wrong[0]} is {'missing' if wrong[0] in FIELDS else 'no field of it'}")
        if given["format"] != 1 or isinstance(given["format"], bool):
            raise ValueError(f"the format of a table's certificate must be 1, got {short(given['format'])}")
        self.given, self.problems = given, list[str]()
        self.n_arms = check_count(given["n_arms"], "n_arms", 2)
        if self.n_arms > MOST_ITEMS:
            raise ValueError(f"n_arms must be at most {MOST_ITEMS}, got {self.n_arms}")
        self.dim = check_count(given["dim"], "dim", 1)
        self.delta = check_delta(given["delta"])
        self.noise: Model = noise_from_json(given["noise"], self.dim)
        if given["rows"] not in ROWS:
            raise ValueError(f"rows must be one of {', '.join(ROWS)}, got {short(given['rows'])}")
        self.asked = _asked(given["asked"], self.n_arms)
        self.labels = _labels(given["labels"], self.asked, self.n_arms)
        self.pairs = [(i, j) for i in range(self.n_arms) for j in range(i + 1, self.n_arms)]
        self.stacks = self._stacks(events)
        self.stated = self._stated()

    def everything(self) -> None:
        """Every check there is."""
        proven = self.labels is not None
        for name, said in (
            ("claim", table_claim(self.asked, proven, self.delta)),
            ("assumes", table_assumption(self.noise, self.asked, self.given["rows"])),
        ):
            if self.given[name] != said:
                self._say(f"{name} must be {said!r}, got {short(self.given[name])}")
        if self.problems:
            return  # of what is claimed, not whether it holds
        if isinstance(self.asked, Resolution | SingleLinkage):
            self._by_intervals(self.asked)
        else:
            self._by_tests(self.asked)

    def _say(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def _stacks(self, events: Sequence[Any]) -> list[FloatArray]:
        rows: list[list[FloatArray]] = [[] for _ in range(self.n_arms)]
        for number, event in enumerate(events, start=1):
            if not isinstance(event, dict) or event.get("event") != "result" or event.get("round") != 0:
                raise ValueError(f"event {number} of the log is no row of a table, got {short(event)}")
            arm = check_count(event.get("arm"), f"the arm of event {number}", 0)
            if arm >= self.n_arms:
                raise ValueError(f"event {number} is of arm {arm}, but there are only {self.n_arms}")
            values = check_real_array(event.get("values"), f"the values of event {number}")
            if values.shape != (self.dim,):
                raise ValueError(f"event {number} must have {self.dim} values, got {short(event.get('values'))}")
            if isinstance(self.noise, Unknown):
                self.noise.check(values[None])
            rows[arm].append(values)
        if len(events) != check_count(self.given["t"], "t", 1):
            raise ValueError(f"the certificate has {self.given['t']} rows, the log {len(events)}")
        for arm, its in enumerate(rows):
            if not its:
                raise ValueError(f"arm {arm} has no row in the log")
        return [np.array(its) for its in rows]

    def _stated(self) -> dict[tuple[int, int], float | None]:
        tested = not isinstance(self.asked, Resolution | SingleLinkage)
        found: dict[tuple[int, int], float | None] = {}
        for entry in list_of(self.given, "apart"):
            if not isinstance(entry, list | tuple) or len(entry) != 2 + tested:
                raise ValueError(f"apart must have entries of {2 + tested} numbers, got {short(entry)}")
            i, j = (check_count(one, "an item of apart", 0) for one in entry[:2])
            if not i < j < self.n_arms or (i, j) in found:
                raise ValueError(f"apart must have every pair once, the smaller item first, got {short(entry)}")
            found[i, j] = check_real(entry[2], "the p-value of a pair") if tested else None
        return found

    def _same(self, name: str, found: Any) -> None:
        if self.given[name] != found or isinstance(self.given[name], bool):
            self._say(f"{name} must be {found!r}, got {short(self.given[name])}")

    def _at_least(self, apart: set[tuple[int, int]], fewest: int) -> None:
        items = [check_count(one, "an item of differing", 0) for one in list_of(self.given, "differing")]
        for k, j in enumerate(items):
            for i in items[:k]:
                if (min(i, j), max(i, j)) not in apart:
                    self._say(f"differing: items {i} and {j} are not shown to differ")
        stated = check_count(self.given["groups_at_least"], "groups_at_least", 0)
        if stated > max(fewest, len(items)):
            self._say(f"groups_at_least is {stated}, but only {max(fewest, len(items))} are shown")

    # Tests of pairs.

    def _by_tests(self, asked: Question | None) -> None:
        tests = TableTests(self.stacks, self.noise, self.delta)
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
                found = tests.p[pair]
                self._say(
                    f"p of items {pair[0]} and {pair[1]}: the certificate says {p:.9g}, the rows give {found:.9g}"
                )
            if pair not in closure.apart:
                self._say(f"items {pair[0]} and {pair[1]} are not shown to differ")
        fewest = 0 if closure.fitting is None else min((len(blocks) for blocks in closure.fitting), default=0)
        self._at_least(closure.apart, fewest)
        if self.labels is None:
            return
        if asked is None:
            if len(closure.apart) < len(self.pairs):
                self._say("the items are claimed to be a group each, but not all pairs are shown to differ")
        elif not closure.only_grouping(int(asked.n_clusters or 0), self.labels):
            self._say(f"the groups are not shown to be the only {asked.n_clusters} that fit the rows")

    # Intervals.

    def _by_intervals(self, asked: Resolution | SingleLinkage) -> None:
        self._same("test", "intervals")
        self._same("seed", None)
        self._same("draws", None)
        bounds = difference_bounds(self.stacks, self.noise, self.delta)
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
            self._say(f"items {i} and {j} are not shown to be apart")
        self._at_least(apart, 0)
        for gap in gaps:
            if gap is not None:
                self._say(gap)

    def _references(self, asked: Resolution) -> list[int] | None:
        if asked.claims != "references":
            self._same("references", None)
            return None
        assert self.labels is not None
        found = list_of(self.given, "references", max(self.labels) + 1)
        its = [check_count(one, "a reference", 0) for one in found]
        if max(its) >= self.n_arms:
            raise ValueError(f"a reference must be one of {self.n_arms} items, got {max(its)}")
        return its


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


def _labels(given: Any, asked: Question | None, n_arms: int) -> list[int] | None:
    if given is None:
        return None
    if not isinstance(given, list | tuple) or len(given) != n_arms:
        raise ValueError(f"labels must have {n_arms} entries, got {short(given)}")
    found = [check_count(one, "a label", 0) for one in given]
    count = max(found) + 1
    wanted = n_arms if asked is None else asked.n_clusters
    if set(found) != set(range(count)) or (wanted is not None and count != wanted):
        raise ValueError(f"labels must number {wanted or 'the'} groups from 0, got {short(given)}")
    return found
