"""The directive `http-interface`: a section for every request of a server, taken from its own description."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from command_line import definitions
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from coterie.campaign import Campaigns
from coterie.web import create_app


class HttpInterface(SphinxDirective):
    """One section a request: what it does, what it takes, what it answers."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        with tempfile.TemporaryDirectory() as folder, Campaigns(str(Path(folder) / "empty.db")) as store:
            self._description = create_app(store).openapi()
        return [
            self._section(f"{method.upper()} {path}", request)
            for path, methods in self._description["paths"].items()
            for method, request in methods.items()
        ]

    def _section(self, name: str, request: dict[str, Any]) -> nodes.Node:
        section = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
        section += nodes.title(name, name)
        for paragraph in request["description"].split("\n\n"):
            section += _paragraph(" ".join(paragraph.split()))
        taken = [self._row(given, given["name"]) for given in request.get("parameters", ()) if given["in"] == "query"]
        for content in request.get("requestBody", {}).get("content", {}).values():
            taken += self._fields(content["schema"])
        if taken:
            section += definitions(taken)
        answered = list(self._answered(request["responses"]))
        if answered:
            paragraph = nodes.paragraph(text="Answers: ")
            for place, field in enumerate(answered):
                paragraph += nodes.Text(", " if place else "")
                paragraph += nodes.literal(text=field)
            section += paragraph
        self.state.document.note_implicit_target(section, section)
        return section

    def _row(self, given: dict[str, Any], name: str, required: bool = False) -> tuple[str, str, str]:
        schema = given.get("schema", given)
        kind = self._kind(schema)
        notes = ["Required."] if required or given.get("required") is True else []
        if schema.get("default") not in (None, ""):
            notes.append(f"Default: {schema['default']}.")
        return f"{name}: {kind}" if kind else name, given.get("description", ""), " ".join(notes)

    def _fields(self, schema: dict[str, Any], of: str = "") -> list[tuple[str, str, str]]:
        found, rows = self._named(schema), []
        required = found.get("required", ())
        for name, field in found.get("properties", {}).items():
            rows.append(self._row(field, of + name, name in required))
            if "$ref" in field.get("items", {}):
                rows += self._fields(field["items"], f"{name}[].")
        return rows

    def _answered(self, responses: dict[str, Any]) -> Iterator[str]:
        for status, response in responses.items():
            if status.startswith("2"):
                for content in response.get("content", {}).values():
                    yield from self._named(content.get("schema", {})).get("properties", {})

    def _named(self, schema: dict[str, Any]) -> dict[str, Any]:
        name = schema.get("$ref", "").rpartition("/")[2]
        return self._description["components"]["schemas"][name] if name else schema

    def _kind(self, schema: dict[str, Any]) -> str:
        if "$ref" in schema:
            return f"{{{', '.join(self._named(schema).get('properties', {}))}}}"
        if "anyOf" in schema:
            return " or ".join(dict.fromkeys(filter(None, map(self._kind, schema["anyOf"]))))
        if schema.get("type") == "array":
            return f"list of {self._kind(schema.get('items', {}))}".removesuffix(" of ")
        return str(schema.get("type", ""))


def _paragraph(text: str) -> nodes.paragraph:
    """Names between backticks are literals."""
    paragraph = nodes.paragraph()
    for place, part in enumerate(text.split("`")):
        paragraph += nodes.literal(text=part) if place % 2 else nodes.Text(part)
    return paragraph


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("http-interface", HttpInterface)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
