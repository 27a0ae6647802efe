"""`coterie.group`: which items of a table are alike, and all that its rows prove; `Grouping` is the answer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from coterie.certificate import Certificate
from coterie.problem.checks import FloatArray, IntArray, check_count, check_delta, short
from coterie.problem.html import table_html, text_html
from coterie.problem.question import GROUPS, ExactGroups, Question, Resolution, SingleLinkage
from coterie.problem.settings import DELTA
from coterie.tables.errors import TableError, checked
from coterie.tables.finished import Analysis, analyse
from coterie.tables.finished_words import condition, thin_lines, verdict
from coterie.tables.pool import Pool, read_pool

MOST_SHOWN = 50
"""Items that a notebook shows."""


def group(
    table: Any,
    items: str | None = None,
    values: Sequence[str] | None = None,
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
    replaying
        For a table that grows: method, threshold, distance_ratio and in_order (True unless given) of
        `coterie.tables.replay_pool`.

    Returns
    -------
    Grouping
        The answer. Its `certificate` is checked by `coterie.verify(grouping.certificate, grouping.events)`.
    """
    if growing is not None and not isinstance(growing, bool | np.bool_):
        raise TableError(f"growing must be True, False or None, got {short(growing)}", field="growing")
    if replaying and not growing:
        what = f"{', '.join(sorted(replaying))}: for a table that grows"
        raise TableError(f"{what}; say --growing (in Python growing=True), or leave it out", field=min(replaying))
    checked("delta", check_delta, delta)
    pool = read_pool(table, values, items, wide, leave_out_holes, sheet, copies)
    asked = _question(pool, n_clusters, resolution, groups)
    if growing:  # the number of rows may depend on values: only their own order will do, unless something else is said
        replaying.setdefault("in_order", True)
    if not growing:
        return Grouping(analyse(pool, asked, noise, float(delta), "assumed" if growing is None else "stated"))
    return _grown(pool, asked, noise, float(delta), replaying)


def _question(pool: Pool, n_clusters: Any, resolution: Any, groups: str) -> Question | None:
    if groups not in GROUPS:
        raise TableError(f"groups must be one of {', '.join(GROUPS)}, got {short(groups)}", field="groups")
    if resolution is not None:
        if n_clusters is not None:
            what = "give n_clusters or resolution, not both: with a resolution the number of groups is found"
            raise TableError(what, field="n_clusters")
        try:
            found = Resolution.of(resolution)
            return found.for_dim(pool.dim) if len(found.apart) > 1 else found
        except (ValueError, TypeError) as error:
            raise TableError(str(error), field="resolution") from None
    if n_clusters is None:
        if groups != GROUPS[0]:
            raise TableError(f"groups={groups!r} is for a number of groups: give n_clusters", field="groups")
        return None
    k, items = checked("n_clusters", check_count, n_clusters, "n_clusters", 2), len(pool.names)
    if k >= items:
        what = f"n_clusters must be at least 2 and less than the number of items, {items}, got {k}"
        raise TableError(what, field="n_clusters")
    return SingleLinkage(k) if groups == "linkage" else ExactGroups(k)


def _grown(pool: Pool, asked: Question | None, noise: Any, delta: float, options: dict[str, Any]) -> Grouping:
    """The answer by evidence that holds at every moment."""
    from coterie.tables.differences import differing_items
    from coterie.tables.replay import group_pool

    place = {name: arm for arm, name in enumerate(pool.names)}
    apart = np.zeros((len(place), len(place)), dtype=bool)
    session = None
    if asked is None:
        found = differing_items(pool, delta, noise, in_order=options["in_order"])
        found |= {
            "question": None, "labels": None, "done": False, "sound": True, "fewest": len(found["at_least"]),
            "groups": [], "thin": [], "settles": None, "allows": None,
        }  # fmt: skip
        found["verdict"] = verdict(found)
    else:
        kind: Any = {
            "n_clusters": asked.n_clusters, "resolution": asked if isinstance(asked, Resolution) else None,
            "groups": GROUPS[1] if isinstance(asked, SingleLinkage) else GROUPS[0],
        }  # fmt: skip
        found, session = group_pool(pool, delta=delta, noise=noise, **kind, **options)
    events = [] if session is None or found["certificate"] is None else list(session.events)
    for one, other in (found["pairs"] or {"apart": []})["apart"]:
        apart[place[one], place[other]] = apart[place[other], place[one]] = True
    return Grouping(Analysis(found, apart, None, None, events), session)


class Grouping:
    """Which items of a table are alike: what `coterie.group` found.

    Its words are those of `coterie.cluster`'s `Result`: `names`, `labels`, `groups`, `centers`, `delta`, `done`,
    `certificate`. `session` is that of a table that grows, else None.
    """

    def __init__(self, analysis: Analysis, session: Any = None) -> None:
        self._found, self.session = analysis.found, session
        self._apart, self._p, self._adjusted = analysis.apart, analysis.p, analysis.adjusted
        self.events = analysis.events
        """The rows, as the certificate is checked against them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The items, in the order of `labels` and `letters`."""
        return tuple(self._found["names"])

    @property
    def delta(self) -> float:
        """The error probability that was allowed."""
        return float(self._found["delta"])

    @property
    def n_clusters(self) -> int | None:
        """The number of groups: as stated, or as found."""
        labels = self._found.get("labels")
        given = self._found.get("n_clusters")
        return given if given is not None or labels is None else max(labels) + 1

    @property
    def growing(self) -> bool:
        """Whether the answer holds at every moment, so that rows may be added because of it."""
        return "rows" not in self._found

    @property
    def done(self) -> bool:
        """Whether the question is answered: the groups are proven; without a question, that any two items differ."""
        return bool(self._found.get("done", False))

    @property
    def labels(self) -> IntArray | None:
        """The group of each item, from 0; a guess if not `done`. None if no groups were asked for."""
        labels = self._found.get("labels")
        return None if labels is None else np.array(labels)

    @property
    def groups(self) -> list[list[str]]:
        """The items of each group, by name."""
        return [list(one["names"]) for one in self._found.get("groups") or []]

    @property
    def centers(self) -> FloatArray | None:
        """(K, d): the means of the groups."""
        groups = self._found.get("groups")
        return np.array([one["center"] for one in groups]) if groups else None

    @property
    def means(self) -> FloatArray:
        """(M, d): the mean of each item's rows."""
        return np.array(self._found["means"])

    @property
    def counts(self) -> IntArray:
        """How many rows each item has."""
        return np.array(self._found["counts"])

    @property
    def columns(self) -> tuple[str, ...]:
        """What the numbers of a row are called."""
        return tuple(self._found["read"]["values"])

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of each item: items that share one are not proven to differ."""
        pairs = self._found["pairs"]
        return () if pairs is None else tuple(pairs["letters"])

    @property
    def apart(self) -> np.ndarray:
        """(M, M): which pairs are proven to differ; of groups up to a resolution, by more than `alike`."""
        return self._apart.copy()

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """All pairs of items: `one`, `other`, `differ` (proven), `p` of their test, `p_all` for all pairs together.

        The p-values are None where intervals or evidence at every moment decide. Of more than nine items `p_all` is an
        upper bound.
        """
        names = self.names
        return [
            {
                "one": names[i], "other": names[j], "differ": bool(self._apart[i, j]),
                "p": None if self._p is None else float(self._p[i, j]),
                "p_all": None if self._adjusted is None else float(self._adjusted[i, j]),
            }
            for i in range(len(names)) for j in range(i + 1, len(names))
        ]  # fmt: skip

    @property
    def at_least(self) -> int:
        """How many groups there are at least."""
        found = self._found
        return int(found.get("fewest") or len(found.get("at_least") or [0]))

    @property
    def certificate(self) -> Certificate | None:
        """The proof as data; None if nothing is proven."""
        found = self._found.get("certificate")
        return None if found is None else Certificate(found)

    @property
    def verdict(self) -> str:
        """What is proven, in words, with what it rests on."""
        found = self._found
        if "verdict" not in found:
            return repr(self.session)
        holds = [] if self.growing else [condition(found["rows"])]
        return " ".join([*found["verdict"], *thin_lines(found), *holds])

    def to_json(self) -> dict[str, Any]:
        """The whole answer as plain JSON values."""
        return dict(self._found)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each item, by name: its group, letters, number of rows, and means."""
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
        return pandas.DataFrame(content, index=pandas.Index(self.names, name="item"))

    def plot(self, **options: Any) -> Any:
        """The items' means with their letters: `coterie.plot.letters` with its options. It returns matplotlib's
        axes."""
        return import_module("coterie.plot").letters(self, **options)

    def __repr__(self) -> str:
        return f"<Grouping of {len(self.names)} items by {self._found['recorded']} rows: {self.verdict}>"

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
