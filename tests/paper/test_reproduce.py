"""The reproduction: right numbers, the same after a kill, the same for any number of workers."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.paper.cells import Cell, cells_of, instance_named
from coterie.paper.reproduce import reproduce


def table(folder: Path, part: str) -> list[dict[str, str]]:
    with (folder / f"{part}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def table2(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """table2 with 24 trials, in one unbroken run."""
    return reproduce("table2", trials=24, out=tmp_path_factory.mktemp("table2"), progress=False)


def test_numbers_match_simulate(table2: Any) -> None:
    """Every row is what `simulate` says with the same seed; wrong partitions included."""
    rows = table(table2.folder, "table2")
    assert len(rows) == 2 * 4 * 10
    instance = coterie.datasets.synthetic("challenging").with_hardness(2.0)
    for method, threshold in (("boc", "heuristic"), ("boc", "proven"), ("croc", "certificate")):
        shown = [
            row
            for row in rows
            if (row["instance"], row["method"], row["threshold"]) == ("challenging-rescaled", method, threshold)
        ]
        runs = coterie.simulate(
            instance,
            method,
            deltas=[float(row["delta"]) for row in shown],
            threshold="heuristic" if threshold == "heuristic" else "proven",
            trials=24,
            seed=0,
            progress=False,
        )
        assert [float(row["mean"]) for row in shown] == runs.mean().tolist()
        assert [float(row["std"]) for row in shown] == runs.std().tolist()
        assert [int(row["wrong"]) for row in shown] == runs.errors().tolist()
        assert {int(row["trials"]) for row in shown} == {24}


def test_differences_are_against_the_printed_numbers(table2: Any) -> None:
    row = next(
        row
        for row in table(table2.folder, "table2")
        if (row["instance"], row["method"], row["threshold"], row["delta"])
        == ("iris", "boc-linear", "heuristic", "0.1")
    )
    assert (row["printed"], row["printed_std"]) == ("886.8", "47.5")
    mean, std = float(row["mean"]), float(row["std"])
    pooled = np.sqrt((23 * std**2 + 255 * 47.5**2) / 278 * (1 / 24 + 1 / 256))
    assert float(row["difference_in_errors"]) == pytest.approx((mean - 886.8) / pooled, rel=1e-12)
    assert float(row["difference"]) == pytest.approx(mean / 886.8 - 1, rel=1e-9)


def test_everything_is_written_and_the_report_loads_nothing(table2: Any) -> None:
    names = {path.name for path in table2.folder.iterdir()}
    assert {"table2.csv", "table2.md", "table2.png", "table2.svg", "report.html", "trials"} <= names
    page = table2.report.read_text(encoding="utf-8")
    for needle in ("886.8 ± 47.5", "Seed 0", "numpy", "pulls/s and core", "CROC (proven)", "wrong", "checks hold"):
        assert needle in page
    for outside in ("src='http", 'src="http', "<link", "<script", "url(http"):
        assert outside not in page


def test_resuming_a_finished_run_runs_nothing(table2: Any) -> None:
    before = (table2.folder / "table2.csv").read_bytes()
    again = reproduce("table2", trials=24, out=table2.folder, resume=True, progress=False)
    assert all(result.taken_over == 24 for result in again.results.values())
    assert (table2.folder / "table2.csv").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_numbers_keep_for_any_number_of_workers(table2: Any, tmp_path: Path, workers: int) -> None:
    reproduce("table2", trials=24, out=tmp_path, workers=workers, progress=False)
    assert (tmp_path / "table2.csv").read_bytes() == (table2.folder / "table2.csv").read_bytes()
    assert (tmp_path / "table2.svg").read_bytes() == (table2.folder / "table2.svg").read_bytes()


@pytest.mark.slow
def test_more_trials_go_on_from_fewer(table2: Any, tmp_path: Path) -> None:
    reproduce("table2", trials=10, out=tmp_path, progress=False)
    more = reproduce("table2", trials=24, out=tmp_path, resume=True, progress=False)
    assert {result.taken_over for result in more.results.values()} == {10}
    assert (tmp_path / "table2.csv").read_bytes() == (table2.folder / "table2.csv").read_bytes()


def damage_end(text: bytes) -> bytes:
    return text[:-7]


def damage_line_end(text: bytes) -> bytes:
    return text[:-1]


def damage_middle(text: bytes) -> bytes:
    place = len(text) // 2
    return text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]


def damage_header(text: bytes) -> bytes:
    return b"x" + text[1:]


def damage_all(text: bytes) -> bytes:
    return b""


@pytest.mark.slow
@pytest.mark.parametrize("damage", [damage_end, damage_line_end, damage_middle, damage_header, damage_all])
def test_damaged_files_are_found_and_redone(table2: Any, tmp_path: Path, damage: Any) -> None:
    reproduce("table2", trials=24, out=tmp_path, progress=False)
    file = tmp_path / "trials" / "iris-boc.jsonl"
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = reproduce("table2", trials=24, out=tmp_path, resume=True, progress=False)
    assert again.results["iris-boc"].taken_over < 24
    assert (tmp_path / "table2.csv").read_bytes() == (table2.folder / "table2.csv").read_bytes()
    lines = file.read_bytes().splitlines()
    assert len(lines) == 25
    assert len({line.split(b'"trial":')[1].split(b",")[0] for line in lines[1:]}) == 24


@pytest.mark.slow
def test_another_seed_is_not_taken_over(table2: Any, tmp_path: Path) -> None:
    reproduce("table2", trials=6, out=tmp_path, seed=1, progress=False)
    other = reproduce("table2", trials=6, out=tmp_path, seed=2, resume=True, progress=False)
    assert {result.taken_over for result in other.results.values()} == {0}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """figure3 with 16 trials, in one run."""
    return reproduce("figure3", trials=16, out=tmp_path_factory.mktemp("figure3"), progress=False).folder


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_resumed_after_a_kill_equals_unbroken(unbroken: Path, tmp_path: Path, ending: signal.Signals) -> None:
    """Killed while trials are under way; what was finished is taken over, and the numbers are those of one run."""
    killed = tmp_path / "killed"
    command = [sys.executable, "-m", "coterie.cli", "reproduce", "figure3", "--trials", "16", "--out", str(killed)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    trials = killed / "trials" / "moderate-croc-figure.jsonl"
    end = time.monotonic() + 120
    while not trials.exists() or trials.read_bytes().count(b"\n") < 4:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(process.pid, ending)
    said = process.communicate(timeout=60)[1].decode()
    assert not (killed / "report.html").exists(), "it was too late for a kill"
    if ending == signal.SIGINT:
        assert process.returncode == 130
        assert "--resume" in said
        assert "Traceback" not in said
    resumed = reproduce("figure3", trials=16, out=killed, resume=True, progress=False)
    assert 3 <= resumed.results["moderate-croc-figure"].taken_over < 16
    for name in ("figure3.csv", "figure3-slopes.csv", "figure3.md"):
        assert (killed / name).read_bytes() == (unbroken / name).read_bytes()


def test_cells_have_names_of_their_own() -> None:
    for trials in (None, 7):
        cells = [cell for part in ("table1", "table2", "table3", "figure3") for cell in cells_of(part, trials)]
        named: dict[str, Cell] = {}
        for cell in cells:
            assert named.setdefault(cell.name, cell) == cell, "two different cells would share a file"
    assert cells_of("table3")[0].trials == 256
    assert {cell.trials for cell in cells_of("table3") if "described" in cell.name and "proven" not in cell.name} == {
        32
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["table9"], "unknown table or figure 'table9': choose from table1, table2, table3, figure3, all"),
        (["table1", "--trials", "0"], "trials must be at least 1, got 0"),
        (["table1", "--trials", "-5"], "trials must be at least 1, got -5"),
        (["table1", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["table1", "--scheduler", "nowhere"], "'nowhere' is not the address of a scheduler"),
        (["table1", "--scheduler", "tcp://127.0.0.1:9"], "nothing listens at tcp://127.0.0.1:9"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], says: str) -> None:
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(out)])
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    result = CliRunner().invoke(app, ["reproduce", "table2", "--out", str(tmp_path / "file")])
    assert result.exit_code == 2
    assert f"cannot write to {tmp_path / 'file'}" in result.stderr
    assert "--out" in result.stderr


def test_instances_are_those_of_the_paper() -> None:
    assert coterie.hardness(instance_named("yeast")) == pytest.approx(2.0, rel=1e-9)
    assert coterie.hardness(instance_named("challenging-rescaled")) == pytest.approx(2.0, rel=1e-9)
    assert coterie.hardness(instance_named("challenging")) == pytest.approx(48.14012, rel=1e-6)
    assert coterie.hardness(instance_named("mnist-50-described")) == pytest.approx(2.0, rel=1e-9)
    assert coterie.hardness(instance_named("mnist-400-implied")) == pytest.approx(0.5312, rel=1e-9)
    scale = [np.linalg.norm(instance_named(f"mnist-{dim}-implied").centers[:, :10]) for dim in (10, 400)]
    assert scale[0] == pytest.approx(scale[1], rel=1e-9), "one scale for every d"
