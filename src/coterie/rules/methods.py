"""The methods by name: which sampling rule, which stopping rule, and what each needs to know beforehand.

The sampling rules themselves are `next_arm` and `settle` in `coterie.engine.steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coterie.engine.state import BOC, LINEAR, ORACLE, UNIFORM
from coterie.problem.checks import short


@dataclass(frozen=True)
class Method:
    """A named pair of a sampling rule and a stopping rule."""

    name: str
    sampling: int
    sentence: str
    needs_ratio: bool = False
    needs_instance: bool = False
    certifies: bool = False


CROC = -1
"""CROC's sampling is not one of the engine's rules for the paper's methods: it has steps of its own."""

METHODS = {
    method.name: method
    for method in (
        Method("croc", CROC, "ours: certified representatives, pools and rounds (docs/CROC.md)", certifies=True),
        Method(
            "boc",
            BOC,
            "Alg. 1: track the optimal allocation of the current guess, with forced exploration",
        ),
        Method(
            "boc-linear",
            LINEAR,
            "Alg. 1 with linear exploration (equation_newsamplingrule): allocation projected on λ ≥ r²/(2M)",
            needs_ratio=True,
        ),
        Method("uniform", UNIFORM, "round robin: the least-pulled arm, lowest index first"),
        Method(
            "oracle",
            ORACLE,
            "track the optimal allocation of the true instance, with forced exploration",
            needs_instance=True,
        ),
    )
}


def method_named(name: Any) -> Method:
    """The method of that name."""
    if not isinstance(name, str):
        raise TypeError(f"the method must be one of {', '.join(METHODS)}, got {short(name)}")
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}: choose one of {', '.join(METHODS)}")
    return METHODS[name]
