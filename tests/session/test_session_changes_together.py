"""Corrections, revisions and costs in one run: each is kept, and the proof still holds and verifies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.campaign import Campaigns

TRUTH = {"a": 0.0, "b": 0.0, "c": 5.0, "d": 5.0, "e": 0.0, "f": 10.0, "g": 10.0}
FOUND = {"a": 0, "c": 1, "d": 1, "e": 0, "f": 2, "g": 2}


def measured(name: str, rng: np.random.Generator) -> float:
    return float(TRUTH[name] + rng.standard_normal())


def go_on(session: coterie.Session, rng: np.random.Generator, most: int) -> None:
    assert session.names is not None
    for _ in range(most):
        if session.done:
            break
        arm = session.ask()
        session.tell(arm, [measured(session.names[arm], rng)])


@pytest.mark.parametrize("costs", [None, [1.0, 2.0, 3.0, 4.0, 5.0]], ids=["no costs", "costs"])
@pytest.mark.parametrize("noise", [1.0, None, "gaussian"], ids=["known", "any", "gaussian"])
def test_corrected_and_revised_runs_verify(noise: Any, costs: list[float] | None) -> None:
    rng = np.random.default_rng(3)
    session = coterie.Session(5, 2, 1, names=list("abcde"), noise=noise, costs=costs)
    go_on(session, rng, 12)
    slip = session.log[3]
    assert session.correct(3, slip[1] + 0.5, "misread") is not None
    joined = {"add": ["f", "g"]} | ({} if costs is None else {"costs": [1.0, 9.0]})
    session.revise(**joined)
    assert [one.row for one in session.corrections] == [3]
    go_on(session, rng, 9)
    session.revise(n_clusters=3)
    go_on(session, rng, 3)
    session.revise(retire=["b"])
    go_on(session, rng, 10)
    assert session.correct(5, session.log[5][1] - 0.5, "misread again") is not None
    again = coterie.Session.from_dict(session.to_dict())
    go_on(session, rng, 5000)
    assert session.done
    assert session.names is not None
    assert session.labels is not None
    labels = dict(zip(session.names, session.labels.tolist(), strict=True))
    assert labels.pop("b") == -1
    assert coterie.same_partition([labels[name] for name in FOUND], list(FOUND.values()))
    assert session.progress.items == session.progress.settled == 6
    certificate = session.certificate
    assert certificate is not None
    assert [len(certificate[key]) for key in ("corrections", "revisions")] == [2, 3]
    verdict = coterie.verify(certificate, session.events)
    assert verdict.valid, verdict.problems
    assert (session.cost is None) == (costs is None)
    assert [one.row for one in again.corrections] == [3, 5]
    assert again.revisions == session.revisions
    rest = np.random.default_rng(4)
    go_on(again, rest, 5000)
    assert again.done


def test_what_joins_costs_something(tmp_path: Path) -> None:
    session = coterie.Session(5, 2, 1, names=list("abcde"), noise=1.0, costs=[1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="say with costs what one measurement of each of the 1 items that join costs"):
        session.revise(add=["f"])
    with pytest.raises(ValueError, match="costs must be positive, got -1"):
        session.revise(add=["f"], costs=[-1.0])
    with pytest.raises(ValueError, match="costs must be 1 positive numbers"):
        session.revise(add=["f"], costs=[1.0, 2.0])
    with pytest.raises(ValueError, match="costs are for items that join"):
        session.revise(retire=["a"], costs=[1.0])
    assert list(session.costs or ()) == [1, 2, 3, 4, 5]
    plain = coterie.Session(5, 2, 1, noise=1.0)
    with pytest.raises(ValueError, match="items have no costs here"):
        plain.revise(add=1, costs=[2.0])


def test_a_campaign_with_all_of_it_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("all", 5, 2, 1, names=list("abcde"), noise=1.0, costs=[1, 2, 3, 4, 5])["id"]

        def measure(most: int) -> None:
            for _ in range(most):
                for one in store.ask(id, "ann")["asks"]:
                    values = [measured(one["name"], rng)]
                    told = {"id": f"m{len(ids)}", "arm": one["arm"], "values": values, "lease": one["lease"]}
                    ids.append(told["id"])
                    store.tell(id, [told])

        ids: list[str] = []
        measure(8)
        store.correct(id, ids[2], [TRUTH["c"]], "misread", "ann")
        store.revise(id, add=["f", "g"], costs=[1.0, 9.0], n_clusters=3)
        measure(5)
        store.revise(id, retire=["b"])
        measure(3)
        half = store.status(id)
    with Campaigns(tmp_path / "store.db") as store:
        assert {**store.status(id), "open_leases": None} == {**half, "open_leases": None}
        measure(500)
        status = store.status(id)
        assert status["done"]
        (listed,) = store.list()
        assert (listed["n_arms"], listed["n_clusters"]) == (7, 3)
        certificate = store.certificate(id)
        (tmp_path / "log.csv").write_text(store.export(id, "log"))
    assert coterie.verify(certificate, tmp_path / "log.csv").valid
    assert [len(certificate[key]) for key in ("corrections", "revisions")] == [1, 2]
    assert status["cost"] > 0
