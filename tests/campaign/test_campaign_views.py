"""What a status says about the assumptions behind it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.campaign import Campaigns
from coterie.methods.croc.method import CrocMethodRun
from coterie.tables.checks import misfits

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
        few = store.create("few", 6, 2, 1, noise=1.0)["id"]
        store.import_table(few, rows(MEANS, 60))
        status = store.status(few)
        assert status["done"]
        assert status["measurements"] > status["t"]
        assert {one["name"] for one in status["misfits"]} == {"2", "3", "4", "5"}
        assert {one["group_id"] for one in status["misfits"]} == {2}
        assert "there may be more than 2 groups, or the noise may be larger than was said" in status["doubt"]
        assert status["doubt"].endswith("such a warning ever comes with probability at most 0.001 + 0.05.")
        assert proven(store, few) == ["no", "no", "does not fit", "does not fit", "does not fit", "does not fit"]
        right = store.create("right", 6, 2, 1, noise=1.0)["id"]
        store.import_table(right, rows([0.0, 0.0, 8.0, 8.0, 8.0, 8.0], 60))
        status = store.status(right)
        assert (status["done"], status["misfits"], status["doubt"]) == (True, [], None)
        assert proven(store, right) == ["yes"] * 6
        assert status["verdict"] == (
            f"Proven after {status['t']} measurements: at least 2 groups; and if there are exactly 2 groups, the items "
            "of a group are alike, those of different groups are not (wrong with probability at most 0.05, or 0.055 "
            "if there are fewer than 2)."
        )
        assert status["homogeneity"]["text"].startswith("Each group looks like one: its measurements differ by no more")
        guess = store.create("guess", 6, 2, 1, method="uniform", threshold="heuristic", noise=1.0)["id"]
        store.import_table(guess, rows(MEANS, 60))
        assert store.status(guess)["doubt"].endswith("at most 0.001, if the groups are right.")
        assert set(proven(store, guess)) == {"no", "does not fit"}


MANY = 20


def test_odd_results_after_the_stop_are_no_doubt_wild_ones_are(tmp_path: Path) -> None:
    """4.6 standard deviations would be too much for one look at a number of results that was fixed beforehand."""
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 6, 2, 1, noise=1.0)["id"]
        store.import_table(id, rows([0.0, 0.0, 8.0, 8.0, 8.0, 8.0], 5))
        status = store.status(id)
        assert status["done"]
        for apart, doubted in ((4.6, False), (14.0, True)):
            told = store.measurements(id)["measurements"]
            late = [(row["arm"], row["values"][0]) for row in told if not row["counted"]]
            own = [value for arm, value in late if arm == 2]
            others = [value for arm, value in late if arm in (3, 4, 5)]
            n = len(own) + MANY
            mean = np.mean(others) + apart * np.sqrt(1.0 / n + 1.0 / len(others))
            each = float(n * mean - sum(own)) / MANY  # none of them is far away for one result
            late += [(2, each)] * MANY
            store.tell(id, [{"id": f"{apart}/{k}", "arm": 2, "values": [each]} for k in range(MANY)])
            arms, values = (np.array(column) for column in zip(*late, strict=True))
            assert misfits.misfits(status["labels"], arms, values[:, None]), "the χ² test names it"
            assert bool(store.status(id)["misfits"]) == doubted


def test_before_the_stop_there_is_no_such_doubt(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 6, 2, 1, noise=1.0)["id"]
        assert store.status(id)["doubt"] is None
        store.import_table(id, rows(MEANS, 1))
        assert store.status(id)["misfits"] == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {},
            "any noise: results of items in one group have the same distribution, whatever it is, and do not depend on",
        ),
        ({}, " one another. Error probability allowed: 0.05. Method: croc."),
        ({"noise": 1.0}, "noise of standard deviation 1: results are Gaussian with exactly the covariance stated, or"),
        ({"noise": "gaussian"}, "Gaussian noise of unknown covariance: results are Gaussian and do not depend on"),
        (
            {"noise": coterie.Counts(100)},
            "counts out of 100 trials: each number of a result is a number of successes out",
        ),
        (
            {"noise": coterie.Bounded(1, 5)},
            "results between 1 and 5: results lie between 1 and 5 and do not depend on one",
        ),
        (
            {"noise": coterie.AtMost(2.0)},
            "noise with a standard deviation of at most 2.0: results vary by no more than",
        ),
        ({"noise": coterie.Symmetric()}, "noise that is symmetric for each item: results do not depend on one"),
        ({"noise": 0.5, "delta": 0.01}, "noise of standard deviation 0.5: results are Gaussian"),
        ({"noise": [0.2, 25.0]}, "noise of standard deviations 0.2, 25: results"),
        (
            {"noise": [0.2, 25.0], "value_names": ["ph", "mud"]},
            "noise of standard deviations 0.2 (ph), 25 (mud): results",
        ),
        ({"noise": [[1.0, 0.5], [0.5, 1.0]]}, "noise of covariance [[1.0, 0.5], [0.5, 1.0]]: results"),
        ({"method": "boc", "threshold": "heuristic", "noise": 1.0}, "Method: boc, heuristic threshold."),
    ],
)
def test_the_assumptions_are_said(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 6, 3, 2, **settings)["id"]
        assumed = store.status(id)["assumed"]
    assert assumed.startswith("Assumed: exactly 3 groups; ")
    assert said in assumed


# Beside the proof.

FAR = np.array([0.0, 20.0, 0.0, 50.0, 20.0, 50.0])  # three groups


def told(store: Campaigns, id: str, means: Any, most: int, seed: int = 0) -> dict[str, Any]:
    """The status after results as they are asked for: until it is done, or an alarm, or there are so many."""
    rng = np.random.default_rng(seed)
    for k in range(most):
        asks = store.ask(id, "ann")["asks"]
        if not asks:
            break
        arm = asks[0]["arm"]
        one = {"id": f"m{k}", "arm": arm, "values": [means[arm] + rng.normal()], "lease": asks[0]["lease"]}
        store.tell(id, [one])
        if store.status(id)["alarm"] is not None:
            break
    return store.status(id)


def test_items_that_differ_are_said_to(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("few", 6, 2, 1, names=list("uvwxyz"), noise=1.0)["id"]
        assert store.status(id)["alarm"] is None
        status = told(store, id, FAR, 60)
        alarm = status["alarm"]
        assert len({FAR[arm] for arm in alarm["arms"]}) == len(alarm["arms"]) == 3
        assert alarm["names"] == ["uvwxyz"[arm] for arm in alarm["arms"]]
        assert (alarm["arm"], alarm["name"]) == (alarm["arms"][-1], alarm["names"][-1])
        assert alarm["probability"] == pytest.approx(0.01)
        first, second, third = alarm["names"]
        assert alarm["text"].startswith(f"K = 2 is refuted: items {first}, {second} and {third} are pairwise known to ")
        assert proven(store, id) == ["no"] * 6
        assert "but the measurements refute 2 groups: there are at least 3" in status["verdict"]


def test_after_an_alarm_asking_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CrocMethodRun, "alarm", property(lambda driver: (0, 2, 5) if driver.t >= 9 else None))
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("few", 6, 2, 1, noise=1.0)["id"]
        status = told(store, id, 0.01 * FAR, 60)
        alarm = status["alarm"]
        assert (status["t"], alarm["arms"], status["done"]) == (9, [0, 2, 5], False)
        assert status["homogeneity"] is None
        assert status["verdict"].startswith(
            f"Not proven, after {status['t']} measurements; but the measurements refute 2 "
        )
        assert "there are at least 3, or the noise is larger than was said" in status["verdict"]
        assert proven(store, id) == ["no"] * 6
        assert store.ask(id, "ben")["asks"]
        assert store.status(id)["alarm"] == alarm


def test_groups_that_look_mixed_are_said_and_not_called_proven(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("few", 12, 2, 1, noise=1.0)["id"]
        status = told(store, id, np.repeat([0.0, 30.0, 36.0], 4), 200, seed=1)
        assert status["done"]
        assert status["misfits"] == []
        looks = status["homogeneity"]
        assert looks["mixed"] == [1]
        assert looks["evidence"][0] < looks["threshold"] < looks["evidence"][1]
        (group,) = (one for one in status["groups"] if one["label"] == 1)
        assert looks["text"].startswith(f"Group {group['id']} (items 4, 5, 6, 7, 8, 9, 10 and 11) looks mixed: its ")
        assert looks["text"].endswith("or items of a group not exactly alike.")
        assert status["verdict"].endswith(
            ": at least 2 groups; not proven: that the items of a group are alike, since a group looks mixed."
        )
        assert proven(store, id) == ["no"] * 12
        assert json.loads(store.export(id, "certificate"))["homogeneity"]["threshold"] == looks["threshold"]
        guess = store.create("guess", 12, 2, 1, method="uniform", threshold="heuristic", noise=1.0)["id"]
        status = told(store, guess, np.repeat([0.0, 30.0, 36.0], 4), 200, seed=1)
        assert status["verdict"].endswith("has reached the heuristic threshold (no proof), and a group looks mixed.")


def test_a_proof_of_what_is_refuted_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alarm was raised, and the campaign went on to a proof for its number of groups."""
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("few", 6, 2, 1, noise=1.0)["id"]
        status = told(store, id, [0.0, 0.0, 0.0, 9.0, 9.0, 9.0], 60)
        assert status["done"]
        assert proven(store, id) == ["yes"] * 6
        monkeypatch.setattr(CrocMethodRun, "alarm", property(lambda _: (0, 1, 3)))
        status = store.status(id)
        assert status["verdict"].startswith(
            f"Proven after {status['t']} measurements: at least 2 groups; not proven: that the items of a group are "
            "alike, since the measurements refute 2 groups: "
        )
        assert status["alarm"]["names"] == ["0", "1", "3"]
        assert proven(store, id) == ["no"] * 6
