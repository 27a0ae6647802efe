"""Sessions as plain JSON. Format 2: settings, results, asks, decisions, and the outcome once there is one.

Format 1, of release 0.1, had no decisions, and the arms of CROC's asks only where a result or an open ask has them: it
is followed by the rule, which has to lead to the same asks, and otherwise its results are taken as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.contract import Decision
from coterie.problem.checks import check_arm, check_count, check_measurement, short
from coterie.problem.question import Resolution
from coterie.problem.revision import Revision
from coterie.problem.settings import ALWAYS_SAVED, Settings
from coterie.session.conversation import ASKED, CHOSEN, FORGOTTEN, LOOKED, REVISED, TOLD, Applied
from coterie.session.corrections import Correction
from coterie.session.records import UNASKED, ReplayError
from coterie.session.replaying import Facts, apply, bring_back, close, follow
from coterie.session.revising import items_after

if TYPE_CHECKING:
    from coterie.session.session import Session

FORMAT, FORMAT_1 = "coterie-session-2", "coterie-session-1"
_CONVERSATION = ("log", "history", "asks", "decisions", "applied", "rules", "outcome", "pending", "next_ticket")
_KINDS = {"ask": ASKED, "tell": TOLD, "look": LOOKED}


def to_dict(session: Session) -> dict[str, Any]:
    """Plain JSON."""
    conversation, log = session._conversation, session._measurements
    return {
        "format": FORMAT,
        **session.first_settings.to_json(),
        "rules": session.rules,
        "log": [
            {"arm": arm, "values": value.tolist(), "ticket": ticket}
            for arm, value, ticket in zip(log.arms, log.values, log.tickets, strict=True)
        ],
        "asks": [list(ask) for ask in zip(conversation.arms_asked, conversation.rounds_asked, strict=True)],
        "history": conversation.history,
        "decisions": [[t, decision] for t, decision in conversation.decisions],
        "applied": list(conversation.applied),
        "outcome": session.outcome,
        "pending": [list(pair) for pair in session.pending],
        "next_ticket": session.next_ticket,
    } | ({"corrections": [one.to_json() for one in session.corrections]} if session.corrections else {})


def from_dict(kind: type[Session], saved: Any) -> Session:
    """The session that `to_dict` saved; ValueError names what is missing or does not fit."""
    if not isinstance(saved, dict) or saved.get("format") not in (FORMAT, FORMAT_1):
        number = str(saved.get("format", "")).removeprefix("coterie-session-") if isinstance(saved, dict) else ""
        hint = ": it was saved by a newer release, use that one" if number.isdigit() and int(number) > 2 else ""
        raise ValueError(f"not a saved session (format {FORMAT!r}){hint}: {short(saved)}")
    first = saved["format"] == FORMAT_1
    parts = ("log", "pending", "next_ticket") if first else _CONVERSATION
    _entries(saved, (*ALWAYS_SAVED, *parts), "the saved session")
    if saved["instance"] is not None:
        _entries(saved["instance"], ("labels", "centers"), "the saved instance")
    settings = Settings.from_json(saved)
    if first:
        session = kind.of(settings)
        _bring_back_format_1(session, saved)
    elif saved["outcome"] is not None:
        session = kind.asleep(settings)
        facts = _facts(session, saved)
        close(session, facts, _checked_outcome(session, facts, saved["outcome"]))
    else:
        session = kind.of(settings)
        rules, applied = check_count(saved["rules"], "rules", 1), _listed(saved["applied"], "the saved number applied")
        entries, decisions = (check_count(number, "applied", 0) for number in (*applied, 0, 0)[:2])
        bring_back(session, _facts(session, saved), rules, Applied(entries, decisions))
    if session.pending != _pending(session, saved) or session.next_ticket != saved["next_ticket"]:
        raise ValueError("the saved history does not lead to the saved pending asks: the file was changed")
    session.corrections = [Correction.of(one) for one in _listed(saved.get("corrections", []), "the corrections")]
    return session


def release() -> str:
    """The release that runs; looked up when it is asked for, as the package itself is above this room."""
    return str(import_module("coterie").__version__)


def unpickled(kind: type[Session], version: str, saved: Any) -> Session:
    """What a pickle or a copy holds: a saved session, and the release that made it."""
    here = release()
    if version == here:
        return kind.from_dict(saved)
    advice = "to keep sessions from one release to the next, save them with to_dict and load them with from_dict"
    try:
        found = kind.from_dict(saved)
    except ValueError as error:
        raise ValueError(
            f"this session was pickled by coterie {version}, and coterie {here} cannot open it ({error}): {advice}"
        ) from None
    warnings.warn(
        f"this session was pickled by coterie {version}; coterie {here} opens it as from_dict would: {advice}",
        stacklevel=2,
    )
    return found


def _facts(session: Session, saved: dict[str, Any]) -> Facts:
    history = _history(saved["history"])
    revisions = [Revision.from_json(count) for what, count in history if what == REVISED]
    n_arms = items_after(session.first_settings.n_arms, revisions).n_ever
    rows = _log(session, saved, n_arms)
    asks = []
    for ask in _listed(saved["asks"], "the saved asks"):
        if len(_listed(ask, "a saved ask")) != 2:
            raise ValueError(f"a saved ask must be [arm, round], got {short(ask)}")
        asks.append((check_arm(ask[0], n_arms), check_count(ask[1], "round", 0)))
    columns, number, row = [], 0, 0
    choices: list[Resolution] = []
    for what, count in history:
        if what == CHOSEN:
            choices.append(_choice(session, count))
        if what in (FORGOTTEN, CHOSEN, REVISED):
            columns.append((what, -1, count if what == FORGOTTEN else -1, -1))
            continue
        for _ in range(count):
            if what == TOLD:
                if row == len(rows):
                    raise ValueError(f"the saved history tells more results than the {len(rows)} of the log")
                arm, _, ticket = rows[row]
                columns.append((TOLD, arm, UNASKED if ticket is None else ticket, -1))
                row += 1
            elif what == ASKED and number < len(asks):
                columns.append((ASKED, asks[number][0], number, asks[number][1]))
                number += 1
            else:
                columns.append((what, -1, -1, -1))
    if row < len(rows):
        raise ValueError(f"the saved history tells {row} results, the log has {len(rows)}")
    values = np.array([value for _, value, _ in rows]).reshape(-1, session.dim)
    decisions = [_decision(one) for one in _listed(saved["decisions"], "the saved decisions")]
    kinds, arms, tickets, rounds = (list(column) for column in zip(*columns, strict=True)) if columns else ([],) * 4
    if sum(one["event"] == "revision" for _, one in decisions) != len(revisions):
        raise ValueError(f"the saved history has {len(revisions)} revisions, the saved decisions another number")
    return Facts(kinds, arms, tickets, rounds, values, decisions, choices, revisions)


def _choice(session: Session, saved: Any) -> Resolution:
    """A resolution that was chosen on the way."""
    if not isinstance(saved, dict):
        raise ValueError(f"a saved choice must be [choose, {{alike, apart, …}}], got {short(saved)}")
    found = session.first_settings.with_resolution(saved).resolution
    assert found is not None
    return found


def _decision(one: Any) -> tuple[int, Decision]:
    if len(_listed(one, "a saved decision")) != 2 or not isinstance(one[1], dict) or "event" not in one[1]:
        raise ValueError(f"a saved decision must be [t, {{event, …}}], got {short(one)}")
    return check_count(one[0], "t of a saved decision", 0), one[1]


def _checked_outcome(session: Session, facts: Facts, outcome: Any) -> dict[str, Any]:
    wanted = ("t", "labels", "centers", "pulls", "evidence", "alarm", "certificate", "partial")
    _entries(outcome, wanted, "the saved outcome")
    shape = np.shape(outcome["centers"])
    raised = [session.n_clusters, *(one.n_clusters for one in facts.revisions if one.n_clusters is not None)]
    groups = raised[-1] or (shape or (0,))[0]  # with a resolution, as many as were found
    n_arms = items_after(session.first_settings.n_arms, facts.revisions).n_ever
    if len(outcome["labels"]) != n_arms or shape != (groups, session.dim):
        raise ValueError(f"the saved outcome is of another size: {len(outcome['labels'])} labels, centers {shape}")
    found: dict[str, Any] = outcome
    return found


def _log(session: Session, saved: dict[str, Any], n_arms: int | None = None) -> list[tuple[int, Any, int | None]]:
    """(arm, values, ticket) of all results."""
    rows = []
    for i, row in enumerate(_listed(saved["log"], "the saved log")):
        arm, values, ticket = _entries(row, ("arm", "values", "ticket"), f"row {i} of the saved log")
        number = None if ticket is None else check_count(ticket, "ticket", 0)
        rows.append((check_arm(arm, n_arms or session.n_arms), check_measurement(values, session.dim), number))
    return rows


def _pending(session: Session, saved: dict[str, Any]) -> list[tuple[int, int]]:
    opened = []
    for pair in _listed(saved["pending"], "the saved pending asks"):
        if len(_listed(pair, "a saved pending ask")) != 2:
            raise ValueError(f"a saved pending ask must be [ticket, arm], got {short(pair)}")
        opened.append((check_count(pair[0], "ticket", 0), check_arm(pair[1], session.n_arms)))
    check_count(saved["next_ticket"], "next_ticket", 0)
    return opened


def _history(history: Any) -> list[tuple[int, Any]]:
    """(kind, how often), (FORGOTTEN, ticket), and (CHOSEN, a resolution as it was saved)."""
    found: list[tuple[int, Any]] = []
    for entry in _listed(history, "the saved history"):
        what, *count = _listed(entry, "an entry of the saved history") or [None]
        if what == "choose" and len(count) == 1:
            found.append((CHOSEN, count[0]))
            continue
        if what == "revise" and len(count) == 1:
            found.append((REVISED, count[0]))
            continue
        if what not in ("ask", "tell", "forget", "look") or len(count) != 1:
            raise ValueError(
                "an entry of the saved history must be [ask | tell | look | forget, number], [choose, resolution] or "
                f"[revise, revision], got {short(entry)}"
            )
        number = check_count(count[0], "a number of the saved history", 0)
        found.append((FORGOTTEN if what == "forget" else _KINDS[what], number))
    return found


# Format 1.


def _bring_back_format_1(session: Session, saved: dict[str, Any]) -> None:
    rows, opened = _log(session, saved), _pending(session, saved)
    values = np.array([value for _, value, _ in rows]).reshape(-1, session.dim)
    if not session._method.in_ask_order:
        apply(session, _any_order(rows, opened, saved["next_ticket"], values))
        return
    history = _entries(saved, ("history",), "the saved session")[0]
    arm_of = {ticket: arm for arm, _, ticket in rows if ticket is not None} | dict(opened)
    columns, number, row = [], 0, 0
    for what, count in _history(history):
        if what == FORGOTTEN:
            columns.append((FORGOTTEN, -1, count))
            continue
        for _ in range(count):
            if what == TOLD:
                if row == len(rows):
                    raise ValueError(f"the saved history tells more results than the {len(rows)} of the log")
                arm, _, ticket = rows[row]
                columns.append((TOLD, arm, UNASKED if ticket is None else ticket))
                row += 1
            else:
                columns.append((ASKED, arm_of.get(number, -1), -1))
                number += 1
    for arm, _, ticket in rows[row:]:  # told after the stop: kept, and change nothing
        columns.append((TOLD, arm, UNASKED if ticket is None else ticket))
    if not columns:
        return
    kinds, arms, tickets = (list(column) for column in zip(*columns, strict=True))
    unknown = [-1] * len(kinds)
    try:
        follow(session, Facts(kinds, arms, tickets, unknown, values))
    except ReplayError:  # another rule made it
        session._begin(session.first_settings, session._method)
        if kinds and number > saved["next_ticket"]:  # the last ask found the groups proven
            last = max(i for i, kind in enumerate(kinds) if kind == ASKED)
            for column in (kinds, arms, tickets):
                del column[last]
        arms = [0 if arm < 0 and kind == ASKED else arm for kind, arm in zip(kinds, arms, strict=True)]
        apply(session, Facts(kinds, arms, tickets, [-1] * len(kinds), values))


def _any_order(
    rows: list[tuple[int, Any, int | None]], opened: list[tuple[int, int]], following: int, values: Any
) -> Facts:
    """Where results count as they come the order of asks was not kept, and of those given up not even the arm."""
    answered = {ticket: arm for arm, _, ticket in rows if ticket is not None}
    for ticket, _ in opened:
        if ticket >= following or ticket in answered or [one for one, _ in opened].count(ticket) > 1:
            raise ValueError(f"ticket {ticket} of the saved pending asks is not an open one")
    known = answered | dict(opened)
    given_up = [ticket for ticket in range(following) if ticket not in known]
    told = [(TOLD, arm, UNASKED if ticket is None else ticket) for arm, _, ticket in rows]
    columns = [(ASKED, known.get(ticket, 0), ticket) for ticket in range(following)]
    columns += [(FORGOTTEN, -1, ticket) for ticket in given_up] + told
    kinds, arms, tickets = (list(column) for column in zip(*columns, strict=True)) if columns else ([], [], [])
    return Facts(kinds, arms, tickets, [-1] * len(kinds), values)


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
