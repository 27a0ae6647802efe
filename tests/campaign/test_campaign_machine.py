"""Any order of asking, telling, being late, repeating, failing, undoing, expiring, passing on, archiving and reopening,
against a plain model.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coterie.campaign import BadValue, Campaigns, Conflict, NotFound
from coterie.session import Session, conversation
from coterie.session.replaying import checked_revision

pytestmark = pytest.mark.slow  # hundreds of random histories

WORKERS = ("ann", "bob")
LEASE = 60.0


class CampaignMachine(RuleBasedStateMachine):
    """The model: a session driven directly, and dictionaries of what was leased and told."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.now = 1_800_000_000.0  # the clock
        self.time = self.now  # the campaign's time: never goes back
        self.stores = [self._open(), self._open()]
        self.leases: dict[str, dict[str, Any]] = {}  # every lease ever: ticket, arm, worker, expires, state, answer
        self.told: list[dict[str, Any]] = []
        self.before: dict[str, list[list[float]]] = {}  # of measurements that were corrected, what they were
        self.count = 0
        self.lease_seconds = LEASE
        self.late = self.passed_on = 0
        self.times: list[float] = []  # that answers took
        self.surplus: list[dict[str, Any]] = []  # results that do not count
        self.patience = conversation.AHEAD, conversation.BATCHES_AHEAD

    def _open(self) -> Campaigns:
        return Campaigns(self.folder / "store.db", clock=lambda: self.now)

    def teardown(self) -> None:
        conversation.AHEAD, conversation.BATCHES_AHEAD = self.patience
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder)

    @initialize(
        on_expiry=st.sampled_from(["skip", "wait"]),
        method=st.sampled_from(["croc", "croc", "shortlist", "boc"]),
        delta=st.sampled_from([0.3, 1e-4]),
        patient=st.booleans(),
    )
    def create(self, on_expiry: str, method: str, delta: float, patient: bool) -> None:
        if not patient:  # two results ahead, and everybody waits
            conversation.AHEAD, conversation.BATCHES_AHEAD = 1, 0
        self.skips = on_expiry == "skip"
        made = self.stores[0].create(
            "x", 3, 2, 1, delta, method, "heuristic", lease_seconds=LEASE, on_expiry=on_expiry, noise=1.0
        )
        self.id = made["id"]
        self.session = Session(3, 2, 1, delta, method, "heuristic", noise=1.0)

    # What the model knows.

    @property
    def open(self) -> list[str]:
        found = [key for key, lease in self.leases.items() if lease["state"] == "open"]
        return sorted(found, key=lambda key: int(self.leases[key]["ticket"]))

    def _write(self) -> None:
        """What every write does first."""
        self.time = max(self.time, self.now)
        if self.skips:
            for key in self.open:
                if self.leases[key]["expires"] <= self.time:
                    self._forget(key, "expired")

    def _forget(self, key: str, state: str) -> None:
        ticket = self.leases[key]["ticket"]
        self.session.forget(ticket)
        for lease in self.leases.values():
            if lease["ticket"] == ticket:
                lease["state"] = state if lease["state"] == "open" else f"{state} before"

    def _pass_on(self, worker: str) -> str | None:
        """The lease of an ask that is waited for, and passed on to this worker."""
        usual = max(10.0, 2.0 * median(self.times[-201:])) if len(self.times) >= 3 else float("inf")
        for one in self.session.awaited:
            key = next(key for key in self.open if self.leases[key]["ticket"] == one.number)
            its = self.leases[key]
            if self.skips and its["worker"] != worker and its["asked"] + usual <= self.time:
                return key
        return None

    def _answered(self, key: str, answer: str | None) -> None:
        """A lease answers its ask; whoever else holds it is too late."""
        lease = self.leases[key]
        self.late += lease["expires"] <= self.time or lease["state"] == "passed on"
        self.times.append(self.time - lease["asked"])
        for other in self.leases.values():
            if other["ticket"] == lease["ticket"] and other is not lease:
                other["state"] = "taken"
        lease |= {"state": "answered", "answer": answer}

    def _take(self, arm: int, value: float, ticket: int | None) -> None:
        (white,) = self.session.check_results([arm], self._vector(value)[None])
        self.session.absorb(arm, self._vector(value), ticket, white)

    def _check_answer(self, answer: dict[str, Any], one: dict[str, Any]) -> None:
        """Accepted; with a warning if it is more than 8 from the mean of what its arm gave before, and from most."""
        total, earlier = 0.0, [told["values"][0] for told in self.told if told["arm"] == one["arm"]]
        for value in earlier:
            total += value
        far = len(earlier) > 0 and abs(one["values"][0] - total / len(earlier)) > 8.0
        far = far and 2 * sum(abs(one["values"][0] - value) <= 8.0 for value in earlier) < len(earlier)
        assert [warning["id"] for warning in answer.pop("warnings", [])] == [one["id"]] * far
        assert answer == {"accepted": 1, "duplicates": 0, "done": self.session.done}

    @staticmethod
    def _vector(value: float) -> Any:
        import numpy as np

        return np.array([value])

    # What can happen.

    stores_ = st.integers(0, 1)
    values_ = st.floats(-8, 8)

    @rule(
        at=stores_,
        changes=st.sampled_from([{"add": 1}, {"retire": [0]}, {"retire": [2]}, {"n_clusters": 3}, {"delta": 1e-6}]),
    )
    def revise(self, at: int, changes: dict[str, Any]) -> None:
        """Items join or are retired, K is raised, δ lowered; also once it is done."""
        assume(self.session.n_arms < 6 or "add" not in changes)
        try:
            checked_revision(self.session, *(changes.get(key) for key in ("add", "retire", "n_clusters", "delta")))
        except ValueError:
            with pytest.raises((BadValue, Conflict)):
                self.stores[at].revise(self.id, **changes)
            return
        ended = self.session.done
        answer = self.stores[at].revise(self.id, **changes)
        if not ended:
            self._write()
        self.session.revise(**changes)
        assert (answer["done"], answer["t"]) == (self.session.done, self.session.t)
        assert answer["items"] == len(self.session.items.present)

    @rule(at=stores_, worker=st.sampled_from(WORKERS), n=st.integers(1, 3))
    def ask(self, at: int, worker: str, n: int) -> None:
        answer = self.stores[at].ask(self.id, worker, n)
        self._write()
        ended: bool = self.session.done
        if ended:
            assert answer == {"done": True, "asks": [], "waiting_for": []}
            return
        own = [k for k in self.open if self.leases[k]["worker"] == worker]
        expected = [k for k in own if not self.skips or self.leases[k]["expires"] > self.time][:n]
        for key in expected:
            if self.leases[key]["expires"] <= self.time:
                self.leases[key] |= {"expires": self.time + self.lease_seconds, "asked": self.time}
        fresh: list[tuple[int, int]] = []
        while len(expected) + len(fresh) < n:
            opened = self.session.open(1, wanted=n - len(expected) - len(fresh))
            if not opened:
                passed = None if self.session.done else self._pass_on(worker)
                if passed is None:
                    break
                self.leases[passed]["state"] = "passed on"
                self.passed_on += 1
                lease = {"ticket": self.leases[passed]["ticket"], "arm": self.leases[passed]["arm"], "worker": worker}
                key = answer["asks"][len(expected) + len(fresh)]["lease"]
                assert key not in self.leases
                self.leases[key] = lease | {
                    "asked": self.time, "expires": self.time + self.lease_seconds, "state": "open", "answer": None,
                }  # fmt: skip
                fresh.append((lease["ticket"], lease["arm"]))
                continue
            fresh.append((opened[0].number, opened[0].arm))
        if answer["done"]:
            assert self.session.done
            given = [one for one in self.stores[at].status(self.id)["open_leases"] if one["lease"] not in self.leases]
        else:
            assert [ask["lease"] for ask in answer["asks"]][: len(expected)] == expected
            given = answer["asks"][len(expected) :]
            awaited = [] if len(answer["asks"]) == n else [one.arm for one in self.session.awaited]
            assert [one["arm"] for one in answer["waiting_for"]] == awaited
        assert [ask["arm"] for ask in given] == [arm for _, arm in fresh]
        for ask, (ticket, arm) in zip(given, fresh, strict=True):
            if ask["lease"] in self.leases:  # it was passed on
                assert self.leases[ask["lease"]]["ticket"] == ticket
                continue
            self.leases[ask["lease"]] = {
                "ticket": ticket, "arm": arm, "worker": worker, "expires": self.time + self.lease_seconds,
                "asked": self.time, "state": "open", "answer": None,
            }  # fmt: skip

    @rule(at=stores_, value=values_, data=st.data())
    def tell_of_a_lease(self, at: int, value: float, data: st.DataObject) -> None:
        """In time, late, or of a lease that failed."""
        keys = [key for key, lease in self.leases.items() if lease["answer"] is None]
        assume(keys)
        self.tell_key(at, data.draw(st.sampled_from(keys)), value)

    def tell_key(self, at: int, key: str, value: float) -> None:
        lease = self.leases[key]
        self.count += 1
        one = {"id": f"m{self.count}", "arm": lease["arm"], "values": [value], "lease": key}
        taken = lease["state"] == "taken"
        answer = self.stores[at].tell(self.id, [one])
        self._write()
        if taken:
            assert [late["id"] for late in answer.pop("not_counted")] == [one["id"]]
            assert answer == {"accepted": 1, "duplicates": 0, "done": self.session.done}
            lease["answer"] = one["id"]
            self.surplus.append(one)
            self.late += 1
            return
        on_time = lease["state"] in ("open", "passed on")
        self.late += lease["state"] in ("expired", "expired before")
        self._take(lease["arm"], value, lease["ticket"] if on_time else None)
        if on_time:
            self._answered(key, one["id"])
        self._check_answer(answer, one)
        self.told.append(one)

    @rule(at=stores_, arm=st.integers(0, 2), value=values_)
    def tell_unasked(self, at: int, arm: int, value: float) -> None:
        self.count += 1
        one = {"id": f"m{self.count}", "arm": arm, "values": [value], "worker": "nobody"}
        answer = self.stores[at].tell(self.id, [one])
        self._write()
        self._take(arm, value, None)
        self._check_answer(answer, one)
        self.told.append(one)

    @rule(at=stores_, value=values_, data=st.data())
    def tell_without_naming_the_lease(self, at: int, value: float, data: st.DataObject) -> None:
        assume(self.open)
        arm = self.leases[data.draw(st.sampled_from(self.open))]["arm"]
        self.count += 1
        one = {"id": f"m{self.count}", "arm": arm, "values": [value]}
        self.stores[at].tell(self.id, [one])
        self._write()
        key = next((key for key in self.open if self.leases[key]["arm"] == arm), None)
        self._take(arm, value, None if key is None else self.leases[key]["ticket"])
        if key is not None:
            self._answered(key, None)  # a result that names it is another one
        self.told.append(one)

    @precondition(lambda self: self.told)
    @rule(at=stores_, data=st.data())
    def tell_again(self, at: int, data: st.DataObject) -> None:
        answer = self.stores[at].tell(self.id, [data.draw(st.sampled_from(self.told + self.surplus))])
        self._write()
        assert answer == {"accepted": 0, "duplicates": 1, "done": self.session.done}

    @precondition(lambda self: self.told)
    @rule(at=stores_, data=st.data(), value=values_)
    def tell_something_else(self, at: int, data: st.DataObject, value: float) -> None:
        one = data.draw(st.sampled_from(self.told))
        assume([value] not in (one["values"], *self.before.get(one["id"], [])))
        fresh = {"id": "fresh", "arm": 0, "values": [0.0]}
        with pytest.raises(Conflict, match="on record with another content"):
            self.stores[at].tell(self.id, [fresh, {**one, "values": [value]}])

    @precondition(lambda self: self.told)
    @rule(at=stores_, value=values_, data=st.data())
    def correct(self, at: int, value: float, data: st.DataObject) -> None:
        """Of any result, counted or not, before the stop or after it; the model corrects its session."""
        row = data.draw(st.integers(0, len(self.told) - 1))
        one = self.told[row]
        answer = self.stores[at].correct(self.id, one["id"], [value], "typed wrong", "ann")
        self.time = max(self.time, self.now)  # nothing expires by it
        made = self.session.correct(row, [value], "typed wrong", "ann")
        assert answer["corrected"] == (made is not None)
        assert answer["reopened"] == (made is not None and made.reopened)
        assert answer["done"] == self.session.done
        if made is not None:
            assert answer["old"] == one["values"] == list(made.old)
            self.before.setdefault(one["id"], []).append(one["values"])
            self.told[row] = {**one, "values": [value]}
        again = self.stores[1 - at].correct(self.id, one["id"], [value], "typed wrong", "ann")
        assert not again["corrected"]

    @precondition(lambda self: self.before)
    @rule(at=stores_, data=st.data())
    def tell_again_what_was_told_first(self, at: int, data: st.DataObject) -> None:
        """A client that has not heard of the correction sends its result again."""
        name = data.draw(st.sampled_from(sorted(self.before)))
        one = next(one for one in self.told if one["id"] == name)
        answer = self.stores[at].tell(self.id, [{**one, "values": self.before[name][0]}])
        self._write()
        assert answer == {"accepted": 0, "duplicates": 1, "done": self.session.done}

    @rule(at=stores_, data=st.data())
    def answer_a_lease_twice(self, at: int, data: st.DataObject) -> None:
        keys = [key for key, lease in self.leases.items() if lease["answer"] is not None]
        assume(keys)
        key = data.draw(st.sampled_from(keys))
        with pytest.raises(Conflict, match=f"lease {key} was answered"):
            self.stores[at].tell(
                self.id, [{"id": "other", "arm": self.leases[key]["arm"], "values": [0.0], "lease": key}]
            )

    @rule(at=stores_)
    def tell_of_an_unknown_lease(self, at: int) -> None:
        with pytest.raises(NotFound):
            self.stores[at].tell(self.id, [{"id": "other", "arm": 0, "values": [0.0], "lease": "nobody's"}])

    @rule(at=stores_, data=st.data())
    def fail(self, at: int, data: st.DataObject) -> None:
        assume(self.open)
        key = data.draw(st.sampled_from(self.open))
        assert self.stores[at].fail(self.id, key, "broken")["freed"]
        self._write()
        if self.leases[key]["state"] == "open":  # it may have expired just before
            self._forget(key, "failed")

    @rule(at=stores_, data=st.data())
    def undo(self, at: int, data: st.DataObject) -> None:
        assume(self.open)
        key = data.draw(st.sampled_from(self.open))
        answer = self.stores[at].undo(self.id, key, "not begun")
        self._write()
        if self.leases[key]["state"] == "open":
            self._forget(key, "undone")
        assert answer["ended"] == self.leases[key]["state"]

    @rule(at=stores_, seconds=st.sampled_from([20.0, LEASE, 300.0]))
    def change_lease_time(self, at: int, seconds: float) -> None:
        answer = self.stores[at].change_lease_time(self.id, seconds)
        assert answer == {
            "changed": seconds != self.lease_seconds,
            "lease_seconds": seconds,
            "before": self.lease_seconds,
        }
        if answer["changed"]:
            self.time = max(self.time, self.now)
        self.lease_seconds = seconds

    @rule(at=stores_)
    def archive_and_take_up_again(self, at: int) -> None:
        self.stores[at].archive(self.id)
        self.time = max(self.time, self.now)
        for store in self.stores:
            with pytest.raises(Conflict, match="archived"):
                store.ask(self.id, WORKERS[0])
            assert store.list() == []
        self.stores[1 - at].unarchive(self.id)

    @rule(seconds=st.sampled_from([1.0, 30.0, 61.0, 1e6]))
    def time_passes(self, seconds: float) -> None:
        self.now = max(self.now, self.time) + seconds

    @rule(at=stores_)
    def reopen(self, at: int) -> None:
        self.stores[at].close()
        self.stores[at] = self._open()

    # What must hold.

    @invariant()
    def the_store_is_what_the_model_is(self) -> None:
        if not hasattr(self, "id"):
            return
        session = self.session
        for store in self.stores:
            found = store.status(self.id)
            assert found["done"] == session.done
            assert found["t"] == session.t
            assert found["pulls"] == session.pulls.tolist()
            assert found["waiting"] == session.waiting
            assert found["labels"] == (None if session.labels is None else session.labels.tolist())
            assert found["measurements"] == len(self.told)
            assert len(found["corrections"]) == sum(map(len, self.before.values())) == len(session.corrections)
            assert [one["lease"] for one in found["open_leases"]] == self.open
            assert [one["worker"] for one in found["open_leases"]] == [self.leases[k]["worker"] for k in self.open]
            assert [list(pair) for pair in session.pending] == [
                [self.leases[key]["ticket"], self.leases[key]["arm"]] for key in self.open
            ]
            missed = found["failures"]
            states = [lease["state"] for lease in self.leases.values()]
            assert {kind: missed[kind] for kind in ("failed", "expired", "undone", "late")} == {
                **{kind: states.count(kind) for kind in ("failed", "undone")},
                "expired": states.count("expired") + self.passed_on,
                "late": self.late,
            }
            assert missed["asked"] == len({lease["ticket"] for lease in self.leases.values()})
            assert missed["passed_on"] == self.passed_on
            assert sum(one["failed"] for one in missed["items"]) == states.count("failed")
            assert sum(one["expired"] for one in missed["workers"]) == missed["expired"]
            assert found["lease_seconds"] == self.lease_seconds
        rows = self.stores[0].measurements(self.id)["measurements"]
        assert [(row["id"], row["arm"], row["values"]) for row in rows] == [
            (one["id"], one["arm"], one["values"]) for one in self.told
        ]
        assert sum(row["counted"] for row in rows) == session.t


TestCampaignMachine = CampaignMachine.TestCase
TestCampaignMachine.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def test_passing_on_against_the_model() -> None:
    """Ann takes items and leaves, now and then she comes back: asks are passed on, which is rare otherwise."""
    passed_on = surplus = firsts = 0
    for seed in range(6):
        rng, machine = random.Random(seed), CampaignMachine()
        try:
            machine.create("skip", ("croc", "croc", "shortlist")[seed % 3], 1e-6, False)
            machine.change_lease_time(0, 300.0)
            for _ in range(110):
                what, at = rng.random(), rng.randrange(2)
                held = {
                    state: [
                        key for key, one in machine.leases.items() if (one["state"], one["answer"]) == (state, None)
                    ]
                    for state in ("open", "passed on", "taken")
                }
                bobs = [key for key in held["open"] if machine.leases[key]["worker"] == "bob"]
                if machine.session.done:
                    break
                if held["passed on"] and rng.random() < 0.3:
                    machine.tell_key(at, rng.choice(held["passed on"]), rng.gauss(0.0, 1.0))
                    firsts += 1
                elif what < 0.4:
                    machine.ask(at, "ann" if what < 0.06 else "bob", 1)
                elif what < 0.7 and bobs:
                    machine.tell_key(at, rng.choice(bobs), rng.gauss(0.0, 1.0))
                elif what < 0.85 and held["taken"]:
                    machine.tell_key(at, rng.choice(held["taken"]), rng.gauss(0.0, 1.0))
                elif what < 0.98:
                    machine.time_passes(rng.choice([2.0, 12.0]))
                else:
                    machine.reopen(at)
                machine.the_store_is_what_the_model_is()
            passed_on, surplus = passed_on + machine.passed_on, surplus + len(machine.surplus)
        finally:
            machine.teardown()
    assert min(passed_on, surplus, firsts) >= 3, (passed_on, surplus, firsts)
