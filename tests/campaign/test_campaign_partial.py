"""What is proven of a campaign at any moment: in Python, on the command line, in tables; and what is refused."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.campaign import Campaigns, Conflict
from coterie.campaign.views import partial
from coterie.cli import app
from coterie.session.partial import MOST_ITEMS, proven_at

LEVELS = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0]
NAMES = [f"site{i}" for i in range(1, 10)]
RESOLUTION = (0.3, 1.2)


def value(arm: int, k: int) -> float:
    return float(LEVELS[arm] + 0.5 * np.random.default_rng([arm, k]).standard_normal())


def sites(store: Campaigns, **more: Any) -> str:
    given: dict[str, Any] = {"dim": 1, "noise": 0.5, "names": NAMES, "resolution": RESOLUTION} | more
    return str(store.create("sites", 9, **given)["id"])


def measure(store: Campaigns, id: str, count: int, session: coterie.Session | None = None) -> None:
    """Ask and tell so often, or until it is done; the same to a session of one's own."""
    for k in range(count):
        answer = store.ask(id, "w")
        if answer["done"]:
            return
        (ask,) = answer["asks"]
        x = value(ask["arm"], k)
        store.tell(id, [{"id": ask["lease"], "arm": ask["arm"], "values": [x], "lease": ask["lease"]}])
        if session is not None:
            assert session.ask() == ask["arm"]
            session.tell(ask["arm"], x)


@pytest.mark.slow
def test_a_campaign_says_what_its_session_says(opened: Callable[[], Campaigns]) -> None:
    store = opened()
    id = sites(store)
    session = coterie.Session(9, None, 1, noise=0.5, resolution=RESOLUTION)
    empty = store.partial(id)
    assert (empty["t"], empty["apart"]["count"], empty["alike"]["count"], empty["settled"]) == (0, 0, 0, 0)
    assert [(one["letters"], one["possible"], one["group_id"]) for one in empty["items"]] == [("a", [], None)] * 9
    for count in (40, 400):
        measure(store, id, count, session)
        for reader in (store, opened()):  # from memory, and read again from the record
            found, expected = reader.partial(id), session.partial()
            assert found["error"] == expected.error
            for kind in ("apart", "alike"):
                pairs = [list(pair) for pair in getattr(expected, kind)]
                assert (found[kind]["listed"], found[kind]["count"]) == (pairs, len(pairs))
            groups = {one["label"]: one["id"] for one in reader.status(id)["groups"]}
            for arm, one in enumerate(found["items"]):
                assert one["name"] == NAMES[arm]
                assert one["letters"] == expected.letters[arm]
                assert one["possible"] == sorted(groups[label] for label in expected.possible[arm])
                assert one["settled"] == (arm in expected.settled)
            assert [one["used"] for one in found["items"]] == session.pulls.tolist()
            assert (found["pairs"], found["cut"], found["settled"]) == (36, None, len(expected.settled))
            assert found["apart"]["means"] == "more than 0.3 apart"
            assert found["alike"]["means"] == "within 1.2 of each other"
            curve, drawn = reader.resolution_curve(id), coterie.resolution_curve(session)
            assert {key: curve[key] for key in drawn.to_json()} == drawn.to_json()
    assert store.status(id)["done"]
    assert found["settled"] == 9


def test_what_was_computed_is_kept_until_something_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(moment: Any) -> Any:
        calls.append(moment.t)
        return proven_at(moment)

    monkeypatch.setattr(partial, "proven_at", counted)
    with Campaigns(tmp_path / "store.db") as store:
        id = sites(store)
        measure(store, id, 12)
        for _ in range(3):
            store.partial(id)
        store.ask(id, "another")
        store.export(id, "groups")
        assert calls == [12], "not for results, not twice"
        store.tell(id, [{"id": "more", "arm": "site1", "values": [1.0]}])
        assert calls == [12]
        assert store.partial(id)["t"] == calls[-1]
        assert calls == [12, 13]


def test_another_resolution_gives_other_answers(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = sites(store)
        measure(store, id, 20)
        before = store.partial(id)
        store.choose_resolution(id, {"alike": 0.5, "apart": 2.5})
        after = store.partial(id)
        assert (before["apart"]["means"], after["apart"]["means"]) == ("more than 0.3 apart", "more than 0.5 apart")
        assert after["alike"]["count"] > before["alike"]["count"]
        assert (after["t"], after["resolution"]["apart"]) == (20, 2.5)


def test_others_write_while_it_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, told = threading.Event(), threading.Event()

    def slow(moment: Any) -> Any:
        begun.set()
        assert told.wait(60), "a result could not be told meanwhile"
        return proven_at(moment)

    monkeypatch.setattr(partial, "proven_at", slow)
    with Campaigns(tmp_path / "store.db") as store:
        id = sites(store)
        measure(store, id, 12)
        answers: list[dict[str, Any]] = []
        reader = threading.Thread(target=lambda: answers.append(store.partial(id)))
        reader.start()
        assert begun.wait(60)
        store.tell(id, [{"id": "meanwhile", "arm": 0, "values": [1.0]}])
        assert store.status(id)["measurements"] == 13
        told.set()
        reader.join(60)
        assert [one["t"] for one in answers] == [12], "what is said is of the moment at which it was asked"


def test_long_lists_are_cut_and_say_so(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = sites(store)
        measure(store, id, 40)
        whole = store.partial(id)
        cut = store.partial(id, pairs=3)
        assert len(cut["apart"]["listed"]) == 3
        assert cut["apart"]["count"] == whole["apart"]["count"] > 3
        assert cut["cut"].startswith(f"Listed are the first 3 of the {whole['apart']['count']} pairs proven apart")
        assert cut["apart"]["listed"] == whole["apart"]["listed"][:3]
        with pytest.raises(ValueError, match="pairs must be at least 0, got -1"):
            store.partial(id, pairs=-1)
        with pytest.raises(ValueError, match="points must be at least 2, got 1"):
            store.resolution_curve(id, points=1)


def test_what_a_campaign_does_not_have_is_named(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        many = str(store.create("many", MOST_ITEMS + 1, dim=1, noise=1.0, resolution=(1, 2))["id"])
        boc = str(store.create("boc", 6, 2, 1, noise=1.0, method="boc")["id"])
        fresh = sites(store)
        any_noise = str(store.create("any", 6, 2, 1)["id"])
        for read, id, code, why in (
            (store.partial, many, "too_many_items", "limited to 3000 items, campaign 'many' has 3001"),
            (store.resolution_curve, many, "too_many_items", "limited to 3000 items"),
            (
                store.partial,
                boc,
                "no_certificate",
                "'shortlist' has partial answers, campaign 'boc' uses 'boc'",
            ),
            (store.resolution_curve, fresh, "too_few_results", "has no results that count yet"),
            (store.resolution_curve, any_noise, "no_distances", "cannot be proven under any noise: a rare large value"),
        ):
            with pytest.raises(Conflict, match=why) as refused:
                read(id)
            assert refused.value.code == code
        for id in (many, boc):  # a table all the same
            rows = list(csv.DictReader(io.StringIO(store.export(id, "groups"))))
            assert {one["letters"] for one in rows} == {""}


def test_tables_and_the_command_line_have_the_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Campaigns("coterie.db") as store:
        id = sites(store)
        measure(store, id, 40)
        found = store.partial(id)
        rows = list(csv.DictReader(io.StringIO(store.export(id, "groups"))))
        large = str(store.create("large", 61, dim=1, noise=1.0, resolution=(1, 2))["id"])
        store.create("boc", 6, 2, 1, noise=1.0, method="boc")
    assert [one["letters"] for one in rows] == [one["letters"] for one in found["items"]]
    answer = CliRunner().invoke(app, ["campaign", "partial", "sites"], env={"COLUMNS": "200"})
    assert answer.exit_code == 0, answer.output
    assert "after 40 measurements. Apart: more than 0.3 apart; alike: within 1.2 of each other." in answer.stdout
    assert f"Known to differ ({found['apart']['count']} of 36 pairs): site1 from site" in answer.stdout
    assert "items that share a letter are not proven different" in " ".join(answer.stdout.split())
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in answer.stdout.splitlines() if "│" in line]
    shown = {name: (its, groups, int(used)) for name, its, groups, used in lines}
    for one in found["items"]:
        assert shown[one["name"]] == (one["letters"], ", ".join(map(str, one["possible"])), one["used"])
    told = CliRunner().invoke(app, ["campaign", "partial", large[:8]], env={"COLUMNS": "200"})
    assert "Letters of the 61 items" in told.stdout
    assert f"coterie campaign export {large[:8]} --kind groups, or --json" in told.stdout
    refused = CliRunner().invoke(app, ["campaign", "partial", "boc"])
    assert refused.exit_code == 2
    assert "only method 'croc' or 'shortlist' has partial answers" in refused.stderr
