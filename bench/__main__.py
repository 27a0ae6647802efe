"""`make bench`: measure, print the tables, keep them as JSON in bench/results/. Parts: engine, croc, server."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import croc, engine, server

RESULTS = Path(__file__).parent / "results"
console = Console(width=150)


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    packages = ("coterie", "numpy", "scipy", "numba", "scikit-learn")
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def keep(part: str, rows: list[dict[str, Any]]) -> None:
    """Write the rows with machine and time."""
    RESULTS.mkdir(exist_ok=True)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps({"when": when, "machine": machine(), "rows": rows}, indent=1)
    (RESULTS / f"{part}.json").write_text(text + "\n")
    console.print(f"kept in bench/results/{part}.json")


def show_engine() -> None:
    console.print("Speed; each figure is a ratio of times from this run.")
    rows = engine.rows()
    table = Table("figure", "measured", "asked for", "", "behind it")
    for row in rows:
        value = row["ratio"]
        text = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
        table.add_row(row["what"], text, row["asked"], "✓" if row["met"] else "✗", row["detail"])
    console.print(table)
    keep("engine", rows)


def show_croc() -> None:
    console.print(f"Measurements needed, means of {croc.TRIALS} trials.")
    rows = croc.rows()
    names = ("instance", "δ", "BOC, β̃ (no proof)", "BOC, β", "CROC", "wrong", "at most", "aim", "floor")
    table = Table(*names)
    for row in rows:
        both = [f"{row[key]:,.0f}" if key in row else "–" for key in ("boc_heuristic", "boc_proven")]
        table.add_row(
            row["instance"], f"{row['delta']:g}", *both, f"{row['croc']:,.1f} ± {row['standard_error']:.1f}",
            str(row["wrong"]), f"{row['limit']:,}", f"{row['aim']:,}", f"{row['lower_bound']:,.0f}",
        )  # fmt: skip
    console.print(table)
    keep("croc", rows)


def show_server() -> None:
    console.print(f"The server, with {server.CLIENTS} clients on the same machine.")
    rows = server.rows()
    table = Table("figure", "measured", "", "asked for", "")
    for row in rows:
        sign = "" if row["met"] is None else "✓" if row["met"] else "✗"
        table.add_row(row["what"], f"{row['value']:,.3g}", row["unit"], row["asked"], sign)
    console.print(table)
    keep("server", rows)


def main() -> None:
    parts = {"engine": show_engine, "croc": show_croc, "server": show_server}
    wanted = sys.argv[1:] or list(parts)
    if unknown := [part for part in wanted if part not in parts]:
        sys.exit(f"unknown part {unknown[0]!r}: choose from {', '.join(parts)}")
    for part in wanted:
        parts[part]()


if __name__ == "__main__":
    main()
