"""What a status says about the assumptions behind it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from coterie.campaign import Campaigns, fit
from coterie.campaign.late import late_misfits

MEANS = np.array([0.0, 0.0, 8.0, 8.0, 9.5, 9.5])  # three groups, two of them not far apart


def rows(means: Any, count: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"arm": arm, "v0": float(mean + rng.normal())} for _ in range(count) for arm, mean in enumerate(means)]


def proven(store: Campaigns, id: str) -> list[str]:
    """The column of the table of groups."""
    return [row["proven"] for row in csv.DictReader(io.StringIO(store.export(id, "groups")))]


def test_results_after_the_stop_show_that_there_are_more_groups(tmp_path: Path) -> None:
    """Two groups are proven of three; the rest of the table does not fit them, and no table says "proven" then.

    The test names anything among the second campaign's right groups with probability at most 0.001.
    """
    with Campaigns(tmp_path / "store.db") as store:
        few = store.create("few", 6, 2, 1)["id"]
        store.import_table(few, rows(MEANS, 60))
        status = store.status(few)
        assert status["done"]
        assert status["measurements"] > status["t"]
        assert {one["name"] for one in status["misfits"]} == {"2", "3", "4", "5"}
        assert {one["group_id"] for one in status["misfits"]} == {2}
        assert "there may be more than 2 groups, or the noise may be larger than was said" in status["doubt"]
        assert status["doubt"].endswith("such a warning ever comes with probability at most 0.001 + 0.05.")
        assert proven(store, few) == ["no", "no", "does not fit", "does not fit", "does not fit", "does not fit"]
        right = store.create("right", 6, 2, 1)["id"]
        store.import_table(right, rows([0.0, 0.0, 8.0, 8.0, 8.0, 8.0], 60))
        status = store.status(right)
        assert (status["done"], status["misfits"], status["doubt"]) == (True, [], None)
        assert proven(store, right) == ["yes"] * 6
        guess = store.create("guess", 6, 2, 1, method="uniform", threshold="heuristic")["id"]
        store.import_table(guess, rows(MEANS, 60))
        assert store.status(guess)["doubt"].endswith("at most 0.001, if the groups are right.")
        assert set(proven(store, guess)) == {"no", "does not fit"}


@pytest.mark.parametrize("chosen", ["in turn", "the worst"])
def test_looking_after_every_late_result_raises_no_false_alarm(chosen: str) -> None:
    """Groups and noise are right; items are measured in turn, or that next which fits worst; every result is looked at.

    At level 0.05 at most 5 % of the runs may ever name an item: more than `most` of 200 with probability below 1e-6.
    Beside it is a χ² test at that level: looked at so often, it names items far too often.
    """
    labels, level, runs = np.array([0, 0, 0, 1, 1]), 0.05, 200
    most = binom.isf(1e-6, runs, level)
    rng = np.random.default_rng(3)
    ours = naive = 0
    for _ in range(runs):
        arms = np.arange(5)
        white = rng.normal(size=(5, 2))
        named = [False, False]
        for k in range(100 if chosen == "in turn" else 50):
            worst = k % 5
            if chosen == "the worst":
                means, counts = fit.means_of(arms, white, 5)
                centers, totals = fit.means_of(labels[arms], white, 2)
                rest = totals[labels] - counts
                worst = int(np.argmax(((means - centers[labels]) ** 2).sum(axis=1) * counts * totals[labels] / rest))
            arms = np.append(arms, worst)
            white = np.vstack([white, rng.normal(size=2)])
            named[0] |= bool(late_misfits(labels, arms, white, level))
            named[1] |= bool(fit.misfits(labels, arms, white, level))
        ours += named[0]
        naive += named[1]
    print(f"{runs} runs, {chosen}: {ours} named an item, {naive} by the χ² test")
    assert ours <= most
    assert chosen == "the worst" or naive > most


def test_one_odd_result_after_the_stop_is_no_doubt_a_wild_one_is(tmp_path: Path) -> None:
    """4.6 standard deviations would be too much for one look at a number of results that was fixed beforehand."""
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 6, 2, 1)["id"]
        store.import_table(id, rows([0.0, 0.0, 8.0, 8.0, 8.0, 8.0], 5))
        status = store.status(id)
        assert status["done"]
        for apart, doubted in ((4.6, False), (14.0, True)):
            told = store.measurements(id)["measurements"]
            late = [(row["arm"], row["values"][0]) for row in told if not row["counted"]]
            own = [value for arm, value in late if arm == 2]
            others = [value for arm, value in late if arm in (3, 4, 5)]
            n = len(own) + 1
            mean = np.mean(others) + apart * np.sqrt(1.0 / n + 1.0 / len(others))
            late.append((2, float(n * mean - sum(own))))
            store.tell(id, [{"id": f"{apart}", "arm": 2, "values": [late[-1][1]]}])
            arms, values = (np.array(column) for column in zip(*late, strict=True))
            assert fit.misfits(status["labels"], arms, values[:, None]), "the χ² test names it"
            assert bool(store.status(id)["misfits"]) == doubted


def test_the_evidence_of_late_results_is_the_least_over_the_common_mean() -> None:
    """The closed form against the product of two mixtures, minimised numerically; the level is the evidence's own."""
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 0, 1])
    arms = rng.integers(0, 3, size=40)
    white = rng.normal(size=(40, 1)) + 1.5 * (arms == 0)[:, None]

    def log_mixture(values: Any, rho: float, means: Any) -> Any:
        n = len(values)
        return 0.5 * rho * n**2 / (1.0 + rho * n) * (values.mean() - means) ** 2 - 0.5 * np.log(1.0 + rho * n)

    def evidence(arm: int) -> float:
        own, rest = white[arms == arm], white[arms != arm]
        grid = np.linspace(white.min(), white.max(), 200_001)
        rhos = (4.0, 1.0, 1 / 4, 1 / 16, 1 / 64)
        logs = [float(np.min(log_mixture(own, rho, grid) + log_mixture(rest, rho, grid))) for rho in rhos]
        return float(np.log(np.mean(np.exp(logs))))

    reached = {arm: evidence(arm) for arm in range(3)}
    assert reached[0] == max(reached.values())
    for arm, log_e in reached.items():
        just = 4.0 * np.exp(-log_e)  # the level at which this item is just named: M/p = E
        assert arm in late_misfits(labels, arms, white, just * 1.001)
        assert arm not in late_misfits(labels, arms, white, just * 0.999)


def test_before_the_stop_there_is_no_such_doubt(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 6, 2, 1)["id"]
        assert store.status(id)["doubt"] is None
        store.import_table(id, rows(MEANS, 1))
        assert store.status(id)["misfits"] == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "noise of standard deviation 1 (none was given). Error probability allowed: 0.05. Method: croc."),
        ({"noise": 0.5, "delta": 0.01}, "noise of standard deviation 0.5. Error probability allowed: 0.01."),
        ({"noise": [0.2, 25.0]}, "noise of standard deviations 0.2, 25."),
        ({"noise": [0.2, 25.0], "value_names": ["ph", "mud"]}, "noise of standard deviations 0.2 (ph), 25 (mud)."),
        ({"noise": [[1.0, 0.5], [0.5, 1.0]]}, "noise of covariance [[1.0, 0.5], [0.5, 1.0]]."),
        ({"method": "boc", "threshold": "heuristic"}, "Method: boc, heuristic threshold."),
    ],
)
def test_the_assumptions_are_said(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 6, 3, 2, **settings)["id"]
        assumed = store.status(id)["assumed"]
    assert assumed.startswith("Assumed: exactly 3 groups; ")
    assert said in assumed
