"""What people and programs see of a campaign: functions from its state to plain JSON values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.campaign.commands import check_arm_of, find_lease, plain
from coterie.campaign.errors import Conflict, NotDone
from coterie.campaign.settings import CampaignSettings as Settings
from coterie.campaign.settings import checked_field
from coterie.campaign.state import Lease, State
from coterie.campaign.timestamps import timestamp
from coterie.methods import method_named
from coterie.problem.checks import check_count, short
from coterie.session.verdicts_json import alarm_json, homogeneity_json
from coterie.store.rows import Ask, Ending, Note, Row, Told

if TYPE_CHECKING:
    from coterie.campaign.open_campaigns import CampaignReading

LARGEST_PAGE = 10_000


def page(after: Any, limit: Any) -> tuple[int, int]:
    """Where a page of the log begins and how long it is."""
    start = checked_field("after", check_count, after, "after", 0)
    return min(start, 2**62), min(checked_field("limit", check_count, limit, "limit", 1), LARGEST_PAGE)


def settings_of(row: Any) -> Settings:
    """The settings in a campaign's row."""
    return Settings.from_json(row["settings"])


def summary(row: Any) -> dict[str, Any]:
    """A campaign in a list."""
    settings = settings_of(row)
    return {
        "id": row["id"],
        "name": row["name"],
        "method": settings.method,
        "delta": settings.delta,
        "n_arms": settings.n_arms,
        "n_clusters": settings.n_clusters,
        "dim": settings.dim,
        "value_names": None if settings.value_names is None else list(settings.value_names),
        "t": row["t"],
        "measurements": row["measurements"],
        "done": bool(row["done"]),
        "created": timestamp(row["created"]),
        "open_leases": row["open_leases"],
    }


def status(state: State, row: Any, now: float) -> dict[str, Any]:
    """How far a campaign is."""
    session, settings = state.session, state.settings
    labels, centers = session.labels, session.centers
    shown = evidence(state)
    weakest = shown["weakest"]
    return {
        "id": row["id"],
        "name": row["name"],
        "created": timestamp(row["created"]),
        "seq": state.seq,
        "done": session.done,
        "t": session.t,
        "measurements": state.n_results,
        "pulls": session.pulls.tolist(),
        "labels": None if labels is None else labels.tolist(),
        "centers": None if centers is None else centers.tolist(),
        "groups": groups(state),
        "evidence": shown,
        "forecast": 0.0 if session.done else (weakest or {}).get("pulls_left"),
        "waiting": session.waiting,
        "open_leases": [_lease(state, lease, now) for lease in state.open.values()],
        "workers": workers(state),
        "alarm": alarm(state),
        "homogeneity": homogeneity(state),
        "verdict": verdict(state),
        "assumed": assumed(settings),
        "misfits": misfits(state),
        "doubt": doubt(state),
        "certifies": method_named(settings.method).certifies,
        **settings.as_dict(),
    }


def _lease(state: State, lease: Lease, now: float) -> dict[str, Any]:
    return {
        "lease": lease.key,
        "arm": lease.arm,
        "name": state.settings.name_of(lease.arm),
        "worker": lease.worker,
        "asked": timestamp(lease.asked_at),
        "expires": timestamp(lease.expires_at),
        "expired": lease.expires_at <= now,
    }


def measured(state: State, arm: Any) -> dict[str, Any]:
    """How often an item was measured."""
    place = check_arm_of(state, arm, "arm")
    count = state.sums[place][0] if place in state.sums else 0
    return {"arm": place, "name": state.settings.name_of(place), "measurements": count}


def lease(state: State, key: Any, now: float) -> dict[str, Any]:
    """A lease, open or not."""
    found = find_lease(state, key, "lease")
    stands = "answered" if found.answer is not None else found.ended or "open"
    return {**_lease(state, found, now), "state": stands, "measurement": found.answer}


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


def groups(state: State) -> list[dict[str, Any]]:
    """The groups by their stable ids; `label` is their number in `labels` and `centers`."""
    labels, centers = state.session.labels, state.session.centers
    if labels is None or centers is None or state.groups is None:
        return []
    found = []
    for label in range(int(labels.max()) + 1):
        arms = np.flatnonzero(labels == label)
        found.append(
            {
                "id": int(state.groups[arms[0]]),
                "label": label,
                "size": int(arms.size),
                "arms": arms.tolist(),
                "names": [state.settings.name_of(int(arm)) for arm in arms],
                "center": centers[label].tolist(),
            }
        )
    return sorted(found, key=lambda group: group["id"])


def group_id(state: State, label: int) -> int | None:
    """The stable id of a group, by its number in `labels`."""
    labels = state.session.labels
    if labels is None or state.groups is None or not (labels == label).any():
        return None
    return int(state.groups[int(np.argmax(labels == label))])


def workers(state: State) -> list[dict[str, Any]]:
    """Who measures."""
    held: dict[str, int] = {}
    for lease in state.open.values():
        held[lease.worker] = held.get(lease.worker, 0) + 1
    return [
        {"worker": name, "open": held.get(name, 0), "measurements": worker.told, "last": timestamp(worker.last)}
        for name, worker in state.workers.items()
    ]


def alarm(state: State) -> dict[str, Any] | None:
    """More items than groups, pairwise known to differ: there are more groups than the campaign was told."""
    return alarm_json(state.session, state.settings.name_of)


def homogeneity(state: State) -> dict[str, Any] | None:
    """Whether each group looks like one, by the results that counted; its text calls groups by their ids."""
    if not state.done:
        return None
    return homogeneity_json(state.session, [group_id(state, k) or 0 for k in range(state.settings.n_clusters)])


def misfits(state: State) -> list[dict[str, Any]]:
    """Items that do not fit their group, by the results that did not count any more when it stopped.

    The groups do not depend on these. The test (`late_misfits`) holds at whatever times somebody looks.
    """
    labels = state.session.labels
    if not state.done or labels is None:
        return []
    if state.misfits[0] != state.seq:
        late = np.flatnonzero(~state.counted_places())
        found: list[int] = []
        if late.size > 0:
            from coterie.tables.anytime_fit import (
                anytime_misfits,  # here: it needs scipy, and most campaigns do not need it
            )

            arms = np.array([state.results[place][0] for place in late])
            white = state.session.noise.whiten(np.array([state.results[place][1] for place in late]))
            found = anytime_misfits(labels, arms, white)
        state.misfits = (state.seq, found)
    return [
        {"arm": arm, "name": state.settings.name_of(arm), "group_id": group_id(state, int(labels[arm]))}
        for arm in state.misfits[1]
    ]


def doubt(state: State) -> str | None:
    """What misfits mean, in a sentence."""
    found = misfits(state)
    if not found:
        return None
    names = ", ".join(one["name"] for one in found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
    from coterie.tables.fit import MISFIT_PROBABILITY

    level = f"{MISFIT_PROBABILITY:g}"
    wrong = f"{level} + {state.settings.delta:g}" if certain(state.settings) else f"{level}, if the groups are right"
    return (
        f"Results told after the stop do not fit these groups ({names}): there may be more than "
        f"{state.settings.n_clusters} groups, or the noise may be larger than was said. If neither is so, such a "
        f"warning ever comes with probability at most {wrong}."
    )


def certain(settings: Settings) -> bool:
    """Whether the stop is a proof."""
    return method_named(settings.method).proves(settings.threshold)


def assumed(settings: Settings) -> str:
    """What the answer rests on, in a sentence."""
    noise = settings.noise
    if noise is None:
        spread = "standard deviation 1 (none was given)"
    elif not isinstance(noise, list):
        spread = f"standard deviation {noise:g}"
    elif isinstance(noise[0], list):
        spread = f"covariance {short(noise)}"
    else:
        called = [""] * len(noise) if settings.value_names is None else [f" ({name})" for name in settings.value_names]
        listed = [f"{value:g}{name}" for value, name in zip(noise, called, strict=True)]
        spread = f"standard deviations {', '.join(listed[:12])}{', …' if len(listed) > 12 else ''}"
    how = method_named(settings.method).called(settings.threshold)
    return (
        f"Assumed: exactly {settings.n_clusters} groups; noise of {spread}. "
        f"Error probability allowed: {settings.delta:g}. Method: {how}."
    )


def _refuted(state: State) -> str:
    k = state.settings.n_clusters
    return (
        f"but the measurements refute {k} groups: there are at least {k + 1}, or the noise is larger than was said. "
        "Export the measurements, and import them into a campaign that says it right."
    )


def verdict(state: State) -> str:
    """The state of things in a sentence."""
    session, settings = state.session, state.settings
    refuted = session.alarm is not None
    if session.done:
        wrong = f"wrong with probability at most {settings.delta:g}"
        if not certain(settings):
            mixed = "" if session.homogeneity else ", and a group looks mixed"
            reached = f"the evidence has reached the heuristic threshold (no proof){mixed}"
            return f"Stopped after {session.t} measurements: {reached}."
        if refuted:
            only = f"for exactly {settings.n_clusters} groups only"
            return f"Proven after {session.t} measurements {only}; {_refuted(state)}"
        if not session.homogeneity:
            return (
                f"Proven after {session.t} measurements if there are exactly {settings.n_clusters} groups and the "
                f"noise is as stated ({wrong}), but the measurements speak against that: a group looks mixed."
            )
        return f"Proven after {session.t} measurements: {settings.n_clusters} groups, {wrong}."
    if refuted:
        return f"Not proven, after {session.t} measurements; {_refuted(state)}"
    if session.labels is None:
        left = int((session.pulls == 0).sum())
        return f"{left} of {settings.n_arms} items have not been measured yet."
    return f"Not proven yet, after {session.t} measurements: the groups are a guess."


def measurements(seen: CampaignReading, after: int, limit: int) -> dict[str, Any]:
    """A page of results."""
    state = seen.state
    rows = seen.journal.rows(seen.row, after, limit + 1, (Told,)).rows
    counted = state.counted_places()
    found = []
    for row in rows[:limit]:
        assert isinstance(row, Told)
        place = state.ids[row.id]
        found.append(_told(row, state.settings) | {"counted": bool(counted[place])})
    return {"measurements": found, "next": rows[limit - 1].seq if len(rows) > limit else None}


def _told(row: Told, settings: Settings) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "id": row.id,
        "arm": row.arm,
        "name": settings.name_of(row.arm),
        "values": json.loads(row.values),
        "lease": row.lease,
        "worker": row.worker,
        "asked_for": row.ticket is not None,
        "at": timestamp(row.told_at),
    }


def events(seen: CampaignReading, after: int, limit: int) -> dict[str, Any]:
    """A page of the log."""
    settings = settings_of(seen.row)
    # What was asked for and not a row more: the next one may be damaged, and this page is not.
    rows = seen.journal.rows(seen.row, after, limit).rows
    more = bool(rows) and rows[-1].seq < seen.row["last_seq"]
    return {
        "events": [event(one, settings) for one in rows],
        "next": rows[-1].seq if more else None,
    }


def page_content(seen: CampaignReading, points: int, recent: int) -> dict[str, Any]:
    """What a page shows of a campaign, all of it of one moment."""
    last = seen.row["last_seq"]
    return {
        "status": status(seen.state, seen.row, seen.now),
        "history": history(seen, points),
        "events": events(seen, max(0, last - recent), recent)["events"],
    }


def newest_events(seen: CampaignReading, before: int | None, count: int) -> dict[str, Any]:
    """The last events with a seq below `before`, oldest first, and where they stand in the log."""
    newest = int(seen.row["last_seq"])
    last = newest if before is None else min(before - 1, newest)
    first = max(0, last - count)
    found = events(seen, first, last - first)["events"] if last > first else []
    named = {"id": seen.row["id"], "name": seen.row["name"]}
    return {**named, "events": found, "first": first + 1, "last": last, "newest": newest}


def event(row: Row, settings: Settings) -> dict[str, Any]:
    """A row of the log; `kind` is asked, told, expired, failed, imported, groups, evidence or stopped."""
    if isinstance(row, Told):
        return {"kind": "told", **_told(row, settings)}
    if isinstance(row, Ask):
        return {
            "kind": "asked",
            "seq": row.seq,
            "arm": row.arm,
            "name": settings.name_of(row.arm),
            "lease": row.lease,
            "worker": row.worker,
            "at": timestamp(row.asked_at),
            "expires": timestamp(row.expires_at),
        }
    if isinstance(row, Ending):
        return {"kind": row.kind, "seq": row.seq, "lease": row.lease, "reason": row.reason, "at": timestamp(row.at)}
    assert isinstance(row, Note)
    return {"kind": row.kind, "seq": row.seq, "at": timestamp(row.at), **row.data}


def history(seen: CampaignReading, points: Any) -> dict[str, list[Any]]:
    """The evidence over time, from the points kept."""
    most = checked_field("points", check_count, points, "points", 2)
    kept = [note.data for note in seen.journal.notes(seen.row, "evidence").rows if isinstance(note, Note)]
    if len(kept) > most:
        kept = [kept[i] for i in np.unique(np.linspace(0, len(kept) - 1, most).round().astype(int))]
    return {key: [point[key] for point in kept] for key in ("t", "statistic", "threshold")}


def certificate(state: State, row: Any) -> dict[str, Any]:
    """CROC's proof."""
    if not method_named(state.settings.method).certifies:
        raise Conflict(
            f"only method 'croc' has certificates, campaign {row['name']!r} uses {state.settings.method!r}",
            code="no_certificate",
        )
    found = state.session.certificate
    if found is None and state.done:
        raise Conflict(
            f"campaign {row['name']!r} was finished by an older release that did not record its certificate, and the "
            "rules have changed since: its groups and measurements are here. For a new certificate export the "
            "measurements and import them into a new campaign.",
            code="no_certificate",
        )
    if found is None:
        raise NotDone(f"campaign {row['name']!r} has no certificate yet: {verdict(state)}")
    # For people who read it; `verify` looks at neither. Groups as `groups` numbers them.
    named = {"names": [state.settings.name_of(arm) for arm in range(state.settings.n_arms)]}
    return found | named | {"groups": None if state.groups is None else state.groups.tolist()}
