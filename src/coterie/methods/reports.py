"""How far a run is: the evidence that its stopping rule reads, and what is proven about pairs of items so far."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.problem.checks import IntArray


@dataclass(frozen=True)
class Weakest:
    """What holds the stop up.

    For the paper's methods: the alternative that fits best, in which an arm moves to another group. For CROC: the unmet
    test with the largest deficit.

    Parameters
    ----------
    arm, group
        The arm, and the group that it moves to, or that it is tested against.
    statistic
        The evidence.
    threshold
        The level that it has to reach.
    against
        The representative of the group, if the test is of two arms.
    pulls_left
        A forecast of the pulls still needed in all.
    """

    arm: int
    group: int
    statistic: float
    threshold: float | None = None
    against: int | None = None
    pulls_left: float | None = None


@dataclass(frozen=True)
class Evidence:
    """What the stopping rule reads: it stops when `statistic` reaches `threshold`.

    For the paper's methods they are Z and β (or β̃). For CROC they are those of the weakest test: the run stops when
    every test has reached its level.

    Parameters
    ----------
    statistic, threshold
        What is compared.
    weakest
        What holds the stop up; None if that is not known.
    """

    statistic: float
    threshold: float
    weakest: Weakest | None


TESTS, BOUNDS, LINKS, STATISTIC = "tests", "bounds", "links", "statistic"
"""Ways in which runs go: K groups by tests; up to a resolution; by single linkage; one statistic to a threshold."""


@dataclass(frozen=True)
class Standing:
    """How many of the claims that a proof needs are proven by now, and what is known about the work that is left.

    Parameters
    ----------
    proven, needed
        Claims that are proven, of those that a proof needs.
    settled
        Items all of whose claims are proven.
    left
        The rule's own, rough forecast of the results still needed; None where it has none, or `MethodRun.forecast` has
        it.
    worked
        Of the evidence that is needed, the share that is there, in [0, 1], by the weakest claim of each item.
    spent
        Results since these claims were fixed; 0 while none are.
    course
        The way in which this run goes, one of those above, by which `left` is corrected from simulated runs; None: it
        is taken as it is.
    """

    proven: int
    needed: int
    settled: int
    left: float | None = None
    worked: float = 0.0
    spent: int = 0
    course: str | None = None


@dataclass(frozen=True)
class Partial:
    """What is proven about pairs of items at this moment; `coterie.session.partial` has what it rests on.

    Attributes
    ----------
    apart : sequence of pairs
        Pairs (low, high) proven to be in different groups (for a resolution: more than ε apart), each once.
    alike : sequence of pairs
        Pairs proven to be in one group (for a resolution: within η of each other).
    possible : sequence
        For each item the groups, as numbers of `labels`, that it may still belong to (for a resolution: whose reference
        may be within η); empty while there is no guess.
    letters : sequence of str
        A compact letter display: items that share a letter are not proven apart.
    labels : array or None
        The groups, or the guess of them.
    representatives : tuple of int
        An item for each group, in the order of `labels`.
    differ : tuple of pairs
        The pairs of `apart` of an item with a representative, (item, representative), that have evidence of their own,
        whatever K is.
    settled, undecided : tuple of int
        Items proven to belong with the representative of their group, if there are K groups; and the others.
    error : float
        Anything that is listed here, at this or any earlier moment, is wrong with probability at most this.
    """

    representatives: tuple[int, ...]
    differ: tuple[tuple[int, int], ...]
    labels: IntArray | None
    settled: tuple[int, ...]
    undecided: tuple[int, ...]
    apart: tuple[tuple[int, int], ...] = ()
    alike: tuple[tuple[int, int], ...] = ()
    possible: tuple[tuple[int, ...], ...] = ()
    letters: tuple[str, ...] = ()
    error: float = 1.0
