"""Sessions and results as notebooks show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coterie.problem.html import table_html, text_html

if TYPE_CHECKING:
    from coterie.session.result import Result
    from coterie.session.session import Session

MOST_ROWS = 50
"""Groups that are shown; of more, the first ones."""

MOST_NAMES = 20
"""Items of a group that are shown."""


def session_html(session: Session) -> str:
    """What a session is and how far it has come, with its groups so far."""
    return text_html(repr(session)) + _groups_html(session, grouped_names(session))


def result_html(result: Result) -> str:
    """What was found, and what must be read beside it; then the groups."""
    return text_html(repr(result)) + _groups_html(result.session, result.groups)


def grouped_names(session: Session) -> list[list[Any]]:
    """The items of each group in the order of `labels`, by name, or by number if they have none."""
    labels = session.labels
    if labels is None:
        return []
    found: list[list[Any]] = [[] for _ in range(int(labels.max()) + 1)]
    for arm, label in enumerate(labels.tolist()):
        found[label].append(arm if session.names is None else session.names[arm])
    return found


def _groups_html(session: Session, groups: Sequence[Sequence[Any]]) -> str:
    centers, labels = session.centers, session.labels
    if centers is None or labels is None:
        return ""
    pulls = session.pulls
    rows = [
        (
            k,
            len(groups[k]),
            _listed(groups[k]),
            ", ".join(f"{x:.4g}" for x in centers[k]),
            int(pulls[labels == k].sum()),
        )
        for k in range(min(len(groups), MOST_ROWS))
    ]
    more = len(groups) - len(rows)
    table = table_html(("group", "items", "", "center", "measurements"), rows)
    return table + (f"<p>and {more} more groups</p>" if more else "")


def _listed(names: Sequence[Any]) -> str:
    text = ", ".join(map(str, names[:MOST_NAMES]))
    return text if len(names) <= MOST_NAMES else f"{text}, … ({len(names) - MOST_NAMES} more)"
