"""A guess of the groups from running means: K-means–Maximin."""

from __future__ import annotations

from coterie.clustering.maximin import kmeans_maximin

__all__ = ["kmeans_maximin"]
