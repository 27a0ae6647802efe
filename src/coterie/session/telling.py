"""What a session is told: results, checked before anything is changed, in the places of the asks that they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, check_measurement, short
from coterie.problem.features import Features
from coterie.session.conversation import Conversation
from coterie.session.feature_run import feature_number
from coterie.session.in_blocks import claimed_in_block, need_blocks
from coterie.session.lines import check_many


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
