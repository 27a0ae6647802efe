"""Methods are known by their entry in the table: nobody else compares their names, and the docs list what it holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.methods import METHODS
from coterie.methods.table import NEEDS, PACKAGED

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "coterie"
EXCEPT = (
    "methods/",  # the table itself
    "rules/",  # the engine's numbers of the paper's rules
    "paper/cells.py",  # which methods the paper's tables and figures have: data
    "paper/agreement.py",
)


def names_in(node: ast.expr) -> Iterator[str]:
    """The names of methods that stand in an operand of a comparison, also inside a tuple or a set."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and part.value in PACKAGED:
            yield str(part.value)


def comparisons(text: str) -> list[tuple[int, str]]:
    """Line and name of every comparison with the name of a method, `case "…"` too."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            found += [(node.lineno, name) for side in (node.left, *node.comparators) for name in names_in(side)]
        elif isinstance(node, ast.MatchValue):
            found += [(node.lineno, name) for name in names_in(node.value)]
    return found


def test_comparisons_are_found() -> None:
    text = 'if m == "croc" or "boc" != m or m in ("uniform", x) or (m, k) == ("oracle", k): pass\nd["croc"]; f("boc")'
    assert sorted(name for _, name in comparisons(text)) == ["boc", "croc", "oracle", "uniform"]
    assert comparisons('match m:\n    case "boc-linear": pass') == [(2, "boc-linear")]


def test_no_code_compares_names_of_methods() -> None:
    read = 0
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if not place.startswith(EXCEPT):
            read += 1
            found += [f"{place}:{line}: {name}" for line, name in comparisons(path.read_text(encoding="utf-8"))]
    assert read > 100
    assert found == []


@pytest.mark.parametrize("ending", ["html", "js"])
def test_no_page_names_a_method(ending: str) -> None:
    named = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in PACKAGED if name != "uniform"))
    paths = sorted((SOURCE / "web").rglob(f"*.{ending}"))
    assert paths
    for path in paths:
        assert named.findall(path.read_text(encoding="utf-8")) == [], path


def test_every_method_and_need_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "methods.md").read_text(encoding="utf-8")
    for name in PACKAGED:
        method = METHODS[name]
        row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` |")), None)
        assert row is not None, f"{name} is not in docs/reference/methods.md"
        _, _, sentence, needs, proof, certificate, _ = (cell.strip() for cell in row.split("|"))
        assert sentence == method.sentence
        assert set(re.findall(r"`(\w+)`", needs)) == method.needs
        assert ("simulations only" in needs) == method.simulates_only
        assert (proof == "always") == (not method.has_thresholds)
        assert (certificate == "yes") == method.certifies
    listed = re.findall(r"^\| `([\w-]+)` \|", page.split("\n## ")[0], flags=re.MULTILINE)
    assert [name for name in listed if name not in NEEDS] == list(PACKAGED)
