"""The engine behind a session, for tests that look inside."""

from __future__ import annotations

from coterie import Session
from coterie.engine.croc.run import CrocRun
from coterie.engine.state import BOC, LINEAR, ORACLE, UNIFORM
from coterie.methods.croc import CrocMethodRun

SAMPLING = {"boc": BOC, "boc-linear": LINEAR, "uniform": UNIFORM, "oracle": ORACLE}
"""The engine's numbers of the paper's sampling rules."""


def croc_run(session: Session) -> CrocRun:
    run = session._conversation.run
    assert isinstance(run, CrocMethodRun)
    return run._run
