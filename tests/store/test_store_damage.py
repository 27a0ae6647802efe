"""A row that was changed, lost, doubled or moved is named, by every journal; nothing that rests on it is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from journal_rows import append, begin, facts, summary

from coterie.store import Conflict, DamagedLog, Journal, open_journal
from coterie.store.rows import TABLES, Ask, Ending, Kind, Note, Told

CHANGES: list[tuple[Kind, int, dict[str, Any]]] = [
    (Ask, 6, {"lease": "other"}),
    (Ask, 6, {"ticket": 7}),
    (Ask, 6, {"arm": 0}),
    (Ask, 6, {"worker": "bob"}),
    (Ask, 6, {"asked_at": 1_800_000_002.0000002}),
    (Ask, 6, {"expires_at": 0.0}),
    (Ask, 6, {"round": 1}),
    (Ask, 6, {"lease": "l6ä", "worker": "nn\u2028"}),  # the same characters, cut elsewhere
    (Told, 7, {"id": "other"}),
    (Told, 7, {"arm": 1}),
    (Told, 7, {"values": "[0.2, -1e-320]"}),
    (Told, 7, {"lease": None}),
    (Told, 7, {"ticket": None}),
    (Told, 7, {"ticket": -1}),
    (Told, 7, {"worker": ""}),
    (Told, 7, {"told_at": 0.0}),
    (Told, 8, {"lease": ""}),
    (Told, 8, {"ticket": -1}),
    (Told, 8, {"worker": ""}),
    (Note, 9, {"kind": "stopped"}),
    (Note, 9, {"content": "{}"}),
    (Note, 9, {"at": 1.0}),
    (Ending, 10, {"lease": "x"}),
    (Ending, 10, {"ticket": 9}),
    (Ending, 10, {"kind": "expired"}),
    (Ending, 10, {"reason": ""}),
    (Ending, 10, {"at": 1.0}),
    (Note, 9, {"hash": "0" * 64}),
    (Ask, 1, {"arm": 3}),
    (Ending, 20, {"reason": "the last"}),
]


def filled(journal: Journal) -> None:
    begin(journal, "a", "b")
    for _ in range(4):
        append(journal, "a", 5)
    append(journal, "b", 5)


def damage(journal: Journal, *arguments: Any, id: str = "a", **more: Any) -> DamagedLog:
    """What reading the log says about it."""
    with journal.reading() as reading:
        campaign = reading.campaign(id)
        assert campaign is not None
        with pytest.raises(DamagedLog) as caught:
            reading.rows(campaign, *arguments, **more)
    assert (caught.value.code, caught.value.status) == ("damaged_log", 409)
    assert f"row {caught.value.seq}" in caught.value.message
    assert f"campaign export {id} --before {caught.value.seq}" in caught.value.message
    return caught.value


def test_every_column_of_every_row_is_protected(journal: Journal, tampering: Any) -> None:
    filled(journal)
    originals = {row.seq: row for row in facts(20)}
    for kind, seq, columns in CHANGES:
        with journal.reading() as reading:
            before = reading.hash_of("a", seq)
        tampering.change("a", kind, seq, columns)
        found = damage(journal)
        assert (found.campaign, found.seq, found.table) == ("a", seq, TABLES[kind]), columns
        found = damage(journal, seq - 1, 1)
        assert (found.seq, found.table) == (seq, TABLES[kind]), columns
        if "kind" not in columns:
            assert damage(journal, kinds=(kind,)).seq == seq
        with journal.reading() as reading:
            campaign = reading.campaign("a")
            assert campaign is not None
            assert reading.rows(campaign, 0, seq - 1).rows == facts(seq - 1)  # what is before it can be had
            if "hash" not in columns:
                assert reading.rows(campaign, seq).rows == facts(20 - seq, seq)
            other = reading.campaign("b")
            assert other is not None
            assert reading.rows(other).rows == facts(5)
        whole = originals[seq]._asdict()
        tampering.change("a", kind, seq, {name: whole.get(name, before) for name in columns})
    with journal.reading() as reading:  # all were put back
        campaign = reading.campaign("a")
        assert campaign is not None
        assert reading.rows(campaign).rows == facts(20)


@pytest.mark.parametrize("seq", [1, 2, 11, 20])
def test_a_missing_row_is_named(journal: Journal, tampering: Any, seq: int) -> None:
    filled(journal)
    tampering.delete("a", type(facts(20)[seq - 1]), seq)
    found = damage(journal)
    assert (found.seq, found.table) == (seq, None)
    assert "is missing" in found.message
    with journal.reading() as reading:
        assert reading.count("a") == 19
    assert damage(journal, seq - 1, 5).seq == seq
    if seq == 11:  # an ask, which a result follows
        assert damage(journal, kinds=(Told,)).seq == 11


def test_a_row_that_is_there_twice_is_named(journal: Journal, tampering: Any) -> None:
    filled(journal)
    tampering.double("a", 12)
    found = damage(journal)
    assert found.seq == 12
    with journal.reading() as reading:
        assert reading.count("a") == 21


def test_rows_that_changed_places_are_named(journal: Journal, tampering: Any) -> None:
    filled(journal)
    for seq, new in ((7, 100), (12, 7), (100, 12)):
        tampering.renumber("a", Told, seq, new)
    found = damage(journal)
    assert found.seq == 7


def test_a_number_that_was_changed_is_named(journal: Journal, tampering: Any) -> None:
    filled(journal)
    tampering.renumber("a", Told, 7, 50)
    assert damage(journal).seq == 7


def test_settings_are_protected_too(journal: Journal, tampering: Any) -> None:
    filled(journal)
    tampering.settings("a", '{"n_arms": 4}')
    found = damage(journal)
    assert found.seq == 1
    assert "or the campaign's settings" in found.message


def test_rows_of_another_campaign_are_no_substitute(journal: Journal, tampering: Any, address: str) -> None:
    """Two campaigns with the same rows and settings have other hashes."""
    filled(journal)
    with journal.reading() as reading:
        assert reading.hash_of("a", 3) != reading.hash_of("b", 3)


def test_a_hash_in_memory_is_compared_with_what_is_stored(journal: Journal) -> None:
    filled(journal)
    found = damage(journal, 10, previous="f" * 64)
    assert found.seq == 11


def lines_folder(address: str) -> Path:
    return Path(address.removeprefix("jsonl:///"))


@pytest.fixture
def lines(tmp_path: Path) -> Journal:
    return open_journal(f"{tmp_path}/lines/")


def test_what_a_killed_process_left_does_not_count(lines: Journal, tmp_path: Path) -> None:
    """Rows without the line that commits them, and a line that ends in the middle: cut off by the next writer, kept."""
    filled(lines)
    path = tmp_path / "lines" / "a.jsonl"
    whole = path.read_bytes()
    append(lines, "a", 5)
    new = path.read_bytes()[len(whole) :]
    for cut in [*range(0, len(new), 7), len(new) - 1]:
        path.write_bytes(whole + new[:cut])
        with lines.reading() as reading:
            campaign = reading.campaign("a")
            assert campaign is not None
            assert campaign["last_seq"] == 20
            assert reading.rows(campaign).rows == facts(20)
    append(lines, "a", 3)
    with lines.reading() as reading:
        campaign = reading.campaign("a")
        assert campaign is not None
        assert reading.rows(campaign).rows == facts(23)
    assert (tmp_path / "lines" / "a.cut-off").read_bytes() == new[:-1] + b"\n"


def test_a_whole_line_that_is_no_row_is_damage_and_is_never_cut_off(lines: Journal, tmp_path: Path) -> None:
    filled(lines)
    path = tmp_path / "lines" / "a.jsonl"
    *rows, commit = path.read_bytes().splitlines(keepends=True)
    for wrong in (b"x" + commit[1:], b"{" + commit[2:], b"\n", commit[:-3] + b"\n"):
        path.write_bytes(b"".join([*rows, wrong]))
        assert damage(lines).seq == 21
        assert damage(lines, kinds=(Told,)).seq == 21
        with lines.reading() as reading:  # everything else goes on
            assert [one["id"] for one in reading.campaigns()] == ["a", "b"]
            campaign = reading.campaign("a")
            assert campaign is not None
            assert reading.rows(campaign, 0, 15).rows == facts(15)
        with pytest.raises(DamagedLog), lines.writing(["a"]) as writing:
            writing.append("a", facts(1, 15), summary())
        assert path.read_bytes() == b"".join([*rows, wrong])


def test_a_line_in_the_middle_that_cannot_be_read_is_named(lines: Journal, tmp_path: Path) -> None:
    filled(lines)
    path = tmp_path / "lines" / "a.jsonl"
    content = path.read_bytes().splitlines(keepends=True)
    place = next(i for i, line in enumerate(content) if line.startswith(b'["asks", 11,'))
    content[place] = content[place][:-9] + b"\n"
    path.write_bytes(b"".join(content))
    for after in (0, 4, 10):
        assert damage(lines, after).seq == 11
        assert damage(lines, after, 12).seq == 11
        assert damage(lines, after, 10, (Told,)).seq in (11, 12)  # the ask itself is not one of these


def test_a_list_of_campaigns_that_cannot_be_read_is_said_so(lines: Journal, tmp_path: Path) -> None:
    filled(lines)
    path = tmp_path / "lines" / "campaigns.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"id"', b'"di"', 1))
    with pytest.raises(Conflict, match=r"line 1 of .*campaigns\.jsonl cannot be read"), lines.reading() as reading:
        reading.campaigns()
    (tmp_path / "lines" / "journal.json").write_text("{}")
    with pytest.raises(Conflict, match="does not say which version"):
        open_journal(tmp_path / "lines")
