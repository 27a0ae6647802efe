"""Sessions as plain JSON: settings, log, open asks; and what CROC needs to repeat its asks in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.checks import check_arm, check_count, check_measurement, short
from coterie.problem.instance import Instance
from coterie.session.replayed import ASK, FORGET, TELL

if TYPE_CHECKING:
    from coterie.session.conversation import Session

FORMAT = "coterie-session-1"
_SETTINGS = ("n_arms", "n_clusters", "dim", "delta", "method", "threshold", "noise", "distance_ratio")
_SAVED = ("instance", "names", "log", "pending", "next_ticket", *_SETTINGS)


def to_dict(session: Session) -> dict[str, Any]:
    """Plain JSON."""
    instance = session.instance
    saved = {
        "format": FORMAT,
        "n_arms": session.n_arms,
        "n_clusters": session.n_clusters,
        "dim": session.dim,
        "delta": session.delta,
        "method": session.method,
        "threshold": session.threshold,
        "noise": session.noise.to_json(),
        "distance_ratio": session.distance_ratio,
        "instance": None
        if instance is None
        else {"labels": instance.labels.tolist(), "centers": instance.centers.tolist()},
        "names": None if session.names is None else list(session.names),
        "log": [
            {"arm": arm, "values": value.tolist(), "ticket": ticket}
            for arm, value, ticket in zip(session._arms, session._values, session._tickets, strict=True)
        ],
        "pending": [list(pair) for pair in session.pending],
        "next_ticket": session._next_ticket,
    }
    history = getattr(session._driver, "history", None)
    return saved if history is None else saved | {"history": [list(entry) for entry in history]}


def from_dict(kind: type[Session], saved: Any) -> Session:
    """The session that `to_dict` saved; ValueError names what is missing or does not fit."""
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ValueError(f"not a saved session (format {FORMAT!r}): {short(saved)}")
    given, names, log, pending, next_ticket, *_ = _entries(saved, _SAVED, "the saved session")
    if given is not None:
        given = Instance(*_entries(given, ("labels", "centers"), "the saved instance"))
    session = kind(**{key: saved[key] for key in _SETTINGS}, instance=given, names=names)
    rows = [
        _entries(row, ("arm", "values", "ticket"), f"row {i} of the saved log")
        for i, row in enumerate(_listed(log, "the saved log"))
    ]
    arms = [check_arm(arm, session.n_arms) for arm, _, _ in rows]
    values = [check_measurement(value, session.dim) for _, value, _ in rows]
    tickets = [None if used is None else check_count(used, "ticket", 0) for _, _, used in rows]
    opened = []
    for pair in _listed(pending, "the saved pending asks"):
        if len(_listed(pair, "a saved pending ask")) != 2:
            raise ValueError(f"a saved pending ask must be [ticket, arm], got {short(pair)}")
        opened.append((check_count(pair[0], "ticket", 0), check_arm(pair[1], session.n_arms)))
    following = check_count(next_ticket, "next_ticket", 0)
    if hasattr(session._driver, "history"):
        history = _listed(_entries(saved, ("history",), "the saved session")[0], "the saved history")
        _repeat(session, history, arms, values, tickets)
        if session.pending != opened or session._next_ticket != following:
            raise ValueError("the saved history does not lead to the saved pending asks: the file was changed")
        return session
    session._absorb(arms, values, [None] * len(rows))
    session._tickets, session._next_ticket = list(tickets), following
    for ticket, arm in opened:
        if ticket >= following or ticket in session._pending or ticket in set(tickets):
            raise ValueError(f"ticket {ticket} of the saved pending asks is not an open one")
        session._pending[ticket] = arm
        session._driver.reserve(arm)  # type: ignore[attr-defined]
    return session


def _repeat(session: Session, history: list[Any], arms: list[int], values: list[Any], tickets: list[Any]) -> None:
    """Ask, tell and forget again, in the order in which it was done."""
    row = 0
    done: list[tuple[int, int, int, int]] = []  # kind, arm, ticket, row of the log
    for entry in history:
        what, *count = _listed(entry, "an entry of the saved history")
        if what not in ("ask", "tell", "forget") or len(count) != 1:
            raise ValueError(f"an entry of the saved history must be [ask | tell | forget, number], got {short(entry)}")
        number = check_count(count[0], "a number of the saved history", 0)
        if what == "forget":
            done.append((FORGET, -1, number, 0))
        elif what == "ask":
            done += [(ASK, -1, -1, 0)] * number
        else:
            if row + number > len(arms):
                raise ValueError(f"the saved history tells {row + number} results, the log has {len(arms)}")
            done += [(TELL, arms[i], -1 if tickets[i] is None else tickets[i], i) for i in range(row, row + number)]
            row += number
    for i in range(row, len(arms)):  # told after the stop: kept, and change nothing
        done.append((TELL, arms[i], -1 if tickets[i] is None else tickets[i], i))
    if done:
        kinds, told, claimed, rows = np.array(done, dtype=np.int64).T
        taken = np.array(values).reshape(-1, session.dim) if values else np.zeros((1, session.dim))
        session.replay(kinds, told, claimed, taken[rows])


def _entries(saved: Any, keys: Sequence[str], what: str) -> list[Any]:
    """The values of these keys of a dictionary that was loaded."""
    if not isinstance(saved, dict):
        raise ValueError(f"{what} must be a dictionary with {', '.join(keys)}, got {short(saved)}")
    missing = [key for key in keys if key not in saved]
    if missing:
        raise ValueError(f"{what} lacks {', '.join(missing)}")
    return [saved[key] for key in keys]


def _listed(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{what} must be a list, got {short(value)}")
    return list(value)
