"""What a session was told before its first measurement, by name."""

from __future__ import annotations

from coterie.problem.instance import Instance
from coterie.problem.noise import Noise
from coterie.problem.settings import Settings


class Stated:
    """The settings of a session as attributes of it."""

    settings: Settings

    @property
    def n_arms(self) -> int:
        """M."""
        return self.settings.n_arms

    @property
    def n_clusters(self) -> int:
        """K."""
        return self.settings.n_clusters

    @property
    def dim(self) -> int:
        """d."""
        return self.settings.dim

    @property
    def delta(self) -> float:
        """The error probability allowed."""
        return self.settings.delta

    @property
    def method(self) -> str:
        """The method's name."""
        return self.settings.method

    @property
    def threshold(self) -> str:
        """The threshold's name; it means nothing to a method whose stop is always a proof."""
        return self.settings.threshold

    @property
    def noise(self) -> Noise:
        """The noise as stated."""
        return self.settings.noise

    @property
    def distance_ratio(self) -> float | None:
        """The ratio of distances that the method needs, if it does."""
        return self.settings.distance_ratio

    @property
    def instance(self) -> Instance | None:
        """The truth, for a method that knows it."""
        return self.settings.instance

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the arms are called."""
        return self.settings.names
