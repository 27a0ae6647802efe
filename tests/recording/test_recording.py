"""The five methods do what they did: arms, stops, groups and certificates of a kept recording.

Integers are compared exactly. Floats are compared to 1e-9 of their size: another processor or another release of numba
may round the last bits differently.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))

from record import METHODS, cases

KEPT: dict[str, Any] = json.loads((Path(__file__).parent / "recording.json").read_text())


def assert_alike(found: Any, kept: Any, place: str) -> None:
    if isinstance(kept, dict):
        kept = {key: value for key, value in kept.items() if key != "homogeneity"}  # another rule since: its own tests
        assert found.keys() == kept.keys(), place
        for key in kept:
            assert_alike(found[key], kept[key], f"{place}, {key}")
    elif isinstance(kept, list):
        assert len(found) == len(kept), place
        for i, (one, other) in enumerate(zip(found, kept, strict=True)):
            assert_alike(one, other, f"{place}[{i}]")
    elif isinstance(kept, float):
        assert found == pytest.approx(kept, rel=1e-9, abs=1e-9), place
    else:
        assert found == kept, place


@pytest.mark.parametrize("method", METHODS)
def test_runs_equal_the_recording(method: str) -> None:
    names = [name for name in KEPT if name.startswith(f"{method},")]
    known = dict(cases())
    assert len(names) == sum(name.startswith(f"{method},") for name in known) > 10
    for name in names:
        assert_alike(json.loads(json.dumps(known[name]())), KEPT[name], name)
