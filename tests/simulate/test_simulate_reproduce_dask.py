"""`coterie reproduce --scheduler` gives the numbers of a local run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coterie.cli import app
from coterie.paper.reproduce import reproduce


@pytest.mark.slow
def test_reproduce_on_a_cluster_keeps_the_numbers(two_workers: Any, tmp_path: Path) -> None:
    local = reproduce("table2", trials=12, out=tmp_path / "local", progress=False)
    command = [
        "reproduce",
        "table2",
        "--trials",
        "12",
        "--out",
        str(tmp_path / "far"),
        "--scheduler",
        two_workers.address,
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "far" / "table2.csv").read_bytes() == (local.folder / "table2.csv").read_bytes()
