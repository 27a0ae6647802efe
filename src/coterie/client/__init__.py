"""A client for the HTTP interface of `coterie serve`, for programs and notebooks on other machines (extra `client`).

A request whose answer was lost is sent again where that changes nothing: results carry ids, and a worker who asks again
gets its own open items back. What the server refuses is a `ServerError` with the server's sentence.
"""

from __future__ import annotations

from coterie.client.answers import Ask, Asks, Awaited, Item, Measurement, Recorded, Status, Summary, Told
from coterie.client.campaign import RemoteCampaign
from coterie.client.connection import ADDRESS, ServerError
from coterie.client.server import Client

__all__ = [
    "ADDRESS", "Ask", "Asks", "Awaited", "Client", "Item", "Measurement", "Recorded", "RemoteCampaign", "ServerError",
    "Status", "Summary", "Told",
]  # fmt: skip
