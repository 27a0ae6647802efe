"""The benchmarks are not installed with the package: they are found from the repository's root.

Their peers are methods while these tests run; `tests/conftest.py` keeps them out of all others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)


@pytest.fixture(autouse=True)
def registered_peers() -> Iterator[None]:
    """The peers in the table of methods."""
    from bench.peers import PEERS, register_all
    from coterie.methods import METHODS, unregister

    register_all()
    yield
    for name in PEERS.keys() & METHODS.keys():
        unregister(name)
