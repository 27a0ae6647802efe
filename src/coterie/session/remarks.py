"""What a session says beside its proof: the alarm that there are more groups, and whether each group looks like one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Alarm:
    """K is refuted: K + 1 items are pairwise known to differ.

    Parameters
    ----------
    arms, names : tuple of int and tuple of str
        These items, and what they are called.
    n_clusters, n_arms : int
        K, and how many items there are.
    probability : float
        If there are K groups and the noise is as stated, an alarm is ever raised with at most this probability.
    known_noise : bool
        A noise was stated, and may be too small.
    """

    arms: tuple[int, ...]
    n_clusters: int
    probability: float
    n_arms: int
    names: tuple[str, ...] | None = None
    known_noise: bool = True

    @property
    def seen(self) -> str:
        """What was seen."""
        items = listed([str(arm) for arm in self.arms] if self.names is None else self.names)
        return (
            f"K = {self.n_clusters} is refuted: items {items} are pairwise known to differ, so there are at least "
            f"{len(self.arms)} groups (wrong with probability at most {self.probability:g})."
        )

    @property
    def advice(self) -> str:
        """What to do."""
        larger = (
            "state larger noise if single measurements vary more than stated."
            if self.known_noise
            else "state less about the noise if it is not as stated."
        )
        if len(self.arms) >= self.n_arms:
            return f"No two items are alike, so there is nothing to group; or {larger}"
        return f"Start again with n_clusters of at least {len(self.arms)}, or {larger}"

    def __str__(self) -> str:
        return f"{self.seen} {self.advice}"


@dataclass(frozen=True)
class Homogeneity:
    """Whether each group looks like one, by the results that counted (`coterie.evidence.hidden_groups`): False if not.

    Parameters
    ----------
    evidence : tuple of float
        Of each group, in the order of `labels`, that its items differ.
    threshold, level : float
        A group whose evidence reaches the threshold looks mixed. If the groups, their number and the noise are right,
        any does with probability at most `level`.
    mixed, members : tuple of int and tuple of str
        The groups that look mixed, and which items are in them.
    confirmed : int, optional
        With the setting `confirm`, once all is measured: the measurements after the proof.
    visible : tuple of float, optional
        For each number of a result the difference between two halves of a group that would have been seen with a
        probability of about 0.9, in the units of the measurements (an estimate; None if no group has two items).
    """

    evidence: tuple[float, ...]
    threshold: float
    level: float
    mixed: tuple[int, ...]
    members: tuple[str, ...] = field(default=(), repr=False)
    confirmed: int | None = None
    visible: tuple[float, ...] | None = None

    def __bool__(self) -> bool:
        return not self.mixed

    def seen(self, numbers: Sequence[int] | None = None) -> str:
        """What was seen; `numbers`: what the groups are called, if not 0, 1, …"""
        if not self.mixed:
            looks = (
                f"each group looks like one: its measurements differ by no more than chance (tested at {self._rate})."
            )
            return f"{looks} {self._would}" if self._would else looks
        called = [f"{k if numbers is None else numbers[k]}" for k in self.mixed]
        which = [f"group {name} (items {items})" for name, items in zip(called, self.members, strict=True)]
        look = "looks mixed: its" if len(which) == 1 else "look mixed: their"
        return f"{listed(which, '; ')} {look} measurements differ by more than chance ({self._rate})."

    @property
    def advice(self) -> str:
        """What it may mean; nothing if no group looks mixed."""
        return MIXED_MEANS if self.mixed else ""

    @property
    def _would(self) -> str:
        """Which difference would have been seen."""
        if self.confirmed is None or self.visible is None:
            return ""
        if not any(size < math.inf for size in self.visible):
            return f"The {self.confirmed} measurements after the proof are too few to notice a group that hides two."
        sizes = ", ".join(f"{size:.2g}" if size < math.inf else "none" for size in self.visible)
        where = "" if len(self.visible) == 1 else " (number by number)"
        return (
            f"With the {self.confirmed} measurements after the proof, a group that hides two would have been noticed "
            f"in about 9 of 10 runs if they differ by {sizes}{where}."
        )

    @property
    def _rate(self) -> str:
        return f"{100.0 * self.level:g} %"

    def __str__(self) -> str:
        return f"{self.seen()} {self.advice}".rstrip()


def confirming_words(counted: int, wanted: int) -> str:
    """How far the measurements after the proof are."""
    return f"{counted} of {wanted} measurements after the proof, to see whether a group hides two"


MIXED_MEANS = "K may be too small, the noise not as stated, or items of a group not exactly alike."

_MANY = 12


def listed(names: Sequence[str], mark: str = ", ") -> str:
    """a, b and c; of many names the first twelve."""
    if len(names) > _MANY:
        return f"{mark.join(names[:_MANY])} and {len(names) - _MANY} more"
    return f"{mark.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
