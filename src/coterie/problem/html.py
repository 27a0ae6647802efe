"""Text and tables as notebooks show them: plain HTML, without styles or scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def table_html(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; cells are text, and escaped. Without a header it has none."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def text_html(text: str) -> str:
    """A repr as paragraphs: one for each of its lines."""
    lines = text.removeprefix("<").removesuffix(">").splitlines()
    return "".join(f"<p>{escape(line.strip())}</p>" for line in lines)
