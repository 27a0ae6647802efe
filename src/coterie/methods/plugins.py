"""Methods that a command of the shell is to know: it imports the modules named in an environment variable.

A module registers its methods when it is imported (`coterie.methods.register`). `COTERIE_METHODS=my_rules.py` names a
file, `COTERIE_METHODS=bench.peers,other` modules.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

VARIABLE = "COTERIE_METHODS"
"""Modules or files that register methods, with commas between them."""


def import_named_methods() -> None:
    """Import what the environment names; an error says which of them cannot be imported."""
    for name in filter(None, (part.strip() for part in os.environ.get(VARIABLE, "").split(","))):
        try:
            _import_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
        except Exception as error:
            raise ValueError(f"{VARIABLE} names {name!r}, which cannot be imported: {error}") from error


def _import_file(path: Path) -> None:
    name = path.stem
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
