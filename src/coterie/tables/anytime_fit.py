"""Do results that came in after the stop fit the groups? A test whose level holds at all times at once.

Results told after the stop play no part in the proof, so that a test on them is a fresh one. People look whenever they
like, and may measure more because of what they have seen: the level must hold at every time and for any choice of what
is measured next. The χ² tests of `coterie.tables.fit` do not give that: their level is that of one look at counts that
were fixed in advance.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from coterie.problem.checks import FloatArray, IntArray
from coterie.tables.fit import MISFIT_PROBABILITY, means_of

_RHOS = np.array([4.0, 1.0, 1 / 4, 1 / 16, 1 / 64])  # prior variances of a difference, in units of the noise's


def anytime_misfits(
    labels: IntArray, arms: IntArray, white: FloatArray, probability: float = MISFIT_PROBABILITY
) -> list[int]:
    """Items that do not fit their group, by results (in units of the noise) that the groups do not depend on.

    Take an item and the rest of its group, and let μ be the mean that they share if the group is right. For a prior
    variance ρ, the item's n results with mean x̄ give (1 + ρn)^(−d/2)·exp(½·g·‖x̄ − μ‖²), g = ρn²/(1 + ρn): a
    Gaussian mixture of likelihood ratios. So do the results of the rest. Their product is a non-negative martingale
    that starts at 1, whatever rule picks the next item from what was seen before. Its least value over μ,

        log E(ρ) = ½·g₁g₂/(g₁ + g₂)·‖x̄₁ − x̄₂‖² − (d/2)·log((1 + ρn₁)(1 + ρn₂)),

    needs no μ and is never above it; the same holds for the mean of E(ρ) over fixed ρ. By Ville's inequality it
    ever reaches M/p with probability at most p/M, over all times at once; over M items that is p.

    This is for the true groups, which are fixed. If there are exactly K groups, the noise is as stated, and no result
    is told or held back because of its own value, then an item is ever named with probability at most p plus that of
    wrong groups.
    """
    if arms.size == 0:
        return []
    dim = white.shape[1]
    means, counts = means_of(arms, white, labels.size)
    centers, totals = means_of(labels[arms], white, int(labels.max()) + 1)
    own = counts.astype(float)
    others = totals[labels] - own
    tested = np.flatnonzero((own > 0) & (others > 0))
    own, others, whole = own[tested], others[tested], totals[labels[tested]]
    # The rest's mean is apart from the item's by whole/others times what the group's is.
    apart = ((means[tested] - centers[labels[tested]]) ** 2).sum(axis=1) * (whole / others) ** 2
    rho = _RHOS[:, None]
    first, second = rho * own**2 / (1.0 + rho * own), rho * others**2 / (1.0 + rho * others)
    logs = 0.5 * first * second / (first + second) * apart
    logs -= 0.5 * dim * (np.log1p(rho * own) + np.log1p(rho * others))
    evidence = logsumexp(logs, axis=0) - np.log(_RHOS.size)
    return [int(arm) for arm in tested[evidence >= np.log(labels.size / probability)]]
