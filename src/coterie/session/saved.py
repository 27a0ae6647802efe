"""Sessions as plain JSON (settings, results, asks, decisions, and the outcome once there is one), and as arrays.

What is plain JSON every later release reads (format 2, of release 0.2 on). The arrays hold the method's memory too: a
cache that spares reading a long record again, for the release that made it.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from coterie.methods.contract import Decision, MethodRun
from coterie.methods.start import confirming
from coterie.problem.checks import check_arm, check_count, check_real, short
from coterie.problem.question import Resolution
from coterie.problem.revision import Revision
from coterie.problem.settings import ALWAYS_SAVED, Settings
from coterie.session.conversation import (
    ASKED,
    CHOSEN,
    FORGOTTEN,
    LOOKED,
    REVISED,
    STEPPED,
    TOLD,
    AppliedPart,
    Conversation,
    StageEnd,
)  # fmt: skip
from coterie.session.corrections import Correction
from coterie.session.facts import UNASKED, Facts
from coterie.session.finished import FinishedRun, dense_centers
from coterie.session.lines import Place
from coterie.session.replaying import bring_back, close, fresh_run, items_after
from coterie.session.telling import panels_of, saved_by_item, saved_by_stream

if TYPE_CHECKING:
    from coterie.session.session import Session

FORMAT = "coterie-session-2"
Kind = TypeVar("Kind", bound="Session")
_CONVERSATION = ("log", "history", "asks", "decisions", "applied", "rules", "outcome", "pending", "next_ticket")
_WORDS = ("ask", "tell", "look", "forget", "choose", "revise", "block")
_KINDS = dict(zip(_WORDS, (ASKED, TOLD, LOOKED, FORGOTTEN, CHOSEN, REVISED, STEPPED), strict=True))
_COUNTED = (ASKED, TOLD, LOOKED)  # of the history: with how often they were done in a row


def to_dict(session: Session) -> dict[str, Any]:
    """Plain JSON."""
    conversation, log = session._conversation, session._conversation.log
    content = {
        "format": FORMAT,
        **session.first_settings.to_json(),
        "rules": session.rules,
        "log": [
            {"arm": arm, "values": value.tolist(), "ticket": ticket}
            for arm, value, ticket in zip(log.arms, log.values, log.tickets, strict=True)
        ],
        "asks": [list(ask) for ask in zip(conversation.arms_asked, conversation.rounds_asked, strict=True)],
        "history": _history_of(conversation),
        "decisions": [[t, decision] for t, decision in conversation.decisions],
        "applied": list(conversation.applied),
        "outcome": session.outcome,
        "pending": [list(pair) for pair in session.pending],
        "next_ticket": session.next_ticket,
    } | ({"corrections": [made.to_json() for made in session.corrections]} if session.corrections else {})
    return saved_by_item(content, session.settings.features)


def _history_of(conversation: Conversation) -> list[list[object]]:
    """What was done, in order: [ask | tell | look, how often], [forget, ticket], [choose, resolution],
    [revise, revision], [block, step]."""
    done = np.frombuffer(bytes(conversation.order), dtype=np.uint8)
    alone = ~np.isin(done, _COUNTED)
    starts = np.flatnonzero(alone | (np.diff(done, prepend=FORGOTTEN) != 0))
    words = {kind: word for word, kind in _KINDS.items()}
    contents: dict[int, Iterator[Any]] = {
        FORGOTTEN: iter(conversation.given_up),
        CHOSEN: (resolution.to_json()["resolution"] for resolution in conversation.choices),
        REVISED: (made.revision.to_json() for made in conversation.revisions),
        STEPPED: iter(conversation.steps),
    }
    lengths = np.diff(starts, append=done.size).tolist()
    return [
        [words[kind], length if kind in _COUNTED else next(contents[kind])]
        for kind, length in zip(done[starts].tolist(), lengths, strict=True)
    ]


def from_dict(kind: type[Kind], saved: Any) -> Kind:
    """The session that `to_dict` saved; ValueError names what is missing or does not fit."""
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        number = str(saved.get("format", "")).removeprefix("coterie-session-") if isinstance(saved, dict) else ""
        hint = ""
        if number.isdigit():
            hint = ": it was saved by a newer release, use that one" if int(number) > 2 else ": it is older than 0.2"
        raise ValueError(f"not a saved session (format {FORMAT!r}){hint}: {short(saved)}")
    _entries(saved, (*ALWAYS_SAVED, *_CONVERSATION), "the saved session")
    if saved["instance"] is not None:
        _entries(saved["instance"], ("labels", "centers"), "the saved instance")
    settings = Settings.from_json(saved)
    saved = saved_by_stream(saved, settings)
    numbers = (*_listed(saved["applied"], "the saved number applied"), 0, 0)[:2]
    applied = AppliedPart(*(check_count(number, "applied", 0) for number in numbers))
    if saved["outcome"] is not None:
        session = kind.unstarted(settings)
        facts = _facts(session, saved)
        close(session, facts, _checked_outcome(session, facts, saved["outcome"]))
        session._conversation.applied = applied
    else:
        session = kind.of(settings)
        bring_back(session, _facts(session, saved), check_count(saved["rules"], "rules", 1), applied)
    if session.pending != _pending(session, saved) or session.next_ticket != saved["next_ticket"]:
        raise ValueError("the saved history does not lead to the saved pending asks: the file was changed")
    session.corrections = [Correction.of(made) for made in _listed(saved.get("corrections", []), "the corrections")]
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
        session = kind.from_dict(saved)
    except ValueError as error:
        raise ValueError(
            f"this session was pickled by coterie {version}, and coterie {here} cannot open it ({error}): {advice}"
        ) from None
    warnings.warn(
        f"this session was pickled by coterie {version}; coterie {here} opens it as from_dict would: {advice}",
        stacklevel=2,
    )
    return session


def refuse_pickle_of_earlier_release() -> NoReturn:
    """Pickles used to hold the attributes of a session; these are others by now."""
    raise ValueError(
        f"this session was pickled by an earlier release than coterie {release()}, which cannot open it: "
        "save it there with to_dict, and load it here with from_dict"
    )


def _facts(session: Session, saved: dict[str, Any]) -> Facts:
    history = _history(saved["history"])
    revisions = [Revision.from_json(count) for kind, count in history if kind == REVISED]
    n_arms = items_after(session.first_settings.n_arms, revisions).n_ever * panels_of(session.settings)
    rows = _log(session, saved, n_arms)
    asks = []
    for ask in _listed(saved["asks"], "the saved asks"):
        if len(_listed(ask, "a saved ask")) != 2:
            raise ValueError(f"a saved ask must be [arm, round], got {short(ask)}")
        asks.append((check_arm(ask[0], n_arms), check_count(ask[1], "round", 0)))
    columns, number, row = [], 0, 0
    choices = [_choice(session, count) for kind, count in history if kind == CHOSEN]
    for kind, count in history:
        if kind not in _COUNTED:
            columns.append((kind, -1, count if kind == FORGOTTEN else -1, -1))
            continue
        for _ in range(count):
            if kind == TOLD:
                if row == len(rows):
                    raise ValueError(f"the saved history tells more results than the {len(rows)} of the log")
                arm, _, ticket = rows[row]
                columns.append((TOLD, arm, UNASKED if ticket is None else ticket, -1))
                row += 1
            elif kind == ASKED and number < len(asks):
                columns.append((ASKED, asks[number][0], number, asks[number][1]))
                number += 1
            else:
                columns.append((kind, -1, -1, -1))
    if row < len(rows):
        raise ValueError(f"the saved history tells {row} results, the log has {len(rows)}")
    values = np.array([value for _, value, _ in rows]).reshape(-1, session.log_arrays.width)
    decisions = [_decision(made) for made in _listed(saved["decisions"], "the saved decisions")]
    kinds, arms, tickets, rounds = (list(column) for column in zip(*columns, strict=True)) if columns else ([],) * 4
    if sum(made["event"] == "revision" for _, made in decisions) != len(revisions):
        raise ValueError(f"the saved history has {len(revisions)} revisions, the saved decisions another number")
    steps = [_step(count) for kind, count in history if kind == STEPPED]
    return Facts(kinds, arms, tickets, rounds, values, decisions, choices, revisions, steps)


def _step(saved: Any) -> dict[str, Any]:
    """Something that was done with a block."""
    kept = {"compose": {"step", "block", "room", "among", "fill"}, "close": {"step", "block"},
            "place": {"step", "block"}, "deadline": {"step", "deadline"}}  # fmt: skip
    name = saved.get("step") if isinstance(saved, dict) else None
    if not isinstance(name, str) or set(saved) != kept.get(name) or not isinstance(saved.get("block", ""), str):
        raise ValueError(f"a saved step must be [block, {{step: compose | close | …, block, …}}], got {short(saved)}")
    check_real(saved.get("deadline", 0.0), "a saved deadline")
    checked: dict[str, Any] = saved
    return checked


def _choice(session: Session, saved: Any) -> Resolution:
    """A resolution that was chosen on the way."""
    if not isinstance(saved, dict):
        raise ValueError(f"a saved choice must be [choose, {{alike, apart, …}}], got {short(saved)}")
    chosen = session.first_settings.with_resolution(saved).resolution
    assert chosen is not None
    return chosen


def _decision(saved: Any) -> tuple[int, Decision]:
    if len(_listed(saved, "a saved decision")) != 2 or not isinstance(saved[1], dict) or "event" not in saved[1]:
        raise ValueError(f"a saved decision must be [t, {{event, …}}], got {short(saved)}")
    return check_count(saved[0], "t of a saved decision", 0), saved[1]


def _checked_outcome(session: Session, facts: Facts, outcome: Any) -> dict[str, Any]:
    wanted = ("t", "labels", "centers", "pulls", "evidence", "alarm", "certificate", "partial")
    _entries(outcome, wanted, "the saved outcome")
    shape = dense_centers(outcome["centers"]).shape
    raised = [session.n_clusters, *(made.n_clusters for made in facts.revisions if made.n_clusters is not None)]
    groups = raised[-1] or (shape or (0,))[0]  # with a resolution, as many as were found
    n_arms = items_after(session.first_settings.n_arms, facts.revisions).n_ever
    if len(outcome["labels"]) != n_arms or shape != (groups, session.dim):
        raise ValueError(f"the saved outcome is of another size: {len(outcome['labels'])} labels, centers {shape}")
    checked: dict[str, Any] = outcome
    return checked


def _log(session: Session, saved: dict[str, Any], n_arms: int) -> list[tuple[int, Any, int | None]]:
    """(arm, values, ticket) of all results."""
    rows = []
    for i, row in enumerate(_listed(saved["log"], "the saved log")):
        arm, values, ticket = _entries(row, ("arm", "values", "ticket"), f"row {i} of the saved log")
        number = None if ticket is None else check_count(ticket, "ticket", 0)
        place = check_arm(arm, n_arms)
        rows.append((place, session.log_arrays.checked(place, values), number))
    return rows


def _pending(session: Session, saved: dict[str, Any]) -> list[tuple[Any, ...]]:
    opened = []
    names = ("ticket", "arm", "feature")[: 2 if session.settings.features is None else 3]
    for pair in _listed(saved["pending"], "the saved pending asks"):
        if len(_listed(pair, "a saved pending ask")) != len(names):
            raise ValueError(f"a saved pending ask must be [{', '.join(names)}], got {short(pair)}")
        opened.append((check_count(pair[0], "ticket", 0), check_arm(pair[1], session.n_arms), *pair[2:]))
    check_count(saved["next_ticket"], "next_ticket", 0)
    return opened


def _history(history: Any) -> list[tuple[int, Any]]:
    """(kind, how often), (FORGOTTEN, ticket), and (CHOSEN, a resolution as it was saved)."""
    entries: list[tuple[int, Any]] = []
    for entry in _listed(history, "the saved history"):
        word, *content = _listed(entry, "an entry of the saved history") or [None]
        if not isinstance(word, str) or word not in _KINDS or len(content) != 1:
            raise ValueError(
                "an entry of the saved history must be [ask | tell | look | forget, number], [choose, resolution], "
                f"[revise, revision] or [block, step], got {short(entry)}"
            )
        saved = (
            content[0]
            if word in ("choose", "revise", "block")
            else check_count(content[0], "a number of the saved history", 0)
        )
        entries.append((_KINDS[word], saved))
    return entries


# Arrays and plain JSON: a cache that spares reading a long record again.

_NONE = -1
_INTEGERS = {
    "asks.arms": "arms_asked",
    "asks.rounds": "rounds_asked",
    "given_up": "given_up",
    "counted.rows": "counted_rows",
    "counted.rounds": "counted_rounds",
}
"""Lists of integers that a conversation has, under the names of their arrays."""


def memory_of(session: Session) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Plain JSON and arrays that `from_memory` makes the session from; None if its method keeps no memory."""
    conversation, log = session._conversation, session._conversation.log
    run, lines = conversation.run, conversation.lines
    inside: dict[str, Any] | None = {}
    if not isinstance(run, FinishedRun) and not run.done:
        inside = run.memory()
        if inside is None:
            return None
    plain = {
        "rules": session.rules,
        "decisions": list(conversation.decisions),
        "applied": list(conversation.applied),
        "undone": sorted(conversation.undone),
        "waited": conversation.waiting if conversation.run.done else None,
        "pending": list(lines.pending),
        "lines": [[arm, [[p.ticket, p.round, p.row, p.gone] for p in line]] for arm, line in lines.by_arm.items()],
        "choices": [resolution.to_json()["resolution"] for resolution in conversation.choices],
        "corrections": [made.to_json() for made in session.corrections],
        "revisions": [[made.revision.to_json(), made.t, made.ticket] for made in conversation.revisions],
        "never": conversation.never,
        "steps": conversation.steps,
        "outcome": session.outcome,
    }
    arrays = {
        "log.arms": np.array(log.arms, dtype=np.int64),
        "log.values": log.array,
        "log.tickets": np.array([_NONE if ticket is None else ticket for ticket in log.tickets], dtype=np.int64),
        "order": np.frombuffer(bytes(conversation.order), dtype=np.uint8),
    } | {name: np.array(getattr(conversation, attribute), dtype=np.int64) for name, attribute in _INTEGERS.items()}
    return plain, arrays | {f"run.{name}": np.asarray(array) for name, array in (inside or {}).items()}


def from_memory(settings: Settings, plain: Mapping[str, Any], arrays: Mapping[str, Any]) -> Session:
    """The session that `memory_of` described. `arrays` may read each array when it is asked for."""
    from coterie.session.session import Session

    session = Session.unstarted(settings)
    if plain["rules"] != session.rules:
        raise ValueError(f"it was made by rules number {plain['rules']}, this release has {session.rules}")
    conversation = session._conversation
    for name, attribute in _INTEGERS.items():
        setattr(conversation, attribute, arrays[name].tolist())
    conversation.order = bytearray(arrays["order"].tobytes())
    conversation.decisions = [(t, decision) for t, decision in plain["decisions"]]
    conversation.choices = [Resolution.of(saved) for saved in plain["choices"]]
    revisions = plain.get("revisions", [])
    conversation.revisions = [StageEnd(Revision.from_json(saved), t, ticket) for saved, t, ticket in revisions]
    conversation.steps = list(plain.get("steps", []))
    conversation.update_settings()
    conversation.never = plain.get("never", 0)
    conversation.applied = AppliedPart(*plain["applied"])
    conversation.undone = set(plain["undone"])
    conversation.waited = plain["waited"]
    tickets = [None if ticket == _NONE else ticket for ticket in arrays["log.tickets"].tolist()]
    conversation.log.restore(arrays["log.arms"], arrays["log.values"], tickets)
    conversation.run = (
        _restored_run(conversation, arrays) if plain["outcome"] is None else FinishedRun(plain["outcome"])
    )
    _restore_lines(conversation, plain)
    session.corrections = [Correction.of(saved) for saved in plain["corrections"]]
    return session


def _restored_run(conversation: Conversation, arrays: Mapping[str, Any]) -> MethodRun:
    """The method's run with its memory."""
    run: MethodRun
    if conversation.revisions:
        run = confirming(fresh_run(conversation), conversation.settings)
    else:
        run = conversation.new_run()
    run.restore({name[4:]: arrays[name] for name in arrays if name.startswith("run.")})
    return run


def _restore_lines(conversation: Conversation, plain: Mapping[str, Any]) -> None:
    lines, log = conversation.lines, conversation.log
    places: dict[int, Place] = {}
    for arm, line in plain["lines"]:
        lines.by_arm[arm] = deque()
        for ticket, of_round, row, gone in line:
            white = None if row < 0 else log.in_noise_units([arm], log.array[row][None])[0]
            place = Place(arm, ticket, of_round, row, white, gone)
            lines.by_arm[arm].append(place)
            if ticket is not None:
                places[ticket] = place
    for ticket in plain["pending"]:
        asked = Place(conversation.arms_asked[ticket], ticket, conversation.rounds_asked[ticket])
        lines.pending[ticket] = places.get(ticket, asked)


def _entries(saved: Any, keys: Sequence[str], name: str) -> list[Any]:
    """The values of these keys of a dictionary that was loaded."""
    if not isinstance(saved, dict):
        raise ValueError(f"{name} must be a dictionary with {', '.join(keys)}, got {short(saved)}")
    missing = [key for key in keys if key not in saved]
    if missing:
        raise ValueError(f"{name} lacks {', '.join(missing)}")
    return [saved[key] for key in keys]


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list, got {short(value)}")
    return list(value)
