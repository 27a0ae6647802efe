"""A release with other rules opens every campaign: finished ones show and export everything, half-run ones go on.

Other rules are simulated twice: by a higher number of the rules, and by changed constants of CROC's sampling. For the
latter a process without the compiler, which reads constants when it needs them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.campaign import Campaigns
from coterie.certificate import read_log
from coterie.methods import table

MEANS = np.array([0.0, 0.0, 0.0, 1.5, 1.5, 1.5])


def measure(store: Campaigns, id: str, most: int, seed: int = 0, workers: int = 1) -> list[int]:
    """Ask and tell, up to so many results; the arms asked for."""
    rng = np.random.default_rng(seed)
    arms: list[int] = []
    for k in range(most):
        answer = store.ask(id, f"w{k % workers}", 1)
        if answer["done"] or answer["waiting_for"]:  # somebody who was asked earlier has to answer first
            break
        (ask,) = answer["asks"]
        arms.append(ask["arm"])
        value = float(MEANS[ask["arm"]] + rng.standard_normal())
        name = f"{seed}-{k}"
        if store.tell(id, [{"id": name, "arm": ask["arm"], "values": [value], "lease": ask["lease"]}])["done"]:
            break
    return arms


def everything(store: Campaigns, id: str) -> dict[str, Any]:
    """All that a finished campaign has to show."""
    shown = {kind: store.export(id, kind) for kind in ("csv", "groups", "json", "certificate", "log")}
    return shown | {"status": store.status(id), "events": store.events(id)}


def check_proof(store: Campaigns, id: str, folder: Path) -> None:
    log = folder / "log.csv"
    log.write_text(store.export(id, "log"))
    certificate = json.loads(store.export(id, "certificate"))
    assert coterie.verify(certificate, read_log(log)).valid
    assert coterie.same_partition(certificate["labels"], [0, 0, 0, 1, 1, 1])


@pytest.fixture
def higher_rules(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that raises the number of CROC's rules."""

    def change() -> None:
        croc = table._table["croc"]
        monkeypatch.setitem(table._table, "croc", replace(croc, rules=croc.rules + 1))

    return change


def test_a_finished_campaign_shows_everything_under_other_rules(
    opened: Callable[[], Campaigns], higher_rules: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    id = store.create("finished", 6, 2, 1, delta=1e-6, noise=1.0)["id"]
    measure(store, id, 2000)
    before = everything(store, id)
    assert before["status"]["done"]
    higher_rules()

    def refuse(*_: object) -> None:
        raise AssertionError("a finished campaign needs no rule")

    monkeypatch.setattr("coterie.methods.croc.method.CrocMethodRun.__init__", refuse)
    again = opened()
    assert everything(again, id) == before
    check_proof(again, id, tmp_path)
    late = again.tell(id, [{"id": "late", "arm": 0, "values": [0.0]}])
    assert (late["accepted"], late["done"]) == (1, True)
    assert opened().status(id)["labels"] == before["status"]["labels"]


@pytest.mark.parametrize(
    ("noise", "results"),
    [
        pytest.param(1.0, 60, id="known"),
        pytest.param(None, 90, id="any"),
        pytest.param("gaussian", 90, id="gaussian"),
        pytest.param(coterie.Symmetric(), 90, id="symmetric"),
        pytest.param(coterie.Bounded(-9, 12), 150, id="bounded", marks=pytest.mark.slow),
    ],
)
def test_a_campaign_goes_on_under_other_rules_and_says_so(
    opened: Callable[[], Campaigns], higher_rules: Callable[[], None], tmp_path: Path, noise: Any, results: int
) -> None:
    """With bets, too: those of open rounds are part of the record."""
    store = opened()
    id, twin = (store.create(name, 6, 2, 1, delta=1e-6, noise=noise)["id"] for name in ("half", "twin"))
    for one in (id, twin):
        measure(store, one, results)
        store.ask(one, "slow", 2)  # still open
    before = store.status(id)
    assert any(event["kind"] == "round" for event in store.events(id)["events"])  # there is something to take over
    higher_rules()
    again = opened()
    found = again.status(id)
    for part in ("t", "pulls", "measurements", "open_leases", "seq"):
        assert found[part] == before[part]
    assert measure(again, id, 30, seed=1) == measure(again, twin, 30, seed=1)
    notes = [event for event in again.events(id)["events"] if event["kind"] == "rules"]
    assert [note["number"] for note in notes] == [coterie.methods.METHODS["croc"].rules]
    for one in (id, twin):
        for lease in again.status(one)["open_leases"]:
            again.fail(one, lease["lease"])
    reopened = opened()
    assert reopened.status(id) == again.status(id)
    assert measure(reopened, id, 2000, seed=2) == measure(again, twin, 2000, seed=2)  # as if it had never stopped
    assert reopened.status(id)["done"]
    check_proof(reopened, id, tmp_path)


CHANGED = """
import sys
from pathlib import Path
from coterie.methods.croc import method as croc
croc.CONSTANTS = {"margin_window": 1.2, "least_share": 0.3, "top_up": 1.5}
sys.path[:0] = [sys.argv[1]]
from test_campaign_other_rules import Campaigns, check_proof, everything, measure
store, finished, half, out = Campaigns(sys.argv[2]), sys.argv[3], sys.argv[4], Path(sys.argv[5])
import json
print(json.dumps(everything(store, finished), sort_keys=True))
check_proof(store, finished, out)
before = store.status(half)
measure(store, half, 3000, seed=3)
assert store.status(half)["done"]
check_proof(store, half, out)
print(json.dumps([event["kind"] for event in store.events(half, before["seq"])["events"]]))
"""


@pytest.mark.slow
def test_changed_sampling_constants_lose_no_campaign(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Campaigns(path) as store:
        finished, half = (store.create(name, 6, 2, 1, delta=1e-6, noise=1.0)["id"] for name in ("finished", "half"))
        measure(store, finished, 2000)
        measure(store, half, 60, seed=1)
        before = everything(store, finished)
    arguments = [str(Path(__file__).parent), str(path), finished, half, str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", CHANGED, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    shown, kinds = done.stdout.splitlines()
    assert json.loads(shown) == json.loads(json.dumps(before))
    assert json.loads(kinds)[0] == "rules"  # the changed rule would have gone another way
    with Campaigns(path) as store:  # and back again, under the rules as they are
        check_proof(store, half, tmp_path)
