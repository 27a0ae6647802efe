"""`Result`: what `cluster` found, as arrays, by name, as a frame, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.costs import cost_text
from coterie.problem.sentences import text_html
from coterie.session import verdicts
from coterie.session.groups import grouped_names, groups_html
from coterie.session.intervals import Intervals, interval_columns
from coterie.session.record_arrays import failed_in_words
from coterie.session.remarks import Alarm, Homogeneity
from coterie.session.session import Session


@dataclass(frozen=True, repr=False)
class Result:
    """What `cluster` found. If the budget or an alarm came first, `done` is False and labels and centers are a guess.

    A proof is for exactly n_clusters groups, so read `alarm` and `homogeneity` before you believe it. What else speaks
    against the data, such as drift or a noise that is not the one stated, is in `session.alarms`.

    Parameters
    ----------
    labels : array of int or None
        The group of each item, numbered by first appearance; None if there are no groups yet.
    centers : array or None
        (groups, d), in the units of the measurements.
    pulls, t : array of int and int
        How many measurements counted, of each item and in all.
    done : bool
        Whether the groups are proven.
    session : Session
        The session behind it, to be gone on with.
    alarm : Alarm, optional
        There are more groups than n_clusters.
    homogeneity : Homogeneity, optional
        If `done`, whether each group looks like one.
    columns : tuple of str, optional
        What the numbers of a measurement are called, if `measure` returned a Series.
    """

    labels: IntArray | None
    centers: FloatArray | None
    pulls: IntArray
    t: int
    done: bool
    session: Session
    alarm: Alarm | None = None
    homogeneity: Homogeneity | None = None
    columns: tuple[str, ...] | None = None

    @property
    def delta(self) -> float:
        """The error probability that was allowed."""
        return self.session.delta

    @property
    def n_clusters(self) -> int | None:
        """The number of groups: as stated, or as found."""
        return self.session.n_clusters if self.labels is None else int(self.labels.max()) + 1

    @property
    def certificate(self) -> Any:
        """The proof as data; None if nothing is proven, or the method writes none."""
        try:
            return self.session.certificate
        except ValueError:  # of a method without certificates
            return None

    @property
    def cost(self) -> float | None:
        """What all measurements have cost, in the unit of `costs`; None if there are none."""
        return self.session.cost

    @property
    def names(self) -> tuple[Any, ...]:
        """The items by name, in the order of `labels`; by number if they have no names."""
        session = self.session
        return tuple(range(session.n_arms)) if session.names is None else session.names

    @property
    def groups(self) -> list[list[Any]]:
        """The items of each group, by name as in `names`; none if there are no groups yet."""
        return self.session._read(grouped_names)

    def intervals(self, of: str = "groups", delta: float | None = None, quantile: float | None = None) -> Intervals:
        """Proven intervals of groups, differences of groups, or items: `Session.intervals`."""
        return self.session.intervals(of, delta, quantile)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each item, by name: its group, how often it was measured, its means,
        and `low_…` and `high_…` of `intervals(of="items")`, unless they are many and take long.

        `frame.join(result.to_frame())` puts the groups beside what else is known about the items. Before there are
        groups the column `group` is empty.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError('to_frame needs pandas: pip install "coterie[paper]"') from None
        content: dict[str, Any] = {
            "group": [None] * len(self.names) if self.labels is None else self.labels,
            "measurements": self.pulls,
        }
        index = pandas.Index(self.names, name="item")
        if self.session.features is not None:  # those that tell the groups apart: there may be thousands
            content |= {f"mean_{name}": means for name, means in self._means_by_feature().items()}
            return pandas.DataFrame(content, index=index)
        called, means = self.columns or tuple(f"v{i}" for i in range(self.session.dim)), self._means()
        content |= {f"mean_{column}": means[:, i] for i, column in enumerate(called)}
        content |= interval_columns(self.intervals, self.session.noise, means.size, called)
        return pandas.DataFrame(content, index=index)

    def plot(self, **options: Any) -> Any:
        """The items' means, coloured by group: `coterie.plot.means` with its options. It returns matplotlib's axes."""
        # Pictures are a package above this one: looked up by name, as the package does, and only when it is asked for.
        return import_module("coterie.plot").means(self, **options)

    def _means_by_feature(self) -> dict[str, FloatArray]:
        """(M) the means of the items on each feature that the groups are told apart by; NaN where there is none."""
        features = self.session.features
        assert features is not None
        cells, names = self.session.cells, features.names
        columns = {name: np.full(self.session.n_arms, np.nan) for name in self.session.found_features}
        for item, feature, mean in zip(cells.items, cells.features, cells.means, strict=True):
            if names[feature] in columns:
                columns[names[feature]][item] = mean
        return columns

    def _means(self) -> FloatArray:
        """(M, d): the means of the measurements that counted; NaN where there is none."""
        session = self.session
        log = session.log_arrays
        sums, rows = np.zeros((session.n_arms, session.dim)), session.counted
        counts = np.bincount(log.arms_of(rows), minlength=session.n_arms)
        for row in rows.tolist():
            sums[log.arms[row]] += log.values[row]
        return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], np.nan)

    @property
    def _spent(self) -> str:
        return "" if self.cost is None else f" ({cost_text(self.cost, self.session.cost_unit)})"

    def _repr_html_(self) -> str:
        return text_html(repr(self)) + self.session._read(groups_html)

    def __repr__(self) -> str:
        if self.labels is None:
            return f"<Result after {self.t} measurements{self._spent}: no groups yet>"
        how = "not proven, the groups are a guess" if self.alarm is None else "not proven, and K is refuted"
        if self.done:
            how = self.session._read(verdicts.proof_in_words)
        head = f"Result after {self.t} measurements{self._spent}: {how}, labels {short(self.labels.tolist())}"
        head += self.session._read(failed_in_words)
        return verdicts.described(head, self.alarm, self.homogeneity, self.session.alarms)
