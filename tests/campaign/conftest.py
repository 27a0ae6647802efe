"""Stores to test on: a SQLite file, a database on a real PostgreSQL (tests/conftest.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.campaign import Campaigns

CENTERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def empty_store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres").new_database())


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    return empty_store(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store in a database."""
    return empty_store(request.param, request, tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(url: str, clock: Clock) -> Iterator[Callable[[], Campaigns]]:
    """Opens the store, as often as it is called; each time like another process."""
    stores: list[Campaigns] = []

    def open_store() -> Campaigns:
        stores.append(Campaigns(url, clock=clock))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Campaigns]) -> Campaigns:
    return opened()


@pytest.fixture
def world() -> World:
    return World()


class World:
    """Six items in three groups; the k-th measurement of an item is always the same."""

    n_arms, n_clusters, dim = 6, 3, 2

    def values(self, arm: int, k: int) -> list[float]:
        values: list[float] = (CENTERS[arm % 3] + np.random.default_rng([arm, k]).normal(size=2)).tolist()
        return values

    def create(self, store: Campaigns, **more: Any) -> str:
        return str(store.create("world", self.n_arms, self.n_clusters, self.dim, **{"noise": 1.0, **more})["id"])

    def answer(self, ask: dict[str, Any], k: int, **more: Any) -> dict[str, Any]:
        """A result for an ask, as the k-th measurement of its arm."""
        arm = ask["arm"]
        return {"id": f"{arm}-{k}", "arm": arm, "values": self.values(arm, k), "lease": ask["lease"], **more}

    def run(self, store: Campaigns, id: str, worker: str = "w", stop_after: int | None = None) -> list[int]:
        """Ask and tell, one at a time, until it is done; the arms in order."""
        pulls = dict.fromkeys(range(self.n_arms), 0)
        for one in store.measurements(id)["measurements"]:
            pulls[one["arm"]] += 1
        arms: list[int] = []
        while stop_after is None or len(arms) < stop_after:
            answer = store.ask(id, worker)
            if answer["done"]:
                break
            (ask,) = answer["asks"]
            pulls[ask["arm"]] += 1
            store.tell(id, [self.answer(ask, pulls[ask["arm"]])])
            arms.append(ask["arm"])
        return arms
