"""The question that a run answers. The first one: which arms are alike, if there are exactly K groups?

A question says what a finished run claims. How claims are tested is the engine's business
(`coterie.engine.croc`); what they rest on is written in every certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class ExactGroups:
    """The partition of the arms into exactly K groups of equal means, as in the paper (section_setup)."""

    n_clusters: int

    @property
    def claim(self) -> str:
        """What is claimed, in a sentence."""
        return f"exactly {self.n_clusters} groups; the items of a group are alike, those of different groups are not"


Question: TypeAlias = ExactGroups
"""All questions there are."""
