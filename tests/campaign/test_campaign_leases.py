"""Leases: who measures what until when, what happens when that time is over, and in which order results count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coterie.campaign import Campaigns


def asked(answer: dict[str, Any]) -> list[tuple[int, str]]:
    return [(ask["arm"], ask["lease"]) for ask in answer["asks"]]


def test_a_worker_gets_its_own_open_asks_back_first(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    first = asked(store.ask(id, "ann", 2))
    other = asked(store.ask(id, "bob", 1))
    assert [arm for arm, _ in first + other] == [0, 1, 2]  # never the same decision twice
    assert asked(store.ask(id, "ann", 1)) == first[:1]
    assert asked(store.ask(id, "ann", 2)) == first
    again = asked(store.ask(id, "ann", 3))
    assert again[:2] == first
    assert again[2][0] == 3
    assert store.latest(id) == 4  # asking again wrote nothing but the new ask
    found = store.status(id)
    assert [(one["arm"], one["worker"], one["expired"]) for one in found["open_leases"]] == [
        (0, "ann", False),
        (1, "ann", False),
        (2, "bob", False),
        (3, "ann", False),
    ]
    assert [(one["worker"], one["open"]) for one in found["workers"]] == [("ann", 3), ("bob", 1)]


def test_an_expired_lease_is_skipped_and_its_arm_asked_for_again(store: Campaigns, world: Any, clock: Any) -> None:
    id = world.create(store, lease_seconds=60.0)
    ((arm, lease),) = asked(store.ask(id, "ann"))
    clock.now += 59.999
    assert asked(store.ask(id, "ann")) == [(arm, lease)]
    clock.now += 0.001
    assert store.status(id)["open_leases"][0]["expired"]
    ((again, fresh),) = asked(store.ask(id, "bob"))
    assert again == arm  # the first pass starts over with it
    assert fresh != lease
    kinds = [event["kind"] for event in store.events(id)["events"]]
    assert kinds == ["asked", "expired", "asked"]
    assert store.lease(id, lease)["state"] == "expired"
    # Ann is late: her result is accepted, as one that nobody asked for, and waits behind Bob's open ask.
    late = {"id": "late", "arm": arm, "values": [0.0, 0.0], "lease": lease}
    assert store.tell(id, [late])["accepted"] == 1
    assert store.tell(id, [late])["duplicates"] == 1
    found = store.status(id)
    assert (found["t"], found["waiting"], found["measurements"]) == (0, 1, 1)
    assert [one["lease"] for one in found["open_leases"]] == [fresh]
    store.tell(id, [{"id": "bobs", "arm": arm, "values": [1.0, 1.0], "lease": fresh}])
    found = store.status(id)
    assert (found["t"], found["waiting"]) == (2, 0)
    rows = store.measurements(id)["measurements"]
    assert [(row["id"], row["asked_for"], row["worker"]) for row in rows] == [
        ("late", False, "ann"),
        ("bobs", True, "bob"),
    ]


def test_a_lease_that_waits_keeps_its_place(opened: Callable[[], Campaigns], world: Any, clock: Any) -> None:
    """Nobody else gets it: a repeat that takes the place of a slow result would make the order depend on values."""
    store = opened()
    id = world.create(store, lease_seconds=60.0, on_expiry="wait")
    first: list[dict[str, Any]] = []
    for _ in range(6):  # the first pass
        (ask,) = store.ask(id, "w")["asks"]
        store.tell(id, [world.answer(ask, 1)])
    ((arm, lease),) = asked(store.ask(id, "ann"))
    clock.now += 61.0
    assert store.status(id)["open_leases"][0]["expired"]
    same: list[dict[str, Any]] = []
    while not same:  # until Bob has something of the same item
        first = store.ask(id, "bob", len(first) + 1)["asks"]
        assert lease not in [ask["lease"] for ask in first]
        same = [ask for ask in first if ask["arm"] == arm]
    store.tell(id, [world.answer(same[0], 2)])
    assert store.status(id)["waiting"] == 1, "Bob's result waits for Ann's, however long"
    assert store.status(id)["t"] == 6
    clock.now += 1e6
    assert asked(store.ask(id, "ann")) == [(arm, lease)], "she gets it back"
    (one, *_) = opened().status(id)["open_leases"]  # replayed from the rows
    assert (one["lease"], one["worker"], one["expired"]) == (lease, "ann", False)
    store.tell(id, [{"id": "ann's", "arm": arm, "values": [0.0, 0.0], "lease": lease}])
    assert (store.status(id)["waiting"], store.status(id)["t"]) == (0, 8)
    with pytest.raises(ValueError, match='answered by measurement "ann\'s" already'):
        store.tell(id, [{"id": "again", "arm": arm, "values": [1.0, 1.0], "lease": lease}])


def test_a_lease_that_waits_can_be_given_up(store: Campaigns, world: Any, clock: Any) -> None:
    id = world.create(store, lease_seconds=60.0, on_expiry="wait")
    ((arm, lease),) = asked(store.ask(id, "ann"))
    clock.now += 61.0
    assert store.fail(id, lease, "the tube broke")["freed"]
    assert asked(store.ask(id, "bob"))[0][0] == arm


@pytest.mark.parametrize("on_expiry", ["skip", "wait"])
def test_late_results_wait_for_their_turn(store: Campaigns, world: Any, clock: Any, on_expiry: str) -> None:
    """Value-dependent delays cannot forge: a result counts when all earlier asks of its arm have been answered."""
    id = world.create(store, lease_seconds=60.0, on_expiry=on_expiry)
    for _ in range(6):  # the first pass
        (ask,) = store.ask(id, "w")["asks"]
        store.tell(id, [world.answer(ask, 1)])
    asks: list[dict[str, Any]] = []
    while len({ask["arm"] for ask in asks}) == len(asks):  # until an arm is asked for twice
        asks = store.ask(id, "w", len(asks) + 1)["asks"]
    twice = asks[-1]
    early = next(ask for ask in asks if ask["arm"] == twice["arm"])
    before = store.status(id)
    store.tell(id, [world.answer(twice, 3)])
    found = store.status(id)
    assert found["waiting"] == 1
    assert (found["t"], found["pulls"], found["evidence"]) == (before["t"], before["pulls"], before["evidence"])
    assert [row["counted"] for row in store.measurements(id)["measurements"]] == [True] * 6 + [False]
    assert twice["lease"] not in [one["lease"] for one in found["open_leases"]]
    clock.now += 61.0
    store.tell(id, [])  # anybody's word ends leases whose time is over
    if on_expiry == "skip":
        found = store.status(id)
        assert (found["waiting"], found["t"]) == (0, before["t"] + 1)
        store.tell(id, [world.answer(early, 2)])
    else:
        assert store.status(id)["waiting"] == 1  # still
        store.tell(id, [world.answer(early, 2)])
    found = store.status(id)
    assert (found["waiting"], found["t"]) == (0, before["t"] + 2)
    # In the order of evidence the early ask comes first if it waited, and on its arrival if it was skipped.
    log = [line.split(",") for line in store.export(id, "log").splitlines()]
    ours = [row[3] for row in log if row[0] == "result" and row[1] == str(twice["arm"])]
    order = [1, 3, 2] if on_expiry == "skip" else [1, 2, 3]
    assert ours == [repr(world.values(twice["arm"], k)[0]) for k in order]


def test_a_failed_measurement_frees_its_lease(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    ((arm, lease),) = asked(store.ask(id, "ann"))
    answer = store.fail(id, lease, "spilled\x00 it")
    assert answer == {"freed": True, "lease": lease, "arm": arm, "name": str(arm), "ended": "failed"}
    assert store.fail(id, lease, "again")["freed"]
    assert [event["kind"] for event in store.events(id)["events"]] == ["asked", "failed"]
    assert store.events(id)["events"][1]["reason"] == "spilled  it"
    assert store.status(id)["open_leases"] == []
    ((again, fresh),) = asked(store.ask(id, "bob"))
    assert (again, fresh == lease) == (arm, False)
    # Not so failed after all: taken as a result that nobody asked for.
    assert store.tell(id, [{"id": "x", "arm": arm, "values": [0.0, 0.0], "lease": lease}])["accepted"] == 1
    with pytest.raises(ValueError, match="reason must be a string"):
        store.fail(id, fresh, None)  # type: ignore[arg-type]


def test_results_without_a_lease(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    asks = store.ask(id, "ann", 2)["asks"]
    # Nobody asked for arm 4: it counts on arrival.
    store.tell(id, [{"id": "a", "arm": 4, "values": [3.0, 0.0]}])
    assert store.status(id)["t"] == 1
    # Ann forgot the lease of arm 0: it answers the open ask, and does not wait behind it for ever.
    store.tell(id, [{"id": "b", "arm": asks[0]["arm"], "values": [0.0, 0.0]}])
    found = store.status(id)
    assert (found["t"], found["waiting"], len(found["open_leases"])) == (2, 0, 1)
    # Bob says who he is and has not asked for arm 1: it is not Ann's answer.
    store.tell(id, [{"id": "c", "arm": asks[1]["arm"], "values": [3.0, 0.0], "worker": "bob"}])
    found = store.status(id)
    assert (found["t"], found["waiting"], len(found["open_leases"])) == (2, 1, 1)
    store.tell(id, [{"id": "d", "arm": asks[1]["arm"], "values": [3.0, 0.0], "worker": "ann"}])
    found = store.status(id)
    assert (found["t"], found["waiting"], len(found["open_leases"])) == (4, 0, 0)
    # A result that names a lease whose place a nameless one has taken is another measurement: it counts too.
    assert store.tell(id, [{"id": "e", "arm": 0, "values": [0.1, 0.0], "lease": asks[0]["lease"]}])["accepted"] == 1
    assert store.status(id)["t"] == 5
    # In one batch the nameless result leaves the lease to the one that names it.
    (ask,) = store.ask(id, "ann")["asks"]
    nameless = {"id": "f", "arm": ask["arm"], "values": [0.0, 0.0]}
    store.tell(id, [nameless, {**nameless, "id": "g", "lease": ask["lease"]}])
    rows = {row["id"]: row["asked_for"] for row in store.measurements(id)["measurements"]}
    assert (rows["f"], rows["g"]) == (False, True)


def test_a_client_that_never_names_leases_gets_to_the_end(store: Campaigns, world: Any) -> None:
    plain, leased = world.create(store), world.create(store)
    expected = world.run(store, leased)
    pulls, arms = [0] * 6, []
    while not (answer := store.ask(plain, "w"))["done"]:
        arm = answer["asks"][0]["arm"]
        pulls[arm] += 1
        arms.append(arm)
        store.tell(plain, [{"id": f"{arm}-{pulls[arm]}", "arm": arm, "values": world.values(arm, pulls[arm])}])
    assert arms == expected


def test_a_clock_that_jumps_back_revives_and_reorders_nothing(
    opened: Callable[[], Campaigns], world: Any, clock: Any
) -> None:
    store, other = opened(), opened()
    id = world.create(store, lease_seconds=60.0)
    ((arm, old),) = asked(store.ask(id, "ann"))
    clock.now += 61.0
    ((_, fresh),) = asked(store.ask(id, "bob"))  # Ann's lease ends here
    clock.now -= 10_000.0
    assert asked(store.ask(id, "bob")) == [(arm, fresh)]
    assert asked(other.ask(id, "ann", 1))[0][1] != old
    times = [event["at"] for event in store.events(id)["events"]]
    assert times == sorted(times)
    # Time goes on from where it was: after another minute Bob's lease is over too.
    clock.now += 59.0
    assert not store.status(id)["open_leases"][0]["expired"]
    clock.now += 2.0
    assert store.status(id)["open_leases"][0]["expired"]
    assert store.tell(id, [{"id": "x", "arm": arm, "values": [0.0, 0.0], "lease": old}])["accepted"] == 1


def test_a_clock_that_jumps_ahead_only_ends_leases_early(store: Campaigns, world: Any, clock: Any) -> None:
    id = world.create(store, lease_seconds=60.0)
    asks = store.ask(id, "ann", 3)["asks"]
    clock.now += 365 * 86400.0
    store.tell(id, [])
    assert store.status(id)["open_leases"] == []
    clock.now -= 365 * 86400.0
    store.tell(id, [world.answer(ask, 1) for ask in asks])  # late, and accepted
    found = store.status(id)
    assert (found["t"], found["waiting"]) == (3, 0)
    assert store.ask(id, "ann")["asks"][0]["arm"] == 3


def test_two_skewed_clocks_do_not_race_each_other(url: str, world: Any) -> None:
    """Each server's time is pulled up to the other's, never past it."""
    now = [1_800_000_000.0]
    with Campaigns(url, clock=lambda: now[0] + 10.0) as ahead, Campaigns(url, clock=lambda: now[0]) as behind:
        id = world.create(ahead, lease_seconds=100.0)
        for k in range(20):
            now[0] += 1.0
            (ahead, behind)[k % 2].tell(id, [{"id": str(k), "arm": k % 6, "values": [0.0, 0.0]}])
        last = ahead.events(id)["events"][-1]["at"]
        assert last <= "2027-01-15T08:00:30.000Z"


def test_a_stop_found_when_a_lease_ends_is_on_record(opened: Callable[[], Campaigns], clock: Any) -> None:
    """Results that waited for a lease can complete the proof when it expires; a replay must stop there too."""
    store = opened()
    id = store.create("x", 3, 2, 1, lease_seconds=60.0, noise=1.0)["id"]
    asks = store.ask(id, "w", 12)["asks"]
    seen: set[int] = set()
    for k, ask in enumerate(asks):
        if ask["arm"] in seen:  # the oldest ask of each arm is never answered
            value = 9.0 * (ask["arm"] == 2) + float(np.random.default_rng(k).normal())
            store.tell(id, [{"id": str(k), "arm": ask["arm"], "values": [value], "lease": ask["lease"]}])
        seen.add(ask["arm"])
    found = store.status(id)
    assert (found["t"], found["waiting"], found["done"]) == (0, 9, False)
    clock.now += 61.0
    assert store.tell(id, [])["done"]
    found = store.status(id)
    assert found["labels"] == [0, 0, 1]
    (stop,) = [event for event in store.events(id)["events"] if event["kind"] == "stopped"]
    assert (stop["by"], stop["t"]) == ("expiry", found["t"])
    assert store.list()[0]["done"]
    assert opened().status(id) == found
    assert opened().certificate(id) == store.certificate(id)
