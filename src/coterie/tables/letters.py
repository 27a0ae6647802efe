"""`letters`: a compact letter display from the results of any pairwise tests."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from coterie.evidence.pair_graphs import letters as letters_of
from coterie.problem.checks import check_real, short

_NAME_COLUMNS = (("group1", "group2"), ("A", "B"), ("one", "other"))
_RESULT_COLUMNS = ("reject", "differ", "p_all", "p-adj", "p_adj", "pval_corr", "p-corr", "p-tukey", "pval", "p")
"""Of tables with a row for each pair, as statsmodels, pingouin and `Grouping.pairs` have them; the first that is there:
a decision goes before a p-value, a corrected one before one that is not."""


def letters(pairs: Any, alpha: float = 0.05, order: Iterable[Any] | None = None) -> dict[Any, str]:
    """Letters from any table of pairs, as people know them from Tukey's test: items that share one do not differ.

    Parameters
    ----------
    pairs : DataFrame, array, mapping or list of dict
        What pairwise tests gave: a square matrix of p-values, as of scikit-posthocs, or of True where two items differ;
        a row for each pair, as of statsmodels and pingouin (columns such as group1, group2 and reject or p-adj); or
        {(item, item): p-value or True}. Every pair must be there once.
    alpha : float
        Two items differ if their p-value is at most this. P-values are taken as they are: correct them for their number
        before, or use `coterie.group`, which does.
    order : iterable, optional
        All items, in the order in which letters are given out, such as by falling means; by default that of `pairs`.

    Returns
    -------
    dict
        The letters of each item. Two items share a letter if and only if they do not differ.

    Raises
    ------
    ValueError
        If a pair is missing or there twice with different results, or a p-value is none.

    Examples
    --------
    >>> import coterie
    >>> coterie.letters({("A", "B"): 0.2, ("A", "C"): 0.001, ("B", "C"): 0.3})
    {'A': 'a', 'B': 'ab', 'C': 'b'}
    """
    if not 0.0 < check_real(alpha, "alpha") < 1.0:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha!r}")
    names: dict[Any, int] = {}
    results: dict[tuple[int, int], bool] = {}
    for first, second, result in _rows(pairs):
        if not (isinstance(first, Hashable) and isinstance(second, Hashable)):
            raise ValueError(f"a pair must be of two items, each with a name, got {short(first)} and {short(second)}")
        if first == second:
            continue
        pair = tuple(sorted(names.setdefault(name, len(names)) for name in (first, second)))
        differ = _differs(result, float(alpha), first, second)
        if results.setdefault((pair[0], pair[1]), differ) != differ:
            raise ValueError(f"the pair {first!r}, {second!r} is there twice, with different results")
    items = list(names) if order is None else _ordered(order, names)
    if len(items) < 2:
        raise ValueError(f"pairs must have at least one pair of items, got {short(pairs)}")
    apart = np.zeros((len(items), len(items)), dtype=bool)
    for i, first in enumerate(items):
        for j, second in enumerate(items[:i]):
            low, high = sorted((names[first], names[second]))
            if (low, high) not in results:
                raise ValueError(f"the pair {second!r}, {first!r} is missing: letters need every pair")
            apart[i, j] = apart[j, i] = results[low, high]
    return dict(zip(items, letters_of(apart), strict=True))


def _ordered(order: Any, names: dict[Any, int]) -> list[Any]:
    items = list(order) if isinstance(order, Iterable) else [order]
    if len(items) != len(names) or not all(isinstance(item, Hashable) for item in items) or set(items) != set(names):
        raise ValueError(f"order must have every item of the pairs once, {short(list(names))}, got {short(items)}")
    return items


def _differs(result: Any, alpha: float, first: Any, second: Any) -> bool:
    if isinstance(result, bool | np.bool_):
        return bool(result)
    value = np.nan
    if not isinstance(result, str):
        try:
            value = float(result)
        except (TypeError, ValueError):
            value = np.nan
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"the pair {first!r}, {second!r} has {short(result)}: give a p-value from 0 to 1, or True")
    return value <= alpha


def _rows(pairs: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Every pair with its result, in any of the forms."""
    if isinstance(pairs, Mapping):
        for key, result in pairs.items():
            if not (isinstance(key, tuple) and len(key) == 2):
                raise ValueError(f"pairs must have pairs of items as keys, such as ('A', 'B'), got {short(key)}")
            yield (*key, result)
    elif (
        hasattr(pairs, "columns") and len(pairs.index) == len(pairs.columns) and set(pairs.index) == set(pairs.columns)
    ):
        square = pairs.loc[:, list(pairs.index)]
        yield from _of_square(square.to_numpy(), list(pairs.index))
    elif hasattr(pairs, "to_dict") and hasattr(pairs, "columns"):
        yield from _of_rows(pairs.to_dict("records"))
    elif isinstance(pairs, list | tuple) and pairs and isinstance(pairs[0], Mapping):
        yield from _of_rows(pairs)
    else:
        matrix = np.asarray(pairs)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"pairs must be a square matrix, a row for each pair, or a dict of pairs, got {short(pairs)}"
            )
        yield from _of_square(matrix, list(range(len(matrix))))


def _of_square(matrix: np.ndarray, names: list[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Both halves, if both are given: results that differ are refused by the caller."""
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            given = matrix[i, j]
            if i != j and not (isinstance(given, float) and np.isnan(given) and not _empty(matrix[j, i])):
                yield first, second, given


def _empty(value: Any) -> bool:
    return isinstance(value, float) and bool(np.isnan(value))


def _of_rows(rows: Iterable[Mapping[Any, Any]]) -> Iterator[tuple[Any, Any, Any]]:
    for row in rows:
        both = next((pair for pair in _NAME_COLUMNS if pair[0] in row and pair[1] in row), None)
        column = next((name for name in _RESULT_COLUMNS if name in row), None)
        if both is None or column is None:
            raise ValueError(
                f"rows of pairs need two names, such as group1 and group2, and a result, such as reject or p-adj: got "
                f"the columns {short(list(row))}"
            )
        yield row[both[0]], row[both[1]], row[column]
