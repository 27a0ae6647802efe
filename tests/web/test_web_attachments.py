"""Files over HTTP: who may send one, and that none of them runs in a browser."""

from __future__ import annotations

import http.client
import io
import zipfile
from typing import Any
from urllib.parse import quote

from page_steps import measure_once, new_campaign, start_measuring
from typer.testing import CliRunner

from coterie.cli import app
from coterie.client import Client

C = "/api/campaigns"
PAGE = b"<html><script>document.title = 'taken'</script></html>"


def attach(api: Any, id: str, content: bytes, measurement: str = "m1", name: str = "leaf.html") -> tuple[int, bytes]:
    """The status and the body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", api.port)
    path = f"{C}/{id}/attachments?measurement={measurement}&name={quote(name)}"
    connection.request("POST", path, content, {"Authorization": f"Bearer {api.token}", "Content-Type": "text/html"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def measured(api: Any) -> str:
    id = str(api.create(method="uniform"))
    assert api.tell(id, {"id": "m1", "arm": 0, "values": [0.5, 1.0]}).status == 200
    return id


def test_what_was_sent_comes_back_as_a_file_and_runs_nowhere(server: Any) -> None:
    api = server.api
    id = measured(api)
    assert attach(api, id, PAGE)[0] == 200
    (about,) = api.get(f"{C}/{id}/attachments").json["attachments"]
    assert about["type"] == "text/plain"
    answer = api.get(f"{C}/{id}/attachment?sha256={about['sha256']}")
    assert answer.content == PAGE
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    raw = http.client.HTTPConnection("127.0.0.1", api.port)
    raw.request(
        "GET", f"{C}/{id}/attachment?sha256={about['sha256']}", headers={"Authorization": f"Bearer {api.token}"}
    )
    assert "default-src 'none'; sandbox" in (raw.getresponse().headers.get_all("content-security-policy") or [])
    log = api.get(f"/campaigns/{id}/log").content.decode()
    assert f"attachment?sha256={about['sha256']}" in log
    assert "leaf.html" in log
    with zipfile.ZipFile(io.BytesIO(api.get(f"{C}/{id}/attachments.zip").content)) as file:
        assert file.namelist() == ["m1/leaf.html"]


def test_a_wrong_one_is_one_sentence_and_the_result_stays(server: Any) -> None:
    api = server.api
    id = measured(api)
    status, body = attach(api, id, b"\x7fELF\x02")
    assert (status, b"the measurement is kept" in body) == (422, True)
    assert attach(api, id, b"a note", measurement="m2")[0] == 404
    assert api.get(f"{C}/{id}/attachment?sha256=00").status == 404
    assert len(api.get(f"{C}/{id}/measurements").json["measurements"]) == 1


def test_readers_look_and_workers_add_to_their_own(start: Any) -> None:
    server = start("--read-token", "a-token-for-readers-0123456789")
    api = server.api
    id = measured(api)
    attach(api, id, b"a note")
    reader = api.with_token("a-token-for-readers-0123456789")
    (about,) = reader.get(f"{C}/{id}/attachments").json["attachments"]
    assert reader.get(f"{C}/{id}/attachment?sha256={about['sha256']}").content == b"a note"
    assert attach(reader, id, b"another")[0] == 403
    assert api.with_token(None).get(f"{C}/{id}/attachment?sha256={about['sha256']}").status == 401
    other = api.post(f"{C}/{id}/invitations", {"name": "ann", "role": "worker", "hours": 1})
    assert other.status in (200, 201)


def test_the_client_and_the_command(start: Any, tmp_path: Any) -> None:
    server = start()
    id = measured(server.api)
    with Client(server.api.url, server.api.token) as client:
        campaign = client.campaign(id)
        kept = campaign.attach("m1", "pale, and one leaf less", "note.txt")
        assert campaign.attachments("m1") == [kept]
        assert campaign.attachment(kept["sha256"]) == b"pale, and one leaf less"
        assert campaign.attachment().startswith(b"PK")
    out = tmp_path / "files.zip"
    words = ["campaign", "export", id, "--kind", "attachments", "--store", str(server.store)]
    assert CliRunner().invoke(app, [*words, "--out", str(out)]).exit_code == 0
    assert zipfile.ZipFile(out).namelist() == ["m1/note.txt"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0


def test_a_photo_and_a_wrong_file_on_the_page(opened: Any, api: Any) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}")
    start_measuring(page, "ann")
    page.locator("#attaching summary").click()
    page.get_by_label("Note").fill("pale, and one leaf less")
    page.get_by_label("Photos or files").set_input_files([
        {"name": "leaf.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(64)},
        {"name": "tool.exe", "mimeType": "image/png", "buffer": b"MZ\x90\x00"},
        {"name": "huge.txt", "mimeType": "text/plain", "buffer": b"x" * (8 * 2**20 + 2**17)},
    ])  # fmt: skip
    assert measure_once(page, 0)
    problem = page.locator("#attachment-problem")
    problem.wait_for()
    assert "The result is saved, but tool.exe was not attached" in problem.inner_text()
    assert "tool.exe was not attached: it is no photo, PDF, text, Excel file or ZIP." in problem.inner_text()
    assert "huge.txt was not attached: it has 8.1 MB, and a file may have 8." in problem.inner_text()
    assert page.get_by_label("Photos or files").evaluate("(field) => field.files.length") == 0
    assert page.get_by_label("Note").input_value() == ""
    kept, note = api.get(f"{C}/{id}/attachments").json["attachments"]
    assert (kept["file"], note["file"]) == ("leaf.png", "note.txt")
    assert api.get(f"{C}/{id}/attachment?sha256={note['sha256']}").content == b"pale, and one leaf less"
    assert len(api.get(f"{C}/{id}/measurements").json["measurements"]) == 1
    page.goto(f"{api.url}/campaigns/{id}/log")
    link = page.get_by_role("link", name="leaf.png")
    with page.expect_download() as saved:
        link.click()
    assert saved.value.suggested_filename == "leaf.png"
    page.goto(f"{api.url}/campaigns/{id}#part-log")
    with page.expect_download() as saved:
        page.get_by_role("link", name="photos, files and notes").click()
    called = api.get(f"{C}/{id}").json["name"].replace(" ", "-")
    assert saved.value.suggested_filename == f"{called}-files.zip"
