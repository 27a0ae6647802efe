"""Tables over HTTP: lists of items, imports, Excel files; bad ones get a sentence, never 500, and change nothing."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from coterie.tables.reading.spreadsheets import workbook

C = "/api/campaigns"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def send(api: Any, path: str, content: bytes, media: str = "text/csv") -> Any:
    return api.post(path, raw=content, headers={"Content-Type": media})


def bomb() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/workbook.xml", b" " * (100 * 2**20))
    return written.getvalue()


def test_items_of_a_file(api: Any) -> None:
    answer = send(api, "/api/items?name=a.csv", b"name;cost\nx;1,5\ny;2\n")
    assert answer.status == 200
    assert (answer.json["names"], answer.json["count"]) == (["x", "y"], 2)
    assert answer.json["costs"] == [1.5, 2.0]
    excel = send(api, "/api/items?name=a.xlsx", workbook("a", ["item"], [["x"], ["y"]]), XLSX)
    assert excel.json["names"] == ["x", "y"]
    pasted = send(api, "/api/items?kind=pasted", b"x\ny, left\n", "text/plain")
    assert pasted.json["names"] == ["x", "y, left"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "names no item"),
        (b"\xff\xfe", "not a CSV file in UTF-8"),
        (b"PK\x03\x04 no", "cannot be read as an Excel file"),
        (b"\xd0\xcf\x11\xe0 old", "of an old kind (.xls)"),
        (b"name\nx\nx\n", "line 3: 'x' is the name of line 2 too"),
        (b'name,cost\n"x', "line 2"),
        (bomb, "too large unpacked"),  # called by the test: it takes half a second
    ],
    ids=["empty", "utf-16", "broken", "xls", "twice", "quote", "bomb"],
)
def test_bad_lists_get_a_sentence(api: Any, content: bytes | Callable[[], bytes], what: str) -> None:
    sent = content() if callable(content) else content
    answer = send(api, "/api/items?name=a.csv", sent, "application/octet-stream")
    assert answer.status == 422
    assert what in answer.error["message"]


def test_a_body_that_is_not_declared_as_a_table(api: Any) -> None:
    id = api.create()
    for path in ("/api/items", f"{C}/{id}/import"):
        answer = send(api, path, b"{}", "application/json")
        assert (answer.status, answer.error["code"]) == (415, "not_a_table")


def test_import_of_csv_and_excel_counts_the_same_once(api: Any) -> None:
    id = api.create(names=["a", "b", "c", "d", "e", "f"])
    rows = [[f"m{k}", "abcdef"[k % 6], k / 8, 1.0] for k in range(30)]
    content = "id,arm,v0,v1\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    looked = send(api, f"{C}/{id}/import?check=true&name=own.csv", content.encode())
    assert looked.status == 200
    assert (looked.json["new"], looked.json["duplicates"], looked.json["problem_count"]) == (30, 0, 0)
    assert looked.json["shown"][0] == {"place": "line 2", "item": "a", "values": [0.0, 1.0]}
    assert api.get(f"{C}/{id}").json["seq"] == 0
    made = send(api, f"{C}/{id}/import?name=own.csv&in_order=true", content.encode())
    assert made.status == 200
    assert (made.json["accepted"], made.json["order"]) == (30, {"shuffled": False})
    told = api.get(f"{C}/{id}/measurements").json["measurements"]
    assert [(row["id"], row["name"], row["values"]) for row in told] == [(row[0], row[1], row[2:]) for row in rows]
    assert told[0]["token"]["id"]  # whose token it came with
    excel = workbook("own", ["id", "arm", "v0", "v1"], rows)
    again = send(api, f"{C}/{id}/import?name=own.xlsx", excel, XLSX)
    assert (again.json["accepted"], again.json["duplicates"]) == (0, 30)
    for kind in ("csv", "groups", "log"):
        answer = api.get(f"{C}/{id}/export?kind={kind}&format=xlsx")
        assert (answer.status, answer.headers["content-type"]) == (200, XLSX)
        assert ".xlsx" in answer.headers["content-disposition"]
    exported = api.get(f"{C}/{id}/export?kind=csv&format=xlsx").content
    assert send(api, f"{C}/{id}/import?in_order=true", exported, XLSX).json["duplicates"] == 30
    other = api.create(names=["a", "b", "c", "d", "e", "f"])
    assert send(api, f"{C}/{other}/import?in_order=true", exported, XLSX).json["accepted"] == 30
    ours, its = (api.get(f"{C}/{one}/export").content.decode().splitlines() for one in (id, other))
    assert [line.split(",")[:4] for line in its] == [line.split(",")[:4] for line in ours]


def test_an_import_with_an_error_changes_nothing_and_the_look_names_every_line(api: Any) -> None:
    id = api.create(names=["a", "b", "c", "d", "e", "f"])
    content = b"arm,v0,v1\na,1,2\nq,1,2\nb,x,2\nq,3,\n"
    refused = send(api, f"{C}/{id}/import?name=own.csv", content)
    assert (refused.status, refused.error["code"]) == (422, "bad_value")
    assert "own.csv, line 4, column 'v0'" in refused.error["message"]
    looked = send(api, f"{C}/{id}/import?name=own.csv&check=true", content).json
    assert looked["unknown_items"] == ["q"]
    assert [(one["place"], one["column"]) for one in looked["problems"]] == [
        ("line 3", "arm"), ("line 4", "v0"), ("line 5", "v1"), ("line 5", "arm"),
    ]  # fmt: skip
    no_columns = send(api, f"{C}/{id}/import?check=true", b"thing,v0\na,1\n").json
    assert "needs a column arm" in no_columns["problems"][0]["message"]
    assert api.get(f"{C}/{id}").json["seq"] == 0


def test_only_owners_import(api: Any) -> None:
    id = api.create()
    answer = send(api.with_token("a-token-for-readers-0123456789"), f"{C}/{id}/import", b"arm,v0,v1\n0,1,2\n")
    assert (answer.status, answer.error["code"]) == (403, "read_only_token")


def test_the_kinds_that_are_no_excel_file(api: Any) -> None:
    id = api.create()
    for kind in ("json", "certificate"):
        answer = api.get(f"{C}/{id}/export?kind={kind}&format=xlsx")
        assert (answer.status, answer.error["field"]) == (422, "kind")
    comma = api.get(f"{C}/{id}/export?kind=json&decimal_comma=true")
    assert (comma.status, comma.error["field"]) == (422, "decimal_comma")


def test_large_tables_are_taken_in_while_others_write(api: Any) -> None:
    import threading

    id, other = api.create(), api.create()
    content = "arm,v0,v1\n" + "".join(f"{k % 6},{(k * 7) % 13},{(k * 5) % 11}\n" for k in range(4000))
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(send(api, f"{C}/{id}/import", content.encode())))
    thread.start()
    told = 0
    while thread.is_alive():
        assert api.tell(other, {"id": str(told), "arm": told % 6, "values": [0.0, 1.0]}).status == 200
        told += 1
    thread.join()
    assert answers[0].json["accepted"] == 4000
    assert told > 3


def test_the_pages_are_there_for_those_who_may_look(api: Any) -> None:
    html = {"Accept": "text/html"}
    id = api.create(name="<script>alert(2)</script>")
    for what in ("print", "import", "qr"):
        assert api.get(f"/campaigns/{id}/{what}", headers=html).status == 200
        assert api.get(f"/campaigns/unknown/{what}", headers=html).status == 404
        assert api.with_token(None).get(f"/campaigns/{id}/{what}").status == 401
    assert b"<script>alert" not in api.get(f"/campaigns/{id}/print", headers=html).content
    odd = api.get(f"/campaigns/{id}/qr", headers=html | {"Host": 'x"><script>'}).content
    assert b"<script>" not in odd
    assert b"no address of this server" in odd
