"""The examples in docstrings of what users call: they run, and give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["errors", "estimator", "grouping", "replay"])
def test_examples_run(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"coterie.tables.{module}"))
    assert failed == 0
    assert tried > 0
