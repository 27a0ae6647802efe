"""`coterie.theory`, the name of the package in 0.2: what its documentation named still imports, with a warning."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

import coterie
from coterie.evidence.intervals.by_noise import unequal
from coterie.evidence.pair_graphs import letters


@pytest.fixture(autouse=True)
def _unloaded() -> None:
    for name in [name for name in sys.modules if name.split(".")[:2] == ["coterie", "theory"]]:
        del sys.modules[name]


def test_former_modules_import_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"coterie\.evidence\.pair_graphs"):
        former = import_module("coterie.theory.letters")
    assert former.letters is letters
    assert import_module("coterie.theory.hardness").hardness is coterie.hardness
    assert import_module("coterie.theory.intervals.by_noise").unequal is unequal


def test_former_package_hands_on_names() -> None:
    with pytest.warns(DeprecationWarning, match="is now"):
        former = import_module("coterie.theory")
    assert former.threshold is coterie.threshold
    assert former.letters.letters is letters
