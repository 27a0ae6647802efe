"""What a campaign is created with: checked once, kept as JSON, turned into a session."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from typing import Any

from coterie.campaign.errors import BadValue
from coterie.problem.checks import check_count, check_positive, check_real, short
from coterie.problem.text import check_text as check_plain_text
from coterie.session import Session

ENGINE = 3
"""The number of the decision rules. A release whose methods ask for other arms on the same results raises it.

1: the first. 2: CROC counts from the first result, and its representatives tie by index. 3: CROC's estimate has the
largest posterior, and rounds follow one another before their results are in.
"""

ON_EXPIRY = ("skip", "wait")
LARGEST_BATCH = 10_000
_LONGEST_LEASE = 10 * 366 * 86400.0
_SHORTEST_LEASE = 0.1  # shorter ones would be over before the answer is there
_LARGEST = 10**7
"""Of arms and of coordinates: more is a slip of the finger, and would take all memory before it is noticed."""


@dataclass(frozen=True)
class Settings:
    """As `Session` takes them, and the rules for leases."""

    n_arms: int
    n_clusters: int
    dim: int
    delta: float
    method: str
    threshold: str
    noise: Any
    names: tuple[str, ...] | None
    distance_ratio: float | None
    lease_seconds: float
    on_expiry: str
    engine: int = ENGINE
    value_names: tuple[str, ...] | None = None  # what the numbers of a measurement are called

    def session(self) -> Session:
        """A session at its beginning."""
        return Session(
            self.n_arms,
            self.n_clusters,
            self.dim,
            self.delta,
            self.method,
            self.threshold,
            self.noise,
            self.distance_ratio,
            names=self.names,
        )

    def name_of(self, arm: int) -> str:
        """What people call an arm: its name, or its number."""
        return str(arm) if self.names is None else self.names[arm]

    @property
    def columns(self) -> list[str]:
        """What the numbers of a measurement are called: their names, or v0, v1, …"""
        return [f"v{i}" for i in range(self.dim)] if self.value_names is None else list(self.value_names)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    def to_json(self) -> str:
        """As it is stored."""
        return json.dumps(self.as_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """As it was stored. Settings that a later release added are left aside; an earlier one had no value_names."""
        saved = {"value_names": None} | json.loads(text)
        known = {key: saved[key] for key in cls.__dataclass_fields__}
        listed = {key: None if saved[key] is None else tuple(saved[key]) for key in ("names", "value_names")}
        return cls(**known | listed)


def check_settings(
    n_arms: Any,
    n_clusters: Any,
    dim: Any,
    delta: Any,
    method: Any,
    threshold: Any,
    noise: Any,
    names: Any,
    distance_ratio: Any,
    lease_seconds: Any,
    on_expiry: Any,
    value_names: Any = None,
) -> Settings:
    """Settings that a session takes; `BadValue` names the field at fault."""
    for value, field in ((n_arms, "n_arms"), (dim, "dim")):
        if at(field, check_count, value, field, 1) > _LARGEST:
            raise BadValue(f"{field} must be at most {_LARGEST}, got {value}", field=field)
    if names is not None:
        if not isinstance(names, list | tuple):
            raise BadValue(f"names must be a list of {n_arms} strings, got {short(names)}", field="names")
        names = tuple(check_text(name, f"names[{i}]") for i, name in enumerate(names))
    if method == "oracle":
        raise BadValue("method 'oracle' knows the true groups: it is for simulations", field="method")
    seconds = at("lease_seconds", check_positive, lease_seconds, "lease_seconds")
    if seconds < _SHORTEST_LEASE:
        raise BadValue(f"lease_seconds must be at least {_SHORTEST_LEASE:g}, got {seconds:g}", field="lease_seconds")
    if seconds > _LONGEST_LEASE:
        raise BadValue(f"lease_seconds must be at most {_LONGEST_LEASE:g}, got {seconds:g}", field="lease_seconds")
    if not isinstance(on_expiry, str) or on_expiry not in ON_EXPIRY:
        raise BadValue(f"on_expiry must be one of {', '.join(ON_EXPIRY)}, got {short(on_expiry)}", field="on_expiry")
    ratio = None if distance_ratio is None else at("distance_ratio", check_real, distance_ratio, "distance_ratio")
    session = _checked_session(n_arms, n_clusters, dim, delta, method, threshold, noise, ratio, names)
    return Settings(
        session.n_arms,
        session.n_clusters,
        session.dim,
        session.delta,
        session.method,
        session.threshold,
        session.noise.to_json(),
        session.names,
        session.distance_ratio,
        seconds,
        on_expiry,
        value_names=_checked_value_names(value_names, session.dim),
    )


def _checked_value_names(given: Any, dim: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    field = "value_names"
    if not isinstance(given, list | tuple):
        raise BadValue(f"{field} must be a list of {dim} strings, got {short(given)}", field=field)
    names = tuple(check_text(name, f"{field}[{i}]") for i, name in enumerate(given))
    if len(names) != dim:
        what = f"{len(names)} names ({', '.join(names)}) for {dim} number{'' if dim == 1 else 's'} a measurement"
        raise BadValue(f"{field} must be {dim} strings, one for each number: got {what}", field=field)
    wrong = next((name for i, name in enumerate(names) if name.casefold() in ("arm", "id") or name in names[:i]), None)
    if wrong is not None:
        raise BadValue(f"{field} must differ from each other and from arm and id, got {wrong!r}", field=field)
    return names


_ABOUT = ("delta", "method", "threshold", "noise", "distance_ratio", "names", "n_clusters", "dim", "n_arms")


def _checked_session(*arguments: Any) -> Session:
    n_arms, n_clusters, dim, delta, method, threshold, noise, ratio, names = arguments
    try:
        return Session(n_arms, n_clusters, dim, delta, method, threshold, noise, ratio, names=names)
    except (ValueError, TypeError, OverflowError) as error:
        message = str(error)
        raise BadValue(message, field=next((field for field in _ABOUT if field in message), None)) from None
    except MemoryError:
        raise BadValue(f"{n_arms} arms, {n_clusters} groups and dimension {dim} do not fit in memory") from None


def new_key() -> str:
    """An id that nobody guesses and everybody can type: 96 bits as letters and digits."""
    return secrets.token_hex(12)


def at(field: str, check: Any, *arguments: Any) -> Any:
    """The answer of a check; what it refuses is a `BadValue` of this field."""
    try:
        return check(*arguments)
    except (ValueError, TypeError, OverflowError) as error:
        place = f"{field}: " if "[" in field else ""  # one of many: the message says which
        raise BadValue(f"{place}{error}", field=field) from None


def check_text(value: Any, field: str) -> str:
    """A name or an id: some characters that can be seen, stored and printed."""
    try:
        return check_plain_text(value, field)
    except (ValueError, TypeError) as error:
        raise BadValue(str(error), field=field) from None


def printable(text: str) -> str:
    """Any text as it is put on record: what cannot be printed is a blank."""
    return "".join(character if character.isprintable() else " " for character in text)
