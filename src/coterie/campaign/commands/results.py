"""The results of a request, each checked against its campaign before anything is changed; errors name the place. A
value far from what its item gave before is put in words: a slip of the finger, perhaps.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coterie.campaign.commands.blocks import check_told_block
from coterie.campaign.errors import BadValue, Conflict, NotFound
from coterie.campaign.settings import check_text, checked_field, timestamp
from coterie.campaign.state.facts import padded
from coterie.campaign.state.leases import Lease
from coterie.campaign.state.state import State
from coterie.problem.checks import FloatArray, check_arm, check_far, check_measurement, short
from coterie.problem.features import Features

_MOST_COMPARED = 5000  # names that a wrong one is compared with: others wait meanwhile


def check_arm_of(state: State, arm: Any, field: str) -> int:
    """An arm by its number or by its name."""
    names = state.settings.names
    if isinstance(arm, str):
        try:
            return state.session.arm_named(arm)
        except ValueError:
            raise BadValue(f"{field}: unknown arm {arm!r}: {_known(arm, names)}", field=field) from None
    return int(checked_field(field, check_arm, arm, state.settings.n_arms))


def _known(given: str, names: tuple[str, ...] | None) -> str:
    """What an arm may be called, the most similar names first."""
    if names is None:
        return "the campaign's arms have no names, use their numbers, from 0"
    similar = difflib.get_close_matches(given, names[:_MOST_COMPARED], n=3)
    meant = f"did you mean {' or '.join(map(repr, similar))}? " if similar else ""
    return f"{meant}known names: {short(list(names))}"


def find_lease(state: State, lease: Any, field: str) -> Lease:
    """A lease of this campaign, open or not."""
    key = check_text(lease, field)
    if key not in state.leases:
        raise NotFound(f"{field}: there is no lease {key!r}", code="unknown_lease", field=field)
    return state.leases[key]


def lease_content(state: State, lease: Lease, now: float) -> dict[str, Any]:
    """A lease as status has it: of what, whose, until when."""
    return {
        "lease": lease.key,
        **state.settings.named(lease.stream),
        "worker": lease.worker,
        "asked": timestamp(lease.asked_at),
        "expires": timestamp(lease.expires_at),
        "expired": lease.expires_at <= now,
    } | ({} if state.session.blocks is None else {"block": state.session.block_of(lease.ticket)})


def lease_of(state: State, key: Any, now: float) -> dict[str, Any]:
    """A lease by its key, open or not, and how it stands."""
    lease = find_lease(state, key, "lease")
    stands = lease.ended or ("open" if lease.answer is None else "answered")
    return {**lease_content(state, lease, now), "state": stands, "measurement": lease.answer}


@dataclass
class GivenResult:
    """A measurement that passed the checks; `old` if it is already on record."""

    id: str
    arm: int  # of the record: with features an item with a panel
    values: FloatArray
    lease: Lease | None
    worker: str | None
    old: bool = False
    white: FloatArray | None = None  # the values in units of the noise, of one that is new
    block: str | None = None  # that it was measured in, if that is known

    @property
    def lease_key(self) -> str | None:
        """The lease that it names."""
        return None if self.lease is None else self.lease.key


def check_measurements(state: State, measurements: Any, most: int | None = None) -> list[GivenResult]:
    """Every measurement of a request checked against the campaign; the error names the row and its part."""
    if not isinstance(measurements, list | tuple):
        raise BadValue(f"measurements must be a list, got {short(measurements)}", field="measurements")
    if most is not None and len(measurements) > most:
        raise BadValue(
            f"at most {most} measurements at once, got {len(measurements)}: tell them in parts", field="measurements"
        )
    given: list[GivenResult] = []
    here: dict[str, GivenResult] = {}
    answered: dict[str, str] = {}
    for i, content in enumerate(measurements):
        result = _check_one(state, content, f"measurements[{i}]", answered)
        earlier = here.setdefault(result.id, result)
        if earlier is not result:
            _same(result.id, (earlier.arm, earlier.values, earlier.lease_key), result, f"measurements[{i}].id")
            result.old = True
        given.append(result)
    fresh = [result for result in given if not result.old]
    if fresh:
        values = np.array([result.values for result in fresh])
        try:
            white = state.session.check_results([result.arm for result in fresh], values)
        except (ValueError, TypeError, OverflowError) as error:
            for i, result in enumerate(given):  # one of them by itself?
                if state.settings.run.features is None:
                    _check_noise(state, result.values, f"measurements[{i}].values")
                else:
                    checked_field(
                        f"measurements[{i}].values", state.session.check_results, [result.arm], result.values[None]
                    )
            raise BadValue(str(error), field="measurements") from None
        for result, row in zip(fresh, white, strict=True):
            result.white = row
    return given


def _check_one(state: State, content: Any, place: str, answered: dict[str, str]) -> GivenResult:
    if not isinstance(content, dict):
        raise BadValue(f"{place} must be an object with id, arm and values, got {short(content)}", field=place)
    for part in ("id", "arm", "values"):
        if part not in content:
            raise BadValue(f"{place} lacks {part}", field=f"{place}.{part}")
    name = check_text(content["id"], f"{place}.id")
    item = check_arm_of(state, content["arm"], f"{place}.arm")
    worker = content.get("worker")
    worker = None if worker is None else check_text(worker, f"{place}.worker")
    key = content.get("lease")
    lease = None if key is None else find_lease(state, key, f"{place}.lease")
    arm = _stream_of(state, item, content, lease, place)
    values = _check_numbers(state, content["values"], f"{place}.values", arm)
    result = GivenResult(name, arm, values, lease, worker)
    if name in state.ids:
        earlier = [note["old"] for note in state.corrections if note["measurement"] == name]
        _same(name, state.results[state.ids[name]], result, f"{place}.id", earlier)
        result.old = True
        return result
    if name in state.surplus:
        its_arm, its_values, its_lease = state.surplus[name]
        _same(name, (its_arm, padded(its_values, state.settings.width), its_lease), result, f"{place}.id")
        result.old = True
        return result
    if lease is not None:
        if lease.stream != arm:
            raise BadValue(
                f"{place}: lease {lease.key} is for arm {state.settings.words_of(lease.stream)}, "
                f"not for arm {state.settings.words_of(arm)}",
                field=f"{place}.lease",
            )
        # An answer that did not name its lease took the place of the oldest ask of its arm; the one that names it is
        # another measurement, and gets its place on arrival.
        by = answered.get(lease.key) or (lease.answer if lease.named else None)
        if by is not None and by != name:
            raise Conflict(
                f"{place}: lease {lease.key} was answered by measurement {by!r} already: "
                "if this is another one, tell it without the lease",
                code="lease_answered",
                field=f"{place}.lease",
            )
        answered[lease.key] = name
    if state.settings.run.blocks is not None or content.get("block") is not None:
        result.block = check_told_block(state, content.get("block"), lease, place)
    return result


def _stream_of(state: State, item: int, content: dict[str, Any], lease: Lease | None, place: str) -> int:
    """The arm of the record that a result is of: with features its item with the panel that it names, or answers."""
    feature = content.get("feature")
    if state.settings.run.features is None:
        if feature is not None:
            raise BadValue(f"{place}: this campaign has no features", field=f"{place}.feature")
        return item
    if lease is not None and feature is None and not isinstance(content["values"], dict):
        return lease.stream if lease.arm == item else state.settings.n_panels * item
    return int(checked_field(f"{place}.feature", state.session.stream_told, item, content["values"], None, feature))


def _same(
    name: str,
    known: tuple[int, FloatArray, str | None],
    result: GivenResult,
    field: str,
    earlier: Sequence[list[float]] = (),
) -> None:
    """That a result is the one on record, or what was told before it was corrected: `earlier`."""
    arm, values, lease = known
    given = result.lease_key
    other_lease = lease is not None and given is not None and lease != given
    width = result.values.size
    was_told = np.array_equal(padded(values.tolist(), width), result.values, equal_nan=True) or any(
        np.array_equal(padded(old, width), result.values, equal_nan=True) for old in earlier
    )
    if arm != result.arm or not was_told or other_lease:
        raise Conflict(
            f"measurement {name!r} is on record with another content: arm {arm}, values {short(values.tolist())}",
            code="id_taken",
            field=field,
        )


def check_values(state: State, values: Any, field: str, arm: int) -> FloatArray:
    """A measurement of an arm of the record as a session takes it."""
    numbers = _check_numbers(state, values, field, arm)
    if state.settings.run.features is not None:
        checked_field(field, state.session.check_results, [arm], numbers[None])
        return numbers[: state.settings.size_of(arm)]
    _check_noise(state, numbers, field)
    return numbers


def _check_numbers(state: State, values: Any, field: str, arm: int) -> FloatArray:
    """As many numbers as a measurement has; with features a row of the log."""
    settings = state.settings
    if settings.run.features is not None:
        row: FloatArray = checked_field(field, state.session.log_arrays.checked, arm, values)
        return row
    if type(values) is list and len(values) == settings.dim and set(map(type, values)) == {float}:
        quickly = np.array(values)
        if np.isfinite(quickly).all():
            return quickly
    if isinstance(values, list | tuple) and len(values) != settings.dim:
        wanted = f"{settings.dim} number{'' if settings.dim == 1 else 's'}"
        called = "" if settings.value_names is None else f" ({', '.join(settings.value_names)})"
        raise BadValue(f"{field}: a measurement is {wanted}{called}, got {len(values)}: {short(values)}", field=field)
    numbers: FloatArray = checked_field(field, check_measurement, values, settings.dim)
    return numbers


def _check_noise(state: State, numbers: FloatArray, field: str) -> None:
    """That the noise allows a measurement."""
    noise = state.session.noise
    checked_field(field, noise.check, numbers[None])
    if noise.in_units:
        checked_field(field, check_far, noise.whiten(numbers[None]), numbers[None])


def _padded_deviations(features: Features, arm: int, deviations: FloatArray) -> FloatArray:
    """The standard deviations of the numbers of a panel, in a row of the log."""
    return padded(deviations[list(features.features_of(arm % features.n_panels))].tolist(), features.width)


class FarOff(NamedTuple):
    """A value that is `away` standard deviations (`stated`), or usual spreads of repeats, from the mean before."""

    name: str
    which: str  # of the numbers of a result, " (width)", if there are several
    value: float
    mean: float
    away: float
    earlier: int  # how many results the item had
    stated: bool

    @property
    def _units(self) -> str:
        return "standard deviations" if self.stated else "times the usual spread of repeats"

    @property
    def question(self) -> str:
        """What is asked back before it is saved."""
        before = f"the {self.mean:.6g} of {self.name} before"
        earlier = " Or was the earlier one mistyped?" if self.earlier == 1 else ""
        return f"{self.value:.6g}{self.which} is {self.away:.0f} {self._units} from {before}.{earlier}"

    @property
    def warning(self) -> str:
        """What is said once it is saved."""
        results = f"{self.earlier} earlier result{'' if self.earlier == 1 else 's'}"
        return (
            f"{self.name}: {self.value:.6g}{self.which} lies {self.away:.0f} {self._units} from the mean of its "
            f"{results}, {self.mean:.6g}. It is on record: see whether this one or an earlier one was mistyped."
        )


def _agrees_with_most(value: FloatArray, earlier: Iterable[FloatArray], reach: FloatArray) -> bool:
    """Whether at least half of the earlier results lie within reach of this one, in every number.

    Then it is not this one that is far off, whatever their mean: an earlier one is, and has moved it.
    """
    near = [bool((np.abs(value - other) <= reach).all()) for other in earlier]
    return 2 * sum(near) >= len(near) > 0


FAR = 8.0
"""Standard deviations: a result further from what its item gave before is taken in, with a warning."""
FAR_UNSTATED = 20.0
"""The same where the noise is not known, in the usual spread of repeats: noise may have long tails. Times a margin, as
long as there are few repeats."""


def far_off(state: State, result: GivenResult) -> FarOff | None:
    """How far a result lies from the mean of what its item gave before, if that is far."""
    if result.arm not in state.sums:
        return None
    deviations, stated = state.deviations, state.stated_deviations is not None
    if deviations is None:
        return None
    count, total = state.sums[result.arm]
    mean = total / count
    if (features := state.settings.run.features) is not None:
        deviations = _padded_deviations(features, result.arm, deviations)
    away = np.abs(result.values - mean) / deviations
    if np.isnan(away).all():
        return None  # there are holes
    worst = int(np.nanargmax(away))
    limit = FAR if stated else FAR_UNSTATED * state.spread_margin
    if away[worst] <= limit:
        return None
    if _agrees_with_most(result.values, (row[1] for row in state.results if row[0] == result.arm), limit * deviations):
        return None
    settings = state.settings
    which = "" if settings.dim == 1 else f" ({settings.columns[worst]})"
    if features is not None:
        which = f" ({features.names[features.features_of(result.arm % features.n_panels)[worst]]})"
    name = settings.name_of(settings.item_of(result.arm))
    return FarOff(name, which, float(result.values[worst]), float(mean[worst]), float(away[worst]), count, stated)
