"""Whether the server is compiling: the first ask after an installation waits for that, and the page says so."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from coterie.engine.compile_watch import compilation
from coterie.web.api import errors_of
from coterie.web.json_response import to_json
from coterie.web.response_models import Compiling


def compiling_state() -> dict[str, Any]:
    """What is being compiled now, the seconds so far, and about how many it takes in all; nulls if nothing is."""
    found = compilation()
    if found is None:
        return {"compiling": None, "seconds": None, "expected": None}
    return {"compiling": found.what, "seconds": round(found.seconds, 1), "expected": round(found.expected, 1)}


def compiling_router() -> APIRouter:
    """One address, which asks nothing of the store: it answers while a decision waits for the compiler."""
    router = APIRouter(prefix="/api", tags=["server"])

    @router.get("/compiling", response_model=Compiling, responses=errors_of())
    async def compiling() -> Response:
        """What is being compiled, once after an installation, while somebody waits for it."""
        return Response(to_json(compiling_state()), media_type="application/json")

    return router
