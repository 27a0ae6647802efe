"""Exchangeable bets on the results of a cell, for any noise (docs/EVIDENCE.md, section 3); the factors of a noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.blocks.bets import Numbers
from coterie.methods.blocks.factors import (
    AtMostFactors,
    BoundedFactors,
    CountsFactors,
    Factors,
    GaussianFactors,
    KnownFactors,
    ProductFactors,
    Sides,
    State,
    SymmetricFactors,
    Used,
    log_binomial,
)
from coterie.methods.blocks.shape import Features
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Model, Symmetric, Unknown, bets_on_shape

if TYPE_CHECKING:
    from coterie.methods.blocks.epoch import FrozenTests

CLIP, FLOOR = 6.0, 6.125
"""Of an exchangeable score, and −log κ of the robust one."""
SMALL_BET = 0.1
"""f of small bets on the shape."""


class AnyFactors(ProductFactors):
    """Any noise: the exchangeable bet on positions centred in the cell."""

    def log_factors(self, state: State, used: Used, sides: Sides, bet: Numbers) -> FloatArray:
        positions = used.x - used.x.mean(axis=0)  # the bet's centers have mean 0 in the cell
        height = positions @ bet["G"].T - bet["h"]  # (n, K)
        gap, fraction = bet["Δ"], bet["f"]
        p = (height.T[:, None] - height.T) / gap[:, :, None]  # (K, K, n)
        linear = np.clip((fraction * gap)[:, :, None] * p, -CLIP, CLIP)
        near = np.logaddexp(-0.5 * (p - 0.5 * gap[:, :, None]) ** 2, -FLOOR)
        far = np.logaddexp(-0.5 * (p + 0.5 * gap[:, :, None]) ** 2, -FLOOR)
        robust = np.clip(fraction[:, :, None] * (near - far), -CLIP, CLIP)
        logs = self.log_ratios(state, used, sides, np.stack([linear, robust]), bet)
        weight = float(bet["w"])
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp(np.log(1.0 - weight) + logs[0], np.log(weight) + logs[1]))

    def log_ratios(self, state: State, used: Used, sides: Sides, scores: FloatArray, bet: Numbers) -> FloatArray:
        """(2, tests) log e of two scores u (2, K, K, n)."""
        g = np.exp(scores)
        order = int(min(float(bet["J"]), sides.a.max()))
        of_arm, of_pool = self._polynomials(state, used, sides, g, order)
        j = np.minimum(sides.a, order).astype(np.int64)
        both = np.zeros_like(of_arm)
        for i in range(order + 1):
            both[:, :, i:] += of_arm[:, :, i, None] * of_pool[:, :, : order + 1 - i]
        places = np.arange(j.size)
        binomials = log_binomial(sides.a + sides.A, j) - log_binomial(sides.a, j)
        return np.asarray(np.log(of_arm[:, places, j]) - np.log(both[:, places, j]) + binomials)

    @staticmethod
    def _polynomials(
        state: State, used: Used, sides: Sides, g: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        """(2, tests, j+1) E_0, …, E_j of the arm's and of the pool's results, for each score."""
        present, where = np.unique(used.arms, return_inverse=True)
        labels, n_groups = state.labels[present], g.shape[1]
        as_arm = np.zeros((2, present.size, n_groups, order + 1))  # seen as the arm, against each group
        as_pool = np.zeros_like(as_arm)  # seen as of the pool, from each group
        as_arm[..., 0] = as_pool[..., 0] = 1.0
        for i, place in enumerate(where.tolist()):
            own = labels[place]
            as_arm[:, place, :, 1:] += g[:, own, :, i, None] * as_arm[:, place, :, :-1]
            as_pool[:, place, :, 1:] += g[:, :, own, i, None] * as_pool[:, place, :, :-1]
        row = np.searchsorted(present, sides.arm)
        of_arm = as_arm[:, row, sides.other]
        # Pools: the same members and the same group that looks at them have the same polynomial.
        members = sides.pool[:, present] > 0.0
        codes, first, back = np.unique(
            np.column_stack([np.packbits(members, axis=1), sides.own]), axis=0, return_index=True, return_inverse=True
        )
        pools = np.zeros((2, len(codes), order + 1))
        pools[..., 0] = 1.0
        for place in range(present.size):
            inside = np.flatnonzero(members[first, place])
            if inside.size:
                factor = as_pool[:, place, sides.own[first[inside]]]
                product = np.zeros((2, inside.size, order + 1))
                for i in range(order + 1):
                    product[:, :, i:] += factor[:, :, i, None] * pools[:, inside, : order + 1 - i]
                pools[:, inside] = product
        return of_arm, pools[:, back.reshape(-1)]


class ShapedFactors(AnyFactors):
    """Any noise with spread and shape: processes of the location, of the shape and of small bets on it, mixed."""

    def __init__(self, noise: Model, n_groups: int, dim: int) -> None:
        super().__init__(noise, n_groups, dim)
        self._features = Features(dim)

    def begin(self, tests: FrozenTests, labels: IntArray, share: FloatArray, bet: Any) -> State:
        state = super().begin(tests, labels, share, bet)
        state.more["shape"] = np.zeros((2, len(tests)))
        return state

    def take(self, state: State, used: Used, tests: IntArray) -> FloatArray:
        super().take(state, used, tests)
        sides, shape = state.sides(used, tests), state.more["shape"]
        if sides.tests.size:
            bet = Numbers.of(self.noise, used.bet, self.n_groups, self.dim)
            positions = used.x - used.x.mean(axis=0)
            features = self._features.of((positions - bet["o"]) / bet["s"])
            height = features @ bet["P"].T - bet["p"]  # (n, K)
            gaps = height.T[:, None] - height.T  # (K, K, n)
            scores = np.stack([bet["f of shape"][:, :, None] * gaps, SMALL_BET * gaps])
            shape[:, sides.tests] += self.log_ratios(state, used, sides, np.clip(scores, -CLIP, CLIP), bet)
        assert state.numbers is not None
        with np.errstate(divide="ignore"):  # a process may have no weight
            logs = np.log(state.numbers["weights"])[:, None] + np.vstack([state.total[tests], shape[:, tests]])
        return np.asarray(np.logaddexp.reduce(logs, axis=0))


def factors_for(noise: Model, n_groups: int, dim: int) -> Factors:
    """The evidence of a noise."""
    stated = noise.statement if isinstance(noise, Unknown) else None
    kinds: dict[type, type[Factors]] = {
        Counts: CountsFactors,
        Bounded: BoundedFactors,
        AtMost: AtMostFactors,
        Symmetric: SymmetricFactors,
        Gaussian: GaussianFactors,
        type(None): KnownFactors,
    }
    return kinds.get(type(stated), ShapedFactors if bets_on_shape(noise) else AnyFactors)(noise, n_groups, dim)
