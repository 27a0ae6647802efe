"""Docstrings of the public interface: sections as numpydoc has them, and examples that run."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import coterie
from coterie.simulate.trials import simulate

MODULES = tuple(
    import_module(f"coterie{name}")
    for name in (
        "", ".campaign", ".certificate", ".client", ".datasets", ".evidence", ".methods", ".paper", ".plot", ".problem",
        ".session", ".simulate", ".store", ".tables", ".web", ".worlds",
    )
)  # fmt: skip
"""The documented interface: docs/reference is made from the names that these export."""


def public_names() -> Iterator[tuple[str, Any]]:
    """What users call, by the first module that exports it."""
    seen: list[Any] = []
    for module in MODULES:
        for name in module.__all__:
            thing = simulate if module is coterie and name == "simulate" else getattr(module, name)
            ours = (getattr(thing, "__module__", None) or "").startswith("coterie.")
            if ours and callable(thing) and not any(thing is other for other in seen):
                seen.append(thing)
                yield f"{module.__name__}.{name}", thing


NAMES = dict(public_names())
STATES = {"BlockFull", "SessionDone", "NotFound", "BadValue", "Conflict", "Forbidden", "NotDone", "StoreUnavailable"}
"""Errors that are made by the package only; those of campaigns say in `CampaignError` what they have."""
WITHOUT_ARGUMENTS = {"Events", "Exponential", "Poisson", "Symmetric", "Waits", "iris", "yeast"} | STATES
AS_ANOTHER = {"replay_pool": "coterie.tables.replay_pool"}
"""What takes and returns the same as another function, which its docstring names."""
FIELDS = {name for name, thing in NAMES.items() if isinstance(thing, type) and issubclass(thing, dict)}
"""Typed dictionaries: their fields say what they hold."""


def takes_arguments(thing: Any) -> bool:
    """Whether a caller hands anything in; protocols are not called."""
    if isinstance(thing, type) and getattr(thing, "_is_protocol", False):
        return False
    return any(name not in ("self", "cls") for name in inspect.signature(thing).parameters)


@pytest.mark.parametrize("name", sorted(set(NAMES) - FIELDS))
def test_public_docstring_has_sections(name: str) -> None:
    thing, last = NAMES[name], name.rpartition(".")[2]
    text = inspect.getdoc(thing) or ""
    if name.startswith("coterie.campaign.") and last in AS_ANOTHER:
        assert AS_ANOTHER[last] in text
        return
    if last not in WITHOUT_ARGUMENTS and takes_arguments(thing):
        assert "Parameters\n----------" in text or (isinstance(thing, type) and "Attributes\n----------" in text)
    if not isinstance(thing, type) and inspect.signature(thing).return_annotation not in (None, "None"):
        assert "Returns\n-------" in text


@pytest.mark.parametrize("name", sorted(NAMES))
def test_public_docstring_examples_run(name: str) -> None:
    thing = NAMES[name]
    finder, runner = doctest.DocTestFinder(recurse=True), doctest.DocTestRunner()
    tests = [test for test in finder.find(thing, name, globs={}) if test.examples]
    for test in tests:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
