"""The conformance suite for journals (`coterie.store.journal.Journal`).

Each of `CHECKS` takes a function that opens the journal: at a new place when the check begins, and there whenever it is
called again, as another process would. `AssertionError` says what the journal does not do. With pytest:

    import pytest
    from coterie.testing import journals

    @pytest.mark.parametrize("check", journals.CHECKS, ids=lambda check: check.__name__)
    def test_my_journal(check, tmp_path):
        check(lambda: MyJournal(tmp_path / "journal"))

What the suite cannot see from outside is left to tests of the journal's own: that a process which is killed leaves no
transaction in part, that a row which was changed on disk is named, and that processes exclude each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias

from coterie.store import DamagedLog, Journal, Snapshot, Summary
from coterie.store.journal import Campaign, KnownRows, Reading, Selection
from coterie.store.rows import Ask, Ending, Note, Row, Told

OpenJournal: TypeAlias = Callable[[], Journal]

CHAIN_OF_20 = "8fe2a1533ba65dc8ad3f9bdef2268d103bbbb319d1c407e5f01e6fec56251362"
"""The hash of the last of 20 sample rows of the campaign "a", in every journal and every release."""


# Rows to put into a journal, and short ways to do it.


def sample_rows(count: int, after: int = 0) -> list[Row]:
    """Rows of all four kinds that follow row `after`, with everything in them that is hard to keep."""
    rows: list[Row] = []
    for seq in range(after + 1, after + count + 1):
        at = 1_800_000_000.0 + seq / 3
        match seq % 5:
            case 0:
                rows.append(Ending(seq, f"l{seq - 4}", seq, "failed", "the tube broke – “twice”\\", at))
            case 1:
                rows.append(Ask(seq, f"l{seq}", seq, seq % 7, "änn\u2028", at, at + 60.0, seq % 3))
            case 2:
                rows.append(Told(seq, f"m{seq}", seq % 7, "[0.1, -1e-320]", f"l{seq - 1}", seq - 1, "b\"o'b", at))
            case 3:
                rows.append(Told(seq, f"m{seq}", seq % 7, "[1.7976931348623157e+308]", None, None, None, at))
            case _:
                rows.append(Note(seq, "evidence" if seq % 2 else "groups", '{"t": 3, "é": null}', at))
    return rows


def sample_summary(at: float = 5.0) -> Summary:
    """A summary to append rows with."""
    return {"last_at": at, "t": 2, "measurements": 3, "open_leases": 1, "done": 0}


def begin_campaigns(journal: Journal, *ids: str) -> None:
    """Begin campaigns with these ids, created one second after the other."""
    with journal.writing() as writing:
        for i, id in enumerate(ids):
            writing.add_campaign(id, f"campaign {id}", '{"n_arms": 3}', float(i))


def append_rows(journal: Journal, id: str, count: int) -> None:
    """Add the next sample rows to a campaign."""
    with journal.writing([id]) as writing:
        writing.append(id, sample_rows(count, writing.locked[id]["last_seq"]), sample_summary())


@contextmanager
def _opened(open_journal: OpenJournal, *ids: str) -> Iterator[Journal]:
    """The journal, with these campaigns in it."""
    journal = open_journal()
    try:
        if ids:
            begin_campaigns(journal, *ids)
        yield journal
    finally:
        journal.close()


def _campaign(reading: Reading, id: str) -> Campaign:
    row = reading.campaign(id)
    if row is None:
        raise AssertionError(f"campaign {id} was begun, and is not there")
    return row


def _equal(actual: Any, expected: Any, of: str) -> None:
    if actual != expected:
        raise AssertionError(f"{of}: expected {expected!r}, got {actual!r}")


@contextmanager
def _refused(error: type[Exception], words: str, of: str) -> Iterator[None]:
    try:
        yield
    except error as refusal:
        if words not in str(refusal):
            raise AssertionError(f"{of}: expected a sentence with {words!r}, got {str(refusal)!r}") from refusal
    else:
        raise AssertionError(f"{of}: expected {error.__name__}, and nothing was raised")


# The log.


def check_rows_come_back(open_journal: OpenJournal) -> None:
    """Rows are read by somebody else as they were written, with the hashes that every journal gives them."""
    with _opened(open_journal, "a", "b") as journal:
        for count in (1, 7, 12):
            append_rows(journal, "a", count)
        append_rows(journal, "b", 3)
        with _opened(open_journal) as again, again.reading() as reading:
            for id, count in (("a", 20), ("b", 3)):
                campaign = _campaign(reading, id)
                page = reading.rows(campaign)
                _equal(page.rows, sample_rows(count), f"rows of {id}")
                _equal([type(row) for row in page.rows], [type(row) for row in sample_rows(count)], "kinds of rows")
                _equal((campaign["last_seq"], campaign["chain"]), (count, page.hash), f"the end of {id}")
                _equal(reading.count(id), count, "count")
                _equal(reading.hash_of(id, count), page.hash, "hash_of the last row")
                _equal(reading.hash_of(id, count + 1), None, "hash_of a row that is not there")
            _equal(_campaign(reading, "a")["chain"], CHAIN_OF_20, "the hash chain")


def check_rows_after_a_number(open_journal: OpenJournal) -> None:
    """Rows are read from any place on, up to a limit, of all kinds or some."""
    whole = sample_rows(110)
    with _opened(open_journal, "a") as journal:
        for _ in range(10):
            append_rows(journal, "a", 11)
        with journal.reading() as reading:
            campaign = _campaign(reading, "a")
            for after in (0, 1, 10, 11, 12, 54, 99, 109, 110, 500):
                _equal(reading.rows(campaign, after).rows, whole[after:], f"rows after {after}")
                for limit in (1, 2, 11, 30, 110, 200):
                    some = reading.rows(campaign, after, limit).rows
                    _equal(some, whole[after : after + limit], f"{limit} rows after {after}")
                    for kinds in ((Told,), (Ask, Note)):
                        wanted = [row for row in whole[after:] if type(row) in kinds][:limit]
                        _equal(reading.rows(campaign, after, limit, kinds).rows, wanted, f"{limit} of {kinds}")
            notes = [row for row in whole if isinstance(row, Note) and row.kind == "evidence"]
            _equal(reading.notes(campaign, "evidence").rows, notes, "notes of one kind")
            _equal(reading.notes(campaign, "nothing").rows, [], "notes of a kind that there is not")
            known = reading.hash_of("a", 50)
            _equal(reading.rows(campaign, 50, previous=known).rows, whole[50:], "rows after a known hash")
            with _refused(DamagedLog, "row 51", "rows after another hash than the stored one"):
                reading.rows(campaign, 50, previous="f" * 64)


def check_rows_of_several_campaigns(open_journal: OpenJournal) -> None:
    """`rows_since` reads the news of several campaigns, and leaves out those whose chain does not fit."""
    ids, counts = ("a", "b", "c", "d"), (20, 7, 12, 20)
    with _opened(open_journal, *ids) as journal:
        for id, count in zip(ids, counts, strict=True):
            append_rows(journal, id, count)
        with journal.reading() as reading:
            rows = {id: _campaign(reading, id) for id in ids}
            hashes = {id: reading.hash_of(id, 5) or "" for id in ids}
            known = [KnownRows(rows[id], 5, hashes[id]) for id in ids[:3]]
            _equal(reading.rows_since([]), {}, "rows_since of nothing")
            _equal(list(reading.rows_since(known[:1])), ["a"], "rows_since of one")
            news = reading.rows_since([*known, KnownRows(rows["d"], 5, hashes["a"])])
            wanted = {id: sample_rows(count)[5:] for id, count in zip(ids[:3], counts, strict=False)}
            _equal({id: page.rows for id, page in news.items()}, wanted, "rows_since of several")
            ends = {id: rows[id]["chain"] for id in ids[:3]}
            _equal({id: page.hash for id, page in news.items()}, ends, "hashes of rows_since")
            up_to_date = KnownRows(rows["b"], 7, rows["b"]["chain"])
            _equal(reading.rows_since([up_to_date, known[0]])["b"].rows, [], "rows_since of one that has no news")


def check_refusals(open_journal: OpenJournal) -> None:
    """Rows that do not go on, ids that are taken and ids that are none are refused, and change nothing."""
    with _opened(open_journal, "a") as journal:
        append_rows(journal, "a", 3)
        for rows in (sample_rows(1, 2), sample_rows(1, 4), [*sample_rows(1, 3), *sample_rows(1, 5)]):
            with (
                _refused(ValueError, "the next row of campaign a has number", "append of rows that do not go on"),
                journal.writing(["a"]) as writing,
            ):
                writing.append("a", rows, sample_summary())
        for id, words in (("a", "taken"), ("", "letters and digits"), ("../x", "letters and digits")):
            with _refused(ValueError, words, f"a campaign with the id {id!r}"):
                begin_campaigns(journal, id)
        with journal.reading() as reading:
            _equal([row["last_seq"] for row in reading.campaigns()], [3], "what refused rows left")


# Transactions.


def check_a_block_that_raises_leaves_nothing(open_journal: OpenJournal) -> None:
    """Nothing of a transaction is there if its block raises; ids that nobody knows are not locked."""
    with _opened(open_journal, "a", "b") as journal:

        def broken() -> None:
            with journal.writing(["a", "b", "unknown"]) as writing:
                _equal(set(writing.locked), {"a", "b"}, "locked")
                for id in ("a", "b"):
                    writing.append(id, sample_rows(5), sample_summary())
                writing.add_campaign("c", "c", "{}", 0.0)
                writing.add_token({"hash": "h", "scope": "reader", "label": "", "created": 1.0})
                raise ZeroDivisionError("on purpose")

        with _refused(ZeroDivisionError, "on purpose", "the error of a block"):
            broken()
        with journal.reading() as reading:
            left = [(row["id"], row["last_seq"]) for row in reading.campaigns()]
            _equal(left, [("a", 0), ("b", 0)], "what a broken transaction left")
            _equal(reading.tokens(), [], "tokens of a broken transaction")


def check_a_reading_shows_one_state(open_journal: OpenJournal) -> None:
    """What others commit meanwhile is not seen in a block that reads, and is in the next one."""
    with _opened(open_journal, "a") as journal:
        append_rows(journal, "a", 5)
        with journal.reading() as reading:
            campaign = _campaign(reading, "a")
            append_rows(journal, "a", 5)
            _equal(len(reading.rows(campaign).rows), 5, "rows of one state")
            _equal(reading.count("a"), 5, "count of one state")
            _equal(reading.campaign("a"), campaign, "the row of one state")
            _equal(len(reading.rows(campaign, kinds=(Told,)).rows), 2, "results of one state")
        with journal.reading() as reading:
            _equal(reading.count("a"), 10, "count in the next block")


def check_threads_exclude_each_other(open_journal: OpenJournal) -> None:
    """Transactions over several campaigns follow one another, whatever their order of ids, and never wait in a ring."""
    ids = ["a", "b", "c"]
    with _opened(open_journal, *ids) as journal:

        def work(number: int) -> None:
            for k in range(8):
                own = [ids[(number + k) % 3], ids[(number + k + 1) % 3]]
                with journal.writing(own) as writing:
                    for id in own:
                        writing.append(id, sample_rows(3, writing.locked[id]["last_seq"]), sample_summary())

        with ThreadPoolExecutor(4) as pool:
            for job in [pool.submit(work, number) for number in range(4)]:
                job.result()
        with journal.reading() as reading:
            for campaign in reading.campaigns():
                _equal(reading.rows(campaign).rows, sample_rows(campaign["last_seq"]), "rows of several threads")
            _equal(sum(row["last_seq"] for row in reading.campaigns()), 4 * 8 * 2 * 3, "rows in all")


def check_a_writer_waits_for_the_lock(open_journal: OpenJournal) -> None:
    """Whoever opens the journal a second time sees, once it has the lock, what the first has written."""
    order: list[int] = []
    inside = threading.Event()
    with _opened(open_journal, "a") as journal:

        def second() -> None:
            with _opened(open_journal) as other:
                inside.wait(60)
                with other.writing(["a"]) as writing:
                    order.append(writing.locked["a"]["last_seq"])

        thread = threading.Thread(target=second)
        thread.start()
        with journal.writing(["a"]) as writing:
            inside.set()
            thread.join(0.2)
            order.append(-1)
            writing.append("a", sample_rows(2), sample_summary())
        thread.join(60)
    _equal(order, [-1, 2], "who had the lock, and what was seen")


# Campaigns, snapshots, tokens.


def check_lists(open_journal: OpenJournal) -> None:
    """Campaigns are listed oldest first with their summaries, and selected by page, name and archive."""

    def ids(rows: Iterable[Campaign]) -> list[str]:
        return [row["id"] for row in rows]

    with _opened(open_journal) as journal:
        with journal.writing() as writing:
            for k in range(6):
                about = '{"n": 3}' if k % 2 else ""
                writing.add_campaign(f"c{k}", f"Beans {k}", '{"n_arms": 3}', float(k // 2), about)
        append_rows(journal, "c4", 4)
        with journal.reading() as reading:
            first, *_, fifth, _ = reading.campaigns()
            fresh = {"name": "Beans 0", "settings": '{"n_arms": 3}', "created": 0.0, "last_seq": 0, "last_at": 0.0}
            _equal(first | fresh, first, "a campaign that begins")
            _equal(fifth | {"last_seq": 4, **sample_summary()}, fifth, "a summary")
            _equal((reading.campaign("c9"), reading.campaign("../c0")), (None, None), "unknown campaigns")
            _equal(reading.named("Beans 3"), reading.campaign("c3"), "a campaign by its name")
            for wanted, expected in (
                (Selection(10), ["c0", "c1", "c2", "c3", "c4", "c5"]),
                (Selection(2, newest_first=True), ["c5", "c4"]),
                (Selection(10, after=(1.0, "c2")), ["c3", "c4", "c5"]),
                (Selection(10, after=(1.0, "c2"), newest_first=True), ["c1", "c0"]),
                (Selection(10, name="bEANS 4"), ["c4"]),
                (Selection(10, name="%"), []),
                (Selection(10, only="c3"), ["c3"]),
            ):
                _equal(ids(reading.select(wanted)), expected, str(wanted))
            settings = [row["settings"] for row in reading.select(Selection(2))]
            _equal(settings, ['{"n_arms": 3}', ""], "settings in a list")
        with journal.writing(["c1"]) as writing:
            archived: Summary = {**sample_summary(), "archived": 9.0}
            writing.append("c1", [Note(1, "archived", "{}", 9.0)], archived)
        with journal.reading() as reading:
            _equal(ids(reading.select(Selection(2))), ["c0", "c2"], "a list without the archive")
            _equal(ids(reading.select(Selection(2, archived=True))), ["c0", "c1"], "a list with the archive")
            row = _campaign(reading, "c1")
            _equal((row["archived"], row["about"]), (9.0, '{"n": 3}'), "an archived campaign")


def check_removing(open_journal: OpenJournal) -> None:
    """A removed campaign is gone with its tokens and logins; its rows are swept in parts."""
    with _opened(open_journal, "a", "b") as journal:
        append_rows(journal, "a", 30)
        append_rows(journal, "b", 4)
        with journal.writing() as writing:
            writing.add_token({"hash": "h", "scope": "worker", "label": "x", "created": 0.0, "campaign": "a"})
            writing.add_session({"hash": "s", "token": "h", "until": 9.0})
            writing.keep_snapshot(Snapshot("a", 30, 1, "x", b"content"))
        with journal.writing(["a"]) as writing:
            writing.remove_campaign("a")
        with journal.reading() as reading:
            _equal((reading.campaign("a"), reading.named("campaign a")), (None, None), "a removed campaign")
            _equal([row["id"] for row in reading.campaigns()], ["b"], "campaigns that are left")
            _equal((reading.tokens(), reading.sessions()), ([], []), "tokens and logins of a removed campaign")
        with journal.writing(["a", "b"]) as writing:
            _equal(set(writing.locked), {"b"}, "locked")
        for _ in range(20):
            with journal.writing() as writing:
                if not writing.sweep(7):
                    break
        else:
            raise AssertionError("30 rows are not swept in 20 parts of 7")
        with journal.reading() as reading:
            _equal((reading.count("a"), reading.snapshot("a"), reading.count("b")), (0, None, 4), "what was swept")


def check_snapshots(open_journal: OpenJournal) -> None:
    """A snapshot takes the place of the one before; a file that is kept twice is there once."""
    with _opened(open_journal, "a", "b") as journal:
        kept = Snapshot("a", 2, 3, "hash", bytes(range(256)) * 50)
        for snapshot in (Snapshot("a", 1, 3, "hash", b"one"), kept):
            with journal.writing(["a"]) as writing:
                writing.keep_snapshot(snapshot)
                writing.keep_attachment("a", "hash", b"\0photo")
        with journal.reading() as reading:
            _equal((reading.snapshot("a"), reading.snapshot("b")), (kept, None), "snapshots")
            _equal((reading.attachment("a", "hash"), reading.attachment("b", "hash")), (b"\0photo", None), "files")


def check_tokens(open_journal: OpenJournal) -> None:
    """Tokens and logins are kept, revoked and removed."""
    with _opened(open_journal) as journal:
        with journal.writing() as writing:
            for hash, at in (("h2", 2.0), ("h1", 1.0)):
                added = writing.add_token({"hash": hash, "scope": "reader", "label": "x", "created": at})
                _equal(added, True, "a new token")
            writing.add_session({"hash": "s", "token": "h1", "until": 9.0})
        with journal.writing() as writing:
            again = writing.add_token({"hash": "h1", "scope": "owner", "label": "", "created": 3.0})
            _equal(again, False, "a token that is there")
            writing.revoke_token("h2", 5.0)
        with _opened(open_journal) as other:
            with other.reading() as reading:
                kept = [(token["hash"], token["scope"], token.get("revoked")) for token in reading.tokens()]
                _equal(kept, [("h1", "reader", None), ("h2", "reader", 5.0)], "tokens")
                _equal([login["hash"] for login in reading.sessions()], ["s"], "logins")
            with other.writing() as writing:
                for hash in ("h1", "nothing"):
                    writing.remove_token(hash)
                writing.remove_sessions(["s", "nothing"])
        with journal.reading() as reading:
            _equal(([token["hash"] for token in reading.tokens()], reading.sessions()), (["h2"], []), "what is left")


def check_it_can_be_tried(open_journal: OpenJournal) -> None:
    """Whether it can be written is tried without a trace; there is a name to show."""
    with _opened(open_journal, "a") as journal:
        journal.check_writable()
        with journal.reading() as reading:
            _equal(reading.count("a"), 0, "rows after check_writable")
        _equal(journal.retried(lambda: 7), 7, "the answer of retried")
        _equal(bool(journal.name), True, "a name to show")


CHECKS: tuple[Callable[[OpenJournal], None], ...] = tuple(
    check for name, check in list(globals().items()) if name.startswith("check_")
)
"""The suite: all functions of this module that are called check_…"""
