"""The benchmarks' peers are methods while these tests run; `tests/conftest.py` keeps them out of all others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def registered_peers() -> Iterator[None]:
    """The peers in the table of methods."""
    from bench.peers import PEERS, register_all
    from coterie.methods import METHODS, unregister

    register_all()
    yield
    for name in PEERS.keys() & METHODS.keys():
        unregister(name)
