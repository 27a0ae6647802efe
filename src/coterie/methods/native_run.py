"""What the runs of the packaged methods have in common: the native engine keeps their state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from coterie.methods.contract import MethodRun
from coterie.methods.croc.run import CrocRun
from coterie.methods.paper.run import Run
from coterie.problem.checks import FloatArray, IntArray

State = TypeVar("State", bound=Run | CrocRun)


class NativeRun(MethodRun, Generic[State]):
    """A run whose state, `_run`, is the engine's."""

    _run: State

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def t(self) -> int:
        return self._run.t

    @property
    def pulls(self) -> IntArray:
        pulls: IntArray = self._run.pulls.astype(np.int64)  # not NumPy's other type of 64 bits
        return pulls

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return (np.asarray(self._run.labels, dtype=np.int64), self._run.centers) if self._run.ready else None

    def memory(self) -> dict[str, Any]:
        return self._run.memory()

    @property
    def memory_bytes(self) -> int:
        return self._run.memory_bytes

    def restore(self, memory: Mapping[str, Any]) -> None:
        self._run.restore(memory)
