"""Worlds whose truth is known, trials run in bulk.

`coterie.simulate` is the name of this package and, by contract, of the function in it: the module can be called, so
that the name means the same whichever was loaded first.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from coterie.simulate.trials import Trials, simulate

__all__ = ["Trials", "simulate"]


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **settings: Any) -> Any:
        return simulate(*args, **settings)

    __signature__ = inspect.signature(simulate)


sys.modules[__name__].__class__ = _CallablePackage
