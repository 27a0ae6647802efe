"""A finished table: all that its rows prove, by exact tests that look once (`coterie.theory.exact`).

They hold if the number of rows did not depend on their values. Whoever looked, and then measured more because of it,
has a table that grows: `coterie.tables.replay` and `coterie.tables.differences` are for these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.certificate import Certificate
from coterie.clustering import kmeans_maximin
from coterie.problem.checks import FloatArray
from coterie.problem.families import Model, noise_of, trials_of
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups, Question, Resolution, SingleLinkage
from coterie.problem.table_sentences import table_assumption, table_claim
from coterie.tables.assumptions import Checked, checked_pool, order_json
from coterie.tables.errors import TableError
from coterie.tables.finished_words import verdict
from coterie.tables.fit import means_of
from coterie.tables.pool import Pool
from coterie.tables.shuffle import Order
from coterie.tables.successes import as_counts
from coterie.tables.thin_items import thin_items
from coterie.theory.exact.differences import as_distances, bounds_of_differences, linked, near_pairs, references
from coterie.theory.exact.fits import Fits, PairTests, fitting
from coterie.theory.exact.pair_tests import seed_of, sorted_stacks, test_pairs
from coterie.theory.intervals.by_noise import Distances
from coterie.theory.letters import letters
from coterie.theory.packing import far_items

MOST_COMPARED = 500
"""Items of a finished table: all pairs are tested."""

FORMAT = 1
"""Of the certificate of a table."""

_WIDER = 1.05  # the step by which a resolution that the rows allow is looked for
_WIDEST = 200  # such steps


@dataclass(frozen=True)
class Analysis:
    """The answer as plain JSON, the tests of pairs, and for each pair whether it differs."""

    found: dict[str, Any]
    apart: np.ndarray
    p: FloatArray | None  # (M, M), of the test of each pair; None where intervals decide
    adjusted: FloatArray | None  # (M, M), for all pairs together
    events: list[dict[str, Any]]


def analyse(pool: Pool, asked: Question | None, noise: Any, delta: float, rows: str) -> Analysis:
    """All that the rows of a table prove. `rows`: whether it was "stated" or is "assumed" that it is finished."""
    seed = seed_of(sorted_stacks(pool.arms, pool.rows, len(pool.names)))
    pool, noise = as_counts(pool, noise, isinstance(asked, Resolution), Order(seed))
    n_arms = len(pool.names)
    if not 2 <= n_arms <= MOST_COMPARED:
        what = f"{pool.source} has {n_arms} item{'' if n_arms == 1 else 's'}: it takes 2 to {MOST_COMPARED}"
        raise TableError(f"{what} to compare all pairs; of more, --growing (in Python growing=True)", field="pool")
    try:
        model = noise_of(noise, pool.dim)
    except (ValueError, TypeError) as error:
        raise TableError(str(error), field="noise") from None
    if isinstance(asked, Resolution):
        try:
            asked = asked.in_counts(trials_of(model))
        except ValueError as error:
            raise TableError(str(error), field="resolution") from None
    checks = checked_pool(pool, model)
    sound = not _contradicted(checks, pool)
    stacks = sorted_stacks(pool.arms, pool.rows, n_arms)
    if isinstance(asked, Resolution | SingleLinkage):
        content = _by_intervals(pool, stacks, model, asked, delta, sound)
    else:
        content = _by_tests(pool, model, asked, delta, sound, checks)
    found: dict[str, Any] = {
        "rows": rows,
        "recorded": len(pool.rows),
        "n_arms": n_arms,
        "dim": pool.dim,
        "delta": delta,
        "question": None if asked is None else {"kind": asked.kind, "words": asked.words, "claim": asked.claim},
        "n_clusters": None if asked is None else asked.n_clusters,
        "order": {"shuffled": True, "seed": seed, "rows": rows},
        "names": list(pool.names),
        "counts": pool.counts.tolist(),
        "means": means_of(pool.arms, pool.rows, n_arms)[0].tolist(),
        "sound": sound,
        **{key: value for key, value in content.items() if key not in ("apart", "p", "adjusted")},
        "noise": checks.noise_json(),
        "slips": checks.slips_json(),
        "row_order": order_json(pool, True),
        "fit": checks.fit_json(),
        "read": pool.described(),
    }
    labels = found["labels"]
    found["groups"] = _groups(pool, labels)
    found["thin"] = [] if isinstance(asked, SingleLinkage) else thin_items(pool, labels, found["done"])
    equal = isinstance(asked, ExactGroups) and found["done"]
    found["misfits"] = checks.misfits(np.array(labels)) if equal else []
    apart = content["apart"]
    found["pairs"] = _pairs(pool, apart, content["p"], delta)
    found["verdict"] = verdict(found)
    found["certificate"] = _certificate(pool, model, asked, found, content) if sound else None
    events = [
        {"event": "result", "arm": int(arm), "round": 0, "values": row.tolist()}
        for arm, row in zip(pool.arms, pool.rows, strict=True)
    ]
    return Analysis(found, apart, content["p"], content["adjusted"], events)


def _contradicted(checks: Checked, pool: Pool) -> bool:
    """Whether the rows contradict what was stated about the noise."""
    small = "too small" in (*checks.verdicts, checks.direction) or checks.rows_contradict
    return small or (pool.cut is not None and bool(pool.cut["bursts"]))


# Tests of pairs: which items differ, and K groups.


def _by_tests(
    pool: Pool, model: Model, asked: Question | None, delta: float, sound: bool, checks: Checked
) -> dict[str, Any]:
    n_arms = len(pool.names)
    tests = test_pairs(pool.arms, pool.rows, n_arms, model, delta)
    fits = fitting(tests, delta)
    found: dict[str, Any] = {
        "apart": fits.apart, "p": tests.p, "adjusted": fits.adjusted,
        "test": {"name": tests.test, "seed": tests.seed, "draws": tests.draws},
        "at_least": [pool.names[arm] for arm in fits.at_least], "fewest": max(fits.fewest, len(fits.at_least)),
        "enough": _can_differ(pool, tests, delta), "labels": None, "done": False, "refuted": False, "fitting": None,
        "references": None, "borders": {}, "settles": None, "allows": None,
    }  # fmt: skip
    if asked is None:
        if fits.apart.sum() == n_arms * (n_arms - 1):
            found |= {"labels": list(range(n_arms)), "done": sound}
        found |= {"settles": _settled_number(fits, n_arms) if sound else None, "allows": _allowed(pool, checks, delta)}
        return found
    k = asked.n_clusters
    assert k is not None
    its = fits.with_groups(k)
    found["refuted"] = its == []
    found["fitting"] = None if its is None else _how_many(fits, its, k)
    if its is not None and len(its) == 1:
        return found | {"labels": its[0], "done": sound}
    if its == []:
        return found | {"settles": _settled_number(fits, n_arms) if sound else None}
    return found | {"labels": _guess(pool, k)}


def _how_many(fits: Fits, its: list[list[int]], k: int) -> int | None:
    """How many partitions into K groups fit; None if there are several, and they were not counted."""
    if fits.listed is not None:
        return int((fits.listed.max(axis=1) + 1 == k).sum())
    return len(its) if len(its) < 2 else None


def _settled_number(fits: Fits, n_arms: int) -> int | None:
    """The smallest number of groups for which the rows would settle which they are."""
    for k in range(max(2, fits.fewest), min(n_arms, 60)):
        its = fits.with_groups(k)
        if its is None:
            return None
        if len(its) == 1:
            return k
    return None


def _guess(pool: Pool, k: int) -> list[int]:
    """K groups of the means, where no grouping is settled."""
    means, counts = means_of(pool.arms, pool.rows, len(pool.names))
    deviations = pool.spread().deviations
    scale = np.ones(pool.dim) if deviations is None else np.where(np.array(deviations) > 0.0, deviations, 1.0)
    labels, _ = kmeans_maximin(means / scale, counts.astype(float), k)
    return [int(label) for label in labels]


def _can_differ(pool: Pool, tests: PairTests, delta: float) -> bool:
    """Whether any two items could have been told apart with so many rows; False only for tests that rearrange rows."""
    if tests.test not in ("permutations", "signs", "ranks"):
        return True
    first, second = np.sort(pool.counts)[-2:].tolist()
    least = 2.0 / 2**first if tests.test == "signs" else (1.0 + (first == second)) / math.comb(first + second, first)
    return bool(least <= delta / (len(pool.names) * (len(pool.names) - 1) // 2))


# Intervals of differences: a resolution, single linkage.


def _by_intervals(
    pool: Pool, stacks: list[FloatArray], model: Model, asked: Resolution | SingleLinkage, delta: float, sound: bool
) -> dict[str, Any]:
    bounds = bounds_of_differences(stacks, model, delta)
    if bounds is None:
        raise TableError(
            f"that items are near each other cannot be proven under {model.words}: a rare large value could hide a "
            "difference of any size. State what is known: bounds of the results (coterie.Bounded(lo, hi)), counts "
            '(coterie.Counts(trials)), Gaussian noise (noise="gaussian"), or a standard deviation',
            field="noise",
        )
    means = means_of(pool.arms, pool.rows, len(pool.names))[0]
    found: dict[str, Any] = {
        "p": None, "adjusted": None, "test": {"name": "intervals", "seed": None, "draws": None}, "enough": True,
        "refuted": False, "fitting": None, "references": None, "borders": {}, "settles": None, "allows": None,
    }  # fmt: skip
    if isinstance(asked, SingleLinkage):
        far = as_distances(bounds, "distance", np.ones(pool.dim))
        middle = np.sqrt(((means[:, None] - means) ** 2).sum(axis=-1))
        labels = linked(far.lower, far.upper, middle, asked.n_clusters)
        apart = np.asarray(far.lower > 0.0)
        guess = linked(middle, np.zeros_like(middle), middle, asked.n_clusters)
        found |= {"labels": guess if labels is None else labels, "done": sound and labels is not None}
    else:
        resolved = _resolved(bounds, means, asked)
        far = _distances(bounds, asked, pool.dim)
        apart = far.beyond(_units(asked, pool.dim)[0])
        if resolved is None:
            found |= {"labels": None, "done": False, "allows": _widened(bounds, means, asked)}
        else:
            labels, chosen = resolved
            found |= {"labels": labels, "done": sound}
            if chosen is not None:
                found["references"] = [pool.names[arm] for arm in chosen]
                found["borders"] = _borders(pool, far, asked, labels, chosen)
    at_least = far_items(apart)
    return found | {"apart": apart, "at_least": [pool.names[arm] for arm in at_least], "fewest": len(at_least)}


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
    return [order.index(one) for one in own.tolist()], [chosen[one] for one in order]


def _borders(
    pool: Pool, far: Distances, asked: Resolution, labels: list[int], chosen: list[int]
) -> dict[str, list[int]]:
    """For each item the other groups, from 1, whose references it may be within η of."""
    beyond = far.beyond(_units(asked, pool.dim)[1])
    found = {}
    for arm, label in enumerate(labels):
        others = [k + 1 for k, one in enumerate(chosen) if k != label and not beyond[arm, one] and arm not in chosen]
        if others:
            found[pool.names[arm]] = others
    return found


def _widened(bounds: tuple[FloatArray, FloatArray], means: FloatArray, asked: Resolution) -> dict[str, Any] | None:
    """The same question with the smallest `apart`, in steps of 5 %, for which these rows have an answer."""
    for step in range(1, _WIDEST):
        wide = [float(f"{_WIDER**step * one:.3g}") for one in asked.apart]
        coarser = Resolution(asked.alike, wide if len(wide) > 1 else wide[0], asked.norm, asked.claims)
        if _resolved(bounds, means, coarser) is not None:
            return dict(coarser.to_json()["resolution"])
    return None


def _allowed(pool: Pool, checks: Checked, delta: float) -> dict[str, Any] | None:
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
        whole = pool.described()["whole"]
        option = "gaussian" if whole is None else f"bounded:{whole[0]},{whole[1]}"
        stated = "gaussian" if whole is None else {"family": "bounded", "lo": [whole[0]], "hi": [whole[1]]}
        model = noise_of(stated, pool.dim)
    stacks = sorted_stacks(pool.arms, pool.rows, len(pool.names))
    bounds = bounds_of_differences(stacks, model, delta)
    if bounds is None:
        return None
    means = np.stack([one.mean(axis=0) for one in stacks])
    for step in range(-20, _WIDEST):
        apart = [float(f"{_WIDER**step * one:.2g}") for one in spread]
        alike = [float(f"{one / 4.0:.2g}") for one in apart]
        resolved = _resolved(bounds, means, Resolution(alike, apart))
        if resolved is not None:
            return {"alike": alike, "apart": apart, "noise": option, "groups": max(resolved[0]) + 1}
    return None


# What is written about it.


def _groups(pool: Pool, labels: list[int] | None) -> list[dict[str, Any]]:
    """The groups by number, from 1, with their items and centers."""
    if labels is None:
        return []
    of_rows = np.array(labels)[pool.arms]
    centers = means_of(of_rows, pool.rows, max(labels) + 1)[0]
    members: list[list[int]] = [[] for _ in centers]
    for arm, label in enumerate(labels):
        members[label].append(arm)
    return [
        {"group": k + 1, "arms": arms, "names": [pool.names[arm] for arm in arms], "center": centers[k].tolist()}
        for k, arms in enumerate(members)
    ]


def _pairs(pool: Pool, apart: np.ndarray, p: FloatArray | None, delta: float) -> dict[str, Any]:
    names = pool.names
    low, high = (one.tolist() for one in np.nonzero(np.triu(apart)))
    return {
        "apart": [[names[i], names[j]] for i, j in zip(low, high, strict=True)],
        "p": None if p is None else [float(p[i, j]) for i, j in zip(low, high, strict=True)],
        "alike": [],
        "of": len(names) * (len(names) - 1) // 2,
        "letters": list(letters(apart)),
        "possible": [],
        "error": delta,
    }


def _certificate(
    pool: Pool, model: Model, asked: Question | None, found: dict[str, Any], content: dict[str, Any]
) -> Certificate | None:
    """What is claimed, as data that `coterie.certificate.table_checking` recomputes from the rows; None: nothing is."""
    apart, p = content["apart"], content["p"]
    low, high = (one.tolist() for one in np.nonzero(np.triu(apart)))
    if not low and not found["done"]:
        return None
    place = {name: arm for arm, name in enumerate(pool.names)}
    question: dict[str, Any] = {"kind": "differences" if asked is None else asked.kind}
    if isinstance(asked, Resolution):
        question |= asked.to_json()
    elif asked is not None:
        question["n_clusters"] = asked.n_clusters
    chosen = found["references"]
    return Certificate(
        {
            "format": FORMAT,
            "question": "table",
            "asked": question,
            "n_arms": len(pool.names),
            "dim": pool.dim,
            "t": len(pool.rows),
            "delta": found["delta"],
            "noise": model.to_json(),
            "rows": found["rows"],
            "test": found["test"]["name"],
            "seed": found["test"]["seed"],
            "draws": found["test"]["draws"],
            "apart": [[i, j] if p is None else [i, j, float(p[i, j])] for i, j in zip(low, high, strict=True)],
            "groups_at_least": found["fewest"],
            "differing": [place[name] for name in found["at_least"]],
            "labels": found["labels"] if found["done"] else None,
            "references": None if chosen is None or not found["done"] else [place[name] for name in chosen],
            "claim": table_claim(asked, found["done"], found["delta"]),
            "assumes": table_assumption(model, asked, found["rows"]),
        }
    )
