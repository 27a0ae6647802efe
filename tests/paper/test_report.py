"""What the report marks as agreeing is what its table requires; its tables are the same in HTML and Markdown."""

from __future__ import annotations

import html
import re
import sys
from typing import Any

import pytest

from coterie.paper.report import check_jinja2, markdown_of, templates
from coterie.paper.report_tables import Column, Table, Text, comparison_tables
from coterie.paper.slopes import Slope, slope_checks
from coterie.paper.summary import Row, agrees, checks_of


def row(part: str, **more: Any) -> Row:
    settings: dict[str, Any] = {
        "part": part, "instance": "yeast", "method": "boc", "threshold": "heuristic", "delta": 0.1, "trials": 256,
        "mean": 100.0, "std": 1.0, "standard_error": 0.1, "median": 100.0, "wrong": 0, "given_up": 0,
        "lower_bound": 1.0, "printed": 100.0, "printed_std": 1.0, "difference": 0.0, "difference_in_errors": 0.0,
        "family_level": 3.7,
    }  # fmt: skip
    return Row(**(settings | more))


@pytest.mark.parametrize(
    ("part", "errors", "share", "good"),
    [
        ("table1", 3.6, 0.2, True),
        ("table1", -3.8, -0.001, False),
        ("table2", 10.0, 0.01, False),
        ("table3", 100.0, 0.049, True),
        ("table3", -1.0, -0.051, False),
    ],
)
def test_agreement_is_judged_as_the_table_asks(part: str, errors: float, share: float, good: bool) -> None:
    assert agrees(row(part, difference=share, difference_in_errors=errors)) is good


def cells_of_html(page: str) -> list[list[str]]:
    """The text of every cell of the tables of a page, without marks."""
    lines = re.findall(r"<tr>(.*?)</tr>", page, re.S)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.S) for line in lines]
    return [[html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in line] for line in cells]


def rendered(table: Table) -> str:
    return templates().from_string('{% from "table.html" import table %}{{ table(model) }}').render(model=table)


def test_a_table_is_the_same_in_html_and_markdown() -> None:
    """Every number of a comparison, in both formats: only the words for a difference and for nothing are their own."""
    rows = [
        row(
            "table1",
            instance="iris",
            difference=0.012,
            difference_in_errors=-3.5,
            family_level=3.4,
            wrong=2,
            trials=2000,
        ),
        row("table1", instance="iris", method="croc", threshold="certificate", printed=None, given_up=1),
        row("table1", instance="iris", method="croc", threshold="certificate", printed=None, delta=1e-10),
    ]
    (table,) = comparison_tables("table1", rows)
    page = rendered(table)
    assert cells_of_html(page) == [
        ["δ", "BOC, heuristic β̃", "printed", "off by", "CROC (proven)", "wrong"],
        ["1e-1", "100.0 ± 1.0", "100.0 ± 1.0", "-3.5 se +1.2%", "100.0 ± 1.0",
         "2 of 2,256BOC, heuristic β̃: 2; CROC (proven): 1 given up"],
        ["1e-10", "–", "", "", "100.0 ± 1.0", "0 of 256"],
    ]  # fmt: skip
    assert '<td class="bad">-3.5 se <small>+1.2%</small></td>' in page
    lines = markdown_of("table1", rows).splitlines()
    assert lines[:3] == ["# Table 1: Iris and Yeast, BOC and Uniform (table_real)", "", "## Iris"]
    assert lines[4:8] == [
        "| δ | BOC, heuristic β̃ | printed | difference | CROC (proven) | wrong |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| 1e-1 | 100.0 ± 1.0 | 100.0 ± 1.0 | -3.5 (+1.2%) | 100.0 ± 1.0 | 2 of 2256 |",
        "| 1e-10 | – | – | – | 100.0 ± 1.0 | 0 of 256 |",
    ]


def test_what_agrees_by_its_share_shows_the_share_first() -> None:
    implied, described = (
        row("table3", instance=f"mnist-10-{reading}", difference=0.04, difference_in_errors=9.0, delta=0.01)
        for reading in ("implied", "described")
    )
    page = rendered(comparison_tables("table3", [implied, described])[0])
    assert '<td class="good">+4.0% <small>+9.0 se</small></td>' in page


def test_texts_are_escaped() -> None:
    page = rendered(Table([Column("<i>", words=True)], [[Text("a < b & <script>", link='#"x')]], "<b>", ["1 < 2"]))
    assert "<script>" not in page
    assert "<h3>&lt;b&gt;</h3>" in page
    assert '<a href="#&#34;x">a &lt; b &amp; &lt;script&gt;</a>' in page
    assert "<small>1 &lt; 2</small>" in page


def test_without_jinja2_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'coterie reproduce needs Jinja2: pip install "coterie\[paper\]"'):
        check_jinja2()


def test_checks_fail_when_they_should() -> None:
    croc = row("table1", method="croc", threshold="certificate", printed=None)
    proven = row("table1", threshold="proven", printed=None, mean=1000.0)
    fine = checks_of("table1", [row("table1"), proven, croc])
    assert [check.holds for check in fine] == [True, True, True, True]
    far = row("table1", difference_in_errors=-3.8)
    worse = row("table1", method="croc", threshold="certificate", printed=None, mean=1001.0, wrong=60)
    found = checks_of("table1", [far, proven, worse])
    assert [check.holds for check in found] == [False, False, False, False]


def slope(method: str, **more: float) -> Slope:
    base = {
        "hardness": 1.0,
        "limit": 1.0,
        "fitted_paper": 2.0,
        "fitted_end": 1.1,
        "error_end": 0.0,
        "predicted_end": 1.1,
    }
    return Slope("easy", "proven", method, **(base | more))


def test_slope_checks_fail_when_they_should() -> None:
    uniform = slope("uniform", limit=2.0, fitted_paper=3.0, fitted_end=2.2, predicted_end=2.2)
    assert all(check.holds for check in slope_checks([slope("boc"), uniform]))
    steep = slope("boc", fitted_end=1.3, predicted_end=1.3)
    assert [check.holds for check in slope_checks([steep, uniform])] == [False, True, True]
    off = slope("boc", predicted_end=1.3)
    assert [check.holds for check in slope_checks([off, uniform])] == [True, False, True]
    for wrong in (1.9, 2.5, 3.5):  # below its limit, far above it, rising
        bad = slope("uniform", limit=2.0, fitted_paper=3.0, fitted_end=wrong, predicted_end=wrong)
        assert [check.holds for check in slope_checks([slope("boc"), bad])] == [True, True, False]
