"""What a server answers, and what it is told, as typed dictionaries."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Summary(TypedDict):
    """A campaign in the list."""

    id: str
    name: str
    method: str
    delta: float
    n_arms: int
    n_clusters: int | None
    question: str
    dim: int
    t: int
    done: bool
    created: str
    open_leases: int
    archived: str | None


class Status(TypedDict):
    """How far a campaign is; the server may send more than these fields (docs/SERVER.md)."""

    id: str
    name: str
    done: bool
    proven: bool
    confirmed: list[int] | None
    t: int
    measurements: int
    cut: bool
    pulls: list[int] | None
    labels: list[int] | None
    centers: list[list[float]] | None
    groups: list[dict[str, Any]]
    evidence: dict[str, Any]
    progress: dict[str, Any]
    forecast: float | None
    forecast_low: float | None
    forecast_high: float | None
    waiting: int
    waiting_for: list[Awaited]
    open_leases: list[dict[str, Any]]
    failures: dict[str, Any]
    archived: str | None
    lease_seconds: float
    alarm: dict[str, Any] | None
    alarms: list[dict[str, Any]]
    homogeneity: dict[str, Any] | None
    verdict: str
    assumed: str
    deadline_used: NotRequired[float]
    deadline_left: NotRequired[float]
    deadline_reached: NotRequired[bool]


class Ask(TypedDict):
    """An item to measure, leased until `expires`."""

    arm: int
    name: str
    lease: str
    expires: str
    block: NotRequired[str]
    feature: NotRequired[str]
    values: NotRequired[list[str]]
    cost: NotRequired[float]


class Awaited(TypedDict):
    """An ask that everybody waits for: of whom, and `until` when it is given up or asked of somebody else, if known."""

    arm: int
    name: str
    lease: str
    worker: str
    asked: str
    until: str | None
    results: int


class Asks(list[Ask]):
    """Items to measure. None once the campaign is `done`, nor while it would be in vain: see `waiting_for`; nor where
    the block is `full`, or the deadline is reached (`deadline_reached`).

    Parameters
    ----------
    answer : dict
        The server's answer.
    """

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer["asks"])
        self.done: bool = answer["done"]
        self.waiting_for: list[Awaited] = answer.get("waiting_for", [])  # an earlier release says nothing
        self.full: bool = answer.get("full", False)
        self.deadline_reached: bool = answer.get("deadline_reached", False)


class Measurement(TypedDict):
    """A result: the item by number or name, its numbers, and the lease that it answers.

    `id`: the same id twice counts once; one is made up if it is left out.
    """

    arm: int | str
    values: Any
    lease: NotRequired[str | None]
    id: NotRequired[str]
    worker: NotRequired[str | None]
    block: NotRequired[str | None]
    feature: NotRequired[str | None]


class Item(TypedDict):
    """An item: its measurements that counted, and its group, None before there are groups."""

    arm: int
    name: str
    measurements: int
    group_id: int | None
    retired: bool


class Recorded(TypedDict):
    """A result on record: what, by whom, when (`at`, ISO 8601 in UTC), and whether it counted.

    `token`: the id and the name of the token that it was told with, if one was recorded.
    """

    seq: int
    id: str
    arm: int
    name: str
    values: list[float]
    lease: str | None
    worker: str | None
    asked_for: bool
    at: str
    counted: bool
    token: NotRequired[dict[str, str | None]]


class Told(TypedDict):
    """What became of results; `warnings` if a value lies far from what its item gave before.

    `not_counted`: results whose ask was passed on to somebody else, who has answered it.
    """

    accepted: int
    duplicates: int
    done: bool
    warnings: NotRequired[list[dict[str, Any]]]
    not_counted: NotRequired[list[dict[str, Any]]]
