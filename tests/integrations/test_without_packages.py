"""An integration without its package, and a picture without matplotlib: one sentence that says what to install."""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import Any

import pytest

import coterie


@pytest.mark.parametrize(("module", "package", "sentence"), [
    ("coterie.integrations.inspect", "inspect_ai", r"needs Inspect AI: pip install 'coterie\[inspect\]'"),
    ("coterie.integrations.mlflow", "mlflow", r"needs MLflow: pip install 'coterie\[mlflow\]'"),
])  # fmt: skip
def test_an_integration_without_its_package(
    module: str, package: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, package)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=sentence) as found:
        importlib.import_module(module)
    assert found.value.__cause__ is None
    assert found.value.__suppress_context__, "one sentence, not two tracebacks"


def test_a_picture_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    result = coterie.cluster(lambda item: 9.0 * (item % 2), 4, 2, noise=1.0, progress=False)
    hide(monkeypatch, "matplotlib")
    with pytest.raises(ImportError, match="pip install") as found:
        result.plot()
    assert "\n" not in str(found.value)
    assert result._repr_html_(), "what a notebook shows by itself needs no matplotlib"


def test_a_function_follows_the_progress() -> None:
    seen: list[int] = []
    result = coterie.cluster(
        lambda item: 9.0 * (item % 2), 4, 2, noise=1.0, progress=lambda session: seen.append(session.t)
    )
    assert seen == sorted(seen)
    assert seen[-1] == result.t


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """The package is not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    present = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}")
        return present(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setitem(sys.modules, package, None)
