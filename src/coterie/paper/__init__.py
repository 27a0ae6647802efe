"""The paper's data sets, tables and figures ("Optimal Clustering with Bandit Feedback", JMLR 25, 2024)."""

from __future__ import annotations

from coterie.paper import datasets

__all__ = ["datasets"]
