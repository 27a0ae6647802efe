"""`coterie bench`: measure parts, print their tables, keep them as JSON, and put the headlines into one table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import coterie
from bench.part import (
    ON_REQUEST,
    PARTS,
    QUICK_RESULTS,
    RESULTS,
    ROOT,
    Column,
    LeftOutError,
    Part,
    Progress,
    Row,
    duration,
    part_named,
    sign,
)
from coterie.paper.report import machine

console = Console(width=120, highlight=False)


def choose(names: list[str]) -> list[str]:
    """The parts asked for, or all but those on request."""
    for name in names:
        if name not in PARTS:
            raise ValueError(f"unknown part {name!r}: choose from {', '.join(PARTS)}")
    return list(dict.fromkeys(names)) or [name for name in PARTS if name not in ON_REQUEST]


def kept(name: str, folder: Path) -> dict[str, Any] | None:
    """What an earlier run kept of a part."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def keep(name: str, content: dict[str, Any], folder: Path) -> None:
    """Written beside and moved into place, so that a file is never half there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(path)


def print_rows(part: Part, rows: list[Row]) -> None:
    """The one printer of all tables."""
    for each, own in part.tables(rows):
        console.print(each.title, style="bold", markup=False)
        table = Table()
        for column in each.columns:
            table.add_column(column.heading, justify="left" if column.left else "right")
        for i, row in enumerate(own):
            again = i > 0 and bool(each.section) and row[each.section] == own[i - 1][each.section]
            if each.section and not again:
                table.add_section()
            table.add_row(*("" if again and column.of == each.section else column.cell(row) for column in each.columns))
        console.print(table)


def summary(folder: Path) -> list[Row]:
    """The headlines of all parts that were kept."""
    found = []
    for name in PARTS:
        content = kept(name, folder)
        if content is not None:
            try:
                lines = part_named(name).headlines(content["rows"])
            except (LeftOutError, KeyError):  # a package is missing, or the file is of an earlier form of the part
                continue
            found += [{"part": name, "when": content["when"], **vars(line)} for line in lines]
    return found


SUMMARY = Part(
    "All headlines. Ratios are of figures from one run of their part; its file says when, where and at which load.",
    (
        Column("part", "part", left=True),
        Column("figure", "what", left=True),
        Column("measured", "measured"),
        Column("goal", "asked", left=True),
        Column("", lambda row: sign(row["met"])),
    ),
    lambda quick, progress, folder: [],
    section="part",
)


def shown(names: list[str], quick: bool = False, out: Path | None = None) -> dict[str, Any]:
    """What was kept of these parts, or of all, by name."""
    folder = (QUICK_RESULTS if quick else RESULTS) if out is None else out.resolve()
    found = {name: kept(name, folder) for name in choose(names)}
    missing = [name for name, content in found.items() if content is None]
    if missing and names:
        raise ValueError(f"{folder / missing[0]}.json is not there: measure it with coterie bench {missing[0]}")
    if len(missing) == len(found):
        raise ValueError(f"nothing is kept in {folder}: measure with coterie bench first")
    return {name: content for name, content in found.items() if content is not None}


def show(names: list[str], folder: Path) -> None:
    """Print what was kept: the tables of these parts, or the one table."""
    for name in names:
        content = kept(name, folder)
        if content is None:
            raise ValueError(f"{folder / name}.json is not there: measure it with coterie bench {name}")
        try:
            print_rows(part_named(name), content["rows"])
        except (KeyError, AttributeError):
            raise ValueError(f"{folder / name}.json has an earlier form: measure again, coterie bench {name}") from None
    if not names:
        lines = summary(folder)
        if not lines:
            raise ValueError(f"nothing is kept in {folder}: measure with coterie bench first")
        print_rows(SUMMARY, lines)


def measure(names: list[str], quick: bool, folder: Path, done: list[str], trials: int | None = None) -> bool:
    """One part after the other; each is kept as soon as it is measured. INOUT: done, the names of those.

    `trials`: so many a cell, of parts that can be told. False if one broke; the others are measured all the same.
    """
    guesses = {name: _guess(name, quick, folder) for name in names}
    console.print(f"coterie {coterie.__version__} from {Path(coterie.__file__).parent}", markup=False)
    load = _load()  # before we add to it
    if load is not None and load > 0.5:
        console.print(f"Other programs use this machine (load {load:g}): above all what runs in threads looks slower.")
    failed = False
    for i, name in enumerate(names):
        load = _load()
        own, left = guesses[name], sum(guesses[other] for other in names[i:])
        rest = f"about {duration(own)}; about {duration(left)} left in all"
        console.print(f"\n[bold]{name}[/], part {i + 1} of {len(names)}: {rest}")
        start = time.perf_counter()
        try:
            part = part_named(name)
            progress = Progress(lambda text: print(text, flush=True))
            if trials is None or part.with_trials is None:
                rows = part.rows(quick, progress, _pictures(folder))
            else:
                rows = part.with_trials(trials, quick, progress, _pictures(folder))
        except LeftOutError as error:
            console.print(f"{name} is left out: {error}", markup=False)
            continue
        except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
            console.print(f"{name} failed: {' '.join(str(error).split())[:500]}", markup=False)
            failed = True
            continue
        seconds = round(time.perf_counter() - start, 1)
        content = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"), "seconds": seconds,
            "quick": quick, "load_before": load, "machine": machine(), "rows": rows,
        }  # fmt: skip
        keep(name, content, folder)
        done.append(name)
        print_rows(part, rows)
        console.print(f"{duration(seconds)}, kept in {_short(folder / name)}.json", markup=False)
    lines = summary(folder)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    keep("summary", {"when": when, "machine": machine(), "rows": lines}, folder)
    console.print()
    print_rows(SUMMARY, lines)
    console.print(f"kept in {_short(folder / 'summary')}.json", markup=False)
    return not failed


def _load() -> float | None:
    """How many programs want a processor, over the last minute: our own previous part among them."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _guess(name: str, quick: bool, folder: Path) -> float:
    """Seconds that a part will take."""
    content = kept(name, folder)
    if content is not None and "seconds" in content:
        return float(content["seconds"])
    try:
        return part_named(name).seconds / (5 if quick else 1)
    except LeftOutError:
        return 0.0


def _pictures(folder: Path) -> Path:
    """Only a full run renews the documentation's pictures."""
    return ROOT / "docs" / "pictures" if folder == RESULTS else folder


def _short(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def run(
    names: list[str], quick: bool = False, out: Path | None = None, showing: bool = False, trials: int | None = None
) -> int:
    """The command. Returns its exit code."""
    folder = (QUICK_RESULTS if quick else RESULTS) if out is None else out.resolve()
    if quick and folder == RESULTS:
        raise ValueError(f"a quick run does not replace the full results in {RESULTS}: choose another --out")
    chosen = choose(names)
    if trials is not None:
        if trials < 1:
            raise ValueError(f"trials must be at least 1, got {trials}")
        told = [name for name in chosen if part_named(name).with_trials is not None]
        if chosen != told:
            fixed = next(name for name in chosen if name not in told)
            raise ValueError(
                f"the part {fixed!r} chooses its number of trials itself: --trials is for noise, classic, linkage and "
                "resolution"
            )
    if showing:
        show(chosen if names else [], folder)
        return 0
    done: list[str] = []
    try:
        if not measure(chosen, quick, folder, done, trials):
            return 1
    except KeyboardInterrupt:
        print(f"coterie: stopped; kept in {_short(folder)}: {', '.join(done) or 'nothing yet'}", file=sys.stderr)
        return 130
    return 0
