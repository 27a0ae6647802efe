"""Error rates as tests count them: too many fail the test, and every count can be kept for the table of guarantees.

`COTERIE_COUNTED` names a file to which a line of JSON is added for each count: `coterie bench guarantees` makes its
table of them.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy.stats import binom

FALSE_ALARM = 1e-6
"""The probability with which one comparison fails if its true rate is exactly the one that is allowed."""


@dataclass(frozen=True)
class Guarantee:
    """What is guaranteed: for which noise, which question, with which kind of blocks, and who measured."""

    noise: str
    question: str = "K groups"
    blocks: str = "none"
    case: str = ""


def most_errors(rate: float, runs: int, false_alarm: float = FALSE_ALARM) -> int:
    """The largest number of errors that is no reason for an alarm."""
    return int(binom.isf(false_alarm, runs, rate))


def assert_rate_at_most(
    rate: float, errors: int, runs: int, of: Guarantee | None = None, false_alarm: float = FALSE_ALARM
) -> None:
    """Fails if so many errors have a probability below `false_alarm` at this rate. `of`: the row of the table."""
    note_count(rate, errors, runs, of)
    most = most_errors(rate, runs, false_alarm)
    assert errors <= most, f"{errors} of {runs} are wrong, at most {most} may be at the rate {rate:g}"


def note_count(rate: float, errors: int, runs: int, of: Guarantee | None) -> None:
    """A line of the file that `COTERIE_COUNTED` names; nothing without it."""
    path = os.environ.get("COTERIE_COUNTED")
    if path is None or of is None:
        return
    test = os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)")
    line = json.dumps({**asdict(of), "delta": rate, "runs": int(runs), "wrong": int(errors), "test": test})
    with Path(path).open("a", encoding="utf-8") as file:  # one write: workers share the file
        file.write(line + "\n")
