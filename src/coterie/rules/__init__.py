"""Where to measure next and when to stop; a method is a named pair of the two."""

from __future__ import annotations

from coterie.rules.methods import METHODS, Method, method_named
from coterie.rules.stopping import levels_for

__all__ = ["METHODS", "Method", "levels_for", "method_named"]
