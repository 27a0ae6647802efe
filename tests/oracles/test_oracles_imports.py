"""The oracles are second implementations: of the package they know the problem and, for the paper, its formulas."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
ALLOWED = {"paper.py": ("coterie.problem", "coterie.evidence"), "croc": ("coterie.problem",), "features": ()}


def imported_by(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]


def test_oracles_share_no_code_with_the_engine() -> None:
    paths = [HERE / "paper.py", *sorted((HERE / "croc").glob("*.py")), *sorted((HERE / "features").glob("*.py"))]
    assert len(paths) > 12
    for path in paths:
        allowed = ALLOWED[path.relative_to(HERE).parts[0]]
        of_package = [name for name in imported_by(path) if name.startswith("coterie")]
        assert all(name.startswith(allowed) for name in of_package), path
