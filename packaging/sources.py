"""Which sources a build is from: a digest of native/ and CMakeLists.txt, which the module carries as `_sources`.

`python packaging/sources.py FILE` writes it as C++, for CMakeLists.txt; tests/conftest.py asks whether it still holds.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def digest() -> str:
    found = hashlib.sha256()
    native = [file for file in (ROOT / "native").rglob("*") if file.suffix in (".cpp", ".hpp", ".inc")]
    for file in sorted([ROOT / "CMakeLists.txt", *native]):
        found.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def fault(package: Path) -> str | None:
    """What is wrong with the module in this folder, seen from the sources; it is not loaded for that."""
    modules = [package / f"_native{suffix}" for suffix in EXTENSION_SUFFIXES]
    found = next((module for module in modules if module.is_file()), None)
    if found is None:
        return f"there is no engine in {package}: make engine"
    if digest().encode() not in found.read_bytes():
        return f"{found} is not from the sources in {ROOT / 'native'}: make engine"
    return None


if __name__ == "__main__":
    text = f'extern const char* const coterie_sources;\nconst char* const coterie_sources = "{digest()}";\n'
    Path(sys.argv[1]).write_text(text)
