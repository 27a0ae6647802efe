"""What is claimed about a finished table and what it rests on: the words of its certificate."""

from __future__ import annotations

from coterie.problem.families import Model
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups, Question, Resolution
from coterie.problem.sentences import assumption_in_words

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


def table_assumption(model: Model, asked: Question | None, rows: str) -> str:
    """What is assumed."""
    equal = asked is None or isinstance(asked, ExactGroups)
    if isinstance(model, Noise):
        same = ", and items of one group have the same mean" if equal else ""
        said = "results are Gaussian with the covariance stated, or a smaller one, and do not depend on one another"
        said += same
    else:
        said = assumption_in_words(model, ExactGroups.kind if equal else Resolution.kind)
    return f"{said}; and the number of rows did not depend on their values ({rows})"
