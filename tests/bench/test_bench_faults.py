"""The command that counts faults: it runs tests that are there, and adds up what they say."""

from __future__ import annotations

import pytest

from bench import faults
from bench.faults import FAULTS, Count, Fault, counted
from bench.part import ROOT


def test_the_tests_that_make_faults_are_there() -> None:
    assert all((ROOT / path).exists() for fault in FAULTS.values() for path in fault.paths)


@pytest.mark.slow
def test_what_tests_say_is_added_up() -> None:
    count = counted(Fault("bent memories", ("tests/engine/test_engine_native_input.py",), "call", "bent"), 1.0)
    assert (count.number, count.tests, count.failed, count.skipped) == (4 * 600, 4, [], 0)


def test_a_kind_of_which_nothing_was_done_has_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, ended in ((3, 0), (0, 1)):
        monkeypatch.setattr("sys.argv", ["faults", "copies"])
        monkeypatch.setattr(faults, "counted", lambda *_, number=number: Count(number, 1, [], 1, 2.0))
        assert faults.main() == ended
    assert "copies: nothing was done" in capsys.readouterr().err
