"""A connection to a server: requests that are sent again where that changes nothing, and what the server refuses."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from coterie.problem.checks import check_count, short

if TYPE_CHECKING:
    import httpx

ADDRESS = "http://127.0.0.1:8000"
"""Where `coterie serve` is, if nothing is said."""
LONGEST_PAUSE = 10.0
"""Between two tries, in seconds."""

_EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_TOO_MANY, _UNAVAILABLE = 429, 503


class ServerError(Exception):
    """What the server refused; its text is the server's sentence.

    Attributes
    ----------
    status : int
        Of HTTP.
    code : str
        For programs.
    field : str or None
        The part of the request at fault.
    """

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.field = status, code, field


class Connection:
    """Requests to one server with one token."""

    def __init__(
        self, url: str = ADDRESS, token: str | None = None, *, timeout: float = 60.0, retries: int = 5
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise ImportError('coterie.client needs httpx: pip install "coterie[client]"') from None
        given = os.environ.get("COTERIE_TOKEN") if token is None else token
        if not given:
            raise ValueError("token must be the server's token, got none: give token=, or set COTERIE_TOKEN")
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise ValueError(f"url must be an address as {ADDRESS}, got {short(url)}")
        self.retries = check_count(retries, "retries", 0)
        self.url = url.rstrip("/")
        self.lost: type[httpx.TransportError] = httpx.TransportError
        self._unsent: tuple[type[httpx.TransportError], ...] = (httpx.ConnectError, httpx.ConnectTimeout)
        self._http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {given}"}, timeout=timeout, trust_env=False
        )

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def healthy(self) -> bool:
        """Whether the server answers and can use its store; one try."""
        try:
            return bool(self._http.get("/healthz").status_code == 200)
        except self.lost:
            return False

    def request(self, method: str, path: str, body: Any = None, *, repeatable: bool = True) -> Any:
        """The JSON that the server answers; for addresses that have no method of their own yet."""
        return self.send(method, path, body, repeatable=repeatable).json()

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a stream as they come; it ends when the server or the connection does."""
        with self._http.stream("GET", path) as answer:
            if not answer.is_success:
                answer.read()
                raise _refusal(answer)
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    yield cast(dict[str, Any], json.loads(line.removeprefix("data:")))

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        repeatable: bool = True,
        content: bytes | str | None = None,
    ) -> httpx.Response:
        """An answer of the server, after further tries where none came; `ServerError` if it refuses."""
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            pause = min(0.1 * 2**attempt, LONGEST_PAUSE)
            try:
                answer = self._http.request(method, path, json=body, content=content, headers=_headers(content))
            except self.lost as error:
                if last or not (repeatable or isinstance(error, self._unsent)):
                    error.add_note(f"coterie: no answer from {self.url} after {attempt + 1} tries")
                    raise
            else:
                if answer.is_success:
                    return answer
                if last or answer.status_code not in (_TOO_MANY, _UNAVAILABLE):
                    raise _refusal(answer)
                pause = _pause(answer, pause)
            time.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")


def query_of(**given: Any) -> str:
    """The part of an address behind the question mark; what is None is left out."""
    return urlencode({name: value for name, value in given.items() if value is not None}, doseq=True)


def _headers(content: bytes | str | None) -> dict[str, str] | None:
    """What a table is sent as: an Excel file is a zip archive, everything else is text."""
    if content is None:
        return None
    excel = isinstance(content, bytes) and content.startswith(b"PK")
    return {"content-type": _EXCEL if excel else "text/csv"}


def _refusal(answer: httpx.Response) -> ServerError:
    try:
        error = answer.json()["error"]
        return ServerError(answer.status_code, error["code"], error["message"], error["field"])
    except (ValueError, KeyError, TypeError):
        message = f"the server answered {answer.status_code} without saying why; is it coterie serve?"
        return ServerError(answer.status_code, "unknown", message)


def _pause(answer: httpx.Response, otherwise: float) -> float:
    """How long to wait: as long as the server says, if it does."""
    said = answer.headers.get("retry-after", "")
    return min(float(said), LONGEST_PAUSE) if said.isdecimal() else otherwise
