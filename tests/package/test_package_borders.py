"""Packages know each other by public names only: no private attribute or function of one is used in another."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "coterie"
OF_PYTHON = {"_asdict", "_make", "_replace", "_fields"}  # public by Python's own rules, of named tuples


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in OF_PYTHON


def defined_in(tree: ast.AST) -> set[str]:
    """Private names that a file defines: functions, classes, variables, attributes of self."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # __slots__, object.__setattr__
            names.add(node.value)
    return names


def used_in(tree: ast.AST) -> dict[str, int]:
    """Private names that a file uses of something else than self, with a line."""
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                lines[node.attr] = node.lineno
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("coterie"):
            lines |= {alias.name: node.lineno for alias in node.names if is_private(alias.name)}
    return lines


def foreign_names(trees: dict[Path, ast.AST]) -> list[str]:
    own: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        own[package_of(path)] |= defined_in(tree)
    return [
        f"{path.relative_to(SOURCE)}:{line} uses {name}"
        for path, tree in trees.items()
        for name, line in used_in(tree).items()
        if name not in own[package_of(path)]
    ]


def test_no_package_uses_a_private_name_of_another() -> None:
    trees: dict[Path, ast.AST] = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    assert len(trees) > 150
    assert foreign_names(trees) == []


def test_a_private_name_of_another_package_is_found() -> None:
    here, there = SOURCE / "campaign" / "x.py", SOURCE / "session" / "y.py"
    trees: dict[Path, ast.AST] = {
        here: ast.parse("from coterie.session.y import _secret\nsession._other()\nself._mine = 1"),
        there: ast.parse("def _secret(): ...\nclass A:\n    def _other(self): ..."),
    }
    assert foreign_names(trees) == ["campaign/x.py:1 uses _secret", "campaign/x.py:2 uses _other"]
