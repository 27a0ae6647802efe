"""Intervals of runs in blocks, in certificates: recomputed from the cells of the log, and forged ones refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from block_worlds import NOISES, play

import coterie
from coterie.certificate import write_log
from coterie.session.intervals import certificate_with_intervals


def stated(session: coterie.Session) -> dict[str, Any]:
    """The certificate with all intervals that there are, as JSON gives it back."""
    kinds = ("differences",) if session.blocks == "offset" else ("groups", "differences", "items")
    certificate = session.certificate
    assert certificate is not None
    content: dict[str, Any] = json.loads(
        json.dumps(certificate.with_intervals(*(session.intervals(of, 0.05) for of in kinds)))
    )
    return content


@pytest.mark.parametrize(("blocks", "noise"), NOISES, ids=str)
def test_sessions_are_recomputed(blocks: str, noise: str, tmp_path: Path) -> None:
    for lapses in (False, True):
        session = play(blocks, noise, 5, 2, seed=4, room=7, lapses=lapses)
        certificate = stated(session)
        assert coterie.verify(certificate, session.events).problems == []
        write_log(tmp_path / "log.csv", session.events, 1)
        assert coterie.verify(certificate, str(tmp_path / "log.csv"))
        entry = certificate["intervals"][-1]
        forged = copy.deepcopy(certificate)
        place = next(i for i, low in enumerate(entry["low"]) if low[0] is not None)
        forged["intervals"][-1]["low"][place][0] += 1e-4
        assert any("low end" in problem for problem in coterie.verify(forged, session.events).problems)


@pytest.mark.parametrize("noise", ["known", "any"])
def test_a_strict_lapse_ends_what_is_read(noise: str) -> None:
    whole, cut = (play("offset", noise, 5, 2, seed=4, room=7, lapses=lapses, strict=lapses) for lapses in (False, True))
    for session in (whole, cut):
        assert coterie.verify(stated(session), session.events)
    lengths = cut.intervals("differences").lengths[0]
    assert sum(lengths) < sum(whole.intervals("differences").lengths[0])
    first = next(made["cell"] for made in cut.decisions if made["event"] == "lapse")
    before = [made for made in cut.decisions if made["event"] == "cell" and made["cell"] < first]
    assert sum(lengths) <= sum(len(cell["pulls"]) for cell in before)
    hidden = stated(cut)
    longer = cut.intervals("differences", 0.05).lengths[0]
    hidden["intervals"][0]["lengths"][0] = [longer[0] + 1, longer[1]]
    assert any("its stream in the log has" in problem for problem in coterie.verify(hidden, cut.events).problems)


def test_forged_intervals_are_refused() -> None:
    session = play("offset", "counts", 5, 2, seed=1, room=7)
    certificate, events = stated(session), session.events
    assert coterie.verify(certificate, events)
    for key, value, said in (
        ("formula", "beta-binomial", "formula must be 'known'"),
        ("of", "groups", "only differences have intervals"),
        ("of", "items", "only differences have intervals"),
        ("count", 2, "count must be 1"),
        ("delta", 0.06, "end of row 0"),
        ("quantile", 0.5, "intervals are of means"),
    ):
        forged = copy.deepcopy(certificate)
        forged["intervals"][0][key] = value
        verdict = coterie.verify(forged, events)
        assert any(said in problem for problem in verdict.problems), (key, verdict.problems)
    drawn = play("drawn", "bounded", 5, 2, seed=1, room=7)
    forged = stated(drawn)
    forged["intervals"][1]["lengths"][0][0] += 1
    assert any("its stream in the log has" in problem for problem in coterie.verify(forged, drawn.events).problems)


def test_campaigns_state_what_there_is() -> None:
    for blocks, noise, kinds in (("offset", "any", ["differences"]), ("drawn", "trials", ["groups", "differences"])):
        session = play(blocks, noise, 5, 2, seed=2, room=7)
        certificate = certificate_with_intervals(session)
        assert certificate is not None
        assert [entry["of"] for entry in certificate["intervals"]] == kinds
        assert sum(entry["delta"] for entry in certificate["intervals"]) == pytest.approx(session.delta)
        assert coterie.verify(certificate, session.events)
