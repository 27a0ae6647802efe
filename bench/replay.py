"""How long it takes to follow a record of 100 000 measurements again: M = 1 000, K = 10, d = 8."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.instances import drawn
from bench.part import Column, Headline, Part, Progress, Row, sign
from coterie.campaign import Campaigns

RESULTS = 100_000
ASKED_SECONDS = 2.0
REPEATS = 3

CASES = (
    ("CROC, undecided at the end (gap 0.5)", "croc", 0.5),
    ("CROC, proven early (gap 6)", "croc", 6.0),
    ("BOC, undecided at the end (gap 6)", "boc", 6.0),
)


def record(instance: coterie.Instance, method: str, results: int) -> tuple[coterie.Session, tuple[Any, ...], float]:
    """A session with one worker, what was asked and told in it, as `Session.replay` takes it, and the time a result.

    After the stop, results go on to come in that nobody asked for.
    """
    session = coterie.Session(instance.n_arms, instance.n_clusters, instance.dim, 0.1, method, noise=1.0)
    rng = np.random.default_rng(1)
    arms: list[int] = []
    values: list[np.ndarray] = []
    start = time.perf_counter()
    while len(arms) < results and not session.done:
        arms.append(session.ask())
        values.append(instance.means[arms[-1]] + rng.standard_normal(instance.dim))
        session.tell(arms[-1], values[-1], len(arms) - 1)
    seconds = (time.perf_counter() - start) / len(arms)
    asked, late = len(arms), results - len(arms)
    more = rng.integers(instance.n_arms, size=late)
    kinds = np.concatenate([np.tile([0, 1], asked), np.ones(late)]).astype(np.int8)
    tickets = np.concatenate([np.repeat(np.arange(asked), 2), np.full(late, -1)])
    noise = rng.standard_normal((late, instance.dim))
    told = np.concatenate([np.repeat(values, 2, axis=0), instance.means[more] + noise])
    if late:
        session.tell(more, told[2 * asked :])
    return session, (kinds, np.concatenate([np.repeat(arms, 2), more]), tickets, told), seconds


def campaign(folder: Path, results: int) -> Row:
    """Seconds to open a campaign in a SQLite file: reading the rows, the session, the leases and ids."""
    instance = drawn(1_000, 10, 8, 0.5, 0)
    rng = np.random.default_rng(1)
    path, batch = folder / "store.db", 200
    start = time.perf_counter()
    with Campaigns(path) as store:
        id = store.create("bench", instance.n_arms, instance.n_clusters, instance.dim, 0.1, noise=1.0)["id"]
        for done in range(0, results, batch):
            asks = store.ask(id, "bench", batch)["asks"]
            values = instance.means[[ask["arm"] for ask in asks]] + rng.standard_normal((len(asks), instance.dim))
            given = [
                {"id": f"{done + i}", "arm": ask["arm"], "values": values[i].tolist(), "lease": ask["lease"]}
                for i, ask in enumerate(asks)
            ]
            store.tell(id, given)
        before = store.status(id)
    live = (time.perf_counter() - start) / results
    best = np.inf
    for _ in range(REPEATS):
        with Campaigns(path) as store:
            start = time.perf_counter()
            after = store.status(id)
            best = min(best, time.perf_counter() - start)
            start = time.perf_counter()
            store.status(id)
            reading = time.perf_counter() - start
    assert (after["t"], after["labels"], after["evidence"]) == (before["t"], before["labels"], before["evidence"])
    what = f"a campaign in SQLite, CROC, undecided (gap 0.5), told in batches of {batch}"
    return {
        "what": what, "seconds": best, "asked": ASKED_SECONDS, "met": bool(best < ASKED_SECONDS), "counted": after["t"],
        "done": after["done"], "live_seconds_a_result": live, "evidence_seconds": reading,
    }  # fmt: skip


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row a case."""
    results = 2_000 if quick else RESULTS
    with tempfile.TemporaryDirectory() as own:
        found = [campaign(Path(own), results)]
    progress.done(f"{found[0]['what']}: {found[0]['seconds']:.2f} s")
    for what, method, gap in CASES:
        instance = drawn(1_000, 10, 8, gap, 0)
        session, entries, live = record(instance, method, results)
        best = np.inf
        for _ in range(REPEATS):
            again = coterie.Session(instance.n_arms, instance.n_clusters, instance.dim, 0.1, method, noise=1.0)
            start = time.perf_counter()
            again.replay(*entries)
            best = min(best, time.perf_counter() - start)
        assert (again.t, again.done, again.pending) == (session.t, session.done, session.pending)
        assert again.evidence == session.evidence
        start = time.perf_counter()
        assert again.evidence.threshold > 0.0
        reading = time.perf_counter() - start
        found.append({
            "what": what, "seconds": best, "asked": ASKED_SECONDS, "met": bool(best < ASKED_SECONDS),
            "counted": session.t, "done": session.done, "live_seconds_a_result": live, "evidence_seconds": reading,
        })  # fmt: skip
        progress.done(f"{what}: {best:.2f} s for {results} results, {session.t} of them counted")
    return found


PART = Part(
    f"Following a record of {RESULTS:,} results again (M = 1 000, K = 10, d = 8).",
    (
        Column("record", "what", left=True),
        Column("seconds", "seconds", "{:.2f}".format),
        Column("goal", "asked", "< {:g}".format, left=True),
        Column("", lambda row: sign(row["met"])),
        Column("results that counted", "counted", "{:,}".format),
        Column("live, µs a result", lambda row: f"{row['live_seconds_a_result'] * 1e6:.0f}"),
        Column("evidence, ms", lambda row: f"{row['evidence_seconds'] * 1e3:.2f}"),
    ),
    rows,
    lambda found: [
        Headline(f"replay: {row['what']}", f"{row['seconds']:.2f} s", f"< {row['asked']:g} s", row["met"])
        for row in found
    ],
    seconds=60,
)
