"""What one `coterie campaign tell` goes through: `python -m bench.crossing`.

The command is run in this process, on a small campaign in a SQLite file, under `sys.setprofile`. Printed are the files
of ours that it crosses and the calls of functions in them, the sessions that are built, and the transactions that the
database is asked to begin.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import coterie
from coterie import Session
from coterie.campaign import Campaigns

SOURCE = str(Path(coterie.__file__).parent)


class Crossing:
    """Counts what is called while it is entered."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()

    def __enter__(self) -> Crossing:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # A generator that goes on is called again, and so counts again; modules that are loaded do not count.
        if event == "call" and code.co_filename.startswith(SOURCE) and code.co_name != "<module>":
            name = code.co_filename.removeprefix(SOURCE).lstrip("/")
            self.files[name] += 1
            self.functions[f"{name}:{code.co_qualname}"] += 1


def count_sessions() -> list[Session]:
    """A list that every session is added to that is made from now on."""
    made: list[Session] = []
    plain_new: Any = Session.__new__

    def counted(cls: type[Session], *arguments: Any, **options: Any) -> Session:
        session: Session = plain_new(cls) if plain_new is object.__new__ else plain_new(cls, *arguments, **options)
        made.append(session)
        return session

    Session.__new__ = counted  # type: ignore[method-assign, assignment]
    return made


def begun_transactions() -> Counter[str]:
    """Counts from now on what SQLite is asked to begin, by kind; "all writing" has those that mark the file too."""
    from sqlalchemy import Engine, event

    begun: Counter[str] = Counter()

    @event.listens_for(Engine, "before_cursor_execute")
    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("BEGIN"):
            begun["write" if "IMMEDIATE" in statement else "read"] += 1

    @event.listens_for(Engine, "connect")
    def trace(raw: Any, _: Any) -> None:
        raw.set_trace_callback(lambda statement: begun.update(["all writing"] * statement.startswith("BEGIN IMM")))

    return begun


def prepared_campaign(store: Path) -> tuple[str, str]:
    """A campaign with a few results, and the lease of an open ask."""
    with Campaigns(store) as campaigns:
        id = campaigns.create("small", 4, 2, 1, noise=1.0)["id"]
        for k in range(6):
            (ask,) = campaigns.ask(id, "worker")["asks"]
            campaigns.tell(
                id, [{"id": f"m{k}", "arm": ask["arm"], "values": [0.5 * ask["arm"]], "lease": ask["lease"]}]
            )
        (ask,) = campaigns.ask(id, "worker")["asks"]
    return id, str(ask["lease"])


def tell(store: Path, lease: str) -> None:
    """Run the command."""
    from coterie.cli import app

    app(["campaign", "tell", "small", "--lease", lease, "0.25", "--store", str(store), "--json"], standalone_mode=False)


def main() -> None:
    """Print what is crossed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true", help="print every function with its calls too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        warm, store = Path(folder, "warm.db"), Path(folder, "store.db")
        tell(warm, prepared_campaign(warm)[1])  # so that everything is loaded
        lease = prepared_campaign(store)[1]
        begun, sessions = begun_transactions(), count_sessions()
        with Crossing() as crossing:
            tell(store, lease)
    print(f"files of ours: {len(crossing.files)}, calls in them: {crossing.files.total()}")
    for name, count in sorted(crossing.files.items()):
        print(f"  {count:5d}  {name}")
    if options.functions:
        for name, count in crossing.functions.most_common():
            print(f"  {count:5d}  {name}")
    print(f"sessions built: {len(sessions)}")
    marks = begun["all writing"] - begun["write"]
    print(f"reading transactions: {begun['read']}, writing transactions: {begun['write']}")
    print(f"and {marks} that mark the file as in use and as complete, once a process: see coterie.store.sqlite_mark")


if __name__ == "__main__":
    main()
