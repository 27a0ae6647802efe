"""What a table proves, as one object: text, JSON, files and pictures are rendered from it.

`PairAnalysis` is that of a finished table, and of one that grows where nothing is asked but which items differ;
`coterie.tables.growing.ReplayAnalysis` that of a method that was run on a table that grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from coterie.certificate import Certificate
from coterie.evidence.pair_graphs import letters
from coterie.problem.checks import FloatArray
from coterie.problem.question import ExactGroups, Question, Resolution
from coterie.tables.checks.assumptions import CheckedPool, Misfit, ThinItem
from coterie.tables.checks.row_order import Order, OrderReport, order_report
from coterie.tables.checks.spread import means_of
from coterie.tables.pool import Pool, Reading
from coterie.tables.verdicts import verdict_lines

# The fields of the small classes are keys in the JSON of an answer, in their order.


@dataclass(frozen=True)
class Group:
    """A group: its number from 1, its items by number and by name, and its center."""

    group: int
    arms: list[int]
    names: list[str]
    center: list[float | None]


def plain_rows(rows: FloatArray) -> list[list[float | None]]:
    """Rows of numbers as JSON has them: null for what is missing."""
    return [[None if number != number else number for number in row] for row in rows.tolist()]


class RowEvents(Sequence[dict[str, Any]]):
    """The rows of a pool as events of a log. Each is made when it is read: all of them take ten times the numbers."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __len__(self) -> int:
        return len(self._pool.rows)

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(at, slice):
            return [self[i] for i in range(len(self))[at]]
        pool = self._pool
        event = {"event": "result", "arm": int(pool.arms[at]), "round": 0, "values": plain_rows(pool.rows[[at]])[0]}
        return event if pool.blocks is None else event | {"block": pool.blocks.names[pool.blocks.of_rows[at]]}


@dataclass(frozen=True)
class Pairs:
    """Pairs of items by name: those proven to differ with p of their tests, those proven alike, out of how many; the
    letters of each item and the groups, from 1, that it may be in; the error probability of all of it.
    """

    apart: list[list[str]]
    p: list[float] | None
    alike: list[list[str]]
    of: int
    letters: list[str]
    possible: list[list[int]]
    error: float


@dataclass(frozen=True)
class PairTest:
    """The name of the test of each pair, and the seed and number of random rearrangements, if there were any."""

    name: str
    seed: int | None = None
    draws: int | None = None


@dataclass(frozen=True)
class AllowedResolution:
    """A resolution for which rows have an answer, the noise to state for it, and how many groups that gives."""

    alike: list[float]
    apart: list[float]
    noise: str | None
    groups: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis:
    """What the rows of a table prove, and what they say about themselves.

    `checks`: the measurements beside what was stated about their noise; `labels`: groups from 0, a guess unless `done`;
    `references`: the reference item of each group, of groups up to a resolution; `borders`: for items near a border
    the other groups, from 0, that they could belong to. `finished`: whether it was "stated" or is "assumed" that the
    number of rows did not depend on their values; None: the table grows, and the evidence holds at every moment.
    `apart`: (M, M) which pairs are proven to differ; `p`: of the test of each pair, `adjusted`: for all pairs together,
    both None where intervals or evidence at every moment decide; `fewest`: the least number of groups that follows.
    `events`: the rows, as the certificate is checked against them; `session`: of a table that grows, if one was run.
    """

    checks: CheckedPool
    question: Question | None
    delta: float
    order: Order
    apart: NDArray[np.bool_]
    p: FloatArray | None = None
    adjusted: FloatArray | None = None
    fewest: int = 1
    finished: str | None = None
    labels: list[int] | None = None
    done: bool = False
    references: list[int] | None = None
    borders: dict[int, list[int]] = field(default_factory=dict)
    thin: list[ThinItem] = field(default_factory=list)
    misfits: list[Misfit] = field(default_factory=list)
    certificate: Certificate | None = None
    events: Sequence[dict[str, Any]] = ()
    session: Any = None

    @property
    def pool(self) -> Pool:
        """The measurements."""
        return self.checks.pool

    @property
    def n_clusters(self) -> int | None:
        """The number of groups that was stated."""
        return None if self.question is None else self.question.n_clusters

    @property
    def recorded(self) -> int:
        """How many measurements there are."""
        return len(self.pool.rows)

    @property
    def asks_for_equal_items(self) -> bool:
        """Whether the items of a group are taken to be equal, so that more than the proof can be tested."""
        return isinstance(self.question, ExactGroups)

    @cached_property
    def reading(self) -> Reading:
        """What was read."""
        return self.pool.described()

    @cached_property
    def row_order(self) -> OrderReport | None:
        """What speaks against rows in no particular order; nothing in blocks, whose rows differ by that."""
        if self.pool.blocks is not None or self.pool.has_holes:
            return None
        return order_report(self.pool, self.order.seed is not None)

    @cached_property
    def means(self) -> FloatArray:
        """(M, d): the mean of each item's rows, with what blocks add taken off."""
        return means_of(self.pool.arms, self.pool.freed.rows, len(self.pool.names))[0]

    @property
    def centers(self) -> FloatArray | None:
        """(K, d): the means of the groups; None without groups."""
        if self.labels is None:
            return None
        return means_of(np.array(self.labels)[self.pool.arms], self.pool.freed.rows, max(self.labels) + 1)[0]

    @cached_property
    def groups(self) -> list[Group]:
        """The groups by number, from 1, with their items and centers."""
        centers = self.centers
        if self.labels is None or centers is None:
            return []
        members: list[list[int]] = [[] for _ in range(max(self.labels) + 1)]
        for arm, label in enumerate(self.labels):
            members[label].append(arm)
        rows = plain_rows(centers)
        return [Group(k + 1, arms, self.named(arms), rows[k]) for k, arms in enumerate(members)]

    @property
    def pairs(self) -> Pairs | None:
        """What is proven about pairs; None if the items are too many, or the method says nothing about pairs."""
        raise NotImplementedError

    # What voids a proof.

    @property
    def noise_too_small(self) -> bool:
        """Whether the measurements contradict the noise stated: they vary more, or some of them do not belong."""
        return self.checks.noise_too_small

    @property
    def in_bursts(self) -> bool:
        """Whether successes were stated to be independent, and the rows of the table say that they are not."""
        return self.pool.cut is not None and self.pool.cut.bursts

    @property
    def out_of_order(self) -> bool:
        """Whether rows were used in the order of the file, and that goes with their values."""
        return self.order.seed is None and self.row_order is not None

    @property
    def contradicted(self) -> bool:
        """Whether the rows contradict what was stated about them."""
        return self.noise_too_small or self.in_bursts or self.out_of_order

    def named(self, arms: Sequence[int]) -> list[str]:
        """The names of items."""
        return [self.pool.names[arm] for arm in arms]

    @property
    def borders_by_name(self) -> dict[str, list[int]]:
        """For items near a border, by name, the other groups, from 1, that they could belong to."""
        return {self.pool.names[arm]: [k + 1 for k in others] for arm, others in self.borders.items()}

    def to_json(self) -> dict[str, Any]:
        """The whole answer as plain JSON values."""
        asked, pool = self.question, self.pool
        question = None if asked is None else {"kind": asked.kind, "words": asked.words, "claim": asked.claim}
        return {
            "recorded": self.recorded,
            "n_arms": len(pool.names),
            "dim": pool.dim,
            "delta": self.delta,
            "question": question,
            "n_clusters": self.n_clusters,
            "order": self.order.as_dict(),
            "done": self.done,
            "labels": self.labels,
            "groups": [asdict(group) for group in self.groups],
            "names": list(pool.names),
            "counts": pool.counts.tolist(),
            "means": plain_rows(self.means),
            "pairs": None if self.pairs is None else asdict(self.pairs),
            "references": None if self.references is None else self.named(self.references),
            "borders": self.borders_by_name,
            "noise": self.checks.noise_json(),
            "slips": self.checks.slips_json(),
            "row_order": None if self.row_order is None else asdict(self.row_order),
            "fit": self.checks.fit_json(),
            "misfits": [asdict(misfit) for misfit in self.misfits],
            "thin": [asdict(item) for item in self.thin],
            "certificate": self.certificate,
            "read": asdict(self.reading),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class PairAnalysis(Analysis):
    """What tests or intervals of all pairs prove.

    `sound`: the rows do not contradict what was stated. `enough`: with so many rows items could have been told apart at
    all. `differing`: items that differ pairwise. `refuted`: there are more groups than stated; `fitting`: how many
    partitions into so many groups fit (None: several). `settles`: the smallest number of groups for which the rows
    settle which they are. `allows`: a resolution for which they have an answer; `coarser`: the one asked for with a
    larger `apart`.
    """

    sound: bool = True
    test: PairTest | None = None
    enough: bool = True
    differing: list[int] = field(default_factory=list)
    refuted: bool = False
    fitting: int | None = None
    settles: int | None = None
    allows: AllowedResolution | None = None
    coarser: Resolution | None = None

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs that are proven to differ, and letters."""
        names = self.pool.names
        places = list(zip(*(places.tolist() for places in np.nonzero(np.triu(self.apart))), strict=True))
        return Pairs(
            apart=[[names[i], names[j]] for i, j in places],
            p=None if self.p is None else [float(self.p[i, j]) for i, j in places],
            alike=[],
            of=len(names) * (len(names) - 1) // 2,
            letters=list(letters(self.apart)),
            possible=[],
            error=self.delta,
        )

    @cached_property
    def verdict(self) -> list[str]:
        """The answer in a few sentences."""
        return verdict_lines(self)

    def to_json(self) -> dict[str, Any]:
        """The whole answer as plain JSON values; of a table that grows without the keys of a finished one."""
        allows = None if self.allows is None else asdict(self.allows)
        if self.coarser is not None:
            allows = dict(self.coarser.to_json()["resolution"])
        answer = super().to_json() | {
            "sound": self.sound,
            "at_least": self.named(self.differing),
            "fewest": self.fewest,
            "enough": self.enough,
            "settles": self.settles,
            "allows": allows,
            "verdict": self.verdict,
        }
        if self.finished is None:
            for key in ("n_clusters", "references", "borders", "fit", "misfits", "certificate"):
                del answer[key]
            for key in ("p", "alike", "possible"):
                del answer["pairs"][key]
            return answer
        answer["order"] |= {"rows": self.finished}
        test = None if self.test is None else asdict(self.test)
        return {"rows": self.finished, **answer, "test": test, "refuted": self.refuted, "fitting": self.fitting}
