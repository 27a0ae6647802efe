"""Endpoints of a campaign's owner: invite somebody to it with a link, list the invitations, take one back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from coterie.campaign import Campaigns
from coterie.campaign.service.invitations import HOURS, MOST_HOURS
from coterie.campaign.tokens import OWNER, WORKER
from coterie.web.answers import Refusal, json_response
from coterie.web.pages import is_local, origin_of, qr_svg
from coterie.web.request_models import Body, Id, read_body, request_body
from coterie.web.response_models import READING, WRITING, Answer


class InviteBody(Body):
    """Whom an invitation is for, and how long it can be used."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ann", "role": "worker", "hours": 24}]})
    name: str = Field(description="What the token that is made of it will be called.")
    role: Literal["worker", "reader"] = WORKER  # type: ignore[assignment]
    hours: float = Field(HOURS, gt=0, le=MOST_HOURS, description="How long the link can be used.")


class Invitation(Answer):
    """An invitation. `state`: open, used, expired or revoked; `token`: the id of the token that was made of it."""

    id: str
    name: str
    role: str
    campaign: str | None
    created: str
    expires: str | None
    state: str
    token: str | None


class NewInvitation(Invitation):
    """An invitation with its secret, shown this once; `link` and `qr` (SVG) open the login page with it, `only_here`
    if they can be reached from this machine alone.
    """

    secret: str
    link: str | None
    qr: str | None
    only_here: bool


class InvitationList(Answer):
    """All invitations of a campaign."""

    invitations: list[Invitation]


def inviting_router(store: Campaigns) -> APIRouter:
    """The addresses of a campaign's invitations."""
    router = APIRouter(prefix="/api/campaigns", tags=["invitations"])
    address = "/{id}/invitations"

    @router.post(address, status_code=201, response_model=NewInvitation, responses=WRITING,
                 openapi_extra=request_body(InviteBody))  # fmt: skip
    async def invite(id: Id, request: Request) -> Response:
        """Invite somebody to a campaign: the link logs one browser in, once, with a token of its own."""
        body = await read_body(request, InviteBody)
        origin = origin_of(request)

        def make() -> dict[str, Any]:
            made = store.invitations.make(body.name, body.role, id, body.hours)
            link = None if origin is None else f"{origin}/login?next=/campaigns/{made['campaign']}#{made['secret']}"
            only_here = origin is not None and is_local(origin)
            return made | {"link": link, "only_here": only_here, "qr": None if link is None else qr_svg(link)}

        return await json_response(make, status=201)

    @router.get(address, response_model=InvitationList, responses=READING)
    async def invitations(id: Id, request: Request) -> Response:
        """The invitations to a campaign, without their secrets. Owners only."""
        if request.state.caller.role != OWNER:
            raise Refusal(403, "not_for_this_token", "this needs a token of an owner")

        def listed() -> dict[str, Any]:
            return {"invitations": store.invitations.listed(store.overview(id)["id"])}

        return await json_response(listed)

    @router.delete(address, response_model=Invitation, responses=WRITING)
    async def revoke_invitation(
        id: Id, invitation: Annotated[str, Query(max_length=200, description="The invitation's id.")]
    ) -> Response:
        """Take an invitation back; whoever has used it is logged out, and their open asks are given back."""

        def revoke() -> dict[str, Any]:
            ended = store.invitations.revoke(invitation, store.overview(id)["id"])
            if ended["token"] is not None and any(
                row["id"] == ended["token"] and not row["revoked"] for row in store.tokens()
            ):
                store.revoke_token(ended["token"])
            return ended

        return await json_response(revoke)

    return router
