"""`Certificate`: a certificate as a dictionary of plain JSON that shows itself in notebooks and knows its re-check."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coterie.problem.families import noise_from_json
from coterie.problem.sentences import error_in_words, groups_in_words, table_html

if TYPE_CHECKING:
    from coterie.certificate.checking import Verdict

MOST_GROUPS = 50
"""Groups that a notebook shows."""

MOST_ITEMS = 20
"""Items of a group that a notebook shows."""


class Certificate(dict[str, Any]):
    """The proof that a session or a table gave: a dictionary of plain JSON, which `json.dumps` writes as it is.

    Parameters
    ----------
    content
        The certificate as a dictionary, such as the answer of a server.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(4, 2, 1, noise=1.0)
    >>> while not session.done:
    ...     arm = session.ask()
    ...     session.tell(arm, [9.0 * (arm % 2)])
    >>> certificate = session.certificate
    >>> certificate["labels"], certificate.verify(session.events).valid
    ([0, 1, 0, 1], True)
    """

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Certificate:
        """Read the certificate in a JSON file.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Certificate
            What it holds, unchecked.

        Raises
        ------
        ValueError
            If it is not strict JSON, or not an object.
        """
        from coterie.certificate.fields import read_certificate

        return cls(read_certificate(path))

    def verify(self, log: Sequence[dict[str, Any]] | str | os.PathLike[str]) -> Verdict:
        """Check whether a log proves what this says: `coterie.verify`.

        Parameters
        ----------
        log
            The log that goes with it: `Session.events`, or the path of a CSV file.

        Returns
        -------
        Verdict
            True if the certificate holds.
        """
        from coterie.certificate.checking import verify

        return verify(self, log)

    def with_intervals(self, *intervals: Any) -> Certificate:
        """The same certificate with intervals of its groups in it, which `verify` then recomputes from the log.

        Parameters
        ----------
        intervals
            What `Session.intervals` gave when the groups were proven. Each has the error probability that it was
            asked for with: together they are wrong with at most the sum of these.

        Returns
        -------
        Certificate
            Another one, with the field `intervals`.

        Raises
        ------
        ValueError
            If an argument is of groups that are not those of this certificate, or not proven.
        """
        fields = [_interval_field(entry, self.get("labels")) for entry in intervals]
        return Certificate(self | {"intervals": fields})

    def _repr_html_(self) -> str:
        """What is claimed, what it rests on, and the groups, by the numbers of items and groups that it has inside."""
        return table_html((), self._facts()) + self._groups_html()

    def _facts(self) -> list[tuple[str, Any]]:
        facts: list[tuple[str, Any]] = [("claimed", self.claimed), ("assumed", self.get("assumes", "see the noise"))]
        facts.append(("measurements that counted", self.get("t")))
        if self.get("alarm"):
            facts.append(("alarm", f"more groups than claimed: items {_listed(self['alarm']['arms'])} differ"))
        facts += [("remark", _said(remark)) for remark in self.get("remarks") or ()]
        failed = [f"item {entry['arm']}: {entry['failed'] + entry['expired']}" for entry in self._failed()]
        facts += [("failed asks", _listed(failed))] if failed else []
        corrected = len(self.get("corrections") or ())
        facts += [("corrections of results", corrected)] if corrected else []
        facts.append(("checked", "not here: certificate.verify(session.events) recomputes it from the measurements"))
        return facts

    def _failed(self) -> list[dict[str, Any]]:
        """Items of which asks failed, those with the most first."""
        items = (self.get("failures") or {}).get("items") or []
        return [entry for entry in items if entry["failed"] + entry["expired"]]

    @property
    def claimed(self) -> str:
        """What is claimed, and how often it is wrong at most, in a sentence."""
        claim, k = self.get("claim"), self.get("n_clusters")
        if isinstance(claim, str):
            return claim
        if not isinstance(k, int) or k < 1:
            return f"{k} groups; wrong with probability at most {self.get('delta')}"
        if self.get("by") == "partial":
            return f"{self._parts(k)}; {self._wrong(k)}"
        return f"{groups_in_words(k, self._at_least(), self._against()).removeprefix('proven: ')}; {self._wrong(k)}"

    def _parts(self, k: int) -> str:
        """What a certificate made before the end claims: pairs and single items, not the groups."""
        n_arms, apart, placed = self.get("n_arms"), self.get("apart") or (), self.get("placed") or ()
        differ = "1 pair of items differs" if len(apart) == 1 else f"{len(apart)} pairs of items differ"
        return f"{differ}; and if there are exactly {k} groups, {len(placed)} of {n_arms} items are proven in theirs"

    def _at_least(self) -> bool:
        """Whether at least K groups are proven whatever their number: by pairs or an epoch, without revisions."""
        return self.get("by") in ("pairs", "epoch") and "present" not in self

    def _against(self) -> str | None:
        if self.get("alarm"):
            return f"the data refute K = {self.get('n_clusters')}"
        seen = self.get("homogeneity") or {}
        mixed = seen and any(evidence >= seen["threshold"] for evidence in seen["evidence"])
        return "a group looks mixed" if mixed else None

    def _wrong(self, k: int) -> str:
        delta, n_arms, dim = (self.get(key) for key in ("delta", "n_arms", "dim"))
        if not (isinstance(delta, float) and isinstance(n_arms, int) and isinstance(dim, int)):
            return f"wrong with probability at most {delta}"
        noise = noise_from_json(self["noise"], dim)
        return error_in_words(n_arms, k, delta, noise, self._at_least(), "features" in self)

    def _groups_html(self) -> str:
        labels = self.get("labels") or []
        groups: dict[int, list[int]] = {}
        for arm, label in enumerate(labels):
            groups.setdefault(label, []).append(arm)
        rows = [(label, len(groups[label]), _listed(groups[label])) for label in sorted(groups)[:MOST_GROUPS]]
        more = len(groups) - len(rows)
        guess = "guess of a group" if self.get("by") == "partial" else "group"
        return table_html((guess, "items", ""), rows) + (f"<p>and {more} more groups</p>" if more else "")


def _interval_field(intervals: Any, labels: Any) -> dict[str, Any]:
    """What a certificate says of intervals, groups numbered as its `labels` are."""
    plain = intervals.to_json()
    if not plain["proven"]:
        raise ValueError("these intervals hold if these are the groups, which are not proven: ask for them again")
    field = {key: plain[key] for key in ("of", "delta", "count", "formula", "quantile", "low", "high", "lengths")}
    if intervals.of == "items":
        return field
    own = [int(label) for label in intervals.labels]
    number = dict(zip(labels, own, strict=True)) if len(labels) == len(own) else {}
    if len(set(zip(labels, own, strict=False))) != len(number) or len(set(number.values())) != len(number):
        raise ValueError("these intervals are of other groups than the certificate's: ask for them again")
    place = {row: i for i, row in enumerate(intervals.rows)}
    groups = sorted(number)
    if intervals.of == "groups":
        order = [place[number[label]] for label in groups]
        return field | {key: [field[key][i] for i in order] for key in ("low", "high", "lengths")}
    low, high, lengths = [], [], []
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            pair = number[first], number[second]
            at = place[pair if pair in place else pair[::-1]]
            ends, counts = [field["low"][at], field["high"][at]], field["lengths"][at]
            if pair not in place:
                ends = [[None if end is None else -end for end in side] for side in ends[::-1]]
                counts = counts[::-1]
            low.append(ends[0])
            high.append(ends[1])
            lengths.append(counts)
    return field | {"low": low, "high": high, "lengths": lengths}


def _said(remark: Any) -> str:
    return str(remark.get("seen", remark)) if isinstance(remark, dict) else str(remark)


def _listed(arms: Sequence[Any]) -> str:
    text = ", ".join(map(str, arms[:MOST_ITEMS]))
    return text if len(arms) <= MOST_ITEMS else f"{text}, … ({len(arms) - MOST_ITEMS} more)"
