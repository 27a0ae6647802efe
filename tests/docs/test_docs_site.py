"""The site that `make docs` builds: without a warning, complete, and without anything from elsewhere."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from sphinx.util.inventory import InventoryFile

import coterie
import coterie.campaign
import coterie.plot
import coterie.tables
from coterie.campaign import Campaigns
from coterie.cli import app
from coterie.web import create_app

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_site_is_built_complete_and_from_here(tmp_path: Path) -> None:
    # One test, so that the site is built once, whichever workers the tests run on.
    site = tmp_path / "site"
    build(site)
    check_public_interface(site)
    check_commands(site)
    check_requests(site)
    check_nothing_from_elsewhere(site)


def build(folder: Path) -> None:
    """With the options of the Makefile."""
    options = re.search(r"^\s*\$\(PY\) -m sphinx (.*) docs docs/_build/html$", (ROOT / "Makefile").read_text(), re.M)
    assert options is not None
    assert {"-W", "-n"} <= set(options[1].split()), "a warning must be an error, and a name that leads nowhere too"
    command = [sys.executable, "-m", "sphinx", *options[1].split(), "docs", str(folder)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def check_public_interface(site: Path) -> None:
    with (site / "objects.inv").open("rb") as file:
        found = InventoryFile.load(file, "", lambda base, part: part)
    known = {name for kind, names in found.items() if kind.startswith("py:") for name in names}
    wanted = {f"coterie.{name}" for name in coterie.__all__ if name != "__version__"}
    wanted |= {f"coterie.campaign.{name}" for name in coterie.campaign.__all__}
    wanted |= {f"coterie.tables.{name}" for name in coterie.tables.__all__}
    wanted |= {f"coterie.plot.{name}" for name in coterie.plot.__all__}
    wanted |= {f"coterie.Session.{name}" for name in vars(coterie.Session) if not name.startswith("_")}
    assert wanted <= known, f"not in docs/reference: {sorted(wanted - known)}"


def commands_of(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for part, member in command.commands.items():
        if not member.hidden:  # a name from before
            yield from commands_of(member, f"{name} {part}")


def check_commands(site: Path) -> None:
    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    sections = dict(part.split('">', 1) for part in page.split('<section id="')[1:])
    listed = dict(commands_of(typer.main.get_command(app), "coterie"))
    assert len(listed) > 10
    for name, command in listed.items():
        section = html.unescape(re.sub(r"<[^>]+>", "", sections[name.replace(" ", "-")]))
        for parameter in command.params:
            for option in parameter.opts:
                known = parameter.param_type_name == "argument" or parameter.hidden  # hidden: a name from before
                assert option in section or known, (name, option)


def check_requests(site: Path) -> None:
    page = (site / "reference" / "http.html").read_text(encoding="utf-8")
    sections = dict(part.split('">', 1) for part in page.split('<section id="')[1:])
    with Campaigns(str(site.parent / "empty.db")) as store:
        document = create_app(store).openapi()
    for path, methods in document["paths"].items():
        for method, request in methods.items():
            anchor = re.sub(r"[^a-z0-9]+", "-", f"{method} {path}").strip("-")
            section = html.unescape(re.sub(r"<[^>]+>", "", sections[anchor]))
            taken = [given["name"] for given in request.get("parameters", ()) if given["in"] == "query"]
            for content in request.get("requestBody", {}).get("content", {}).values():
                name = content["schema"].get("$ref", "").rpartition("/")[2]
                taken += document["components"]["schemas"].get(name, {}).get("properties", {})
            for field in taken:
                assert f"{field}: " in section, (method, path, field)


def check_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"((?:https?:)?//[^\"]*)\"")
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//|@import", style.read_text(encoding="utf-8")), style
