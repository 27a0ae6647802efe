"""The notebooks of docs are executed, and print what is saved in them."""

from __future__ import annotations

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coterie.session import progress

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))

PROVEN = "proven: if there are exactly 2 groups, the items of a group are alike, those of different groups are not"
"""What the paper's rules prove of two groups."""


def shown(cell: Any) -> list[str]:
    """What a cell shows as text; not what goes to stderr, nor pictures."""
    texts: list[str] = []
    printed = False
    for output in cell.get("outputs", []):
        before, printed = printed, output.output_type == "stream" and output.name == "stdout"
        if printed and before:
            texts[-1] += output.text  # in how many pieces it comes is a matter of timing
        elif printed:
            texts.append(output.text)
        elif output.output_type in ("display_data", "execute_result") and "image/png" not in output.data:
            # Frames are aligned by pandas, each release in its own way.
            texts.append(re.sub(r"\s+", " ", output.data["text/plain"]).strip())
    return texts


def run(notebook: Any, folder: Path) -> Any:
    import nbclient

    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
def test_a_notebook_shows_what_is_saved_in_it(file: Path, tmp_path: Path) -> None:
    import nbformat

    saved, fresh = nbformat.read(file, 4), nbformat.read(file, 4)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    run(fresh, tmp_path)
    for cell, its in zip(fresh.cells, saved.cells, strict=True):
        assert shown(cell) == shown(its), cell.source
    kinds = {kind for cell in fresh.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert {"text/html", "image/png"} <= kinds, "a notebook shows tables and pictures"


@pytest.mark.slow
def test_progress_is_one_line_that_changes_and_stays(tmp_path: Path) -> None:
    import nbclient
    import nbformat

    source = """
import random, time, coterie
random.seed(1)
def measure(item):
    time.sleep(0.1)
    return random.gauss(9.0 * (item > 2), 1.0)
result = coterie.cluster(measure, 6, 2, noise=1.0, delta=1e-9, method="uniform")
quiet = coterie.cluster(measure, 6, 2, noise=1.0, progress=False)
print(result.t)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    changes: list[str] = []

    class Watched(nbclient.NotebookClient):
        def output(self, outs: Any, msg: Any, display_id: Any, cell_index: Any) -> Any:
            changes.append(msg["msg_type"])
            return super().output(outs, msg, display_id, cell_index)

        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] == "update_display_data":
                changes.append(msg["content"]["data"]["text/plain"])
            return super().process_message(msg, cell, cell_index)

    Watched(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shows = [one for one in notebook.cells[0].outputs if one.output_type == "display_data"]
    assert len(shows) == 1
    count = int(shown(notebook.cells[0])[-1])
    assert shows[0].data["text/plain"] == f"{count} measurements: {PROVEN}"
    assert shows[0].data["text/html"] == f"<div>{count} measurements: {PROVEN}</div>"
    updates = [one for one in changes if "measurements" in one]
    assert 2 <= len(updates) <= count + 1
    moving = re.compile(r"\d+ measurements(, (?:about|too early) [^;]+)?; .+")
    assert all(moving.fullmatch(one) for one in updates[:-1])
    assert any("evidence" in one for one in updates[:-1])


def test_a_line_changes_a_few_times_a_second_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    changes: list[str] = []
    handle = SimpleNamespace(update=lambda content, raw: changes.append(content["text/html"]))
    monkeypatch.setattr(progress, "import_module", lambda name: SimpleNamespace(display=lambda *_, **__: handle))
    line = progress.NotebookLine("<start>", total=1000)
    for done in range(1000):
        clock[0] += 0.002
        if line.due:
            line.update(f"{done} done", done)
    assert 7 <= len(changes) <= 8, "two seconds"
    assert changes[0] == '<div><progress value="124" max="1000"></progress> 124 done</div>'
    line.end("<end>")
    assert changes[-1] == "<div>&lt;end&gt;</div>"
