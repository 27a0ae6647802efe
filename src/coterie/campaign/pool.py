"""A recorded pool of measurements: how many of them would have been enough, and which groups they show.

The method asks for arms as it would live, and gets each arm's measurements in the order in which they were recorded.
When an arm runs dry, the rest of the pool is told in recorded order: nothing is left out because of its value, so what
is proven is proven. If even all of it is not enough, what is certain so far is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from coterie.campaign import tables
from coterie.campaign.errors import BadValue
from coterie.campaign.settings import Settings, check_settings
from coterie.problem.checks import FloatArray, check_real_array, short
from coterie.session import Session, SessionDone


def replay_pool(
    pool: Any,
    n_clusters: int,
    delta: float = 0.05,
    method: str = "croc",
    threshold: str = "proven",
    noise: Any = None,
    distance_ratio: float | None = None,
    values: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Run a method on recorded measurements.

    `pool`: a CSV or Parquet file (columns `arm` and the values, as in `Campaigns.import_table`), rows as dictionaries,
    or {arm: (n, d) array}. The answer: `done`, `t` (how many were enough; used, if not), `recorded`, `dry` (the arm
    whose measurements ran out first, if one did), labels, groups, and for CROC `partial`.
    """
    names, arms, rows = _read(pool, values)
    settings = check_settings(
        len(names), n_clusters, rows.shape[1], delta, method, threshold, noise, names, distance_ratio, 1.0, "skip"
    )
    session = settings.session()
    stacks = [np.flatnonzero(arms == arm) for arm in range(len(names))]
    used = [0] * len(names)
    dry: int | None = None
    while not session.done:
        try:
            arm = session.ask()
        except SessionDone:
            break
        if used[arm] == len(stacks[arm]):
            dry = arm
            session.forget(session.pending[-1][0])
            break
        session.tell(arm, rows[stacks[arm][used[arm]]])
        used[arm] += 1
    dry_at = None if dry is None else session.t
    if dry is not None:
        for row in _left(stacks, used):
            session.tell(int(arms[row]), rows[row])
            if session.done:
                break
        _look_again(session)
    return _answer(session, settings, stacks, dry, dry_at)


def _left(stacks: list[Any], used: list[int]) -> Iterator[int]:
    """What was not used, in the order of the pool."""
    rest = np.sort(np.concatenate([stack[count:] for stack, count in zip(stacks, used, strict=True)]))
    return iter(rest.tolist())


def _look_again(session: Session) -> None:
    """Results that nobody asked for may have been enough, and only the next plan finds out."""
    try:
        session.ask()
    except SessionDone:
        return
    session.forget(session.pending[-1][0])


def _answer(
    session: Session, settings: Settings, stacks: list[Any], dry: int | None, dry_at: int | None
) -> dict[str, Any]:
    labels, centers = session.labels, session.centers
    names = settings.names
    assert names is not None
    groups = []
    if labels is not None and centers is not None:
        for label in range(int(labels.max()) + 1):
            arms = np.flatnonzero(labels == label).tolist()
            groups.append({"arms": arms, "names": [names[arm] for arm in arms], "center": centers[label].tolist()})
    found: dict[str, Any] = {
        "done": session.done,
        "t": session.t,
        "recorded": sum(len(stack) for stack in stacks),
        "n_arms": settings.n_arms,
        "n_clusters": settings.n_clusters,
        "dim": settings.dim,
        "delta": settings.delta,
        "method": settings.method,
        "threshold": settings.threshold,
        "dry": None if dry is None else {"arm": dry, "name": names[dry], "recorded": len(stacks[dry]), "t": dry_at},
        "labels": None if labels is None else labels.tolist(),
        "groups": groups,
        "names": list(names),
        "pulls": session.pulls.tolist(),
        "partial": None,
        "alarm": None if session.alarm is None else {"arm": session.alarm, "name": names[session.alarm]},
    }
    if not session.done and settings.method == "croc":
        partial = session.partial()
        found["partial"] = {
            "settled": [names[arm] for arm in partial.settled],
            "undecided": [names[arm] for arm in partial.undecided],
            "representatives": [names[arm] for arm in partial.representatives],
            "differ": [[names[arm], names[lead]] for arm, lead in partial.differ],
        }
    return found


def _read(pool: Any, values: Sequence[str] | None) -> tuple[list[str], Any, FloatArray]:
    """Names of the arms, the arm of each row, the values of each row."""
    if isinstance(pool, Mapping):
        blocks = []
        for arm, content in pool.items():
            block = check_real_array(content, f"the pool of arm {short(arm)}")
            blocks.append(block[:, None] if block.ndim == 1 else block)
        if len({block.shape[1:] for block in blocks}) != 1 or blocks[0].ndim != 2:
            raise BadValue("a pool is a dictionary of (n, d) arrays of one d", field="pool")
        counts = [len(block) for block in blocks]
        return [str(arm) for arm in pool], np.repeat(np.arange(len(blocks)), counts), np.concatenate(blocks)
    table = tables.read_table(pool)
    rows = np.array(tables.numbers(table, tables.value_columns(table, None, values)), dtype=np.float64)
    if not table.rows:
        raise BadValue(f"{table.name} has no measurements", field="pool")
    at = table.columns.index("arm")
    cells = [row[at] for row in table.rows]
    empty = next((i for i, cell in enumerate(cells) if cell is None or not str(cell).strip()), None)
    if empty is not None:
        raise table.problem(empty, "arm", "it is empty")
    given = [str(cell) for cell in cells]
    whole = [tables.whole(cell) for cell in cells]
    if all(number is not None for number in whole):
        order = [str(number) for number in sorted({number for number in whole if number is not None})]
        given = [str(number) for number in whole]
    else:
        order = list(dict.fromkeys(given))
    index = {name: arm for arm, name in enumerate(order)}
    return order, np.array([index[name] for name in given]), rows
