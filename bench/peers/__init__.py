"""Successors of BOC written from their published descriptions, to set beside CROC. Not part of the package.

Each is given the tightest simple proof at hand instead of confidence balls (`bench.peers.stacks`), so that what is
compared is where they measure. They are not their authors' programs: each module says where it departs from them.
"""

from __future__ import annotations

from bench.peers import elimination, lucb, representatives
from bench.peers.contract import Outcome, Peer

_BANDIT_INFORMATION = "Chandran, Reddy, Bhashyam: Online Clustering with Bandit Information (2025), arXiv 2501.11421"
_ACTIVE_CLUSTERING = (
    "Thuot, Carpentier, Giraud, Verzelen: Active clustering with bandit feedback (2024), arXiv 2406.11485"
)

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "elimination", _BANDIT_INFORMATION, "rounds over the arms whose place is not certain",
            "pairs, one result against one, at log(H/δ)", elimination.run,
        ),
        Peer(
            "lucb", _BANDIT_INFORMATION, "the least certain arm or its rival next",
            "pairs, maximum over block ratios, at log(H/δ)", lucb.run,
        ),
        Peer(
            "representatives", _ACTIVE_CLUSTERING, "find one arm of each group, then classify the others",
            "pairs at log(2H/δ), then directed tests at log(2(M−K)/δ)", representatives.run,
        ),
    )
}  # fmt: skip

__all__ = ["PEERS", "Outcome", "Peer"]
