"""The engine as a module: its stub says what it has, and a module of other sources is noticed."""

from __future__ import annotations

import shutil
from pathlib import Path

import sources
import stubs

from coterie import _native


def test_the_stub_is_made_from_the_module() -> None:
    assert stubs.PLACE.read_text() == stubs.text(), "make stubs"


def test_an_engine_of_other_sources_is_noticed(tmp_path: Path) -> None:
    assert _native.__file__ is not None
    module = Path(_native.__file__)
    assert sources.fault(module.parent) is None
    assert "make engine" in (sources.fault(tmp_path) or "")
    changed = module.read_bytes().replace(sources.digest().encode(), b"0" * 16)
    (tmp_path / module.name).write_bytes(changed)
    assert "is not from the sources" in (sources.fault(tmp_path) or "")
    shutil.copy(module, tmp_path)
    assert sources.fault(tmp_path) is None
