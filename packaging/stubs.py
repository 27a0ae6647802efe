"""The types of coterie._native for mypy, from the module itself: `make stubs` writes src/coterie/_native.pyi."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / "src" / "coterie" / "_native.pyi"
# What signatures that are written by hand may name without saying where it is from.
NAMES = {"collections.abc": ("Callable", "Mapping", "Sequence"), "typing": ("Any",)}
# Types that nanobind names without what they are of.
BARE = {"tuple": "tuple[Any, ...]", "list": "list[Any]", "dict": "dict[str, Any]"}


def text() -> str:
    """nanobind's stub; arrays that are looked at in the function itself are arrays of anything."""
    from nanobind.stubgen import StubGen

    module = importlib.import_module("coterie._native")
    maker = StubGen(module)
    maker.put(module)
    made = re.sub(r"\bNDArray\b(?=[,)\]]| \||$)", "NDArray[Any]", maker.get())
    for bare, of_anything in BARE.items():
        made = re.sub(rf"(?m)^( *def .*[:>] ){bare}(?=[:,)]| \|)", rf"\1{of_anything}", made)
    head, body = re.split(r"(?m)(?=^(?:def|class|[A-Z_]+:) |\Z)", made, maxsplit=1)
    for place, names in NAMES.items():
        missing = [name for name in names if re.search(rf"\b{name}\b", body) and not re.search(rf"\b{name}\b", head)]
        if missing:
            head = f"{head.rstrip()}\nfrom {place} import {', '.join(missing)}\n"
    return f"{head.rstrip()}\n\n\n{body}" if body else head


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
