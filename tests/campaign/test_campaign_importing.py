"""Import and export: exact round trips, the same file twice, errors that name row and column, nothing half imported."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.campaign import BadValue, Campaigns
from coterie.campaign.imports import results_of
from coterie.tables.reading.files import read_table


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Campaigns]:
    with Campaigns(tmp_path / "store.db") as store:
        yield store


def make(lite: Campaigns, **more: Any) -> str:
    return str(lite.create("x", 4, 2, 2, **{"noise": 1.0, **more})["id"])


def measured(text: str) -> list[list[str]]:
    """The cells of an export, without when and by whom they were told: an import is told anew."""
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][-3:] == ["told", "worker", "token"]
    return [row[:-3] for row in rows]


def test_export_and_import_are_each_others_inverse(store: Campaigns, world: Any, tmp_path: Path) -> None:
    names = ['a "quoted", one', "0", "ünï", "x;y", "=1+1", "last"]
    first, second = (store.create("x", 6, 3, 2, names=names, noise=1.0)["id"] for _ in range(2))
    world.run(store, first)
    store.tell(first, [{"id": "é, 'ü'", "arm": 2, "values": [0.1 + 0.2, -1e-300]}])
    text = store.export(first, "csv")
    path = tmp_path / "first.csv"
    path.write_text(text, encoding="utf-8", newline="")
    count = store.status(first)["measurements"]
    assert store.import_table(second, path, in_order=True)["accepted"] == count
    assert measured(store.export(second, "csv")) == measured(text)
    again = store.import_table(second, path)
    assert again.pop("order")["shuffled"]
    assert again == {"accepted": 0, "duplicates": count, "done": store.status(second)["done"]}


def test_the_same_file_twice_counts_once_and_a_changed_one_is_new(store: Campaigns, tmp_path: Path) -> None:
    id = store.create("x", 4, 2, 2, noise=1.0)["id"]
    path = tmp_path / "old.csv"
    path.write_text("arm,height,width\n0,1.5,2\n1,1.5,2\n0,1.5,2\n")
    assert store.import_table(id, path)["accepted"] == 3  # equal rows are different measurements
    assert store.import_table(id, str(path))["duplicates"] == 3
    copy = tmp_path / "copy of old.csv"
    copy.write_bytes(path.read_bytes())
    assert store.import_table(id, copy)["duplicates"] == 3
    path.write_text("arm,height,width\n0,1.5,2\n1,1.5,2\n0,1.5,2\n3,0,0\n")
    assert store.import_table(id, path)["accepted"] == 4
    rows = store.measurements(id)["measurements"]
    assert [(row["arm"], row["values"]) for row in rows[:3]] == [(0, [1.5, 2.0]), (1, [1.5, 2.0]), (0, [1.5, 2.0])]
    assert all(not row["asked_for"] for row in rows)


def test_imported_results_answer_no_open_ask(store: Campaigns) -> None:
    id = store.create("x", 4, 2, 2, noise=1.0)["id"]
    (ask,) = store.ask(id, "w")["asks"]
    store.import_table(id, [{"id": "old", "arm": ask["arm"], "a": 1.0, "b": 2}])
    found = store.status(id)
    assert [one["lease"] for one in found["open_leases"]] == [ask["lease"]]
    assert found["waiting"] == 1


def test_parquet_equals_csv(lite: Campaigns, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["a", "b", "c", "d"]
    values = np.random.default_rng(0).normal(size=(40, 2))
    arms = [names[i % 4] for i in range(40)]
    ids = [f"m{i}" for i in range(40)]
    table = pa.table({"id": ids, "arm": arms, "u": values[:, 0], "w": values[:, 1]})
    pq.write_table(table, tmp_path / "t.parquet")
    lines = [
        "id,arm,u,w",
        *(f"{i},{a},{float(u)!r},{float(w)!r}" for i, a, (u, w) in zip(ids, arms, values, strict=True)),
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    first, second = make(lite, names=names), make(lite, names=names)
    assert lite.import_table(first, tmp_path / "t.parquet")["accepted"] == 40
    assert lite.import_table(second, tmp_path / "t.csv")["accepted"] == 40
    assert measured(lite.export(first, "csv")) == measured(lite.export(second, "csv"))
    for wrong, what in [
        (pa.table({"arm": ["a", None], "u": [1.0, 2.0], "w": [1.0, 2.0]}), "row 2, column 'arm'"),
        (pa.table({"arm": ["a", "b"], "u": [1.0, None], "w": [1.0, 2.0]}), "row 2, column 'u'"),
        (pa.table({"arm": ["a", "b"], "u": [1.0, float("nan")], "w": [1.0, 2.0]}), "row 2, column 'u'"),
        (pa.table({"arm": ["a"], "u": [[1.0]], "w": [1.0]}), "row 1, column 'u'"),
        (pa.table({"u": [1.0], "w": [1.0]}), "needs a column arm"),
    ]:
        pq.write_table(wrong, tmp_path / "wrong.parquet")
        with pytest.raises(BadValue, match=what):
            lite.import_table(first, tmp_path / "wrong.parquet")
    (tmp_path / "text.parquet").write_text("arm,u,w\n")
    with pytest.raises(BadValue, match=r"text\.parquet is not a Parquet file"):
        lite.import_table(first, tmp_path / "text.parquet")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n1,2\n", "needs a column arm"),
        ("arm,a\n0,1\n", r"needs 2 columns of values, it has \['a'\]"),
        ("arm,a,b,c\n0,1,2,3\n", "needs 2 columns of values"),
        ("arm,a,a\n0,1,2\n", "two columns 'a': rename"),
        ("arm,a,b\n0,1,2\n9,1,2\n", r"line 3, column 'arm': unknown arm '9': use a number from 0 to 3"),
        ("arm,a,b\n0,1,2\nx,1,2\n", "line 3, column 'arm'"),
        ("arm,a,b\n-1,1,2\n", "line 2, column 'arm'"),
        ("arm,a,b\n0.5,1,2\n", "line 2, column 'arm'"),
        ("arm,a,b\n,1,2\n", "line 2, column 'arm'"),
        ("arm,a,b\n0,1,2\n1,1,\n", "line 3, column 'b': a number is needed, got ''"),
        ("arm,a,b\n0,1,2\n1,1,two\n", "line 3, column 'b'"),
        ('arm,a,b\n0,"1,5",2\n', "line 2, column 'a'"),
        ("arm,a,b\n0,nan,2\n", "line 2, column 'a': a finite number"),
        ("arm,a,b\n0,1,1e999\n", "line 2, column 'b': a finite number"),
        ("arm,a,b\n0,1_0,2\n", "line 2, column 'a'"),
        ("arm,a,b\n0,1\n", "line 2, column 'b': there are 2 cells, the header has 3"),
        ("arm,a,b\n0,1,2\n0,1,2,3\n", "line 3, column 'number 4'"),
        ("id,arm,a,b\nm,0,1,2\nm,0,1,2\n", "line 3, column 'id': 'm' is the id of line 2 too"),
        ("id,arm,a,b\n,0,1,2\n", "line 2, column 'id'"),
        ('arm,a,b\n0,"1,2\n', "line 2"),
        ("arm,v0,v1,note\n0,1,2,fine\n0,x,2,bad\n", "line 3, column 'v0'"),
    ],
)
def test_errors_name_row_and_column_and_nothing_is_imported(
    lite: Campaigns, tmp_path: Path, text: str, what: str
) -> None:
    id = make(lite)
    path = tmp_path / "given.csv"
    path.write_text(text)
    with pytest.raises(BadValue, match=what) as caught:
        lite.import_table(id, path)
    assert "given.csv" in caught.value.message
    assert lite.latest(id) == 0


def test_an_id_on_record_with_other_values_is_a_conflict(lite: Campaigns) -> None:
    id = make(lite)
    lite.tell(id, [{"id": "m1", "arm": 0, "values": [1.0, 2.0]}])
    with pytest.raises(ValueError, match="'m1' is on record with another content"):
        lite.import_table(id, [{"id": "m0", "arm": 1, "a": 0, "b": 0}, {"id": "m1", "arm": 0, "a": 0, "b": 0}])
    assert lite.status(id)["measurements"] == 1


def test_what_files_may_look_like(lite: Campaigns, tmp_path: Path) -> None:
    id = make(lite)
    path = tmp_path / "given.csv"
    path.write_bytes("\ufeffarm , b ,a\r\n 1 , 2.5 ,-1e0\r\n\r\n".encode())
    assert lite.import_table(id, path, values=["a", "b"])["accepted"] == 1
    assert lite.measurements(id)["measurements"][0]["values"] == [-1.0, 2.5]
    path.write_bytes(b"Sample;b;a\r\n1;2,25;-1\r\n")
    assert lite.import_table(id, path, values=["A", "b"])["accepted"] == 1
    assert lite.measurements(id)["measurements"][1]["values"] == [-1.0, 2.25]
    with pytest.raises(BadValue, match="no column 'c'"):
        lite.import_table(id, path, values=["a", "c"])
    path.write_bytes(b"arm,a,b\n0,\xff,1\n")
    with pytest.raises(BadValue, match='not a CSV file in UTF-8: line 2 cannot be read; save it as "CSV UTF-8"'):
        lite.import_table(id, path)
    with pytest.raises(BadValue, match="a file, a DataFrame or a list of dictionaries"):
        lite.import_table(id, 7)
    with pytest.raises(FileNotFoundError):
        lite.import_table(id, tmp_path / "nowhere.csv")
    assert lite.import_table(id, [{"arm": 2, "v0": 1, "v1": 2.5}])["accepted"] == 1


CELLS = st.one_of(
    st.sampled_from(
        ["", "0", "1", "3", "4", "-1", "1.5", "nan", "inf", "1e400", "x", '"', "a,b", "arm", "v0", "\n", "\x00"]
    ),
    st.text(max_size=5),
)


NUMBERS = st.sampled_from(["0", "1", "1.5", "x", "2"])


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("COTERIE_EXAMPLES", 300)),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    header=st.sampled_from([["arm", "v0", "v1"], ["id", "arm", "a", "b"]])
    | st.lists(st.sampled_from(["arm", "id", "v0", "v1", "a", "b", ""]) | st.text(max_size=3), max_size=5),
    rows=st.lists(st.lists(CELLS, max_size=5) | st.lists(NUMBERS, min_size=3, max_size=4), max_size=5),
    raw=st.none() | st.none() | st.binary(max_size=60),
    quoted=st.booleans(),
)
def test_any_file_is_imported_whole_or_refused_with_row_and_column(
    tmp_path_factory: Any, header: list[str], rows: list[list[str]], raw: bytes | None, quoted: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "fuzz.csv"
    if raw is None:
        text = io.StringIO()
        if quoted:
            csv.writer(text).writerows([header, *rows])
        else:
            text.write("\n".join(",".join(row) for row in [header, *rows]))
        raw = text.getvalue().encode("utf-8", "replace")
    path.write_bytes(raw)
    print("1 file")  # counted by `python -m bench.faults`
    global _store
    if _store is None:
        store = Campaigns(tmp_path_factory.mktemp("fuzz") / "store.db")
        _store = (store, str(store.create("x", 4, 2, 2, names=["x", "0", "1.5", "arm"], noise=1.0)["id"]))
    store, id = _store
    before = store.latest(id), store.status(id)["measurements"]
    try:
        answer = store.import_table(id, path)
    except ValueError as error:
        message = str(error)
        assert "fuzz.csv" in message or "on record" in message, message
        assert len(message) < 600
        assert (store.latest(id), store.status(id)["measurements"]) == before
    else:
        table = read_table(path)
        assert answer["accepted"] + answer["duplicates"] == len(table.rows)
        assert store.status(id)["measurements"] == before[1] + answer["accepted"]
        again = store.import_table(id, path)
        assert (again["accepted"], again["duplicates"]) == (0, len(table.rows))


_store: tuple[Campaigns, str] | None = None


def test_ids_follow_from_content_and_row(lite: Campaigns, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("arm,a,b\n0,1,2\n0,1,2\n")
    from coterie.campaign.settings import CampaignSettings

    id = make(lite)
    held = CampaignSettings.from_json(json.dumps(lite.settings(id)))
    first, second = results_of(read_table(path), held), results_of(read_table(path), held)
    assert first == second
    assert first[0]["id"] != first[1]["id"]
    assert first[0]["id"].startswith("import-")
    assert first[0]["id"].endswith("-1")


def test_without_pyarrow_the_message_says_what_to_do(lite: Campaigns, tmp_path: Path, monkeypatch: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match=r"pip install 'coterie\[parquet\]'"):
        lite.import_table(make(lite), tmp_path / "t.parquet")


def test_import_takes_a_batch_as_a_session_would(opened: Callable[[], Campaigns], world: Any) -> None:
    """A large import, in order, equals telling the rows one at a time, and a replay agrees."""
    store = opened()
    rows = [{"id": str(k), "arm": k % 6, "v0": v[0], "v1": v[1]} for k in range(60) for v in [world.values(k % 6, k)]]
    whole, singly = world.create(store), world.create(store)
    store.import_table(whole, rows, in_order=True)
    for row in rows:
        store.import_table(singly, [row])
    keys = ("labels", "centers", "t", "pulls", "done", "evidence")
    one, other, again = store.status(whole), store.status(singly), opened().status(whole)
    for key in keys:
        assert one[key] == other[key] == again[key], key


def test_values_are_taken_by_the_names_of_the_campaign(lite: Campaigns) -> None:
    id = make(lite, value_names=["ph", "v0"])
    lite.import_table(id, [{"arm": 1, "v0": 2.0, "note": 7.0, "ph": 1.0}])
    assert lite.measurements(id)["measurements"][0]["values"] == [1.0, 2.0]


# Columns and items are what the table calls them.


def test_values_are_never_taken_by_the_order_of_columns_of_other_names(lite: Campaigns, tmp_path: Path) -> None:
    id = make(lite, value_names=["ph", "turb"])
    path = tmp_path / "given.csv"
    path.write_text("arm,turb,pH\n0,120,5.5\n")
    lite.import_table(id, path)
    assert lite.measurements(id)["measurements"][0]["values"] == [5.5, 120.0]
    path.write_text("arm,turbidity,pH\n0,120,5.5\n")
    with pytest.raises(BadValue, match=r"values are ph, turb, given\.csv has the columns arm, turbidity, pH: rename"):
        lite.import_table(id, path)
    assert lite.import_table(id, path, values=["PH", "turbidity"])["accepted"] == 1
    assert lite.measurements(id)["measurements"][1]["values"] == [5.5, 120.0]
    path.write_text("arm,V1,note,V0\n0,120,fine,5.5\n")  # by number, in any case and order
    for one in (id, make(lite)):
        assert lite.import_table(one, path)["accepted"] == 1
        assert lite.measurements(one)["measurements"][-1]["values"] == [5.5, 120.0]
    path.write_text("arm,PH,pH,turb\n0,1,5.5,120\n")  # which of the two?
    with pytest.raises(BadValue, match="values are ph, turb"):
        lite.import_table(id, path)


@pytest.mark.parametrize("heading", ["ID", "Id", "id"])
def test_ids_are_ids_in_any_case(lite: Campaigns, tmp_path: Path, heading: str) -> None:
    id = make(lite)
    path = tmp_path / "given.csv"
    path.write_text(f"{heading},arm,a,b\nm1,0,1,2\n")
    assert lite.import_table(id, path)["accepted"] == 1
    path.write_text(f"{heading},arm,a,b\nm1,0,1,2\nm2,1,3,4\n")  # the file has grown
    again = lite.import_table(id, path)
    assert again.pop("order")["shuffled"]
    assert again == {"accepted": 1, "duplicates": 1, "done": False}
    assert [row["id"] for row in lite.measurements(id)["measurements"]] == ["m1", "m2"]
    path.write_text(f"{heading},arm,a,b\nm3,0,1,2\nm3,1,3,4\n")
    with pytest.raises(BadValue, match=f"line 3, column '{heading}': 'm3' is the id of line 2 too"):
        lite.import_table(id, path)
    path.write_text("ID,Id,arm,a,b\nm3,m4,0,1,2\n")
    with pytest.raises(BadValue, match="has the columns ID, Id: rename all but one"):
        lite.import_table(id, path)


def test_numbers_that_are_names_are_names_in_every_kind_of_table(lite: Campaigns, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["3", "2", "1", "0"]  # against the order
    rows: list[dict[str, Any]] = [{"arm": arm, "a": float(arm), "b": 0.0} for arm in range(4)]
    whole = pa.table({"arm": [0, 1, 2, 3], "a": [0.0, 1.0, 2.0, 3.0], "b": [0.0] * 4})
    pq.write_table(whole, tmp_path / "whole.parquet")
    pq.write_table(whole.set_column(0, "arm", pa.array([0.0, 1.0, 2.0, 3.0])), tmp_path / "float.parquet")
    (tmp_path / "t.csv").write_text("arm,a,b\n0,0,0\n1,1,0\n2,2,0\n3,3,0\n")
    texts = []
    for table in (rows, tmp_path / "whole.parquet", tmp_path / "float.parquet", tmp_path / "t.csv"):
        id = make(lite, names=names)
        assert lite.import_table(id, table, values=["a", "b"])["accepted"] == 4
        found = lite.measurements(id)["measurements"]
        assert [(row["arm"], row["values"][0]) for row in found] == [(3, 0.0), (2, 1.0), (1, 2.0), (0, 3.0)]
        texts.append(found)
    id = make(lite, names=["10", "20", "30", "x"])
    for cell in (1, "1", 1.0):  # no item is called 1: it is not the second one
        with pytest.raises(BadValue, match=f"unknown arm {cell!r}: use a name such as '10'$"):
            lite.import_table(id, [{"arm": cell, "a": 1.0, "b": 2.0}])
    id = make(lite, names=["p", "q", "r", "s"])
    assert lite.import_table(id, [{"arm": 1, "a": 1.0, "b": 2.0}])["accepted"] == 1
    assert lite.measurements(id)["measurements"][0]["name"] == "q"


AMBIGUOUS = "with a mark between thousands, "


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize(
    ("cells", "refused"),
    [
        (["1,234|5", "987|5"], True),  # as English spreadsheets show thousands
        (["1,234|5,4", "987|5,1"], True),  # even beside a decimal comma: 987 would be 987,000
        (["1,234|5", "2,345|6"], True),
        (["-1,234|5", "987|6"], True),
        (["1,234|5,4", "2,345|6,1"], False),  # three decimals everywhere, and the comma is the decimal mark
        (["1,234|5", "0,987|6"], False),
        (["1,234|5", "12,5|6"], False),
        (["0,512|5", "0,987|6"], False),
        (["1.234|5", "987|6"], True),  # as German ones do
        (["1.234|5", "2.345|6"], False),  # three decimals everywhere
        (["1.234|5", "0.98|6"], False),
        (["987|5", "5|6"], False),
    ],
)
def test_thousands_are_never_read_as_decimals(
    lite: Campaigns, tmp_path: Path, mark: str, cells: list[str], refused: bool
) -> None:
    id = make(lite)
    path = tmp_path / "given.csv"
    path.write_text("\n".join(f"{k}{mark}{row}" for k, row in enumerate(cells)).replace("|", mark))
    path.write_text(f"arm{mark}a{mark}b\n{path.read_text()}\n")
    if refused:
        with pytest.raises(BadValue, match="line 2, column 'a'") as caught:
            lite.import_table(id, path)
        assert AMBIGUOUS in caught.value.message
        return
    lite.import_table(id, path)
    found = [row["values"] for row in lite.measurements(id)["measurements"]]
    assert found == [[float(cell.replace(",", ".")) for cell in row.split("|")] for row in cells]


def test_points_between_thousands_are_seen_by_the_commas_of_another_column(lite: Campaigns, tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_text("arm;a;b;c\n0;1.234;5;0,5\n1;2.345;6;1,5\n")
    with pytest.raises(BadValue, match=r"line 2, column 'a'.*1234"):
        lite.import_table(make(lite), path, values=["a", "b"])


# Spreadsheets.

FORMULAS = ["=1+1", "+cmd", "-2+3", "@sum(a)"]


def test_names_are_no_formulas_in_a_table_of_groups(lite: Campaigns) -> None:
    id = make(lite, names=FORMULAS)
    lite.import_table(id, [{"arm": name, "a": 1.0, "b": 2.0} for name in FORMULAS])
    table = list(csv.reader(io.StringIO(lite.export(id, "groups"))))
    assert [row[0] for row in table[1:]] == [f"'{name}" for name in FORMULAS]
    exact = list(csv.reader(io.StringIO(lite.export(id, "csv"))))
    assert [row[1] for row in exact[1:]] == [f"'{name}" for name in FORMULAS]  # reading takes the mark away again
    id = make(lite, names=["-5", "a=b", "+1.5", "'q"])
    table = list(csv.reader(io.StringIO(lite.export(id, "groups"))))
    assert [row[0] for row in table[1:]] == ["-5", "a=b", "+1.5", "'q"]


def test_copies_are_named_before_and_after_an_import(lite: Campaigns, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [f"{arm},{rng.normal():.3f},{rng.normal():.3f}" for arm in range(4) for _ in range(5)]
    path, ids = tmp_path / "twice.csv", tmp_path / "ids.csv"
    path.write_text("\n".join(["arm,ph,salt", *rows, *rows]) + "\n")
    ids.write_text("\n".join(["id,arm,ph,salt", *(f"m{i},{row}" for i, row in enumerate(rows + rows))]) + "\n")
    id = make(lite)
    said = "every row of twice.csv is there 2 times, or a multiple of that: 20 of 40 rows are copies (line 22 is line 2"
    (before,) = lite.preview_import(id, path)["warnings"]
    assert before["message"].startswith(said)
    (after,) = lite.import_table(id, path)["warnings"]
    assert after == before
    assert "warnings" not in lite.import_table(id, path), "nothing was taken in"
    assert lite.preview_import(id, ids)["warnings"] == [], "each has an id of its own"


def test_numbers_of_rows_are_no_values(lite: Campaigns, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("\n".join(["rownames,item,x", *(f"{i + 1},{i % 4},{(i * 7) % 5 + 0.5}" for i in range(20))]) + "\n")
    id = make(lite)  # two numbers in a measurement, and two columns
    with pytest.raises(BadValue, match=r"column rownames of r.csv is taken for no measurement \(counts the rows: 1, 2"):
        lite.import_table(id, path)
    assert "rownames" in lite.preview_import(id, path)["problems"][0]["message"]
    assert lite.import_table(id, path, values=["rownames", "x"])["accepted"] == 20
