"""Inviting over HTTP: an owner's link logs one browser in, once; nobody else makes, sees or uses one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from urllib.parse import urlencode, urlsplit

from page_steps import show_part
from waiting import PATIENCE, wait_until

C = "/api/campaigns"
READ_TOKEN = "a-token-for-readers-0123456789"


def join(api: Any, secret: str, goal: str = "/", **headers: str) -> Any:
    body = urlencode({"token": secret, "next": goal}).encode()
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", **headers}
    return api.with_token(None).post("/login", raw=body, headers=sent)


def test_a_link_logs_one_browser_in_as_a_worker_of_one_campaign(api: Any) -> None:
    id, other = api.create(), api.create()
    address = f"{C}/{id}/invitations"
    answer = api.post(address, {"name": f"ann {id}", "role": "worker", "hours": 2})
    assert answer.status == 201, answer.content
    made = answer.json
    link = urlsplit(made["link"])
    assert link.fragment == made["secret"], "browsers send what follows # to nobody"
    assert made["secret"] not in f"{link.path}{link.query}"
    assert made["qr"].startswith("<svg")
    page = api.with_token(None).get(f"{link.path}?{link.query}", headers={"Accept": "text/html"})
    assert page.status == 200, "looking at the link uses nothing up"
    assert b"/static/invitation.js" in page.content
    assert api.with_token(made["secret"]).get(C).status in (401, 429), "it is no token"
    assert join(api, made["secret"], **{"Sec-Fetch-Site": "cross-site"}).status == 403

    joined = join(api, made["secret"], f"/campaigns/{id}")
    assert (joined.status, joined.headers["location"]) == (303, f"/campaigns/{id}")
    flags = joined.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    assert made["secret"] not in flags
    ann = {"Cookie": joined.headers["set-cookie"].partition(";")[0], "Sec-Fetch-Site": "same-origin"}
    stranger = api.with_token(None)
    asks = stranger.post(f"{C}/{id}/ask", {"worker": "ann", "n": 1}, headers=ann)
    assert asks.status == 200, asks.content
    assert stranger.get(f"{C}/{other}", headers=ann).status == 403
    for verb, path, body in (("POST", address, {"name": "friend"}), ("GET", address, None),
                             ("DELETE", f"{address}?invitation={made['id']}", None)):  # fmt: skip
        assert stranger.send(verb, path, body, headers=ann).status == 403, "a worker invites nobody"

    again = join(api, made["secret"])
    assert again.status == 401
    assert b"This invitation has been used" in again.content
    (listed,) = api.get(address).json["invitations"]
    assert (listed["state"], listed["name"]) == ("used", f"ann {id}")
    assert "secret" not in listed
    assert api.send("DELETE", f"{address}?invitation={made['id']}").status == 200
    wait_until(lambda: stranger.get(f"{C}/{id}", headers=ann).status == 401)  # logged out within a second
    assert api.get(f"{C}/{id}").json["open_leases"] == [], "and the ask was given back"


def test_an_invitation_that_was_taken_back_is_one_sentence(api: Any) -> None:
    id = api.create()
    address = f"{C}/{id}/invitations"
    made = api.post(address, {"name": f"bob {id}", "role": "reader"}).json
    assert api.send("DELETE", f"{address}?invitation={made['id']}").json["state"] == "revoked"
    refused = join(api, made["secret"])
    assert refused.status == 401
    assert b"This invitation was taken back: ask for another one." in refused.content
    assert api.send("DELETE", f"{address}?invitation=ffff").error["code"] == "unknown_invitation"
    assert api.send("DELETE", f"{C}/{api.create()}/invitations?invitation={made['id']}").status == 404


def test_who_may_be_invited_is_checked(api: Any) -> None:
    id = api.create()
    address = f"{C}/{id}/invitations"
    for body, field in (({"name": "x", "role": "owner"}, "role"), ({"name": ""}, "name"), ({}, "name"),
                        ({"name": "x", "hours": 0}, "hours"), ({"name": "x", "hours": 1e6}, "hours")):  # fmt: skip
        answer = api.send("POST", address, body)
        assert (answer.status, answer.error["field"]) == (422, field), body
    reader = api.with_token(READ_TOKEN)
    assert reader.get(address).status == 403
    assert reader.post(address, {"name": "x"}).status == 403
    assert api.get(f"{C}/0123/invitations").status == 404


def test_the_command_line_makes_lists_and_revokes_them(server: Any, api: Any) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "coterie.cli", "token", *arguments, "--store", str(server.store)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    link = run("invite", "carol", "--role", "reader", "--server", "https://lab.example/").strip()
    assert link.startswith("https://lab.example/login#invite-")
    assert "carol" in run("list")
    assert link.partition("#")[2] not in run("list")
    assert run("revoke", "carol").startswith("revoked: carol")
    assert join(api, link.partition("#")[2]).status == 401


def test_an_owner_invites_on_the_page_and_a_phone_opens_the_link(api: Any, browser: Any, opened: Any) -> None:
    id = api.create()
    page = opened(f"/campaigns/{id}")
    show_part(page, "settings")
    page.get_by_role("button", name="Invite", exact=True).click()
    assert "Say who is invited" in page.locator("#invite-problem").text_content()
    page.get_by_label("Who is invited?").fill(f"dora {id}")
    page.get_by_label("Hours that it is valid").fill("721")
    page.get_by_role("button", name="Invite", exact=True).click()
    assert "Say how many hours, as 24 or 0.5, and at most 720." in page.locator("#invite-problem").text_content()
    page.get_by_label("Hours that it is valid").fill("24")
    page.get_by_role("button", name="Invite", exact=True).click()
    page.locator("#invite-qr svg").wait_for(state="visible")
    assert page.locator("#invite-only-here").is_visible()
    link = page.locator("#invite-link").text_content()
    contexts = [browser.new_context(viewport={"width": 390, "height": 844}) for _ in range(2)]
    try:
        for context in contexts:
            context.set_default_timeout(1000 * PATIENCE)
        phone, second = (context.new_page() for context in contexts)
        phone.goto(link)
        phone.locator("#invited").wait_for(state="visible")
        assert "invite-" not in phone.url, "it stays in no history"
        phone.get_by_role("button", name="Log in").click()
        phone.wait_for_url(f"{api.url}/campaigns/{id}")
        assert phone.get_by_role("button", name="Invite", exact=True).count() == 0
        assert phone.get_by_label("Your name or bench").input_value() == f"dora {id}"
        second.goto(link)
        second.get_by_role("button", name="Log in").click()
        assert "has been used" in second.locator("#token-problem").text_content()
        page.get_by_text("joined").wait_for()  # without a refresh
        page.get_by_role("button", name=f"Revoke: dora {id}").click()
        page.get_by_text("taken back").wait_for()
    finally:
        for context in contexts:
            context.close()
