"""Measured figures stand beside the command that prints them, or beside the table that a command wrote.

The pages that say how many measurements and how fast are README.md and docs/PERFORMANCE.md. Their tables of headlines
and between marks are compared with what is kept by tests/bench/test_bench_docs.py; here it is the figures in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "PERFORMANCE.md"]
FIGURE = re.compile(
    r"\d[\d ,.\u202f]*( |\u202f)?(%|×|ms\b|s\b|MB\b|GiB\b|times\b|measurements\b|round trips\b|a second\b)"
)
COMMAND = re.compile(r"`(?:\.venv/bin/)?(?:coterie|make|python -m) [^`]+`")
TABLE = re.compile(r"\]\((?:docs/)?(?:\w+/)*[\w-]+\.md(?:#[\w-]+)?\)")


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs and items of lists; a table belongs to the paragraph before it, and code is left out."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^<!-- bench: (\w+) -->\n.*?^<!-- end of bench: \1 -->$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\n\n(?=\|)", "\n", text)
    yield from (part for part in re.split(r"\n\n|\n(?=- |\d+\. |#)", text) if part.strip())


def without_source(text: str) -> list[str]:
    """Paragraphs with a figure that name neither a command nor a page of tables."""
    found = []
    for part in paragraphs(text):
        if part.lstrip().startswith("#") or "| figure | measured |" in part:  # the headlines, which are compared
            continue
        if FIGURE.search(part) and not COMMAND.search(part) and not TABLE.search(part):
            found.append(part)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_stand_beside_what_prints_them(page: Path) -> None:
    assert without_source(page.read_text(encoding="utf-8")) == []


def test_a_figure_without_a_command_is_seen() -> None:
    alone, beside = "It is 3 times as fast.", "It takes 0.5 s (`coterie bench speed`)."
    table = "By `python -m bench.cold`:\n\n| a | b |\n| --- | --- |\n| 1 | 2 ms |"
    assert without_source("\n\n".join((alone, beside, table))) == [alone]
    assert without_source("- 12 % less\n- [7 % more](MEASURED.md#coterie-bench-needed)") == ["- 12 % less"]
    assert without_source("Up to 64 workers; δ = 0.1; K = 11 of M = 12.") == []
