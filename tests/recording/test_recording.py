"""Every method does what it did: asks, decisions, stops, groups, certificates and states of the kept recording.

Integers are compared exactly, floats to 1e-9 of their size: another processor may round the last bits differently.
record.py compares all conversations, to the last bit.
"""

from __future__ import annotations

import pytest
from cases import Case
from record import KEPT, chosen, differences, loaded

CASES = chosen(kept=True)
RECORDED = loaded(KEPT)


def test_the_recording_has_all_kept_conversations() -> None:
    assert len(CASES) > 100
    assert sorted(case.name for case in CASES) == sorted(RECORDED)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_conversation_goes_as_it_went(case: Case) -> None:
    assert differences(RECORDED[case.name], case) == []
