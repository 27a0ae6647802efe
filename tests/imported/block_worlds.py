"""Sessions in blocks, played to their end: worlds for every noise, with an offset for each block."""

from __future__ import annotations

from typing import Any

import numpy as np

import coterie

STATED: dict[str, Any] = {
    "known": 1.0,
    "any": None,
    "gaussian": "gaussian",
    "scalar": coterie.Gaussian("scalar"),
    "at most": coterie.AtMost(1.0),
    "symmetric": coterie.Symmetric(),
    "counts": coterie.Counts(12),
    "trials": coterie.Counts(1),
    "bounded": coterie.Bounded(0.0, 1.0),
    "shape": coterie.AnyNoise(shape=True),
}
NOISES = [("offset", noise) for noise in STATED if noise not in ("trials", "shape")] + [
    ("drawn", noise) for noise in ("any", "bounded", "trials")
]
NOISES += [("offset", "shape"), ("drawn", "shape")]
"""Blocks and noises that go together."""


def reading(blocks: str, noise: str, level: float, offset: float, rng: np.random.Generator) -> float:
    """A result of an item so many standard deviations above the middle, in a block with this offset."""
    logit = level + offset
    if noise == "counts":
        return float(rng.binomial(12, 1.0 / (1.0 + np.exp(-0.7 * logit))))
    if noise == "trials" or blocks == "drawn":
        return float(rng.random() < 1.0 / (1.0 + np.exp(-logit)))
    if noise == "bounded":
        mean = 0.5 + 0.1 * np.clip(logit, -4.5, 4.5)
        return float(np.clip(mean + 0.15 * (rng.random() - 0.5), 0.0, 1.0))
    return float(logit + rng.standard_normal())


def play(
    blocks: str,
    noise: str,
    n_arms: int,
    n_clusters: int,
    *,
    gap: float = 3.0,
    room: int = 8,
    shift: float = 1.0,
    seed: int = 0,
    delta: float = 0.1,
    lapses: bool = False,
    strict: bool = False,
    most: int = 3000,
) -> coterie.Session:
    """A session to its end. `lapses`: the third and the sixth block end before their last result."""
    rng = np.random.default_rng([seed, 17])
    session = coterie.Session(n_arms, n_clusters, 1, delta, noise=STATED[noise], blocks=blocks, strict_blocks=strict)
    number = 0
    while not session.done and session.t < most:
        number += 1
        block, offset = f"block {number}", shift * rng.standard_normal()
        try:
            items = session.ask(room, block=block)
        except coterie.SessionDone:
            break
        told = items[:-1] if lapses and number in (3, 6) else items
        for item in told:
            level = gap * (item % n_clusters - 0.5 * (n_clusters - 1))
            session.tell(item, reading(blocks, noise, level, offset, rng), block=block)
        if not session.done:
            session.close_block(block)
    return session


def results_of(session: coterie.Session) -> int:
    """How many results were told."""
    return len(session.log)
