"""Tables in and out of a campaign, on every store: Excel, decimal commas, a look before an import; the commands."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from coterie.campaign import BadValue, Campaigns
from coterie.cli import app
from coterie.tables.reading.files import table_of_bytes
from coterie.tables.reading.spreadsheets import csv_line, workbook

VALUES = [0.1 + 0.2, -1.234, 12.5, 1e-300, 1.0, 123.456, 5e20]


def filled(store: Campaigns) -> str:
    id = str(store.create("own", 3, 2, 1, names=["=a", "ß;x", "c"])["id"])
    store.tell(id, [{"id": f"m{k}", "arm": k % 3, "values": [v], "worker": "w"} for k, v in enumerate(VALUES)])
    return id


def copied(store: Campaigns, table: Any) -> str:
    id = str(store.create(f"copy {len(store.list())}", 3, 2, 1, names=["=a", "ß;x", "c"])["id"])
    assert store.import_table(id, table, in_order=True)["accepted"] == len(VALUES)
    return id


def results(text: str) -> list[list[str]]:
    """Ids, items and values of an export, without when and who, which belong to the campaign that they were told to."""
    return [row[:3] for row in csv.reader(io.StringIO(text))]


def test_excel_and_decimal_commas_give_every_number_back(store: Campaigns) -> None:
    id = filled(store)
    before = store.export(id)
    excel = copied(store, table_of_bytes("own.xlsx", store.export_workbook(id)))
    assert results(store.export(excel)) == results(before)
    text = store.export(id, decimal_comma=True)
    assert text.splitlines()[2].startswith('m1;"ß;x";-1,2340;')
    comma = copied(store, table_of_bytes("own.csv", text.encode("utf-8")))
    assert results(store.export(comma)) == results(before)


def test_groups_and_log_as_excel(store: Campaigns) -> None:
    from openpyxl import load_workbook

    id = filled(store)
    groups = load_workbook(io.BytesIO(store.export_workbook(id, "groups")))["groups"]
    assert [cell.value for cell in groups[1]][:5] == ["item", "group", "proven", "measurements", "mean v0"]
    assert (groups["A2"].value, groups["A2"].data_type, groups["D2"].value) == ("=a", "s", 3)
    log = load_workbook(io.BytesIO(store.export_workbook(id, "log")))["log"]
    told = [row for row in log.iter_rows(values_only=True) if row[2] == "told"]
    assert [row[4] for row in told] == VALUES
    assert [row[5] for row in told] == ["w"] * len(VALUES)
    with pytest.raises(BadValue, match="as Excel there are csv, groups, log"):
        store.export_workbook(id, "certificate")


def test_a_look_at_an_import_writes_nothing_and_tells_what_it_would_do(store: Campaigns) -> None:
    id = filled(store)
    seq = store.latest(id)
    rows = [{"id": "m0", "arm": 0, "v0": VALUES[0]}, {"id": "new", "arm": 1, "v0": 2}]
    looked = store.preview_import(id, rows)
    assert (looked["new"], looked["duplicates"], looked["problems"]) == (1, 1, [])
    taken = store.preview_import(id, [{"id": "m0", "arm": 0, "v0": 9.0}])
    assert "m0" in taken["problems"][0]["message"]
    assert store.latest(id) == seq
    done = store.import_table(id, rows)
    assert (done["accepted"], done["duplicates"]) == (looked["new"], looked["duplicates"])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_decimal_comma_keeps_every_number(value: float) -> None:
    """One number alone in a table is the hardest case: nothing else shows what its comma means."""
    from coterie.tables.reading.cells import numbers

    content = csv_line(["item", "x"], True) + csv_line(["a", value], True)
    table = table_of_bytes("own.csv", content.encode())
    assert numbers(table, [1]) == [[value]]


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_commands(tmp_path: Path) -> None:
    store = tmp_path / "own.db"
    (tmp_path / "items.xlsx").write_bytes(workbook("items", ["name", "cost"], [["a", 2], ["b", 3], ["c", 4.5]]))
    made = run("campaign", "new", "own", "-k", 2, "--names-file", tmp_path / "items.xlsx", "--store", store)
    assert made.exit_code == 0, made.output
    with Campaigns(store) as campaigns:
        (one,) = campaigns.list()
        settings = campaigns.settings(one["id"])
    assert settings["names"] == ["a", "b", "c"]
    assert settings["costs"] == [2.0, 3.0, 4.5]
    (tmp_path / "bad.csv").write_text("item,x\na,1\nq,2\n")
    looked = run("campaign", "import", "own", tmp_path / "bad.csv", "--check", "--store", store)
    assert looked.exit_code == 1
    assert "problem: line 3, column item: unknown item 'q'" in looked.output
    (tmp_path / "good.xlsx").write_bytes(workbook("x", ["item", "x"], [["a", 1.5], ["b", 2]]))
    looked = run("campaign", "import", "own", tmp_path / "good.xlsx", "--check", "--store", store)
    assert "2 measurements would be taken in, 0 are on record already" in looked.output
    taken = run("campaign", "import", "own", tmp_path / "good.xlsx", "--store", store)
    assert "2 measurements taken in" in taken.output
    for kind in ("csv", "groups", "log"):
        out = tmp_path / f"{kind}.xlsx"
        assert run("campaign", "export", "own", "--kind", kind, "--out", out, "--store", store).exit_code == 0
        assert table_of_bytes(out.name, out.read_bytes()).rows
    comma = run("campaign", "export", "own", "--decimal-comma", "--store", store)
    assert comma.stdout.splitlines()[0].endswith("id;arm;v0;told;worker;token")
    assert sorted(line.split(";")[2] for line in comma.stdout.splitlines()[1:]) == ["1,5", "2,0"]
    both = run("campaign", "export", "own", "--decimal-comma", "--out", tmp_path / "x.xlsx", "--store", store)
    assert both.exit_code != 0
    named = run("campaign", "new", "two", "-k", 2, "--names-file", tmp_path / "items.xlsx", "--sheet", "no", "--store",
                store)  # fmt: skip
    assert named.exit_code != 0
    alone = run("campaign", "new", "two", "-k", 2, "--names", "a,b,c", "--sheet", "no", "--store", store)
    assert alone.exit_code != 0


FORMULAS = ['=HYPERLINK("http://x","y")', "+1-2", "-2+3", "@sum(1)", "'=quoted", "''+twice", "plain", "-7", "'"]


def test_text_of_users_is_no_formula_in_an_export_and_reads_back(tmp_path: Path) -> None:
    """Ids, names of items and of values; also those that begin with an apostrophe themselves."""
    with Campaigns(tmp_path / "store.db") as store:
        settings: dict[str, Any] = {"names": FORMULAS, "value_names": ["=1+1", "@b"], "noise": 1.0}
        first = store.create("a", len(FORMULAS), 2, 2, **settings)["id"]
        again = store.create("b", len(FORMULAS), 2, 2, **settings)["id"]
        told = [
            {"id": name.strip(), "arm": name, "values": [-1.5e-7, float(arm)], "worker": name}
            for arm, name in enumerate(FORMULAS)
        ]
        store.tell(first, told)
        for comma in (False, True):
            for kind in ("csv", "groups"):
                text = store.export(first, kind, decimal_comma=comma)
                for line in csv.reader(io.StringIO(text.removeprefix("\ufeff")), delimiter=";" if comma else ","):
                    for cell in line:
                        number = re.fullmatch(r"[+-]?[\d.,]+(?:e[+-]?\d+)?", cell)
                        assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), (kind, cell)
            table = tmp_path / f"table{comma}.csv"
            table.write_text(store.export(first, "csv", decimal_comma=comma), encoding="utf-8")
            answer = store.import_table(again, table, in_order=True)
            assert (answer["accepted"], answer["duplicates"]) == ((0, 9) if comma else (9, 0))
        rows = [store.measurements(id)["measurements"] for id in (first, again)]
        kept = [[(row["id"], row["arm"], row["values"]) for row in part] for part in rows]
        assert kept[0] == kept[1]
