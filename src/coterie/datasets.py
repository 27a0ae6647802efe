"""The paper's data sets under their public name: `coterie.datasets` (they live in `coterie.paper.datasets`)."""

from __future__ import annotations

from coterie.paper.datasets import IRIS_CLASSES, YEAST_CLASSES, distance_ratio, iris, mnist, synthetic, yeast

__all__ = ["IRIS_CLASSES", "YEAST_CLASSES", "distance_ratio", "iris", "mnist", "synthetic", "yeast"]
