"""`coterie.verify`: certificates of plain hand-made logs and of real runs hold; damaged files are refused politely."""

from __future__ import annotations

import doctest
import json
import math
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import coterie
from coterie.certificate import read_certificate, read_log, write_log
from coterie.cli import app

Case = Callable[[str], tuple[dict[str, Any], list[dict[str, Any]]]]

NAMES = [
    "made by pairs",
    "made by epoch",
    "easy",
    "easy 1e-10",
    "easy 1e-300",
    "moderate",
    "moderate in batches",
    "moderate 1e-10",
    "challenging",
    "noise",
    "one dimension",
    "far away",
    "iris",
    "many dimensions",
    "overlapping",
    "overlapping, noise",
    "beyond the room",
    "kept 0.2-epoch",
    "kept 0.2-epoch-covariance",
    "kept 0.2-pairs",
]


@pytest.mark.parametrize("module", ["checking", "document", "fields", "log"])
def test_examples_of_docstrings_run(module: str) -> None:
    tried = doctest.testmod(import_module(f"coterie.certificate.{module}"))
    assert tried.attempted > 0
    assert tried.failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_certificates_hold(case: Case, name: str) -> None:
    certificate, events = case(name)
    before = json.dumps([certificate, events])
    verdict = coterie.verify(certificate, events)
    assert verdict.problems == []
    assert verdict.valid
    assert verdict
    assert verdict.tests >= certificate["n_arms"] * (certificate["n_clusters"] - 1) / 2
    assert json.dumps([certificate, events]) == before  # the caller's data stays as it is


def test_the_cases_are_of_both_kinds(case: Case) -> None:
    kinds = {name: case(name)[0]["by"] for name in NAMES}
    assert {kind for name, kind in kinds.items() if not name.startswith("made")} == {"pairs", "epoch"}
    made = case("made by epoch")[0]["epoch"]
    assert all(made[kind] for kind in ("group_tests", "core_tests", "pair_tests", "by_pairs"))


@pytest.mark.parametrize("name", NAMES)
def test_files_keep_every_number(case: Case, name: str, tmp_path: Path) -> None:
    certificate, events = case(name)
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    write_log(tmp_path / "log.csv", events, certificate["dim"])
    assert read_log(tmp_path / "log.csv") == events
    assert read_certificate(tmp_path / "c.json") == certificate
    for claim in (tmp_path / "c.json", str(tmp_path / "c.json"), certificate):
        for log in (tmp_path / "log.csv", str(tmp_path / "log.csv"), events, tuple(events)):
            assert coterie.verify(claim, log)


def test_a_log_may_go_on_after_the_stop(case: Case) -> None:
    for name in ("made by pairs", "made by epoch", "moderate", "easy"):
        certificate, events = case(name)
        more = {"event": "result", "arm": 0, "round": 0, "values": [50.0] * certificate["dim"]}
        assert coterie.verify(certificate, [*events, more, more])


# Files, and anything at all.


@pytest.mark.parametrize("name", ["made by pairs", "made by epoch", "moderate"])
def test_truncated_files_are_refused_without_a_traceback(case: Case, name: str, tmp_path: Path) -> None:
    certificate, events = case(name)
    text = json.dumps(certificate)
    whole, cut = tmp_path / "log.csv", tmp_path / "cut"
    write_log(whole, events, certificate["dim"])
    rows = whole.read_text()
    rng = np.random.default_rng(90)
    for size in [0, 1, len(text) - 1, *rng.integers(0, len(text), 25)]:
        cut.write_text(text[:size])
        verdict = coterie.verify(cut, whole)
        assert not verdict
        assert len(verdict.problems) == 1
    for size in [0, 1, 20, len(rows) - 2, *rng.integers(0, len(rows) - 1, 40)]:
        cut.write_text(rows[:size])
        verdict = coterie.verify(certificate, cut)
        assert not verdict
        assert verdict.problems


def test_damaged_files_are_named(case: Case, tmp_path: Path) -> None:
    certificate, events = case("made by epoch")
    log = tmp_path / "log.csv"
    write_log(log, events, 2)
    lines = log.read_text().splitlines()
    freeze = next(i for i, line in enumerate(lines) if line.startswith("freeze"))
    damage = [
        (["result,1,0,2.5"], "line 1 .* expected|not a log"),
        ([lines[0], "result,1,0,2.5,"], "line 2 of .*: expected 6 columns, got 5"),
        ([lines[0], "result,one,0,2.5,1.0,"], "line 2 of .*one"),
        ([lines[0], "result,1,0,2.5,much,"], "line 2 of .*much"),
        ([lines[0], "result,1,0,2.5,nan,"], "complete"),
        ([*lines[:5], lines[5].replace(lines[5].split(",")[3], "inf"), *lines[6:]], "must be finite"),
        ([lines[0], "pause,1,0,2.5,1.0,"], "line 2 of .*'pause'"),
        ([*lines[:freeze], 'freeze,,,,,"{"'], f"line {freeze + 1} of"),
        ([*lines[:freeze], "freeze,,,,,[]", *lines[freeze + 1 :]], "must be a JSON object"),
        ([*lines[:freeze], 'freeze,,,,,"{""epoch"": 0}"', *lines[freeze + 1 :]], "labels"),
    ]
    for content, message in damage:
        log.write_text("\n".join(content) + "\n")
        verdict = coterie.verify(certificate, log)
        assert not verdict
        assert re.search(message, verdict.problems[0]), verdict.problems
    log.write_bytes(b"\xff\xfe\x00\x01")
    assert "not a text file" in coterie.verify(certificate, log).problems[0]
    log.write_text("[" * 100_000)
    assert "not a JSON file" in coterie.verify(log, events).problems[0]
    log.write_text("[1, 2]")
    assert "must hold a JSON object" in coterie.verify(log, events).problems[0]


def test_a_log_of_many_arms_is_read_back(case: Case, tmp_path: Path) -> None:
    """Longer than what Python's csv module takes in one field unless told otherwise."""
    labels = [0, 1] * 60_000
    events = [{"event": "freeze", "epoch": 0, "labels": labels, "cores": [[0], [1]]}]
    write_log(tmp_path / "log.csv", events, 3)
    assert read_log(tmp_path / "log.csv") == events


def test_arguments_of_another_type_are_errors(case: Case, tmp_path: Path) -> None:
    certificate, events = case("easy")
    wrong: Any
    for wrong in (3, None, [certificate], b"c.json"):
        with pytest.raises(TypeError, match="a certificate must be a dict or the path"):
            coterie.verify(wrong, events)
    for wrong in (3, None, {"events": events}):
        with pytest.raises(TypeError, match="a log must be a list of events or the path"):
            coterie.verify(certificate, wrong)
    with pytest.raises(OSError, match="missing"):
        coterie.verify(tmp_path / "missing.json", events)
    with pytest.raises(OSError, match="missing"):
        coterie.verify(certificate, tmp_path / "missing.csv")
    with pytest.raises(ValueError, match="2 values"):
        write_log(tmp_path / "log.csv", [{"event": "result", "arm": 0, "round": 0, "values": [1.0]}], 2)
    with pytest.raises(ValueError, match="'pause'"):
        write_log(tmp_path / "log.csv", [{"event": "pause"}], 2)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from([10**400, -(2**63), 2**63, 1e308, math.nan]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def nodes(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key in node if isinstance(node, dict) else range(min(len(node), 30)) if isinstance(node, list) else ():
        yield from nodes(node[key], (*path, key))


@pytest.mark.slow
@settings(max_examples=400, deadline=None, derandomize=True)
@given(name=st.sampled_from(["made by pairs", "made by epoch", "overlapping", "beyond the room"]), data=st.data())
def test_verify_never_raises(case: Case, name: str, data: st.DataObject) -> None:
    certificate, events = case(name)
    which = data.draw(st.sampled_from(["certificate", "log"]))
    document: Any = certificate if which == "certificate" else events
    junk = data.draw(JUNK)
    *path, last = data.draw(st.sampled_from(list(nodes(document))))
    node = document
    for key in path:
        node = node[key]
    node[last] = junk
    verdict = coterie.verify(certificate, events)
    assert isinstance(verdict, coterie.Verdict)
    assert verdict.valid == (not verdict.problems)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(certificate=st.dictionaries(st.text(max_size=5), JUNK, max_size=4), log=st.lists(JUNK, max_size=4))
def test_verify_never_raises_on_anything(case: Case, certificate: Any, log: Any) -> None:
    assert not coterie.verify(certificate, log)
    assert not coterie.verify(case("made by pairs")[0], log)


# The command.


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["verify", *(str(argument) for argument in arguments)])


def test_command_says_whether_a_certificate_holds(case: Case, tmp_path: Path) -> None:
    certificate, events = case("moderate")
    claim, log = tmp_path / "cert.json", tmp_path / "log.csv"
    claim.write_text(json.dumps(certificate))
    write_log(log, events, certificate["dim"])
    answer = command(claim, log)
    assert answer.exit_code == 0
    assert answer.stdout.startswith(f"valid: 11 items in 4 groups after {certificate['t']} measurements (")
    assert (
        "what is claimed: at least 4 groups; and if there are exactly 4 groups, the items of a group " in answer.stdout
    )
    assert "wrong with probability at most" in answer.stdout
    claim.write_text(json.dumps(certificate | {"delta": 0.05}))
    answer = command(claim, log)
    assert answer.exit_code == 1
    assert "log_inverse_delta must be " in answer.stdout
    claim.write_text(json.dumps(certificate)[:-50])
    answer = command(claim, log)
    assert answer.exit_code == 1
    assert "is not a JSON file" in answer.stdout
    assert "Traceback" not in answer.output
    for missing in ((tmp_path / "no.json", log), (claim.with_name("cert.json"), tmp_path / "no.csv")):
        claim.write_text(json.dumps(certificate))
        answer = command(*missing)
        assert answer.exit_code == 2
        assert answer.stderr.startswith("coterie: ")
        assert answer.stderr.count("\n") == 1
