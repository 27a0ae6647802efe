"""A registered method that breaks the contract gets an error that names it, and the campaign loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from coterie.campaign import Campaigns, Conflict
from coterie.methods import Pull, compose, register, unregister

BROKEN = {"arm": 0}


def chooses(tally: Any) -> Any:
    """Arms in turn, until somebody says otherwise."""
    return BROKEN["arm"] if BROKEN["arm"] else tally.t % tally.n_arms


@pytest.fixture
def method() -> Iterator[str]:
    register(compose("breaks", sampling=chooses))
    BROKEN["arm"] = 0
    yield "breaks"
    unregister("breaks")


@pytest.mark.parametrize(("arm", "said"), [(99, "asked for arm 99: the arms are 0 to 3"), ("x", "gave no integer")])
def test_a_method_that_breaks_the_contract_loses_nothing(
    arm: Any, said: str, method: str, opened: Callable[[], Campaigns]
) -> None:
    store = opened()
    id = store.create("x", 4, 2, 1, method=method, noise=1.0)["id"]
    for k in range(8):
        (ask,) = store.ask(id, "w")["asks"]
        store.tell(id, [{"id": str(k), "arm": ask["arm"], "values": [float(k)], "lease": ask["lease"]}])
    before, events = store.status(id), store.events(id)
    BROKEN["arm"] = arm
    for one in (store, opened()):
        with pytest.raises(Conflict, match=f"method 'breaks' {said}") as caught:
            one.ask(id, "w")
        assert caught.value.code == "method_error"
    BROKEN["arm"] = 0
    assert store.status(id) == before == opened().status(id)
    assert store.events(id) == events
    assert store.ask(id, "w")["asks"][0]["arm"] == 8 % 4


def test_asks_with_a_round_are_pulls() -> None:
    assert Pull(3) == (3, 0)
