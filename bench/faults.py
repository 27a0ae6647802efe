"""Faults, counted: `python -m bench.faults` runs the tests that make them, as often as asked, and prints a table.

    python -m bench.faults                  all of them: half an hour on two cores that do nothing else
    python -m bench.faults kills requests   those that are named
    python -m bench.faults --share 0.1      a tenth of everything

Tests print how often they did what they do (`25 kills`, `300 requests`); these counts are added up. A test that fails
is named, and the command ends with 1. The calls of the engine are made on the build with sanitizers, if there is one
(`python packaging/build_here.py --checked`).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.part import ROOT, duration

CHECKED = ROOT / "build" / "checked"


@dataclass(frozen=True)
class Fault:
    """Tests of one kind. `often`: environment variables that say how often, and how many that is in all."""

    what: str
    paths: tuple[str, ...]
    unit: str = ""  # what the tests count, in the singular; "": the tests themselves
    keyword: str = ""
    often: Mapping[str, int] = field(default_factory=dict)
    checked: bool = False


KILLED = ("blocks", "features", "deadline", "corrections", "revisions_killed", "faults")
FAULTS = {
    "kills": Fault(
        "kills (SIGKILL) over SQLite and PostgreSQL, with blocks, features, deadlines, corrections, revisions under "
        "way: all that was acknowledged is there, and goes on as if nothing had happened",
        tuple(f"tests/campaign/test_campaign_{name}.py" for name in KILLED),
        "kill", "killed", {"COTERIE_KILLS": 25},
    ),
    "disk": Fault(
        "tests of full disks, read-only and locked files, rows changed on disk, restarts of PostgreSQL",
        ("tests/campaign/test_campaign_faults.py", "tests/web/test_web_faults.py", "tests/store/test_store_damage.py"),
        keyword="not killed",
    ),
    "copies": Fault(
        "copies of a store in use: each is whole, or is refused",
        ("tests/store/test_store_copies.py",), "copy", "copies_of_a_store_in_use",
    ),
    "clocks": Fault(
        "tests of clocks that jump or differ: no lease comes back, no order changes",
        ("tests/campaign",), keyword="clock and (jumps or skewed or back)",
    ),
    "requests": Fault(
        "requests by schemathesis, right ones and wrong ones, to every address: no 5xx",
        ("tests/web/test_web_schema.py",), "request", often={"COTERIE_EXAMPLES": 600},
    ),
    "tables": Fault(
        "tables at random, CSV and bent Excel files: taken in whole or refused, with row and column",
        ("tests/campaign/test_campaign_importing.py", "tests/tables/test_tables_spreadsheets.py"),
        "file", "any_file or bent_files", {"COTERIE_EXAMPLES": 2_000},
    ),
    "certificates": Fault(
        "changed certificates and logs: none accepted that claims something else",
        ("tests/certificate/test_verify_fuzz.py",), "change", "no_change_of_many", {"COTERIE_FUZZ": 20_000},
    ),
    "honest": Fault(
        "honest certificates: none refused",
        ("tests/certificate/test_verify_fuzz.py",), "certificate", "honest", {"COTERIE_FUZZ": 20_000},
    ),
    "engine": Fault(
        "calls of the engine with arguments at random, and bent memories, with sanitizers: no crash",
        ("tests/engine/test_engine_native_input.py", "tests/engine/test_engine_native_croc_input.py"),
        "call", "whatever or bent", checked=True,
    ),
}  # fmt: skip


@dataclass
class Count:
    """What came of one kind."""

    number: int
    tests: int
    failed: list[str]
    skipped: int
    seconds: float


def counted(fault: Fault, share: float) -> Count:
    """Run the tests of one kind, and add up what they counted."""
    environment = dict(os.environ)
    environment.update({name: str(max(1, round(share * often))) for name, often in fault.often.items()})
    if fault.checked and CHECKED.exists():
        environment |= {
            "PYTHONPATH": str(CHECKED),
            "LD_PRELOAD": (CHECKED / "preload").read_text(encoding="utf-8").strip(),
            "ASAN_OPTIONS": "detect_leaks=0",
        }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        chosen = ["-k", fault.keyword] if fault.keyword else []
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *chosen, *fault.paths]
        start = time.perf_counter()
        ended = subprocess.run(
            [*command, f"--junitxml={report}", "-o", "junit_logging=system-out", f"--basetemp={folder}/tests"],
            cwd=ROOT, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        if not report.exists():  # it has crashed
            return Count(0, 0, [f"pytest ended with {ended.returncode}: {ended.stdout[-500:]}"], 0, seconds)
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [
        case.attrib["name"] for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    said = "\n".join(case.findtext("system-out") or "" for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    stem = fault.unit.removesuffix("y")
    number = sum(map(int, re.findall(rf"(\d+) {stem}(?:y|ies|s)?\b", said))) if fault.unit else len(cases) - skipped
    return Count(number, len(cases), failed, skipped, seconds)


def main() -> int:
    """Print a line of the table for each kind as soon as it is done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("faults", nargs="*", metavar="fault", help=f"all if none is named: {', '.join(FAULTS)}")
    parser.add_argument("--share", type=float, default=1.0, help="of how often each is done")
    given = parser.parse_args()
    if unknown := set(given.faults) - set(FAULTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(FAULTS)}")
    if not given.share > 0:
        parser.error(f"--share must be above 0, got {given.share:g}")
    print("| fault | how many | failed | time |\n| --- | ---: | ---: | ---: |", flush=True)
    failed: list[str] = []
    for name in given.faults or FAULTS:
        fault = FAULTS[name]
        count = counted(fault, given.share)
        what = fault.what if not fault.checked or CHECKED.exists() else f"{fault.what} (without sanitizers: none built)"
        left_out = f", {count.skipped} left out" if count.skipped else ""
        print(f"| {what} | {count.number:,}{left_out} | {len(count.failed)} | {duration(count.seconds)} |", flush=True)
        failed += count.failed or ([] if count.number else [f"{name}: nothing was done"])
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
