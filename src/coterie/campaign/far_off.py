"""A value far from what its item gave before, in words: a slip of the finger, perhaps."""

from __future__ import annotations

from typing import NamedTuple


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
        return f"{self.value:.6g}{self.which} is {self.away:.0f} {self._units} from {before}."

    @property
    def warning(self) -> str:
        """What is said once it is saved."""
        results = f"{self.earlier} earlier result{'' if self.earlier == 1 else 's'}"
        return (
            f"{self.name}: {self.value:.6g}{self.which} lies {self.away:.0f} {self._units} from the mean of its "
            f"{results}, {self.mean:.6g}. It is on record: see whether this one or an earlier one was mistyped."
        )
