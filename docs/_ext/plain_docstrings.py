"""Docstrings of the package are plain text with names in `backticks`; this makes reStructuredText of them."""

from __future__ import annotations

import re
import sys
from typing import Any

from sphinx.pycode import ModuleAnalyzer

import coterie
import coterie.problem.checks

# Aliases would be written out in every signature, as ndarray[tuple[Any, ...], dtype[int64]]: put short names in their
# place, in the modules that are loaded and, by way of `checks`, in those that will be.
for _alias in ("FloatArray", "IntArray"):
    _short = type(_alias, (), {"__module__": "numpy"})
    for _name, _module in list(sys.modules.items()):
        if _name.startswith("coterie.") and hasattr(_module, _alias):
            setattr(_module, _alias, _short)

from coterie.simulate import trials  # noqa: E402

_CODE = re.compile(r"`([^`\n]+)`")
_PAGE = re.compile(r"\bdocs/([A-Z]+)\.md\b")
_CLASSES = {name for name in coterie.__all__ if name[0].isupper()}


def _linked(found: re.Match[str]) -> str:
    """A class of the public interface, or something of `coterie` by its full name, leads there; the rest is code."""
    name = found[1]
    first, _, rest = name.partition(".")
    if first in _CLASSES and re.fullmatch(r"\w*", rest):
        return f":py:obj:`{name} <coterie.{name}>`"
    if first == "coterie" and rest in coterie.__all__:
        return f":py:obj:`{name}`"
    return f"``{name}``"


def _rewrite(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    for i, line in enumerate(lines):
        text = _PAGE.sub(r":doc:`/\1`", _CODE.sub(_linked, line) if "``" not in line else line)
        lines[i] = re.sub(r"(?<=\w)_(?=[\s,.;:)]|$)", r"\\_", text).replace("|", r"\|")


def _plain_simulate(app: Any) -> None:
    """`coterie.simulate` is a module that can be called; what is documented is the function, with its defaults."""
    coterie.simulate = trials.simulate  # type: ignore[assignment]
    source = ModuleAnalyzer.for_module(trials.__name__)
    source.analyze()
    source.overloads.clear()  # they would be shown instead of the signature


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _plain_simulate)
    app.connect("autodoc-process-docstring", _rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
