"""`coterie group` as the tests of it call it."""

from __future__ import annotations

import numpy as np
from typer.testing import CliRunner

from coterie.cli import app


def ok(*arguments: object) -> str:
    """What it prints, with all remarks; it must succeed."""
    answer = CliRunner().invoke(app, ["group", *map(str, arguments), "--verbose"])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def grown(*arguments: object) -> str:
    """What it prints of a table that grows, each item's rows shuffled unless it is told to grow."""
    return ok(*arguments, *(() if {"--shuffled", "--growing"} & set(map(str, arguments)) else ("--shuffled",)))


def refused(*arguments: object) -> str:
    """The one line that says why nothing was grouped."""
    answer = CliRunner().invoke(app, ["group", *map(str, arguments)])
    assert answer.exit_code == 2, answer.output
    assert answer.stdout == "", "refused before anything is grouped"
    assert answer.stderr.startswith("coterie: ")
    assert answer.stderr.count("\n") == 1, "one line"
    return answer.stderr


def rows(seed: int = 3, items: int = 20, repeats: int = 8) -> list[list[str]]:
    """Samples in three groups, in the order of the days: pH varies by 0.2, turbidity by 25."""
    rng = np.random.default_rng(seed)
    centers = np.array([[5.4, 110.0], [6.2, 120.0], [6.8, 300.0]])
    found = []
    for _ in range(repeats):
        for item in range(items):
            ph, turbidity = centers[item % 3] + rng.normal(size=2) * [0.2, 25.0]
            found.append([f"S{item + 1:02}", f"{ph:.2f}", f"{turbidity:.1f}"])
    return found


def text(header: str, content: list[list[str]], mark: str = ",") -> str:
    return "\n".join([header, *(mark.join(row) for row in content)]) + "\n"
