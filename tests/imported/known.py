"""Values that a test knows to be there."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """The value, such as the labels of a session, which has none before every arm was measured."""
    assert value is not None
    return value
