"""What can be wrong with a cluster is one line that says so, soon."""

from __future__ import annotations

import http.server
import importlib.util
import re
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.simulate import connecting
from coterie.simulate.bulk import Outcome, plan_for, run_trials

pytestmark = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="Dask is not installed")

INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])


def test_the_waits_add_up_to_less_than_ten_seconds() -> None:
    assert connecting.ANSWER + 1.0 + connecting.ANSWER - 1.0 <= 9.0  # asking what it is, then finding out why not
    assert connecting.WORKERS * 2 <= 9.0  # the first to appear, all to answer


@pytest.mark.parametrize(
    ("scheduler", "error", "message"),
    [
        (5, TypeError, r"scheduler must be an address such as tcp://10\.0\.0\.5:8786, or a distributed\.Client, got 5"),
        ("", ValueError, "'' is not the address of a scheduler"),
        ("somewhere", ValueError, "'somewhere' is not the address of a scheduler: give scheme, host and port"),
        ("tcp://", ValueError, "not the address of a scheduler"),
        ("tcp://host", ValueError, "not the address of a scheduler"),
        ("tcp://host:port", ValueError, "not the address of a scheduler"),
        ("tcp://host:99999", ValueError, "not the address of a scheduler"),
        ("tcp://a host:8786", ValueError, "not the address of a scheduler"),
        ("tcp://[::1:8786", ValueError, "not the address of a scheduler"),
        ("http://host:8786", ValueError, "the scheme must be one of tcp, tls, ws, wss"),
        ("tls://127.0.0.1:8786", ValueError, "needs certificates"),
    ],
)
def test_what_is_no_address_is_refused(scheduler: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        coterie.simulate(INST, trials=1, scheduler=scheduler, method="boc", threshold="heuristic", deltas=(0.1,))


@pytest.mark.parametrize("given", ["127.0.0.1:8786", " tcp://127.0.0.1:8786 ", "tcp://[::1]:8786", "tcp://h-1.x:1"])
def test_addresses_that_are_fine(given: str) -> None:
    text = given.strip()
    assert connecting.check_address(given) == (text if "://" in text else f"tcp://{text}")


def test_workers_and_scheduler_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="workers=2 are threads of this machine"):
        coterie.simulate(
            INST,
            trials=1,
            workers=2,
            scheduler="tcp://127.0.0.1:8786",
            method="boc",
            threshold="heuristic",
            deltas=(0.1,),
        )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "ANSWER", 1.5)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """Takes no further connection: its queue is full, so that the system leaves the next one without an answer."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        it.listen(0)
        address = it.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        yield int(address[1])
        for one in waiting:
            one.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Takes connections and says nothing."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        it.listen(16)
        yield int(it.getsockname()[1])


@pytest.fixture
def http_port() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("port", "message"),
    [
        ("free_port", "nothing listens at tcp://127.0.0.1:PORT: start a scheduler there with `dask scheduler`"),
        ("deaf_port", "the host of tcp://127.0.0.1:PORT does not answer"),
        ("silent_port", "what listens at tcp://127.0.0.1:PORT is not a Dask scheduler"),
        ("http_port", "what listens at tcp://127.0.0.1:PORT is not a Dask scheduler"),
    ],
)
def test_what_is_no_scheduler_is_named(
    port: str, message: str, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    number = request.getfixturevalue(port)
    capfd.readouterr()
    with pytest.raises(ConnectionError, match=re.escape(message.replace("PORT", str(number)))):
        coterie.simulate(
            INST, trials=1, scheduler=f"tcp://127.0.0.1:{number}", method="boc", threshold="heuristic", deltas=(0.1,)
        )
    found = capfd.readouterr()
    if port != "http_port":  # whose server logs what it was asked
        assert found == ("", "")


@pytest.mark.usefixtures("impatient")
def test_an_unknown_host_is_named() -> None:
    with pytest.raises(
        ConnectionError, match=r"host 'no-such-host\.invalid'|tcp://no-such-host\.invalid:8786 does not"
    ):
        coterie.simulate(
            INST,
            trials=1,
            scheduler="tcp://no-such-host.invalid:8786",
            method="boc",
            threshold="heuristic",
            deltas=(0.1,),
        )


def test_the_command_says_it_in_one_line(free_port: int) -> None:
    answer = CliRunner().invoke(app, ["simulate", "easy", "--trials", "2", "--scheduler", f"127.0.0.1:{free_port}"])
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"coterie: nothing listens at tcp://127.0.0.1:{free_port}: ")
    assert answer.stderr.count("\n") == 1


def test_dask_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # what makes an import fail
    answer = CliRunner().invoke(app, ["simulate", "easy", "--trials", "2", "--scheduler", "tcp://127.0.0.1:8786"])
    assert answer.exit_code == 2
    assert answer.stderr == ('coterie: a Dask cluster needs dask and distributed: pip install "coterie[cluster]"\n')


@pytest.mark.slow
def test_workers_that_cannot_do_it_are_named(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(connecting, "WORKERS", 1.0)
        message = f"the scheduler at {cluster.address} has no workers: start some with `dask worker {cluster.address}`"
        with pytest.raises(TimeoutError, match=re.escape(message)):
            coterie.simulate(
                INST, trials=1, scheduler=cluster.address, method="boc", threshold="heuristic", deltas=(0.1,)
            )
    with cluster.client() as client:
        cluster.worker("good")
        without = cluster.worker("without", "import sys\nsys.modules['coterie'] = None")
        client.wait_for_workers(2, timeout=60)
        with pytest.raises(ConnectionError, match="is a Dask worker, not a scheduler"):
            coterie.simulate(
                INST,
                trials=1,
                scheduler=cluster.address_of("good", client),
                method="boc",
                threshold="heuristic",
                deltas=(0.1,),
            )
        named = re.escape(f"1 of 2 workers ({cluster.address_of('without', client)})")
        with pytest.raises(ImportError, match=f"coterie is not installed on {named}: install version"):
            coterie.simulate(
                INST, trials=1, scheduler=cluster.address, method="boc", threshold="heuristic", deltas=(0.1,)
            )
        without.kill()
        cluster.until(lambda: len(client.nthreads()) == 1)
        cluster.worker("old", "import coterie\ncoterie.__version__ = '0.0.9'")
        cluster.until(lambda: len(client.nthreads()) == 2)
        named = re.escape(f"1 of 2 workers ({cluster.address_of('old', client)})")
        with pytest.raises(ImportError, match=rf"coterie is {coterie.__version__} here, but 0\.0\.9 on {named}"):
            coterie.simulate(INST, trials=1, scheduler=client, method="boc", threshold="heuristic", deltas=(0.1,))


@pytest.mark.slow
def test_a_worker_of_another_version_that_joins_later_is_named(cluster: Any) -> None:
    plan = plan_for(INST, "uniform", 1e-3, "heuristic")
    cluster.worker("good")
    with cluster.client() as client:
        client.wait_for_workers(1, timeout=60)

        def finished(outcome: Outcome) -> None:
            if outcome.trial == 0:
                cluster.worker("old", "import coterie\ncoterie.__version__ = '0.0.9'")
                client.wait_for_workers(2, timeout=60)

        with pytest.raises(ImportError, match=r"a worker that joined later .*: tcp://\S+ has coterie 0\.0\.9, not"):
            run_trials(plan, 0, range(100_000), scheduler=client, finished=finished)
