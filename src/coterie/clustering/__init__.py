"""A guess of the groups from running means: K-means–Maximin, and the best of several starts that CROC needs."""

from __future__ import annotations

from coterie.clustering.maximin import kmeans_maximin
from coterie.clustering.starts import best_groups

__all__ = ["best_groups", "kmeans_maximin"]
