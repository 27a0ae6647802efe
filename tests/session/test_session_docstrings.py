"""The examples in the docstrings of sessions run, and what users call says what it takes."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from typing import Any

import pytest

import coterie
from coterie.session import Result


@pytest.mark.parametrize("name", ["session", "cluster", "resolution_curve"])
def test_examples_run(name: str) -> None:
    outcome = doctest.testmod(import_module(f"coterie.session.{name}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize(
    "called",
    [
        coterie.Session,
        coterie.cluster,
        coterie.acluster,
        Result,
        coterie.Session.tell,
        coterie.Session.revise,
        coterie.resolution_curve,
        coterie.ResolutionCurve,
    ],
)
def test_every_parameter_is_described(called: Any) -> None:
    text = inspect.getdoc(called) or ""
    section = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    heads = [line.split(" : ")[0] for line in section.splitlines() if not line.startswith(" ")]
    described = {name.strip() for head in heads for name in head.split(",")}
    assert described == set(inspect.signature(called).parameters) - {"self"}


def test_every_public_name_of_a_session_says_what_it_is() -> None:
    texts = {name: inspect.getdoc(member) for name, member in vars(coterie.Session).items() if not name.startswith("_")}
    assert len(texts) > 80
    assert [name for name, text in texts.items() if not text] == []
    assert len(set(texts.values())) == len(texts)
