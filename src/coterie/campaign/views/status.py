"""How far a campaign is: functions from its state to plain JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.campaign.commands.results import check_arm_of, lease_content
from coterie.campaign.errors import Conflict, NotDone
from coterie.campaign.settings import CampaignSettings as Settings
from coterie.campaign.settings import checked_field, plain, timestamp
from coterie.campaign.state.facts import RESOLUTION
from coterie.campaign.state.leases import KINDS
from coterie.campaign.state.state import State
from coterie.campaign.views.asks import as_events, before_stop, by_worker, failures, holding, waiting_for
from coterie.campaign.views.judgements import (
    alarm,
    alarms,
    assumed,
    doubt,
    group_id,
    homogeneity,
    misfits,
    noise_in_words,
    verdict,
)
from coterie.campaign.views.log import center_of, corrections, course, events_of
from coterie.methods import method_named
from coterie.methods.table import certifying_methods
from coterie.session.progress import check_more

if TYPE_CHECKING:
    from coterie.campaign.state.opening import CampaignReading

MOST_LISTED = 100_000
"""Items up to which an answer over HTTP has lists of them all …"""
MOST_DRAWN = 10_000
"""… and a page a column of each."""
FEW_MEMBERS = 1_000
"""Items of a group that are listed where there are more."""


def fixed_summary(settings: Settings) -> dict[str, Any]:
    """What a list says of a campaign that never changes; `question` is the one that it was created with."""
    return {
        "method": settings.method,
        "delta": settings.delta,
        "n_arms": settings.n_arms,
        "n_clusters": settings.n_clusters,
        "question": settings.run.question.words,
        "dim": settings.dim,
        "value_names": None if settings.value_names is None else list(settings.value_names),
    }


def summary(row: Any, fixed: dict[str, Any] | None = None) -> dict[str, Any]:
    """A campaign in a list; `fixed` is what is known of its settings already."""
    return {
        "id": row["id"],
        "name": row["name"],
        **(fixed_summary(Settings.from_json(row["settings"])) if fixed is None else fixed),
        "t": row["t"],
        "measurements": row["measurements"],
        "done": bool(row["done"]),
        "created": timestamp(row["created"]),
        "open_leases": row["open_leases"],
        "archived": None if row.get("archived") is None else timestamp(row["archived"]),
    }


def status(state: State, row: Any, now: float, most: int | None = None) -> dict[str, Any]:
    """How far a campaign is. With more items than `most`, `cut`: without the lists of all of them (`views.status`)."""
    session, settings = state.session, state.settings
    cut = most is not None and settings.n_arms > most
    labels, centers, pulls = session.labels, session.centers, session.pulls
    shown = evidence(state)
    given = (settings.without_items() if cut else settings).as_dict()
    if session.resolution is not None:
        given |= session.resolution.to_json()  # the present one
    given.pop("groups", None)  # here `groups` are those found; `question` says what was asked for
    return {
        "id": row["id"],
        "name": row["name"],
        "created": timestamp(row["created"]),
        "seq": state.seq,
        "done": session.done,
        "proven": session.proven,
        "confirmed": None if session.confirmed is None else list(session.confirmed),
        "t": session.t,
        "measurements": state.n_results,
        "cut": cut,
        "named": settings.names is not None,
        "pulls": None if cut else pulls.tolist(),
        "pulls_summary": {"least": int(pulls.min()), "median": float(np.median(pulls)), "most": int(pulls.max())},
        "labels": None if cut or labels is None else labels.tolist(),
        "centers": None if centers is None or session.features is not None else centers.tolist(),
        "groups": groups(state, FEW_MEMBERS if cut else None),
        "evidence": shown,
        "progress": session.progress.to_json(),
        **forecast(state),
        "waiting": session.waiting,
        "waiting_for": waiting_for(state, now),
        "holding": holding(state),
        "open_leases": [lease_content(state, lease, now) for lease in state.open.values()],
        "workers": workers(state),
        "failures": failures(state),
        "archived": None if state.archived is None else timestamp(state.archived),
        "alarm": alarm(state),
        "alarms": alarms(state),
        "homogeneity": homogeneity(state),
        "question": question(state),
        "resolutions": resolutions(state),
        "open_blocks": session.open_blocks,
        "retired": [{"arm": arm, "name": settings.name_of(arm)} for arm in session.retired],
        "revisions": session.revisions,
        "borders": borders(state),
        "verdict": verdict(state),
        "assumed": assumed(state),
        "noise_in_words": noise_in_words(settings),
        "misfits": misfits(state),
        "doubt": doubt(state),
        "corrections": corrections(state),
        "certifies": method_named(settings.method).certifies,
        "cost": session.cost,
        "cost_left": session.cost_left,
        **({} if session.features is None else {"found_features": session.found_features}),
        **deadline(state),
        **given,
        "lease_seconds": state.lease_seconds,
    }


def deadline(state: State) -> dict[str, Any]:
    """What is used of the deadline, open asks included, and whether it leaves nothing to ask for; nothing without."""
    session = state.session
    if session.deadline is None:
        return {}
    reached = session.out_of_budget and not session.done
    left = max(session.deadline - session.spent, 0.0)
    return {"deadline_used": session.spent, "deadline_left": left, "deadline_reached": reached}


def forecast(state: State) -> dict[str, Any]:
    """Measurements that are expected to be needed still, and an interval for them; None if nobody knows."""
    remaining = state.session.remaining
    names = ("forecast", "forecast_low", "forecast_high")
    if remaining is None:
        return dict.fromkeys(names)
    return dict(zip(names, map(plain, (remaining.remaining, remaining.low, remaining.high)), strict=True))


def budget(state: State, row: Any, more: Any) -> dict[str, Any]:
    """What so many more measurements are expected to bring."""
    session = state.session
    outlook = session.within(checked_field("more", check_more, more))
    return {"id": row["id"], "name": row["name"], "t": session.t, "done": session.done, **outlook.to_json()}


def question(state: State) -> dict[str, Any]:
    """What is asked for: its kind (groups, resolution or linkage), in a few words, and what a proof claims."""
    asked = state.session.settings.question
    return {"kind": asked.kind, "words": asked.words, "claim": asked.claim}


def resolutions(state: State) -> list[dict[str, Any]]:
    """The resolutions asked for so far, the present one last, each with the results before it and its first epoch.

    Empty where something else is asked for.
    """
    first = state.settings.run.resolution
    if first is None:
        return []
    chosen = [first.to_json()["resolution"] | {"chosen_at": 0, "epoch": 0}]
    for decision in state.session.decisions:
        if decision["event"] == RESOLUTION:
            chosen.append(decision["resolution"] | {"chosen_at": decision["chosen_at"], "epoch": decision["epoch"]})
    return chosen


def borders(state: State) -> list[dict[str, Any]]:
    """Items near a border: their group, and the ids of the other groups that they could also belong to."""
    labels = state.session.labels
    if labels is None:
        return []
    return [
        {
            "arm": arm,
            "name": state.settings.name_of(arm),
            "group_id": group_id(state, int(labels[arm])),
            "could_be": [group_id(state, other) for other in others],
        }
        for arm, others in state.session.borders.items()
    ]


def measured(state: State, arm: Any) -> dict[str, Any]:
    """How often an item was measured."""
    place = check_arm_of(state, arm, "arm")
    return {"arm": place, "name": state.settings.name_of(place), "measurements": state.told_of(place)}


def evidence(state: State) -> dict[str, Any]:
    """What the stopping rule reads."""
    session, settings = state.session, state.settings
    now = session.evidence
    weakest = now.weakest
    return {
        "statistic": plain(now.statistic),
        "threshold": plain(now.threshold),
        "weakest": None
        if weakest is None
        else {
            "arm": weakest.arm,
            "name": settings.name_of(weakest.arm),
            "group": weakest.group,
            "group_id": group_id(state, weakest.group),
            "against": weakest.against,
            "against_name": None if weakest.against is None else settings.name_of(weakest.against),
            "statistic": plain(weakest.statistic),
            "threshold": plain(weakest.threshold),
            "pulls_left": plain(weakest.pulls_left),
        },
    }


def groups(state: State, most: int | None = None) -> list[dict[str, Any]]:
    """The groups by their stable ids; `label` is their number in `labels` and `centers`. `most` items of each."""
    labels, centers, references = state.session.labels, state.session.centers, state.session.references
    if labels is None or centers is None or state.groups is None:
        return []
    listed: list[dict[str, Any]] = []
    features, cells, known = state.session.features, None, []
    if features is not None:
        cells, known = state.session.cells, state.session.found_features
    for label in range(int(labels.max()) + 1):
        arms = np.flatnonzero(labels == label)
        group = {
            "id": int(state.groups[arms[0]]),
            "label": label,
            "size": int(arms.size),
            "arms": arms[:most].tolist(),
            "names": [state.settings.name_of(int(arm)) for arm in arms[:most]],
            "center": centers[label].tolist() if features is None else center_of(cells, features.names, known, arms),
        }
        if references is not None:
            arm = references[label]
            group["reference"] = {"arm": arm, "name": state.settings.name_of(arm)}
        listed.append(group)
    return sorted(listed, key=lambda group: group["id"])


def workers(state: State) -> list[dict[str, Any]]:
    """Who measures."""
    held: dict[str, int] = {}
    for lease in state.open.values():
        held[lease.worker] = held.get(lease.worker, 0) + 1
    missed, none = by_worker(state), dict.fromkeys(KINDS, 0)
    return [
        {
            "worker": name,
            "open": held.get(name, 0),
            "measurements": worker.told,
            "last": timestamp(worker.last),
            **missed.get(name, none),
        }
        for name, worker in state.workers.items()
    ]


def page_content(seen: CampaignReading, points: int, recent: int) -> dict[str, Any]:
    """What a page shows of a campaign, all of it of one moment."""
    state, key = seen.state, (seen.row["last_seq"], seen.row["chain"], recent)
    if state.recent is None or state.recent[0] != key:  # rows of a large campaign may be very long
        state.recent = key, events_of(seen, state.newest.last(recent), state.settings)
    return {
        "status": status(state, seen.row, seen.now, MOST_DRAWN),
        "history": course(state.newest.points, points),
        "events": state.recent[1],
    }


def certificate(state: State, row: Any) -> dict[str, Any]:
    """CROC's proof."""
    if not method_named(state.settings.method).certifies:
        raise Conflict(
            f"only method {certifying_methods()} has certificates, campaign {row['name']!r} uses "
            f"{state.settings.method!r}",
            code="no_certificate",
        )
    from coterie.session.intervals import certificate_with_intervals  # here: most who look at a campaign want no proof

    content = certificate_with_intervals(state.session)
    if content is None and state.done:
        raise Conflict(
            f"campaign {row['name']!r} was finished by an older release that did not record its certificate, and the "
            "rules have changed since: its groups and measurements are here. For a new certificate export the "
            "measurements and import them into a new campaign.",
            code="no_certificate",
        )
    if content is None:
        raise NotDone(f"campaign {row['name']!r} has no certificate yet: {verdict(state)}")
    return _for_people(state, content)


def partial_certificate(state: State, row: Any) -> dict[str, Any]:
    """What is proven so far, as `coterie.verify` checks it."""
    from coterie.session.handover import session_certificate_of_partial  # here: SciPy takes a while to load

    content = session_certificate_of_partial(state.session) if method_named(state.settings.method).certifies else None
    if content is None:
        why = "is proven: export its certificate" if state.session.proven else f"is not there yet: {verdict(state)}"
        raise Conflict(
            "a certificate of what is proven so far is for K groups and a known noise, before the whole proof, if "
            "every item was measured, nothing was revised and no alarm is raised; campaign "
            f"{row['name']!r} {why}",
            code="no_certificate",
        )
    return _for_people(state, content)


def _for_people(state: State, content: dict[str, Any]) -> dict[str, Any]:
    """A certificate with names, and with groups as `groups` numbers them."""
    named = {"names": [state.settings.name_of(arm) for arm in range(state.settings.n_arms)]}
    own = {"groups": None if state.groups is None else state.groups.tolist()}
    plain = {key: value for key, value in content.items() if key != "failures"}  # those of the session have no workers
    from coterie.certificate.beside import stated_beside  # here, too

    return plain | named | own | stated_beside(plain, log_events(state))


def log_events(state: State) -> list[dict[str, Any]]:
    """The events of the log that `coterie verify` reads: those of the session, with what the campaign knows of asks."""
    names = [state.settings.name_of(arm) for arm in range(state.settings.n_arms)]
    from coterie.certificate.log import MISSED

    head, *own = (event for event in state.session.events if event["event"] != MISSED)
    return [head | {"names": names}, *own, *as_events(before_stop(state))]


def items(state: State, after: int, limit: int) -> dict[str, Any]:
    """Items from number `after` on: `arm`, `name`, `measurements` that counted, `group_id` (None before there are
    groups, and of retired items), `retired`, and `cost`, if items have costs. `next`: the first one left, None at the
    end.
    """
    settings, session = state.settings, state.session
    end = min(settings.n_arms, after + limit)
    arms = np.arange(min(after, end), end)
    groups = np.zeros(arms.size, dtype=np.int64) if state.groups is None else state.groups[arms]
    retired, costs = set(session.retired), settings.run.costs
    listed = [
        {
            "arm": arm,
            "name": settings.name_of(arm),
            "measurements": pulls,
            "group_id": group or None,
            "retired": arm in retired,
        }
        | ({} if costs is None else {"cost": float(costs[arm])})
        for arm, pulls, group in zip(arms.tolist(), session.pulls[arms].tolist(), groups.tolist(), strict=True)
    ]
    return {"items": listed, "next": end if end < settings.n_arms else None}
