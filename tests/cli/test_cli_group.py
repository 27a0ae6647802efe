"""`coterie group`: tables as people have them, what it says about them, and the files that it writes."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from grouping import grown, ok, refused, rows, text
from typer.testing import CliRunner

from coterie.cli import app

NOISE = "0.2,25"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "plain.csv").write_text(text("sample,ph,turbidity", rows()))
    return tmp_path


def test_a_table_of_samples(here: Path) -> None:
    shown = grown("plain.csv", "-k", 3, "--noise", NOISE)
    assert "plain.csv: 20 items (column sample), 160 measurements, 8 each." in shown
    assert "Values: ph, turbidity (--values picks)." in shown
    spread = re.search(r"ph 0.2 \(repeats vary by (\S+)\); turbidity 25 \(repeats vary by (\S+)\); 140 degrees", shown)
    assert spread is not None
    assert 0.15 < float(spread[1]) < 0.25
    assert 19 < float(spread[2]) < 31
    assert re.search(r"\d+ of 160 measurements would have been enough\.\n", shown)
    assert "Proven, if the noise is as stated: at least 3 groups; and if there are exactly 3 groups, " in shown
    assert "wrong with probability at most 0.05" in shown
    assert "All 160 measurements fit these groups" in shown
    assert "warning" not in shown
    assert re.search(r"group ┃ items ┃ ph\s+┃ turbidity ┃ members", shown)


def test_members_of_a_proven_group_are_never_cut(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    (here / "many.csv").write_text(text("sample,ph,turbidity", rows(items=90)))
    shown = ok("many.csv", "-k", 3, "--noise", NOISE)
    assert {f"S{item:02}" for item in range(1, 91)} <= set(re.findall(r"S\d+", shown))
    assert "more" not in shown.split("members")[1]


def test_the_same_without_a_database(here: Path) -> None:
    """After a bare installation there is no SQLAlchemy and no pyarrow: CSV files are grouped all the same."""
    script = "import sys; sys.modules.update(sqlalchemy=None, pyarrow=None); from coterie.cli import app; app()"
    for command in (["group"], ["campaign", "replay"]):
        answer = subprocess.run(
            [sys.executable, "-c", script, *command, "plain.csv", "-k", "3", "--noise", NOISE, "--shuffled"],
            capture_output=True, text=True,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stderr
        assert "would have been enough" in answer.stdout
    answer = subprocess.run([sys.executable, "-c", script, "campaign", "list"], capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "campaigns need SQLAlchemy: pip install" in answer.stderr


# Tables as they come.


@pytest.mark.parametrize(
    ("header", "mark", "comma", "encoding"),
    [
        ("Arm,ph,turbidity", ",", False, "utf-8"),
        ("ITEM;pH;Trübung", ";", True, "utf-8"),
        ("Sample;pH;Trübung", ";", True, "utf-8-sig"),
        ("name;pH, raw;Trübung", ";", True, "utf-8"),
        ("id\tpH\tTrübung", "\t", True, "utf-8"),
        ("sample;pH;Trübung", ";", False, "utf-8"),
        ("sep=;\nsample;pH;Trübung", ";", True, "utf-8-sig"),
        ("Probe;pH;Trübung", ";", True, "utf-8"),
    ],
)
def test_tables_as_spreadsheets_write_them(here: Path, header: str, mark: str, comma: bool, encoding: str) -> None:
    content = [[a, *(one.replace(".", ",") if comma else one for one in rest)] for a, *rest in rows()]
    path = here / "own.csv"
    path.write_text(text(header, content, mark).replace("\n", "\r\n") + f"{mark}{mark}\r\n", encoding, newline="")
    own = json.loads(grown(path, "-k", 3, "--noise", NOISE, "--json"))
    plain = json.loads(grown("plain.csv", "-k", 3, "--noise", NOISE, "--json"))
    for key in ("labels", "names", "t", "means", "certificate"):
        assert own[key] == plain[key], key
    assert own["read"]["guessed"] == header.startswith("Probe")


def test_the_item_column_is_named_or_guessed_or_asked_for(here: Path) -> None:
    (here / "own.csv").write_text(text("probe,ph,turbidity", rows()))
    assert "probe is the only column without numbers" in ok("own.csv", "-k", 3, "--noise", NOISE)
    (here / "own.csv").write_text(text("probe,ph,turbidity,who", [[*row, "ann"] for row in rows()]))
    message = refused("own.csv", "-k", 3, "--noise", NOISE)
    assert "--items COLUMN" in message
    assert "its columns are probe, ph, turbidity, who" in message
    shown = ok("own.csv", "-k", 3, "--noise", NOISE, "--items", "Probe")
    assert "Left out: who (no numbers)." in shown
    assert "has no column 'prube'; its columns are probe, ph" in refused("own.csv", "-k", 3, "--items", "prube")
    (here / "own.csv").write_text(text("probe nr,ph,turbidity", [[row[0][1:], *row[1:]] for row in rows()]))
    assert "--items COLUMN" in refused("own.csv", "-k", 3, "--noise", NOISE)


def test_columns_of_numbers_are_values_unless_picked(here: Path) -> None:
    content = [[*row, str(k * k % 59)] for k, row in enumerate(rows())]
    (here / "runno.csv").write_text(text('sample,ph,turbidity,"run, no"', content))
    message = refused("runno.csv", "-k", 3, "--noise", NOISE)
    assert "has 3 value columns (ph, turbidity, run, no), --noise has 2 entries: give 3, or one for all" in message
    assert "--values ph,turbidity" in message
    shown = ok("runno.csv", "-k", 3, "--noise", NOISE, "--values", "PH,turbidity")
    assert "Values: ph, turbidity (--values picks). Left out: run, no (not picked)." in shown
    assert "ph, run, no" in ok("runno.csv", "-k", 3, "--noise", "0.2 50", "--values", 'ph,"run, no"')
    assert "must differ" in refused("runno.csv", "-k", 3, "--noise", 1, "--values", "ph,ph")
    assert "must differ" in refused("runno.csv", "-k", 3, "--noise", 1, "--values", "sample,ph")


def test_mistyped_items_are_seen(here: Path) -> None:
    content = rows()
    content[4][0], content[5][0] = "S5", "s06 "
    (here / "typo.csv").write_text(text("sample,ph,turbidity", content))
    shown = ok("typo.csv", "-k", 3, "--noise", NOISE)
    assert "22 items (column sample), 160 measurements, 1 to 8 each." in shown
    assert "Measured only once: S5, s06 " in shown
    assert "warning: S06 and s06 are taken for different items" in shown
    (here / "once.csv").write_text(text("id,ph,turbidity", [[str(k), *row[1:]] for k, row in enumerate(rows())]))
    shown = ok("once.csv", "-k", 3, "--noise", NOISE)
    assert "every item was measured only once; does the right column name the items" in shown
    assert "cannot be checked" in shown


def test_cells_that_are_not_numbers_are_counted_and_named(here: Path) -> None:
    content = rows()
    content[4][1], content[5][2] = "", "<0.1"
    for k in range(10, 16):
        content[k][1] = "n.d."
    (here / "cells.csv").write_text(text("sample,ph,turbidity", content))
    message = refused("cells.csv", "-k", 3, "--noise", NOISE)
    assert "line 6, column 'ph': a number is needed, got ''" in message
    assert "8 such cells, also line 7, column 'turbidity': '<0.1'; line 12, column 'ph': 'n.d.'" in message
    assert "only if the reason has nothing to do with its value" in message
    assert "### Cells that are not numbers" in (Path(__file__).parents[2] / "docs" / "CAMPAIGNS.md").read_text()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"sample,ph,ph,x,x\na,1,2,3,4\n", "two columns 'ph', 'x': rename"),
        ("sample;Trübung\na;1\n".encode("latin-1"), 'not a CSV file in UTF-8: line 1 cannot be read; save it as'),
        ("sample,x\na,1\n".encode("utf-16"), 'save it as "CSV UTF-8"'),
        (b"PK\x03\x04\x14\x00", "cannot be read as an Excel file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is a spreadsheet of an old kind (.xls), or one with a password: save it"),
        (b"sample;x\na;1,5\nb;1.5\nc;2\n", "line 2, column 'x': '1,5' has a decimal comma, but line 3"),
        (b"sample;x\na;1.234,5\nb;1\n", "line 2, column 'x': a number is needed, got '1.234,5'"),
        (b'"x" "f"\n"1" 2 "a"\n'.replace(b" ", b","), "if R has numbered the rows"),
        (b"sample,x\na,1,5\nb,1,4\n", "if it uses decimal commas, save it with semicolons"),
        (b"sample,x\na,1\n,2\nb,3\n", "line 3, column 'sample': it is empty"),
        (b"sample,x\na,one\nb,two\nc,three\n", "has no column of numbers beside the items"),
        (b"sample,x\n", "has no measurements: its only line names the columns sample, x"),
        (b"", "is empty"),
        (b"sample,x\na,1\nb,2\n", "--clusters must be at least 2 and less than the number of items, 2, got 2"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_what_to_do(here: Path, content: bytes, what: str) -> None:
    (here / "own.csv").write_bytes(content)
    message = refused("own.csv", "-k", 2, "--noise", 1)
    assert what in message
    assert "own.csv" in message or "--clusters" in message


def test_files_that_are_not_there(here: Path) -> None:
    assert refused("nowhere.csv", "-k", 2) == "coterie: No such file: nowhere.csv\n"
    assert "is a folder: name the file in it" in refused(".", "-k", 2)
    assert "plain.csv is a file: --out names a folder" in refused(
        "plain.csv", "-k", 3, "--noise", NOISE, "--out", "plain.csv"
    )
    answer = CliRunner().invoke(app, ["group", "plain.csv", "-k", "3", "--noise", "1", "-m", "oracle"])
    assert answer.exit_code == 2
    assert "boc-linear" in answer.stderr


# The order of the rows.


def test_sorted_tables_are_shuffled_and_it_is_said(here: Path) -> None:
    """A file sorted by value within each item: what is printed, what is recorded, and that it can be repeated."""
    content = sorted(rows(), key=lambda row: (row[0], float(row[1])))
    (here / "sorted.csv").write_text(text("sample,ph,turbidity", content))
    options = ("sorted.csv", "-k", 3, "--noise", NOISE)
    shown = grown(*options, "--out", "out")
    assert "\nEach item's measurements were shuffled (seed " in shown
    assert "How many there are must not depend on their values.\n" in shown
    marker = json.loads((here / "out/coterie-group.json").read_text())
    order = marker["settings"]["order"]
    assert order["shuffled"]
    assert f"(seed {order['seed']}): their order plays no role." in " ".join(shown.split())
    answer = CliRunner().invoke(app, ["verify", "out/certificate.json", "out/log.csv"])
    assert answer.exit_code == 0, answer.output
    with (here / "out/log.csv").open(newline="") as file:
        logged = {arm: [row["v0"] for row in csv.DictReader(file) if row["arm"] == arm] for arm in ["0"]}["0"]
    whole = [f"{float(row[1])!r}" for row in content if row[0] == "S01"]
    assert len(logged) >= 2
    assert set(logged) <= set(whole)
    assert logged != whole[: len(logged)]  # not in the order of the file
    first = json.loads(grown(*options, "--json"))
    assert first["order"] == order
    assert json.loads(grown(*options, "--json")) == first
    (here / "sorted.csv").write_text(text("sample,ph,turbidity", content[::-1]))
    other = json.loads(grown(*options, "--json"))  # the same rows: the same seed, and the same answer
    for key in ("order", "t", "labels", "certificate"):
        assert other[key] == first[key]
    replayed = CliRunner().invoke(app, ["campaign", "replay", *map(str, options), "--json", "--shuffled"])
    assert json.loads(replayed.stdout) == other


def test_the_order_of_the_file_is_kept_if_asked_for(here: Path) -> None:
    options = ("plain.csv", "-k", 3, "--noise", NOISE, "--growing")
    shown = ok(*options, "--out", "out")
    assert "\nEach item's measurements were taken in the order of the file. This assumes that their order has" in shown
    assert "as when it is the order in which they were measured.\n" in shown
    assert "shuffled" not in shown
    assert json.loads(ok(*options, "--json"))["order"] == {"shuffled": False}
    assert json.loads((here / "out/coterie-group.json").read_text())["settings"]["order"] == {"shuffled": False}
    with (here / "out/log.csv").open(newline="") as file:
        logged = [row["v0"] for row in csv.DictReader(file) if row["arm"] == "0"]
    assert logged == [f"{float(row[1])!r}" for row in rows() if row[0] == "S01"][: len(logged)]


def test_nobody_chooses_the_seed(here: Path) -> None:
    answer = CliRunner().invoke(app, ["group", "plain.csv", "-k", "3", "--noise", str(NOISE), "--seed", "1"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "--seed" in answer.stderr


# The number of groups.


def test_too_few_groups_are_seen(here: Path) -> None:
    shown = grown("plain.csv", "-k", 2, "--noise", NOISE)
    assert "if there were exactly 2 groups and the noise were as stated, but:" in shown
    assert re.search(r"warning: S\d+, S\d+, .* do not fit group 1 \(\d+ of its 14 items\)", shown)
    assert "There may be more groups than 2 (try --clusters 3), or the noise is larger than stated." in shown
    assert re.search(r"warning: group 1 \(items S\d+, .* and 2 more\) looks mixed: its measurements differ by", shown)
    assert "not exactly alike. Try --clusters 3." in shown
    assert "wrong with probability" not in shown
    found = json.loads(grown("plain.csv", "-k", 2, "--noise", NOISE, "--json"))
    assert found["homogeneity"]["mixed"] == [0]
    assert found["homogeneity"]["evidence"][0] > found["homogeneity"]["threshold"]
    assert {one["group"] for one in found["misfits"]} == {1}
    assert {one["name"] for one in found["misfits"]} <= set(found["groups"][0]["names"])
    assert len(found["misfits"]) > 7  # the mixture's mean is between the two, so items of both stand out


def test_a_single_misfit_is_named(here: Path) -> None:
    """c drifted after the measurements that the proof used; there are enough others to hold its group in place."""
    noise = np.random.default_rng(0).normal(size=(40, 18))
    noise[5:, 2] += 1.5
    values = noise + np.where(np.arange(18) < 9, 0.0, 9.0)
    content = [["abcdefghijklmnopqr"[k], f"{value:.3f}"] for day in values for k, value in enumerate(day)]
    (here / "drift.csv").write_text(text("item,x", content))
    shown = grown("drift.csv", "-k", 2, "--noise", 1.1, "--out", "out")
    assert "warning: c does not fit group 1 (1 of its 9 items)." in shown
    with (here / "out" / "groups.csv").open(newline="") as file:
        states = {row["item"]: row["state"] for row in csv.DictReader(file)}
    assert states == dict.fromkeys("abcdefghijklmnopqr", "no proof") | {"c": "does not fit"}


def test_an_alarm_says_what_to_do(here: Path) -> None:
    content = [["abcd"[k % 4], f"{[0, 0, 20, 50][k % 4] + d:.3f}"]
               for k, d in enumerate(np.random.default_rng(0).normal(size=160))]  # fmt: skip
    (here / "three.csv").write_text(text("item,x", content))
    shown = grown("three.csv", "-k", 2, "--noise", 1)
    assert re.search(
        r"Alarm: \w, \w, \w are pairwise known to differ, so there are at least 3 groups \(try --clusters 3\)", shown
    )
    assert "(If there are 2 groups and the noise is as stated, an alarm has probability at most 0.01.)" in shown
    found = json.loads(grown("three.csv", "-k", 2, "--noise", 1, "--json"))
    assert sorted(found["names"][arm] for arm in found["alarm"]["arms"]) == sorted(found["alarm"]["names"])
    assert {"c", "d"} < set(found["alarm"]["names"])
    assert found["alarm"]["text"].startswith("K = 2 is refuted: items ")
    assert "Certain" not in shown
    assert "Undecided" not in shown
    grown("three.csv", "-k", 2, "--noise", 1, "--out", "out")
    with (here / "out" / "groups.csv").open(newline="") as file:
        states = {row["state"] for row in csv.DictReader(file)}
    assert states <= ({"no proof", "does not fit"} if found["done"] else {"a guess"})


def test_too_many_groups_are_seen(here: Path) -> None:
    shown = grown("plain.csv", "-k", 4, "--noise", NOISE)
    assert "All 160 measurements are not enough to prove 4 groups with error probability 0.05." in shown
    assert re.search(r"For 3 groups \d+ of these measurements are enough, and every item fits its group", shown)
    assert "(try --clusters 3)" in shown
    assert "Certain so far, if there are exactly 4 groups" in shown


# The files.


def test_the_files_hold_groups_and_a_proof_that_verifies(here: Path) -> None:
    shown = grown("plain.csv", "-k", 3, "--noise", NOISE, "--out", "new/out")
    command = re.search(r"check: coterie (verify \S+ \S+)", shown)
    assert command is not None
    answer = CliRunner().invoke(app, command[1].split())
    assert answer.exit_code == 0
    assert answer.stdout.startswith("valid: 20 items in 3 groups")
    found = json.loads(grown("plain.csv", "-k", 3, "--noise", NOISE, "--json"))
    certificate = json.loads((here / "new/out/certificate.json").read_text())
    assert certificate == found["certificate"]
    with (here / "new/out/groups.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["item"] for row in table] == [f"S{k:02}" for k in range(1, 21)]
    for arm, row in enumerate(table):
        own = np.array([[float(x) for x in one[1:]] for one in rows() if one[0] == row["item"]])
        assert row["item"] in found["groups"][int(row["group"]) - 1]["names"]
        assert int(row["certificate group"]) == certificate["labels"][int(row["arm"])]
        assert (int(row["arm"]), row["state"], int(row["recorded"])) == (arm, "proven", 8)
        assert int(row["used"]) == found["pulls"][arm]
        assert [float(row["mean ph"]), float(row["mean turbidity"])] == pytest.approx(own.mean(axis=0).tolist())
    assert sum(int(row["used"]) for row in table) == found["t"] == certificate["t"]


def test_a_proof_that_needed_the_whole_pool_verifies_too(here: Path) -> None:
    """One item runs dry, and the rest of the table, which nobody asked for, completes the proof."""
    centers = np.array([[0.0, 0.0], [10.5, 0.0], [0.0, 12.0]])
    noise = np.random.default_rng(3).normal(size=(12, 6, 2))
    days = [[[f"item{arm}", *map(str, centers[arm % 3] + noise[day, arm])] for arm in range(6)] for day in range(12)]
    content = [row for day, of_day in enumerate(days) for row in of_day if row[0] != "item4" or day == 0]
    (here / "dry.csv").write_text(text("item,x,y", content))
    shown = grown("dry.csv", "-k", 3, "--noise", 1, "--delta", 1e-12, "--growing", "--out", "out")
    assert "item4 has only one measurement. After " in shown
    assert "of 61 measurements would have been enough" in shown
    answer = CliRunner().invoke(app, ["verify", "out/certificate.json", "out/log.csv"])
    assert answer.exit_code == 0, answer.output


def test_without_a_proof_no_certificate_stays_behind(here: Path) -> None:
    grown("plain.csv", "-k", 3, "--noise", NOISE, "--out", "out")
    printed = grown("plain.csv", "-k", 4, "--noise", NOISE, "--out", "out", "--json")
    assert not json.loads(printed)["done"]
    assert sorted(path.name for path in (here / "out").iterdir()) == ["coterie-group.json", "groups.csv"]
    with (here / "out" / "groups.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert {row["state"] for row in table} <= {"a guess", "certain so far"}
    assert "certificate group" not in table[0]
