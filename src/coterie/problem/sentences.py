"""What a proof claims and what it rests on, each in one sentence, for runs and for finished tables.

Every interface and every certificate uses these words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from coterie.problem.checks import short
from coterie.problem.families import Bounded, Counts, Model, Unknown, bounds_variance, trials_of
from coterie.problem.features import ABOUT_HOLES, HOLES
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups, Question, Resolution, SingleLinkage

PAIRS_SHARE = 0.2
"""α: the share of δ that CROC spends on pairs from the start, for a known noise and a bounded variance."""


def claim_in_words(question: Question, delta: float, height: float | None = None) -> str:
    """What is claimed, and how often it is wrong at most. `height`: h of single linkage, once it is fixed."""
    at = f", with h = {height:g}" if isinstance(question, SingleLinkage) and height is not None else ""
    return f"{question.claim}{at}; wrong with probability at most {delta:g}"


def groups_in_words(n_clusters: int, at_least: bool, against: str | None = None, after: str = "") -> str:
    """What a proof of K groups says, in a clause: what holds whatever the number of groups is, and what if it is K.

    Parameters
    ----------
    n_clusters
        K, the number of groups that was stated.
    at_least
        Whether it is proven without K that there are at least K groups. CROC proves it, by pairs and by its frozen
        tests (docs/CROC.md, section 10: Lemma 5 is on all partitions into at most K groups); a list of partitions and
        the paper's rules do not.
    against
        What in the data speaks against K, if anything does: then likeness is not called proven.
    after
        What follows the word "proven", such as " after 40 measurements".

    Returns
    -------
    str
        The clause, without a full stop.
    """
    least = f"proven{after}: at least {n_clusters} groups; "
    if against is not None:
        return f"{least if at_least else ''}not proven: that the items of a group are alike, since {against}"
    claim = ExactGroups(n_clusters).claim
    return f"{least}and {claim}" if at_least else f"proven{after}: {claim}"


def error_in_words(
    n_arms: int, n_clusters: int, delta: float, noise: Model, at_least: bool, by_feature: bool = False
) -> str:
    """How often what `groups_in_words` says is wrong at most; `by_feature`: features are measured one by one."""
    wrong = f"wrong with probability at most {delta:g}"
    without = delta if by_feature else error_without_number(n_arms, n_clusters, delta, noise)
    if not at_least or without <= delta:
        return wrong
    shown = f"{without:.2g}"
    if float(shown) <= delta:  # nearly the same: three digits tell them apart, rounded up
        shown = f"{1.005 * without:.3g}"
    return f"{wrong}, or {shown} if there are fewer than {n_clusters}"


def error_without_number(n_arms: int, n_clusters: int, delta: float, noise: Model) -> float:
    """The probability, at most, that CROC proves at least K groups where there are fewer (docs/CROC.md, section 10).

    (1 − α)δ + αδ·H₀/H, where H₀ = M(M − 1)/2 pairs of items may be equal, and H is the number that the level of pairs
    counts on; α is 0 where no pairs are compared from the start, as where features are measured one by one.
    """
    pairs = (n_arms - n_clusters + 1) * (n_arms - n_clusters) / 2
    alpha = PAIRS_SHARE if not isinstance(noise, Unknown) or bounds_variance(noise) else 0.0
    most = n_arms * (n_arms - 1) / 2
    return min(1.0, delta * (1.0 - alpha + alpha * most / max(pairs, 1.0)))


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


def rates_in_words(question: Question, noise: Model) -> str | None:
    """A resolution of counts in rates too; None where results are no counts, or of single trials."""
    trials = trials_of(noise)
    if not isinstance(question, Resolution) or trials is None or trials == 1:
        return None
    alike, apart = (", ".join(f"{bound / trials:g}" for bound in bounds) for bounds in (question.alike, question.apart))
    return f"alike and apart are in successes of {trials} trials, as rates {alike} and {apart}"


def assumption_in_words(
    noise: Model, question_kind: str, blocks: str | None = None, strict_blocks: bool = False, holes: bool = False
) -> str:
    """What is assumed about the results. Only K groups of equal items assume that the items of a group are equal.

    `blocks`: "offset" or "drawn" for a run in blocks (docs/BLOCKS.md); `strict_blocks`: whatever ended a cell. `holes`:
    results may lack numbers.
    """
    if blocks is None:
        return f"{_assumption(noise, question_kind)}{f'; {ABOUT_HOLES}' if holes else ''}"
    ended = "" if strict_blocks else "; and what left measurements of a block undone had nothing to do with values"
    if blocks == "offset":
        same = "" if question_kind == ExactGroups.kind else "; and differences of means are the same in every block"
        inside = _assumption(noise, question_kind)
        return f"within each block, whatever it does to the results of all items alike: {inside}{same}{ended}"
    drawn = "every block is drawn anew, without regard to results, and results within it may depend on one another"
    stated = noise.statement if isinstance(noise, Unknown) else None
    if isinstance(stated, Bounded):
        equal = f"results lie {stated.range_in_words}, and items of one group have the same mean over all blocks"
    else:
        equal = "the joint distribution of the results of a block is the same if items of one group change places"
    return f"{drawn}; {equal}{ended}"


def _assumption(noise: Model, question_kind: str) -> str:
    """The same without blocks."""
    if question_kind == ExactGroups.kind:
        return noise.assumption
    if not isinstance(noise, Unknown):
        less = "" if noise.exact else ", or vary less (sub-Gaussian),"
        return f"results are Gaussian with exactly the covariance stated{less} and do not depend on one another"
    stated = noise.statement
    if isinstance(stated, Bounded):
        return f"results lie {stated.range_in_words} and do not depend on one another; nothing else"
    if isinstance(stated, Counts):
        form = "0 or 1" if stated.trials == 1 else f"a number of successes out of {stated.trials} trials"
        return f"each number of a result is {form}, and all trials are independent, those of different numbers too"
    return noise.assumption


def revisions_in_words(retired: Sequence[int]) -> str:
    """What a certificate promises where something was revised on the way."""
    gone = f"; nothing is promised about the {len(retired)} retired" if retired else ""
    return (
        "what is claimed concerns the items present after the last revision, numbered in the order of `present`"
        f"{gone}. All answers ever given in this run, each at the delta stated with it, are together wrong with "
        "probability at most the largest of these deltas"
    )


ROWS = ("assumed", "stated")
"""Whether it is assumed, or was stated, that the number of rows did not depend on their values."""


def table_claim(asked: Question | None, proven: bool, delta: float) -> str:
    """What is claimed. `proven`: the groups, or without a question that no two items are alike."""
    said = "the two items of every pair listed differ"
    if isinstance(asked, Resolution):
        said = asked.claim if proven else f"{said} by more than {asked.bounds_in_words[0]}"
    elif isinstance(asked, ExactGroups):
        said += f"; if there are exactly {asked.n_clusters} groups, they are these" if proven else ""
    elif proven:
        said = "no two items are alike" if asked is None else asked.claim
    return f"{said}; wrong with probability at most {delta:g}"


def checked_holes(given: Any) -> bool:
    """Whether holes were said to be at random; ValueError if something else was said."""
    if given is not None and given != HOLES:
        raise ValueError(f"holes must be {HOLES!r} or None, got {short(given)}")
    return given is not None


def table_assumption(
    model: Model, asked: Question | None, rows: str, blocks: str | None = None, holes: bool = False
) -> str:
    """What is assumed. `blocks`: the column that names the blocks, if any; `holes`: some numbers are missing."""
    said = _table_noise(model, asked) if blocks is None else table_blocks(model, asked, blocks)
    missing = f"; {ABOUT_HOLES}" if holes else ""
    return f"{said}{missing}; and the number of rows did not depend on their values ({rows})"


def table_blocks(model: Model, asked: Question | None, column: str) -> str:
    """What is assumed of a table in blocks, which a column names."""
    if not isinstance(model, Unknown) or model.kind == "gaussian":
        return (
            f"every {column} adds the same to all of its results, whatever that is, so that differences between items "
            f"are the same in every {column}; apart from that {_table_noise(model, asked)}"
        )
    if model.kind == "any":
        return (
            f"for every {column}, each order of its results of the items of one group is equally likely, and results "
            f"of one {column} do not depend on those of another"
        )
    same = (
        "" if asked is None or isinstance(asked, ExactGroups) else f", and differences are the same in every {column}"
    )
    return f"for every {column}, whatever it does to all of its results alike, {_table_noise(model, asked)}{same}"


def _table_noise(model: Model, asked: Question | None) -> str:
    equal = asked is None or isinstance(asked, ExactGroups)
    if isinstance(model, Noise):
        same = ", and items of one group have the same mean" if equal else ""
        said = "results are Gaussian with the covariance stated, or a smaller one, and do not depend on one another"
        return said + same
    return assumption_in_words(model, ExactGroups.kind if equal else Resolution.kind)


# Text and tables as notebooks show them: plain HTML, without styles or scripts.


def table_html(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; cells are text, and escaped. Without a header it has none."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def text_html(text: str) -> str:
    """A repr as paragraphs: one for each of its lines."""
    lines = text.removeprefix("<").removesuffix(">").splitlines()
    return "".join(f"<p>{escape(line.strip())}</p>" for line in lines)
