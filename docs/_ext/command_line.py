"""The directive `command-line`: a section for every command of `coterie`, taken from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
import typer.main
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from coterie.cli import app as commands

_EXTRA = re.compile(r"\s*\[((?:required|default|env var)\b.*)\]$")


class CommandLine(SphinxDirective):
    """One section a command: what it is for, how it is called, what it takes."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        return list(self._sections(typer.main.get_command(commands), "coterie"))

    def _sections(self, command: Any, name: str) -> Iterator[nodes.Node]:
        members = getattr(command, "commands", None)
        if members is None:
            yield self._section(command, name)
            return
        for part in sorted(members):
            if not members[part].hidden:
                yield from self._sections(members[part], f"{name} {part}")

    def _section(self, command: Any, name: str) -> nodes.Node:
        section = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
        section += nodes.title(name, name)
        context = typer.Context(command, info_name=name)
        for paragraph in re.split(r"\n\s*\n", command.help or ""):
            section += nodes.paragraph(text=" ".join(paragraph.split()))
        usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
        section += nodes.literal_block(usage, usage, language="text")
        rows = [row for parameter in command.params if (row := self._row(parameter, context))]
        if rows:
            section += definitions(rows)
        self.state.document.note_implicit_target(section, section)
        return section

    @staticmethod
    def _row(parameter: Any, context: Any) -> tuple[str, str, str] | None:
        record = parameter.get_help_record(context)
        if record is None:
            return None
        what, meaning = record
        extra = _EXTRA.search(meaning)
        if extra is None:
            return what, meaning, ""
        parts = dict(part.partition(": ")[::2] for part in extra[1].split("; "))
        notes = ["Required."] if "required" in parts else []
        if "default" in parts:
            notes.append(f"Default: {parts['default'].removeprefix('(').removesuffix(')')}.")
        if "env var" in parts:
            notes.append(f"Also from the environment: {parts['env var']}.")
        return what, meaning[: extra.start()], " ".join(notes)


def definitions(rows: list[tuple[str, str, str]]) -> nodes.definition_list:
    """A list of terms, each with its meaning and notes."""
    found = nodes.definition_list()
    for what, meaning, notes in rows:
        item, term, definition = nodes.definition_list_item(), nodes.term(), nodes.definition()
        term += nodes.literal(text=what)
        paragraph = nodes.paragraph(text=f"{meaning} ")
        paragraph += nodes.emphasis(text=notes)
        definition += paragraph
        item += [term, definition]
        found += item
    return found


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
