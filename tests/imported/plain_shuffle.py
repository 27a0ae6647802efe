"""The shuffle of an item's measurements, written plainly: the oracle of `coterie.tables.checks.row_order`."""

from __future__ import annotations

import hashlib
from typing import Any


def shuffled_plainly(rows: list[Any], name: str, seed: int) -> list[Any]:
    """The oracle: every row gets eight bytes of SHAKE-256 of seed and name as its key, and rows go by their keys."""
    stream = hashlib.shake_256(f"{seed}:{name}".encode()).digest(8 * len(rows))
    keys = [int.from_bytes(stream[8 * k : 8 * k + 8], "little") for k in range(len(rows))]
    return [row for _, _, row in sorted(zip(keys, range(len(rows)), rows, strict=True))]
