"""The known noise of a measurement, and the change of units that turns it into the standard Gaussian.

The paper assumes N(0, I); its remark in section_setup reduces a known covariance S to that case by the
Cholesky factor S = L L': whitened measurements are L^-1 x, and L z goes back to the user's units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from coterie.problem.checks import FloatArray, check_count, check_real_array, short

#: What describes a noise in plain JSON: nothing, a standard deviation, d of them, or a covariance.
PlainNoise: TypeAlias = "float | list[float] | list[list[float]] | dict[str, Any] | None"


@dataclass(frozen=True, eq=False)
class Exactly:
    """A noise that is Gaussian and known exactly, not only from above.

    Proofs that items are near each other (`coterie.Resolution` with norm="distance") then need fewer measurements. They
    are void if results vary less than stated; without this statement that would do no harm.

    Parameters
    ----------
    noise : float or array-like
        A standard deviation, one for each number of a result, or a covariance.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(4, dim=2, resolution=coterie.Resolution(0.5, 2, norm="distance"),
    ...                           noise=coterie.Exactly(1.0))
    """

    noise: Any

    def __repr__(self) -> str:
        return f"Exactly({short(self.noise)})"


class Noise:
    """A known Gaussian noise: identity, one standard deviation, one per coordinate, or a full covariance.

    Build it with `Noise.of`. Immutable; the arrays are read-only copies.

    Attributes
    ----------
    dim : int
        d, how many numbers a measurement has.
    exact : bool
        Whether it was stated with `Exactly`.

    Examples
    --------
    >>> import coterie
    >>> noise = coterie.Noise.of([0.5, 2.0], dim=2)
    >>> noise.whiten([1.0, 1.0]).tolist()
    [2.0, 0.5]
    """

    __slots__ = ("_factor", "_inverse", "_is_unit", "_value", "dim", "exact")

    dim: int
    exact: bool  # stated with `Exactly`
    _value: FloatArray | None  # as given: None, 0-d or (d,) standard deviations, or the (d, d) covariance
    _factor: FloatArray | None  # the Cholesky factor L, only for a full covariance
    _inverse: FloatArray | None  # the transpose of L^-1
    _is_unit: bool  # standard deviation 1 in every coordinate

    def __init__(self, value: FloatArray | None, factor: FloatArray | None, dim: int, exact: bool = False) -> None:
        inverse = None if factor is None else np.tril(np.linalg.solve(factor, np.eye(dim))).T.copy()
        unit = value is None or (value.ndim < 2 and bool((value == 1.0).all()))
        parts = {"_value": value, "_factor": factor, "_inverse": inverse, "dim": dim, "exact": exact, "_is_unit": unit}
        for name, content in parts.items():
            object.__setattr__(self, name, content)
            if isinstance(content, np.ndarray):
                content.setflags(write=False)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Noise cannot be changed, tried to set {name!r}")

    @classmethod
    def of(cls, noise: Any, dim: int) -> Noise:
        """The noise of measurements of d numbers, from its description.

        Parameters
        ----------
        noise : None, float, array-like, Exactly, dict or Noise
            None (identity), a standard deviation, d of them, or a d x d covariance. Any of these within `Exactly`, or
            {"family": "exactly", "noise": …}, is known exactly.
        dim : int
            d.

        Returns
        -------
        Noise
            The same one, if one was given.
        """
        d = check_count(dim, "dim", 1)
        if isinstance(noise, Mapping):
            if set(noise) != {"family", "noise"} or noise["family"] != "exactly":
                form = '{"family": "exactly", "noise": …}'
                raise ValueError(f"a noise that is known exactly is {form}, got {short(noise)}")
            noise = Exactly(noise["noise"])
        if isinstance(noise, Exactly):
            inner = cls.of(1.0 if noise.noise is None else noise.noise, d)
            return cls(inner._value, inner._factor, d, True)
        if noise is None:
            return cls(None, None, d)
        if isinstance(noise, Noise):
            if noise.dim != d:
                raise ValueError(f"noise is for dimension {noise.dim}, but the measurements have dimension {d}")
            return noise
        value = check_real_array(noise, "noise")
        if value.shape in ((), (d,)):
            if (value <= 0.0).any():
                worst = float(value.min())
                raise ValueError(f"noise standard deviations must be positive, got {worst!r}")
            return cls(value, None, d)
        if value.shape != (d, d):
            raise ValueError(
                f"noise must be None, a standard deviation, {d} of them, or a {d}x{d} covariance, "
                f"got shape {value.shape}"
            )
        return cls(value, _cholesky(value), d)

    kind = "known"
    in_units = True

    @property
    def assumption(self) -> str:
        """What is assumed, in one sentence."""
        less = "" if self.exact else ", or vary less (sub-Gaussian),"
        return (
            f"results are Gaussian with exactly the covariance stated{less} and do not depend on one another, and "
            "items of one group have the same mean"
        )

    def check(self, values: FloatArray) -> None:
        """Any finite numbers will do."""

    @property
    def words(self) -> str:
        """The noise in a few words."""
        stated = 1.0 if self._value is None else self._value.tolist()
        known = "exactly " if self.exact else ""
        if not isinstance(stated, list):
            return f"noise of {known}standard deviation {stated:g}"
        form = "covariance" if isinstance(stated[0], list) else "standard deviations"
        return f"noise of {known}{form} {short(stated)}"

    @property
    def is_identity(self) -> bool:
        """Whether measurements already have the standard Gaussian noise of the paper."""
        return self._is_unit

    @property
    def covariance(self) -> FloatArray:
        """The (d, d) covariance, as a fresh array."""
        if self._value is None:
            return np.eye(self.dim)
        if self._value.ndim == 2:
            return self._value.copy()
        return np.eye(self.dim) * self._value**2

    @property
    def deviations(self) -> FloatArray:
        """The standard deviation of each of the d numbers, as a fresh array."""
        if self._value is None or self._value.ndim < 2:
            return np.ones(self.dim) * (1.0 if self._value is None else self._value)
        return np.asarray(np.sqrt(np.diagonal(self._value)))

    def whiten(self, x: Any) -> FloatArray:
        """L^-1 x: measurements in the user's units, turned into unit noise.

        Parameters
        ----------
        x : array-like of shape (d,) or (n, d)
            Measurements.

        Returns
        -------
        ndarray
            Of the same shape.

        Notes
        -----
        A row does not depend on the others, to the last bit: a batch, or a log that is read again, does exactly what
        single results do. Hence a sum over columns instead of a matrix product, whose order depends on the shape.
        """
        return self._white(self.points(x, "x"))

    def _white(self, points: FloatArray) -> FloatArray:
        if self._value is None or self._is_unit:
            return points
        if self._inverse is None:
            return np.asarray(points / self._value)
        white = points[..., :1] * self._inverse[0]
        for j in range(1, self.dim):
            white += points[..., j : j + 1] * self._inverse[j]
        return np.asarray(white)

    def whiten_fully(self, x: Any) -> FloatArray:
        """(n, 2·d): whitened measurements as `whiten` gives them, and beside them what floats do not hold of them.

        The sum of both is linear in x to about 1e-32 of its size: differences of far but close measurements stay exact.
        """
        points = self.points(x, "x").reshape(-1, self.dim)
        white = self._white(points)
        both = np.zeros((len(points), 2 * self.dim))
        both[:, : self.dim] = white
        if self._value is None or self._is_unit:
            return both
        if self._inverse is None:
            product, error = _two_product(white, self._value)
            rest = ((points - product) - error) / self._value
        else:
            high, low = np.zeros_like(white), np.zeros_like(white)
            for j in range(self.dim):
                product, error = _two_product(points[:, j : j + 1], self._inverse[j])
                total = high + product
                back = total - high
                low += ((high - (total - back)) + (product - back)) + error
                high = total
            rest = (high - white) + low
        both[:, self.dim :] = rest
        return both

    def color(self, z: Any) -> FloatArray:
        """L z, the inverse of `whiten`: (d,) or (n, d) points back in the user's units."""
        points = self.points(z, "z")
        if self._value is None:
            return points
        if self._factor is None:
            return points * self._value
        return np.asarray(points @ self._factor.T)

    def to_json(self) -> PlainNoise:
        """The description as plain JSON values; `from_json` gives the same noise back exactly."""
        plain = None if self._value is None else self._value.tolist()
        return {"family": "exactly", "noise": plain} if self.exact else plain

    @classmethod
    def from_json(cls, value: PlainNoise, dim: int) -> Noise:
        """The noise that `to_json` described."""
        return cls.of(value, dim)

    def points(self, x: Any, name: str) -> FloatArray:
        """(d,) or (n, d) finite numbers as a fresh array; `name` is what an error calls them."""
        points = check_real_array(x, name)
        if points.ndim not in (1, 2) or points.shape[-1] != self.dim:
            raise ValueError(f"{name} must have shape ({self.dim},) or (n, {self.dim}), got shape {points.shape}")
        return points

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Noise):
            return NotImplemented
        return self.dim == other.dim and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.dim, self.exact, None if self._value is None else self._value.tobytes()))

    def __reduce__(self) -> tuple[Any, tuple[PlainNoise, int]]:
        return Noise.from_json, (self.to_json(), self.dim)

    def __repr__(self) -> str:
        return f"Noise.of({short(self.to_json())}, dim={self.dim})"


def _two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a·b as a float and the rest of it, which is a float too (Dekker)."""

    def halves(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        scaled = x * 134217729.0  # 2^27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, rest


def _cholesky(covariance: FloatArray) -> FloatArray:
    # The tolerance forgives the rounding of an estimated covariance, no more.
    gap = np.abs(covariance - covariance.T)
    if (gap > 1e-10 * np.abs(covariance).max()).any():
        i, j = (int(k) for k in np.unravel_index(int(np.argmax(gap)), gap.shape))
        raise ValueError(
            f"the noise covariance must be symmetric, but entry ({i}, {j}) is {float(covariance[i, j])!r} "
            f"and entry ({j}, {i}) is {float(covariance[j, i])!r}"
        )
    try:
        factor = np.linalg.cholesky((covariance + covariance.T) / 2.0)
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(covariance).min())
        raise ValueError(
            f"the noise covariance must be positive definite, but its smallest eigenvalue is {smallest:.6g}"
        ) from None
    return np.asarray(factor)
