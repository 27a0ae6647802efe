"""The allocation from scratch, for the rival that solves it anew at every pull: `native/paper/barrier.cpp` in numba."""

from __future__ import annotations

import numba
import numpy as np

njit = numba.njit(error_model="numpy")


@njit
def _solve_positive(matrix: np.ndarray, right: np.ndarray) -> bool:
    """Cholesky in place, then two triangular solves. INOUT: matrix, right. False if not positive definite."""
    n = right.shape[0]
    for j in range(n):
        for k in range(j):
            for i in range(j, n):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]
        if not (matrix[j, j] > 0.0):
            return False
        pivot = np.sqrt(matrix[j, j])
        for i in range(j, n):
            matrix[i, j] /= pivot
    for i in range(n):
        for k in range(i):
            right[i] -= matrix[i, k] * right[k]
        right[i] /= matrix[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            right[i] -= matrix[k, i] * right[k]
        right[i] /= matrix[i, i]
    return True


@njit
def twin(sizes: np.ndarray, k: int, j: int) -> bool:
    """Whether constraint (k, j) only repeats (j, k): two single arms."""
    return k > j and sizes[k] == 1 and sizes[j] == 1


@njit
def barrier_solve(  # noqa: C901
    sizes: np.ndarray,
    gaps: np.ndarray,
    matrix: np.ndarray,
    step: np.ndarray,
    slack: np.ndarray,
    room: np.ndarray,
    dual: np.ndarray,
) -> None:
    """Work space: matrix (K×K), step. OUT: slack (y), room (Δ²_kj − n_k·y_k − y_j, K×K), dual (ν, K×K).

    The dual is 0 on the diagonal and for twins.
    """
    n = sizes.shape[0]
    scale = np.inf
    for k in range(n):
        for j in range(n):
            if j != k:
                scale = min(scale, gaps[k, j])
    for k in range(n):
        nearest = np.inf
        for j in range(n):
            if j != k:
                nearest = min(nearest, gaps[k, j])
        slack[k] = 0.45 * nearest / scale / sizes[k]
    value = 0.0
    count = 0
    for k in range(n):
        value += 1.0 / slack[k]
        for j in range(n):
            room[k, j] = 1.0
            dual[k, j] = 0.0
            if j != k and not twin(sizes, k, j):
                count += 1
    for k in range(n):
        for j in range(n):
            if j != k and not twin(sizes, k, j):
                room[k, j] = gaps[k, j] / scale - sizes[k] * slack[k] - slack[j]
                dual[k, j] = value / count / room[k, j]
    for _ in range(100):
        complementarity = 0.0
        for k in range(n):
            for j in range(n):
                complementarity += room[k, j] * dual[k, j]
        target = 0.1 * complementarity / count
        matrix[:, :] = 0.0
        misfit = 0.0
        value = 0.0
        for k in range(n):
            inverse = 1.0 / slack[k]
            value += inverse
            matrix[k, k] = 2.0 * inverse * inverse * inverse
            step[k] = inverse * inverse
        for k in range(n):
            for j in range(n):
                if dual[k, j] > 0.0:
                    ratio = dual[k, j] / room[k, j]
                    matrix[k, k] += ratio * sizes[k] * sizes[k]
                    matrix[j, j] += ratio
                    matrix[max(k, j), min(k, j)] += ratio * sizes[k]
                    step[k] -= sizes[k] * dual[k, j]
                    step[j] -= dual[k, j]
        for k in range(n):
            misfit = max(misfit, abs(step[k]) * slack[k] * slack[k])
        if complementarity <= 1e-15 * value and misfit <= 1e-11:
            break
        for k in range(n):
            for j in range(n):
                if dual[k, j] > 0.0:
                    pull = target / room[k, j] - dual[k, j]
                    step[k] -= sizes[k] * pull
                    step[j] -= pull
        if not _solve_positive(matrix, step):
            break
        primal, dual_step = 1.0, 1.0
        for k in range(n):
            if step[k] < 0.0:
                primal = min(primal, -0.9 * slack[k] / step[k])
        for k in range(n):
            for j in range(n):
                if dual[k, j] > 0.0:
                    change = sizes[k] * step[k] + step[j]
                    if change > 0.0:
                        primal = min(primal, 0.99 * room[k, j] / change)
                    move = target / room[k, j] - dual[k, j] + dual[k, j] / room[k, j] * change
                    if move < 0.0:
                        dual_step = min(dual_step, -0.99 * dual[k, j] / move)
        for k in range(n):
            for j in range(n):
                if dual[k, j] > 0.0:
                    change = sizes[k] * step[k] + step[j]
                    move = target / room[k, j] - dual[k, j] + dual[k, j] / room[k, j] * change
                    dual[k, j] += dual_step * move
                    room[k, j] -= primal * change
        for k in range(n):
            slack[k] += primal * step[k]
    for k in range(n):
        slack[k] *= scale
        for j in range(n):
            room[k, j] *= scale
            dual[k, j] /= scale * scale
