"""`make bench`: measure, print one table, keep it as JSON in bench/results/."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import engine

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in ("coterie", "numpy", "scipy", "numba", "scikit-learn")},
    }


def main() -> None:
    console = Console()
    console.print("Measuring; some three minutes. Each figure is a ratio of times from this run.")
    rows = engine.rows()
    table = Table("figure", "measured", "asked for", "", "behind it")
    for row in rows:
        value = row["ratio"]
        text = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
        table.add_row(row["what"], text, row["asked"], "✓" if row["met"] else "✗", row["detail"])
    console.print(table)
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / "engine.json"
    when = datetime.now(UTC).isoformat(timespec="seconds")
    kept.write_text(json.dumps({"when": when, "machine": machine(), "rows": rows}, indent=1) + "\n")
    console.print(f"kept in {kept.relative_to(Path.cwd()) if kept.is_relative_to(Path.cwd()) else kept}")
    sys.exit(0)


if __name__ == "__main__":
    main()
