"""The evidence as a matrix: one row an item, one column a group, and in each cell what is proven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.problem.question import Question, Resolution
from coterie.session.partial import Proven

MOST_COLUMNS = 100
"""Of more groups, the largest have a column."""

REPRESENTATIVE, NEAR, FAR, BOTH, OPEN = "r", "+", "-", "b", "?"


def evidence_matrix(proven: Proven, group_ids: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """`columns`: the groups by their ids, each with the item that stands for it; `rows`: a character a column.

    An item is compared with the representative of each group (of a resolution: its reference). "r": it is that one;
    "+" proven alike; "-" proven apart; "b" both, which a resolution allows between its bounds; "?" neither.
    """
    leads = proven.representatives
    if proven.labels is None or not leads:
        return {"columns": [], "left_out": 0, "rows": [""] * len(names)}
    sizes = np.bincount(proven.labels[proven.labels >= 0], minlength=len(leads))
    largest = np.argsort(-sizes, kind="stable")[:MOST_COLUMNS]
    shown = sorted(largest.tolist(), key=lambda label: group_ids[label])
    items = [leads[label] for label in shown]
    alike, apart = proven.alike[:, items], proven.apart[:, items]
    kinds = np.select([alike & apart, alike, apart], [BOTH, NEAR, FAR], OPEN)
    kinds[items, np.arange(len(items))] = REPRESENTATIVE
    columns = [{"group_id": group_ids[label], "arm": leads[label], "name": names[leads[label]]} for label in shown]
    return {"columns": columns, "left_out": len(leads) - len(shown), "rows": ["".join(row) for row in kinds.tolist()]}


def meanings(question: Question) -> dict[str, str]:
    """What each character of a row says about an item and a group, in a few words."""
    if isinstance(question, Resolution):
        epsilon, eta = question.bounds_in_words
        return {
            REPRESENTATIVE: "it is the group's reference",
            NEAR: f"proven within {eta} of the reference",
            FAR: f"proven more than {epsilon} from the reference",
            BOTH: f"proven more than {epsilon} and within {eta}: either group is right",
            OPEN: "not proven yet",
        }
    return {
        REPRESENTATIVE: "it stands for the group",
        NEAR: "proven to be in the group",
        FAR: "proven not to be in the group",
        BOTH: "contradictory",
        OPEN: "not proven yet",
    }
