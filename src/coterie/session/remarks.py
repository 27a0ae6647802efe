"""What a session says beside its proof: the alarm that there are more groups, and whether each group looks like one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Alarm:
    """K is refuted: K + 1 items are pairwise known to differ.

    `arms` are these items, `names` what they are called. If there are K groups and the noise is as stated, an alarm is
    ever raised with probability at most `probability`. `known_noise`: a noise was stated, and may be too small.
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
    """Whether each group looks like one, by the results that counted: `coterie.theory.hidden_groups`.

    `evidence` is that of each group, in the order of `labels`, that its items differ; groups in which it has reached
    `threshold` look mixed: `mixed`, and `members` says which items are in them. If the groups, their number and the
    noise are right, any group looks mixed with probability at most `level`. False if a group looks mixed.
    """

    evidence: tuple[float, ...]
    threshold: float
    level: float
    mixed: tuple[int, ...]
    members: tuple[str, ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return not self.mixed

    def seen(self, numbers: Sequence[int] | None = None) -> str:
        """What was seen; `numbers`: what the groups are called, if not 0, 1, …"""
        if not self.mixed:
            return (
                f"each group looks like one: its measurements differ by no more than chance (tested at {self._rate})."
            )
        called = [f"{k if numbers is None else numbers[k]}" for k in self.mixed]
        which = [f"group {one} (items {items})" for one, items in zip(called, self.members, strict=True)]
        look = "looks mixed: its" if len(which) == 1 else "look mixed: their"
        return f"{listed(which, '; ')} {look} measurements differ by more than chance ({self._rate})."

    @property
    def advice(self) -> str:
        """What it may mean; nothing if no group looks mixed."""
        return MIXED_MEANS if self.mixed else ""

    @property
    def _rate(self) -> str:
        return f"{100.0 * self.level:g} %"

    def __str__(self) -> str:
        return f"{self.seen()} {self.advice}".rstrip()


MIXED_MEANS = "K may be too small, the noise not as stated, or items of a group not exactly alike."

_MANY = 12


def listed(names: Sequence[str], mark: str = ", ") -> str:
    """a, b and c; of many names the first twelve."""
    if len(names) > _MANY:
        return f"{mark.join(names[:_MANY])} and {len(names) - _MANY} more"
    return f"{mark.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
