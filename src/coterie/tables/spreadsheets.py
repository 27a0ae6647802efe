"""Names as they are written into files that people open with a spreadsheet."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")


def safe_in_spreadsheets(name: str) -> str:
    """A name that a spreadsheet would take for a formula gets an apostrophe in front; plain numbers stay."""
    risky = name.startswith(("=", "+", "-", "@", "\t", "\r")) and _NUMBER.fullmatch(name) is None
    return f"'{name}" if risky else name
