"""Names and ids that people give: what a text must be so that it can be seen, stored and printed."""

from __future__ import annotations

import unicodedata
from typing import Any

from coterie.problem.checks import short

LONGEST_TEXT = 200
"""Characters of a name or an id."""

_HIDDEN = frozenset({"Cc", "Cs", "Cf", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")


def check_text(value: Any, name: str) -> str:
    """A text of 1 to 200 characters without blanks at its ends and without control or direction characters.

    Control characters (Unicode category Cc) cannot be printed, lone surrogates (Cs) cannot be stored as UTF-8. Format
    characters (Cf) and separators of lines (Zl, Zp) turn the direction of writing or are not seen, so that two texts
    that look the same differ; the two joiners, which scripts and emoji need, may stand.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {short(value)}")
    if not value or value != value.strip() or len(value) > LONGEST_TEXT:
        what = f"must have 1 to {LONGEST_TEXT} characters and no blanks at its ends"
        raise ValueError(f"{name} {what}, got {short(value)}")
    hidden = next((one for one in value if one not in _JOINERS and unicodedata.category(one) in _HIDDEN), None)
    if hidden is not None:
        what = f"control or direction characters (U+{ord(hidden):04X})"
        raise ValueError(f"{name} must not hold {what}, got {short(value)}")
    return value
