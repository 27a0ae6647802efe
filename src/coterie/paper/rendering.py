"""The templates of the report, in `templates/`: HTML, in which everything that is put in is escaped, and Markdown."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def check_jinja2() -> None:
    """Say which extra to install if Jinja2 is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise ImportError('coterie reproduce needs Jinja2: pip install "coterie[paper]"', name="jinja2") from None


@cache
def templates() -> Environment:
    """All templates; those of HTML escape what is put in, and an unknown name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    return Environment(
        loader=PackageLoader("coterie.paper"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, **content: Any) -> str:
    """The text of a template with this content."""
    return templates().get_template(template).render(**content)
