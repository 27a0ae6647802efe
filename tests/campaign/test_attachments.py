"""Files of measurements: kept with the store, checked by their content, and never at the cost of the measurement."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.campaign import BadValue, Campaigns, Conflict, NotFound
from coterie.campaign.service import attachments
from coterie.campaign.service.attachments import type_of

PHOTO = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Campaigns]:
    place = tmp_path / "lab.db"
    if request.param == "postgresql":
        place = request.getfixturevalue("postgres").new_database()
    with Campaigns(place) as campaigns:
        yield campaigns


def measured(store: Campaigns, name: str = "beans") -> str:
    """A campaign with the measurement m1."""
    id: str = store.create(name, 3, 2, 1, noise=1.0, names=["ash", "elm", "oak"])["id"]
    store.tell(id, [{"id": "m1", "arm": 1, "values": [2.5]}])
    return id


def test_a_file_is_kept_listed_exported_and_in_the_log(store: Campaigns) -> None:
    id = measured(store)
    kept = store.attachments.add(id, "m1", "leaf.png", PHOTO)
    assert (kept["type"], kept["size"], kept["name"]) == ("image/png", len(PHOTO), "elm")
    assert store.attachments.listed(id) == store.attachments.listed(id, "m1") == [kept]
    assert store.attachments.listed(id, "m2") == []
    about, content = store.attachments.content(id, kept["sha256"])
    assert (about, content) == (kept, PHOTO)
    assert store.attachments.add(id, "m1", "leaf.png", PHOTO) == kept, "the same file again is kept once"
    store.attachments.add(id, "m1", "../../leaf.png", b"a note\n")
    with zipfile.ZipFile(io.BytesIO(store.attachments.archive(id))) as file:
        assert file.namelist() == ["m1/leaf.png", "m1/..-..-leaf.png"]
        assert file.read("m1/leaf.png") == PHOTO
    events = [event for event in store.events(id)["events"] if event["kind"] == "attachment"]
    assert [event["file"] for event in events] == ["leaf.png", "../../leaf.png"]
    assert '"leaf.png"' in store.export(id, "json")
    assert store.status(id)["measurements"] == 1


def test_a_wrong_one_costs_nothing(store: Campaigns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "LARGEST", 2000)
    monkeypatch.setattr(attachments, "LARGEST_TOTAL", 3000)
    monkeypatch.setattr(attachments, "MOST_OF_ONE", 2)
    id = measured(store)
    for content, sentence in (
        (b"MZ\x90\x00 a program", "is no photo"),
        (b"", "the file is empty"),
        (b"\xff\xfe\x00", "is no photo"),
        (b"x" * 2001, "a file has at most"),
    ):
        with pytest.raises(BadValue, match=sentence) as found:
            store.attachments.add(id, "m1", "file.txt", content)
        assert "the measurement is kept" in found.value.message
    with pytest.raises(NotFound, match="no measurement 'm2'"):
        store.attachments.add(id, "m2", "leaf.png", PHOTO)
    with pytest.raises(BadValue, match="name"):
        store.attachments.add(id, "m1", "", PHOTO)
    store.attachments.add(id, "m1", "a.txt", b"a" * 1600)
    with pytest.raises(Conflict, match="in all"):
        store.attachments.add(id, "m1", "b.txt", b"b" * 1600)
    store.attachments.add(id, "m1", "b.txt", b"b")
    with pytest.raises(Conflict, match="at most 2 files"):
        store.attachments.add(id, "m1", "c.txt", b"c")
    store.archive(id)
    with pytest.raises(Conflict, match="archived"):
        store.attachments.add(id, "m1", "d.txt", b"d")
    assert [one["file"] for one in store.attachments.listed(id)] == ["a.txt", "b.txt"]
    assert store.measurements(id)["measurements"][0]["values"] == [2.5]


def test_a_deleted_campaign_takes_its_files_along(store: Campaigns) -> None:
    gone, stays = measured(store), measured(store, "peas")
    hash = store.attachments.add(gone, "m1", "leaf.png", PHOTO)["sha256"]
    store.attachments.add(stays, "m1", "leaf.png", PHOTO)
    store.delete(gone, "beans")
    with pytest.raises(NotFound):
        store.attachments.content(gone, hash)
    assert store.attachments.content(stays, hash)[1] == PHOTO
    journal = store._campaigns.journal
    with journal.reading() as reading:
        assert (reading.attachment(gone, hash), reading.attachment(stays, hash)) == (None, PHOTO)


def test_a_copy_has_them_and_a_campaign_goes_on_as_before(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "lab.db") as store:
        id = measured(store)
        hash = store.attachments.add(id, "m1", "leaf.png", PHOTO)["sha256"]
        store.backup(tmp_path / "copy.db")
    with Campaigns(tmp_path / "copy.db") as copy:
        assert copy.attachments.content(id, hash)[1] == PHOTO
        assert copy.status(id)["measurements"] == 1
        assert copy.ask(id, "ann")["asks"]


def test_a_store_of_an_earlier_release_takes_files_too(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "lab.db") as store:
        id = measured(store)
    with sqlite3.connect(tmp_path / "lab.db") as raw:
        raw.execute("DROP TABLE attachments")
    with Campaigns(tmp_path / "lab.db") as store:
        other = measured(store, "peas")
        store.delete(other, "peas")
        hash = store.attachments.add(id, "m1", "leaf.png", PHOTO)["sha256"]
        assert store.attachments.content(id, hash)[1] == PHOTO


def test_one_that_was_changed_on_disk_is_named(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "lab.db") as store:
        id = measured(store)
        hash = store.attachments.add(id, "m1", "leaf.png", PHOTO)["sha256"]
    with sqlite3.connect(tmp_path / "lab.db") as raw:
        raw.execute("UPDATE attachments SET content = ?", (b"another photo",))
    with Campaigns(tmp_path / "lab.db") as store:
        with pytest.raises(Conflict, match="was changed or lost on disk"):
            store.attachments.content(id, hash)
        assert store.status(id)["measurements"] == 1


@pytest.mark.parametrize(("content", "found"), [
    (PHOTO, "image/png"), (b"\xff\xd8\xff\xe0", "image/jpeg"), (b"GIF89a", "image/gif"), (b"II*\x00", "image/tiff"),
    (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"), (b"\x00\x00\x00\x18ftypheic", "image/heic"),
    (b"%PDF-1.7", "application/pdf"), (b"PK\x03\x04", "application/zip"), ("a nöte\n".encode(), "text/plain"),
    (b"<svg onload='alert(1)'/>", "text/plain"), (b"<html><script>", "text/plain"),
    (b"RIFF\x00\x00\x00\x00WAVE", None), (b"\x7fELF\x02\x01", None), (b"", None), (b"a\x00b", None),
])  # fmt: skip
def test_types_are_known_by_content(content: bytes, found: str | None) -> None:
    assert type_of(content) == found
