"""`coterie bench`: what it refuses, what it keeps, what it shows; a quick run of the fast parts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

ROOT = Path(__file__).resolve().parents[2]


def bench(*words: str, cwd: Path = ROOT, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own; `path`: where to take coterie from instead of the clone."""
    env = os.environ if path is None else {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-m", "coterie.cli", "bench", *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The results of a quick run, started from elsewhere, and what it printed."""
    folder = tmp_path_factory.mktemp("bench")
    parts = ("needed", "scan", "hands", "foreign", "growth", "million")
    done = bench("--quick", "--out", "kept", *parts, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "kept", done


def test_unknown_part_is_named_with_the_choices() -> None:
    done = bench("needed", "speeed")
    assert done.returncode == 2
    assert done.stderr.startswith("coterie: unknown part 'speeed': choose from speed, needed,")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_without_a_clone_it_says_what_to_do(tmp_path: Path) -> None:
    # As pip would install it: the package alone, without the folders around it.
    shutil.copytree(ROOT / "src" / "coterie", tmp_path / "site" / "coterie", ignore=shutil.ignore_patterns("*.nb*"))
    (tmp_path / "elsewhere").mkdir()
    done = bench("needed", cwd=tmp_path / "elsewhere", path=tmp_path / "site")
    assert done.returncode == 2
    assert "clone the repository" in done.stderr
    assert done.stderr.count("\n") == 1


def test_quick_run_does_not_replace_the_full_results() -> None:
    done = bench("--quick", "--out", str(ROOT / "bench" / "results"), "needed")
    assert done.returncode == 2
    assert "choose another --out" in done.stderr


@pytest.mark.slow
def test_quick_run_keeps_every_part_with_its_machine(
    quick: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = quick
    for name in ("needed", "scan", "hands", "foreign", "growth", "million"):
        content = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        assert content["quick"] is True
        assert content["rows"]
        assert {"processor", "cores", "python", "numpy"} <= content["machine"].keys()
    assert max(map(cell_len, done.stdout.splitlines())) <= 120
    for axis in "mkd":
        assert (folder / f"growth-{axis}.png").stat().st_size < 100_000


@pytest.mark.slow
def test_needed_has_all_methods_and_ratios_to_croc(quick: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    from bench.needed import PAPER
    from bench.peers import PEERS

    rows = json.loads((quick[0] / "needed.json").read_text(encoding="utf-8"))["rows"]
    easy = {row["method"]: row for row in rows if row.get("case") == "easy, δ = 0.1"}
    assert set(easy) == {"CROC", *(label for label, _, _ in PAPER), *(f"{name} †" for name in PEERS)}
    for row in easy.values():
        assert row["over_croc"] == pytest.approx(row["mean"] / easy["CROC"]["mean"])
        assert row["mean"] >= row["n_arms"] == 11
        assert row["trials"] >= 1
        assert row["median"] <= row["quantile95"] <= row["largest"]
        assert row["unfinished"] == 0
    assert easy["BOC, β"]["mean"] > easy["BOC, β̃ *"]["mean"]
    assert easy["CROC"]["lower_bound"] == pytest.approx(1.112, abs=0.001)  # d_KL(0.1, 0.9)·D*


@pytest.mark.slow
def test_needed_has_families_beside_boc_and_the_peers(quick: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    from bench.families import FAMILIES
    from bench.peers import PEERS

    rows = json.loads((quick[0] / "needed.json").read_text(encoding="utf-8"))["rows"]
    families = {row["family"]: row for row in rows if "family" in row}
    assert set(families) < set(FAMILIES)
    for row in families.values():
        assert set(row["methods"]) == {"CROC", "BOC, β", *PEERS}
        croc = row["methods"]["CROC"]
        assert croc["trials"] == 8
        assert row["n_arms"] <= croc["median"] <= croc["quantile95"] <= croc["largest"] <= row["cap"]
        assert row["boc_over_croc"] == pytest.approx(row["methods"]["BOC, β"]["median"] / croc["median"])
        best = min(row["methods"][peer]["median"] for peer in PEERS)
        assert row["peer_over_croc"] == pytest.approx(best / croc["median"])
    shown = bench("--show", "--out", str(quick[0]), "needed").stdout
    assert shown.index("Measurements needed") < shown.index("CROC on families") < shown.index("Beside them, medians")
    assert "KeyError" not in shown


@pytest.mark.slow
def test_show_prints_the_headlines_of_what_was_kept(quick: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = quick
    shown = bench("--show", "--out", str(folder))
    assert shown.returncode == 0, shown.stderr
    table = shown.stdout[shown.stdout.index("All headlines") :]
    assert table.strip() in done.stdout
    kept = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["rows"]
    assert {row["part"] for row in kept} == {"needed", "scan", "hands", "foreign", "growth", "million"}
    for row in kept:
        assert row["measured"] in table
    part = bench("--show", "--out", str(folder), "million")
    assert "20,000" in part.stdout
    assert "All headlines" not in part.stdout


def test_show_of_nothing_says_what_to_do(tmp_path: Path) -> None:
    shown = bench("--show", "--out", str(tmp_path))
    assert shown.returncode == 2
    assert "measure with coterie bench first" in shown.stderr
    shown = bench("--show", "--out", str(tmp_path), "speed")
    assert shown.returncode == 2
    assert "measure it with coterie bench speed" in shown.stderr


@pytest.mark.slow
def test_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "coterie.cli", "bench", "--quick", "--out", str(tmp_path), "needed", "growth"]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any("needed.json" in line for line in process.stdout)  # reads up to there
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == f"coterie: stopped; kept in {tmp_path}: needed\n"
    assert json.loads((tmp_path / "needed.json").read_text(encoding="utf-8"))["rows"]
    assert not (tmp_path / "growth.json").exists()
