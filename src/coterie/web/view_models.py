"""What the server answers about a campaign: its status, pages of results, what is proven, the picture.

Fields may be added to these; none is renamed.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from coterie.web.response_models import Answer, Awaited


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
    open_blocks: list[str] = Field(description="Blocks that were asked for and are not closed, if there are blocks.")
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
    deadline_used: float | None = Field(
        default=None, description="With a deadline: what results and open asks take of it. Left out without."
    )
    deadline_left: float | None = Field(default=None, description="With a deadline: what is left of it.")
    deadline_reached: bool = Field(default=False, description="With a deadline: it leaves nothing to ask for.")


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


class Page(Answer):
    """Results in order; `next` is the `after` of the following page."""

    measurements: list[dict[str, Any]]
    next: int | None


class Item(Answer):
    """An item: its measurements that counted, and its group, null before there are groups."""

    arm: int
    name: str
    measurements: int
    group_id: int | None
    retired: bool


class ItemPage(Answer):
    """Items in order; `next` is the `after` of the page that follows, null at the end."""

    items: list[Item]
    next: int | None


class MeasuredCells(Answer):
    """What was measured, where features are measured one by one. Items stand in the order of their groups."""

    id: str
    name: str
    t: int
    done: bool
    measured: int = Field(description="How many items and features have results.")
    touched: int = Field(description="How many features have results, of so many in `of`.")
    of: int
    features: list[dict[str, Any]] = Field(description="The columns: those found first, then those measured most.")
    items: list[dict[str, Any]] = Field(description="Empty if there are more than 2000: `cut` says so.")
    cells: list[list[float]] = Field(description="Item, column, results, mean.")
    groups: list[dict[str, Any]] = Field(description="Their means in the columns; null where there is no result.")
    cut: str | None


class History(Answer):
    """The evidence over time."""

    t: list[int]
    statistic: list[float | None]
    threshold: list[float | None]


class Pairs(Answer):
    """Pairs of items: what is proven of each, how many there are, and the first of them as [low, high]."""

    means: str
    count: int
    listed: list[list[int]]


class ItemSoFar(Answer):
    """What is proven of an item: items that share a letter are not proven different.

    `possible` are the ids of the groups that it may still belong to; `settled`: it is known which; `used`: how many of
    its results count.
    """

    arm: int
    name: str
    group_id: int | None
    letters: str
    possible: list[int]
    settled: bool
    used: int


class CampaignHandover(Answer):
    """What is used of a deadline, and how wrong the groups of items that are not settled may be: they are a guess."""

    spent: float
    deadline: float
    left: float
    misplaced_at_least: float | None = Field(description="About so many items are in a wrong group, at least.")
    confusable: float | None = Field(description="About how probable it is that the groups themselves are wrong.")
    words: str


class PartialAnswers(Answer):
    """What is proven now. Anything in it, now or at an earlier moment, is wrong with probability at most `error`."""

    id: str
    name: str
    t: int
    measurements: int
    done: bool
    question: Question
    error: float
    pairs: int = Field(description="How many pairs of items there are.")
    apart: Pairs
    alike: Pairs
    cut: str | None = Field(description="What is not listed, if something is not.")
    settled: int
    items: list[ItemSoFar]
    handover: CampaignHandover | None = Field(default=None, description="With a deadline. Left out without.")


class Curve(Answer):
    """For each `radius`: how many groups there are at `least`, and how many are `enough`, both proven."""

    id: str
    name: str
    t: int
    radius: list[float]
    least: list[int]
    enough: list[int]
    norm: str
    scale: list[float]
    error: float


class DrawnItem(Answer):
    """An item in a picture; `mean`, `low` and `high` of the picture's `numbers`, null before it was measured.

    `at` and `error`: its place on the axes, and two standard errors of that. `evidence`: a character for each column of
    the matrix. `retired`: it is measured no more, and in no group.
    """

    arm: int
    name: str
    group_id: int | None
    retired: bool
    measurements: int
    mean: list[float | None] | None
    low: list[float | None] | None
    high: list[float | None] | None
    at: list[float | None] | None = None
    error: list[float | None] | None = None
    settled: bool | None
    possible: list[int] | None
    evidence: str | None


class Picture(Answer):
    """Where items are and what is proven of them. `interval` says what the intervals are: proven, if they can be."""

    id: str
    name: str
    t: int
    done: bool
    question: Question
    items: list[DrawnItem] = Field(description="Empty if there are more than 2000: `cut` says so.")
    item_count: int
    measured: int = Field(description="How many items have results that count.")
    cut: str | None
    interval: dict[str, Any]
    numbers: list[dict[str, Any]] = Field(description="Which numbers of a result `mean`, `low` and `high` have.")
    axes: dict[str, Any] | None = Field(description="Two principal axes, with their loadings; null for one number.")
    groups: list[dict[str, Any]]
    matrix: dict[str, Any] | None
    no_matrix: str | None = Field(description="Why there is no matrix.")
