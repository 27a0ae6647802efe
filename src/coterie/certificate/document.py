"""`Certificate`: a certificate as a dictionary of plain JSON that shows itself in notebooks and knows its re-check."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from coterie.certificate.checking import Verdict, verify
from coterie.certificate.claim import read_certificate
from coterie.problem.html import table_html
from coterie.problem.question import ExactGroups

MOST_GROUPS = 50
"""Groups that a notebook shows."""

MOST_ITEMS = 20
"""Items of a group that a notebook shows."""


class Certificate(dict[str, Any]):
    """The proof that a session gave: an ordinary dictionary of plain JSON (`json.dumps` writes it as it is).

    `Certificate(content)` makes one of a dictionary, such as the answer of a server.
    """

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Certificate:
        """The certificate in a JSON file. ValueError if it is not strict JSON, or not an object."""
        return cls(read_certificate(path))

    def verify(self, log: Sequence[dict[str, Any]] | str | os.PathLike[str]) -> Verdict:
        """Whether the log (`Session.events`, or a CSV file) proves what this says: `coterie.verify`."""
        return verify(self, log)

    def _repr_html_(self) -> str:
        """What is claimed, what it rests on, and the groups, by the numbers of items and groups that it has inside."""
        return table_html((), self._facts()) + self._groups_html()

    def _facts(self) -> list[tuple[str, Any]]:
        facts: list[tuple[str, Any]] = [("claimed", self._claimed()), ("assumed", self.get("assumes", "see the noise"))]
        facts.append(("measurements that counted", self.get("t")))
        if self.get("alarm"):
            facts.append(("alarm", f"more groups than claimed: items {_listed(self['alarm']['arms'])} differ"))
        facts += [("remark", _said(one)) for one in self.get("remarks") or ()]
        failed = [f"item {one['arm']}: {one['failed'] + one['expired']}" for one in self._failed()]
        facts += [("failed asks", _listed(failed))] if failed else []
        corrected = len(self.get("corrections") or ())
        facts += [("corrections of results", corrected)] if corrected else []
        facts.append(("checked", "not here: certificate.verify(session.events) recomputes it from the measurements"))
        return facts

    def _failed(self) -> list[dict[str, Any]]:
        """Items of which asks failed, those with the most first."""
        items = (self.get("failures") or {}).get("items") or []
        return [one for one in items if one["failed"] + one["expired"]]

    def _claimed(self) -> str:
        said, k = self.get("claim"), self.get("n_clusters")
        if isinstance(said, str):
            return said
        exact = ExactGroups(k).claim if isinstance(k, int) and k > 0 else f"{k} groups"
        return f"{exact}; wrong with probability at most {self.get('delta')}"

    def _groups_html(self) -> str:
        labels = self.get("labels") or []
        groups: dict[int, list[int]] = {}
        for arm, label in enumerate(labels):
            groups.setdefault(label, []).append(arm)
        rows = [(label, len(groups[label]), _listed(groups[label])) for label in sorted(groups)[:MOST_GROUPS]]
        more = len(groups) - len(rows)
        return table_html(("group", "items", ""), rows) + (f"<p>and {more} more groups</p>" if more else "")


def _said(remark: Any) -> str:
    return str(remark.get("seen", remark)) if isinstance(remark, dict) else str(remark)


def _listed(arms: Sequence[Any]) -> str:
    text = ", ".join(map(str, arms[:MOST_ITEMS]))
    return text if len(arms) <= MOST_ITEMS else f"{text}, … ({len(arms) - MOST_ITEMS} more)"
