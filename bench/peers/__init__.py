"""Successors of BOC written from their published descriptions, to set beside CROC. Not part of the package.

Each is given the tightest simple proof at hand instead of confidence balls (`bench.peers.stacks`), so that what is
compared is where they measure. They are not their authors' programs: each module says where it departs from them.

They are methods like those of the package: importing this module registers them, and then `Session`, `simulate`,
`coterie simulate` and campaigns take them by name.
"""

from __future__ import annotations

from bench.peers import elimination, lucb, representatives
from bench.peers.batched import method_of
from coterie.methods import Method, register

_BANDIT_INFORMATION = "Chandran, Reddy, Bhashyam: Online Clustering with Bandit Information (2025), arXiv 2501.11421"
_ACTIVE_CLUSTERING = (
    "Thuot, Carpentier, Giraud, Verzelen: Active clustering with bandit feedback (2024), arXiv 2406.11485"
)

PEERS: dict[str, Method] = {
    peer.name: peer
    for peer in (
        method_of(
            "elimination", elimination.course, _BANDIT_INFORMATION, "rounds over the arms whose place is not certain",
            "pairs, one result against one, at log(H/δ)",
        ),
        method_of(
            "lucb", lucb.course, _BANDIT_INFORMATION, "the least certain arm or its rival next",
            "pairs, maximum over block ratios, at log(H/δ)",
        ),
        method_of(
            "representatives", representatives.course, _ACTIVE_CLUSTERING,
            "find one arm of each group, then classify the others",
            "pairs at log(2H/δ), then directed tests at log(2(M−K)/δ)",
        ),
    )
}  # fmt: skip


def register_all() -> None:
    """Put the peers into the table of methods."""
    for peer in PEERS.values():
        register(peer, replace_existing=True)


register_all()

__all__ = ["PEERS", "register_all"]
