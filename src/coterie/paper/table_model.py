"""A table of the report: its title, columns, rows and notes. Templates render it as HTML and as Markdown.

Cells say what they mean, not how they look: a difference is two numbers, and each format writes them in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True)
class Column:
    """A column: its heading, whether it holds words (else numbers), and whether a line stands to its left."""

    title: str
    words: bool = False
    opens_group: bool = False
    short_title: str | None = None

    @property
    def narrow_title(self) -> str:
        """The heading where the columns are narrow."""
        return self.title if self.short_title is None else self.short_title


@dataclass(frozen=True)
class Text:
    """A cell that both formats show as it is. `tone` is "good", "bad" or neither; `link` is an address."""

    kind: ClassVar[str] = "text"
    text: str
    tone: str = ""
    link: str = ""


@dataclass(frozen=True)
class Difference:
    """How far a mean is from the printed one: in combined standard errors, and as a share of the printed one."""

    kind: ClassVar[str] = "difference"
    errors: float
    share: float
    judged_by_share: bool
    agrees: bool

    @property
    def tone(self) -> str:
        """Whether it agrees, as a class of the style sheet."""
        return "good" if self.agrees else "bad"


@dataclass(frozen=True)
class WrongCount:
    """How many of how many stops gave wrong groups; `details` say which methods' they were."""

    kind: ClassVar[str] = "wrong"
    tone: ClassVar[str] = ""
    wrong: int
    stops: int
    details: tuple[str, ...] = ()


Cell: TypeAlias = Text | Difference | WrongCount | None
"""None: there is no such number."""


@dataclass(frozen=True)
class Table:
    """A table. With `row_headings` the first cell of a row is the heading of the row."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: Sequence[str] = ()
    row_headings: bool = False
