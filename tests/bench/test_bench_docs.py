"""The figures and tables of the documentation are those that the benchmark kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench import noise_page
from bench.page import ALL, LEFT_OUT, PAGE, PLACES, REST, filled, places, tables
from bench.part import Row, Table, part_named

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


def plain(text: str) -> str:
    """Without what Markdown and typography add."""
    return text.replace("\\", "").replace("\u202f", "").replace(" ", "").replace(",", "").replace("`", "")


def test_the_page_on_performance_quotes_kept_headlines() -> None:
    text = (
        (ROOT / "docs" / "PERFORMANCE.md")
        .read_text(encoding="utf-8")
        .partition("## Headlines")[2]
        .partition("\n## ")[0]
    )
    quoted = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", text, flags=re.MULTILINE)[2:]
    kept = json.loads((RESULTS / "summary.json").read_text(encoding="utf-8"))["rows"]
    known = {(plain(row["what"]), plain(row["measured"])) for row in kept}
    assert len(quoted) >= 8
    for what, measured, _ in quoted:
        assert (plain(what), plain(measured)) in known, (what, measured)


def test_the_page_of_tables_has_the_kept_ones_between_its_marks() -> None:
    """`python -m bench.page` writes them; a place is empty where nothing is kept."""
    page = PAGE.read_text(encoding="utf-8")
    assert places(page) == [*PLACES, *noise_page.PLACES]
    assert filled(page) == page
    for place, (name, which) in PLACES.items():
        path = RESULTS / f"{name}.json"
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
        assert bool(tables(place)) == any(which == ALL or (which == REST) == ("family" in row) for row in rows)


def test_columns_that_a_place_leaves_out_are_in_its_part() -> None:
    for place, left_out in LEFT_OUT.items():
        headings = {column.heading for table, _ in part_tables(place) for column in table.columns}
        assert headings & set(left_out), place
        page = tables(place)
        assert not any(f"| {heading} |" in page for heading in left_out), place


def part_tables(place: str) -> list[tuple[Table, list[Row]]]:
    name, _ = PLACES[place]
    return part_named(name).tables(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"])


def test_the_tables_of_noise_are_there_if_they_were_kept() -> None:
    for place in noise_page.PLACES:
        assert bool(tables(place)) == (RESULTS / "noise.json").exists()


def test_costs_are_multiples_of_the_known_noise() -> None:
    def row(case: str, method: str, delta: float, mean: float | None, promised: bool = True) -> dict[str, object]:
        return {"case": case, "method": method, "delta": delta, "mean": mean, "promised": promised, "wrong": 3,
                "trials": 64}  # fmt: skip

    rows = [
        row("Iris", "known", 0.1, 100.0), row("Iris", "any noise", 0.1, 250.0),
        row("Iris", "known", 1e-10, 200.0), row("Iris", "any noise", 1e-10, None),
        row("clicks", "any noise", 0.1, 1234.5), row("clicks", "counts", 0.1, 999.0),
        row("Iris, t", "known", 0.1, 50.0, promised=False),
    ]  # fmt: skip
    assert noise_page.costs(rows).splitlines() == [
        "| told | Iris |", "| --- | ---: |", "| known | 1.00 / 1.00 |", "| any noise | 2.50 / – |", "",
    ]  # fmt: skip
    assert noise_page.other_noises(rows).splitlines()[2:] == ["| clicks | 1,234 | 999 |", ""]
    assert noise_page.not_covered(rows).splitlines()[2:] == ["| Iris, t | known | 50 | 3 of 64 |", ""]


def test_tables_on_the_page_are_those_of_the_kept_rows(tmp_path: Path) -> None:
    rows = [{"sizes": "all", "instances": 1, "runs": 1234, "median": 2.5, "quantile95": 3.25, "quantile99": None,
             "largest": None, "unfinished": 1, "wrong": 0}]  # fmt: skip
    (tmp_path / "scan.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    page = "before\n<!-- bench: scan -->\nold\n<!-- end of bench: scan -->\nafter\n"
    once = filled(page, tmp_path)
    assert "| all | 1 | 1 234 | 2.5× | 3.25× | > 100× | > 100× | 1 | 0 |\n" in once
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert filled(once, tmp_path) == once
    assert filled(once, tmp_path / "elsewhere") == page.replace("old\n", "")


def test_every_kept_part_says_when_and_where() -> None:
    for path in RESULTS.glob("*.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))
        assert kept["when"], path.name
        assert kept["machine"]["numpy"], path.name
        assert kept["rows"], path.name
