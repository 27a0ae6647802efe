"""The paper's methods. Here: the numbers by which Python and the engine know sampling rules and entries of a script."""

from __future__ import annotations

BOC, LINEAR, UNIFORM, ORACLE = 0, 1, 2, 3
"""Sampling rules (`Rule` in native/paper/run.hpp)."""

UNASKED, ASKED, ASK, FORGET = 0, 1, 2, 3
"""Entries of a script: a result nobody asked for, one that was asked for, an ask, a pull given up (`Entry` there)."""
