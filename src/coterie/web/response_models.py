"""What the server answers, as OpenAPI describes it. Fields may be added to these; none is renamed."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

_WHEN = {
    400: "The body is not JSON, or not UTF-8.",
    401: "No token, or one that is not known.",
    403: "The token may not do this, or the request came from another site's page.",
    404: "There is no such campaign, or no such lease.",
    409: "It contradicts what is on record, the campaign is not done, or its log is damaged.",
    413: "The body is too large.",
    415: "The body is not declared as JSON, or as a table where one is taken.",
    422: "A value is wrong; `field` says which.",
    429: "Too many requests; see Retry-After.",
    503: "The store cannot be used now; nothing was changed. Try again.",
}


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
    n_clusters: int | None = Field(description="How many groups there are; null where a resolution was asked for.")
    question: str
    dim: int
    t: int
    done: bool
    created: str
    open_leases: int
    archived: str | None


class CampaignList(Answer):
    """Campaigns, oldest first; `next` is the `after` of the following page."""

    campaigns: list[Summary]
    next: str | None


class Awaited(Answer):
    """An ask that is waited for: of whom, and `until` it is given up or asked of somebody else (null: nobody knows)."""

    arm: int
    name: str
    lease: str
    worker: str
    asked: str
    until: str | None
    results: int = Field(description="Results of the same item that wait behind it.")


class Ask(Answer):
    """An item to measure, leased until `expires`."""

    arm: int
    name: str
    lease: str
    expires: str
    block: str | None = Field(default=None, description="With blocks: the one to measure it in. Left out without.")
    feature: str | None = Field(default=None, description="With features: the one, or the panel, to measure.")
    values: list[str] | None = Field(default=None, description="With features: what the numbers of its result are.")
    cost: float | None = Field(default=None, description="With features that have costs: what it costs.")


class Asks(Answer):
    """What to measure next; empty once done, and while it would be in vain: `waiting_for` then says why."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "done": False,
                    "asks": [
                        {"arm": 2, "name": "kiwi", "lease": "9f2c31d0a4b5", "expires": "2026-01-31T13:00:00.000Z"}
                    ],
                    "waiting_for": [],
                }
            ]
        },
    )
    done: bool
    asks: list[Ask]
    waiting_for: list[Awaited]
    full: bool = Field(default=False, description="With blocks: nothing more of use fits into this one.")
    deadline_reached: bool = Field(default=False, description="The deadline leaves no more. Left out if it does.")


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
    not_counted: list[dict[str, Any]] = Field(
        default=[], description="Results whose ask somebody else has answered: kept, not counted. Left out if none is."
    )


class ClosedBlock(Answer):
    """A block that is closed, and how many of its asks were given back."""

    closed: str
    given_up: int
    done: bool


class Freed(Answer):
    """The lease is free again; `ended` says how it ended: failed, undone, or expired before."""

    freed: bool
    lease: str
    arm: int
    name: str
    ended: str


class Chosen(Answer):
    """The resolution that is asked for now; `changed` is false if it was so already.

    `epoch`: how many candidates were frozen before, each with a share of δ that is spent. `forecast`: measurements that
    are expected to be needed still; null before every item was measured, and where that is too early to say.
    """

    changed: bool
    resolution: dict[str, Any]
    epoch: int
    done: bool
    forecast: float | None


class Corrected(Answer):
    """A value was replaced; `corrected` is false if it was so already. `reopened`: the proof is taken back by it."""

    corrected: bool
    arm: int
    name: str
    old: list[float | None] | None
    values: list[float | None]
    done: bool
    reopened: bool


class RevisedCampaign(Answer):
    """What is asked for after a revision. `items`: how many are present; `epochs`: frozen so far; `t`: that counted."""

    items: int
    retired: list[str]
    n_clusters: int | None
    delta: float
    epochs: int
    t: int
    done: bool
    deadline: float | None = Field(default=None, description="Left out if there is none.")


class DamagedRow(Answer):
    """A row of a campaign's log that is not what was written."""

    campaign: str
    row: int


class Health(Answer):
    """The store can be written. `status` is ok, or damaged: rows of logs were changed on disk, the first of each
    campaign is listed.
    """

    status: str
    damaged: list[DamagedRow]


class ItemsRead(Answer):
    """A list of items as it was understood; `costs` is null where there are none, or where they are not used."""

    count: int
    names: list[str]
    costs: list[float] | None
    remarks: list[str]


class Imported(Answer):
    """What became of a table. With `check`, what would: `new`, `duplicates`, `unknown_items` and `problems`, with
    their places in the table.
    """

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"accepted": 120, "duplicates": 0, "done": False}]}
    )
    duplicates: int
    order: dict[str, Any]


class Archived(Answer):
    """Since when the campaign is archived; null if it is not."""

    archived: str | None


class LeaseTime(Answer):
    """How long a worker may take now, and how long before."""

    changed: bool
    lease_seconds: float
    before: float


class Deleted(Answer):
    """The id of a campaign that is gone, what it was called, and how many measurements it had."""

    deleted: str
    name: str
    measurements: int


def errors_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that an endpoint may answer with, beside those that every one may."""
    return {status: {"model": Error, "description": _WHEN[status]} for status in (401, 403, 429, *statuses)}


READING = errors_of(404, 409, 422, 503)
WRITING = errors_of(400, 404, 409, 413, 415, 422, 503)


class Attachment(Answer):
    """A file that belongs to a measurement."""

    measurement: str
    file: str
    type: str
    size: int
    sha256: str
    arm: int
    name: str
    at: str


class AttachmentList(Answer):
    """Files, oldest first."""

    attachments: list[Attachment]
