"""What a proof about groups claims and what it rests on, each in one sentence: the words of every door."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.problem.checks import short
from coterie.problem.families import Bounded, Counts, Model, Unknown
from coterie.problem.question import ExactGroups, Question, Resolution, SingleLinkage


def claim_in_words(question: Question, delta: float, height: float | None = None) -> str:
    """What is claimed, and how often it is wrong at most. `height`: h of single linkage, once it is fixed."""
    at = f", with h = {height:g}" if isinstance(question, SingleLinkage) and height is not None else ""
    return f"{question.claim}{at}; wrong with probability at most {delta:g}"


def choices_in_words(
    frozen: Sequence[tuple[Sequence[float], Sequence[float]]],
    choices: Sequence[tuple[int, int, tuple[Sequence[float], Sequence[float]]]],
) -> str:
    """When which resolution was chosen, and which epochs had it.

    `frozen`: (ε, η) of each epoch. `choices`: the number of the first epoch after each, the results before it, (ε, η).
    """
    firsts = [first for first, _, _ in choices]
    parts = []
    if firsts[0] > 0:
        parts.append(f"{_bounds(frozen[0])} {_epochs(0, firsts[0])}")
    for (first, at, chosen), end in zip(choices, [*firsts[1:], len(frozen)], strict=True):
        parts.append(f"{_bounds(chosen)} after {at} result{'' if at == 1 else 's'} {_epochs(first, end)}")
    return "the resolution (alike and apart) was chosen after looking at results: " + "; ".join(parts)


def _bounds(bounds: tuple[Sequence[float], Sequence[float]]) -> str:
    return Resolution(*bounds).bounds


def _epochs(first: int, end: int) -> str:
    """Epochs from `first` on and before `end`."""
    if first == end:
        return "(no epoch)"
    return f"(epoch {first})" if end == first + 1 else f"(epochs {first} to {end - 1})"


def assumption_in_words(noise: Model, question_kind: str) -> str:
    """What is assumed about the results. Only K groups of equal items assume that the items of a group are equal."""
    if question_kind == ExactGroups.kind:
        return noise.assumption
    if not isinstance(noise, Unknown):
        less = "" if noise.exact else ", or vary less (sub-Gaussian),"
        return f"results are Gaussian with exactly the covariance stated{less} and do not depend on one another"
    stated = noise.statement
    if isinstance(stated, Bounded):
        lo, hi = (f"{one[0]:g}" if len(one) == 1 else short(list(one)) for one in (stated.lo, stated.hi))
        return f"results lie between {lo} and {hi} and do not depend on one another; nothing else"
    if isinstance(stated, Counts):
        what = "0 or 1" if stated.trials == 1 else f"a number of successes out of {stated.trials} trials"
        return f"each number of a result is {what}, and all trials are independent, those of different numbers too"
    return noise.assumption


def revisions_in_words(retired: Sequence[int]) -> str:
    """What a certificate promises where something was revised on the way."""
    gone = f"; nothing is promised about the {len(retired)} retired" if retired else ""
    return (
        "what is claimed concerns the items present after the last revision, numbered in the order of `present`"
        f"{gone}. All answers ever given in this run, each at the delta stated with it, are together wrong with "
        "probability at most the largest of these deltas"
    )
