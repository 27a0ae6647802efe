"""Which items of a pool are proven to differ, where neither the number of groups nor a resolution is given.

Every pair of items is compared by all results of both, as partial answers compare them (`coterie.session.partial`), but
with nothing assumed about the number of groups: all pairs may be equal. Then any item that is wrongly said to differ
from another has probability at most δ. Nothing is said about items being alike: that needs a number of groups, or
differences that do not matter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coterie.problem.checks import check_delta
from coterie.problem.families import Model, noise_of
from coterie.problem.settings import DELTA
from coterie.session.partial import MOST_ITEMS
from coterie.tables.assumptions import checked_pool, order_json
from coterie.tables.errors import TableError, checked
from coterie.tables.fit import means_of
from coterie.tables.pool import Pool
from coterie.tables.successes import as_counts
from coterie.theory.intervals.by_noise import unequal
from coterie.theory.intervals.stacks import Stacks
from coterie.theory.letters import letters
from coterie.theory.packing import far_items


def differing_items(pool: Pool, delta: float = DELTA, noise: Any = None, in_order: bool = False) -> dict[str, Any]:
    """Which items of a pool are proven to differ, as plain JSON values.

    `noise` and `in_order` as in `coterie.tables.replay_pool`. The answer: `pairs` (those proven to differ, and
    letters: items that share one are not proven different), `at_least` (items that pairwise differ, so there are at
    least as many groups), `enough` (False: with so few results no two items could have been told apart), `names`,
    `counts`, `means`, and what the table says about itself, as `replay_pool` has it.
    """
    order = pool.order(in_order)
    log_inverse_delta = -math.log(checked("delta", check_delta, delta))
    pool, noise = as_counts(pool, noise, False, order)
    names = pool.names
    if not 2 <= len(names) <= MOST_ITEMS:
        what = f"{pool.source} has {len(names)} item{'' if len(names) == 1 else 's'}: it takes 2 to {MOST_ITEMS}"
        raise TableError(f"{what} to compare all pairs", field="pool")
    try:
        model = noise_of(noise, pool.dim)
    except (ValueError, TypeError) as error:
        raise TableError(str(error), field="noise") from None
    checks = checked_pool(pool, model)
    rows = pool.rearranged(order)
    every = len(names) * (len(names) - 1) // 2
    apart = unequal(Stacks.of(pool.arms, pool.rows[rows], len(names)), model, every, log_inverse_delta)
    enough = bool(apart.any()) or model.kind != "any" or _can_differ(pool, model, every, log_inverse_delta)
    found = [[names[i], names[j]] for i in range(len(names)) for j in range(i + 1, len(names)) if apart[i, j]]
    return {
        "recorded": len(pool.rows),
        "n_arms": len(names),
        "dim": pool.dim,
        "delta": delta,
        "order": order.as_dict(),
        "names": list(names),
        "counts": pool.counts.tolist(),
        "means": means_of(pool.arms, pool.rows, len(names))[0].tolist(),
        "at_least": [names[arm] for arm in sorted(far_items(apart))],
        "enough": enough,
        "pairs": {"apart": found, "of": every, "letters": list(letters(apart)), "error": delta},
        "noise": checks.noise_json(),
        "slips": checks.slips_json(),
        "row_order": order_json(pool, order.seed is not None),
        "read": pool.described(),
    }


def _can_differ(pool: Pool, model: Model, pairs: int, log_inverse_delta: float) -> bool:
    """Whether the two items with most results would be told apart if all of one were above all of the other."""
    first, second = np.sort(pool.counts)[-2:].tolist()
    arms = np.repeat([0, 1], [first, second])
    values = np.repeat((np.arange(arms.size) + arms * arms.size)[:, None].astype(float), pool.dim, axis=1)
    return bool(unequal(Stacks.of(arms, values, 2), model, pairs, log_inverse_delta).any())
