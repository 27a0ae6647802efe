"""`BanditClustering`: the groups of measured items as an estimator in the style of scikit-learn.

It has the methods by which scikit-learn handles an estimator (`get_params`, `set_params`, which `sklearn.base.clone`
uses) and needs nothing of scikit-learn itself.
"""

from __future__ import annotations

import html
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from coterie.certificate import Certificate
from coterie.problem.checks import FloatArray, IntArray, check_count, check_real_array, short
from coterie.problem.question import GROUPS
from coterie.problem.settings import DELTA, METHOD, Options
from coterie.session import Session, cluster
from coterie.tables.errors import TableError
from coterie.tables.growing import ReplayAnalysis
from coterie.tables.pool import Pool
from coterie.tables.reading.pools import read_pool
from coterie.tables.replay import group_pool


class BanditClustering:
    """Which items are alike: `fit` measures them, or reads what was measured, until the groups are proven.

    Unlike the clusterers of scikit-learn it groups items, not rows: an item is measured several times. Parameters are
    kept as they are given and checked by `fit`.

    Parameters
    ----------
    n_clusters : int, optional
        How many groups there are; either this or `resolution` is given.
    resolution, noise, delta, method, groups
        As for `Session`.
    budget : int, optional
        For a function that measures: the most measurements.
    progress : bool
        For a function that measures: a line on the terminal (see `coterie.cluster`).
    in_order, wide, leave_out_holes, copies
        For a table: how it is laid out, and whether its rows are used as they stand (see `coterie.tables.replay_pool`).

    Attributes
    ----------
    names_, labels_
        The items as text, and the group of each, from 0; a guess if `proven_` is False (None if there is not even
        that), and a warning has said so.
    n_clusters_, cluster_centers_
        The number of groups, and their centers (K, d).
    n_measurements_ : int
        How many measurements it took.
    proven_ : bool
        Whether the groups are proven.
    certificate_ : Certificate or None
        Plain JSON for `coterie.verify` with `session_.events`; None if nothing is proven.
    session_ : Session
        The conversation that it comes from.

    Examples
    --------
    >>> import coterie
    >>> estimator = coterie.BanditClustering(n_clusters=2, noise=0.2)
    >>> estimator.fit_predict({"A": [4.9, 5.1, 5.0], "B": [5.0, 4.8, 5.3], "C": [7.9, 8.1, 8.0]}).tolist()
    [0, 0, 1]
    >>> estimator.proven_, estimator.names_
    (True, ('A', 'B', 'C'))
    """

    labels_: IntArray | None
    cluster_centers_: FloatArray | None
    n_clusters_: int | None
    n_measurements_: int
    names_: tuple[str, ...]
    proven_: bool
    certificate_: Certificate | None
    session_: Session

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        resolution: Any = None,
        noise: Any = None,
        delta: float = DELTA,
        method: str = METHOD,
        groups: str = GROUPS[0],
        budget: int | None = None,
        progress: bool = False,
        in_order: bool = False,
        wide: bool = False,
        leave_out_holes: bool = False,
        copies: str | None = None,
    ) -> None:
        # Stored as given, without a check: `sklearn.base.clone` compares them by identity.
        self.n_clusters = n_clusters
        self.resolution = resolution
        self.noise = noise
        self.delta = delta
        self.method = method
        self.groups = groups
        self.budget = budget
        self.progress = progress
        self.in_order = in_order
        self.wide = wide
        self.leave_out_holes = leave_out_holes
        self.copies = copies

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # without self
        return {parameter.name: parameter.default for parameter in parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. `deep` is there for scikit-learn: no parameter has parameters of its own."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> BanditClustering:
        """Change parameters by name, all or none; the next `fit` uses them."""
        known = self._defaults()
        for name in params:
            if name not in known:
                raise ValueError(f"BanditClustering has no parameter {name!r}: it has {', '.join(known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if getattr(self, name) is not default and repr(getattr(self, name)) != repr(default)
        ]
        return f"BanditClustering({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """The estimator in a notebook: its parameters that are not the defaults, and once fitted what it has."""
        state = "not fitted"
        if hasattr(self, "session_"):
            proof = "proven" if self.proven_ else "not proven"
            state = f"{self.n_clusters_} groups, {proof}, {self.n_measurements_} measurements"
        return f"<pre>{html.escape(repr(self))}</pre><p>{state}</p>"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks an estimator about itself."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type="clusterer",
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=True, string=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has found groups, or guesses of them."""
        return hasattr(self, "session_")

    def fit(self, X: Any, names: Any = None) -> BanditClustering:  # noqa: N803 (scikit-learn's name)
        """Find the groups.

        Parameters
        ----------
        X : callable, path, DataFrame, list of dict, dict, or array
            A function that measures one item: it is called with one of `names` and returns one measurement. Or a table
            as `coterie.tables.replay_pool` takes it. Or an (n, d) array with a row for each measurement.
        names : list, int or str, optional
            Of a function: the items, or a number M for items 0 … M − 1. Of a table: the column that names the items, if
            its own name does not say so. Of an array: the n items that its rows are of.

        Returns
        -------
        BanditClustering
            The estimator itself.
        """
        if callable(X):
            self._take(*self._measured(X, names))
        else:
            self._take(*self._replayed(X, names))
        return self

    def fit_predict(self, X: Any, names: Any = None) -> IntArray | None:  # noqa: N803
        """`fit`, then the groups: `labels_`, one for each of `names_`."""
        return self.fit(X, names).labels_

    @property
    def _asked(self) -> Options:
        """What a function that measures and a table are asked alike."""
        return {
            "delta": self.delta, "method": self.method, "noise": self.noise, "resolution": self.resolution,
            "groups": self.groups,
        }  # fmt: skip

    def _measured(self, measure: Callable[[Any], Any], names: Any) -> tuple[Session, tuple[str, ...]]:
        items = _items(names)
        result = cluster(measure, items, self.n_clusters, budget=self.budget, progress=self.progress, **self._asked)
        return result.session, tuple(map(str, items))

    def _replayed(self, table: Any, names: Any) -> tuple[Session, tuple[str, ...]]:
        if self.budget is not None:
            raise ValueError(f"budget is for a function that measures, got budget={short(self.budget)} and a table")
        pool = _pool(table, names, self.wide, self.leave_out_holes, self.copies)
        answer = group_pool(pool, self.n_clusters, self.in_order, **self._asked)
        unmeasured = [f"{left.column} ({left.why})" for left in answer.reading.left_out if left.by_content]
        if unmeasured:
            message = f"columns of numbers were left out, since they measure nothing: {', '.join(unmeasured)}"
            warnings.warn(f"{message}; give fit a table without them, or only with columns of values", stacklevel=3)
        warning = _warning(answer)
        if warning is not None:
            warnings.warn(warning, stacklevel=3)
        return answer.session, tuple(pool.names)

    def _take(self, session: Session, names: tuple[str, ...]) -> None:
        self.session_, self.names_ = session, names
        self.labels_, self.cluster_centers_ = session.labels, session.centers
        self.n_clusters_ = None if self.labels_ is None else int(self.labels_.max()) + 1
        self.n_measurements_, self.proven_ = session.t, session.done and session.proves
        self.certificate_ = session.certificate if session.certifies and session.done else None


def _warning(answer: ReplayAnalysis) -> str | None:
    """What must not be missed about a replayed table: that nothing is proven, or what speaks against the proof."""
    session, cut = answer.session, answer.pool.cut
    against = [] if session.alarm is None else [str(session.alarm)]
    against += [str(alarm) for alarm in session.alarms if not alarm.harmless]
    if answer.noise_too_small:
        seen = answer.checks.spread.deviations
        spread = "" if seen is None else f" (standard deviations of repeats: {short(seen.tolist())})"
        against.append(f"The measurements vary more than the noise stated{spread}, which voids the proof.")
    if cut is not None and cut.bursts:
        rows = f"The rates of an item's rows differ more than independent {cut.trials} allow (p = {cut.p:.2g})"
        against.append(f"{rows}, which voids the proof.")
    if answer.misfits:
        listed = short([misfit.name for misfit in answer.misfits])
        against.append(f"Items that do not fit the group they were put in: {listed}.")
    if session.done:
        return f"{session.verdict}, but: {' '.join(against)}" if against else None
    guess = "there are no groups yet" if session.labels is None else "the groups are a guess"
    few = f"the {answer.recorded} measurements of {answer.pool.source} are not enough for a proof: {guess}"
    return " ".join([f"{few}; session_.partial() says what is certain.", *against])


def _items(names: Any) -> Sequence[Any]:
    """What the function that measures is called with: the items as they were given, or 0 … M − 1."""
    if names is None:
        raise ValueError("names must be the items to measure, or how many there are, got None")
    if isinstance(names, str) or not isinstance(names, Iterable):
        return range(check_count(names, "names", 1))
    return list(names)


def _pool(table: Any, names: Any, wide: bool, leave_out_holes: bool, copies: str | None) -> Pool:
    if names is None or isinstance(names, str):
        if isinstance(table, np.ndarray):
            raise TableError("an array has no names: give names, the item of each row", field="names")
        return read_pool(table, None, names, wide, leave_out_holes, copies=copies)
    rows = None
    if not isinstance(table, str | Mapping):
        with_holes = leave_out_holes and np.asarray(table).dtype.kind == "f"
        rows = np.array(table, dtype=np.float64) if with_holes else check_real_array(table, "the table")
    if rows is None or rows.ndim not in (1, 2) or wide:
        raise TableError("names for each row need an (n, d) array of measurements, one a row", field="names")
    items = [str(name) for name in names] if isinstance(names, Iterable) else []
    if len(items) != len(rows):
        message = f"names must have one entry for each of the {len(rows)} rows, got {short(names)}"
        raise TableError(message, field="names")
    values = rows[:, None] if rows.ndim == 1 else rows
    columns = [f"v{i}" for i in range(values.shape[1])]
    content = [
        {"item": item} | dict(zip(columns, row, strict=True)) for item, row in zip(items, values.tolist(), strict=True)
    ]
    return read_pool(content, leave_out_holes=leave_out_holes, copies=copies)
