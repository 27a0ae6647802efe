"""Names: what they may hold, that each is taken once, and that spreadsheets leave them whole."""

from __future__ import annotations

import csv
import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from coterie.campaign import BadValue, Campaigns, Conflict
from coterie.tables.reading.spreadsheets import csv_line


@pytest.mark.parametrize(
    "hidden", ["\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\ufeff", "\u2028", "\x07", "\x85"]
)
def test_characters_that_hide_or_turn_are_refused(store: Campaigns, hidden: str) -> None:
    name = f"item{hidden}fdp.exe"
    for wrong, field in (
        ({"name": name}, "name"),
        ({"names": ["a", name, "c"]}, "names[1]"),
        ({"value_names": [name]}, "value_names[0]"),
    ):
        given: dict[str, Any] = {"name": "x", "n_arms": 3, "n_clusters": 2, "dim": 1, "noise": 1.0} | wrong
        with pytest.raises(BadValue, match="control or direction characters") as caught:
            store.create(**given)
        assert caught.value.field == field
        assert f"U+{ord(hidden):04X}" in caught.value.message
        assert hidden not in caught.value.message
    assert store.list() == []
    id = store.create("x", 3, 2, 1, noise=1.0)["id"]
    with pytest.raises(BadValue, match="control or direction"):
        store.ask(id, name)
    with pytest.raises(BadValue, match="control or direction"):
        store.tell(id, [{"id": name, "arm": 0, "values": [1.0]}])


def test_names_of_all_scripts_are_taken(store: Campaigns) -> None:
    names = ["مضخة", "क्‍ष", "👩‍🔬", "Ω; β", 'a "b"', "x\u00a0y"]
    id = store.create("ملف", len(names), 2, 1, noise=1.0, names=names)["id"]
    store.tell(id, [{"id": str(k), "arm": name, "values": [1.0]} for k, name in enumerate(names)])
    for kind in ("csv", "groups"):
        text = store.export(id, kind)
        column = 1 if kind == "csv" else 0
        assert [row[column] for row in csv.reader(io.StringIO(text))][1:] == names
        assert '"Ω; β"' in text
    again = store.create("again", len(names), 2, 1, noise=1.0, names=names)["id"]
    rows = [dict(row) for row in csv.DictReader(io.StringIO(store.export(id, "csv")))]
    assert store.import_table(again, rows, in_order=True)["accepted"] == len(names)


def test_cells_that_spreadsheets_split_are_quoted() -> None:
    cells = ["a;b", "a\tb", "a,b", 'say "b"', "a\nb", "plain", 7, 0.5, ""]
    line = csv_line(cells)
    assert line == '"a;b","a\tb","a,b","say ""b""","a\nb",plain,7,0.5,\n'
    assert next(csv.reader(io.StringIO(line))) == [str(cell) for cell in cells]


def test_one_name_once(store: Campaigns, opened: Any) -> None:
    store.create("beans", 3, 2, 1, noise=1.0, one_of_its_name=True)
    with pytest.raises(Conflict, match="there is a campaign 'beans' already") as caught:
        store.create("beans", 3, 2, 1, noise=1.0, one_of_its_name=True)
    assert (caught.value.code, caught.value.field) == ("name_taken", "name")
    stores = [opened() for _ in range(6)]

    def begin(one: Campaigns) -> bool:
        try:
            return bool(one.create("peas", 3, 2, 1, noise=1.0, one_of_its_name=True))
        except Conflict:
            return False

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(begin, stores)) == 1
    assert sorted(row["name"] for row in store.list()) == ["beans", "peas"]
