"""The figures that README and docs/PERFORMANCE.md quote are those that the benchmark kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


def plain(text: str) -> str:
    """Without what Markdown and typography add."""
    return text.replace("\\", "").replace("\u202f", "").replace(" ", "").replace(",", "").replace("`", "")


def test_the_readme_quotes_kept_headlines() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Measured")[2].partition("\n## ")[0]
    quoted = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", text, flags=re.MULTILINE)[2:]
    kept = json.loads((RESULTS / "summary.json").read_text(encoding="utf-8"))["rows"]
    known = {(plain(row["what"]), plain(row["measured"])) for row in kept}
    assert len(quoted) >= 8
    for what, measured, _ in quoted:
        assert (plain(what), plain(measured)) in known, (what, measured)


def test_the_page_on_performance_quotes_kept_means_and_speeds() -> None:
    page = plain((ROOT / "docs" / "PERFORMANCE.md").read_text(encoding="utf-8"))
    for row in json.loads((RESULTS / "needed.json").read_text(encoding="utf-8"))["rows"]:
        if row["method"] == "CROC":
            digits = 0 if row["mean"] >= 1000 else 1
            assert f"{row['mean']:.{digits}f}±{row['standard_error']:.{digits}f}" in page, row["case"]
    for row in json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))["rows"]:
        if row["way"] == "BOC":
            assert f"{row['pulls_a_second']:.0f}" in page, row["instance"]
    (million,) = json.loads((RESULTS / "million.json").read_text(encoding="utf-8"))["rows"]
    assert f"{million['gib']:.2f}GiB" in page


def test_every_kept_part_says_when_and_where() -> None:
    for path in RESULTS.glob("*.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))
        assert kept["when"], path.name
        assert kept["machine"]["numba"], path.name
        assert kept["rows"], path.name
