"""`coterie group` at the first try: what people forget is named, with what to do about it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from grouping import ok, refused, rows, text
from typer.testing import CliRunner

from coterie.cli import app


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "my wells.csv").write_text(text("sample,ph,turbidity", rows()))
    return tmp_path


def test_without_a_number_of_groups_the_items_proven_to_differ_are_named_and_commands_to_copy() -> None:
    Path("my wells.csv").write_text(text("sample,ph,turbidity", rows(items=6, repeats=30)))
    answer = CliRunner().invoke(app, ["group", "my wells.csv"])
    assert answer.exit_code == 0, answer.stderr
    assert (
        "pairs of items are proven to differ (wrong with probability at most 0.05, whatever the number" in answer.stdout
    )
    assert "So there are at least 3 groups" in answer.stdout
    assert "items that share a letter are not proven different" in answer.stdout
    printed = [line for line in answer.stdout.split("\n") if line.startswith("  coterie ")]
    assert printed[0] == "  coterie group 'my wells.csv' --clusters 3"
    for command in printed:  # as they are typed
        assert "Proven" in ok(*shlex.split(command)[2:])
    assert "--noise gaussian" in printed[1]


def test_the_commands_read_the_table_as_it_was_read_and_numbers_are_plain(here: Path) -> None:
    table = here / "odd.csv"
    table.write_text(text("who;well;level", [["x", name, f"{1000 * float(ph):g}"] for name, ph, _ in rows()], ";"))
    shown = ok("odd.csv", "--items", "well", "--values", "level", "--delta", "0.01")
    assert "  coterie group odd.csv --items well --values level --delta 0.01 --alike " in shown
    assert "e+0" not in shown


def test_the_answer_without_a_number_of_groups_as_json() -> None:
    Path("my wells.csv").write_text(text("sample,ph,turbidity", rows(items=6, repeats=30)))
    found = json.loads(ok("my wells.csv", "--json"))
    names, apart = found["names"], {tuple(pair) for pair in found["pairs"]["apart"]}
    some = found["at_least"]
    assert len(some) >= 3
    assert all((one, two) in apart for i, one in enumerate(some) for two in some[i + 1 :])
    shared = dict(zip(names, found["pairs"]["letters"], strict=True))
    for i, one in enumerate(names):
        for two in names[i + 1 :]:
            assert ((one, two) in apart) == (not set(shared[one]) & set(shared[two]))


def test_equal_items_are_not_said_to_differ(here: Path) -> None:
    rng = np.random.default_rng(3)
    same = [[name, f"{rng.standard_cauchy():.4f}"] for _ in range(30) for name in "abcdefgh"]
    (here / "same.csv").write_text(text("item,x", same))
    assert "No two of the 8 items are proven to differ: there may be no groups at all" in ok("same.csv")


def test_too_few_measurements_for_any_noise_are_not_taken_for_no_groups() -> None:
    assert "pairs of items are proven to differ" in ok("my wells.csv")  # two of 8 rows: 2 of 12,870 arrangements
    Path("few.csv").write_text(text("sample,ph,turbidity", rows(repeats=4)))
    shown = ok("few.csv")
    assert "With 4 measurements no two of 20 items can be proven to differ whatever the noise" in shown
    assert "--noise gaussian" in shown
    assert "pairs of items are proven to differ" in ok("my wells.csv", "--noise", "gaussian")


def test_no_proposal_without_repeats_that_vary(here: Path) -> None:
    for name, content in (("once.csv", "item,x\na,1\nb,2\nc,3\n"), ("still.csv", "item,x\na,1\na,1\nb,2\nc,3\n")):
        (here / name).write_text(content)
        shown = ok(name)
        assert "say how many there are, with --clusters" in shown
        assert "--apart" not in shown


def test_files_of_differences_need_no_number_of_groups() -> None:
    shown = ok("my wells.csv", "--noise", "gaussian", "--out", "found")
    assert "check: coterie verify" in shown
    assert CliRunner().invoke(app, ["verify", "found/certificate.json", "found/log.csv"]).exit_code == 0
    assert "how many: --clusters 3" in refused("my wells.csv", "--groups", "3")


def test_files_of_differences_in_a_table_that_grows(here: Path) -> None:
    shown = ok("my wells.csv", "--noise", "gaussian", "--growing", "--out", "grown")
    assert "wrote grown/groups.csv\n" in shown
    assert (here / "grown" / "groups.csv").read_text().startswith("item,group,state,used,recorded,")


def test_a_file_without_names_of_columns_is_doubted(here: Path) -> None:
    content = (here / "my wells.csv").read_text().partition("\n")[2]
    (here / "bare.csv").write_text(content)
    shown = ok("bare.csv", "-k", 3, "--noise", "0.2,25")
    first = content.split("\n")[0].split(",")[1:]
    assert f"warning: the first line was read as the names of the columns, but {', '.join(first)} are numbers" in shown
    shown = ok("my wells.csv", "-k", 3, "--noise", "0.2,25")
    assert "names of the columns" not in shown


def test_numbers_are_good_names_of_columns_in_a_wide_table(here: Path) -> None:
    lines = ["sample,1,2,3", *(f"{name},{k},{k + 0.1},{k - 0.1}" for k, name in enumerate("aabbcc"[::2]))]
    (here / "days.csv").write_text("\n".join(lines) + "\n")
    shown = CliRunner().invoke(app, ["group", "days.csv", "-k", "2", "--noise", "0.2", "--wide"]).stdout
    assert "names of the columns" not in shown
    shown = CliRunner().invoke(app, ["group", "days.csv", "-k", "2", "--noise", "0.2"]).stdout
    assert "If each cell of a line is one measurement of its item, say --wide." in shown


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("sample,ph\n", "t.csv has no measurements: its only line names the columns sample, ph"),
        (
            "sample ph\na 7.1\nb 7.2\n",
            "t.csv has a single cell in each line, 'sample ph': one column must name the items",
        ),
        ("", "t.csv is empty: the first line names the columns"),
    ],
)
def test_tables_that_are_none(here: Path, content: str, said: str) -> None:
    (here / "t.csv").write_text(content)
    assert said in refused("t.csv", "-k", 2)


@pytest.mark.parametrize("noise", [(), ("--noise", "gaussian"), ("--noise", "0.2,25")])
@pytest.mark.parametrize("repeats", [3, 6, 12])
def test_every_command_that_is_printed_proves_something(here: Path, noise: tuple[str, ...], repeats: int) -> None:
    (here / "t.csv").write_text(text("sample,ph,turbidity", rows(seed=repeats, items=7, repeats=repeats)))
    shown = ok("t.csv", *noise)
    printed = [shlex.split(line) for line in shown.split("\n") if line.startswith("  coterie ")]
    assert printed
    for words in printed:
        assert "Proven" in ok(*words[2:]), words


def test_a_noise_that_is_advised_against_is_not_advised(here: Path) -> None:
    rng = np.random.default_rng(1)
    content = [[name, f"{rng.standard_cauchy() + 20 * k:.4f}"] for _ in range(40) for k, name in enumerate("abcd")]
    (here / "heavy.csv").write_text(text("item,x", content))
    shown = " ".join(ok("heavy.csv").split())
    assert "leave --noise out" in shown
    assert "--noise gaussian" not in shown


def test_a_resolution_that_is_too_fine_is_answered_by_one_that_is_not(here: Path) -> None:
    (here / "t.csv").write_text(text("sample,ph,turbidity", rows(items=7, repeats=12)))
    options = ("t.csv", "--noise", "gaussian", "--alike", "0.01,1")
    shown = ok(*options, "--apart", "0.02,2")
    assert "These rows do not prove" in shown
    apart = shown.partition("They do for a larger apart: ")[2].split("\n")[0].rstrip(".")
    assert "Proven" in ok(*options, "--apart", apart)


def test_what_grows_is_taken_as_it_stands_and_both_say_what_they_assume(here: Path) -> None:
    (here / "t.csv").write_text(text("sample,ph,turbidity", rows(items=6, repeats=30)))
    assert "This holds if the number of rows did not depend on their values" in ok("t.csv")
    assert "The table is finished, as you say" in ok("t.csv", "--finished")
    assert "were taken in the order of the file" in ok("t.csv", "-k", 3, "--growing")
    assert "--finished: --shuffled is for a table that grows" in refused("t.csv", "-k", 3, "--finished", "--shuffled")


def test_a_number_of_groups_that_is_refuted_comes_with_the_command_for_the_one_that_fits() -> None:
    Path("my wells.csv").write_text(text("sample,ph,turbidity", rows(items=6, repeats=30)))
    shown = ok("my wells.csv", "--clusters", "2", "--noise", "gaussian", "--delta", "0.01")
    assert "Proven: there are more groups than 2" in shown
    (command,) = (line for line in shown.split("\n") if line.startswith("  coterie "))
    assert command == "  coterie group 'my wells.csv' --delta 0.01 --clusters 3 --noise gaussian"
    assert "Proven, if there are exactly 3 groups" in ok(*shlex.split(command)[2:])


@pytest.mark.parametrize("growing", [False, True])
def test_an_item_far_from_its_group_is_named(growing: bool) -> None:
    """29 rows of a mean of 0.36 in a group of 11.93."""
    rng = np.random.default_rng(5)
    means, counts = {"a": 11.9, "b": 12.0, "c": 40.0, "d": 40.1, "thin": 0.36}, {"thin": 29}
    table = [[name, f"{mean + rng.normal():.3f}"] for name, mean in means.items() for _ in range(counts.get(name, 300))]
    Path("thin.csv").write_text(text("item,x", table))
    shown = ok("thin.csv", "-k", "2", *(["--growing"] if growing else []), "--noise", "bounded:-200,240")
    assert "warning: thin (29 rows) has mean 0.329, the others of its group 1 have 11.92: it lies far" in shown
    assert "warning: a" not in shown


def test_rates_of_counts_in_a_finished_table() -> None:
    rng = np.random.default_rng(5)
    table = [
        [name, str(rng.binomial(100, p))]
        for name, p in zip("abcd", (0.2, 0.2, 0.6, 0.6), strict=True)
        for _ in range(400)
    ]
    Path("rates.csv").write_text(text("item,sold", table))
    rates, counts = (
        json.loads(ok("rates.csv", "--alike", alike, "--apart", apart, "--noise", "counts:100", "--json"))
        for alike, apart in (("5%", "20%"), ("5", "20"))
    )
    assert counts["done"]
    assert rates == counts


def test_numbers_too_large_are_refused_in_one_sentence(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    table = tmp_path / "large.csv"
    table.write_text("item,x\na,1e308\nb,-1e308\na,1e308\nb,2\n")
    result = CliRunner().invoke(app, ["group", str(table)])
    assert result.exit_code == 2
    assert "results must be smaller than" in result.output
    assert not recwarn.list
