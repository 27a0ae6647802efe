"""Pages from templates. Everything that is put into them is escaped."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from coterie import __version__


def number(value: float | None, digits: int = 4) -> str:
    """A number for people: four significant digits, thousands apart."""
    if value is None:
        return "–"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}".replace(",", "\u202f").replace("-", "\u2212")
    if abs(value) >= 10**digits:
        return f"{round(value):,}".replace(",", "\u202f").replace("-", "\u2212")
    return f"{value:.{digits}g}".replace("-", "\u2212")


def local(value: float | None, digits: int = 4) -> str | Markup:
    """The same, marked so that the browser writes it as its language does."""
    shown = number(value, digits)
    if value is None:
        return shown
    return Markup('<data value="{}" data-digits="{}">{}</data>').format(repr(float(value)), digits, shown)


def plural(count: int, one: str, many: str | None = None) -> str:
    """3 groups, 1 group."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


_templates = Environment(
    loader=PackageLoader("coterie.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {"number": number, "local": local}
_templates.globals |= {"version": __version__, "plural": plural}


def render(template: str, **content: Any) -> bytes:
    """A page."""
    return _templates.get_template(template).render(**content).encode("utf-8")
