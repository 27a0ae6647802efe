"""What every store must do: one suite for SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from known import known

import coterie
from coterie.campaign import BadValue, CampaignError, Campaigns, Conflict, NotDone, NotFound
from coterie.session.intervals import certificate_with_intervals


def test_a_new_campaign_has_its_settings_and_an_id_that_nobody_guesses(store: Campaigns, clock: Any) -> None:
    made = store.create("peas", 4, 2, 3, delta=0.1, noise=[1.0, 2.0, 0.5], names=["a", "b", "c", "d"])
    assert made["name"] == "peas"
    assert (made["n_arms"], made["n_clusters"], made["dim"], made["delta"]) == (4, 2, 3, 0.1)
    assert made["noise"] == [1.0, 2.0, 0.5]
    assert made["names"] == ["a", "b", "c", "d"]
    assert made["created"] == "2027-01-15T08:00:00.000Z"
    assert (made["method"], made["threshold"], made["lease_seconds"], made["on_expiry"]) == (
        "croc",
        "proven",
        3600.0,
        "skip",
    )
    assert len(made["id"]) == 24
    others = {store.create("peas", 4, 2, 3, noise=1.0)["id"] for _ in range(5)}
    assert len(others | {made["id"]}) == 6
    assert {one["id"] for one in store.list()} == others | {made["id"]}


def test_a_campaign_runs_to_its_end_as_a_session_does(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    arms = world.run(store, id)
    session = coterie.Session(6, 3, 2, noise=1.0)
    pulls = [0] * 6
    expected = []
    while not session.done:
        try:
            arm = session.ask()
        except coterie.SessionDone:
            break
        pulls[arm] += 1
        session.tell(arm, world.values(arm, pulls[arm]))
        expected.append(arm)
    assert arms == expected
    found = store.status(id)
    assert found["done"]
    assert found["labels"] == [0, 1, 2, 0, 1, 2]
    assert np.array_equal(found["centers"], known(session.centers))
    assert found["pulls"] == session.pulls.tolist()
    assert found["t"] == session.t == len(arms)
    assert found["evidence"]["statistic"] == session.evidence.statistic
    assert found["forecast"] == 0.0
    assert found["verdict"].startswith(f"Proven after {session.t} measurements: at least 3 groups; and if ")
    for_people = {"names": [str(arm) for arm in range(6)], "groups": [1, 2, 3, 1, 2, 3]}
    certificate = store.certificate(id)
    assert "failures" not in certificate
    assert certificate == known(certificate_with_intervals(session)) | for_people
    assert store.ask(id, "w") == {"done": True, "asks": [], "waiting_for": []}
    (summary,) = store.list()
    assert summary["done"]
    assert (summary["t"], summary["measurements"], summary["open_leases"]) == (session.t, session.t, 0)


@pytest.mark.parametrize("method", ["boc", "uniform", "boc-linear"])
def test_other_methods_run_and_resume(method: str, opened: Callable[[], Campaigns], world: Any) -> None:
    store = opened()
    more = {"method": method, "threshold": "heuristic", "distance_ratio": 0.5 if method == "boc-linear" else None}
    whole, parts = world.create(store, **more), world.create(store, **more)
    arms = world.run(store, whole)
    assert store.status(whole)["verdict"].endswith("(no proof).")
    pieces = []
    while not store.status(parts)["done"]:
        store = opened()  # replayed from the rows
        pieces += world.run(store, parts, stop_after=20)
    assert pieces == arms
    with pytest.raises(Conflict, match="only method 'croc' or 'shortlist' has certificates") as caught:
        store.certificate(whole)
    assert caught.value.code == "no_certificate"


@pytest.mark.slow
def test_reopening_at_every_step_changes_nothing(opened: Callable[[], Campaigns], world: Any) -> None:
    first = opened()
    whole, parts = world.create(first), world.create(first)
    arms = world.run(first, whole)
    pieces: list[int] = []
    while len(pieces) < len(arms):
        pieces += world.run(opened(), parts, stop_after=1)
    assert pieces == arms
    other, same = opened().status(whole), opened().status(parts)
    for key in ("labels", "centers", "pulls", "t", "groups", "evidence", "done", "measurements"):
        assert other[key] == same[key], key
    assert first.history(whole) == first.history(parts)


def test_the_same_measurement_twice_counts_once(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    (ask,) = store.ask(id, "w")["asks"]
    one = world.answer(ask, 1)
    assert store.tell(id, [one]) == {"accepted": 1, "duplicates": 0, "done": False}
    before = store.status(id)
    assert store.tell(id, [one]) == {"accepted": 0, "duplicates": 1, "done": False}
    assert store.tell(id, [{**one, "lease": None}]) == {"accepted": 0, "duplicates": 1, "done": False}
    assert store.tell(id, [one, one]) == {"accepted": 0, "duplicates": 2, "done": False}
    assert store.status(id) == before
    two = {"id": "fresh", "arm": 3, "values": [1.0, 2.0]}
    assert store.tell(id, [two, two, one]) == {"accepted": 1, "duplicates": 2, "done": False}
    assert store.status(id)["measurements"] == 2


def test_the_same_id_with_another_content_is_a_conflict_and_nothing_is_taken(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    first, second = store.ask(id, "w", 2)["asks"]
    one = world.answer(first, 1)
    store.tell(id, [one])
    fresh = world.answer(second, 1)
    before = store.status(id)
    for wrong in [
        {**one, "values": [0.0, 0.0]},
        {**one, "arm": second["arm"], "lease": None},
        {**one, "lease": second["lease"]},
    ]:
        with pytest.raises(Conflict) as caught:
            store.tell(id, [fresh, wrong])
        assert caught.value.code == "id_taken"
        assert caught.value.field == "measurements[1].id"
        assert repr(one["id"]) in caught.value.message
    with pytest.raises(Conflict, match="'x' is on record with another content"):
        store.tell(id, [{"id": "x", "arm": 0, "values": [0, 0]}, {"id": "x", "arm": 0, "values": [0, 1]}])
    assert store.status(id) == before


def test_a_lease_is_answered_once(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    (ask,) = store.ask(id, "w")["asks"]
    store.tell(id, [world.answer(ask, 1)])
    with pytest.raises(Conflict, match=f"lease {ask['lease']} was answered by measurement '0-1' already") as caught:
        store.tell(id, [world.answer(ask, 2)])
    assert caught.value.code == "lease_answered"
    (other,) = store.ask(id, "w")["asks"]
    with pytest.raises(Conflict, match=r"measurements\[1\]: lease .* was answered by measurement '1-1'"):
        store.tell(id, [world.answer(other, 1), world.answer(other, 2)])
    assert store.status(id)["measurements"] == 1
    with pytest.raises(Conflict, match="it cannot fail any more"):
        store.fail(id, ask["lease"], "too late")


BAD: list[tuple[Any, str, type[CampaignError]]] = [
    (None, "measurements[1]", BadValue),
    ({"arm": 0, "values": [0, 0]}, "measurements[1].id", BadValue),
    ({"id": "b", "values": [0, 0]}, "measurements[1].arm", BadValue),
    ({"id": "b", "arm": 0}, "measurements[1].values", BadValue),
    ({"id": "", "arm": 0, "values": [0, 0]}, "measurements[1].id", BadValue),
    ({"id": "a\x00", "arm": 0, "values": [0, 0]}, "measurements[1].id", BadValue),
    ({"id": "a\ud800", "arm": 0, "values": [0, 0]}, "measurements[1].id", BadValue),
    ({"id": 7, "arm": 0, "values": [0, 0]}, "measurements[1].id", BadValue),
    ({"id": "b" * 201, "arm": 0, "values": [0, 0]}, "measurements[1].id", BadValue),
    ({"id": "b", "arm": 6, "values": [0, 0]}, "measurements[1].arm", BadValue),
    ({"id": "b", "arm": -1, "values": [0, 0]}, "measurements[1].arm", BadValue),
    ({"id": "b", "arm": True, "values": [0, 0]}, "measurements[1].arm", BadValue),
    ({"id": "b", "arm": 1.0, "values": [0, 0]}, "measurements[1].arm", BadValue),
    ({"id": "b", "arm": "x", "values": [0, 0]}, "measurements[1].arm", BadValue),
    ({"id": "b", "arm": 10**30, "values": [0, 0]}, "measurements[1].arm", BadValue),
    ({"id": "b", "arm": 0, "values": [0]}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": [0, 0, 0]}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": [0, float("nan")]}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": [0, float("inf")]}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": [0, 1e60]}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": [0, 10**400]}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": [0, "1"]}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": "ab"}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": None}, "measurements[1].values", BadValue),
    ({"id": "b", "arm": 0, "values": [0, 0], "lease": "nobody's"}, "measurements[1].lease", NotFound),
    ({"id": "b", "arm": 0, "values": [0, 0], "lease": 5}, "measurements[1].lease", BadValue),
    ({"id": "b", "arm": 0, "values": [0, 0], "worker": ""}, "measurements[1].worker", BadValue),
]


def test_booleans_are_results(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    store.tell(id, [{"id": "a", "arm": 0, "values": [True, False]}])
    assert store.measurements(id)["measurements"][0]["values"] == [1.0, 0.0]


def test_one_bad_row_rejects_the_batch_and_is_named(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    good = {"id": "a", "arm": 0, "values": [0.5, 0.5]}
    for row, field, kind in BAD:
        with pytest.raises(kind) as caught:
            store.tell(id, [good, row])
        assert caught.value.field == field, row
        assert "measurements[1]" in caught.value.message, row
    (ask,) = store.ask(id, "w")["asks"]
    with pytest.raises(BadValue, match=r"lease .* is for arm 0, not for arm 1") as caught:
        store.tell(id, [good, {"id": "b", "arm": 1, "values": [0, 0], "lease": ask["lease"]}])
    assert caught.value.field == "measurements[1].lease"
    with pytest.raises(BadValue, match="measurements must be a list"):
        store.tell(id, "no")
    assert store.status(id)["measurements"] == 0
    assert store.measurements(id) == {"measurements": [], "next": None}
    assert store.tell(id, []) == {"accepted": 0, "duplicates": 0, "done": False}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": 3}, "name"),
        ({"n_arms": 1}, None),
        ({"n_arms": 10**9}, "n_arms"),
        ({"n_arms": 2.5}, "n_arms"),
        ({"n_clusters": 6}, "n_clusters"),
        ({"dim": 0}, "dim"),
        ({"dim": "2"}, "dim"),
        ({"delta": 1.0}, "delta"),
        ({"delta": "0.1"}, "delta"),
        ({"method": "best"}, "method"),
        ({"method": "oracle"}, "method"),
        ({"method": "boc-linear"}, "distance_ratio"),
        ({"threshold": "low"}, "threshold"),
        ({"noise": -1.0}, "noise"),
        ({"noise": [[1.0, 2.0], [2.0, 1.0]]}, "noise"),
        ({"names": ["a"]}, "names"),
        ({"names": "abcdef"}, "names"),
        ({"names": ["a", "a", "b", "c", "d", "e"]}, "names"),
        ({"names": ["a", "b\x00", "b", "c", "d", "e"]}, "names[1]"),
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"lease_seconds": float("inf")}, "lease_seconds"),
        ({"lease_seconds": 1e12}, "lease_seconds"),
        ({"on_expiry": "drop"}, "on_expiry"),
        ({"distance_ratio": "r"}, "distance_ratio"),
    ],
)
def test_bad_settings_are_refused_by_name(tmp_path_factory: Any, changes: dict[str, Any], field: str | None) -> None:
    with Campaigns(tmp_path_factory.mktemp("bad") / "store.db") as store:
        given: dict[str, Any] = {"name": "x", "n_arms": 6, "n_clusters": 3, "dim": 2, **changes}
        with pytest.raises(BadValue) as caught:
            store.create(**given)
        if field is not None:
            assert caught.value.field == field
        assert store.list() == []


def test_unknown_campaigns_and_leases(store: Campaigns, world: Any) -> None:
    for id in ("nothing", "", "a\x00b", "a\ud800"):
        calls: list[Callable[[], object]] = [
            partial(store.status, id),
            partial(store.ask, id, "w"),
            partial(store.tell, id, []),
            partial(store.fail, id, "l", ""),
            partial(store.events, id),
            partial(store.measurements, id),
            partial(store.certificate, id),
            partial(store.history, id),
        ]
        for call in calls:
            with pytest.raises(NotFound) as caught:
                call()
            assert caught.value.code == "unknown_campaign"
    id = world.create(store)
    with pytest.raises(NotFound, match="there is no lease 'x'") as caught:
        store.fail(id, "x", "")
    assert (caught.value.code, caught.value.field) == ("unknown_lease", "lease")
    with pytest.raises(BadValue) as wrong:
        store.ask(id, "w", 0)
    assert wrong.value.field == "n"
    with pytest.raises(BadValue, match="n must be at most 10000"):
        store.ask(id, "w", 10**9)
    with pytest.raises(BadValue) as wrong:
        store.ask(id, "")
    assert wrong.value.field == "worker"
    with pytest.raises(NotDone) as early:
        store.certificate(id)
    assert early.value.code == "not_done"


def test_results_after_the_stop_are_kept_and_change_nothing(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    arms = world.run(store, id)
    before, proof = store.status(id), store.certificate(id)
    far = {"id": "late", "arm": 0, "values": [100.0, 100.0]}
    told = store.tell(id, [far])
    assert (told["accepted"], told["duplicates"], told["done"]) == (1, 0, True)
    assert [one["id"] for one in told["warnings"]] == ["late"]  # far from what the item gave before
    after = store.status(id)
    for key in ("labels", "centers", "pulls", "t", "groups", "evidence", "done"):
        assert after[key] == before[key], key
    assert after["measurements"] == before["measurements"] + 1 == len(arms) + 1
    assert store.certificate(id) == proof
    rows = store.measurements(id)["measurements"]
    assert [row["counted"] for row in rows] == [True] * len(arms) + [False]
    assert store.tell(id, [far]) == {"accepted": 0, "duplicates": 1, "done": True}


def test_names_are_taken_for_arms_and_shown(store: Campaigns) -> None:
    id = store.create("x", 3, 2, 1, names=["ash", "0", "oak"], noise=1.0)["id"]
    (ask,) = store.ask(id, "w")["asks"]
    assert (ask["arm"], ask["name"]) == (0, "ash")
    store.tell(id, [{"id": "a", "arm": "ash", "values": [1.0], "lease": ask["lease"]}])
    store.tell(id, [{"id": "b", "arm": "0", "values": 2.0}, {"id": "c", "arm": 2, "values": [3.0]}])
    rows = store.measurements(id)["measurements"]
    assert [(row["arm"], row["name"], row["values"]) for row in rows] == [
        (0, "ash", [1.0]),
        (1, "0", [2.0]),
        (2, "oak", [3.0]),
    ]


def test_values_read_back_exactly(store: Campaigns, opened: Callable[[], Campaigns], world: Any) -> None:
    id = world.create(store)
    hard = [(0, 0.1 + 0.2), (0, 1e-320), (0, -0.0), (1, 1.7976931348623157e11), (2, 2**38 + 1 / 3), (0, 1 / 3)]
    rows: list[dict[str, Any]] = [
        {"id": str(i), "arm": arm, "values": [value, float(np.nextafter(value, 1))]}
        for i, (arm, value) in enumerate(hard)
    ]
    store.tell(id, rows)
    read = opened().measurements(id)["measurements"]
    for row, given in zip(read, rows, strict=True):
        assert [value.hex() for value in map(float, row["values"])] == [float(v).hex() for v in given["values"]]
    assert opened().tell(id, rows)["duplicates"] == len(rows)


def test_pages_of_measurements_and_events(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    world.run(store, id, stop_after=7)
    whole = store.measurements(id)["measurements"]
    assert [row["id"] for row in whole][:3] == ["0-1", "1-1", "2-1"]
    after: Any = 0
    pages: list[Any] = []
    while True:
        page = store.measurements(id, after=after, limit=2)
        pages += page["measurements"]
        if page["next"] is None:
            break
        after = page["next"]
    assert pages == whole
    events = store.events(id)["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert store.latest(id) == len(events) == store.status(id)["seq"]
    kinds = [event["kind"] for event in events]
    assert kinds.count("asked") == kinds.count("told") == 7
    assert kinds.count("groups") >= 1
    after, pages = 0, []
    while after is not None:
        page = store.events(id, after=after, limit=3)
        pages += page["events"]
        after = page["next"]
    assert pages == events
    json.dumps(events, allow_nan=False)
    json.dumps(store.status(id), allow_nan=False)
    wrong: Any
    for wrong in (-1, "a", 1.5, None):
        with pytest.raises(BadValue):
            store.events(id, after=wrong)
        with pytest.raises(BadValue):
            store.measurements(id, limit=wrong or 0)


def test_the_history_of_the_evidence(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    arms = world.run(store, id)
    history = store.history(id)
    assert history["t"] == list(range(1, len(arms) + 1))
    assert history["statistic"][-1] >= history["threshold"][-1]
    thin = store.history(id, points=4)
    assert len(thin["t"]) == 4
    assert (thin["t"][0], thin["t"][-1]) == (1, len(arms))


def test_the_exported_log_and_certificate_verify(store: Campaigns, world: Any, tmp_path: Any) -> None:
    id = world.create(store, noise=[1.5, 1.0])
    world.run(store, id)
    certificate, log = tmp_path / "certificate.json", tmp_path / "log.csv"
    certificate.write_text(store.export(id, "certificate"))
    log.write_text(store.export(id, "log"))
    verdict = coterie.verify(certificate, log)
    assert verdict, verdict.problems
    assert json.loads(certificate.read_text()) == store.certificate(id)
    whole = json.loads(store.export(id, "json"))
    assert whole["status"]["labels"] == store.status(id)["labels"]
    assert whole["events"] == store.events(id)["events"]
    with pytest.raises(BadValue, match="unknown kind of export 'xml'"):
        store.export(id, "xml")


def test_tokens_are_kept_as_hashes(store: Campaigns, opened: Callable[[], Campaigns]) -> None:
    store.add_token("abc", "write", "bench")
    (token,) = opened().tokens()
    assert token == {
        "id": "abc", "hash": "abc", "scope": "write", "role": "owner", "label": "bench", "campaign": None,
        "created": "2027-01-15T08:00:00.000Z", "revoked": None,
    }  # fmt: skip
    store.remove_token("abc")
    assert opened().tokens() == []


def test_addresses_of_stores() -> None:
    for wrong in ("mysql://host/db", "sqlite://", ":memory:", "", "postgresql://host:port/x", "sqlite:///:memory:"):
        with pytest.raises(BadValue) as caught:
            Campaigns(wrong)
        assert caught.value.field == "store"
