"""`Intervals`: proven intervals of items, groups and differences, all of them together and at every moment.

Each kind that is asked for has an error probability δ_I of its own, beside the δ of the groups; its J intervals have
δ_I/J each. Of groups there is no price for having chosen them: the *true* groups are fixed, and it is their intervals
that hold but for δ_I (docs/INTERVALS.md). Once the groups are proven, they are these but for δ; before, the intervals
hold if these are the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.evidence.intervals.streams import FORMULAS, CellIntervals, CellResults, StreamIntervals
from coterie.problem.checks import FloatArray, IntArray, check_delta, check_real, short
from coterie.problem.families import Model, Unknown
from coterie.problem.question import ExactGroups
from coterie.problem.sentences import assumption_in_words, table_html, text_html
from coterie.problem.settings import Settings
from coterie.session.conversation import Conversation
from coterie.session.groups import labels_of
from coterie.session.record_arrays import Asks, asks_of, cells_of
from coterie.session.telling import refuse_by_feature
from coterie.session.verdicts import alarm_of

if TYPE_CHECKING:
    from coterie.certificate import Certificate
    from coterie.session.session import Session

KINDS = ("groups", "differences", "items")
"""What intervals can be of."""

_MOST_SHOWN = 50


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals that hold all together, and at every moment, but for a probability of `delta`.

    Attributes
    ----------
    of : {"groups", "differences", "items"}
        What they are of.
    rows : tuple
        The number of each item or group; of differences the pair (k, l), for the mean of k minus that of l.
    low, high : array (rows, d)
        The ends, infinite where nothing is known; NaN where no value fits (`void`).
    middle : array (rows, d)
        The mean, or the quantile, of the results read; NaN without any.
    lengths : tuple
        How many results were read; of differences, of both groups.
    delta, count, formula
        The error probability δ_I, the number J of intervals that share it, and the formula, as docs/INTERVALS.md calls
        it.
    proven : bool
        Whether the groups that they are of are proven; intervals of items always are. If not, they hold if these are
        the groups.
    quantile : float or None
        Which quantile they are of; None for means.
    words : str
        What is claimed, and what it rests on.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(4, 2, 1, noise=1.0)
    >>> while not session.done:
    ...     arm = session.ask()
    ...     session.tell(arm, [9.0 * (arm % 2)])
    >>> intervals = session.intervals()
    >>> intervals.rows, intervals.proven
    ((0, 1), True)
    >>> bool(((intervals.low < [[0.0], [9.0]]) & ([[0.0], [9.0]] < intervals.high)).all())
    True
    """

    of: str
    rows: tuple[Any, ...]
    low: FloatArray
    high: FloatArray
    middle: FloatArray
    lengths: tuple[Any, ...]
    delta: float
    count: int
    formula: str
    proven: bool
    quantile: float | None
    words: str
    names: tuple[str, ...]
    labels: IntArray | None = None  # the groups then

    @property
    def void(self) -> tuple[Any, ...]:
        """The rows that no value fits: what was stated about the noise is false, or the error has happened."""
        return tuple(row for row, ends in zip(self.rows, self.low, strict=True) if bool(np.isnan(ends).any()))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON values; ends that are not finite are None."""
        return {
            "of": self.of, "rows": [list(row) if isinstance(row, tuple) else row for row in self.rows],
            "names": list(self.names), "low": _plain(self.low), "high": _plain(self.high),
            "lengths": [list(n) if isinstance(n, tuple) else n for n in self.lengths], "delta": self.delta,
            "count": self.count, "formula": self.formula, "quantile": self.quantile, "proven": self.proven,
            "words": self.words,
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each interval and number: middle, low, high, measurements."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise ImportError('to_frame needs pandas: pip install "coterie[paper]"') from None
        dim = self.low.shape[1]
        index = pandas.MultiIndex.from_product([self.names, [f"v{i}" for i in range(dim)]], names=[self.of, "number"])
        content = {name: getattr(self, name).ravel() for name in ("middle", "low", "high")}
        counts = [n if isinstance(n, int) else min(n) for n in self.lengths]
        return pandas.DataFrame(content | {"measurements": np.repeat(counts, dim)}, index=index)

    def plot(self, **options: Any) -> Any:
        """`coterie.plot.intervals` with its options. It returns matplotlib's axes."""
        return import_module("coterie.plot").intervals(self, **options)

    def __repr__(self) -> str:
        lines = [f"{name}: {_interval_text(*ends)}" for name, *ends in self._shown()]
        more = len(self.rows) - len(lines)
        return "\n  ".join([f"<Intervals: {self.words}", *lines, *([f"and {more} more"] if more > 0 else [])]) + ">"

    def _repr_html_(self) -> str:
        rows = [(name, _interval_text(low, high)) for name, low, high in self._shown()]
        return text_html(self.words) + table_html((self.of, "from … to"), rows)

    def _shown(self) -> list[tuple[str, FloatArray, FloatArray]]:
        return list(zip(self.names[:_MOST_SHOWN], self.low, self.high, strict=False))


def _plain(ends: FloatArray) -> list[list[float | None]]:
    return [[float(end) if np.isfinite(end) else None for end in row] for row in ends]


def _interval_text(low: FloatArray, high: FloatArray) -> str:
    return ", ".join(f"[{a:.4g}, {b:.4g}]" for a, b in zip(low.tolist(), high.tolist(), strict=True))


class Record(NamedTuple):
    """What intervals rest on, of a session at one moment: taken quickly; nothing else of the session is looked at."""

    settings: Settings
    labels: IntArray | None
    proven: bool
    refuted: bool
    revised: bool
    asks: Asks
    values: FloatArray  # of all results (n, d)
    cells: list[CellResults]  # in blocks


def record_of(conversation: Conversation) -> Record:
    """What the intervals of a conversation rest on, now."""
    refuted = alarm_of(conversation) is not None
    proven = conversation.proven and conversation.proves and not refuted
    asks, values = asks_of(conversation), conversation.log.array
    revised = bool(conversation.revisions)
    cells = [] if conversation.settings.blocks is None else cells_of(conversation)
    return Record(conversation.settings, labels_of(conversation), proven, refuted, revised, asks, values, cells)


def session_record(session: Session) -> Record:
    """What the intervals of a session rest on, now."""
    return session._read(record_of)


def intervals_of(conversation: Conversation, of: Any, delta: Any, quantile: Any) -> Intervals:
    """See `Session.intervals`."""
    refuse_by_feature(conversation, "intervals()")
    return intervals_at(record_of(conversation), of, delta, quantile)


def intervals_at(record: Record, of: Any = KINDS[0], delta: Any = None, quantile: Any = None) -> Intervals:
    """The intervals of a session at a moment; ValueError says what has none."""
    settings = record.settings
    check_kind(of)
    p = checked_quantile(quantile, settings.noise, of)
    error = settings.delta if delta is None else check_delta(delta)
    if settings.blocks == "offset" and of != "differences":
        raise ValueError(
            f"in blocks with offsets {of} have no intervals: an offset moves all results of a block, so that only "
            "differences of groups are told apart from it. Ask for intervals(of='differences')"
        )
    if record.revised:
        raise ValueError(
            "a session that was revised has no intervals: which items and groups there are was chosen by looking at "
            "their results, and an interval has no share for that"
        )
    if of == "items":
        labels, n_groups = np.arange(settings.n_arms), settings.n_arms
    else:
        of_items = "" if settings.blocks == "offset" else ", or ask for intervals of items, which need none"
        checked_groups(settings, record.labels, f"measure every item{of_items}")
        assert record.labels is not None
        labels, n_groups = record.labels, settings.shape[1]
    rows: tuple[Any, ...] = tuple(range(n_groups))
    if of == "differences":
        rows = tuple((k, other) for k in range(n_groups) for other in range(k + 1, n_groups))
    compute = _by_streams if settings.blocks is None else _by_cells
    low, high, middle, lengths, formula = compute(record, labels, rows, error, p)
    names = row_names(of, rows, [settings.name_of(arm) for arm in range(settings.n_arms)])
    proven = of == "items" or record.proven
    words = in_words(of, len(rows), error, settings.noise, p, proven, settings.delta, within=settings)
    if record.refuted and of != "items":
        words += f". The data refute that there are {settings.n_clusters} groups: these are none"
    void = [name for name, ends in zip(names, low, strict=True) if bool(np.isnan(ends).any())]
    if void:
        words += f". Alarm: no value fits {', '.join(void)}: the noise is not as stated, or the error has happened"
    shape = (len(rows), settings.dim)
    return Intervals(
        of, rows, low.reshape(shape), high.reshape(shape), middle.reshape(shape), lengths, error,
        len(rows) * settings.dim, formula, proven, p, words, names,
        record.labels,
    )  # fmt: skip


_Made = tuple[FloatArray, FloatArray, FloatArray, tuple[Any, ...], str]
"""Lower ends, upper ends, middles, lengths, and the formula."""


def _by_streams(record: Record, labels: IntArray, rows: tuple[Any, ...], error: float, p: float | None) -> _Made:
    """Without blocks."""
    asks, values, noise = record.asks, record.values, record.settings.noise
    every = asks.of_all
    formula = StreamIntervals(noise, len(rows) * noise.dim, error, asks.arms_of(every), values[every], p)
    if rows and isinstance(rows[0], tuple):
        both = [asks.joined(labels, *pair) for pair in rows]
        low, high = formula.differences([(values[first], values[second]) for first, second in both])
        middle = np.array([center_of(values[a], p) - center_of(values[b], p) for a, b in both])
        lengths: tuple[Any, ...] = tuple((first.size, second.size) for first, second in both)
    else:
        streams = asks.streams(labels, len(rows))
        low, high = formula.means([values[stream] for stream in streams])
        middle = np.array([center_of(values[stream], p) for stream in streams])
        lengths = tuple(stream.size for stream in streams)
    return low, high, middle, lengths, FORMULAS[noise.kind]


def _by_cells(record: Record, labels: IntArray, rows: tuple[Any, ...], error: float, p: float | None) -> _Made:
    """In blocks."""
    noise, drawn = record.settings.noise, record.settings.blocks == "drawn"
    formula = CellIntervals(noise, max(1, len(rows) * noise.dim), error, record.cells, drawn, p)
    apart = bool(rows) and isinstance(rows[0], tuple)
    read = [formula.differences(labels, *row) if apart else formula.of_groups(labels, row) for row in rows]
    low, high = formula.ends(read, apart)
    middle = np.array([row.middle(p) for row in read])
    return low, high, middle, tuple(row.length for row in read), formula.formula


_MOST_QUICK = {"known": 10**6, "at-most": 200}
_MOST_OTHERS = 1000
_MOST_PRODUCTS = {"bounded": 10**5, "at-most": 10**4}


def is_quick(noise: Model, numbers: int) -> bool:
    """Whether intervals of so many numbers are computed within seconds: frames and pictures have no others."""
    return numbers <= _MOST_QUICK.get(noise.kind, _MOST_OTHERS)


def certificate_with_intervals(session: Session) -> Certificate | None:
    """The session's certificate, with its groups' means and their differences, each kind at half of delta.

    In blocks with offsets: with their differences.

    As it is where there are no intervals of groups, or they would take long.
    """
    certificate, settings, count = session.certificate, session.settings, session.n_clusters or 0
    pairs, kind = count * (count - 1) // 2, session.noise.kind
    quick = is_quick(session.noise, pairs * session.dim)
    quick &= pairs * session.dim * session.t <= _MOST_PRODUCTS.get(kind, 10**7)
    none = session.revisions or settings.features is not None or not isinstance(settings.question, ExactGroups)
    if certificate is None or none or not quick:
        return certificate
    kinds = ("differences",) if settings.blocks == "offset" else ("groups", "differences")
    made = [session.intervals(of, session.delta / len(kinds)) for of in kinds]
    return certificate.with_intervals(*made) if all(intervals.proven for intervals in made) else certificate


def interval_columns(
    intervals: Callable[..., Intervals], noise: Model, numbers: int, columns: Sequence[str]
) -> dict[str, Any]:
    """Columns of a frame with the intervals of items; none if there are too many, or none exist."""
    if not is_quick(noise, numbers):
        return {}
    try:
        of_items = intervals(of="items")
    except ValueError:  # after a revision, or where the rows contradict what was stated
        return {}
    ends = (("low", of_items.low), ("high", of_items.high))
    return {f"{name}_{column}": end[:, i] for i, column in enumerate(columns) for name, end in ends}


def check_kind(of: Any) -> None:
    """That there are intervals of this."""
    if not isinstance(of, str) or of not in KINDS:
        raise ValueError(f"of must be one of {', '.join(KINDS)}, got {short(of)}")


def checked_quantile(quantile: Any, noise: Model, of: str) -> float | None:
    """Which quantile is told under this noise; None where means are. ValueError if it cannot be."""
    if noise.kind not in FORMULAS:
        raise ValueError(f"there are no intervals under {noise.words}: they are for {', '.join(FORMULAS)}")
    if quantile is not None:
        p = check_real(quantile, "quantile")
        if not 0.0 < p < 1.0:
            raise ValueError(f"quantile must lie in (0, 1), got {short(quantile)}")
    if FORMULAS[noise.kind] != "quantile":
        if quantile is not None:
            raise ValueError(
                f"quantile={short(quantile)}: under {noise.words} intervals are of means. Leave quantile out, or state "
                "noise=None (any noise) or coterie.Symmetric(), under which they are of quantiles"
            )
        return None
    if quantile is None:
        return 0.5
    if isinstance(noise, Unknown) and noise.kind == "symmetric" and of != "items" and p != 0.5:
        raise ValueError(
            f"quantile={short(quantile)}: items of a group share their center, and under symmetric noise no other "
            "quantile; ask for of='items', or state noise=None if they have one distribution"
        )
    return float(p)


def checked_groups(settings: Settings, labels: IntArray | None, advice: str) -> None:
    """That there are groups of items that have one mean."""
    if not isinstance(settings.question, ExactGroups):
        raise ValueError(
            f"items of a group need not have one mean ({settings.question.words}): ask for intervals(of='items')"
        )
    if labels is None:
        raise ValueError(f"there are no groups yet: {advice}")


def center_of(x: FloatArray, p: float | None) -> FloatArray:
    """(d) the mean, or the p-quantile, of results (n, d); NaN without any."""
    if not len(x):
        return np.full(x.shape[1], np.nan)
    return np.asarray(x[0] + (x - x[0]).mean(axis=0) if p is None else np.quantile(x, p, axis=0, method="inverted_cdf"))


def row_names(of: str, rows: tuple[Any, ...], items: list[str]) -> tuple[str, ...]:
    """What the rows are called."""
    if of == "items":
        return tuple(items)
    if of == "groups":
        return tuple(f"group {row}" for row in rows)
    return tuple(f"group {first} − group {second}" for first, second in rows)


def in_words(
    of: str, count: int, error: float, noise: Model, p: float | None, proven: bool, delta: float, moment: str = "",
    within: Settings | None = None,
) -> str:  # fmt: skip
    """What is claimed of intervals, and what it rests on.

    `moment`: instead of "at every moment". `within`: the settings of a run, which may have blocks.
    """
    kind = "means" if p is None else "medians" if p == 0.5 else f"{p:g}-quantiles"
    about = {"items": "items", "groups": "groups", "differences": "pairs of groups"}[of]
    quantity = f"differences of {kind} of {count} {about}" if of == "differences" else f"{kind} of {count} {about}"
    if within is not None and within.blocks is not None and noise.kind == "any" and of == "differences":
        quantity = f"{kind} of the difference within a block, of {count} {about}"
    held = "" if of == "items" or not proven else f", beside {delta:g} for the groups"
    wrong = f"any is wrong, {moment or 'at any moment'}, with probability at most {error:g}{held}"
    said = f"{quantity}; proven: {wrong}" if proven else f"if these are the groups: {quantity}; {wrong}"
    why = f" (under {noise.words} no interval for a mean exists; bounds or a largest variance would give one)"
    assumed = noise.assumption
    if within is not None and within.blocks is not None:
        assumed = assumption_in_words(noise, ExactGroups.kind, within.blocks, within.strict_blocks)
        offset = within.blocks == "offset"
        same = "differences of groups are the same in every block" if offset else "blocks come from one population"
        assumed += f"; and {same}"
    return f"{said}{why if noise.kind == 'any' else ''}; assumed: {assumed}"
