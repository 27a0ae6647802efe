"""A row that was changed, lost, doubled or moved is named, by every journal; nothing that rests on it is served."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.store import DamagedLog, Journal
from coterie.store.rows import TABLES, Ask, Ending, Kind, Note, Told
from coterie.testing.journals import append_rows, begin_campaigns, sample_rows

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
    begin_campaigns(journal, "a", "b")
    for _ in range(4):
        append_rows(journal, "a", 5)
    append_rows(journal, "b", 5)


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
    originals = {row.seq: row for row in sample_rows(20)}
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
            assert reading.rows(campaign, 0, seq - 1).rows == sample_rows(seq - 1)  # what is before it can be had
            if "hash" not in columns:
                assert reading.rows(campaign, seq).rows == sample_rows(20 - seq, seq)
            other = reading.campaign("b")
            assert other is not None
            assert reading.rows(other).rows == sample_rows(5)
        whole = originals[seq]._asdict()
        tampering.change("a", kind, seq, {name: whole.get(name, before) for name in columns})
    with journal.reading() as reading:  # all were put back
        campaign = reading.campaign("a")
        assert campaign is not None
        assert reading.rows(campaign).rows == sample_rows(20)


@pytest.mark.parametrize("seq", [1, 2, 11, 20])
def test_a_missing_row_is_named(journal: Journal, tampering: Any, seq: int) -> None:
    filled(journal)
    tampering.delete("a", type(sample_rows(20)[seq - 1]), seq)
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
