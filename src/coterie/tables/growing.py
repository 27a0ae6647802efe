"""Tables that grow: what is proven holds at every moment, so that rows may be added because of it.

`differing_items` is for tables of which neither the number of groups nor a resolution is given. Every pair of items is
compared by all results of both, as partial answers compare them (`coterie.session.partial`), but with nothing assumed
about the number of groups: all pairs may be equal. Then any item that is wrongly said to differ from another has
probability at most δ. Nothing is said about items being alike: that needs a number of groups, or differences that do
not matter. `ReplayAnalysis` is the answer where one of these is given (`coterie.tables.replay`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coterie.evidence.intervals.by_noise import unequal
from coterie.evidence.intervals.stacks import Stacks
from coterie.evidence.pair_graphs import far_items
from coterie.methods import method_named
from coterie.problem.checks import FloatArray, check_delta
from coterie.problem.families import Model
from coterie.problem.question import Resolution
from coterie.problem.settings import DELTA
from coterie.session import Partial, Session
from coterie.session.partial import MOST_ITEMS
from coterie.session.verdicts import alarm_json, homogeneity_json
from coterie.tables.analysis import Analysis, PairAnalysis, Pairs
from coterie.tables.checks.assumptions import checked_pool, stated_model
from coterie.tables.checks.successes import as_counts
from coterie.tables.errors import TableError, checked
from coterie.tables.pool import Pool


@dataclass(frozen=True)
class DryItem:
    """The item whose measurements ran out first: how many it has, and after how many of all that was."""

    arm: int
    name: str
    recorded: int
    t: int


@dataclass(frozen=True)
class TableForecast:
    """How many measurements a run was expected to take, whether there are as many, and else a coarser resolution."""

    total: float
    enough: bool
    coarser: Resolution | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        coarser = {} if self.coarser is None else self.coarser.to_json()
        return {"total": self.total, "enough": self.enough} | coarser


@dataclass(frozen=True)
class FewerGroups:
    """A smaller number of groups for which the measurements are enough, and how many are; one group proves nothing."""

    n_clusters: int
    t: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayAnalysis(Analysis):
    """What a method proves that was run on a table that grows.

    `dry`: the item whose measurements ran out first, if one did. `forecast`: what the run was expected to take when
    every item had been measured. `fewer`: if the groups are not proven, a smaller number of them that is. `partial`:
    what is certain about pairs and items, if the items are few enough.
    """

    session: Session
    dry: DryItem | None = None
    forecast: TableForecast | None = None
    fewer: FewerGroups | None = None
    partial: Partial | None = None

    @property
    def centers(self) -> FloatArray | None:
        """(K, d): the centers of the groups by the measurements that counted."""
        return self.session.centers

    @property
    def proves(self) -> bool:
        """Whether the method's stop is a proof."""
        return method_named(self.session.method).proves(self.session.threshold)

    @property
    def homogeneity_text(self) -> str | None:
        """Whether the items of each group look alike, in words; None as long as the groups are not found."""
        looks = self._homogeneity_json()
        return None if looks is None else str(looks["text"])

    def _homogeneity_json(self) -> dict[str, Any] | None:
        return homogeneity_json(self.session, range(1, (self.session.n_clusters or 0) + 1))

    @cached_property
    def pairs(self) -> Pairs | None:
        """What is proven about pairs so far."""
        known = self.partial
        if known is None:
            return None
        return Pairs(
            apart=[self.named(pair) for pair in known.apart],
            p=None,
            alike=[self.named(pair) for pair in known.alike],
            of=len(self.pool.names) * (len(self.pool.names) - 1) // 2,
            letters=list(known.letters),
            possible=[[group + 1 for group in groups] for groups in known.possible],
            error=known.error,
        )

    def to_json(self) -> dict[str, Any]:
        """The whole answer as plain JSON values."""
        session, known = self.session, self.partial
        answer = super().to_json()
        if answer["pairs"] is not None:
            del answer["pairs"]["p"]
        certain = known is not None and not self.done
        return answer | {
            "t": session.t,
            "method": session.method,
            "threshold": session.threshold,
            "dry": None if self.dry is None else asdict(self.dry),
            "pulls": session.pulls.tolist(),
            "partial": None
            if known is None or not certain
            else {
                "settled": self.named(known.settled),
                "undecided": self.named(known.undecided),
                "representatives": self.named(known.representatives),
                "differ": [self.named(pair) for pair in known.differ],
            },
            "alarm": alarm_json(session, self.pool.names.__getitem__),
            "homogeneity": self._homogeneity_json(),
            "fewer": None if self.fewer is None else asdict(self.fewer),
            "forecast": None if self.forecast is None else self.forecast.to_json(),
        }


def differing_items(pool: Pool, delta: float = DELTA, noise: Any = None, in_order: bool = False) -> PairAnalysis:
    """Which items of a pool are proven to differ, at every moment; `noise` and `in_order` as in `replay_pool`."""
    order = pool.order(in_order)
    log_inverse_delta = -math.log(checked("delta", check_delta, delta))
    pool, noise = as_counts(pool, noise, False, order)
    count = len(pool.names)
    if not 2 <= count <= MOST_ITEMS:
        message = f"{pool.source} has {count} item{'' if count == 1 else 's'}: it takes 2 to {MOST_ITEMS}"
        raise TableError(f"{message} to compare all pairs", field="pool")
    model = stated_model(noise, pool.dim)
    checks = checked_pool(pool, model)
    pairs = count * (count - 1) // 2
    apart = unequal(Stacks.of(pool.arms, pool.rows[pool.rearranged(order)], count), model, pairs, log_inverse_delta)
    differing = sorted(far_items(apart))
    return PairAnalysis(
        checks=checks,
        question=None,
        delta=delta,
        order=order,
        apart=apart,
        enough=bool(apart.any()) or model.kind != "any" or _can_differ(pool, model, pairs, log_inverse_delta),
        differing=differing,
        fewest=len(differing),
    )


def _can_differ(pool: Pool, model: Model, pairs: int, log_inverse_delta: float) -> bool:
    """Whether the two items with most results would be told apart if all of one were above all of the other."""
    first, second = np.sort(pool.counts)[-2:].tolist()
    arms = np.repeat([0, 1], [first, second])
    values = np.repeat((np.arange(arms.size) + arms * arms.size)[:, None].astype(float), pool.dim, axis=1)
    return bool(unequal(Stacks.of(arms, values, 2), model, pairs, log_inverse_delta).any())
