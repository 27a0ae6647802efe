"""What a campaign amounts to, in words: its verdict, what speaks against it, what it assumes."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np

from coterie.campaign.settings import CampaignSettings as Settings
from coterie.campaign.state.state import State
from coterie.campaign.views.asks import worker_alarm_json
from coterie.methods import method_named
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.features import ABOUT_HOLES
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups
from coterie.problem.sentences import assumption_in_words, error_in_words, groups_in_words, rates_in_words
from coterie.session.corrections import in_words as corrections_in_words
from coterie.session.data_alarms import DataAlarm, shift_alarm
from coterie.session.remarks import FarValue, confirming_words, far_value
from coterie.session.verdicts import (
    alarm_json,
    alarms_json,
    explaining_value,
    homogeneity_json,
    looks_mixed,
    proves_at_least,
)

_EPOCH = date(1970, 1, 1).toordinal()


def alarm(state: State) -> dict[str, Any] | None:
    """More items than groups, pairwise known to differ: there are more groups than the campaign was told."""
    return alarm_json(state.session, state.settings.name_of)


def alarms(state: State) -> list[dict[str, Any]]:
    """What speaks against the way in which the data were made: noise, drift, failures, lateness, workers."""
    shifted = _shift_by_days(state)
    kept = [alarm for alarm in alarms_json(state.session) if shifted is None or alarm["kind"] != shifted.kind]
    by_days = [] if shifted is None else [shifted.to_json() | {"text": str(shifted)}]
    return [*kept, *by_days, *worker_alarm_json(state)]


def _shift_by_days(state: State) -> DataAlarm | None:
    """That results of a day lie higher or lower than those of another: a campaign knows when each was told.

    Of a long record it is looked for once in every 256th of it.
    """
    session, run = state.session, state.settings.run
    if len(state.days) < 2 or run.blocks is not None:
        return None
    n = state.n_results
    key = (n if n < 512 or state.done else n >> (n.bit_length() - 9), state.done)
    kept = state.computed.get("days")
    if kept is None or kept[0] != key:
        counted, log = session.counted, session.log_arrays
        firsts, days = (np.array(column, dtype=np.int64) for column in zip(*state.days, strict=True))
        of_result = days[np.searchsorted(firsts, counted, side="right") - 1]
        dates = {day: date.fromordinal(_EPOCH + day) for day in np.unique(of_result).tolist()}
        names = [f"{dates[day]:%A}, {dates[day].isoformat()}" for day in of_result.tolist()]
        alarm = shift_alarm(run, log.arms_of(counted), log.array[counted], session.labels, names)
        kept = state.computed["days"] = (key, alarm)
    shifted: DataAlarm | None = kept[1]
    return shifted


def harmful(state: State) -> list[dict[str, Any]]:
    """Of the alarms, those that speak against the groups."""
    return [alarm for alarm in alarms(state) if not alarm["harmless"]]


def homogeneity(state: State) -> dict[str, Any] | None:
    """Whether each group looks like one, by the results that counted; its text calls groups by their ids."""
    if not state.session.proven:
        return None
    return homogeneity_json(state.session, [group_id(state, k) or 0 for k in range(state.settings.n_clusters or 0)])


def misfits(state: State) -> list[dict[str, Any]]:
    """Items that do not fit their group, by the results that did not count any more when it stopped.

    The groups do not depend on these. The test (`late_misfits`) holds at whatever times somebody looks. It needs to
    know the noise: nothing is said where that is not known, nor where items of a group need not be equal.
    """
    labels = state.session.labels
    equal = isinstance(state.settings.run.question, ExactGroups)
    if not state.done or labels is None or not equal or not isinstance(state.session.noise, Noise):
        return []
    if state.session.log_arrays.by_panel:
        return []  # it looks at whole items
    if state.misfits[0] != state.seq:
        late = np.flatnonzero(~state.counted_places())
        if state.session.retired:
            late = late[labels[state.session.log_arrays.arms_of(late)] >= 0]
        places: list[int] = []
        if late.size > 0:
            from coterie.tables.checks.misfits import (
                anytime_misfits,  # here: it needs scipy, and most campaigns do not need it
            )

            places = anytime_misfits(labels, *_results_at(state, late))
            odd = late_value(state) if places else None
            rest = late if odd is None else late[late != odd.row]
            if odd is not None and not (rest.size and anytime_misfits(labels, *_results_at(state, rest))):
                places = []  # one value is the cause: no item is blamed for it
        state.misfits = (state.seq, places)
    return [
        {"arm": arm, "name": state.settings.name_of(arm), "group_id": group_id(state, int(labels[arm]))}
        for arm in state.misfits[1]
    ]


def _results_at(state: State, places: IntArray) -> tuple[IntArray, FloatArray]:
    """Arms, and values in units of the noise, of results at these places."""
    log = state.session.log_arrays
    return log.arms_of(places), state.session.noise.whiten(log.array[places])


def doubt(state: State) -> str | None:
    """What misfits mean, in a sentence; or the one value told after the stop that does not fit."""
    doubted = misfits(state)
    if not doubted:
        odd = late_value(state)
        return None if odd is None else f"Told after the stop, and no part of the proof: {odd_value(state, odd)}"
    names = ", ".join(item["name"] for item in doubted[:6]) + (
        f" and {len(doubted) - 6} more" if len(doubted) > 6 else ""
    )
    from coterie.tables.checks.misfits import MISFIT_PROBABILITY

    level = f"{MISFIT_PROBABILITY:g}"
    wrong = f"{level} + {state.settings.delta:g}" if certain(state.settings) else f"{level}, if the groups are right"
    return (
        f"Results told after the stop do not fit these groups ({names}): there may be more than "
        f"{state.settings.n_clusters} groups, or the noise may be larger than was said. If neither is so, such a "
        f"warning ever comes with probability at most {wrong}."
    )


def certain(settings: Settings) -> bool:
    """Whether the stop is a proof."""
    return method_named(settings.method).proves(settings.threshold)


def assumed(state: State) -> str:
    """What the answer rests on, in a few sentences."""
    settings, asked = state.settings, state.session.settings.question
    how = method_named(settings.method).called(settings.threshold)
    run = settings.run
    of_noise = assumption_in_words(run.noise, asked.kind, run.blocks, run.strict_blocks)
    rest = f"{noise_in_words(settings)}: {of_noise}"
    if run.features is not None and run.features.holes:
        rest += f"; {ABOUT_HOLES}"
    if isinstance(asked, ExactGroups):
        asked_and_assumed = f"Assumed: exactly {asked.n_clusters} groups; {rest}."
    else:
        rates = rates_in_words(asked, settings.run.noise)
        beside = "" if rates is None else f" ({rates})"
        asked_and_assumed = f"Asked for: {asked.words}: {asked.claim}{beside}. Assumed: {rest}."
    return f"{asked_and_assumed} Error probability allowed: {settings.delta:g}. Method: {how}."


def noise_in_words(settings: Settings) -> str:
    """What was said about the noise; standard deviations with the names of their numbers."""
    stated = settings.noise
    if not isinstance(stated, list) or isinstance(stated[0], list):
        return settings.run.noise.words
    names = settings.value_names if settings.run.features is None else settings.run.features.names
    called = [""] * len(stated) if names is None else [f" ({name})" for name in names]
    listed = [f"{value:g}{name}" for value, name in zip(stated, called, strict=True)]
    return f"noise of standard deviations {', '.join(listed[:12])}{', …' if len(listed) > 12 else ''}"


def _refuted(state: State) -> str:
    k, noise = state.settings.run.shape[1], state.session.noise
    other = "larger than was said" if noise.kind == "known" else "not as was said"
    return (
        f"the measurements refute {k} groups: there are at least {k + 1}, or the noise is {other}. "
        "Ask for more groups (coterie campaign clusters), or import the measurements into another campaign."
    )


def verdict(state: State) -> str:
    """The state of things in a sentence, what speaks against relying on it, and how many results were corrected."""
    corrected = corrections_in_words(state.session)
    cause = explanation(state)
    said = _verdict(state) if cause is None else f"{_verdict_but_for_one(state)} {cause}"
    odd = standing_value(state) if cause is None else None
    if odd is not None:
        said += f" One value may be a slip: {odd}"
    against = harmful(state) if state.done else []
    if against:
        kinds = ", ".join(dict.fromkeys(alarm["kind"] for alarm in against))
        said += f" But do not rely on it: the data speak against how they were made ({kinds}; see the alarm)."
    return said + (f" {corrected[0].upper()}{corrected[1:]}." if corrected else "")


def _verdict_but_for_one(state: State) -> str:
    """The state of things where one far value is why a group looks mixed, or an alarm was raised."""
    session, settings = state.session, state.settings
    so_far = "Proven" if session.done and certain(settings) else "Stopped" if session.done else "Not proven"
    return f"{so_far} after {session.t} measurements, but do not rely on it: one value does not belong."


def _verdict(state: State) -> str:
    session, settings = state.session, state.settings
    refuted = session.alarm is not None
    if session.confirmed is not None and not session.done:
        return f"The groups are found; {confirming_words(*session.confirmed)}."
    if session.done:
        wrong = f"wrong with probability at most {settings.delta:g}"
        if not certain(settings):
            mixed = ", and a group looks mixed" if looks_mixed(session) else ""
            reached = f"the evidence has reached the heuristic threshold (no proof){mixed}"
            return f"Stopped after {session.t} measurements: {reached}."
        asked = session.settings.question
        if isinstance(asked, ExactGroups):
            k, at_least = asked.n_clusters, proves_at_least(session)
            against = _refuted(state) if refuted else "a group looks mixed." if looks_mixed(session) else None
            said = groups_in_words(k, at_least, against, f" after {session.t} measurements")
            wrong = error_in_words(
                session.n_arms, k, settings.delta, session.noise, at_least, settings.run.features is not None
            )
            return f"{said[0].upper()}{said[1:]}" + ("" if against else f" ({wrong}).")
        assert session.labels is not None
        count = int(session.labels.max()) + 1
        groups = "1 group" if count == 1 else f"{count} groups"
        return f"Proven after {session.t} measurements: {groups}; {asked.claim}; {wrong}."
    if refuted:
        return f"Not proven, after {session.t} measurements; but {_refuted(state)}"
    if session.labels is None:
        left, n = int((session.pulls[session.items.present] == 0).sum()), len(session.items.present)
        if not left:  # with features: none tells the items apart yet
            return f"Not proven yet, after {session.t} measurements: no groups so far."
        return f"{left} of {n} items {'has' if left == 1 else 'have'} not been measured yet."
    return f"Not proven yet, after {session.t} measurements: the groups are a guess."


def group_id(state: State, label: int) -> int | None:
    """The stable id of a group, by its number in `labels`."""
    labels = state.session.labels
    if labels is None or state.groups is None or not (labels == label).any():
        return None
    return int(state.groups[int(np.argmax(labels == label))])


_MOST_LOOKED_AT = 20_000  # results among which a slip is looked for before the end
_MOST_SLIPS = 3  # results that lie far off: of more, the noise is the cause
_FAR = "far value"  # its place in what a state has computed

WHAT_TO_DO = "If it was told wrong, correct it (coterie campaign correct, or the button in the log)."


def odd_value(state: State, far: FarValue) -> str:
    """The value, its item and its measurement."""
    measurement = next(name for name, place in state.ids.items() if place == far.row)
    return f"{far.seen(state.settings.name_of(far.arm), f'as measurement {measurement}')}. {WHAT_TO_DO}"


def explanation(state: State) -> str | None:
    """The value that explains an alarm, or a group that looks mixed, in words; None if none does."""
    far = explaining_value(state.session)
    return None if far is None else odd_value(state, far)


def standing_value(state: State) -> str | None:
    """The farthest of the results that count, in words, if it looks like a slip; None if none does.

    That it is one is a guess: so nothing is said where many results lie far off, as they do under heavy tails, nor of
    very many results, which would take long to look at.
    """
    if state.session.t > _MOST_LOOKED_AT or state.session.t == 0:
        return None
    known = state.computed.get(_FAR)
    if known is None or known[0] != state.seq:
        rows = state.session.counted
        values: list[FarValue] = []
        while len(values) < _MOST_SLIPS and (far := far_value(state.session, rows)) is not None:
            values.append(far)
            rows = rows[rows != far.row]
        alone = bool(values) and far_value(state.session, rows, nearer=0.5) is None
        said = odd_value(state, values[0]) if alone else None
        state.computed[_FAR] = known = (state.seq, said)
    text: str | None = known[1]
    return text


def late_value(state: State) -> FarValue | None:
    """The farthest of the results told after the stop, if it is far from the others of its item."""
    if state.session.groups_now is None or not state.done:
        return None
    if state.late_value[0] != state.seq:
        far = far_value(state.session, np.arange(state.n_results))
        late = far is not None and not state.counted_places()[far.row]
        state.late_value = (state.seq, far if late else None)
    return state.late_value[1]
