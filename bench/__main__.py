"""`make bench`: measure, print tables, keep them as JSON in bench/results/.

Parts: engine, croc, pace, replay, workers, network, server; and draws, on request.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import croc, draws, engine, network, pace, replay, server, workers
from coterie.paper.provenance import machine

RESULTS = Path(__file__).parent / "results"
console = Console(width=150)


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


def show_pace() -> None:
    console.print("CROC in simulation, the first pass over the arms included (K = 10, d = 8, δ = 0.1).")
    rows = pace.rows()
    table = Table("M", "gap", "measurements", "proven", "seconds", "µs a measurement", "memory, GiB")
    for row in rows:
        each = row["seconds"] / row["t"] * 1e6
        table.add_row(
            f"{row['n_arms']:,}", f"{row['gap']:g}", f"{row['t']:,}", "yes" if row["done"] else "not yet",
            f"{row['seconds']:.2f}", f"{each:.1f}", f"{row['gib']:.2f}",
        )  # fmt: skip
    console.print(table)
    keep("pace", rows)


def show_replay() -> None:
    console.print(f"Following a record of {replay.RESULTS:,} results again (M = 1 000, K = 10, d = 8).")
    rows = replay.rows()
    table = Table("record", "seconds", "asked for", "", "results that counted", "live, µs a result", "evidence, ms")
    for row in rows:
        table.add_row(
            row["what"], f"{row['seconds']:.2f}", f"< {row['asked']:g}", "✓" if row["met"] else "✗",
            f"{row['counted']:,}", f"{row['live_seconds_a_result'] * 1e6:.0f}", f"{row['evidence_seconds'] * 1e3:.2f}",
        )  # fmt: skip
    console.print(table)
    keep("replay", rows)


def show_workers() -> None:
    console.print("The same trials in threads and in processes; best of a few, in turn.")
    rows = workers.rows()
    table = Table("trials", "one thread", "threads", "gain", "processes", "processes / threads", "with their start")
    for row in rows:
        table.add_row(
            f"{row['trials']} × {row['what']}", f"{row['alone']:.3f} s", f"{row['threads']:.3f} s",
            f"{row['speedup']:.2f}×", f"{row['processes']:.3f} s", f"{row['ratio']:.2f}×",
            f"{row['ratio_with_start']:.2f}×",
        )  # fmt: skip
    console.print(table)
    keep("workers", rows)


def show_network() -> None:
    console.print("Bytes that a simulation on a Dask cluster sends, both ways.")
    rows = network.rows()
    table = Table("what", "client ↔ scheduler", "to and from a worker")
    for row in rows:
        table.add_row(row["what"], f"{row['client']:,}", f"{row['worker']:,}")
    console.print(table)
    keep("network", rows)


def show_draws() -> None:
    console.print(f"The MNIST table at the implied scale: the best of {draws.DRAWS} draws of 500 images.")
    rows = draws.rows()
    table = Table("draw", "D*, d = 400", "root mean square", "largest", "each of the ten means")
    for row in rows[:12]:
        each = ", ".join(f"{key} {value:+.1%}" for key, value in row["off"].items())
        both = [f"{row[key]:.2%}" for key in ("root_mean_square", "largest")]
        table.add_row(str(row["draw"]), f"{row['hardness_400']:.4f}", *both, each)
    console.print(table)
    keep("draws", rows)


def main() -> None:
    parts = {
        "engine": show_engine,
        "croc": show_croc,
        "pace": show_pace,
        "replay": show_replay,
        "workers": show_workers,
        "network": show_network,
        "server": show_server,
    }
    wanted = sys.argv[1:] or list(parts)
    parts["draws"] = show_draws  # on request: minutes, for a choice that was made once
    if unknown := [part for part in wanted if part not in parts]:
        sys.exit(f"unknown part {unknown[0]!r}: choose from {', '.join(parts)}")
    for part in wanted:
        parts[part]()


if __name__ == "__main__":
    main()
