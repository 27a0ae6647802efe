"""What the server answers, as OpenAPI describes it. Fields may be added to these; none is renamed."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """A JSON object to which later releases may add."""

    model_config = ConfigDict(extra="allow")


class ErrorContent(BaseModel):
    """What went wrong: a code for programs, a sentence for people, the part of the request at fault."""

    code: str
    message: str
    field: str | None


class Error(BaseModel):
    """The shape of every error."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "code": "bad_value",
                        "message": "measurements[3].values must be finite",
                        "field": "measurements[3].values",
                    }
                }
            ]
        }
    )
    error: ErrorContent


class Created(Answer):
    """A new campaign with its settings."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"id": "5f0c7c0a1c9d4b7f8e21a3d4", "name": "fruit"}]}
    )
    id: str
    name: str
    created: str


class Summary(Answer):
    """A campaign in the list."""

    id: str
    name: str
    method: str
    delta: float
    n_arms: int
    n_clusters: int
    dim: int
    t: int
    done: bool
    created: str
    open_leases: int


class CampaignList(Answer):
    """All campaigns, oldest first."""

    campaigns: list[Summary]


class Weakest(Answer):
    """The pair of items or groups whose evidence is furthest from its threshold."""

    arm: int
    name: str
    group: int
    against: int | None
    statistic: float | None
    threshold: float | None
    pulls_left: float | None


class Evidence(Answer):
    """What the stopping rule reads."""

    statistic: float | None
    threshold: float | None
    weakest: Weakest | None


class Alarm(Answer):
    """Items that are pairwise known to differ, one more than there should be groups; `arm` is the last of them."""

    arm: int
    name: str
    arms: list[int]
    names: list[str]
    probability: float
    text: str


class Homogeneity(Answer):
    """Whether each group looks like one. `evidence` is in the order of `labels`; `mixed` are places in it."""

    level: float
    threshold: float
    evidence: list[float]
    mixed: list[int]
    text: str


class Status(Answer):
    """How far a campaign is."""

    id: str
    name: str
    done: bool
    t: int
    seq: int
    measurements: int
    pulls: list[int]
    labels: list[int] | None
    centers: list[list[float]] | None
    groups: list[dict[str, Any]]
    evidence: Evidence
    forecast: float | None
    waiting: int
    open_leases: list[dict[str, Any]]
    workers: list[dict[str, Any]]
    alarm: Alarm | None
    homogeneity: Homogeneity | None
    verdict: str
    assumed: str
    misfits: list[dict[str, Any]]
    doubt: str | None
    certifies: bool


class Ask(Answer):
    """An item to measure, leased until `expires`."""

    arm: int
    name: str
    lease: str
    expires: str


class Asks(Answer):
    """What to measure next; empty once done."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "done": False,
                    "asks": [
                        {"arm": 2, "name": "kiwi", "lease": "9f2c31d0a4b5", "expires": "2026-01-31T13:00:00.000Z"}
                    ],
                }
            ]
        },
    )
    done: bool
    asks: list[Ask]


class Told(Answer):
    """What became of the results."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"accepted": 1, "duplicates": 0, "done": False}]}
    )
    accepted: int
    duplicates: int
    done: bool
    warnings: list[dict[str, Any]] = Field(
        default=[], description="Results far from what their item gave before: mistyped, perhaps. Left out if none is."
    )


class Freed(Answer):
    """The lease is free again."""

    freed: bool
    lease: str
    arm: int
    name: str


class Page(Answer):
    """Results in order; `next` is the `after` of the following page."""

    measurements: list[dict[str, Any]]
    next: int | None


class History(Answer):
    """The evidence over time."""

    t: list[int]
    statistic: list[float | None]
    threshold: list[float | None]


class Health(Answer):
    """The store answers."""

    status: str
