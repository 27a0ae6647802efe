"""Gaussian and known noise: the analysis of items and blocks, x = μ_item + β_block + noise, or of items alone.

The differences of items are estimated by least squares within blocks, and their variances follow from the design. With
N results of each item in each block and L = diag(rows of N) − N·diag(1/columns of N)·Nᵀ, the estimated effects are L⁺
times the items' sums of deviations from block means, and the difference of items i and j has variance
V_ij = L⁺_ii + L⁺_jj − 2·L⁺_ij in units of that of a result. Items that no chain of blocks joins cannot be compared.

*Ranges* (`fits`) hold for all pairs together if V_ij = a_i + a_j for some a_i ≥ 0: variances of differences determine
their covariances, so that the estimates then differ as independent ones of variances a_i do, which is the case of
Hayter's theorem. Complete blocks, balanced incomplete ones and blocks with proportional numbers of rows are of that
kind. For other designs each pair has its own t test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtri, stdtrit

from coterie.evidence.exact.fits import PairTests, critical, two_sided
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Gaussian, Model
from coterie.problem.noise import Noise

_EQUAL = 1e-9  # relative error up to which variances are sums of two


@dataclass(frozen=True)
class TwoWay:
    """Items and blocks fitted by least squares.

    `effects`: (M, d) the items, as the mean of their rows freed of the blocks; `adjusted`: (n, d) these rows;
    `variances`: (M, M) of differences, infinite between items that no chain of blocks joins; `scatter`: (d, d) of the
    residuals, with `freedom` degrees of freedom.
    """

    effects: FloatArray
    adjusted: FloatArray
    variances: FloatArray
    scatter: FloatArray
    freedom: int

    @property
    def like_one_way(self) -> bool:
        """Whether the differences vary as those of independent means do."""
        v, n = self.variances, len(self.variances)
        if not np.isfinite(v).all():
            return False
        if n == 2:
            return True
        total = v.sum() / (2.0 * (n - 1))
        own = (v.sum(axis=1) - total) / (n - 2)
        rest = v - own[:, None] - own
        np.fill_diagonal(rest, 0.0)
        return bool(np.abs(rest).max() <= _EQUAL * v.max() and own.min() >= -_EQUAL * v.max())


def two_way(arms: IntArray, blocks: IntArray, rows: FloatArray) -> TwoWay:
    """Fit items and blocks; every item and every block has a row."""
    n_arms, n_blocks = int(arms.max()) + 1, int(blocks.max()) + 1
    shift = rows.mean(axis=0)
    values = rows - shift
    numbers = np.zeros((n_arms, n_blocks))
    np.add.at(numbers, (arms, blocks), 1.0)
    of_blocks = numbers.sum(axis=0)
    block_means = _sums(blocks, values, n_blocks) / of_blocks[:, None]
    laplacian = np.diag(numbers.sum(axis=1)) - (numbers / of_blocks) @ numbers.T
    inverse, parts = _inverse(laplacian, numbers)
    effects = inverse @ _sums(arms, values - block_means[blocks], n_arms)
    offsets = block_means - (numbers.T @ effects) / of_blocks[:, None]
    residuals = values - effects[arms] - offsets[blocks]
    # Each part has a level of its own, so that the adjusted rows have the mean of the rows.
    part_of_row = parts[arms]
    counts = np.bincount(part_of_row)[:, None]
    level = _sums(part_of_row, offsets[blocks], len(counts)) / counts
    adjusted = rows - offsets[blocks] + level[part_of_row]
    diagonal = np.diag(inverse)
    variances = diagonal[:, None] + diagonal - 2.0 * inverse
    variances[parts[:, None] != parts] = np.inf
    np.fill_diagonal(variances, 0.0)
    freedom = len(rows) - n_arms - n_blocks + len(counts)
    return TwoWay(effects + level[parts] + shift, adjusted, variances, residuals.T @ residuals, freedom)


def _sums(which: IntArray, values: FloatArray, count: int) -> FloatArray:
    sums = np.zeros((count, values.shape[1]))
    np.add.at(sums, which, values)
    return sums


def _inverse(laplacian: FloatArray, numbers: FloatArray) -> tuple[FloatArray, IntArray]:
    """The pseudo-inverse of L, and the part of the design that each item lies in."""
    n = len(laplacian)
    parts, count = np.full(n, -1), 0
    inverse = np.zeros((n, n))
    joined = (numbers @ numbers.T) > 0.0
    for start in range(n):
        if parts[start] >= 0:
            continue
        member = np.zeros(n, dtype=bool)
        member[start] = True
        while True:
            wider = member | joined[member].any(axis=0)
            if (wider == member).all():
                break
            member = wider
        parts[member], count = count, count + 1
        places = np.ix_(member, member)
        level = 1.0 / member.sum()
        inverse[places] = np.linalg.inv(laplacian[places] + level) - level
    return inverse, parts


def two_way_tests(fit: TwoWay, noise: Model, order: IntArray) -> PairTests:
    """The tests of all pairs under Gaussian or known noise."""
    n_arms, dim = fit.effects.shape
    apart = fit.effects[:, None] - fit.effects
    variances = np.where(fit.variances > 0.0, fit.variances, np.inf)
    if isinstance(noise, Noise):
        white = noise.whiten(apart.reshape(-1, dim)).reshape(apart.shape)
        squares = (white**2).sum(axis=2) / variances
        if dim > 1:
            return PairTests(_pairs_only(chdtrc(dim, squares)), "chi-square", order)
        return _together(fit, np.sqrt(squares), math.inf, order)
    nothing = PairTests(np.ones((n_arms, n_arms)), "t", order)
    freedom, own = fit.freedom, np.diag(fit.scatter) / max(1, fit.freedom)
    if freedom < 1 or not (own > 1e-24 * np.abs(fit.adjusted).max(axis=0) ** 2).all():
        return nothing  # results that do not vary are no Gaussian noise
    if dim == 1:
        return _together(fit, np.abs(apart[:, :, 0]) / np.sqrt(own[0] * variances), float(freedom), order)
    shape = _shape(noise)
    if shape == "scalar":
        f = (apart**2).sum(axis=2) / variances / (dim * own.mean())
        return PairTests(_pairs_only(fdtrc(dim, dim * freedom, f)), "f", order)
    if shape == "diagonal":
        each = two_sided(np.abs(apart) / np.sqrt(own * variances[:, :, None]), freedom).min(axis=2)
        return PairTests(_pairs_only(-np.expm1(dim * np.log1p(-np.minimum(each, 1.0 - 1e-16)))), "t", order)
    second, covariance = freedom - dim + 1, fit.scatter / freedom
    if second < 1 or np.linalg.matrix_rank(covariance / np.sqrt(np.outer(own, own)), tol=1e-12) < dim:
        return nothing
    squares = np.einsum("ijk,kl,ijl->ij", apart, np.linalg.inv(covariance), apart) / variances
    return PairTests(_pairs_only(fdtrc(dim, second, squares * second / (freedom * dim))), "hotelling", order)


def _shape(noise: Model) -> str:
    statement = None if isinstance(noise, Noise) else noise.statement
    return statement.shape if isinstance(statement, Gaussian) else "full"


def _together(fit: TwoWay, t: FloatArray, freedom: float, order: IntArray) -> PairTests:
    """Tests of one number: by ranges, if these hold for the design."""
    p = _pairs_only(two_sided(t, freedom))
    return PairTests(p, "ranges", order, t, freedom) if fit.like_one_way else PairTests(p, "t", order)


def _pairs_only(p: FloatArray) -> FloatArray:
    """With 1 for an item and itself."""
    p_values = np.minimum(1.0, np.array(p, dtype=np.float64))
    np.fill_diagonal(p_values, 1.0)
    return p_values


def two_way_bounds(fit: TwoWay, noise: Model, delta: float) -> tuple[FloatArray, FloatArray]:
    """(M, M, d) lower and upper bounds of |μ_i − μ_j| in each number, which hold together with probability 1 − δ."""
    n_arms, dim = fit.effects.shape
    apart = np.abs(fit.effects[:, None] - fit.effects)
    if isinstance(noise, Noise):
        deviations, freedom = np.sqrt(np.diag(noise.covariance)), math.inf
    else:
        own, freedom = np.diag(fit.scatter) / max(1, fit.freedom), float(fit.freedom)
        if not (np.sqrt(own) > 1e-12 * np.abs(fit.adjusted).max(axis=0)).all():
            freedom = 0.0  # results that do not vary are no Gaussian noise
        elif _shape(noise) == "scalar":
            own, freedom = np.full(dim, own.mean()), freedom * dim
        deviations = np.sqrt(own)
    if freedom < 1:
        reach = np.full(apart.shape, np.inf)
    else:
        if fit.like_one_way:
            largest = critical([n_arms], freedom, delta / dim)
        else:
            tail = delta / (dim * n_arms * (n_arms - 1))  # of each side of each pair
            largest = -float(ndtri(tail) if math.isinf(freedom) else stdtrit(freedom, tail))
        reach = largest * np.sqrt(fit.variances)[:, :, None] * deviations
    reach[np.arange(n_arms), np.arange(n_arms)] = 0.0
    return np.maximum(apart - reach, 0.0), apart + reach
