"""`coterie bench noise`: its cells, that a run goes on where another was broken off, and what it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bench import noise
from bench.instances import named
from bench.noise import ASKED, DELTAS, PART, Kept, all_cells, covered, not_covered
from bench.part import Progress
from coterie.problem.families import noise_of
from coterie.simulate.bulk import plan_for

ROOT = Path(__file__).resolve().parents[2]


def test_every_cell_can_be_planned_and_has_a_name_of_its_own() -> None:
    cells = all_cells(False)
    assert max(Counter(one.key for one in cells).values()) == 1
    for one in cells:
        plan = plan_for(named(one.instance), "croc", (one.delta,), "proven", 10, noise=one.noise, world=one.world)
        assert plan.noise == noise_of(one.noise, named(one.instance).dim)
    assert all(one.promised for one in covered())
    assert not any(one.promised for one in not_covered())


def test_everything_that_is_asked_for_is_a_cell() -> None:
    there = {(one.case, one.label, one.delta) for one in covered()}
    for (case, label), limits in ASKED.items():
        assert {(case, label, delta) for delta in DELTAS[: len(limits)]} <= there


def test_what_was_measured_is_kept_for_the_same_engine_only(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cells.part"
    kept = Kept(path, "one")
    kept.add("a", {"mean": 1.0})
    kept.add("b", {"mean": None})
    assert Kept(path, "one").rows == {"a": {"mean": 1.0}, "b": {"mean": None}}
    assert Kept(path, "other").rows == {}
    kept.done()
    assert not path.exists()


def test_a_run_that_was_broken_off_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [one for one in all_cells(True) if one.label == "known"][:3]
    assert len(cells) == 3
    measured = noise.measured
    seen: list[str] = []

    def until(most: int) -> None:
        def some(one: noise.Cell, trials: int) -> dict[str, object]:
            if len(seen) == most:
                raise KeyboardInterrupt
            seen.append(one.key)
            return measured(one, trials)

        monkeypatch.setattr(noise, "measured", some)

    monkeypatch.setattr(noise, "ROOT", tmp_path)
    monkeypatch.setattr(noise, "fingerprint", lambda: "the same")
    monkeypatch.setattr(noise, "all_cells", lambda quick: cells)
    said: list[str] = []
    until(2)
    with pytest.raises(KeyboardInterrupt):
        noise.with_trials(2, True, Progress(said.append), tmp_path)
    until(9)
    rows = noise.with_trials(2, True, Progress(said.append), tmp_path)
    assert seen == [one.key for one in cells]  # each once
    assert "2 of 3 cells were measured before" in "".join(said)
    assert [(row["case"], row["trials"]) for row in rows] == [(one.case, 2) for one in cells]
    assert not list((tmp_path / "build" / "bench").iterdir())
    again = [measured(one, 2) for one in cells]
    assert again == rows  # the same seed
    json.dumps(rows)
    first, _ = PART.tables(rows)[0]
    assert first.columns[-1].heading == "goal"
    assert PART.headlines(rows)
    for table, own in PART.tables(rows):
        assert [[column.cell(row) for column in table.columns] for row in own]


def test_trials_are_for_parts_that_can_be_told() -> None:
    command = [sys.executable, "-m", "coterie.cli", "bench", "noise", "needed", "--trials", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "the part 'needed' chooses its number of trials itself" in done.stderr
    command[-3:] = ["--trials", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "trials must be at least 1, got 0" in done.stderr
