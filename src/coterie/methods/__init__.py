"""A table of methods: each is a sampling rule, a stopping rule and what it needs, behind one contract."""

from __future__ import annotations

from coterie.methods.composed import Reading, Tally, compose
from coterie.methods.contract import Decision, Method, MethodError, MethodRun, PanelPull, Pull
from coterie.methods.reports import Evidence, Partial, Weakest
from coterie.methods.start import start
from coterie.methods.table import METHODS, method_named, prepared, register, unregister

__all__ = [
    "METHODS",
    "Decision",
    "Evidence",
    "Method",
    "MethodError",
    "MethodRun",
    "Partial",
    "PanelPull",
    "Pull",
    "Reading",
    "Tally",
    "Weakest",
    "compose",
    "method_named",
    "prepared",
    "register",
    "start",
    "unregister",
]
