"""Features of a result by name: what a bet on the shape of a distribution is about.

With z = (x − o)/s for each number of a result, within ±10⁶. A name is a function and the numbers that it is of, from 0:
    clip q: z_q within ±6      abs q: |z_q|, at most 6     log q: log(1 + z_q²)     tanh q      tanh2 q: tanh²(2·z_q)
    cos q: cos(2·z_q)          sin q: sin(2·z_q)           product a b: tanh z_a · tanh z_b, a < b
    wave i: cos(ω_i·z + τ_i), with ω_i ~ N(0, I/d) and τ_i uniform on (0, 2π), drawn by the seed
The draws are those of splitmix64, one after the other: for each wave two uniform numbers for each ω (Box and Muller,
the cosine), then one for τ. Any functions would do (docs/EVIDENCE.md, section 3): which ones must be fixed before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, check_count, short

MOST = 64
FAR = 1e6
_WORD = 2**64

_OF_ONE: dict[str, Callable[[FloatArray], FloatArray]] = {
    "clip": lambda z: np.clip(z, -6.0, 6.0),
    "abs": lambda z: np.minimum(np.abs(z), 6.0),
    "log": lambda z: np.log1p(z**2),
    "tanh": np.tanh,
    "tanh2": lambda z: np.tanh(2.0 * z) ** 2,
    "cos": lambda z: np.cos(2.0 * z),
    "sin": lambda z: np.sin(2.0 * z),
}


def check_features(given: Any, seed: Any, dim: int) -> tuple[tuple[str, ...], int | None]:
    """The names of a freeze's features and the seed of its waves; ValueError names what is wrong."""
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= MOST:
        raise ValueError(f"features must be a list of 1 to {MOST} names, got {short(given)}")
    for name in given:
        if not isinstance(name, str) or not _is_known(name, dim):
            raise ValueError(f"there is no feature {short(name)} of {dim} numbers")
    if len(set(given)) < len(given):
        raise ValueError(f"a feature is named twice: {short(given)}")
    if not any(name.startswith("wave ") for name in given):
        return tuple(given), None
    if seed is None:
        raise ValueError("random features need the seed that they are drawn by")
    return tuple(given), check_count(seed, "seed", 0)


def _is_known(name: str, dim: int) -> bool:
    function, *places = name.split(" ")
    if not places or not all(place.isascii() and place.isdigit() and len(place) < 10 for place in places):
        return False
    numbers = [int(place) for place in places]
    if function == "wave":
        return len(numbers) == 1 and numbers[0] < MOST
    if function == "product":
        return len(numbers) == 2 and numbers[0] < numbers[1] < dim
    return function in _OF_ONE and len(numbers) == 1 and numbers[0] < dim


def features_of(
    names: tuple[str, ...], seed: int | None, positions: FloatArray, middle: FloatArray, scale: FloatArray
) -> FloatArray:
    """(n, D): the features of results at these positions (n, d); `middle` is o, `scale` is s."""
    z = np.clip((positions - middle) / scale, -FAR, FAR)
    columns = []
    drawn = None if seed is None else _waves(seed, z.shape[1])
    for name in names:
        function, *places = name.split(" ")
        numbers = [int(place) for place in places]
        if function == "wave":
            assert drawn is not None
            columns.append(np.cos(z @ drawn[numbers[0], :-1] + drawn[numbers[0], -1]))
        elif function == "product":
            columns.append(np.tanh(z[:, numbers[0]]) * np.tanh(z[:, numbers[1]]))
        else:
            columns.append(_OF_ONE[function](z[:, numbers[0]]))
    return np.stack(columns, axis=1)


def _waves(seed: int, dim: int) -> FloatArray:
    """(64, d + 1): ω and τ."""
    uniform, table = _uniforms(seed), np.empty((MOST, dim + 1))
    for row in table:
        for q in range(dim):
            length = math.sqrt(-2.0 * math.log(next(uniform)))
            row[q] = length * math.cos(2.0 * math.pi * next(uniform)) / math.sqrt(dim)
        row[dim] = 2.0 * math.pi * next(uniform)
    return table


def _uniforms(seed: int) -> Iterator[float]:
    state = seed % _WORD
    while True:
        state = (state + 0x9E3779B97F4A7C15) % _WORD
        mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % _WORD
        yield (((mixed ^ (mixed >> 31)) >> 11) + 0.5) * 2.0**-53
