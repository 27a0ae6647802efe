"""In which order an item's recorded measurements are used: shuffled by a seed, or as they stand in the table.

The seed follows from the content of the table, whatever the order of its rows: nobody can choose it, or try several
until one proves something.

"The s-th measurement of an item" must not depend on values (docs/CROC.md, "The order of results"), and a table may be
sorted by them. If the number of an item's measurements does not depend on their values, then shuffled ones are
distributed as if they came straight from the instrument, however the table was sorted. Its own order is as good only
if it has nothing to do with the values; it is better where the number depends on them, as in a record of asks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.problem.checks import IntArray, short
from coterie.tables.errors import TableError


@dataclass(frozen=True)
class Order:
    """The seed that an item's measurements are shuffled by; None: they stay in the order of the table."""

    seed: int | None = 0

    def places(self, name: str, count: int) -> IntArray:
        """The places 0, …, count − 1 of an item's measurements, in the order in which they are used.

        They are sorted by keys: 64 bits each of SHAKE-256 of "seed:name". So the order depends on the seed, on the
        item's name and on the number of its measurements only: not on values, not on other items, and not on the
        release of any random generator. An equal key (probability 2⁻⁶⁴) leaves two as they stand.
        """
        if self.seed is None:
            return np.arange(count)
        stream = hashlib.shake_256(f"{self.seed}:{name}".encode("utf-8", "surrogatepass")).digest(8 * count)
        return np.argsort(np.frombuffer(stream, dtype="<u8"), kind="stable")

    def rearranged(self, arms: IntArray, name_of: Callable[[int], str]) -> IntArray:
        """Of rows of these arms: the row that comes at each place. An arm's rows change places among themselves."""
        found = np.arange(arms.size)
        by_arm = np.argsort(arms, kind="stable")
        starts = np.flatnonzero(np.diff(arms[by_arm])) + 1
        for rows in np.split(by_arm, starts) if arms.size else []:
            found[rows] = rows[self.places(name_of(int(arms[rows[0]])), rows.size)]
        return found

    def as_dict(self) -> dict[str, Any]:
        """As it is recorded: plain JSON."""
        return {"shuffled": False} if self.seed is None else {"shuffled": True, "seed": self.seed}


def content_order(rows: Iterable[Sequence[str]], in_order: Any) -> Order:
    """The order for a table of these rows of text: shuffled by a seed from its content, or as it stands.

    The seed is the first 53 bits of the SHA-256 of all rows, sorted; so it is the same for every order of them.
    """
    if not isinstance(in_order, bool | np.bool_):
        raise TableError(f"in_order must be True or False, got {short(in_order)}", field="in_order")
    if in_order:
        return Order(None)
    content = json.dumps(sorted(list(row) for row in rows)).encode()
    return Order(int.from_bytes(hashlib.sha256(content).digest()[:7]) >> 3)
