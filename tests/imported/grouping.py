"""`coterie group` as the tests of it call it."""

from __future__ import annotations

from typer.testing import CliRunner

from coterie.cli import app


def ok(*arguments: object) -> str:
    """What it prints; it must succeed."""
    answer = CliRunner().invoke(app, ["group", *map(str, arguments)])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def refused(*arguments: object) -> str:
    """The one line that says why nothing was grouped."""
    answer = CliRunner().invoke(app, ["group", *map(str, arguments)])
    assert answer.exit_code == 2, answer.output
    assert answer.stdout == "", "refused before anything is grouped"
    assert answer.stderr.startswith("coterie: ")
    assert answer.stderr.count("\n") == 1, "one line"
    return answer.stderr
