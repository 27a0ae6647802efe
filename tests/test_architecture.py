"""docs/ARCHITECTURE.md names rooms and files that exist, and leaves no room out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
PACKAGE = ROOT / "src" / "coterie"


def test_every_file_named_exists() -> None:
    named = set(re.findall(r"`((?:src|tests|bench)/[\w/.]+)`", PAGE))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_room_has_its_line() -> None:
    lines = re.findall(r"^\| (`[\w/]+/`(?:, `[\w/]+/`)*) \|", PAGE, flags=re.MULTILINE)
    named = [room for line in lines for room in re.findall(r"`([\w/]+)/`", line)]
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"reference_croc"}
    assert set(named) == rooms
    assert len(named) == len(rooms)


def test_files_named_in_a_room_exist() -> None:
    for room, text in re.findall(r"^\| `(\w+)/` \| (.+) \|$", PAGE, flags=re.MULTILINE):
        for name in re.findall(r"`(\w+\.py)`", text):
            assert (PACKAGE / room / name).exists(), f"{room}/{name}"
