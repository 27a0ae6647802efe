"""The file of a cell: finished trials, appended as they finish, one line of JSON each.

The first line says what was run. Every line carries a checksum of its own text, so a line that was half written when
the process was killed is found, cut off, and its trial run again.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from coterie import __version__
from coterie.paper.cells import Cell
from coterie.simulate.plan import Outcome, Plan, Stops

FORMAT = "coterie-trials-2"
EARLIER_FORMAT = "coterie-trials-1"
"""Its lines have two lists, of the thresholds in the order of `EARLIER_ROWS`."""
EARLIER_ROWS = ("proven", "heuristic")


def fingerprint(cell: Cell, plan: Plan, seed: int) -> dict[str, Any]:
    """What the numbers of a cell depend on; trials of another fingerprint are not taken over."""
    digest = hashlib.sha256(plan.instance.labels.astype("<i8").tobytes())
    # To ten digits: linear algebra libraries differ in the last ones, and the instance is still the same.
    digest.update(np.array([f"{value:.10e}" for value in plan.instance.centers.ravel()]).tobytes())
    return {
        "format": FORMAT,
        "version": __version__,
        "instance": cell.instance,
        "instance_sha256": digest.hexdigest(),
        "method": cell.method,
        "thresholds": list(cell.kinds),
        "deltas": list(cell.deltas),
        "seed": seed,
    }


class Record:
    """The trials of one cell on disk. Open with `resume` to go on with those that are there."""

    def __init__(self, path: Path, header: dict[str, Any], resume: bool) -> None:
        self.path = path
        self.outcomes: dict[int, Outcome] = {}
        self.redone = 0
        """Lines that were damaged and cut off."""
        self.set_aside = 0
        """Trials of another seed, version or run that were in the file: they are kept beside it, as .old."""
        kept = self._read(header) if resume and path.exists() else 0
        if not kept and path.exists():
            self.set_aside = max(0, path.read_bytes().count(b"\n") - 1)
            path.replace(path.with_suffix(".old"))
        if kept:
            with path.open("r+b") as file:
                file.truncate(kept)
        self._file: IO[bytes] = path.open("ab" if kept else "wb")
        if not kept:
            self._write(header)

    def _read(self, header: dict[str, Any]) -> int:
        """Take over the good lines; the bytes that they take up, 0 if the file is of another run."""
        kept = 0
        lines = self.path.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines):
            row = _checked(line)
            if row is None:
                self.redone = len(lines) - number  # after a damaged line nothing is trusted
                break
            if number == 0 and row not in (header, {**header, "format": EARLIER_FORMAT}):
                return 0
            if number > 0:
                outcome = _outcome(row)
                self.outcomes[outcome.trial] = outcome
            kept += len(line)
        return kept

    def add(self, outcome: Outcome) -> None:
        """Keep a finished trial: on its way to the disk when this returns, whatever happens to the process."""
        self._write(
            {
                "trial": outcome.trial,
                "stops": {threshold: own.times.tolist() for threshold, own in outcome.stops.items()},
                "correct": {threshold: own.correct.astype(int).tolist() for threshold, own in outcome.stops.items()},
                "seconds": round(outcome.seconds, 6),
            }
        )
        self.outcomes[outcome.trial] = outcome

    def _write(self, row: dict[str, Any]) -> None:
        text = json.dumps(row, separators=(",", ":"))
        self._file.write(f"{zlib.crc32(text.encode()):08x} {text}\n".encode())
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked(line: bytes) -> dict[str, Any] | None:
    """The row, if its checksum is right and its end was written."""
    checksum, _, text = line.partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text.rstrip(b"\n")):
        return None
    row: dict[str, Any] = json.loads(text)
    return row


def _outcome(row: dict[str, Any]) -> Outcome:
    times, correct = row["stops"], row["correct"]
    if isinstance(times, list):
        times, correct = (dict(zip(EARLIER_ROWS, rows, strict=True)) for rows in (times, correct))
    stops = {
        threshold: Stops(np.array(times[threshold], dtype=np.int64), np.array(correct[threshold]) == 1)
        for threshold in times
    }
    return Outcome(row["trial"], stops, row["seconds"])
