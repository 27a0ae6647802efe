"""Names and ids that people give: what a text must be so that it can be seen, stored and printed."""

from __future__ import annotations

import unicodedata
from typing import Any

from coterie.problem.checks import short

LONGEST_TEXT = 200
"""Characters of a name or an id."""


def check_text(value: Any, name: str) -> str:
    """A text of 1 to 200 characters without blanks at its ends and without control characters.

    Control characters (Unicode category Cc) cannot be printed, lone surrogates (Cs) cannot be stored as UTF-8.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {short(value)}")
    if not value or value != value.strip() or len(value) > LONGEST_TEXT:
        what = f"must have 1 to {LONGEST_TEXT} characters and no blanks at its ends"
        raise ValueError(f"{name} {what}, got {short(value)}")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        raise ValueError(f"{name} must not hold control characters, got {short(value)}")
    return value
