"""A value far from what its item gave before, in words: a slip of the finger, perhaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray


class FarOff(NamedTuple):
    """A value that is `away` standard deviations (`stated`), or usual spreads of repeats, from the mean before."""

    name: str
    which: str  # of the numbers of a result, " (width)", if there are several
    value: float
    mean: float
    away: float
    earlier: int  # how many results the item had
    stated: bool

    @property
    def _units(self) -> str:
        return "standard deviations" if self.stated else "times the usual spread of repeats"

    @property
    def question(self) -> str:
        """What is asked back before it is saved."""
        before = f"the {self.mean:.6g} of {self.name} before"
        earlier = " Or was the earlier one mistyped?" if self.earlier == 1 else ""
        return f"{self.value:.6g}{self.which} is {self.away:.0f} {self._units} from {before}.{earlier}"

    @property
    def warning(self) -> str:
        """What is said once it is saved."""
        results = f"{self.earlier} earlier result{'' if self.earlier == 1 else 's'}"
        return (
            f"{self.name}: {self.value:.6g}{self.which} lies {self.away:.0f} {self._units} from the mean of its "
            f"{results}, {self.mean:.6g}. It is on record: see whether this one or an earlier one was mistyped."
        )


def agrees_with_most(value: FloatArray, earlier: Iterable[FloatArray], reach: FloatArray) -> bool:
    """Whether at least half of the earlier results lie within reach of this one, in every number.

    Then it is not this one that is far off, whatever their mean: an earlier one is, and has moved it.
    """
    near = [bool((np.abs(value - one) <= reach).all()) for one in earlier]
    return 2 * sum(near) >= len(near) > 0
