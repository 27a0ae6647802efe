"""A session as arrays and plain JSON, all of it: a cache that spares reading a long record again.

A session brought back from it shows what it knows at once. Its method is started only when something new is asked,
told or given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.contract import MethodRun
from coterie.methods.start import confirming, start
from coterie.problem.question import Resolution
from coterie.problem.revision import Revision
from coterie.problem.settings import Settings
from coterie.session.conversation import Applied, Conversation, Place, Revised
from coterie.session.corrections import Correction
from coterie.session.finished import FinishedRun
from coterie.session.revising import fresh_run
from coterie.session.sleeping import SleepingRun

if TYPE_CHECKING:
    from coterie.session.session import Session

_NONE = -1


def report_of(run: MethodRun) -> dict[str, Any]:
    """What a run that goes on shows of itself; floats as they are, infinity and NaN too."""
    guess, evidence, standing = run.guess, run.evidence(), run.standing()
    return {
        "t": run.t,
        "pulls": run.pulls.tolist(),
        "labels": None if guess is None else guess[0].tolist(),
        "centers": None if guess is None else guess[1].tolist(),
        "alarm": None if run.alarm is None else list(run.alarm),
        "evidence": asdict(evidence),
        "standing": None if standing is None else asdict(standing),
    } | _report_of_references(run)


def _report_of_references(run: MethodRun) -> dict[str, Any]:
    """What a run for groups with reference items shows beside."""
    forecast = run.forecast()
    found: dict[str, Any] = {} if forecast is None else {"forecast": forecast}
    if run.references is None:
        return found
    borders = {str(arm): [int(group) for group in groups] for arm, groups in run.borders.items()}
    return found | {"references": list(run.references), "borders": borders}


def memory_of(session: Session) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Plain JSON and arrays that `from_memory` makes the session from; None if its method keeps no memory."""
    conversation, log = session._conversation, session._measurements
    run = conversation.run
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
        "pending": list(conversation.pending),
        "lines": [
            [arm, [[p.ticket, p.round, p.row, p.gone] for p in line]] for arm, line in conversation.lines.items()
        ],
        "choices": [one.to_json()["resolution"] for one in conversation.choices],
        "corrections": [one.to_json() for one in session.corrections],
        "revisions": [[one.revision.to_json(), one.t, one.ticket] for one in conversation.revisions],
        "never": conversation.never,
        "outcome": session.outcome,
        "report": None if session.done else report_of(run),
    }
    arrays = {
        "log.arms": np.array(log.arms, dtype=np.int64),
        "log.values": log.array,
        "log.tickets": np.array([_NONE if ticket is None else ticket for ticket in log.tickets], dtype=np.int64),
        "asks.arms": np.array(conversation.arms_asked, dtype=np.int64),
        "asks.rounds": np.array(conversation.rounds_asked, dtype=np.int64),
        "order": np.frombuffer(bytes(conversation.order), dtype=np.uint8),
        "given_up": np.array(conversation.given_up, dtype=np.int64),
        "counted.rows": np.array(conversation.counted_rows, dtype=np.int64),
        "counted.rounds": np.array(conversation.counted_rounds, dtype=np.int64),
    }
    return plain, arrays | {f"run.{name}": np.asarray(array) for name, array in (inside or {}).items()}


def from_memory(settings: Settings, plain: Mapping[str, Any], arrays: Mapping[str, Any]) -> Session:
    """The session that `memory_of` described. `arrays` may read each array when it is asked for."""
    from coterie.session.session import Session

    session = Session.asleep(settings)
    if plain["rules"] != session.rules:
        raise ValueError(f"it was made by rules number {plain['rules']}, this release has {session.rules}")
    if plain["outcome"] is not None:
        run: MethodRun = FinishedRun(plain["outcome"])
    else:
        run = SleepingRun(lambda: _woken(session, arrays), plain["report"])
    conversation = session._conversation = Conversation(run, session._method.in_ask_order)
    conversation.arms_asked = arrays["asks.arms"].tolist()
    conversation.rounds_asked = arrays["asks.rounds"].tolist()
    conversation.order = bytearray(arrays["order"].tobytes())
    conversation.given_up = arrays["given_up"].tolist()
    conversation.counted_rows = arrays["counted.rows"].tolist()
    conversation.counted_rounds = arrays["counted.rounds"].tolist()
    conversation.decisions = [(t, decision) for t, decision in plain["decisions"]]
    conversation.choices = [Resolution.of(one) for one in plain["choices"]]
    made = plain.get("revisions", [])
    conversation.revisions = [Revised(Revision.from_json(one), t, ticket) for one, t, ticket in made]
    conversation.retired, conversation.never = frozenset(session.retired), plain.get("never", 0)
    conversation.applied = Applied(*plain["applied"])
    conversation.undone = set(plain["undone"])
    conversation.waited = plain["waited"]
    _restore_log(session, arrays)
    places: dict[int, Place] = {}
    for arm, line in plain["lines"]:
        conversation.lines[arm] = deque(_place(session, *one) for one in line)
        places |= {place.ticket: place for place in conversation.lines[arm] if place.ticket is not None}
    for ticket in plain["pending"]:
        conversation.pending[ticket] = places.get(ticket) or Place(ticket, conversation.rounds_asked[ticket])
    session._note_stop()
    session.corrections = [Correction.of(one) for one in plain["corrections"]]
    return session


def _woken(session: Session, arrays: Mapping[str, Any]) -> MethodRun:
    """The method's run with its memory."""
    revised = bool(session._conversation.revisions)
    run: MethodRun
    if revised:
        run = confirming(fresh_run(session), session.settings)
    else:
        run = start(session.first_settings, session._method)
    run.restore({name[4:]: arrays[name] for name in arrays if name.startswith("run.")})
    return run


def _restore_log(session: Session, arrays: Mapping[str, Any]) -> None:
    arms, values = arrays["log.arms"], arrays["log.values"]
    tickets = [None if ticket == _NONE else ticket for ticket in arrays["log.tickets"].tolist()]
    session._measurements.restore(arms, values, tickets)


def _as_list(place: Place) -> list[Any]:
    return [place.ticket, place.round, place.row, place.gone]


def _place(session: Session, ticket: int | None, of_round: int, row: int, gone: bool) -> Place:
    """A place of a line, with the result that waits in it."""
    place = Place(ticket, of_round, row, None, gone)
    if row >= 0:
        log = session._measurements
        place.white = log.in_noise_units([log.arms[row]], log.values[row][None])[0]
    return place
