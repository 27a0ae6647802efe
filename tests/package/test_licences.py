"""docs/LICENCES.md: every package that pyproject.toml names is on it, with a licence that users can live with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from bench import licences

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMED = {
    (part, re.match(r"[\w.-]+", line)[0].lower())  # type: ignore[index]
    for part, lines in {"core": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}.items()
    for line in lines
    if "python_version >=" not in line  # not installed with the Python that the page was written with
}
ROWS = {
    name: (version, licence, use.split(", "))
    for name, version, licence, use in re.findall(
        r"^\| (\S+) \| (\S+) \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs" / "LICENCES.md").read_text(), re.MULTILINE
    )
}
FOR_WORK = {"docs", "build", "dev", "(docs)", "(build)", "(dev)"}


@pytest.mark.parametrize(("part", "name"), sorted(NAMED))
def test_every_package_that_is_named_is_listed_for_its_part(part: str, name: str) -> None:
    _, licence, use = ROWS[name]
    assert part in use or use == ["core"], f"python -m bench.licences: {name} is for {part}"
    assert licence not in ("", "unknown", "UNKNOWN")


def test_every_package_has_a_licence() -> None:
    assert [name for name, (_, licence, _) in ROWS.items() if "unknown" in licence.lower()] == []


def test_users_get_nothing_that_reaches_over_to_their_programs() -> None:
    for name, (_, licence, use) in ROWS.items():
        if set(use) <= FOR_WORK:
            continue
        assert not re.search(r"\bA?GPL|GNU (Affero )?General Public|Non-?Commercial|-NC", licence), (name, licence)


def test_licences_that_are_not_permissive_are_explained() -> None:
    notes = set(re.findall(r"^- \*\*(\S+)\*\*:", (ROOT / "docs" / "LICENCES.md").read_text(), re.MULTILINE))
    asking = {name for name, (_, licence, _) in ROWS.items() if re.search(r"GPL|General Public|MPL|Mozilla", licence)}
    assert {"psycopg", "certifi"} <= asking <= notes


def test_the_command_finds_what_metadata_say_and_what_only_a_file_says() -> None:
    """With packages that are written here, so that the answer is known."""

    class Package:
        files = ()

        def __init__(self, **fields: str | list[str]) -> None:
            self.metadata = Said(fields)

    class Said(dict[str, "str | list[str]"]):
        def get_all(self, name: str) -> list[str]:
            found = self.get(name, [])
            return found if isinstance(found, list) else [found]

    def found(**fields: str | list[str]) -> str:
        return licences.licence(Package(**fields))  # type: ignore[arg-type]

    assert found(**{"License-Expression": "MIT", "License": "other"}) == "MIT"
    assert found(Classifier=["License :: OSI Approved", "License :: OSI Approved :: ISC License (ISCL)"]) == (
        "ISC License (ISCL)"
    )
    assert found(License="BSD") == "BSD"
    assert found(License="Copyright me\n\nPermission is hereby granted, free of charge, to any person") == "MIT"
    assert found(License="UNKNOWN") == "unknown"
    assert found() == "unknown"
