"""Pages around a campaign: one to print, one to import a table, and the QR code of its address for phones."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import Response

from coterie.campaign import CampaignError, Campaigns
from coterie.campaign.tokens import OWNER
from coterie.campaign.views import MOST_LISTED
from coterie.web.json_response import SlowReads
from coterie.web.pages import page_response

PRINTED_ITEMS = 1000
"""Items of the table on the page that is printed; of more, the groups alone are."""
_HOST = re.compile(r"[\w.\-]+(?::\d{1,5})?|\[[0-9a-fA-F:.]+\](?::\d{1,5})?", re.ASCII)


def sharing_router(store: Campaigns, slow: SlowReads) -> APIRouter:
    """The addresses of these pages."""
    router = APIRouter(include_in_schema=False)

    @router.get("/campaigns/{id}/print")
    async def printed(id: str, request: Request) -> Response:
        content = await slow.run(lambda: print_page(store, id))
        return page_response("print.html", request, **content)

    @router.get("/campaigns/{id}/import")
    def import_page(id: str, request: Request) -> Response:
        settings, summary = store.settings(id), store.overview(id)
        may_import = request.state.caller.role == OWNER
        return page_response("import.html", request, campaign=summary, settings=settings, may_import=may_import)

    @router.get("/campaigns/{id}/qr")
    def qr(id: str, request: Request) -> Response:
        store.overview(id)  # that there is one
        address = address_of(request, id)
        svg = None if address is None else qr_svg(address)
        only_here = address is not None and is_local(address)
        return page_response("qr.html", request, address=address, svg=svg, only_here=only_here)

    return router


def address_of(request: Request, id: str) -> str | None:
    """The address of a campaign's page, as this browser calls the server; None if it says nothing that is one.

    Nothing else is in it: no token, and nothing of what was asked.
    """
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}/campaigns/{id}" if _HOST.fullmatch(host) else None


def is_local(address: str) -> bool:
    """Whether an address is one that only this machine reaches."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def qr_svg(address: str) -> Markup | None:
    """A QR code as SVG to be put into a page, dark on light in the dark too; None if segno is not installed."""
    try:
        import segno
    except ImportError:
        return None
    made = segno.make(address, error="m", micro=False)
    return Markup(made.svg_inline(scale=1, border=4, dark="#000", light="#fff", omitsize=True))  # numbers only


def print_page(store: Campaigns, id: str) -> dict[str, Any]:
    """What is printed of a campaign: what was found and proven, the groups, the numbers, and how to verify it."""
    status = store.status(id, PRINTED_ITEMS)
    rows = []
    if not status["cut"]:
        names = status["names"] or [str(arm) for arm in range(status["n_arms"])]
        group_of = {arm: group["id"] for group in status["groups"] for arm in group["arms"]}
        rows = [
            {"name": names[arm], "group": group_of.get(arm), "measurements": count}
            for arm, count in enumerate(status["pulls"])
        ]
        if group_of:
            rows.sort(key=lambda row: row["group"] or 0)
    proven = status["done"] and status["certifies"] and status["n_arms"] <= MOST_LISTED
    return {
        "status": status,
        "items": None if status["cut"] else rows,
        "digests": _digests(store, id) if proven else None,
        "warned": bool(status["alarm"] or status["doubt"] or [one for one in status["alarms"] if not one["harmless"]]),
    }


def _digests(store: Campaigns, id: str) -> dict[str, str] | None:
    """SHA-256 of the files that the proof consists of, so that a sheet of paper says which ones it is about."""
    try:
        texts = {kind: store.export(id, kind) for kind in ("certificate", "log")}
    except CampaignError:  # a campaign that an older release finished may have none
        return None
    return {kind: hashlib.sha256(text.encode("utf-8")).hexdigest() for kind, text in texts.items()}
