"""The command that revises a campaign under way: items join or are retired, there are more groups, δ is smaller."""

from __future__ import annotations

import json
from typing import Any

from coterie.campaign.commands import Turn, expire, note_findings
from coterie.campaign.errors import BadValue, Conflict
from coterie.campaign.facts import REVISION
from coterie.campaign.settings import MOST_ITEMS, check_text
from coterie.problem.settings import SettingError
from coterie.session.revising import checked_revision, revise_by
from coterie.store.rows import Note


def revise(turn: Turn, changes: dict[str, Any]) -> dict[str, Any]:
    """Revise a campaign. `changes`: any of add (with costs), retire, n_clusters, delta, and by whom and why.

    Open leases stay open: their results count as those that nobody asked for.
    """
    session = turn.state.session
    add = changes.get("add")
    if session.settings.names is not None and add is not None:
        add = [check_text(name, "add") for name in (add if isinstance(add, list | tuple) else [add])]
    if isinstance(add, int) and add > MOST_ITEMS:
        raise BadValue(f"a campaign may have at most {MOST_ITEMS} items in all, got add {add}", field="add")
    said = {key: check_text(changes[key], key) for key in ("by", "reason") if changes.get(key) is not None}
    try:
        wanted = (changes.get(name) for name in ("retire", "n_clusters", "delta", "costs"))
        revision = checked_revision(session, add, *wanted)
    except SettingError as error:
        kind = Conflict if error.field == "method" else BadValue
        raise kind(str(error), field=error.field) from None
    if session.items.after(revision).n_ever > MOST_ITEMS:
        raise BadValue(f"a campaign may have at most {MOST_ITEMS} items in all, retired ones included", field="add")
    if not session.done:
        expire(turn)
        turn.note_rules()
        turn.note_decisions()
    revise_by(session, revision)
    for t, decision in session.dated_decisions[turn.state.decisions :]:
        called = {"retired_names": [session.settings.name_of(arm) for arm in revision.retired]} | said
        more = called if decision["event"] == REVISION else {}
        turn.add(Note(turn.seq, decision["event"], json.dumps(decision | more | {"t": t}), turn.now))
    note_findings(turn, by="revision")
    return {
        "items": len(session.items.present),
        "retired": [session.settings.name_of(arm) for arm in session.retired],
        "n_clusters": session.n_clusters,
        "delta": session.delta,
        "epochs": sum(one["event"] == "freeze" for one in session.decisions),
        "t": session.t,
        "done": session.done,
    }
