"""What the server answers about the results so far: pages, history, what is proven, the picture."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from coterie.web.response_models import Answer, Question


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
    """Where items are and what is proven of them. The intervals are for orientation: `interval` says what they are."""

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
