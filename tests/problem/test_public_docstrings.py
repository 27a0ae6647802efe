"""Docstrings of the public interface: sections as numpydoc has them, and examples that run."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import coterie
import coterie.client
import coterie.datasets
import coterie.plot
import coterie.worlds
from coterie.simulate.trials import simulate

PACKAGES = tuple(f"coterie.{name}." for name in ("problem", "evidence", "simulate", "paper", "client", "plot"))


def public_names() -> Iterator[tuple[str, Any]]:
    """What users call that lives in these packages."""
    for module in (coterie, coterie.datasets, coterie.worlds, coterie.plot, coterie.client):
        for name in module.__all__:
            thing = simulate if name == "simulate" else getattr(module, name)
            if (getattr(thing, "__module__", None) or "").startswith(PACKAGES) and callable(thing):
                yield f"{module.__name__}.{name}", thing


NAMES = dict(public_names())
WITHOUT_ARGUMENTS = {"Events", "Exponential", "Poisson", "Symmetric", "Waits", "iris", "yeast"}
DATA = {"Alternative", "Trials", "BudgetPlan", "ServerError"}
"""What is returned or raised: it has attributes."""
DICTIONARIES = {
    name for name, thing in NAMES.items() if issubclass(type(thing), type) and issubclass(thing, dict | list)
}


@pytest.mark.parametrize("name", sorted(set(NAMES) - DICTIONARIES))
def test_public_docstring_has_sections(name: str) -> None:
    text, last = inspect.getdoc(NAMES[name]) or "", name.rpartition(".")[2]
    if last in DATA:
        assert "Attributes\n----------" in text
    elif last not in WITHOUT_ARGUMENTS and last not in ("Noise", "RemoteCampaign"):
        assert "Parameters\n----------" in text
    if not isinstance(NAMES[name], type):
        assert "Returns\n-------" in text


@pytest.mark.parametrize("name", sorted(NAMES))
def test_public_docstring_examples_run(name: str) -> None:
    thing = NAMES[name]
    finder, runner = doctest.DocTestFinder(recurse=True), doctest.DocTestRunner()
    tests = [test for test in finder.find(thing, name, globs={}) if test.examples]
    for test in tests:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
