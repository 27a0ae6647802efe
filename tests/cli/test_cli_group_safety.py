"""`coterie group`: no file of anybody's is lost, and columns that vary together are seen before anything is proven."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from grouping import grown, ok, refused

PROVEN = ("-k", "2", "--noise", "1", "--out")
NOT_PROVEN = ("-k", "3", "--noise", "1", "--out")
OWN = "mine,not yours\n1,2\n"


def table(path: Path, names: str = "abcd") -> None:
    rng = np.random.default_rng(0)
    lines = [f"{name},{9.0 * (k % 2) + rng.normal():.3f}" for _ in range(20) for k, name in enumerate(names)]
    path.write_text("\n".join(["item,x", *lines]) + "\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    table(tmp_path / "plain.csv")
    return tmp_path


# Files.


@pytest.mark.parametrize("options", [PROVEN, NOT_PROVEN])
@pytest.mark.parametrize("name", ["groups.csv", "certificate.json", "log.csv", "coterie-group.json"])
def test_a_file_of_ones_own_is_never_touched(here: Path, options: tuple[str, ...], name: str) -> None:
    (here / "out").mkdir()
    (here / "out" / name).write_text(OWN)
    message = refused("plain.csv", *options, "out")
    assert f"out/{name} is there already, and coterie group did not write it: name another folder" in message
    assert {path.name: path.read_text() for path in (here / "out").iterdir()} == {name: OWN}


@pytest.mark.parametrize("options", [PROVEN, NOT_PROVEN])
@pytest.mark.parametrize("name", ["groups.csv", "certificate.json", "log.csv", "coterie-group.json"])
def test_the_table_itself_is_never_touched(here: Path, options: tuple[str, ...], name: str) -> None:
    os.rename("plain.csv", name)
    before = (here / name).read_bytes()
    for source in (name, here / name, f"./{name}"):
        assert f"would overwrite the table {Path(source)} itself: name another folder" in refused(source, *options, ".")
    (here / "link.csv").symlink_to(name)
    assert "itself" in refused("link.csv", *options, ".")
    assert (here / name).read_bytes() == before
    ok(name, *options, "out")  # elsewhere it may be


def test_the_groups_of_an_earlier_run_are_not_their_own_table(here: Path) -> None:
    ok("plain.csv", *PROVEN, "out")
    before = (here / "out/groups.csv").read_bytes()
    assert "itself" in refused("out/groups.csv", "--items", "item", "--values", "mean x", *PROVEN, "out")
    assert (here / "out/groups.csv").read_bytes() == before


def test_what_it_wrote_itself_is_replaced_and_nothing_else(here: Path) -> None:
    grown("plain.csv", *PROVEN, "out")
    (here / "out" / "notes.txt").write_text(OWN)
    marker = json.loads((here / "out/coterie-group.json").read_text())
    assert (marker["source"], marker["settings"]["n_clusters"], marker["settings"]["noise"]) == ("plain.csv", 2, 1.0)
    assert sorted(marker["files"]) == ["certificate.json", "groups.csv", "log.csv"]
    for name, digest in marker["files"].items():
        assert hashlib.sha256((here / "out" / name).read_bytes()).hexdigest() == digest
    grown("plain.csv", *NOT_PROVEN, "out")
    kept = sorted(path.name for path in (here / "out").iterdir())
    assert kept == ["coterie-group.json", "groups.csv", "notes.txt"]
    assert json.loads((here / "out/coterie-group.json").read_text())["settings"]["n_clusters"] == 3
    (here / "out" / "log.csv").write_text(OWN)  # the name is free again: now it is somebody else's
    assert "out/log.csv is there already, and coterie group did not write it" in refused("plain.csv", *PROVEN, "out")
    (here / "out" / "log.csv").unlink()
    grown("plain.csv", *PROVEN, "out")
    assert sorted(path.name for path in (here / "out").iterdir()) == [
        "certificate.json", "coterie-group.json", "groups.csv", "log.csv", "notes.txt",
    ]  # fmt: skip


@pytest.mark.parametrize("options", [PROVEN, NOT_PROVEN])
@pytest.mark.parametrize("name", ["groups.csv", "certificate.json", "log.csv"])
def test_what_was_changed_since_is_kept(here: Path, options: tuple[str, ...], name: str) -> None:
    ok("plain.csv", *PROVEN, "out")
    with (here / "out" / name).open("a") as file:
        file.write("a remark\n")
    before = {path.name: path.read_bytes() for path in (here / "out").iterdir()}
    assert f"out/{name} was changed since coterie group wrote it: name another" in refused("plain.csv", *options, "out")
    assert {path.name: path.read_bytes() for path in (here / "out").iterdir()} == before


def test_links_and_folders_in_the_way_are_kept(here: Path) -> None:
    (here / "own.csv").write_text(OWN)
    (here / "out").mkdir()
    for target in ("own.csv", "nowhere.csv"):
        (here / "out/groups.csv").symlink_to(here / target)
        assert "out/groups.csv is there already" in refused("plain.csv", *PROVEN, "out")
        (here / "out/groups.csv").unlink()
    (here / "out/log.csv").mkdir()
    assert "out/log.csv is there already" in refused("plain.csv", *PROVEN, "out")
    assert (here / "own.csv").read_text() == OWN
    assert not (here / "nowhere.csv").exists()


def test_names_are_no_formulas_in_the_table_of_groups(here: Path) -> None:
    names = ["=1+1", "+x", "-2+3", "@sum", "-7", "plain"]
    rng = np.random.default_rng(0)
    lines = [f"{name},{9.0 * (k % 2) + rng.normal():.3f}" for _ in range(20) for k, name in enumerate(names)]
    (here / "own.csv").write_text("\n".join(["item,x", *lines]) + "\n")
    ok("own.csv", *PROVEN, "out")
    with (here / "out/groups.csv").open(newline="") as file:
        assert [row["item"] for row in csv.DictReader(file)] == ["'+x", "'-2+3", "-7", "'=1+1", "'@sum", "plain"]


# Columns.


def test_a_line_break_among_the_columns_is_an_error_in_one_line(here: Path) -> None:
    message = refused("plain.csv", "-k", 2, "--values", "x\ny")
    assert message == "coterie: --values must be names of columns in one line, as a,b,c, got 'x\\ny'\n"


def together(path: Path, dim: int, correlation: float = 0.95, repeats: int = 10) -> None:
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(np.full((dim, dim), correlation) + (1.0 - correlation) * np.eye(dim))
    lines = ["item," + ",".join(f"x{j}" for j in range(dim))]
    for _ in range(repeats):
        for k in range(6):
            lines.append(f"i{k}," + ",".join(f"{value:.4f}" for value in 8.0 * (k % 2) + root @ rng.normal(size=dim)))
    path.write_text("\n".join(lines) + "\n")


def test_columns_that_vary_together_prove_nothing(here: Path) -> None:
    """No column contradicts a standard deviation of 1, but their sum does: without a word this would be "proven"."""
    together(here / "own.csv", 6)
    shown = ok("own.csv", *PROVEN, "out")
    assert re.search(
        r"^Nothing is proven: columns vary together \(x\d and x\d: correlation 0.9\d\), in some direction more",
        shown,
    )
    assert re.search(r"than the noise stated. Use --noise \S+, or find out why", shown)
    assert "wrong with probability" not in shown
    with (here / "out/groups.csv").open(newline="") as file:
        assert "proven" not in {row["state"] for row in csv.DictReader(file)}
    better = re.search(r"Use --noise (\S+),", shown)
    assert better is not None
    assert "warning" not in ok("own.csv", "-k", 2, "--noise", better[1])


def test_a_covariance_is_proposed_where_it_is_short(here: Path) -> None:
    together(here / "own.csv", 3, repeats=20)
    shown = grown("own.csv", "-k", 2, "--noise", "1")
    advice = re.search(r"State a covariance: --noise ('\S+'), or --noise (\S+), which takes more measurements", shown)
    assert advice is not None
    proposed = re.search(r"--noise ('\S+') has a margin for chance", grown("own.csv", "-k", 2))
    assert proposed is not None
    assert proposed[1] == advice[1]
    used = []
    for noise in advice.groups():
        found = json.loads(grown("own.csv", "-k", 2, "--noise", *shlex.split(noise), "--json"))
        assert found["done"]
        assert (found["noise"]["direction"], found["noise"]["verdicts"]) == (None, [None] * 3)
        assert "Proven, if the noise is as" in grown("own.csv", "-k", 2, "--noise", *shlex.split(noise))
        used.append(found["t"])
    assert used[0] <= used[1]
    together(here / "wide.csv", 6, repeats=20)  # a matrix of 36 numbers helps nobody in one line
    shown = grown("wide.csv", "-k", 2)
    assert "[[" not in shown
    assert "the covariance that --propose-noise FILE writes has a margin for chance" in shown


def test_repeats_must_be_enough_for_all_columns_together(here: Path) -> None:
    together(here / "own.csv", 10, repeats=5)
    message = refused("own.csv", "-k", 2, "--propose-noise", "noise.csv")
    assert "own.csv has too few repeats to tell the noise (24 degrees of freedom, 30 are needed)" in message
    assert not (here / "noise.csv").exists()
