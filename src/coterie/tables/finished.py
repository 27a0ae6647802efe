"""A finished table: all that its rows prove, by exact tests that look once (`coterie.evidence.exact`).

They hold if the number of rows did not depend on their values. Whoever looked, and then measured more because of it,
has a table that grows: `coterie.tables.replay` and `coterie.tables.growing` are for these.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.certificate import Certificate
from coterie.evidence.exact.block_tests import (
    bounds_with_holes,
    bounds_within_blocks,
    filled,
    test_with_holes,
    test_within_blocks,
)
from coterie.evidence.exact.differences import as_distances, bounds_of_differences, linked, near_pairs, references
from coterie.evidence.exact.fits import Fits, PairTests, fitting
from coterie.evidence.exact.pair_tests import seed_of, sorted_stacks, test_pairs
from coterie.evidence.intervals.by_noise import Distances
from coterie.evidence.pair_graphs import far_items
from coterie.methods.maximin import kmeans_maximin
from coterie.problem.checks import FloatArray
from coterie.problem.families import Model, noise_of, trials_of
from coterie.problem.features import HOLES
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups, Question, Resolution, SingleLinkage
from coterie.problem.sentences import table_assumption, table_claim
from coterie.tables.analysis import AllowedResolution, PairAnalysis, PairTest, RowEvents, plain_rows
from coterie.tables.checks.assumptions import CheckedPool, checked_pool, stated_model, thin_items
from coterie.tables.checks.row_order import Order
from coterie.tables.checks.successes import as_counts
from coterie.tables.errors import TableError, checked
from coterie.tables.pool import Blocks, Pool

MOST_COMPARED = 500
"""Items of a finished table: all pairs are tested."""

FORMAT = 1
"""Of the certificate of a table."""

_WIDER = 1.05  # the step by which a resolution that the rows allow is looked for
_WIDEST = 200  # such steps


def analyse(pool: Pool, asked: Question | None, noise: Any, delta: float, rows: str) -> PairAnalysis:
    """All that the rows of a table prove. `rows`: whether it was "stated" or is "assumed" that it is finished."""
    _check_holes(pool)
    order = Order(seed_of(sorted_stacks(pool.arms, pool.rows, len(pool.names))))
    pool, noise = as_counts(pool, noise, isinstance(asked, Resolution), order)
    n_arms = len(pool.names)
    if not 2 <= n_arms <= MOST_COMPARED:
        named = f" (column {pool.item_column})" if pool.item_column else ""
        message = f"{pool.source} has {n_arms} item{'' if n_arms == 1 else 's'}{named}: it takes 2 to {MOST_COMPARED}"
        raise TableError(f"{message} to compare all pairs; of more, --growing (in Python growing=True)", field="pool")
    model = stated_model(noise, pool.dim)
    if isinstance(asked, Resolution):
        asked = checked("resolution", asked.in_counts, trials_of(model))
    checks = checked_pool(pool, model)
    untested = PairAnalysis(
        checks=checks,
        question=asked,
        delta=delta,
        order=order,
        apart=np.zeros((n_arms, n_arms), dtype=bool),
        finished=rows,
        sound=not checks.noise_too_small and (pool.cut is None or not pool.cut.bursts),
        events=RowEvents(pool),
    )
    if isinstance(asked, Resolution | SingleLinkage):
        answer = _by_intervals(untested, asked)
    else:
        answer = _by_tests(untested)
    labels, equal = answer.labels, isinstance(asked, ExactGroups) and answer.done
    answer = replace(
        answer,
        thin=[] if isinstance(asked, SingleLinkage) or pool.has_holes else thin_items(pool.freed, labels, answer.done),
        misfits=checks.misfits(np.array(labels)) if equal else [],
    )
    return replace(answer, certificate=_certificate(answer)) if answer.sound else answer


def _check_holes(pool: Pool) -> None:
    """That every column has a number, and every item a row; of columns that nobody measured nothing is asked."""
    if not pool.has_holes:
        return
    empty = np.flatnonzero(np.isnan(pool.rows).all(axis=0))
    if empty.size:
        column = pool.columns[int(empty[0])]
        raise TableError(f"{pool.source}: no row has a number in {column}: leave the column out", field="values")


# Tests of pairs: which items differ, and K groups.


def _by_tests(untested: PairAnalysis) -> PairAnalysis:
    pool, delta, sound = untested.pool, untested.delta, untested.sound
    n_arms = len(pool.names)
    noise, blocks = untested.checks.noise, pool.blocks
    if pool.has_holes:
        of_rows = None if blocks is None else blocks.of_rows
        tests = test_with_holes(pool.arms, pool.rows, n_arms, noise, delta, of_rows)
    elif blocks is None:
        tests = test_pairs(pool.arms, pool.rows, n_arms, noise, delta)
    else:
        tests = test_within_blocks(pool.arms, blocks.of_rows, pool.rows, noise, delta)
    fits = fitting(tests, delta)
    tested = replace(
        untested,
        apart=fits.apart,
        p=tests.p,
        adjusted=fits.adjusted,
        test=PairTest(tests.test, tests.seed, tests.draws),
        differing=list(fits.at_least),
        fewest=max(fits.fewest, len(fits.at_least)),
        enough=_can_differ(pool, tests, delta),
    )
    k = untested.n_clusters
    if k is None:
        all_differ = fits.apart.sum() == n_arms * (n_arms - 1)
        settles = _settled_number(fits, n_arms) if sound else None
        tested = replace(tested, settles=settles, allows=_allowed(pool, untested.checks, delta))
        return replace(tested, labels=list(range(n_arms)), done=sound) if all_differ else tested
    groupings = fits.with_groups(k)
    tested = replace(tested, fitting=None if groupings is None else _how_many(fits, groupings, k))
    if groupings == []:
        return replace(tested, refuted=True, settles=_settled_number(fits, n_arms) if sound else None)
    if groupings is not None and len(groupings) == 1:
        return replace(tested, labels=groupings[0], done=sound)
    return replace(tested, labels=_guess(pool, k))


def _how_many(fits: Fits, groupings: list[list[int]], k: int) -> int | None:
    """How many partitions into K groups fit; None if there are several, and they were not counted."""
    if fits.listed is not None:
        return int((fits.listed.max(axis=1) + 1 == k).sum())
    return len(groupings) if len(groupings) < 2 else None


def _settled_number(fits: Fits, n_arms: int) -> int | None:
    """The smallest number of groups for which the rows would settle which they are."""
    for k in range(max(2, fits.fewest), min(n_arms, 60)):
        groupings = fits.with_groups(k)
        if groupings is None:
            return None
        if len(groupings) == 1:
            return k
    return None


def _guess(pool: Pool, k: int) -> list[int]:
    """K groups of the means, where no grouping is settled."""
    pool = pool.freed
    counts, means = pool.counts, filled(pool.arms, pool.rows, len(pool.names))[0]
    deviations = pool.spread().deviations
    scale = np.ones(pool.dim) if deviations is None else np.where(np.array(deviations) > 0.0, deviations, 1.0)
    labels, _ = kmeans_maximin(means / scale, counts.astype(float), k)
    return [int(label) for label in labels]


def _can_differ(pool: Pool, tests: PairTests, delta: float) -> bool:
    """Whether any two items could have been told apart with so many rows; False only for tests that rearrange rows."""
    if pool.blocks is not None and not pool.has_holes:
        n = len(pool.names)  # with tests of groups, a partition into pairs is the hardest to reject
        return bool(tests.least <= delta / (n * (n - 1) // 2 if tests.of_group is None else n // 2))
    if tests.test not in ("permutations", "signs", "ranks"):
        return True
    first, second = np.minimum(np.sort(pool.counts)[-2:], 1000).tolist()  # which have more ways than ever needed
    signs = tests.test == "signs"
    ways, as_extreme = (2**first, 2) if signs else (math.comb(first + second, first), 1 + (first == second))
    least = Fraction(as_extreme, ways)  # more ways than a float can hold
    return least <= delta / (len(pool.names) * (len(pool.names) - 1) // 2)


# Intervals of differences: a resolution, single linkage.


def _by_intervals(untested: PairAnalysis, asked: Resolution | SingleLinkage) -> PairAnalysis:
    pool, model, sound = untested.pool, untested.checks.noise, untested.sound
    bounds = _bounds(pool, model, untested.delta)
    if bounds is None and pool.blocks is not None:
        raise TableError(
            f"that items are near each other cannot be proven under {model.words} within blocks: nothing says that a "
            f"difference is the same in every {pool.blocks.column}. State what is known: Gaussian noise "
            '(noise="gaussian"), a standard deviation, or bounds of the results (coterie.Bounded(lo, hi))',
            field="noise",
        )
    if bounds is None:
        raise TableError(
            f"that items are near each other cannot be proven under {model.words}: a rare large value could hide a "
            "difference of any size. State what is known: bounds of the results (coterie.Bounded(lo, hi)), counts "
            '(coterie.Counts(trials)), Gaussian noise (noise="gaussian"), or a standard deviation',
            field="noise",
        )
    means = filled(pool.arms, pool.freed.rows, len(pool.names))[0]
    tested = replace(untested, test=PairTest("intervals"))
    if isinstance(asked, SingleLinkage):
        far = as_distances(bounds, "distance", np.ones(pool.dim))
        middle = np.sqrt(((means[:, None] - means) ** 2).sum(axis=-1))
        labels = linked(far.lower, far.upper, middle, asked.n_clusters)
        apart = np.asarray(far.lower > 0.0)
        guess = linked(middle, np.zeros_like(middle), middle, asked.n_clusters)
        tested = replace(tested, labels=guess if labels is None else labels, done=sound and labels is not None)
    else:
        resolved = _resolved(bounds, means, asked)
        far = _distances(bounds, asked, pool.dim)
        apart = far.beyond(_units(asked, pool.dim)[0])
        if resolved is None:
            tested = replace(tested, coarser=_widened(bounds, means, asked))
        else:
            labels, chosen = resolved
            borders = {} if chosen is None else _borders(far.beyond(_units(asked, pool.dim)[1]), labels, chosen)
            tested = replace(tested, labels=labels, done=sound, references=chosen, borders=borders)
    differing = list(far_items(apart))
    return replace(tested, apart=apart, differing=differing, fewest=len(differing))


def _bounds(pool: Pool, model: Model, delta: float) -> tuple[FloatArray, FloatArray] | None:
    """Bounds of all differences, within blocks if there are any."""
    if pool.has_holes:
        of_rows = None if pool.blocks is None else pool.blocks.of_rows
        return bounds_with_holes(pool.arms, pool.rows, len(pool.names), model, delta, of_rows)
    if pool.blocks is not None:
        return bounds_within_blocks(pool.arms, pool.blocks.of_rows, pool.rows, model, delta)
    return bounds_of_differences(sorted_stacks(pool.arms, pool.rows, len(pool.names)), model, delta)


def _units(asked: Resolution, dim: int) -> tuple[FloatArray, FloatArray]:
    """ε and η in the units of `_distances`: of η."""
    eta = asked.eta(dim)
    return asked.epsilon(dim) / eta, np.ones(dim)


def _distances(bounds: tuple[FloatArray, FloatArray], asked: Resolution, dim: int) -> Distances:
    return as_distances(bounds, asked.norm, asked.eta(dim))


def _resolved(
    bounds: tuple[FloatArray, FloatArray], means: FloatArray, asked: Resolution
) -> tuple[list[int], list[int] | None] | None:
    """Labels, and references unless any two items of a group are near, that the bounds prove; None if they do not."""
    dim = means.shape[1]
    far = _distances(bounds, asked, dim)
    epsilon, eta = _units(asked, dim)
    near, beyond = far.within(eta), far.beyond(epsilon)
    apart = np.abs(means[:, None] - means) / asked.eta(dim)
    middle = np.sqrt((apart**2).sum(axis=-1)) if asked.norm == "distance" else apart.max(axis=-1)
    if asked.claims == "any-two":
        labels = near_pairs(near, beyond, middle)
        return None if labels is None else (labels, None)
    chosen = references(near, beyond)
    if chosen is None:
        return None
    near = near | np.eye(len(near), dtype=bool)
    own = np.where(near[:, chosen], middle[:, chosen], np.inf).argmin(axis=1)
    for number, arm in enumerate(chosen):
        own[arm] = number
    order = list(dict.fromkeys(own.tolist()))
    return [order.index(number) for number in own.tolist()], [chosen[number] for number in order]


def _borders(beyond: NDArray[np.bool_], labels: list[int], references: list[int]) -> dict[int, list[int]]:
    """For each item the other groups whose references it may be within η of; `beyond`: pairs proven farther apart."""
    borders = {}
    for arm, label in enumerate(labels):
        others = [k for k, reference in enumerate(references) if k != label and not beyond[arm, reference]]
        if others and arm not in references:
            borders[arm] = others
    return borders


def _widened(bounds: tuple[FloatArray, FloatArray], means: FloatArray, asked: Resolution) -> Resolution | None:
    """The same question with the smallest `apart`, in steps of 5 %, for which these rows have an answer."""
    for step in range(1, _WIDEST):
        wide = [float(f"{_WIDER**step * bound:.3g}") for bound in asked.apart]
        coarser = Resolution(asked.alike, wide if len(wide) > 1 else wide[0], asked.norm, asked.claims)
        if _resolved(bounds, means, coarser) is not None:
            return coarser
    return None


def _allowed(pool: Pool, checks: CheckedPool, delta: float) -> AllowedResolution | None:
    """A resolution for which these rows have an answer, and the noise to state for it; None if there is none.

    In units of how much repeats vary: `apart` is the smallest multiple with an answer, `alike` a quarter of it. Under
    any noise, Gaussian noise is proposed unless the repeats contradict it; of ratings, their bounds.
    """
    spread = checks.spread.deviations
    if spread is None or not all(spread) or pool.cut is not None or pool.dim > 12:
        return None
    model, option = checks.noise, None
    if not isinstance(model, Noise) and model.kind not in ("gaussian", "counts", "bounded"):
        if model.kind != "any" or checks.slips.heavy:
            return None
        whole = pool.scale()
        option = "gaussian" if whole is None else f"bounded:{whole[0]},{whole[1]}"
        stated = "gaussian" if whole is None else {"family": "bounded", "lo": [whole[0]], "hi": [whole[1]]}
        model = noise_of(stated, pool.dim)
    bounds = _bounds(pool, model, delta)
    if bounds is None:
        return None
    means = filled(pool.arms, pool.freed.rows, len(pool.names))[0]
    for step in range(-20, _WIDEST):
        apart = [float(f"{_WIDER**step * deviation:.2g}") for deviation in spread]
        alike = [float(f"{bound / 4.0:.2g}") for bound in apart]
        resolved = _resolved(bounds, means, Resolution(alike, apart))
        if resolved is not None:
            return AllowedResolution(alike, apart, option, max(resolved[0]) + 1)
    return None


# What is written about it.


def _certificate(answer: PairAnalysis) -> Certificate | None:
    """What is claimed, as data that `coterie.certificate.table_checking` recomputes from the rows; None: nothing is."""
    pool, asked, p, model, test = answer.pool, answer.question, answer.p, answer.checks.noise, answer.test
    low, high = (places.tolist() for places in np.nonzero(np.triu(answer.apart)))
    if not low and not answer.done:
        return None
    assert answer.finished is not None
    assert test is not None
    question: dict[str, Any] = {"kind": "differences" if asked is None else asked.kind}
    if isinstance(asked, Resolution):
        question |= asked.to_json()
    elif asked is not None:
        question["n_clusters"] = asked.n_clusters
    blocks = {} if pool.blocks is None else {"blocks": _certified_blocks(pool, pool.blocks)}
    return Certificate(
        {
            "format": FORMAT,
            "question": "table",
            "asked": question,
            "n_arms": len(pool.names),
            "dim": pool.dim,
            "t": len(pool.rows),
            "delta": answer.delta,
            "noise": model.to_json(),
            "rows": answer.finished,
            "test": test.name,
            "seed": test.seed,
            "draws": test.draws,
            "apart": [[i, j] if p is None else [i, j, float(p[i, j])] for i, j in zip(low, high, strict=True)],
            "groups_at_least": answer.fewest,
            "differing": answer.differing,
            "labels": answer.labels if answer.done else None,
            "references": answer.references if answer.done else None,
            "claim": table_claim(asked, answer.done, answer.delta),
            "assumes": table_assumption(
                model, asked, answer.finished, None if pool.blocks is None else pool.blocks.column, pool.has_holes
            ),
        }
        | blocks
        | ({"holes": {"assumed": HOLES, "digest": _digest(pool)}} if pool.has_holes else {})
    )


def _certified_blocks(pool: Pool, blocks: Blocks) -> dict[str, Any]:
    """The blocks, and a digest of all rows with their items and blocks: no row can be put in another one."""
    return {"column": blocks.column, "names": list(blocks.names), "digest": _digest(pool)}


def _digest(pool: Pool) -> str:
    """SHA-256 of all rows with their items, and blocks if there are any, sorted."""
    rows = zip(pool.arms.tolist(), _named_blocks(pool), plain_rows(pool.rows), strict=True)
    lines = sorted(json.dumps([arm, *block.values(), values]) for arm, block, values in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _named_blocks(pool: Pool) -> list[dict[str, str]]:
    """What the event of each row says of its block."""
    if pool.blocks is None:
        return [{} for _ in pool.rows]
    return [{"block": pool.blocks.names[block]} for block in pool.blocks.of_rows.tolist()]
