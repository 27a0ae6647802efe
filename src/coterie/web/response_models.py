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


class DataAlarm(Answer):
    """Something that speaks against the way in which the data were made; it stops nothing.

    `kind` is noise, drift, dependence, failures or lateness; `evidence` is a logarithm and has reached `threshold`;
    `text` says what was seen and what to do. For nothing it ever comes with probability at most `level`.
    """

    kind: str
    seen: str
    advice: str
    evidence: float
    threshold: float
    level: float
    harmless: bool
    text: str


class Homogeneity(Answer):
    """Whether each group looks like one. `evidence` is in the order of `labels`; `mixed` are places in it.

    With `confirm`: how many measurements were made after the proof, and which difference inside a group would have been
    seen in about nine of ten runs, for each number of a measurement (null: none).
    """

    level: float
    threshold: float
    evidence: list[float]
    mixed: list[int]
    confirmed: int | None
    visible: list[float | None] | None
    text: str


class Question(Answer):
    """What was asked for: `kind` is groups, resolution or linkage; `claim` is what a proof claims."""

    kind: str
    words: str
    claim: str


class Border(Answer):
    """An item near a border: its group, and the other groups that it could also belong to, by their ids."""

    arm: int
    name: str
    group_id: int | None
    could_be: list[int | None]


class Missed(Answer):
    """How many asks failed, expired, were answered late, and were undone."""

    asked: int
    failed: int
    expired: int
    late: int
    undone: int


class MissedOfItem(Missed):
    """Those of an item."""

    arm: int
    name: str


class MissedOfWorker(Missed):
    """Those of a worker."""

    worker: str


class Failures(Missed):
    """Asks without a result, or with a late one: in all, by item, by worker; `text` is null if there are none."""

    items: list[MissedOfItem]
    workers: list[MissedOfWorker]
    text: str | None


class Progress(Answer):
    """How far a campaign is: `proven` of `needed` claims, `settled` of `items` items; `share` in [0, 1] always moves.

    Claims are differences of an item with another group where K groups are asked for, tests of nearness and farness
    where a resolution is. `share`: the measurements so far over those that are expected in all.
    """

    proven: int
    needed: int
    settled: int
    items: int
    share: float
    words: str


class Awaited(Answer):
    """An ask that is waited for: of whom, and `until` it is given up or asked of somebody else (null: nobody knows)."""

    arm: int
    name: str
    lease: str
    worker: str
    asked: str
    until: str | None
    results: int = Field(description="Results of the same item that wait behind it.")


class Status(Answer):
    """How far a campaign is."""

    id: str
    name: str
    done: bool
    proven: bool = Field(description="Whether the groups are found; with `confirm` measuring goes on after that.")
    confirmed: list[int] | None = Field(
        description="Measurements after the proof so far, and how many there are to be; null without `confirm`."
    )
    t: int
    seq: int
    measurements: int
    cut: bool = Field(
        description="There are more than 100 000 items: `pulls`, `labels` and `names` are null, there are no `costs`, "
        "and groups list their first 1000 items. `items` has them all, page by page."
    )
    named: bool = Field(description="Whether the items have names.")
    pulls: list[int] | None
    pulls_summary: dict[str, float] = Field(description="`least`, `median` and `most` measurements of an item.")
    labels: list[int] | None
    centers: list[list[float]] | None
    groups: list[dict[str, Any]]
    evidence: Evidence
    progress: Progress
    forecast: float | None = Field(description="Measurements still needed, as likely more as fewer; null if unknown.")
    forecast_low: float | None = Field(description="In about 8 of 10 runs so many are needed at least …")
    forecast_high: float | None = Field(description="… and so many at most.")
    waiting: int
    waiting_for: list[Awaited] = Field(description="Asks without which nobody is asked for anything new.")
    holding: list[Awaited] = Field(description="Asks that results of the same item wait behind.")
    open_leases: list[dict[str, Any]]
    workers: list[dict[str, Any]]
    failures: Failures
    archived: str | None
    lease_seconds: float
    alarm: Alarm | None
    alarms: list[DataAlarm]
    homogeneity: Homogeneity | None
    question: Question
    resolutions: list[dict[str, Any]] = Field(
        description="The resolutions asked for so far, the present one last; `chosen_at` counts the results before it."
    )
    retired: list[dict[str, Any]] = Field(description="Items that were retired: nothing is claimed about them.")
    revisions: list[dict[str, Any]] = Field(description="What was revised on the way, each with the results before it.")
    borders: list[Border]
    verdict: str
    assumed: str
    noise_in_words: str
    misfits: list[dict[str, Any]]
    doubt: str | None
    corrections: list[dict[str, Any]] = Field(
        description="Values that were told wrong: `measurement`, `old`, `new`, `reason`, `by`, `at`."
    )
    certifies: bool
    cost: float | None = Field(description="What all measurements have cost; null if there are no costs.")
    cost_left: float | None = Field(description="What is expected to be spent still; null if nobody knows.")


class Budget(Answer):
    """What `more` further measurements are expected to bring, by a forecast; `words` says it in a sentence or two.

    `chance`: that the campaign is done by then; null if nobody can say yet. `delta`: the error probability for which
    they would be about enough. `resolution`: the finest that they are expected to allow, where one is asked for.
    """

    id: str
    name: str
    t: int
    done: bool
    more: int
    chance: float | None
    delta: float | None
    resolution: dict[str, Any] | None
    proven: int
    needed: int
    settled: int
    items: int
    words: str


class Ask(Answer):
    """An item to measure, leased until `expires`."""

    arm: int
    name: str
    lease: str
    expires: str


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
    old: list[float] | None
    values: list[float]
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


class Compiling(Answer):
    """What is being compiled, once after an installation; all null if nothing is."""

    compiling: str | None
    seconds: float | None = Field(description="Since it began.")
    expected: float | None = Field(description="About how many it takes in all.")


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
