"""What one measurement of each item costs, what many cost in all, and all that may be spent: checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, check_count, check_real, check_real_array, short

LARGEST_RATIO = 1e6
"""Between the dearest and the cheapest item: beyond it, a cost is taken for a slip of units."""


def check_costs(costs: Any, n_arms: int) -> FloatArray:
    """M positive numbers, one for each item; ValueError or TypeError says which is not."""
    if isinstance(costs, str | bytes | Mapping) or not hasattr(costs, "__len__"):
        raise TypeError(f"costs must be {n_arms} positive numbers, one for each item, got {short(costs)}")
    prices = check_real_array(costs if isinstance(costs, np.ndarray) else list(costs), "costs")
    if prices.shape != (n_arms,):
        size = f"{len(prices)}" if prices.ndim == 1 else f"an array of shape {prices.shape}"
        raise ValueError(f"costs must be {n_arms} positive numbers, one for each item, got {size}: {short(costs)}")
    for item, cost in enumerate(prices.tolist()):
        if cost <= 0.0:
            raise ValueError(f"costs must be positive, got {cost!r} for item {item}: every measurement costs something")
    if float(prices.max()) > LARGEST_RATIO * float(prices.min()):
        raise ValueError(
            f"costs must be within a factor of {LARGEST_RATIO:g} of one another, got {float(prices.min())!r} for item "
            f"{int(prices.argmin())} and {float(prices.max())!r} for item {int(prices.argmax())}: are they in one unit?"
        )
    return prices


def unit_costs(costs: Any, n_arms: int) -> FloatArray:
    """(M) costs in units of the cheapest item; ones if there are none, and if all are equal."""
    if costs is None:
        return np.ones(n_arms)
    given = np.asarray(costs, dtype=np.float64)
    return np.asarray(given / given.min())


def cost_of(costs: Any, pulls: Any) -> float | None:
    """What so many measurements of each item cost in all; None if there are no costs."""
    if costs is None:
        return None
    return float(np.asarray(costs, dtype=np.float64) @ np.asarray(pulls, dtype=np.float64))


MOST_UNIT_LETTERS = 40


def check_cost_unit(unit: Any, has_costs: bool) -> str | None:
    """A name for the unit of the costs, one short line; None if there is none."""
    if unit is None:
        return None
    if not isinstance(unit, str):
        raise TypeError(f"cost_unit must be a word such as 'EUR' or 'minutes', got {short(unit)}")
    if not has_costs:
        raise ValueError(f"cost_unit={unit!r} names the unit of costs: give costs too, one for each item")
    if not unit.strip() or len(unit) > MOST_UNIT_LETTERS or not unit.isprintable():
        raise ValueError(f"cost_unit must be 1 to {MOST_UNIT_LETTERS} printable characters, got {short(unit)}")
    return unit.strip()


def cost_text(cost: float, unit: str | None) -> str:
    """A cost for people: "3,520 EUR", or "a cost of 3,520" without a name for its unit."""
    number = f"{cost:,.0f}" if cost == round(cost) or cost >= 1e4 else f"{cost:,.6g}"
    return f"a cost of {number}" if unit is None else f"{number} {unit}"


def check_deadline(
    deadline: Any, n_arms: int, costs: Sequence[float] | None, spent: float = 0.0, blocks: Any = None,
    features: Any = None,
) -> float | None:  # fmt: skip
    """All that may be measured, a number of results or what they cost: enough for each item, and what was `spent`."""
    if deadline is None:
        return None
    if blocks is not None:
        raise ValueError("a deadline and blocks do not go together: leave one out, or use a budget")
    if features is not None:
        raise ValueError("a deadline and features do not go together: leave one out, or use a budget")
    if costs is None:
        most: float = check_count(deadline, "deadline, a number of measurements,", 1)
        least, needed = float(n_arms), f"{n_arms} items, one measurement each"
    else:
        most, least = check_real(deadline, "deadline"), float(sum(costs))
        needed = f"a measurement of each of the {n_arms} items, which cost {least:g}"
    if not most >= least:
        raise ValueError(f"deadline must be enough for {needed}: at least {least:g}, got {short(deadline)}")
    if most < spent:
        raise ValueError(f"deadline cannot be lowered to {short(deadline)}: {spent:g} were spent already")
    return most
