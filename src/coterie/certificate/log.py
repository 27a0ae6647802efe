"""The measurement log that a certificate is checked against: its events, and its form as CSV.

Events, in the order in which they count (docs/CROC.md; of groups up to a resolution and of single linkage,
docs/RESOLUTION.md):
    {"event": "result", "arm": m, "round": r, "values": [...]}               r = 0: outside rounds
      and "alone": true if it was asked for while nothing else was (for Gaussian noise whose variance results bound),
      "asked": false if nobody asked for it, "late": true if the result of a later ask came before it, "ask": its number
      among the asks, from 0, where that is not one more than the number of the last result that was asked for
    {"event": "freeze", "epoch": j, "labels": [...], "cores": [[...], ...]}  j = 0, 1, 2, …
    {"event": "round", "round": r, "epoch": j, "pulls": [[arm, count], ...]} r = 1, 2, …, before any result of the round
    {"event": "list", "epoch": 0, "pairs": [[arm, arm, count, count], ...]}  in place of all freezes (docs/CROC.md, 20);
      its rounds have, under "settled", the pairs that were settled since the list or the last round
    {"event": "statements", "epoch": j, "representatives": [...], "listed": [[group, ...], ...]}  of each item,
      frozen for a deadline in place of epoch j (docs/DEADLINE.md); its rounds carry a bet
In a run in blocks (docs/BLOCKS.md) there are cells instead of rounds, and every result that was asked for is of one:
    {"event": "cell", "cell": c, "block": "plate 7", "epoch": j or null, "pulls": [arm, arm, ...]}  c = 1, 2, …
    {"event": "result", "arm": m, "cell": c, "values": [...]}       nobody asked for it: no cell, and "block" if named
    {"event": "lapse", "cell": c, "missing": [arm, ...], "strict": false}   the cell ended, these results never came
For a resolution and for linkage there are no rounds: r = j + 1 of a result says that it was asked for after freeze j.
    {"event": "freeze", "epoch": j, "labels": [...], "references": [...], "level": b_j, "near": [...], "far": [...],
     for a resolution "epsilon": [...], "eta": [...], for linkage "height": h, "balls": [[reference, ρ, [items]], ...]}
    {"event": "resolution", "epoch": j, "epsilon": [...], "eta": [...]}      chosen on the way, for freeze j and later
A test, near or far, is [item, reference, R, [d bounds, in scaled units], {parameters}]. A table has results only, with
"block": "…" if it is in blocks; null, in the CSV form NA, is a number that is missing.
Where the noise is not known, rounds (and freezes, if it is Gaussian) carry bets: `certificate.arithmetic.bets`.
A revision on the way is an event too (`coterie.certificate.revised`); beside the proof stand asks that were missed,
corrections and names of items (`coterie.certificate.beside`). `coterie.certificate.reading` reads all of them.

The CSV form is one for all. It has the columns event, arm, round, v0 … v{d-1}, detail, the last one JSON for all that
is no result, and for results with marks.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from typing import Any

from coterie.certificate.fields import read_json
from coterie.problem.checks import check_count, short

MARKS = {"alone": True, "asked": False, "late": True}
"""Of a result: what a log says only where it is so."""
ORIGIN = ("at", "worker", "token")
"""Who told a result and when, where a campaign knows it: text for people, on which no proof depends."""

PLACE = {"cell": int, "block": str, "ask": int, "panel": int}
"""Of which cell of a run in blocks a result is, and the block that was told with it, or that a table has; the number of
its ask, where the order of results does not say it; and its panel, where features are measured apart."""

DECIDED = ("freeze", "list", "round", "cell", "lapse", "statements", "resolution", "revision")
"""Events that are no results: what was decided."""

HOLE = "NA"
"""In the CSV form: a number that is missing."""

MISSED, CORRECTION, HEAD = "missed", "correction", "log"
"""Events that no proof uses: `coterie.certificate.beside`."""

_LARGEST_FIELD = 2**31 - 1  # a freeze of many arms is longer than the csv module takes unasked


def write_log(path: str | os.PathLike[str], events: Sequence[dict[str, Any]], dim: int) -> None:
    """Write a log as a CSV file; `read_log` gives the same events back, every number exactly.

    Parameters
    ----------
    path
        The file; it is replaced if it is there.
    events
        The log: `Session.events`, or the `events` of a `Grouping`.
    dim
        How many numbers a result has.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from coterie.certificate import read_log, write_log
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> write_log(path, [{"event": "result", "arm": 0, "round": 0, "values": [0.1]}], 1)
    >>> read_log(path)
    [{'event': 'result', 'arm': 0, 'round': 0, 'values': [0.1]}]
    """
    d = check_count(dim, "dim", 1)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["event", "arm", "round", *(f"v{i}" for i in range(d)), "detail"])
        for event in events:
            kind = event["event"]
            if kind == "result":
                values = [HOLE if value is None else repr(float(value)) for value in event["values"]]
                if "panel" in event:
                    values += [""] * (d - len(values))
                if len(values) != d:
                    raise ValueError(f"a result must have {d} values, got {short(event['values'])}")
                marks: dict[str, Any] = {
                    name: mark for name, mark in MARKS.items() if bool(event.get(name, not mark)) is mark
                }
                marks |= {name: event[name] for name in (*ORIGIN, *PLACE) if name in event}
                detail = json.dumps(marks) if marks else ""
                writer.writerow([kind, event["arm"], event.get("round", ""), *values, detail])
            elif kind in DECIDED or kind in (CORRECTION, HEAD):
                detail = json.dumps({key: value for key, value in event.items() if key not in ("event", "round")})
                writer.writerow([kind, "", event.get("round", ""), *[""] * d, detail])
            elif kind == MISSED:
                about = {key: value for key, value in event.items() if key not in ("event", "arm")}
                writer.writerow([kind, event["arm"], "", *[""] * d, json.dumps(about)])
            else:
                raise ValueError(f"an event must be a result or one of {', '.join(DECIDED)}, got {short(kind)}")


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the events of a log from a CSV file that `write_log` or an export has written.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of dict
        The events, as `coterie.verify` takes them.

    Raises
    ------
    ValueError
        If a line is no event; the message names it.
    """
    before = csv.field_size_limit(_LARGEST_FIELD)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return _events(csv.reader(file, strict=True), os.fspath(path))
    except UnicodeDecodeError:
        raise ValueError(f"{os.fspath(path)} is not a text file") from None
    finally:
        csv.field_size_limit(before)


def _events(rows: Any, name: str) -> list[dict[str, Any]]:
    try:
        header = next(rows, None)
        dim = 0 if header is None else len(header) - 4
        if dim < 1 or header != ["event", "arm", "round", *(f"v{i}" for i in range(dim)), "detail"]:
            raise ValueError(f"{name} is not a log: its first line must be event,arm,round,v0,...,detail")
        events = []
        for row in rows:
            try:
                events.append(_event(row, dim))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {rows.line_num} of {name}: {error}") from None
        return events
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num} of {name}: {error}") from None


def _event(row: list[str], dim: int) -> dict[str, Any]:
    if len(row) != dim + 4:
        raise ValueError(f"expected {dim + 4} columns, got {len(row)}")
    kind, arm, number, *values, detail = row
    if kind == "result":
        of_round = {"round": int(number)} if number else {}  # in blocks there are none
        marks = _marks(detail)
        if "panel" in marks:  # as many numbers as the panel has
            values = [value for value in values if value]
        numbers = [None if value == HOLE else float(value) for value in values]
        return {"event": kind, "arm": int(arm), **of_round, "values": numbers, **marks}
    if kind == MISSED:
        about = read_json(detail)
        if not isinstance(about, dict) or "event" in about or "arm" in about:
            raise ValueError(f"the detail of a missed ask must say its kind, got {short(detail)}")
        return {"event": kind, "arm": int(arm), **about}
    if kind not in DECIDED and kind not in (CORRECTION, HEAD):
        raise ValueError(f"an event must be a result or one of {', '.join(DECIDED)}, got {short(kind)}")
    content = read_json(detail)
    if not isinstance(content, dict):
        raise ValueError(f"the detail of a {kind} must be a JSON object, got {short(detail)}")
    for key in ("event", "round"):
        if key in content:
            raise ValueError(f"the detail of a {kind} must not name its {key}, which has a column of its own")
    return {"event": kind, "round": int(number), **content} if kind == "round" else {"event": kind, **content}


def _marks(detail: str) -> dict[str, Any]:
    """What the detail of a result says."""
    if not detail:
        return {}
    content = read_json(detail)
    known = isinstance(content, dict) and all(
        type(mark) is PLACE.get(name, str) if name in (*ORIGIN, *PLACE) else name in MARKS and isinstance(mark, bool)
        for name, mark in content.items()
    )
    if not known or not content:
        raise ValueError(
            f'the detail of a result must be empty, {{"alone": true}} or {{"asked": false}}, got {short(detail)}'
        )
    return {name: mark for name, mark in content.items() if name not in MARKS or mark is MARKS[name]}
