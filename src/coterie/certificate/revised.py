"""Logs of runs that were revised on the way: what a certificate may rest on, numbered as it numbers it.

A revision is an event of the log:
    {"event": "revision", "added": n, "retired": [arms], "n_clusters": K or null, "delta": δ or null}
Items keep their numbers for ever, epochs and rounds are numbered on. What is claimed concerns the items present after
the last revision: results of others are left out, and everything before it counts as results that nobody asked for.
docs/CROC.md, section 17, says which share of δ is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from coterie.certificate.fields import field_of, list_of
from coterie.problem.checks import check_arm, check_count, check_delta, short

_MIXTURE = 0.99828125
"""Σ p(ρ), the weights of the mixture of paired evidence: the rest of the pairs' share pays for pairs of new items."""


@dataclass(frozen=True)
class SpentError:
    """What revisions have left of δ: `epochs` were frozen before the last of `revisions`; H of the pairs after it."""

    epochs: int = 0
    revisions: int = 0
    equal_pairs: int | None = None


NOTHING = SpentError()


def revisions_stated(certificate: dict[str, Any]) -> list[Any]:
    """The revisions that a certificate names."""
    return list(list_of(certificate, "revisions")) if "revisions" in certificate else []


def last_stage(certificate: dict[str, Any], events: Sequence[Any]) -> tuple[Sequence[Any], SpentError]:
    """The part of a log that a certificate is about, in its numbers. ValueError if they do not fit each other.

    What comes after a later revision is left aside: a certificate stays what it was when a run is revised.
    """
    stated = revisions_stated(certificate)
    places = [i for i, event in enumerate(events) if isinstance(event, dict) and event.get("event") == "revision"]
    if len(places) < len(stated):
        raise ValueError(f"the certificate names {len(stated)} revisions, the log has {len(places)}")
    if len(places) > len(stated):
        events = events[: places[len(stated)]]
    if not stated:
        if "present" in certificate:
            raise ValueError("present is for a run that was revised, and the certificate names no revisions")
        return events, NOTHING
    return _Stage(certificate, events, places[: len(stated)]).reduced()


class _Stage:
    """The last stage of a log with revisions."""

    def __init__(self, certificate: dict[str, Any], events: Sequence[Any], places: list[int]) -> None:
        self.certificate, self.events, self.places = certificate, events, places
        revisions = [events[i] for i in places]
        added = [check_count(field_of(revision, "added"), "added", 0) for revision in revisions]
        gone = [arm for revision in revisions for arm in list_of(revision, "retired")]
        present = list_of(certificate, "present")
        n_present = check_count(field_of(certificate, "n_arms"), "n_arms", 2)
        if len(present) != n_present:  # before anything of the size of n_arms is made
            raise ValueError(f"present must list the {n_present} items that there are, got {len(present)}")
        self.n_ever = n_present + len(gone)
        self.n_first = self.n_ever - sum(added)
        if self.n_first < 2:
            raise ValueError(f"{sum(added)} items joined, but there are only {self.n_ever} in all")
        for revision, so_far in zip(revisions, _running(self.n_first, added), strict=True):
            for arm in revision["retired"]:
                check_arm(arm, so_far)
        if len(set(gone)) != len(gone):
            raise ValueError("an item is retired twice")
        retired = set(gone)
        self.present = [arm for arm in range(self.n_ever) if arm not in retired]
        if list(present) != self.present:
            raise ValueError(
                f"present must be {short(self.present)}, by the revisions of the log, got {short(present)}"
            )
        self.place = {arm: i for i, arm in enumerate(self.present)}
        self._check_stated(revisions)

    def _check_stated(self, revisions: list[dict[str, Any]]) -> None:
        """What the certificate says of its revisions is what the log has; its K and δ are those of the last ones."""
        for i, (stated, revision) in enumerate(zip(revisions_stated(self.certificate), revisions, strict=True)):
            before = self.events[: self.places[i]]
            wanted = {key: revision.get(key) for key in ("added", "retired", "n_clusters", "delta")}
            wanted |= {"t": _count(before, "result"), "epochs": _count(before, "freeze")}
            for name, value in wanted.items():
                if not isinstance(stated, dict) or stated.get(name) != value:
                    raise ValueError(f"revisions[{i}] is not the one in the log: {name} must be {short(value)}")
        self._smaller([revision["delta"] for revision in revisions if revision.get("delta") is not None])
        raised = [revision["n_clusters"] for revision in revisions if revision.get("n_clusters") is not None]
        if raised and field_of(self.certificate, "n_clusters") != raised[-1]:
            raise ValueError(f"n_clusters must be {raised[-1]}, as it was raised last")

    def _smaller(self, deltas: list[Any]) -> None:
        for earlier, later in pairwise(deltas):
            if not check_delta(later) < check_delta(earlier):
                raise ValueError(f"delta was {earlier!r} and became {later!r}: it can only be lowered")
        if deltas and field_of(self.certificate, "delta") != check_delta(deltas[-1]):
            raise ValueError(f"delta must be {deltas[-1]!r}, as it was lowered last")

    def reduced(self) -> tuple[list[Any], SpentError]:
        """The events of the stage, and what was spent before it."""
        last = self.places[-1]
        before, after = self.events[:last], self.events[last + 1 :]
        epochs, rounds = _count(before, "freeze"), _count(before, "round")
        if self.certificate.get("question") in ("resolution", "linkage"):
            rounds = epochs
        stage = [self._early(event) for event in before if isinstance(event, dict) and self._is_ours(event)]
        for event in after:
            if not isinstance(event, dict):
                raise ValueError(f"an event of the log must be an object, got {short(event)}")
            if event.get("event") != "result" or self._is_ours(event):
                stage.append(self._own(event, epochs, rounds))
        return stage, SpentError(epochs, len(self.places), self._equal_pairs())

    def _is_ours(self, event: dict[str, Any]) -> bool:
        if event.get("event") != "result":
            return False
        return check_arm(event.get("arm"), self.n_ever) in self.place

    def _early(self, event: dict[str, Any]) -> dict[str, Any]:
        return {
            "event": "result", "arm": self.place[event["arm"]], "round": 0, "values": event.get("values"),
            "asked": False,
        }  # fmt: skip

    def _own(self, event: dict[str, Any], epochs: int, rounds: int) -> dict[str, Any]:
        """An event after the last revision, in the numbers of the certificate."""
        renumbered = dict(event)
        for name, offset in (("epoch", epochs), ("round", rounds)):
            number = check_count(event[name], name, 0) if name in event else 0
            if name in event and (number > 0 or name == "epoch"):
                if number < offset + (name == "round"):
                    raise ValueError(f"{name} {number} comes after a revision, and {offset} were before it")
                renumbered[name] = number - offset
        return renumbered | self._renumbered(event)

    def _renumbered(self, event: dict[str, Any]) -> dict[str, Any]:
        """What an event says of items, by their places among those present."""
        renumbered: dict[str, Any] = {}
        if "arm" in event:
            renumbered["arm"] = self.place[event["arm"]]
        if "labels" in event:
            labels = list_of(event, "labels", self.n_ever)
            if any(labels[arm] != -1 for arm in range(self.n_ever) if arm not in self.place):
                raise ValueError("a freeze after a revision labels a retired item: its label must be -1")
            renumbered["labels"] = [labels[arm] for arm in self.present]
        if "references" in event:
            renumbered["references"] = self._arms(event["references"])
        if "cores" in event:
            renumbered["cores"] = [self._arms(core) for core in list_of(event, "cores")]
        if "pulls" in event:
            renumbered["pulls"] = [[*self._arms(pair[:1]), *pair[1:]] for pair in map(_listed, list_of(event, "pulls"))]
        for name in ("near", "far"):
            if name in event:
                renumbered[name] = [[*self._arms(test[:2]), *test[2:]] for test in map(_listed, list_of(event, name))]
        if event.get("balls") is not None:
            balls = map(_listed, list_of(event, "balls"))
            renumbered["balls"] = [[*self._arms(ball[:1]), *ball[1:2], *map(self._arms, ball[2:])] for ball in balls]
        return renumbered

    def _arms(self, arms: Any) -> list[int]:
        places = []
        for arm in _listed(arms):
            if check_arm(arm, self.n_ever) not in self.place:
                raise ValueError(f"item {arm} is retired, and nothing can rest on it")
            places.append(self.place[arm])
        return places

    def _equal_pairs(self) -> int:
        """H of the pairs from the start: all pairs of the first items, or n³ of all there ever were over M·slack."""
        if self.n_ever == self.n_first:
            return self.n_first * (self.n_first - 1) // 2
        return math.ceil(self.n_ever**3 / (self.n_first * (1.0 - _MIXTURE)))


def _running(first: int, added: list[int]) -> list[int]:
    """How many items there were when each revision retired some: those that joined before it."""
    return [first + sum(added[:i]) for i in range(len(added))]


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"a list was expected in the log, got {short(value)}")
    return list(value)


def _count(events: Sequence[Any], kind: str) -> int:
    return sum(isinstance(event, dict) and event.get("event") == kind for event in events)
