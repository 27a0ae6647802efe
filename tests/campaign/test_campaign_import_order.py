"""Imports into a campaign shuffle each item's rows by a seed, say so in the log, and bring in only new rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from plain_shuffle import shuffled_plainly

from coterie.campaign import BadValue, Campaigns
from coterie.web.log_content import log_rows


def told(store: Campaigns, id: str) -> list[tuple[int, float]]:
    return [(row["arm"], row["values"][0]) for row in store.measurements(id)["measurements"]]


def notes(store: Campaigns, id: str) -> list[dict[str, Any]]:
    return [event for event in store.events(id)["events"] if event["kind"] == "imported"]


def test_imports_are_shuffled_within_each_item_and_say_so(opened: Callable[[], Campaigns]) -> None:
    store = opened()
    names = ["a", "b", "c"]
    rows = [{"arm": "cab"[k % 3], "v0": float(k)} for k in range(30)]
    id, plain = (store.create("x", 3, 2, 1, names=names, noise=1.0)["id"] for _ in range(2))
    answer = store.import_table(id, rows)
    order = answer["order"]
    assert (answer["accepted"], order["shuffled"]) == (30, True)
    assert order == store.preview_import(id, rows[::-1])["order"]  # of the content, whatever the order of its rows
    found = told(store, id)
    assert [arm for arm, _ in found] == [2, 0, 1] * 10  # the items alternate as in the table
    for arm, name in enumerate(names):
        values = [row["v0"] for row in rows if row["arm"] == name]
        assert [x for one, x in found if one == arm] == shuffled_plainly(values, name, order["seed"])
    (note,) = notes(store, id)
    assert note["seq"] == 1  # before the results
    assert {key: note[key] for key in ("source", "measurements", "order")} == {
        "source": "the table",
        "measurements": 30,
        "order": order,
    }
    line = log_rows(store.events(id, limit=1)["events"])[0]  # of the page
    assert (line["said"], line["text"]) == ("imported", "the table")
    assert line["detail"] == f"30 measurements, shuffled within each item, seed {order['seed']}"
    seq = store.latest(id)
    again = store.import_table(id, rows, in_order=True)  # the same rows in another order are the same rows
    assert (again["accepted"], again["duplicates"], store.latest(id)) == (0, 30, seq)
    assert opened().status(id)["evidence"] == store.status(id)["evidence"]  # a replay agrees
    answer = store.import_table(plain, rows, in_order=True)
    assert answer["order"] == {"shuffled": False}
    assert [x for _, x in told(store, plain)] == [row["v0"] for row in rows]
    assert notes(store, plain)[0]["order"] == {"shuffled": False}
    line = log_rows(store.events(plain, limit=1)["events"])[0]
    assert line["detail"] == "30 measurements, in the order of the table"
    with pytest.raises(BadValue, match="in_order must be True or False"):
        store.import_table(plain, rows, in_order="no")  # type: ignore[arg-type]


def test_a_file_that_grew_brings_in_its_new_rows_only(opened: Callable[[], Campaigns]) -> None:
    store = opened()
    id = store.create("x", 3, 2, 1, noise=1.0)["id"]
    rows = [{"id": f"m{k}", "arm": k % 3, "v0": float(k)} for k in range(60)]
    store.import_table(id, rows[:30])
    before = told(store, id)
    answer = store.import_table(id, rows)
    assert (answer["accepted"], answer["duplicates"]) == (30, 30)
    found = told(store, id)
    assert found[:30] == before
    assert sorted(x for _, x in found[30:]) == [float(k) for k in range(30, 60)]
    assert [x for _, x in found[30:]] != [float(k) for k in range(30, 60)]
    assert [note["measurements"] for note in notes(store, id)] == [30, 30]
