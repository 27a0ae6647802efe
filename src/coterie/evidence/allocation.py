"""How hard an instance is, and the share of the pulls that each arm should have.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024). D* and λ* are theorem_opt3 and
theorem_opt4, here by a separable convex program with a certified gap; d_KL(δ, 1−δ)·D* is the lower bound on the pulls
(theorem_lowerbound); `project_to_floor` is Proj of the linear-exploration rule (appendix_forced,
equation_newsamplingrule).

    D* = 2 min_w max_{k, j} (n_k/w_k + 1/w_j) / Delta^2_kj        w on the open simplex.

With v the value of the inner maximum and y_k = 1/(w_k v) this is the same as

    min sum_k 1/y_k    subject to    n_k y_k + y_j <= Delta^2_kj    for all k != j,

then D* = 2 sum 1/y_k and w_k = (1/y_k) / sum 1/y. For nu >= 0 with a_k the coefficient of y_k in nu' A y,
the dual is 2 sum sqrt(a_k) - sum nu Delta^2; its best multiple of a given nu is (sum sqrt(a_k))^2 /
(nu' Delta^2), so any nu >= 0 certifies any feasible y, whatever the units.

Departure: the paper lists the constraints with n_k > 1 only (see `coterie.evidence.stopping`); here all
k != j count. `as_printed=True` gives the paper's program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray, IntArray, check_delta, check_real, check_real_array, short
from coterie.problem.instance import Instance, squared_distances

#: Largest relative duality gap that is accepted.
GAP = 1e-9


@dataclass(frozen=True, slots=True)
class Allocation:
    """The optimal allocation of an instance.

    Attributes
    ----------
    hardness : float
        D*.
    cluster_weights : array of shape (K,)
        w*, the share of each cluster; they add up to 1.
    duals : array of shape (K, K)
        ν, the multipliers of the constraints.
    relative_gap : float
        How far `hardness` can be from the optimum, relative to it.
    """

    hardness: float
    cluster_weights: FloatArray
    duals: FloatArray
    relative_gap: float


def solve_allocation(sizes: Any, squared_distances: Any, *, as_printed: bool = False) -> Allocation:
    """Solve for w*.

    A primal-dual interior point method finds the active constraints, a few Newton steps on them remove its
    last error.

    Parameters
    ----------
    sizes : array-like of shape (K,)
        n_k, the items of each cluster.
    squared_distances : array-like of shape (K, K)
        Δ², between the centers.
    as_printed : bool
        Leave out the constraints that theorem_opt3 leaves out as it is printed (docs/PAPER.md).

    Returns
    -------
    Allocation
        D*, w*, and how exact they are.

    Raises
    ------
    RuntimeError
        The certified relative duality gap exceeds 1e-9.
    """
    n, gaps = _check(sizes, squared_distances)
    n_clusters = n.size
    first, second = np.nonzero(~np.eye(n_clusters, dtype=bool))
    if as_printed and (n > 1).any():
        keep = n[first] > 1  # theorem_opt3 as printed
        first, second = first[keep], second[keep]
    matrix = np.zeros((first.size, n_clusters))
    rows = np.arange(first.size)
    matrix[rows, first] = n[first]
    matrix[rows, second] = 1.0
    bounds = gaps[first, second]
    # Work in units of the smallest gap, as a power of two so that no digit changes.
    unit = 2.0 ** np.floor(np.log2(bounds.min()))
    bounds = bounds / unit

    scaled = matrix / bounds[:, None]
    y, nu, active = _interior_point(scaled)
    y, nu = _polish(scaled, y, nu, active)
    primal, dual = _primal(scaled, y), _dual(scaled, nu)
    gap = abs(primal - dual) / dual if dual > 0.0 else np.inf
    if not gap <= GAP:
        raise RuntimeError(
            f"the allocation was not found to a relative gap of {GAP:g} (got {gap:.3g}) for sizes "
            f"{short(n.tolist())} and squared distances {short(gaps.tolist())}"
        )
    shares = 1.0 / y
    duals = np.zeros((n_clusters, n_clusters))
    duals[first, second] = nu / (bounds * unit * unit)
    return Allocation(
        hardness=float(2.0 * primal / unit),  # theorem_opt3, corrected
        cluster_weights=shares / shares.sum(),
        duals=duals,
        relative_gap=float(gap),
    )


def _check(sizes: Any, squared_distances: Any) -> tuple[IntArray, FloatArray]:
    n = np.asarray(sizes)
    if n.ndim != 1 or n.size < 2:
        raise ValueError(f"sizes must be a vector of at least two cluster sizes, got {short(sizes)}")
    if n.dtype.kind not in "iu":
        raise TypeError(f"sizes must be integers, got {short(sizes)}")
    if n.min() < 1:
        raise ValueError(f"every cluster needs at least one arm, got size {int(n.min())}")
    gaps = check_real_array(squared_distances, "squared_distances")
    if gaps.shape != (n.size, n.size):
        raise ValueError(f"squared_distances must have shape ({n.size}, {n.size}), got shape {gaps.shape}")
    np.fill_diagonal(gaps, 1.0)
    if gaps.min() <= 0.0:
        k, j = (int(i) for i in np.argwhere(gaps <= 0.0)[0])
        raise ValueError(f"squared_distances must be positive, got {float(gaps[k, j])!r} for clusters {k} and {j}")
    return n.astype(np.int64), gaps


def _primal(scaled: FloatArray, y: FloatArray) -> float:
    """sum 1/y after scaling y to the edge of the feasible set: an upper bound on the optimum."""
    return float((1.0 / y).sum() * (scaled @ y).max())


def _dual(scaled: FloatArray, nu: FloatArray) -> float:
    """The best dual value among the multiples of nu (multipliers of the rows divided by their bounds): a
    lower bound."""
    return float(np.sqrt(nu @ scaled).sum() ** 2 / nu.sum())


def _interior_point(scaled: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Mehrotra's predictor-corrector method for min sum 1/y s.t. scaled y <= 1: y, multipliers, active rows.

    Everything is relative, so that neither the units nor the spread of the distances is seen: a step
    multiplies y by 1 + e, and the product slack * nu of a row is driven to mu times `natural`, the smaller
    share 1/y of its two clusters, instead of one mu for all. Otherwise far clusters, whose shares may be
    1e-12 of the largest, would drown.
    """
    n_clusters = scaled.shape[1]
    # A strictly feasible start: each row is at most half used.
    y = 0.5 * np.where(scaled > 0.0, 1.0 / scaled.sum(axis=1)[:, None], np.inf).min(axis=0)
    natural = np.where(scaled > 0.0, 1.0 / y, np.inf).min(axis=1) / n_clusters
    slack = 1.0 - scaled @ y
    nu = natural / slack
    best, kept, idle = np.inf, (y, nu, slack), 0
    for _ in range(200):
        share = 1.0 / y
        rows = scaled * y
        r_primal = 1.0 - rows.sum(axis=1) - slack
        r_dual = share - nu @ rows
        mu = float((slack * nu / natural).mean())
        off = float(np.abs(r_dual / share).max())
        error = max(mu, off**2, float(np.abs(r_primal).max()) ** 2)
        idle = 0 if error < best else idle + 1
        if error < best:
            best, kept = error, (y, nu, slack)
        if best < 1e-13 or (idle > 2 and best < 1e-8):
            break
        system = (rows.T * (nu / slack)) @ rows
        system[np.diag_indices_from(system)] += 2.0 * share
        root = 1.0 / np.sqrt(np.diag(system))
        try:
            inverse = np.linalg.inv(system * root[:, None] * root) * root[:, None] * root
        except np.linalg.LinAlgError:  # dependent active rows at the last digits: nothing more to gain here
            break

        # Affine step, then the step with centering and second-order correction.
        product = -slack * nu
        e = inverse @ (r_dual - ((product - nu * r_primal) / slack) @ rows)
        d_slack = r_primal - rows @ e
        d_nu = (product - nu * d_slack) / slack
        reach = _step_length(1.0, e, d_slack / slack, d_nu / nu)
        ahead = float(((slack + reach * d_slack) * (nu + reach * d_nu) / natural).mean())
        # mu may not run ahead of the dual residual: 1/y is far from linear.
        aim = max(min(max(ahead / mu, 0.0), 1.0) ** 3 * mu, 0.01 * min(off, 1.0) ** 2)
        product = aim * natural + product - reach**2 * d_slack * d_nu
        e = inverse @ (r_dual - ((product - nu * r_primal) / slack) @ rows)
        d_slack = r_primal - rows @ e
        d_nu = (product - nu * d_slack) / slack
        reach = min(1.0, min(max(0.9, 1.0 - mu), 0.99999) * _step_length(2.0, e, d_slack / slack, d_nu / nu))
        for _ in range(8):  # stay in a wide neighbourhood of the central path
            after = (slack + reach * d_slack) * (nu + reach * d_nu) / natural
            if after.min() >= 0.01 * after.mean():
                break
            reach *= 0.8
        y, slack, nu = y * (1.0 + reach * e), slack + reach * d_slack, nu + reach * d_nu
    y, nu, slack = kept
    return y, nu, nu / natural > slack


def _step_length(cap: float, e: FloatArray, *relative: FloatArray) -> float:
    """The longest step, at most `cap`, that keeps 1 + step * relative >= 0 and changes no y by more than 90
    %."""
    steepest = max(float(np.abs(e).max()) / 0.9, *(-float(part.min()) for part in relative))
    return cap if steepest * cap <= 1.0 else 1.0 / steepest


def _polish(
    scaled: FloatArray, y: FloatArray, nu: FloatArray, active: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """y and nu to the last digits, by Newton steps on the active rows; as given if they cannot be settled.

    A row that turns out violated is added, one whose multiplier turns out negative is dropped, and so is the
    one with the smallest multiplier when the active rows contradict each other.
    """
    active = active.copy()
    natural = np.where(scaled > 0.0, 1.0 / y, np.inf).min(axis=1)
    multipliers = nu / natural
    tolerance = 1e-12
    for _ in range(2 * scaled.shape[1]):
        solved = _newton(scaled[active], natural[active], y, multipliers[active]) if active.any() else None
        if solved is None:
            break
        polished, solved_multipliers = solved
        used = scaled @ polished
        violated = np.where(active, 0.0, used - 1.0)
        members = np.flatnonzero(active)
        if np.abs(used[active] - 1.0).max() > tolerance:
            active[members[np.argmin(multipliers[active])]] = False
        elif violated.max() > tolerance:
            active[np.argmax(violated)] = True
        elif solved_multipliers.min() < -tolerance:
            active[members[np.argmin(solved_multipliers)]] = False
        else:
            exact = np.zeros_like(nu)
            exact[active] = np.maximum(solved_multipliers, 0.0) * natural[active]
            return polished, exact
    return y, nu


def _newton(
    rows_active: FloatArray, natural: FloatArray, y: FloatArray, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Newton's method for min sum 1/y with the given rows as equalities; None if it goes astray.

    In relative variables e (y becomes y (1 + e)), with R the rows times y and multipliers in units of
    `natural`, a step solves 2 e + y R' (natural x) = 1, R e = 1 - R 1. All coefficients are at most 2 and 1,
    whatever the spread of the distances; least squares, because equal groups at equal distances make the rows
    dependent. The multipliers found are then the ones nearest to those given.
    """
    n_clusters, n_active = y.size, natural.size
    system = np.zeros((n_clusters + n_active, n_clusters + n_active))
    system[np.diag_indices(n_clusters)] = 2.0
    for _ in range(12):
        rows = rows_active * y
        system[:n_clusters, n_clusters:] = (rows * natural[:, None] * y).T
        system[n_clusters:, :n_clusters] = rows
        right = np.concatenate((1.0 - system[:n_clusters, n_clusters:] @ multipliers, 1.0 - rows.sum(axis=1)))
        step = np.linalg.lstsq(system, right, rcond=1e-13)[0]
        e = step[:n_clusters]
        size = float(np.abs(e).max())
        if not size < 0.5:
            return None
        y, multipliers = y * (1.0 + e), multipliers + step[n_clusters:]
        if size < 1e-8:  # quadratic convergence: the next step would be below the last digit
            break
    return y, multipliers


def _solve(instance: Instance, asker: str) -> Allocation:
    if not isinstance(instance, Instance):
        raise TypeError(f"{asker} needs a coterie.Instance, got {short(instance)}")
    return solve_allocation(instance.sizes, squared_distances(instance.centers))


def hardness(instance: Instance) -> float:
    """D*(c, U): pulls needed for each unit of log(1/δ), as δ → 0 (equation_D).

    Parameters
    ----------
    instance : Instance
        The items' groups and centers, in units in which the noise has variance 1.

    Returns
    -------
    float
        D*. A smaller one is an easier instance; centers that are s times as far apart divide it by s².

    Examples
    --------
    >>> import coterie
    >>> round(coterie.hardness(coterie.Instance([0, 0, 1], [[0.0], [2.0]])), 4)
    2.9142
    """
    return _solve(instance, "hardness").hardness


def allocation(instance: Instance) -> FloatArray:
    """λ*, the best share of the pulls for each arm.

    Parameters
    ----------
    instance : Instance
        The items' groups and centers.

    Returns
    -------
    ndarray of shape (M,)
        Shares that add up to 1, the same for all arms of a group.

    Examples
    --------
    >>> import coterie
    >>> coterie.allocation(coterie.Instance([0, 0, 1], [[0.0], [2.0]])).round(4).tolist()
    [0.2929, 0.2929, 0.4142]
    """
    weights = _solve(instance, "allocation").cluster_weights
    return (weights / instance.sizes)[instance.labels]  # theorem_opt4: lambda_m = w(c_m) / n(c_m)


def lower_bound(instance: Instance, delta: float) -> float:
    """d_KL(δ, 1−δ)·D*(c, U): no method with error probability δ needs fewer pulls on average (theorem_lowerbound).

    Parameters
    ----------
    instance : Instance
        The items' groups and centers.
    delta : float
        δ, the error probability, in (0, 1).

    Returns
    -------
    float
        A number of pulls.

    Examples
    --------
    >>> import coterie
    >>> round(coterie.lower_bound(coterie.Instance([0, 0, 1], [[0.0], [2.0]]), 0.05), 2)
    7.72
    """
    d = check_delta(delta)
    # d_KL(delta, 1-delta) = (1 - 2 delta) log((1-delta)/delta), which keeps its digits when 1 - delta rounds
    # to 1.
    return (1.0 - 2.0 * d) * (math.log1p(-d) - math.log(d)) * _solve(instance, "lower_bound").hardness


def binary_relative_entropy(a: float, b: float) -> float:
    """d_KL(a, b) = a log(a/b) + (1-a) log((1-a)/(1-b)) for a, b in (0, 1) (section_setup)."""
    for name, value in (("a", a), ("b", b)):
        if isinstance(value, bool | str) or not isinstance(value, int | float):
            raise TypeError(f"{name} must be a number in (0, 1), got {short(value)}")
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} must lie in (0, 1), got {value!r}")
    return a * math.log(a / b) + (1.0 - a) * (math.log1p(-a) - math.log1p(-b))


def project_to_floor(weights: Any, floor: float) -> FloatArray:
    """The exact Euclidean projection of a vector on {x : x_m >= floor, sum x = 1}, in O(M log M).

    The projection has the form max(x - tau, floor); sorting finds the tau that makes the sum one.

    Parameters
    ----------
    weights : array-like of shape (M,)
        The vector.
    floor : float
        The least value of an entry, at most 1/M.

    Returns
    -------
    array of shape (M,)
        The point that is closest to it.
    """
    x = check_real_array(weights, "weights")
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"weights must be a vector with at least one entry, got shape {x.shape}")
    low = check_real(floor, "floor")
    budget = 1.0 - x.size * low  # what is left to share above the floor
    if low < 0.0 or budget < -1e-12:
        raise ValueError(f"floor must lie in [0, 1/M] with M = {x.size}, got {low!r}")
    above = np.sort(x - low)[::-1]
    taus = (np.cumsum(above) - max(budget, 0.0)) / np.arange(1, x.size + 1)
    # above[i] > taus[i] holds on a prefix; equality only adds entries that end on the floor. The first entry
    # always belongs to it (up to rounding when the budget is 0).
    last = max(int(np.count_nonzero(above > taus)) - 1, 0)
    return np.asarray(np.maximum(x - taus[last], low))
