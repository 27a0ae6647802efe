"""The files of finished trials: what is written is read back, and files of the earlier form are taken over."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from coterie.paper.cells import Cell
from coterie.paper.running import EARLIER_FORMAT, FORMAT, Record, fingerprint
from coterie.simulate.plan import Outcome, Stops

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


def test_a_file_of_the_earlier_form_is_taken_over(tmp_path: Path) -> None:
    """Two lists, the proven threshold first; CROC's had the same in both."""
    for cell, kept in ((CELL, [[200, 300], [20, 30]]), (CERTIFIED, [[40, 50], [40, 50]])):
        header = fingerprint(cell, cell.plan(), 4)
        path = tmp_path / f"{cell.method}.jsonl"
        row = {"trial": 1, "stops": kept, "correct": [[1, 1], [1, 0]], "seconds": 0.5}
        path.write_text(line({**header, "format": EARLIER_FORMAT}) + line(row))
        with Record(path, header, resume=True) as record:
            assert (record.set_aside, record.redone) == (0, 0)
            assert record.outcomes[1].stops["proven"].times.tolist() == kept[0]
            assert record.outcomes[1].stops["heuristic"].times.tolist() == kept[1]
            assert record.outcomes[1].stops["heuristic"].correct.tolist() == [True, False]
            record.add(Outcome(0, record.outcomes[1].stops, 0.1))
        with Record(path, header, resume=True) as again:
            assert sorted(again.outcomes) == [0, 1]
    with Record(tmp_path / "boc.jsonl", {**header, "seed": 5}, resume=True) as other:
        assert other.set_aside == 2
        assert not other.outcomes
