"""What is asked: an instance, partitions and when two are the same, the noise model."""

from __future__ import annotations

from coterie.problem.instance import Instance
from coterie.problem.noise import Noise
from coterie.problem.partition import canonical, same_means, same_partition

__all__ = ["Instance", "Noise", "canonical", "same_means", "same_partition"]
