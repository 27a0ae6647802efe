"""A campaign whose log is damaged: the row is named, nothing that rests on it is served, other campaigns go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

from coterie.campaign import BadValue, Campaigns, DamagedLog
from coterie.cli import app
from coterie.store.sql import url_of


def change_arm(url: str, id: str, seq: int) -> None:
    """Row `seq`, an ask, is for another arm than it was."""
    engine = create_engine(url_of(url))
    with engine.begin() as connection:
        changed = connection.execute(
            text("UPDATE asks SET arm = arm + 1 WHERE campaign = :id AND seq = :seq"), {"id": id, "seq": seq}
        )
        assert changed.rowcount == 1
    engine.dispose()


def test_a_damaged_row_is_named_and_nothing_of_it_is_served(
    url: str, opened: Callable[[], Campaigns], world: Any
) -> None:
    store = opened()
    id, other = world.create(store), world.create(store)
    for one in (id, other):
        world.run(store, one, stop_after=5)
    asked = [event["seq"] for event in store.events(id)["events"] if event["kind"] == "asked"]
    whole = store.export(id, "csv")
    seq = asked[3]
    change_arm(url, id, seq)
    fresh = opened()
    calls: list[Callable[[], Any]] = [
        lambda: fresh.status(id),
        lambda: fresh.ask(id, "w"),
        lambda: fresh.tell(id, [{"id": "x", "arm": 0, "values": [0, 0]}]),
        lambda: fresh.certificate(id),
        lambda: fresh.events(id),
        lambda: fresh.measurements(id),
        lambda: fresh.export(id, "json"),
        lambda: fresh.export(id, "groups"),
        lambda: fresh.page(id),
    ]
    for call in calls:
        with pytest.raises(DamagedLog, match=rf"row {seq} \(table asks\) was changed") as caught:
            call()
        assert (caught.value.code, caught.value.status, caught.value.seq) == ("damaged_log", 409, seq)
    answers: Sequence[Any] = fresh.batch([("ask", other, "w", 1), ("ask", id, "w", 1)])
    asked_other, refused = answers
    assert asked_other["asks"]
    assert isinstance(refused, DamagedLog)
    assert {one["id"] for one in fresh.list()} == {id, other}
    assert [event["seq"] for event in fresh.events(id, limit=seq - 1)["events"]] == list(range(1, seq))
    saved = fresh.export(id, "csv", before=seq)
    assert saved == "".join(whole.splitlines(keepends=True)[: 1 + 3])
    with pytest.raises(DamagedLog):
        fresh.export(id, "csv", before=seq + 1)
    for wrong in ({"kind": "json", "before": 3}, {"before": 0}, {"before": "x"}):
        with pytest.raises(BadValue) as bad:
            fresh.export(id, **wrong)
        assert bad.value.field == "before"


def test_the_command_line_says_what_to_do(url: str, opened: Callable[[], Campaigns], world: Any) -> None:
    store = opened()
    id = world.create(store)
    world.run(store, id, stop_after=4)
    seq = [event["seq"] for event in store.events(id)["events"] if event["kind"] == "asked"][2]
    change_arm(url, id, seq)
    runner = CliRunner()
    saved = runner.invoke(app, ["campaign", "export", id, "--before", str(seq), "--store", url])
    assert saved.exit_code == 0, saved.output
    assert len(saved.stdout.splitlines()) == 1 + 2
    failed = runner.invoke(app, ["campaign", "status", id, "--store", url])
    assert failed.exit_code == 2
    assert f"coterie campaign export {id} --before {seq}" in failed.stderr
    assert failed.stderr.count("\n") == 1
