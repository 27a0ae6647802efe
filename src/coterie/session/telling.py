"""What a session is told: results, checked before anything is changed, in the places of the asks that they answer.

And a session with features as people see it: asks, results and centers by item and feature, where inside there are
streams (`coterie.session.feature_run`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coterie.methods.capabilities import Cells
from coterie.problem.checks import FloatArray, check_arm, check_count, check_measurement, short
from coterie.problem.features import Features
from coterie.problem.settings import Settings
from coterie.session.conversation import Conversation, Ticket
from coterie.session.feature_run import PanelMeasurements, feature_number
from coterie.session.in_blocks import claimed_in_block, need_blocks
from coterie.session.lines import check_many
from coterie.session.verdicts import nothing_to_ask


class FeatureTicket(NamedTuple):
    """An open ask: its number, its item, the round, the name of the feature or panel, and the number of its stream."""

    number: int
    arm: int
    round: int
    feature: str
    stream: int


def shown(conversation: Conversation, tickets: list[Ticket]) -> list[Any]:
    """Tickets as people see them: with features those of items and features."""
    features = conversation.settings.features
    if features is None:
        return list(tickets)
    made = []
    for ticket in tickets:
        item, panel = features.split(ticket.arm)
        made.append(FeatureTicket(ticket.number, item, ticket.round, features.panel_name(panel), ticket.arm))
    return made


def ask(conversation: Conversation, n: int | None) -> Any:
    """The next item to measure, or n of them; with features each with the name of a feature or panel."""
    tickets = shown(conversation, conversation.open(1 if n is None else check_count(n, "n", 1)))
    if not tickets:
        raise nothing_to_ask(conversation, awaited(conversation))
    if conversation.settings.features is None:
        return tickets[0].arm if n is None else [ticket.arm for ticket in tickets]
    asks = [(ticket.arm, ticket.feature) for ticket in tickets]
    return asks[0] if n is None else asks


def opened(conversation: Conversation, count: int = 1, wanted: int | None = None) -> list[Any]:
    """The next items to measure, with the ticket of each: `number`, `arm`, and with features `feature`.

    Fewer than `count`, or none, if the groups are proven (`done`) or open asks have to be answered first
    (`awaited`). `wanted`: how many somebody wants in all, if these are the first of more.
    """
    return shown(conversation, conversation.open(count, wanted))


def awaited(conversation: Conversation) -> list[Any]:
    """The open asks that `ask` waits for; none while something can be asked for."""
    return shown(conversation, conversation.awaited())


def pending(conversation: Conversation) -> list[tuple[Any, ...]]:
    """Open asks as (ticket, arm), oldest first; with features (ticket, arm, feature)."""
    if conversation.settings.features is None:
        return [ticket[:2] for ticket in conversation.tickets()]
    return [(ticket.number, ticket.arm, ticket.feature) for ticket in shown(conversation, conversation.tickets())]


def feature_of(conversation: Conversation, ticket: int) -> str | None:
    """The feature or panel that an ask is of, by its ticket; None without features."""
    features = conversation.settings.features
    return None if features is None else features.panel_name(features.split(conversation.arms_asked[ticket])[1])


def arms_asked(conversation: Conversation) -> list[int]:
    """The arm of every ask, in order."""
    features = conversation.settings.features
    if features is None:
        return conversation.arms_asked
    return [features.split(stream)[0] for stream in conversation.arms_asked]


def told(conversation: Conversation) -> list[tuple[int, Any]]:
    """All measurements, as (arm, values), in the order in which they were told; with features values by name."""
    log = conversation.log
    if not isinstance(log, PanelMeasurements):
        return log.copies()
    return [(log.features.split(stream)[0], log.by_name(row)) for row, stream in enumerate(log.arms)]


def panels_of(settings: Settings) -> int:
    """The number of panels; 1 without features, where an arm is an item."""
    return 1 if settings.features is None else settings.features.n_panels


# What was measured, and where the groups are.


def cells_of(conversation: Conversation) -> Cells:
    """What was measured and counted, a row for each item and feature with results, ordered by feature, then item."""
    log = conversation.log
    assert isinstance(log, PanelMeasurements)
    keys: list[int] = []
    numbers: list[float] = []
    n_arms = conversation.settings.n_arms
    for row in conversation.counted_rows:
        item, panel = log.features.split(log.arms[row])
        for feature, value in zip(log.features.features_of(panel), log.values[row].tolist(), strict=True):
            if value == value:
                keys.append(feature * n_arms + item)
                numbers.append(value)
    touched, place = np.unique(np.array(keys, dtype=np.int64), return_inverse=True)
    counts = np.bincount(place, minlength=touched.size).astype(np.int64)
    means = np.bincount(place, weights=np.array(numbers), minlength=touched.size) / np.maximum(counts, 1)
    features, items = np.divmod(touched, n_arms)
    return Cells(items, features, counts, means)


def found_features(conversation: Conversation) -> list[str]:
    """The features by which groups are told apart, in the order in which they were found."""
    features = conversation.settings.features
    assert features is not None
    frozen = [made for _, made in conversation.decisions if made["event"] in ("freeze", "round")]
    last = max((n for n, made in enumerate(frozen) if made["event"] == "freeze"), default=len(frozen))
    named = [bet["feature"] for made in frozen[last:] for bet in (made.get("features") or made.get("joins") or ())]
    numbers = dict.fromkeys([*named, *conversation.run.found_features])
    return [features.names[number] for number in numbers]


def refuse_by_feature(conversation: Conversation, wanted: str) -> None:
    """That a session has no features, where something cannot be had with them."""
    if conversation.settings.features is not None:
        raise ValueError(
            f"{wanted} looks at whole items, and here features are measured one by one: read labels, cells and "
            "certificate"
        )


# Saved sessions: by item and panel. Inside, and while they are read, by stream.


def saved_by_item(content: dict[str, Any], features: Features | None) -> dict[str, Any]:
    """What is saved of a session with features: asks as [arm, round, panel], results with their panel."""
    if features is None:
        return content
    log = []
    for row in content["log"]:
        item, panel = features.split(row["arm"])
        numbers = [None if value != value else value for value in row["values"]]
        log.append({"arm": item, "panel": panel, "values": numbers, "ticket": row["ticket"]})
    asks = [[features.split(stream)[0], of_round, features.split(stream)[1]] for stream, of_round in content["asks"]]
    return content | {"log": log, "asks": asks}


def saved_by_stream(saved: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """The inverse of `saved_by_item`; ValueError names what does not fit."""
    features = settings.features
    if features is None:
        return saved
    asks, log = [], []
    for ask in saved["asks"] if isinstance(saved["asks"], list) else ():
        if not isinstance(ask, list | tuple) or len(ask) != 3:
            raise ValueError(f"a saved ask must be [arm, round, panel], got {short(ask)}")
        asks.append([_stream(settings, features, ask[0], ask[2]), ask[1]])
    for i, row in enumerate(saved["log"] if isinstance(saved["log"], list) else ()):
        if not isinstance(row, dict) or not {"arm", "panel", "values", "ticket"} <= set(row):
            raise ValueError(f"row {i} of the saved log must have arm, panel, values and ticket, got {short(row)}")
        log.append(row | {"arm": _stream(settings, features, row["arm"], row["panel"])})
    return saved | {"asks": asks, "log": log}


def _stream(settings: Settings, features: Features, arm: Any, panel: Any) -> int:
    number = check_count(panel, "panel", 0)
    if number >= features.n_panels:
        raise ValueError(f"unknown panel {number}: panels are 0..{features.n_panels - 1}")
    return features.stream(check_arm(arm, settings.n_arms), number)


def tell(
    conversation: Conversation, arm: Any, x: Any, ticket: Any = None, block: Any = None, feature: Any = None
) -> None:
    """Report a measurement: asked for or not, in any order; after `done` it is kept and changes nothing.

    Parameters
    ----------
    arm : int, str or a sequence of them
        The item measured, by number or name; of several, all results are taken or none.
    x : float or array
        The d numbers measured; (n, d) of several items. With features: the number of a feature, the numbers of a panel
        in its order, or a dictionary such as {"iron": 3.1, "zinc": 0.8}; of several items a list of these.
    ticket : int or a sequence of them, optional
        The ask that is answered; by default the oldest open one for the item, and the feature. Give it where results
        can overtake each other: CROC's proof counts them in ask order.
    block : str, optional
        The block that it was measured in: it must be that of the ask. Of a result that nobody asked for, a block
        named before; it then serves estimates, and no proof.
    feature : str or a sequence of them, optional
        The feature or panel that was measured, where neither a ticket nor the names in `x` say so.
    """
    several = isinstance(arm, list | tuple) or (isinstance(arm, np.ndarray) and arm.ndim == 1)
    arms = [conversation.arm_named(given) for given in (arm if several else [arm])]
    tickets: list[Any]
    if conversation.settings.features is not None:
        arms, values, tickets = _by_feature(conversation, arms, x, ticket, feature, several)
    elif feature is not None:
        raise ValueError(f"feature={short(feature)} is for a session with features: start it with features=[…]")
    elif several:
        values, tickets = check_many(len(arms), x, ticket, conversation.settings.dim)
    else:
        values, tickets = check_measurement(x, conversation.settings.dim)[None], [ticket]
    if block is not None:
        need_blocks(conversation, block=block)
        tickets = claimed_in_block(conversation, arms, tickets, block)
    claimed = conversation.lines.claim(arms, tickets)
    for result in zip(arms, values, conversation.log.in_noise_units(arms, values), claimed, strict=True):
        conversation.absorb(result[0], result[1], result[3], result[2], block)


def checked_answer(conversation: Conversation, ticket: int | None, given: Any) -> FloatArray:
    """The numbers of a feature or panel that answer an open ask; ValueError says why they cannot be told."""
    stream = conversation.arms_asked[conversation.lines.checked_open(ticket)]
    row = conversation.log.checked(stream, given)
    conversation.log.in_noise_units([stream], row[None])
    features = conversation.settings.features
    assert features is not None
    return row[: len(features.features_of(features.split(stream)[1]))]


def _by_feature(
    conversation: Conversation, items: list[int], x: Any, ticket: Any, feature: Any, several: bool
) -> tuple[list[int], FloatArray, list[Any]]:
    """The streams, rows and tickets of results of features."""
    n = len(items)
    given = [
        _each(part, n, name) if several else [part]
        for part, name in ((x, "measurements"), (ticket, "tickets"), (feature, "features"))
    ]
    streams = [stream_told(conversation, *told) for told in zip(items, *given, strict=True)]
    rows = [conversation.log.checked(stream, told) for stream, told in zip(streams, given[0], strict=True)]
    return streams, np.array(rows).reshape(n, conversation.log.width), given[1]


def _each(given: Any, n: int, name: str) -> list[Any]:
    """One for each of n results."""
    if given is None or isinstance(given, str):
        return [given] * n
    if isinstance(given, Mapping) or not hasattr(given, "__len__") or len(given) != n:
        raise ValueError(f"{n} items need as many {name}, got {short(given)}")
    return list(given)


def stream_told(conversation: Conversation, item: int, x: Any, ticket: Any = None, feature: Any = None) -> int:
    """The stream that a result of an item is of: that of its ticket, of the feature named, or of the names in it."""
    features = conversation.settings.features
    assert features is not None
    panel = None if feature is None else features.panel_of(feature if isinstance(feature, str) else str(feature))
    if ticket is not None:
        stream = conversation.arms_asked[conversation.lines.checked_open(ticket)]
        of_item, of_panel = features.split(stream)
        if of_item != item or panel not in (None, of_panel):
            asked = f"{features.panel_name(of_panel)!r} of item {conversation.settings.name_of(of_item)}"
            told = f"item {conversation.settings.name_of(item)}" if panel is None else f"{feature!r} of item {item}"
            raise ValueError(f"ticket {ticket} is for {asked}, not for {told}")
        return stream
    if panel is None:
        if not isinstance(x, Mapping):
            raise ValueError(
                "say which feature or panel was measured: feature=…, the ask, or names in the result such as "
                f"{{{features.names[0]!r}: 3.1}}, got {short(x)}"
            )
        panel = _panel_with(conversation, features, item, x)
    return features.stream(item, panel)


def _panel_with(conversation: Conversation, features: Features, item: int, given: Mapping[Any, Any]) -> int:
    """The panel that a result with these features is of: of open asks for the item first, the oldest that fits."""
    told = {feature_number(features, key) for key in given}
    if not told:
        raise ValueError(f"a result of item {conversation.settings.name_of(item)} names no feature")
    asked = [features.split(place.arm) for place in conversation.lines.pending.values()]
    around = dict.fromkeys(panel for of_item, panel in asked if of_item == item)
    around |= dict.fromkeys(_panels_with(features, min(told)))
    whole = [panel for panel in around if told == set(features.features_of(panel))]
    partly = [panel for panel in around if told < set(features.features_of(panel))]
    if not whole and not partly:
        names = short([features.names[feature] for feature in sorted(told)])
        raise ValueError(f"no panel has {names} together: tell them apart")
    return (whole or partly)[0]


def _panels_with(features: Features, feature: int) -> Sequence[int]:
    """The panels that have a feature, those with fewest others first."""
    panels = features.panels_with.get(feature, ()) if features.panels else (feature,)
    return sorted(panels, key=lambda panel: len(features.features_of(panel)))
