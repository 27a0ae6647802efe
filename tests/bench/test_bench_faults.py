"""The command that counts faults: it runs tests that are there, and adds up what they say."""

from __future__ import annotations

import pytest

from bench.faults import FAULTS, Fault, counted
from bench.part import ROOT


def test_the_tests_that_make_faults_are_there() -> None:
    assert all((ROOT / path).exists() for fault in FAULTS.values() for path in fault.paths)


@pytest.mark.slow
def test_what_tests_say_is_added_up() -> None:
    count = counted(Fault("bent memories", ("tests/engine/test_engine_native_input.py",), "call", "bent"), 1.0)
    assert (count.number, count.tests, count.failed, count.skipped) == (4 * 600, 4, [], 0)
