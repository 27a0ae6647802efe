"""The files of finished trials: what is written is read back, and files of the earlier form are taken over."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from coterie.methods.trials import Stops
from coterie.paper.cells import Cell
from coterie.paper.running import FORMAT, Record, fingerprint
from coterie.simulate.bulk import Outcome

CELL = Cell("easy", "boc", ("heuristic", "proven"), (0.1, 0.01), 3)
CERTIFIED = Cell("easy", "croc", ("proven",), (0.1, 0.01), 3)


def line(row: dict[str, Any]) -> str:
    text = json.dumps(row, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    header = fingerprint(CELL, CELL.plan(), 4)
    assert header["format"] == FORMAT
    stops = {
        "heuristic": Stops(np.array([20, 30]), np.array([True, False])),
        "proven": Stops(np.array([200, 0]), np.array([True, False])),
    }
    with Record(tmp_path / "cell.jsonl", header, resume=False) as record:
        record.add(Outcome(2, stops, 0.25))
    with Record(tmp_path / "cell.jsonl", header, resume=True) as again:
        (outcome,) = again.outcomes.values()
    assert (outcome.trial, outcome.seconds) == (2, 0.25)
    assert list(outcome.stops) == ["heuristic", "proven"]
    for threshold, own in outcome.stops.items():
        assert own.times.tolist() == stops[threshold].times.tolist()
        assert own.correct.tolist() == stops[threshold].correct.tolist()


def test_a_file_of_another_run_is_set_aside(tmp_path: Path) -> None:
    """Of another seed, or of a form that 0.2 does not write any more: nothing is taken over, nothing is lost."""
    header = fingerprint(CELL, CELL.plan(), 4)
    others: list[dict[str, Any]] = [{"seed": 5}, {"format": "coterie-trials-1"}]
    for number, other in enumerate(others):
        path = tmp_path / f"{number}.jsonl"
        row = {"trial": 1, "stops": [[200, 300], [20, 30]], "correct": [[1, 1], [1, 0]], "seconds": 0.5}
        written = line({**header, **other}) + line(row)
        path.write_text(written)
        with Record(path, header, resume=True) as record:
            assert (record.set_aside, record.redone, record.outcomes) == (1, 0, {})
        assert path.with_suffix(".old").read_text() == written
