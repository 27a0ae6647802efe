"""What a campaign is created with: the settings of its run, the rules for leases, and what its numbers are called.

Checked once, by `CampaignSettings.of`; kept as JSON in the campaign's row; read again when it is opened.
"""

from __future__ import annotations

import json
import math
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Unpack

from coterie.campaign.errors import BadValue, Conflict
from coterie.methods import METHODS, Method, method_named, prepared
from coterie.problem.checks import check_positive, short
from coterie.problem.checks import check_text as check_plain_text
from coterie.problem.settings import METHOD, Options, SettingError
from coterie.problem.settings import Settings as RunSettings
from coterie.session import Session

LEASE_SECONDS = 3600.0
"""How long a worker may take, if nothing is said."""
ON_EXPIRY = ("skip", "wait")
"""What may happen to a lease whose time is over; the first holds if nothing is said."""
PASS_ON = 2.0
"""Times the median of the times that answers took: then an ask that alone is waited for is asked of somebody else."""
LEAST_SECONDS, FEWEST_ANSWERS = 10.0, 3
"""… but not before so many seconds, nor before there are so many answers; its lease ends in any case."""
_LARGEST_PASS_ON = 1e6
LARGEST_BATCH = 10_000
_LONGEST_LEASE = 10 * 366 * 86400.0
_SHORTEST_LEASE = 0.1  # shorter ones would be over before the answer is there
MOST_ITEMS = 1_000_000
"""Items that a campaign may have in all, retired ones included: the size of `python -m bench.million`."""
_MOST_NUMBERS = 100_000
"""Of a measurement: what everybody who asks for the campaign's status or page is sent."""
_LARGEST_SHAPE = 10**7
"""Arms times coordinates."""
_PARSED_KEPT = 64  # settings kept as objects: a list of campaigns reads every one of them each time


@dataclass(frozen=True)
class CampaignSettings:
    """The settings of the run, and of the campaign around it.

    `rules` is the number of the decision rules that the campaign was created with (see `coterie.methods.Method`).
    `value_names`: what the numbers of a measurement are called. `pass_on`: see `coterie.campaign.views.asks`; 0: never.
    """

    run: RunSettings
    lease_seconds: float
    on_expiry: str
    rules: int
    value_names: tuple[str, ...] | None = None
    pass_on: float = PASS_ON

    @classmethod
    def of(
        cls,
        n_arms: Any,
        n_clusters: Any = None,
        dim: Any = None,
        *,
        lease_seconds: Any = LEASE_SECONDS,
        on_expiry: Any = ON_EXPIRY[0],
        value_names: Any = None,
        pass_on: Any = None,
        **options: Unpack[Options],
    ) -> CampaignSettings:
        """Settings from what a caller gave; `BadValue` names the field at fault."""
        for size, field, most in ((n_arms, "n_arms", MOST_ITEMS), (dim, "dim", _MOST_NUMBERS)):
            if isinstance(size, int) and size > most:
                raise BadValue(f"{field} must be at most {most}, got {size}", field=field)
        if isinstance(n_arms, int) and isinstance(dim, int) and n_arms * dim > _LARGEST_SHAPE:
            raise BadValue(f"n_arms times dim must be at most {_LARGEST_SHAPE}, got {n_arms * dim}", field="n_arms")
        names: Any = options.get("names")
        if names is not None:
            options["names"] = _checked_texts(names, "names", n_arms)
        try:
            if method_named(options.get("method", METHOD)).simulates_only:
                refused = f"method {options['method']!r} knows the true groups: it is for simulations"
                others = ", ".join(known.name for known in METHODS.values() if not known.simulates_only)
                raise BadValue(f"{refused}; choose one of {others}", field="method")
            run, method = prepared(RunSettings.of(n_arms, n_clusters, dim, **options))
        except SettingError as error:
            raise BadValue(str(error), field=error.field) from None
        seconds, ending = checked_lease_seconds(lease_seconds), _checked_on_expiry(on_expiry)
        if value_names is not None and run.features is not None:
            raise BadValue("value_names must be left out with features, which have names", field="value_names")
        called, factor = _checked_value_names(value_names, run.dim), _checked_pass_on(pass_on, ending)
        made = cls(run, seconds, ending, method.rules, called, factor)
        made._check_that_it_starts()
        return made

    def _check_that_it_starts(self) -> None:
        try:
            self.session()
        except MemoryError:
            shape = f"{self.n_arms} arms, {self.run.question.words} and dimension {self.dim}"
            raise BadValue(f"{shape} do not fit in memory") from None
        except (ValueError, TypeError, OverflowError) as error:
            raise BadValue(f"method {self.method!r} does not start: {error}", field="method") from error

    def as_revised(self, run: RunSettings) -> CampaignSettings:
        """The same with the items, the number of groups, δ and the deadline of now; the first resolution stays."""
        question = self.run.question if self.run.resolution is not None else run.question
        return replace(self, run=replace(run, question=question))

    def without_items(self) -> CampaignSettings:
        """The same without what there is of every item: names and costs."""
        return replace(self, run=replace(self.run, names=None, costs=None))

    def session(self) -> Session:
        """A session at its beginning."""
        return Session.of(self.run)

    @property
    def n_arms(self) -> int:
        """M."""
        return self.run.n_arms

    @property
    def n_clusters(self) -> int | None:
        """K; None where the question is for a resolution, and K is found."""
        return self.run.n_clusters

    @property
    def dim(self) -> int:
        """d."""
        return self.run.dim

    @property
    def width(self) -> int:
        """How many numbers a result has at most: d, or with features as many as the largest panel."""
        return self.run.dim if self.run.features is None else self.run.features.width

    @property
    def n_panels(self) -> int:
        """How many panels of features there are; 1 without features."""
        return 1 if self.run.features is None else self.run.features.n_panels

    def item_of(self, arm: int) -> int:
        """The item of an arm of the record: with features that is an item with a panel, a stream."""
        return arm // self.n_panels

    def feature_of(self, arm: int) -> str | None:
        """The feature or panel of an arm of the record; None without features."""
        return None if self.run.features is None else self.run.features.panel_name(arm % self.n_panels)

    def named(self, arm: int) -> dict[str, Any]:
        """An arm of the record as answers have it: `arm` and `name` of the item, and `feature`, if there are any."""
        item, feature = self.item_of(arm), self.feature_of(arm)
        named = {"arm": item, "name": self.name_of(item)}
        return named if feature is None else named | {"feature": feature}

    def words_of(self, arm: int) -> str:
        """What people call an arm of the record: "iron of navy"; without features the item's name."""
        feature, item = self.feature_of(arm), self.name_of(self.item_of(arm))
        return item if feature is None else f"{feature} of {item}"

    def size_of(self, arm: int) -> int:
        """How many numbers a result of an arm of the record has."""
        features = self.run.features
        return self.dim if features is None else len(features.features_of(arm % self.n_panels))

    @property
    def delta(self) -> float:
        """The error probability that is allowed."""
        return self.run.delta

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.run.method

    @property
    def threshold(self) -> str:
        """At which the method stops, if it has several."""
        return self.run.threshold

    @property
    def noise(self) -> Any:
        """The noise as it was stated, in plain JSON: numbers, or {"family": …} with its parameters."""
        return self.run.noise.to_json()

    @property
    def names(self) -> tuple[str, ...] | None:
        """The items' names, if they have any."""
        return self.run.names

    def name_of(self, arm: int) -> str:
        """What people call an arm: its name, or its number."""
        return self.run.name_of(arm)

    @property
    def columns(self) -> list[str]:
        """What the numbers of a measurement are called: their names, or v0, v1, …"""
        return [f"v{i}" for i in range(self.dim)] if self.value_names is None else list(self.value_names)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, as they are stored and as the HTTP interface shows them."""
        run = self.run.to_json()
        del run["instance"]  # a campaign never knows the truth
        ratio = run.pop("distance_ratio")
        return {
            **run,
            "distance_ratio": ratio,
            "lease_seconds": self.lease_seconds,
            "on_expiry": self.on_expiry,
            "engine": self.rules,  # the key that stores have used from the start
            "value_names": None if self.value_names is None else list(self.value_names),
            "pass_on": self.pass_on,
        }

    def to_json(self) -> str:
        """The text that a store keeps."""
        return json.dumps(self.as_dict(), ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> CampaignSettings:
        """The settings that a store kept. What a later release added is left aside; the first had no value_names.

        The method may be one that this process does not know: `check_rules` says so when the campaign is opened.
        """
        return _parsed(text)


@lru_cache(_PARSED_KEPT)
def _parsed(text: str) -> CampaignSettings:
    saved = json.loads(text)
    names = saved.get("value_names")
    return CampaignSettings(
        RunSettings.from_json(saved),
        saved["lease_seconds"],
        saved["on_expiry"],
        saved["engine"],
        None if names is None else tuple(names),
        saved.get("pass_on", _usual_pass_on(saved["on_expiry"])),
    )


def check_rules(settings: CampaignSettings) -> Method:
    """The method of a campaign that is opened; `Conflict` if this process does not know it, or only older rules."""
    name = settings.method
    if name not in METHODS:
        raise Conflict(
            f"the campaign uses method {name!r}, which is not known in this process (known: {', '.join(METHODS)}): "
            "register it first, with --register MODULE on the command line or coterie.methods.register in Python",
            code="unknown_method",
            field="method",
        )
    method = METHODS[name]
    if settings.rules > method.rules:
        raise Conflict(
            f"the campaign was written with decision rules number {settings.rules} of method {name!r}, this release "
            f"has number {method.rules}: open it with a release of Coterie that has number {settings.rules} or later",
            code="newer_rules",
        )
    return method


# Checks.


def checked_lease_seconds(given: Any) -> float:
    field = "lease_seconds"
    seconds: float = checked_field(field, check_positive, given, field)
    if seconds < _SHORTEST_LEASE:
        raise BadValue(f"{field} must be at least {_SHORTEST_LEASE:g}, got {seconds:g}", field=field)
    if seconds > _LONGEST_LEASE:
        raise BadValue(f"{field} must be at most {_LONGEST_LEASE:g}, got {seconds:g}", field=field)
    return seconds


def _checked_on_expiry(given: Any) -> str:
    if not isinstance(given, str) or given not in ON_EXPIRY:
        raise BadValue(f"on_expiry must be one of {', '.join(ON_EXPIRY)}, got {short(given)}", field="on_expiry")
    return given


def _usual_pass_on(on_expiry: str) -> float:
    """Where leases wait, nothing is assumed about delays: then it is never."""
    return 0.0 if on_expiry == "wait" else PASS_ON


def _checked_pass_on(given: Any, on_expiry: str) -> float:
    field = "pass_on"
    if given is None:
        return _usual_pass_on(on_expiry)
    if isinstance(given, int | float) and not isinstance(given, bool) and given == 0:
        return 0.0
    factor: float = checked_field(field, check_positive, given, field)
    if factor > _LARGEST_PASS_ON:
        raise BadValue(f"{field} must be at most {_LARGEST_PASS_ON:g}, got {factor:g}: 0 is never", field=field)
    if on_expiry == "wait":
        raise BadValue(
            f"{field} must be 0 where on_expiry is wait, got {factor:g}: an ask that is passed on assumes that delays "
            "have nothing to do with values",
            field=field,
        )
    return factor


def _checked_texts(given: Any, field: str, count: Any) -> tuple[str, ...]:
    """A list of names that can be shown; the message about a list of the wrong length is the caller's."""
    if not isinstance(given, list | tuple):
        raise BadValue(f"{field} must be a list of {count} strings, got {short(given)}", field=field)
    return tuple(check_text(name, f"{field}[{i}]") for i, name in enumerate(given))


def _checked_value_names(given: Any, dim: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    field = "value_names"
    names = _checked_texts(given, field, dim)
    if len(names) != dim:
        mismatch = f"{len(names)} names ({', '.join(names)}) for {dim} number{'' if dim == 1 else 's'} a measurement"
        raise BadValue(f"{field} must be {dim} strings, one for each number: got {mismatch}", field=field)
    wrong = next((name for i, name in enumerate(names) if name.casefold() in ("arm", "id") or name in names[:i]), None)
    if wrong is not None:
        raise BadValue(f"{field} must differ from each other and from arm and id, got {wrong!r}", field=field)
    return names


def new_key() -> str:
    """An id that nobody guesses and everybody can type: 96 bits as letters and digits."""
    return secrets.token_hex(12)


def checked_field(field: str, check: Any, *arguments: Any) -> Any:
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


@lru_cache(maxsize=1024)
def timestamp(seconds: float) -> str:
    """Seconds since 1970 as 2026-01-31T12:00:00.000Z."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(number: float | None) -> float | None:
    """A number as JSON has them: no infinity, no NaN."""
    return None if number is None or not math.isfinite(number) else float(number)
