"""What tests of several folders share: a real PostgreSQL, and modules that test files import."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ["COTERIE_BACKGROUND_COMPILER"] = "0"  # tests compile when they need to, or say that they do not
sys.path.append(str(Path(__file__).parent / "imported"))  # pytest's importlib mode leaves the path as it is

from waiting import wait_until


def pytest_collection_finish() -> None:
    """Begin with the methods of the package: test files that were collected may have registered others."""
    from coterie.methods import METHODS, unregister
    from coterie.methods.table import PACKAGED

    for name in METHODS.keys() - set(PACKAGED):
        unregister(name)


class Postgres:
    """A PostgreSQL server of our own."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
            import pgserver

        self.server = pgserver.get_server(folder, cleanup_mode="delete")
        self._numbers = itertools.count()

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"store{next(self._numbers)}"
        self.server.psql(f"CREATE DATABASE {name};")
        return str(self.server.get_uri(name))

    def control(self, *arguments: str) -> None:
        """`pg_ctl`, which waits until it is done."""
        from pgserver.postgres_server import pg_ctl

        pg_ctl(["-w", *arguments], pgdata=self.server.pgdata, user=self.server.system_user)

    def restart(self, how: str = "fast") -> None:
        self.control("-m", how, "restart")

    def away(self, until: Callable[[], bool]) -> None:
        """Stop it, and start it again as it was once `until` holds."""
        folder = Path(self.server.pgdata)
        options = shlex.split((folder / "postmaster.opts").read_text())[1:]
        self.control("-m", "fast", "stop")
        try:
            wait_until(until)
        finally:
            self.control("-l", str(folder / "log"), "-o", shlex.join(options), "start")

    def close(self) -> None:
        self.control("-m", "immediate", "stop")  # what is in it is not needed any more
        self.server.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    # Not under pytest's own folder: that is closed to other users, and root's server runs as another user.
    with tempfile.TemporaryDirectory(prefix="coterie-postgres-", ignore_cleanup_errors=True) as folder:
        server = Postgres(Path(folder, "data"))
        yield server
        server.close()
