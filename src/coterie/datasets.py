"""The paper's data sets, and ratings of films, under their public name: `coterie.datasets` (they live in
`coterie.paper`)."""

from __future__ import annotations

from coterie.paper.datasets import IRIS_CLASSES, YEAST_CLASSES, distance_ratio, iris, mnist, synthetic, yeast
from coterie.paper.movielens import movielens

__all__ = ["IRIS_CLASSES", "YEAST_CLASSES", "distance_ratio", "iris", "mnist", "movielens", "synthetic", "yeast"]
