"""`confirm`: a session goes on after its proof, to see whether a group hides two."""

from __future__ import annotations

import asyncio
import json
import math
import re
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.campaign import Campaigns
from coterie.cli import app
from coterie.problem.settings import SettingError
from coterie.web import create_app
from coterie.web.access import Access, hash_of

MEANS = np.repeat([0.0, 6.0], 3)


def measured(session: coterie.Session, means: Any = MEANS, seed: int = 1, reload: int = 0) -> coterie.Session:
    """A session at its end; saved and loaded after every so many results."""
    rng = np.random.default_rng(seed)
    while not session.done:
        arm = session.ask()
        session.tell(arm, means[arm] + rng.standard_normal(session.dim))
        if reload and session.t % reload == 0:
            session = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    return session


@pytest.mark.parametrize("noise", [1.0, None, "gaussian", coterie.Gaussian("scalar"), coterie.Symmetric()])
def test_it_goes_on_after_the_proof_and_leaves_it_as_it_was(noise: Any) -> None:
    plain = measured(coterie.Session(6, 2, 1, noise=noise))
    session, rng, extra = coterie.Session(6, 2, 1, noise=noise, confirm=0.5), np.random.default_rng(1), []
    while not session.done:
        arm = session.ask()
        if session.proven:
            extra.append(arm)
        else:
            assert session.confirmed is None
        session.tell(arm, MEANS[arm] + rng.standard_normal(1))
        assert session.proven == (session.t >= plain.t)
        if session.proven and not session.done:
            assert f"{len(extra)} of {math.ceil(plain.t / 2)} measurements after the proof" in repr(session)
            assert session.certificate is not None
            assert session.remaining is not None
            assert session.remaining.remaining == math.ceil(plain.t / 2) - len(extra)
    more = math.ceil(0.5 * plain.t)
    assert (session.t, session.confirmed) == (plain.t + more, (more, more))
    assert session.labels is not None
    assert plain.labels is not None
    assert session.labels.tolist() == plain.labels.tolist()
    np.testing.assert_array_equal(session.centers, plain.centers)
    # The items with the fewest results come first, so that all have about as many in the end.
    pulls = plain.pulls.copy()
    for arm in extra:
        assert pulls[arm] == pulls.min()
        pulls[arm] += 1
    assert session.pulls.tolist() == pulls.tolist()
    mine, its = session.certificate, plain.certificate
    assert mine is not None
    assert its is not None
    assert mine["confirm"] == {"share": 0.5, "measurements": more}
    for key in set(its) - {"confirm", "homogeneity", "remarks"}:
        assert mine[key] == its[key], key
    verdict = coterie.verify(mine, session.events)
    assert verdict, verdict.problems
    assert len([one for one in session.events if one["event"] == "result"]) == session.t
    found = session.homogeneity
    assert found
    assert found.confirmed == more
    assert found.visible is not None
    would = r"With the \d+ measurements after the proof, a group that hides two would have been noticed in "
    would += r"about 9 of 10 runs if they differ by [\d.]+\.$"
    few = f"The {more} measurements after the proof are too few to notice a group that hides two."
    assert re.search(would, str(found)) if found.visible[0] < math.inf else str(found).endswith(few)


@pytest.mark.parametrize("noise", [1.0, None, coterie.Gaussian("scalar"), coterie.Bounded(-20, 20)])
def test_saved_and_loaded_it_goes_on_as_if_nothing_had_happened(noise: Any) -> None:
    once, often = (measured(coterie.Session(6, 2, 1, noise=noise, confirm=0.7), reload=each) for each in (0, 7))
    assert once.to_dict() == often.to_dict()
    assert once.settings.confirm == often.settings.confirm == 0.7
    again = coterie.Session.from_dict(json.loads(json.dumps(once.to_dict())))
    assert again.done
    assert again.confirmed == once.confirmed
    assert again.homogeneity == once.homogeneity
    assert again.certificate == once.certificate
    assert again.events == once.events


def test_a_record_of_other_rules_is_applied() -> None:
    """The proof is looked for anew, with all results, and so are the measurements after it."""
    rng, session = np.random.default_rng(1), coterie.Session(6, 2, 1, noise=1.0, confirm=1.0)
    while session.confirmed is None or session.confirmed[0] < 5:
        arm = session.ask()
        session.tell(arm, MEANS[arm] + rng.standard_normal(1))
    saved = json.loads(json.dumps(session.to_dict())) | {"rules": 10**6}
    back = coterie.Session.from_dict(saved)
    assert (back.t, back.pulls.tolist()) == (session.t, session.pulls.tolist())
    while not back.done:
        arm = back.ask()
        back.tell(arm, MEANS[arm] + rng.standard_normal(1))
    assert back.certificate is not None
    assert back.t == 2 * back.certificate["t"]
    assert coterie.verify(back.certificate, back.events)


def test_several_at_a_time_given_up_and_unasked_results() -> None:
    rng, session = np.random.default_rng(5), coterie.Session(6, 2, 1, noise=None, confirm=0.5)
    step = 0
    while not session.done:
        try:
            session.ask(4)
        except coterie.SessionDone:
            break
        for ticket, arm in rng.permutation(session.pending).tolist():
            step += 1
            if step % 7 == 0:
                session.forget(ticket)
            elif step % 11:
                session.tell(arm, MEANS[arm] + rng.standard_normal(), ticket)
        session.tell(step % 6, MEANS[step % 6] + rng.standard_normal())
    assert session.confirmed is not None
    assert session.confirmed[0] == session.confirmed[1]
    assert coterie.verify(session.certificate, session.events)
    assert coterie.Session.from_dict(json.loads(json.dumps(session.to_dict()))).to_dict() == session.to_dict()


def test_corrections_and_revisions() -> None:
    session = coterie.Session(6, 2, 1, noise=1.0, confirm=0.5)
    rng = np.random.default_rng(2)
    while session.confirmed is None or session.confirmed[0] < 3:
        arm = session.ask()
        session.tell(arm, MEANS[arm] + rng.standard_normal(1))
    session.correct(0, [0.25], "a slip")
    session.correct(session.n_measurements - 1, session.log[-1][1] + 0.125, "a slip")
    session.revise(add=1)
    means = np.append(MEANS, 6.0)
    session = measured(session, means)
    assert session.confirmed is not None
    assert session.pulls[6] > 0
    assert coterie.verify(session.certificate, session.events).problems == []


def test_a_hidden_group_that_the_proof_did_not_show_is_found() -> None:
    """0, 2 and 4 standard deviations, K = 2, any noise: silent at the proof, and said after the measurements more."""
    means = np.repeat([0.0, 2.0, 4.0], 4)
    for seed in range(20):
        session, rng = coterie.Session(12, 2, 1, confirm=1.0), np.random.default_rng(seed)
        at_proof = None
        while not session.done:
            arm = session.ask()
            session.tell(arm, means[arm] + rng.standard_normal())
            if session.proven and at_proof is None:
                at_proof = session.homogeneity
        assert at_proof is not None
        if at_proof and not session.homogeneity:
            verdict = coterie.verify(session.certificate, session.events)
            assert verdict
            assert "are hardly alike" in verdict.warnings[0]
            return
    raise AssertionError("no run was silent at the proof and spoke up later")


def test_cluster_takes_it() -> None:
    rng = np.random.default_rng(0)
    result = coterie.cluster(lambda arm: MEANS[arm] + rng.standard_normal(), 6, 2, progress=False, confirm=0.5)
    assert result.done
    assert result.homogeneity is not None
    assert result.homogeneity.confirmed is not None


@pytest.mark.parametrize("confirm", [-0.1, 11, math.nan, "half", True, [0.5]])
def test_bad_shares_are_refused_by_name(confirm: Any) -> None:
    with pytest.raises(SettingError, match="confirm") as error:
        coterie.Session(6, 2, 1, confirm=confirm)
    assert error.value.field == "confirm"


def test_it_is_for_groups_of_equal_items() -> None:
    with pytest.raises(SettingError, match=r"confirm=0\.5 looks for groups that hide two equal ones"):
        coterie.Session(6, dim=1, noise=1.0, resolution=(0.1, 1.0), confirm=0.5)
    with pytest.raises(SettingError, match="leave it out"):
        coterie.Session(6, 2, 1, noise=1.0, groups="linkage", confirm=0.5)


def test_what_a_certificate_says_of_it_is_checked() -> None:
    session = measured(coterie.Session(6, 2, 1, noise=1.0, confirm=0.5))
    certificate, events = session.certificate, session.events
    assert certificate is not None
    more = certificate["confirm"]["measurements"]
    for stated, problem in (
        ({"share": 0.5, "measurements": more + 1}, "confirm: the log has"),
        ({"share": 0.5, "measurements": more - 1}, "homogeneity of group"),
        ({"share": 0.5, "measurements": -1}, "confirm.measurements"),
        ({"share": 0.0, "measurements": more}, "confirm.share"),
        ([1], "confirm must be an object or null"),
        ({}, "confirm.measurements"),
    ):
        verdict = coterie.verify(certificate | {"confirm": stated}, events)
        assert not verdict
        assert problem in verdict.problems[0]
    broken = [*events[:-1], events[-1] | {"arm": 99}]
    assert not coterie.verify(certificate, broken)


def test_a_campaign_goes_on_over_restarts(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with Campaigns(store) as campaigns:
        made = campaigns.create("c", 6, 2, 1, noise=1.0, confirm=0.5)
        assert made["confirm"] == 0.5
    rng, proven, seen = np.random.default_rng(3), 0, set[Any]()
    for step in range(400):
        with Campaigns(store) as campaigns:
            for turn in range(5):
                for ask in campaigns.ask(made["id"], "w")["asks"]:
                    value = [MEANS[ask["arm"]] + rng.standard_normal()]
                    one = {"arm": ask["arm"], "values": value, "lease": ask["lease"], "id": f"{step}-{turn}"}
                    campaigns.tell(made["id"], [one])
            status = campaigns.status(made["id"])
            if status["proven"] and not status["done"]:
                proven += 1
                assert "measurements after the proof" in status["verdict"]
                seen.add(tuple(status["confirmed"]))
            if status["done"]:
                break
    assert status["done"]
    assert proven > 0
    assert status["confirmed"][0] == status["confirmed"][1]
    assert status["homogeneity"]["confirmed"] == status["confirmed"][1]
    assert len(status["homogeneity"]["visible"]) == 1
    assert len(seen) == proven


@pytest.mark.parametrize("noise", [1.0, None, "gaussian", coterie.Bounded(-20, 20)], ids=str)
@pytest.mark.parametrize("of", ["groups", "differences", "items"])
def test_its_intervals_read_what_came_after_the_proof_and_hold_in_the_certificate(noise: Any, of: str) -> None:
    session = measured(coterie.Session(6, 2, 1, noise=noise, confirm=0.5))
    intervals, certificate = session.intervals(of), session.certificate
    assert certificate is not None
    assert of == "differences" or sum(intervals.lengths) == session.t > certificate["t"]
    stated = certificate.with_intervals(intervals)
    verdict = coterie.verify(stated, session.events)
    assert verdict.valid, verdict.problems
    field = stated["intervals"][0]
    wider = stated | {"intervals": [field | {"high": [[0.1 + (end or 0.0) for end in row] for row in field["high"]]}]}
    assert not coterie.verify(wider, session.events)
    for confirm in (None, {"share": 0.5, "measurements": session.t - certificate["t"] - 1}):
        assert not coterie.verify(stated | {"confirm": confirm}, session.events)
    nameless = [*session.events[:-1], {key: value for key, value in session.events[-1].items() if key != "event"}]
    problems = coterie.verify(certificate, nameless).problems
    assert problems
    assert "KeyError" not in problems[0]


def test_the_command_line_takes_it(tmp_path: Path) -> None:
    new = ["campaign", "new", "c", "--arms", "6", "--clusters", "2", "--store", str(tmp_path / "store.db"), "--json"]
    made = CliRunner().invoke(app, [*new, "--confirm", "0.5"])
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["confirm"] == 0.5
    assert CliRunner().invoke(app, [*new, "--confirm", "-1"]).exit_code != 0


def test_http_and_the_page_take_it(tmp_path: Path) -> None:
    shape = {"name": "x", "n_arms": 4, "n_clusters": 2, "dim": 1}

    async def run(store: Campaigns) -> list[httpx.Response]:
        transport = httpx.ASGITransport(create_app(store, Access({hash_of("secret"): "write"})))
        headers = {"Authorization": "Bearer secret", "Accept": "text/html"}
        async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client:
            bad = await client.post("/api/campaigns", json=shape | {"confirm": "much"})
            made = await client.post("/api/campaigns", json=shape | {"confirm": 0.5})
            status = await client.get(f"/api/campaigns/{made.json()['id']}")
            return [bad, made, status, await client.get("/new")]

    with Campaigns(tmp_path / "store.db") as store:
        bad, made, status, page = asyncio.run(run(store))
    assert (bad.status_code, bad.json()["error"]["field"]) == (422, "confirm")
    assert made.json()["confirm"] == 0.5
    assert (status.json()["proven"], status.json()["confirmed"]) == (False, None)
    assert "go on for half as many measurements, to see whether a group hides two" in page.text
