"""`coterie.group`: which items of a table are alike, and all that its rows prove; `Grouping` is the answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.certificate import Certificate
from coterie.problem.checks import FloatArray, IntArray, check_count, check_delta, short
from coterie.problem.question import GROUPS, ExactGroups, Question, Resolution, SingleLinkage
from coterie.problem.sentences import table_html, text_html
from coterie.problem.settings import DELTA
from coterie.session.intervals import Intervals, interval_columns
from coterie.tables.analysis import PairAnalysis
from coterie.tables.errors import TableError, checked
from coterie.tables.finished import analyse
from coterie.tables.intervals import table_intervals
from coterie.tables.pool import Pool
from coterie.tables.reading.pools import read_pool
from coterie.tables.verdicts import assumed_lines, condition, thin_lines

if TYPE_CHECKING:
    from coterie.tables.growing import ReplayAnalysis

MOST_SHOWN = 50
"""Items that a notebook shows."""


def group(
    table: Any,
    items: str | None = None,
    values: str | Sequence[str] | None = None,
    n_clusters: int | None = None,
    resolution: Any = None,
    noise: Any = None,
    delta: float = DELTA,
    growing: bool | None = None,
    *,
    groups: str = GROUPS[0],
    wide: bool | str = False,
    leave_out_holes: bool = False,
    sheet: str | None = None,
    copies: str | None = None,
    blocks: str | None = None,
    holes: str | None = None,
    **replaying: Any,
) -> Grouping:
    """Which items of a table are alike: letters, groups and pairs, each with the proof of it.

    All pairs of items are tested once, by exact tests for the noise that is stated, and every answer is read from that
    (docs/EVIDENCE.md, "A finished table"). Any of it is wrong with probability at most `delta`, if the number of rows
    did not depend on their values.

    Parameters
    ----------
    table : DataFrame, path, list of rows, or dict
        A row for each measurement; or {item: results}, each (n) or (n, d).
    items, values : str, list of str, optional
        The column that names the items, and those that hold the values; found by their content if left out.
    n_clusters : int, optional
        How many groups there are, if that is known: then the groups are found, not only which items differ.
    resolution : (alike, apart) or Resolution, optional
        Which differences do not matter, and which do: then groups and their number are found. It needs a noise under
        which nearness can be proven: Gaussian, known, counts or bounded.
    noise : optional
        What is known about the noise, as for `Session`; None: nothing but that equal items have equal distributions.
    delta : float
        The error probability that is allowed.
    growing : bool, optional
        True: somebody looked at the rows and measured more because of it, or will; then evidence that holds at every
        moment is used, with the rows in the order in which they were measured, and it needs more rows. False: nobody
        did. None: this is taken to be so, and the answer says it.
    groups : {"equal", "linkage"}
        With `n_clusters`: items of a group are alike, or the groups are those of single linkage of the true means.
    wide, leave_out_holes, sheet, copies
        How the table is laid out, as for `coterie.tables.replay_pool`.
    blocks : str, optional
        The column that names the block of each row, such as the day, the plate, the rater or the question: items are
        compared within blocks only, so that a block may shift all of its results (docs/EVIDENCE.md, "Blocks").
    holes : "at random", optional
        Which numbers are missing has nothing to do with any value: then a row with an empty cell counts where it has
        numbers. Otherwise it is refused, or left out (docs/EVIDENCE.md, "Holes").
    replaying
        For a table that grows: method, threshold, distance_ratio and in_order (True unless given) of
        `coterie.tables.replay_pool`.

    Returns
    -------
    Grouping
        The answer. Its `certificate` is checked by `coterie.verify(grouping.certificate, grouping.events)`.

    Raises
    ------
    TableError
        A `ValueError` that names the table, column, cell or setting that cannot be used.

    Examples
    --------
    >>> import coterie
    >>> table = {"A": [4.9, 5.1, 5.0, 5.2], "B": [5.0, 4.8, 5.1, 5.3], "C": [7.9, 8.1, 8.0, 8.2]}
    >>> coterie.group(table, noise=0.2).letters
    ('a', 'a', 'b')
    >>> grouping = coterie.group(table, n_clusters=2, noise="gaussian")
    >>> grouping.groups, grouping.done
    ([['A', 'B'], ['C']], True)
    >>> rows = [{"item": item, "day": day, "yield": 10 * day + better}
    ...         for day in range(8) for item, better in (("A", 0.1 * (day % 3)), ("B", 1.0))]
    >>> coterie.group(rows, blocks="day").letters
    ('a', 'b')
    """
    if growing is not None and not isinstance(growing, bool | np.bool_):
        raise TableError(f"growing must be True, False or None, got {short(growing)}", field="growing")
    if replaying and not growing:
        message = f"{', '.join(sorted(replaying))}: for a table that grows"
        raise TableError(f"{message}; say --growing (in Python growing=True), or leave it out", field=min(replaying))
    checked("delta", check_delta, delta)
    pool = read_pool(table, values, items, wide, leave_out_holes, sheet, copies, blocks, holes)
    if growing and pool.blocks is not None:
        message = "blocks are for a finished table: leave --block or --growing out (in Python blocks or growing)"
        raise TableError(message, field="blocks")
    if growing and pool.has_holes:
        message = "holes at random are for a finished table: leave rows with holes out, leave_out_holes, or growing"
        raise TableError(f"{message} (--leave-out-holes, --growing)", field="holes")
    asked = _question(pool, n_clusters, resolution, groups)
    if growing:  # the number of rows may depend on values: only their own order will do, unless something else is said
        replaying.setdefault("in_order", True)
        return Grouping(_grown(pool, asked, noise, float(delta), replaying))
    return Grouping(analyse(pool, asked, noise, float(delta), "assumed" if growing is None else "stated"))


def _question(pool: Pool, n_clusters: Any, resolution: Any, groups: str) -> Question | None:
    if groups not in GROUPS:
        raise TableError(f"groups must be one of {', '.join(GROUPS)}, got {short(groups)}", field="groups")
    if resolution is not None:
        if n_clusters is not None:
            message = "give n_clusters or resolution, not both: with a resolution the number of groups is found"
            raise TableError(message, field="n_clusters")
        try:
            asked = Resolution.of(resolution)
            return asked.for_dim(pool.dim) if len(asked.apart) > 1 else asked
        except (ValueError, TypeError) as error:
            raise TableError(str(error), field="resolution") from None
    if n_clusters is None:
        if groups != GROUPS[0]:
            raise TableError(f"groups={groups!r} is for a number of groups: give n_clusters", field="groups")
        return None
    k, items = checked("n_clusters", check_count, n_clusters, "n_clusters", 2), len(pool.names)
    if k >= items:
        message = f"n_clusters must be at least 2 and less than the number of items, {items}, got {k}"
        raise TableError(message, field="n_clusters")
    return SingleLinkage(k) if groups == "linkage" else ExactGroups(k)


def _grown(
    pool: Pool, asked: Question | None, noise: Any, delta: float, options: dict[str, Any]
) -> PairAnalysis | ReplayAnalysis:
    """The answer by evidence that holds at every moment."""
    if asked is None:
        from coterie.tables.growing import differing_items

        return differing_items(pool, delta, noise, in_order=options["in_order"])
    from coterie.tables.replay import group_pool

    question: Any = {
        "n_clusters": asked.n_clusters, "resolution": asked if isinstance(asked, Resolution) else None,
        "groups": GROUPS[1] if isinstance(asked, SingleLinkage) else GROUPS[0],
    }  # fmt: skip
    return group_pool(pool, delta=delta, noise=noise, **question, **options)


class Grouping:
    """Which items of a table are alike: what `coterie.group` found.

    Its words are those of `coterie.cluster`'s `Result`: `names`, `labels`, `groups`, `centers`, `delta`, `done`,
    `certificate`.

    Parameters
    ----------
    analysis : PairAnalysis or ReplayAnalysis
        What the rows prove, from which text, JSON and pictures are made.

    Attributes
    ----------
    analysis : PairAnalysis or ReplayAnalysis
        As it was given.
    session : Session or None
        That of a table that grows, if a method was run on it.

    Examples
    --------
    >>> import coterie
    >>> grouping = coterie.group({"A": [4.9, 5.1, 5.0], "B": [7.9, 8.1, 8.0]}, noise=0.2)
    >>> grouping.letters, grouping.at_least
    (('a', 'b'), 2)
    >>> bool(coterie.verify(grouping.certificate, grouping.events))
    True
    """

    def __init__(self, analysis: PairAnalysis | ReplayAnalysis) -> None:
        self.analysis = analysis
        self.session = analysis.session

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The rows, as the certificate is checked against them."""
        return list(self.analysis.events)

    @property
    def names(self) -> tuple[str, ...]:
        """The items, in the order of `labels` and `letters`."""
        return tuple(self.analysis.pool.names)

    @property
    def delta(self) -> float:
        """The error probability that was allowed."""
        return float(self.analysis.delta)

    @property
    def n_clusters(self) -> int | None:
        """The number of groups: as stated, or as found."""
        labels, stated = self.analysis.labels, self.analysis.n_clusters
        return stated if stated is not None or labels is None else max(labels) + 1

    @property
    def growing(self) -> bool:
        """Whether the answer holds at every moment, so that rows may be added because of it."""
        return self.analysis.finished is None

    @property
    def done(self) -> bool:
        """Whether the question is answered: the groups are proven; without a question, that any two items differ."""
        return self.analysis.done

    @property
    def labels(self) -> IntArray | None:
        """The group of each item, from 0; a guess if not `done`. None if no groups were asked for."""
        labels = self.analysis.labels
        return None if labels is None else np.array(labels)

    @property
    def groups(self) -> list[list[str]]:
        """The items of each group, by name."""
        return [list(group.names) for group in self.analysis.groups]

    @property
    def centers(self) -> FloatArray | None:
        """(K, d): the means of the groups."""
        return self.analysis.centers

    @property
    def means(self) -> FloatArray:
        """(M, d): the mean of each item's rows."""
        return self.analysis.means.copy()

    @property
    def counts(self) -> IntArray:
        """How many rows each item has."""
        return self.analysis.pool.counts

    @property
    def columns(self) -> tuple[str, ...]:
        """What the numbers of a row are called."""
        return tuple(self.analysis.pool.columns)

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of each item: items that share one are not proven to differ."""
        pairs = self.analysis.pairs
        return () if pairs is None else tuple(pairs.letters)

    @property
    def apart(self) -> np.ndarray:
        """(M, M): which pairs are proven to differ; of groups up to a resolution, by more than `alike`."""
        return self.analysis.apart.copy()

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """All pairs of items: `one`, `other`, `differ` (proven), `p` of their test, `p_all` for all pairs together.

        The p-values are None where intervals or evidence at every moment decide. Of more than nine items `p_all` is an
        upper bound.
        """
        names, apart, p, adjusted = self.names, self.analysis.apart, self.analysis.p, self.analysis.adjusted
        return [
            {
                "one": names[i], "other": names[j], "differ": bool(apart[i, j]),
                "p": None if p is None else float(p[i, j]),
                "p_all": None if adjusted is None else float(adjusted[i, j]),
            }
            for i in range(len(names)) for j in range(i + 1, len(names))
        ]  # fmt: skip

    @property
    def at_least(self) -> int:
        """How many groups there are at least."""
        return max(self.analysis.fewest, 1)

    @property
    def certificate(self) -> Certificate | None:
        """The proof as data; None if nothing is proven."""
        proof = self.analysis.certificate
        return None if proof is None else Certificate(proof)

    @property
    def verdict(self) -> str:
        """What is proven, in words, with what it rests on."""
        answer = self.analysis
        if not isinstance(answer, PairAnalysis):
            return repr(self.session)
        holds = [] if answer.finished is None else [*assumed_lines(answer), condition(answer.finished)]
        return " ".join([*answer.verdict, *thin_lines(answer), *holds])

    def intervals(self, of: str = "groups", delta: float | None = None, quantile: float | None = None) -> Intervals:
        """Intervals of means, or of quantiles where no interval for a mean exists, that hold all together.

        Of a finished table they are fixed-sample ones, such as t; of one that grows they hold at every moment
        (docs/INTERVALS.md).

        Parameters
        ----------
        of : {"groups", "differences", "items"}
            The common mean of each group, the difference of each two of these, or the mean of each item.
        delta : float, optional
            The probability that any is wrong, beside that of the groups: this grouping's by default.
        quantile : float, optional
            Which one, under any noise and under `Symmetric`; the median by default.

        Raises
        ------
        TableError
            If there are no groups of items that have one mean, or the rows contradict the noise stated.
        """
        return table_intervals(self.analysis, of, delta, quantile)

    def to_json(self) -> dict[str, Any]:
        """The whole answer as plain JSON values."""
        return self.analysis.to_json()

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each item, by name: its group, letters, number of rows, means, intervals.

        `low_…` and `high_…` are those of `intervals(of="items")`, where there are any; not of many, which take long.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise ImportError('to_frame needs pandas: pip install "coterie[paper]"') from None
        labels, means = self.labels, self.means
        content: dict[str, Any] = {"group": [None] * len(self.names) if labels is None else labels}
        if self.letters:
            content["letters"] = list(self.letters)
        content["measurements"] = self.counts
        content |= {f"mean_{column}": means[:, i] for i, column in enumerate(self.columns)}
        content |= interval_columns(self.intervals, self.analysis.checks.noise, means.size, self.columns)
        return pandas.DataFrame(content, index=pandas.Index(self.names, name="item"))

    def plot(self, **options: Any) -> Any:
        """The items' means with their letters: `coterie.plot.letters` with its options. It returns matplotlib's
        axes."""
        return import_module("coterie.plot").letters(self, **options)

    def __repr__(self) -> str:
        return f"<Grouping of {len(self.names)} items by {self.analysis.recorded} rows: {self.verdict}>"

    def _repr_html_(self) -> str:
        labels, letters, means = self.labels, self.letters, self.means
        order = np.lexsort((np.arange(len(self.names)), np.zeros(len(self.names)) if labels is None else labels))
        rows = [
            (
                self.names[i], "" if labels is None else int(labels[i]), letters[i] if letters else "",
                int(self.counts[i]), ", ".join(f"{x:.4g}" for x in means[i]),
            )
            for i in order[:MOST_SHOWN].tolist()
        ]  # fmt: skip
        more = len(self.names) - len(rows)
        table = table_html(("item", "group", "letters", "rows", "mean"), rows)
        return text_html(repr(self)) + table + (f"<p>and {more} more items</p>" if more else "")
