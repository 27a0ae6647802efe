"""A process that revises a campaign is killed: every item, retirement, K, δ and result that it was told of is there."""

from __future__ import annotations

import json

import pytest
from killed import kill_points, lasting, said_until_killed

from coterie.campaign import Campaigns

REVISING = """
import json, sys
from coterie.campaign import Campaigns

with Campaigns(sys.argv[1]) as store:
    id = sys.argv[2]
    store.status(id)
    print("ready", flush=True)
    delta = 1e-60
    for k in range(10**6):
        delta /= 2
        changes = (
            {"add": [f"new {k}"]},
            {"add": [f"more {k}", f"third {k}"], "retire": [f"new {k - 1}"]},
            {"n_clusters": 3 + k // 4},
            {"delta": delta},
        )[k % 4]
        answer = store.revise(id, by="ada", reason=str(k), **changes)
        print(json.dumps(["revise", k, changes, answer]), flush=True)
        (ask,) = store.ask(id, "w", 1)["asks"]
        told = {"id": f"m{k}", "arm": ask["arm"], "values": [float(k)], "lease": ask["lease"]}
        store.tell(id, [told])
        print(json.dumps(["tell", k, told, None]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", kill_points(9, 14))
def test_killed_while_revising_nothing_acknowledged_is_lost(url: str, lines: int) -> None:
    names = list("abcdefgh")
    with Campaigns(url) as store:
        id = str(store.create("beans", 8, 2, 1, names=names, noise=1.0, delta=0.05)["id"])
        store.tell(id, [{"id": name, "arm": name, "values": [float(k % 2)]} for k, name in enumerate(names)])
        said = said_until_killed(REVISING, url, id, lines=lines)
        with_it = store.status(id)  # of a process that had the campaign open all the time
    revised = [line[1:] for line in map(json.loads, said) if line[0] == "revise"]
    told = [line[2] for line in map(json.loads, said) if line[0] == "tell"]
    assert len(revised) >= lines // 2
    with Campaigns(url) as store, Campaigns(url) as other:
        status = store.status(id)
        made = status["revisions"]
        assert len(made) - len(revised) in (0, 1)
        events = [one for one in store.events(id)["events"] if one["kind"] == "revision"]
        assert [one["reason"] for one in events] == [str(k) for k in range(len(made))]
        for (_, changes, answer), one in zip(revised, made, strict=False):
            assert one["added"] == len(changes.get("add", []))
            assert [status["names"][arm] for arm in one["retired"]] == changes.get("retire", [])
            assert one["n_clusters"] in (None, answer["n_clusters"])
            assert one["delta"] in (None, answer["delta"])
        _, _, last = revised[-1]
        if len(made) == len(revised):
            assert [one["name"] for one in status["retired"]] == last["retired"]
            assert (status["n_clusters"], status["delta"]) == (last["n_clusters"], last["delta"])
            assert status["n_arms"] == last["items"] + len(last["retired"])
        assert {name for _, changes, _ in revised for name in changes.get("add", [])} <= set(status["names"])
        on_record = {one["id"]: (one["arm"], one["values"]) for one in store.measurements(id)["measurements"]}
        assert {one["id"]: (one["arm"], one["values"]) for one in told}.items() <= on_record.items()
        assert len(on_record) - len(names) - len(told) in (0, 1)
        assert lasting(with_it) == lasting(status)
        (ask,) = store.ask(id, "w", 1)["asks"]
        store.tell(id, [{"id": "after", "arm": ask["arm"], "values": [0.0], "lease": ask["lease"]}])
        assert other.status(id) == store.status(id)
