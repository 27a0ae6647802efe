"""`coterie group` on tables as people keep them: units, two headings, items in columns, a sheet more, ratings, days."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from grouping import ok, refused

from coterie.tables import TableError
from coterie.tables.reading.pools import read_pool
from coterie.tables.reading.tidying import quantity


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path


def lined(header: str, lines: list[str]) -> str:
    return "\n".join([header, *lines]) + "\n"


def wine(unit: str = "") -> list[str]:
    rng = np.random.default_rng(1)
    means = {f"barrel {i}": 400.0 + 300.0 * (i % 2) for i in range(1, 7)}
    return [f"{name};{rng.normal(mean, 40):.0f}{unit};{i},5" for i in range(12) for name, mean in means.items()]


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("520 mg/l", ("520", "mg/l")),
        ("11,84 %", ("11,84", "%")),
        ("-3.5°C", ("-3.5", "°C")),
        ("7 kg/m3", ("7", "kg/m3")),
        ("0.5 µg/100ml", ("0.5", "µg/100ml")),
        ("2026-01-03", None),
        ("3 June", None),
        ("12a", None),
        ("<300", None),
        ("10:30", None),
        ("5", None),
        ("mg", None),
    ],
)
def test_a_number_with_a_unit(cell: str, found: tuple[str, str] | None) -> None:
    assert quantity(cell) == found


def test_units_in_cells_are_left_out_and_named_and_no_column_is_lost(here: Path) -> None:
    (here / "wine.csv").write_text(lined("barrel;proline;place", wine(" mg/l")))
    shown = ok("wine.csv", "-k", 2)
    assert "Units were left out: proline in mg/l." in shown
    assert "Values: proline (--values picks)." in shown
    assert (
        "place (the same in every item). If that is wrong, name all columns of values: --values proline,place" in shown
    )
    assert "Values: proline, place" in ok("wine.csv", "-k", 2, "--values", "proline,place")
    assert "barrel is the only column without numbers" in shown
    (here / "plain.csv").write_text(lined("barrel;proline;place", wine()))
    np.testing.assert_array_equal(read_pool("wine.csv").rows, read_pool("plain.csv").rows)


def test_a_cell_without_its_number_is_refused_beside_units(here: Path) -> None:
    lines = wine(" mg/l")
    lines[3] = "barrel 4;<300;0,5"
    (here / "wine.csv").write_text(lined("barrel;proline;place", lines))
    assert "line 5, column 'proline': a number is needed, got '<300'" in refused("wine.csv", "-k", 2)
    mixed = [*wine(), "barrel 1;500 mg/l;0,5"]  # a unit in one cell only is no unit of the column
    (here / "mixed.csv").write_text(lined("barrel;proline;place", mixed))
    assert "got '500 mg/l'" in refused("mixed.csv", "-k", 2)


def test_items_named_by_quantities_stay_names(here: Path) -> None:
    rng = np.random.default_rng(1)
    lines = [f"{dose} mg,{rng.normal(dose, 0.1):.2f}" for _ in range(8) for dose in (1, 1.1, 5, 10)]
    (here / "doses.csv").write_text(lined("dose,effect", lines))
    assert set(read_pool("doses.csv").names) == {"1 mg", "1.1 mg", "5 mg", "10 mg"}


def test_a_second_line_of_headings(here: Path) -> None:
    content = lined("barrel;proline;place", [";mg/l;m", *wine()])
    (here / "two.csv").write_text(content)
    shown = ok("two.csv", "-k", 2)
    assert "Line 2 names no item and has no number: it was taken for a second heading (mg/l, m)." in shown
    assert "72 measurements" in shown
    assert read_pool("two.csv").place(0) == "line 3"
    (here / "nameless.csv").write_text(lined("barrel;proline;place", [";500;1,0", *wine()]))
    assert "line 2, column 'barrel': it is empty" in refused("nameless.csv", "-k", 2)


def test_lines_above_the_names_of_the_columns(here: Path) -> None:
    (here / "export.csv").write_text("Exported from LabX 4.2\n\nitem,x\na,1\n")
    assert "if line 3 names the columns, delete the lines above it" in refused("export.csv", "-k", 2)


def test_items_in_columns(here: Path) -> None:
    (here / "wide.csv").write_text("when,a,b,c\nmorning,1,5,1.1\nnoon,1.2,,0.9\nevening,0.9,5.1,1\nnight,1,4.9,\n")
    pool = read_pool("wide.csv", wide="columns")
    assert pool.names == ["a", "b", "c"]
    assert pool.counts.tolist() == [4, 3, 3]
    assert pool.place(5) == "line 4"
    shown = ok("wide.csv", "--items-in-columns")
    assert "wide.csv: 3 items, 10 measurements, 3 to 4 each." in shown
    assert "  coterie group wide.csv --items-in-columns --alike " in shown
    assert read_pool("wide.csv", values=["a", "b"], wide="columns").names == ["a", "b"]
    (here / "numbers.csv").write_text("a,b,c\n1,5,1\n2,6,1\n")
    assert "--items-in-columns" in refused("numbers.csv", "-k", 2)
    assert "give one of the two" in refused("numbers.csv", "-k", 2, "--wide", "--items-in-columns")
    with pytest.raises(TableError, match="leave out --items a"):
        read_pool("wide.csv", items="a", wide="columns")
    with pytest.raises(TableError, match="wide must be"):
        read_pool("wide.csv", wide="both")


def test_repeats_in_a_row_with_a_hole_lead_to_wide(here: Path) -> None:
    (here / "rows.csv").write_text("slide,r1,r2,r3\na,1,2,1\nb,3,,4\nc,1,1,2\n")
    assert "if each row is an item, and each cell one measurement of it: --wide" in refused("rows.csv", "-k", 2)


def test_the_sheets_of_a_workbook_are_named_and_picked(here: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    book.active.title = "Info"
    book.active.append(["note", "date"])
    book.active.append(["by Ann", "May"])
    data = book.create_sheet("Data")
    data.append(["barrel", "proline"])
    for row in wine():
        name, proline, _ = row.split(";")
        data.append([name, float(proline)])
    book.save("lab.xlsx")
    said = refused("lab.xlsx", "-k", 2)
    assert "sheet 'Info' needs a column" in said
    assert "the others are 'Data': --sheet picks one" in said
    assert "--sheet picks one" in refused("lab.xlsx", "-k", 2, "--items", "barrel")
    assert "exactly 2 groups" in ok("lab.xlsx", "-k", 2, "--sheet", "Data")
    assert "--sheet Data --clusters 2" in ok("lab.xlsx", "--sheet", "Data")
    assert "its sheets are 'Info', 'Data'" in refused("lab.xlsx", "-k", 2, "--sheet", "Date")


def test_which_column_may_name_the_items(here: Path) -> None:
    lines = [f"u{i},{'Heat' if i % 2 else 'Alien'},{1 + i % 5},May {i % 7}" for i in range(60)]
    (here / "stars.csv").write_text(lined("user,film,stars,date", lines))
    assert "perhaps film (2 different entries in 60 rows), date (7 different entries" in refused("stars.csv", "-k", 2)


def test_ratings_are_not_proposed_to_be_gaussian(here: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{film},{rng.integers(1, 4) + (film > 'b') * 2}" for _ in range(40) for film in "abcd"]
    (here / "stars.csv").write_text(lined("item,stars", lines))
    for shown in (ok("stars.csv", "-k", 2), ok("stars.csv")):
        assert "state --noise bounded:1,5 with the ends of the scale" in shown
        assert "gaussian" not in shown


def test_a_column_of_days_is_left_out_and_said(here: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{ad},{day},{rng.normal(ad == 'a', 0.1):.3f}" for ad in "abc" for day in range(9)]
    (here / "days.csv").write_text(lined("ad,day,level", lines))
    shown = ok("days.csv", "-k", 2)
    assert "Values: level (--values picks)." in shown
    assert "note: left out, since it measures nothing: day (a time: it never falls from row to row)." in shown
    assert "Values: day, level" in ok("days.csv", "-k", 2, "--values", "day,level")
    # Without an order of its own its name alone does not say it: then it is used, and doubted.
    rng.shuffle(lines)
    (here / "days.csv").write_text(lined("ad,day,level", [line for k, line in enumerate(lines) if k not in (2, 9, 11)]))
    shown = ok("days.csv", "-k", 2)
    assert "warning: day is used as a measurement; if it only says when or which, leave it out: --values level" in shown


def test_successes_of_trials_by_any_name(here: Path) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for i, ad in enumerate("abcd"):
        for day in range(15):
            shown = int(rng.integers(50, 300))
            lines.append(f"{ad},{day},{rng.binomial(shown, 0.05 + 0.15 * (i % 2))},{shown}")
    (here / "ads.csv").write_text(lined("ad,day,hits,shown", lines))
    assert "If hits are successes out of shown, pick the two: --values hits,shown" in refused(
        "ads.csv", "-k", 2, "--noise", "counts"
    )
    shown_text = ok("ads.csv", "-k", 2, "--noise", "counts", "--values", "hits,shown")
    assert "60 rows of hits and shown" in shown_text
    assert "exactly 2 groups" in shown_text
