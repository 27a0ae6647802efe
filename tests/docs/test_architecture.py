"""docs/ARCHITECTURE.md names packages and files that exist, and leaves no package out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
SOURCE = ROOT / "src" / "coterie"


def test_every_file_named_exists() -> None:
    named = set(re.findall(r"`((?:src|tests|bench)/[\w/.]+)`", PAGE))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_package_has_its_line() -> None:
    lines = re.findall(r"^\| (`[\w/]+/`(?:, `[\w/]+/`)*) \|", PAGE, flags=re.MULTILINE)
    named = [package for line in lines for package in re.findall(r"`([\w/]+)/`", line)]
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set(named) == packages
    assert len(named) == len(packages)


def test_files_named_in_a_package_exist() -> None:
    for package, text in re.findall(r"^\| `(\w+)/` \| (.+) \|$", PAGE, flags=re.MULTILINE):
        for name in re.findall(r"`(\w+\.py)`", text):
            assert (SOURCE / package / name).exists(), f"{package}/{name}"
