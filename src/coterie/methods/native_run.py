"""What the runs of the packaged methods have in common: the native engine keeps their state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from coterie.methods.contract import MethodRun
from coterie.problem.checks import FloatArray, IntArray


class NativeState(Protocol):
    """What Python sees of a run of the engine, whichever it is."""

    @property
    def done(self) -> bool: ...
    @property
    def t(self) -> int: ...
    @property
    def ready(self) -> bool: ...
    @property
    def pulls(self) -> Any: ...
    @property
    def labels(self) -> Any: ...
    @property
    def centers(self) -> FloatArray: ...
    @property
    def memory_bytes(self) -> int: ...
    def memory(self) -> dict[str, Any]: ...
    def restore(self, memory: Mapping[str, Any]) -> None: ...


State = TypeVar("State", bound=NativeState)


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
