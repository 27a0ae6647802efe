"""The page in a real Chromium: items and results from files, Excel downloads, QR code, print view, numbers by language.
At desktop and phone size, by keyboard, in the dark.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from page_steps import NAMES, new_campaign, show_part, start_measuring

SHOTS = os.environ.get("COTERIE_SHOTS")  # a folder for looking at pictures by eye


def shot(page: Any, name: str, **more: Any) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS, f"{name}.png")), full_page=True, **more)


def workbook_of(rows: list[list[Any]], title: str = "items", second: list[list[Any]] | None = None) -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    if second is not None:
        other = book.create_sheet("other")
        for row in second:
            other.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def given(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def excel(content: bytes) -> list[tuple[Any, ...]]:
    from openpyxl import load_workbook

    return list(load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True))


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_a_campaign_from_an_excel_file(opened: Any, api: Any, phone: bool) -> None:
    size = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"} if phone else {}
    page = opened("/new", **size)
    called = f"from Excel {uuid4().hex[:8]}"
    page.get_by_label("Name", exact=True).fill(called)
    upload = page.get_by_label("Or take them from a CSV or Excel file")
    read, problem = page.locator("#items-file-read"), page.locator("#items-file-problem")
    upload.set_input_files(given("bad.xlsx", workbook_of([["Item", "cost"], ["a", 1], ["b", None], ["a", 2]])))
    problem.filter(has_text="bad.xlsx: row 4: 'a' is the name of row 2 too; row 3, column cost: a number is").wait_for()
    shot(page, f"items-bad-{phone}")
    assert page.get_by_label("Their names, one on each line").input_value() == ""
    upload.set_input_files(given("broken.xlsx", b"PK\x03\x04 this is none"))
    problem.filter(has_text="cannot be read as an Excel file").wait_for()
    rows: list[list[Any]] = [["Item", "shelf"], *([name, i] for i, name in enumerate(NAMES))]
    upload.set_input_files(given("fruit.xlsx", workbook_of(rows, second=[["name"], ["x"]])))
    read.filter(has_text="6 items read from fruit.xlsx.").wait_for()
    assert problem.is_hidden()
    assert "Not used: column shelf." in read.inner_text()
    assert "2 sheets: items, other" in read.inner_text()
    assert page.get_by_label("Their names, one on each line").input_value() == "\n".join(NAMES)
    shot(page, f"items-{phone}")
    assert violations(page) == []
    page.get_by_label("Groups").fill("3")
    page.get_by_role("button", name="Create campaign").click()
    page.wait_for_url("**/campaigns/*")
    id = page.url.rpartition("/")[2]
    made = api.get(f"/api/campaigns/{id}").json
    assert (made["name"], made["names"]) == (called, NAMES)
    if phone:
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_cells_pasted_from_a_spreadsheet(opened: Any) -> None:
    page = opened("/new")
    names = page.get_by_label("Their names, one on each line")
    names.focus()
    page.evaluate(
        """() => { const data = new DataTransfer(); data.setData("text", "name\\tcost\\nfig\\t2\\nplum\\t3\\n");
        document.getElementById("names").dispatchEvent(
          new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })); }"""
    )
    page.locator("#items-file-read").filter(has_text="2 items read from what was pasted").wait_for()
    assert names.input_value() == "fig\nplum"


def table_of(rows: list[list[Any]]) -> bytes:
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_import_is_looked_at_first_and_made_by_keyboard(opened: Any, api: Any, phone: bool) -> None:
    size = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"} if phone else {}
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}#part-log", **size)
    page.get_by_role("link", name="Import a table of results").click()
    page.wait_for_url("**/import")
    page.get_by_role("button", name="Look at it").click()
    page.locator("#import-problem").filter(has_text="Choose a file first").wait_for()
    bad: list[list[Any]] = [["item", "v0", "v1"], ["apple", 1, 2], ["mango", 1, 2], ["pear", "low", 2]]
    page.get_by_label("CSV or Excel file").set_input_files(given("bad.csv", table_of(bad)))
    page.get_by_role("button", name="Look at it").click()
    problems = page.locator("#problems")
    problems.get_by_text("line 3, column item: unknown item 'mango'").wait_for()
    problems.get_by_text("line 4, column v0: a number is needed, got 'low'").wait_for()
    assert page.locator("#unknown li").all_inner_texts() == ["mango"]
    assert page.locator("#confirm").is_hidden()
    shot(page, f"import-bad-{phone}")
    assert violations(page) == []
    good: list[list[Any]] = [["item", "v0", "v1", "id"], *([NAMES[k % 6], k / 4, 2.5, f"m{k}"] for k in range(24))]
    page.get_by_label("CSV or Excel file").set_input_files(given("good.xlsx", workbook_of(good)))
    page.get_by_role("button", name="Look at it").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Take in 24 measurements").wait_for()
    assert "24 rows, 6 items" in page.locator("#understood").inner_text()
    assert page.locator("#first-rows tbody tr").count() == 5
    assert api.get(f"/api/campaigns/{id}").json["measurements"] == 0
    shot(page, f"import-good-{phone}")
    assert violations(page) == []
    page.get_by_role("button", name="Take in 24 measurements").focus()
    page.keyboard.press("Enter")
    page.locator("#imported").filter(has_text="24 measurements taken in").wait_for()
    assert page.locator("#going").is_hidden()
    assert api.get(f"/api/campaigns/{id}").json["measurements"] == 24
    if phone:
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("link", name="Back to the campaign").click()
    show_part(page, "log")
    page.get_by_role("link", name="The whole log").click()
    page.locator("table.log").get_by_text("good.xlsx").wait_for()


def test_readers_and_workers_do_not_import(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}/import", token="a-token-for-readers-0123456789")
    page.get_by_text("Importing needs a token of an owner; yours is for reading.").wait_for()


def test_excel_files_and_decimal_commas_are_downloaded(opened: Any, api: Any, tmp_path: Path) -> None:
    names = ["=cmd|' /C calc'!A0", "+1", "@x", "-y", "fig", "plum"]
    id = api.create(names=names, dim=1)
    api.tell(id, {"id": "=1+1", "arm": 0, "values": [6.8]}, {"id": "b", "arm": 4, "values": [1.234]})
    page = opened(f"/campaigns/{id}#part-log")

    def saved(link: str) -> bytes:
        with page.expect_download() as download:
            page.locator(link).click()
        download.value.save_as(tmp_path / "file")
        return (tmp_path / "file").read_bytes()

    from openpyxl import load_workbook

    rows = excel(saved("#xlsx"))
    assert rows[0] == ("id", "arm", "v0", "told", "worker", "token")
    assert [row[:3] for row in rows[1:]] == [("=1+1", names[0], 6.8), ("b", "fig", 1.234)]
    assert rows[1][3].year >= 2026
    sheet = load_workbook(io.BytesIO((tmp_path / "file").read_bytes())).worksheets[0]
    assert [(cell.data_type, cell.quotePrefix) for cell in sheet[2][:2]] == [("s", True)] * 2
    assert [row[0] for row in excel(saved("#groups-xlsx"))[1:]] == names
    assert [row[2] for row in excel(saved("#log-xlsx"))[1:3]] == ["told", "told"]
    lines = saved("#csv-comma").decode("utf-8-sig").splitlines()[1:]
    assert [line.split(";")[:3] for line in lines] == [["'=1+1", f"'{names[0]}", "6,8"], ["b", "fig", "1,2340"]]


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_the_qr_code_has_the_address_and_no_token(opened: Any, api: Any, phone: bool) -> None:
    import segno

    size = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"} if phone else {}
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}#part-log", **size)
    button = page.get_by_role("button", name="QR code for phones")
    button.focus()
    page.keyboard.press("Enter")
    page.locator("#qr svg").wait_for()
    assert button.get_attribute("aria-expanded") == "true"
    address = f"{api.url}/campaigns/{id}"
    assert page.locator("#qr .address").inner_text() == address
    page.locator("#qr").get_by_text("This address is one of this machine").wait_for()
    # The picture is that of the address: module by module, as another run of the encoder draws it.
    drawn = page.locator("#qr svg path").last.get_attribute("d")
    plain = segno.make(address, error="m", micro=False).svg_inline(scale=1, border=4, dark="#000", light="#fff")
    assert f'd="{drawn}"' in plain
    assert api.token not in page.content()
    shot(page, f"qr-{phone}")
    assert violations(page) == []
    if phone:
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def finished(api: Any) -> str:
    id = str(api.create(n_arms=6, n_clusters=3, dim=2, names=NAMES, noise=1.0, delta=0.05))
    for k in range(400):
        asks = api.ask(id)
        if not asks:
            return id
        arm = asks[0]["arm"]
        values = [4.0 * (arm % 3) + 0.1 * (k % 5), 1.0 + 0.1 * (k % 3)]
        assert api.tell(id, {"id": str(k), "arm": arm, "values": values, "lease": asks[0]["lease"]}).status == 200
    raise AssertionError("it does not end")


def test_the_print_view_says_what_is_proven_and_how_to_verify_it(opened: Any, api: Any, tmp_path: Path) -> None:
    import hashlib

    id = finished(api)
    page = opened(f"/campaigns/{id}", locale="de-DE")
    page.get_by_role("link", name="Print", exact=True).click()
    page.wait_for_url("**/print")
    status = api.get(f"/api/campaigns/{id}").json
    text = page.locator("article").inner_text()
    assert status["verdict"] in text
    assert status["assumed"] in text
    claim = status["question"]["claim"]
    assert text.count(claim[1:]) == 1, "once, in the sentence of the certificate"
    assert "coterie verify certificate.json log.csv" in text
    for kind in ("certificate", "log"):
        assert hashlib.sha256(api.get(f"/api/campaigns/{id}/export?kind={kind}").content).hexdigest() in text
    drawn = {one["name"]: one for one in api.get(f"/api/campaigns/{id}/picture").json["items"]}
    sheet = page.locator("table.sheet-groups")
    assert [row.locator("td").first.inner_text() for row in sheet.locator("tbody tr").all()] == [
        "apple", "fig", "pear", "quince", "kiwi", "plum",
    ]  # fmt: skip
    for row in sheet.locator("tbody tr").all():
        name, sweet, sour, measured = row.locator("td").all_inner_texts()
        for shown, low, high in zip((sweet, sour), drawn[name]["low"], drawn[name]["high"], strict=True):
            plain = shown.replace("\u2212", "-").replace(".", "").replace(",", ".")
            ends = [float(end) for end in plain.split(" to ")]
            assert ends == pytest.approx([low, high], rel=1e-3)
        assert int(measured) == drawn[name]["measurements"]
    assert "proven intervals" in text
    shot(page, "print-screen")
    assert violations(page) == []
    page.emulate_media(media="print")
    assert page.locator("#print-now").is_hidden()
    groups = sheet
    assert groups.evaluate("it => getComputedStyle(it).display") == "table"
    assert groups.locator("tbody").count() == len(status["groups"])
    edges = groups.locator("tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => Math.round(cell.getBoundingClientRect().left)))"
    )
    assert all(row == edges[0][-len(row) :] for row in edges), "the cells of a column stand below one another"
    shot(page, "print-paper")
    content = page.pdf(format="A4")
    assert content.startswith(b"%PDF")
    if SHOTS:
        Path(SHOTS, "print.pdf").write_bytes(content)


def test_the_print_view_of_a_campaign_that_has_begun(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}/print", viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.get_by_text("6 of 6 items have not been measured yet.").wait_for()
    assert "verify" not in page.locator("article").inner_text()
    shot(page, "print-begun")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("locale", "typed", "value", "note", "said"),
    [
        ("en-US", "6,8", 6.8, "6,8 = 6.8", "Saved 6.8, 1"),
        ("en-US", "6.8", 6.8, "", "Saved 6.8, 1"),
        ("en-US", "1,234.5", 1234.5, "1,234.5 = 1234.5", "Saved 1234.5, 1"),
        ("de-DE", "6,8", 6.8, "6,8 = 6.8", "Saved 6,8; 1"),
        ("de-DE", "6.8", 6.8, "", "Saved 6,8; 1"),
        ("de-DE", "1,234", 1.234, "1,234 = 1.234", "Saved 1,234; 1"),
        ("de-DE", "1.234,5", 1234.5, "1.234,5 = 1234.5", "Saved 1234,5; 1"),
    ],
)
def test_numbers_by_the_language_of_the_browser(
    opened: Any, api: Any, locale: str, typed: str, value: float, note: str, said: str
) -> None:
    id = new_campaign(api, noise=5000.0)
    page = opened(f"/campaigns/{id}", locale=locale)
    start_measuring(page, "Ada")
    first, second = page.locator("[name=value]").all()
    first.fill(typed)
    assert page.locator("#understood").inner_text() == note
    second.fill("1")
    page.get_by_role("button", name="Save result").click()
    page.locator("#said").filter(has_text=f"{said} for apple").wait_for()
    (row,) = api.get(f"/api/campaigns/{id}/measurements").json["measurements"]
    assert row["values"] == [value, 1.0]
    shown = {"en-US": f"{value:,}", "de-DE": f"{value:,}".translate(str.maketrans(",.", ".,"))}[locale]
    if value < 1000:
        page.locator("table.log td.number").filter(has_text=f"{shown}; 1").wait_for(state="attached")


@pytest.mark.parametrize(
    ("locale", "typed", "either"),
    [("en-US", "1,234", "1.234 or 1234"), ("de-DE", "1.234", "1,234 or 1234"), ("en-US", "-12,500", "-12.5 or -12500")],
)
def test_a_number_that_may_be_two_is_asked_back(opened: Any, api: Any, locale: str, typed: str, either: str) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}", locale=locale)
    start_measuring(page, "Ada")
    first, second = page.locator("[name=value]").all()
    first.fill(typed)
    second.fill("1")
    page.get_by_role("button", name="Save result").click()
    page.locator("#value-problem").filter(has_text=f"“{typed}” may be {either}: type one of these").wait_for()
    assert first.input_value() == typed
    assert api.get(f"/api/campaigns/{id}").json["measurements"] == 0


def test_one_number_or_two_in_the_form_of_a_new_campaign(opened: Any, api: Any) -> None:
    page = opened("/new", locale="en-US")
    page.get_by_label("Name", exact=True).fill(f"noise {uuid4().hex[:8]}")
    page.get_by_label("Their names, one on each line").fill("a\nb\nc")
    page.get_by_label("Groups").fill("2")
    page.get_by_label("Numbers in one measurement").fill("2")
    page.get_by_label("What do you know about the noise?").select_option("known")
    deviation = page.get_by_label("Standard deviation", exact=True)
    deviation.fill("0,5")
    page.get_by_role("button", name="Create campaign").click()
    page.locator("#noise-problem").filter(has_text="“0,5” may be one number or two").wait_for()
    deviation.fill("0,5 2")
    page.get_by_role("button", name="Create campaign").click()
    page.wait_for_url("**/campaigns/*")
    assert api.get(f"/api/campaigns/{page.url.rpartition('/')[2]}").json["noise"] == [0.5, 2.0]
