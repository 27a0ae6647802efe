"""The HTTP API and the page that people look at."""

from __future__ import annotations

try:
    import fastapi as fastapi
    import jinja2 as jinja2
    import uvicorn as uvicorn
except ImportError:
    raise ImportError("the server needs FastAPI, uvicorn and Jinja2: pip install 'coterie[serve]'") from None

from coterie.web.access import Access
from coterie.web.app import create_app
from coterie.web.serving import Server, serve

__all__ = ["create_app", "Access", "Server", "serve"]
