"""Worlds whose truth is known, trials run in bulk."""

from __future__ import annotations

from coterie.simulate.trials import Trials, simulate

__all__ = ["Trials", "simulate"]
