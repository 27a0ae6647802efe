"""The certificate of a session, and the log it is checked against: results as they counted, and what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.certificate.document import Certificate
from coterie.methods.table import certifying_methods
from coterie.problem.families import bounds_variance
from coterie.problem.question import ExactGroups
from coterie.problem.sentences import assumption_in_words, revisions_in_words
from coterie.session.conversation import ASKED, FORGOTTEN, TOLD, Conversation
from coterie.session.corrections import corrections_json
from coterie.session.groups import labels_of
from coterie.session.in_blocks import placed_rows
from coterie.session.record_arrays import asks_of, missed_asks, open_asks, overtaken_rows
from coterie.session.replaying import revisions_of
from coterie.session.verdicts import alarm_of, homogeneity_of

if TYPE_CHECKING:
    from coterie.session.handover import Handover

HOMOGENEITY_RULE = 2
"""Of a certificate: release 0.2 followed another one, for a known noise only."""


def need_certificates(conversation: Conversation, wanted: str) -> None:
    """That the method has certificates; `wanted`: what needs them."""
    if not conversation.method.certifies:
        name = conversation.settings.method
        raise ValueError(f"only method {certifying_methods()} has {wanted}, this session uses {name!r}")


def certificate_of(conversation: Conversation) -> Certificate | None:
    """The proof as plain JSON once `proven`, else None; `certificate.verify(events)` re-checks it."""
    need_certificates(conversation, "a certificate")
    if not conversation.proven:
        return None
    proof = conversation.run.certificate([decision for _, decision in conversation.decisions])
    return None if proof is None else Certificate(proof | beside_certificate(conversation, proof))


def beside_certificate(conversation: Conversation, proof: dict[str, Any]) -> dict[str, Any]:
    """What a certificate says beside its proof, with items and groups as they are numbered there."""
    settings, confirmed = conversation.settings, conversation.run.confirmed
    homogeneity, alarm, own = homogeneity_of(conversation), alarm_of(conversation), labels_of(conversation)
    assert own is not None
    holes = settings.features is not None and settings.features.holes
    present = proof.get("present", range(settings.n_arms))
    _, firsts = np.unique(proof["labels"], return_index=True)
    revised = {
        "revisions": revisions_of(conversation),
        "revisions_in_words": revisions_in_words(conversation.items.retired),
    }
    beside = (revised if "present" in proof else {}) | {
        "delta": settings.delta,
        "noise": settings.noise.to_json(),
        "assumes": assumption_in_words(
            settings.noise, settings.question.kind, settings.blocks, settings.strict_blocks, holes
        ),
        "alarm": None if alarm is None else {"arms": [list(present).index(arm) for arm in alarm.arms]},
        "confirm": None if confirmed is None else {"share": settings.confirm, "measurements": confirmed[0]},
        "homogeneity": None
        if homogeneity is None
        else {
            "rule": HOMOGENEITY_RULE,
            "level": homogeneity.level,
            "threshold": homogeneity.threshold,
            "evidence": [homogeneity.evidence[own[present[arm]]] for arm in firsts],
        },
    }
    from coterie.certificate.beside import stated_beside

    return beside | stated_beside(proof | beside, events_of(conversation))


def events_of(conversation: Conversation) -> list[dict[str, Any]]:
    """The measurement log as CROC counts it: results in ask order of each arm, freezes, rounds."""
    need_certificates(conversation, "events")
    log, blocks = conversation.log, conversation.settings.blocks
    shown = {
        "cell": ("event", "cell", "block", "epoch", "pulls", "bet"),
        "lapse": ("event", "cell", "missing", "strict"),
        "freeze": ("event", "epoch", "labels", "cores", "bet", "features"),
        "round": ("event", "round", "epoch", "pulls", "asks", "seed", "bet", "settled", "joins", "bets"),
        "list": ("event", "epoch", "pairs"),
        "statements": ("event", "epoch", "representatives", "listed"),
        "revision": ("event", "added", "retired", "n_clusters", "delta"),
    }
    exact = conversation.settings.question.kind == ExactGroups.kind
    if not exact:
        names = ("references", "level", "epsilon", "eta", "height", "balls", "near", "far")
        shown["freeze"] = ("event", "epoch", "labels", *names)
        shown["resolution"] = ("event", "epoch", "epsilon", "eta")
    between = [(t, {key: made[key] for key in shown[made["event"]] if key in made})
               for t, made in conversation.decisions if made["event"] in shown]  # fmt: skip
    events: list[dict[str, Any]] = []
    by_variance = exact and bounds_variance(conversation.settings.noise)
    alone = rows_asked_alone(conversation, log.tickets) if by_variance else set()
    late = overtaken_rows(conversation) if blocks is None else set()  # in a cell the order does not matter
    placed = {} if blocks is None else placed_rows(conversation)
    features = conversation.settings.features
    asks = asks_of(conversation)
    at = next_ask = 0
    for t, (row, of_round) in enumerate(zip(conversation.counted_rows, conversation.counted_rounds, strict=True)):
        while at < len(between) and between[at][0] <= t:
            events.append(between[at][1])
            at += 1
        values = log.values[row].tolist()
        event = {
            "event": "result",
            "arm": conversation.item_of(log.arms[row]),
            "round" if blocks is None else "cell": of_round,
            "values": values,
        }
        if features is not None:
            event["panel"] = features.split(log.arms[row])[1]
            event["values"] = [None if value != value else value for value in values]
        if blocks is not None and of_round == 0:
            del event["cell"]
        if row in placed:
            event["block"] = placed[row]
        if row in alone:
            event["alone"] = True
        if log.tickets[row] is None or (not exact and _was_stale(conversation, t, log.tickets[row])):
            event["asked"] = False
        elif (ticket := log.tickets[row]) is not None:
            if ticket != next_ask:
                event["ask"] = ticket
            next_ask = ticket + 1
        if row in late:
            event["late"] = True
        events.append(event)
    missed: list[dict[str, Any]] = [{"event": "missed", **ask} for ask in missed_asks(conversation)]
    corrected: list[dict[str, Any]] = [{"event": "correction", **made} for made in corrections_json(conversation)]
    head = _head(conversation, open_asks(asks))
    return [head, *events, *(event for _, event in between[at:]), *missed, *corrected]


def _head(conversation: Conversation, still_open: list[list[int]]) -> dict[str, Any]:
    """What a log says of itself: its format, the features where they are measured apart, asks that are open."""
    from coterie.certificate.beside import LOG_FORMAT

    features = conversation.settings.features
    head: dict[str, Any] = {"event": "log", "format": LOG_FORMAT}
    if features is not None:
        head["features"] = features.to_json()
    if still_open:
        head["open"] = [[ask, conversation.item_of(arm)] for ask, arm in still_open]
    return head


def _was_stale(conversation: Conversation, t: int, ticket: int | None) -> bool:
    """Whether the result that counted as number t was asked for before a revision that came before it."""
    return ticket is not None and any(ticket < made.ticket for made in conversation.revisions if made.t <= t)


def rows_asked_alone(conversation: Conversation, tickets: Sequence[int | None]) -> set[int]:
    """Places in the log of the results that were asked for while no other ask was open.

    `tickets`: the ask that each result of the log answers, None if nobody asked for it. If an ask of the same arm was
    given up before the result came, it is left out: so is a result that came too late to count.
    """
    given_up = iter(conversation.given_up)
    rows: set[int] = set()
    open_asks, ticket, row = 0, 0, 0
    alone: int | None = None  # the ask made while no other was open, until it is answered
    for kind in conversation.order:
        if kind == ASKED:
            if ticket == conversation.next_ticket:
                break  # it found the groups, and opened no ticket: nothing counts any more
            if open_asks == 0:
                alone = ticket
            open_asks, ticket = open_asks + 1, ticket + 1
        elif kind == TOLD:
            if tickets[row] is not None:
                open_asks -= 1
                if tickets[row] == alone:
                    rows.add(row)
                    alone = None
            row += 1
        elif kind == FORGOTTEN:
            gone = next(given_up)
            open_asks -= 1
            if alone is not None and conversation.arms_asked[gone] == conversation.arms_asked[alone]:
                alone = None
    return rows


def handover_now(conversation: Conversation) -> Handover:
    """What is handed over (`coterie.session.handover`)."""
    from coterie.session.handover import handover_of  # here: SciPy takes a while to load

    return handover_of(conversation)
