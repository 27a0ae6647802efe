"""The former name of `coterie.evidence`: the modules that the documentation of 0.2 named, with a warning."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Any

_HOMES = {
    "allocation": "allocation",
    "alternative": "stopping",
    "evidence": "pairs",
    "hardness": "allocation",
    "hidden_groups": "hidden_groups",
    "homogeneity": "homogeneity",
    "intervals": "intervals",
    "intervals.by_noise": "intervals.by_noise",
    "letters": "pair_graphs",
    "projection": "allocation",
    "thresholds": "stopping",
}

warnings.warn(
    "coterie.theory is now coterie.evidence: import what coterie exports from coterie, and the rest from "
    + ", ".join(f"coterie.evidence.{home}" for home in sorted(set(_HOMES.values()))),
    DeprecationWarning,
    stacklevel=2,
)

# An empty path makes this a package for `import coterie.theory.letters`, which then finds the entries made here.
__path__: list[str] = []
for _name, _home in _HOMES.items():
    sys.modules[f"{__name__}.{_name}"] = import_module(f"coterie.evidence.{_home}")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return sys.modules[f"{__name__}.{name}"]
    return getattr(import_module("coterie.evidence"), name)
