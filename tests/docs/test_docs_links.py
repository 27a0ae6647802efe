"""Links lead somewhere: between pages, from notebooks, and from code to the pages and sections that it names."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
SOURCES = [
    path
    for folder in ("src/coterie", "native", "tests", "bench", "packaging")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".pyi", ".cpp", ".hpp", ".inc", ".html", ".js") and path != Path(__file__)
]
SECTION = re.compile(r"\b([\w/-]+\.md),? \(?sections? (\d+)(?:(?:,| and| to) (\d+))?")
"""EVIDENCE.md, section 4 · CROC.md, sections 2 to 6"""


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def headings(page: Path) -> tuple[str, ...]:
    return tuple(re.findall(r"^#+ (.+)$", without_blocks(page.read_text(encoding="utf-8")), flags=re.MULTILINE))


@cache
def anchors(page: Path) -> Counter[str]:
    return Counter(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(page))


def sections(page: Path) -> set[int]:
    return {int(number) for number in re.findall(r"^(\d+)\. ", "\n".join(headings(page)), flags=re.MULTILINE)}


def texts(page: Path) -> Iterator[str]:
    """What a page says, without its examples; of a notebook its cells of text."""
    if page.suffix != ".ipynb":
        yield without_blocks(page.read_text(encoding="utf-8"))
        return
    for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"])


def dead(page: Path) -> Iterator[str]:
    """Links of a page to files that there are not, and to headings of which there is not exactly one."""
    for text in texts(page):
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if "://" not in link and not (target.exists() and (not anchor or anchors(target)[anchor] == 1)):
                yield link


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(dead(page)) == []


def named_pages(path: Path) -> Iterator[Path]:
    for name in re.findall(r"\bdocs/([\w/-]+\.(?:md|ipynb))\b", path.read_text(encoding="utf-8", errors="ignore")):
        yield DOCS / name


def named_sections(path: Path) -> Iterator[tuple[Path, int]]:
    for name, *numbers in SECTION.findall(path.read_text(encoding="utf-8", errors="ignore")):
        page = DOCS / name.removeprefix("docs/").split("/")[-1]
        if page.exists():
            yield from ((page, int(number)) for number in numbers if number)


def test_pages_that_code_names_exist() -> None:
    named = {(path, page) for path in SOURCES for page in named_pages(path)}
    assert len(named) > 50
    assert [(str(path), page.name) for path, page in sorted(named) if not page.exists()] == []


def test_sections_that_code_and_pages_name_exist() -> None:
    named = {(path, *section) for path in [*SOURCES, *PAGES] for section in named_sections(path)}
    assert len(named) > 60
    assert [(str(path), page.name, n) for path, page, n in sorted(named) if n not in sections(page)] == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Here\n\n## Twice\n\n## Twice\n", encoding="utf-8")
    page = tmp_path / "page.md"
    lines = ["[a](other.md#here)", "[b](gone.md)", "[c](other.md#there)", "[d](other.md#twice)", "[e](https://x.y/z)"]
    page.write_text("\n".join(lines), encoding="utf-8")
    assert list(dead(page)) == ["gone.md", "other.md#there", "other.md#twice"]
    code = tmp_path / "code.py"
    code.write_text('"""docs/CROC.md, sections 2 and 99; docs/GONE.md."""', encoding="utf-8")
    assert {page.name for page in named_pages(code)} == {"CROC.md", "GONE.md"}
    assert {n for page, n in named_sections(code) if n not in sections(page)} == {99}
