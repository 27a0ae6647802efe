"""How far a session is, in numbers that move from the first measurement to the last; what more of them would bring.

A line on the terminal, or one below the cell of a notebook, shows them while a run goes on.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from coterie.methods.reports import STATISTIC, Standing
from coterie.problem.checks import check_count
from coterie.problem.families import AnyNoise, Unknown
from coterie.problem.question import ExactGroups, Resolution
from coterie.problem.settings import METHOD
from coterie.session import verdicts
from coterie.session.conversation import Conversation, SessionDone
from coterie.session.forecast import Forecast, remaining_of, standing_of
from coterie.session.remarks import confirming_words
from coterie.session.verdicts import verdict_of

if TYPE_CHECKING:
    from coterie.session.session import Session

FIRST_PASS = 0.05
"""The share that counts as done when every item was measured once, while nobody knows how many more are needed."""

WITHOUT_PROGRESS = 40
"""Measurements an item after which a run under any noise, with nothing proven, says what it may be waiting for."""

MOST = 10**9
"""Measurements that may be asked about."""
_LARGEST_DELTA = 0.5
_BEFORE_TESTS = 0.5
"""Of what is left of a run before anything is being tested: about so much passes before claims are proven."""


@dataclass(frozen=True)
class Progress:
    """How far a session is.

    Methods that prove everything at once have nothing proven before they stop, and so has every method before it begins
    to test a guess; if the guess turns out wrong, `proven` falls.

    Parameters
    ----------
    proven, needed : int
        Claims of a proof: for K groups the differences of an item with another group, M·(K − 1) of them; for a
        resolution, and for single linkage, the tests of the groups that are being tested.
    settled, items : int
        So many of the items have all of theirs proven.
    share : float
        It moves all the time, in [0, 1]: the measurements so far over those that the run is expected to take in all
        (`Session.remaining`); it falls where the forecast rises.
    words : str
        All of it in a line.
    """

    proven: int
    needed: int
    settled: int
    items: int
    share: float
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def progress_of(conversation: Conversation) -> Progress:
    """How far the session is: claims proven, items settled, and a share that moves all the time."""
    return conversation.once("progress", _progress)


def _progress(conversation: Conversation) -> Progress:
    standing, remaining = standing_of(conversation), remaining_of(conversation)
    run, items = conversation.run, conversation.n_present
    if run.done:
        share = 1.0
    elif remaining is not None:
        share = run.t / (run.t + max(remaining.remaining, 1.0))
    else:
        share = max(FIRST_PASS * min(1.0, run.t / items), min(standing.worked, 0.99))
    claims = (standing.proven, standing.needed, standing.settled)
    return Progress(*claims, items, share, _progress_words(conversation, standing))


def _claims_word(conversation: Conversation) -> str:
    return "differences" if isinstance(conversation.settings.question, ExactGroups) else "claims"


def _progress_words(conversation: Conversation, standing: Standing) -> str:
    run, items, unseen = conversation.run, conversation.n_present, conversation.unmeasured
    claims = _claims_word(conversation)
    if run.done and not conversation.proves:
        return verdict_of(conversation)
    if run.done:
        return f"all {standing.needed} {claims} proven, all {items} items settled"
    if run.confirmed is not None:
        return f"all {standing.needed} {claims} proven; {confirming_words(*run.confirmed)}"
    if unseen:
        return f"{items - unseen} of {items} items measured at least once"
    if standing.proven == 0 and standing.spent == 0:
        if standing.course == STATISTIC:
            now = run.evidence()
            return f"evidence {now.statistic:.1f} of {now.threshold:.1f}; everything is decided at once, at the end"
        if run.standing() is None:
            return "nothing proven yet"
        guess = "nothing proven yet: measurements so far are for a guess of the groups"
        guess = f"{guess}, with {standing.needed} {claims} to prove" if standing.needed else guess
        return guess + _waiting_for_shape(conversation)
    return f"{standing.proven} of {standing.needed} {claims} proven, {standing.settled} of {items} items settled"


def _waiting_for_shape(conversation: Conversation) -> str:
    """What a run without progress may be waiting for, if only differences of location are looked for."""
    settings, run = conversation.settings, conversation.run
    stated = settings.noise.statement if isinstance(settings.noise, Unknown) else None
    patient = settings.method != METHOD or run.t < WITHOUT_PROGRESS * conversation.n_present
    if patient or not isinstance(settings.question, ExactGroups) or stated != AnyNoise(shape=False):
        return ""
    return (
        ". If the groups differ in spread or shape, and not in location, this goes on for ever: state "
        "noise=coterie.AnyNoise(shape=True) in a new run"
    )


# What so many more measurements are expected to bring: the chance to be done, and what is proven if not.


@dataclass(frozen=True)
class Outlook:
    """What to expect of `more` further measurements. It rests on a forecast, and promises nothing.

    Parameters
    ----------
    more : int
        The further measurements.
    chance : float or None
        About how probable it is that the session is done by then; None if nobody can say yet.
    delta : float or None
        The error probability for which they would be about enough: below that of the session if they are more than it
        needs. None if they are too few for any that is worth a proof.
    resolution : coterie.Resolution or None
        The finest one that they are expected to allow, by a larger `apart`, where a resolution is asked for.
    proven, needed, settled, items : int
        Claims and items, as expected by then: see `coterie.session.progress.Progress`.
    words : str
        All of it in a sentence or two.
    """

    more: int
    chance: float | None
    delta: float | None
    resolution: Resolution | None
    proven: int
    needed: int
    settled: int
    items: int
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        content = {key: getattr(self, key) for key in self.__dataclass_fields__}
        content["resolution"] = None if self.resolution is None else self.resolution.to_json()["resolution"]
        return content


def check_more(more: Any) -> int:
    """A number of further measurements."""
    count = check_count(more, "more", 1)
    if count > MOST:
        raise ValueError(f"more must be at most {MOST}, got {count if count < 10**30 else 'a much larger number'}")
    return count


def outlook_of(conversation: Conversation, more: int) -> Outlook:
    """What `more` further measurements are expected to bring: the chance to be done by then, and what if not."""
    standing, remaining = standing_of(conversation), remaining_of(conversation)
    run, settings, items = conversation.run, conversation.settings, conversation.n_present
    count = check_more(more)
    if remaining is None or run.done:
        chance = 1.0 if run.done else None
        claims = (standing.proven, standing.needed, standing.settled, items)
        delta = settings.delta if run.done else None
        return Outlook(count, chance, delta, None, *claims, _words_without(conversation, count))
    share = min(1.0, count / max(remaining.remaining, 1.0))
    if standing.spent == 0:  # first comes what is left of finding a guess
        share = max(0.0, (share - _BEFORE_TESTS) / (1.0 - _BEFORE_TESTS))
    proven = standing.proven + int(share * (standing.needed - standing.proven))
    settled = standing.settled + int(share * (items - standing.settled))
    chance, delta = remaining.chance(count), _delta(conversation, remaining, count)
    resolution = resolution_for(conversation, run.t + count)
    words = _words(conversation, count, chance, delta, resolution, (proven, standing.needed, settled))
    if remaining.wild:
        words = f"It is too early for a good forecast; by a rough one: {words[0].lower()}{words[1:]}"
    return Outlook(count, chance, delta, resolution, proven, standing.needed, settled, items, words)


def resolution_for(conversation: Conversation, budget: int) -> Resolution | None:
    """The finest resolution, by a larger `apart`, that is expected to need at most so many measurements in all.

    None if there is no forecast yet, or the question is not for a resolution.
    """
    resolution = conversation.settings.resolution
    factor = conversation.run.resolution_for(check_count(budget, "budget", 1))
    return None if factor is None or resolution is None else resolution.widened(factor)


def choose_resolution(conversation: Conversation, resolution: Any) -> None:
    """Ask for other `alike` and `apart` from here on, chosen after looking at the results: (alike, apart).

    Also a `coterie.Resolution` with the norm and the claim of this session. Nothing is lost of the guarantee: it is
    a fact of the log, and the certificate has the bounds of the freeze that proves. The candidate that is being
    tested is given up, and the next one needs log 5 = 1.6 more evidence; before the first freeze it costs nothing.
    Results so far serve estimates. The present resolution once more changes nothing. `SessionDone` once it is.
    """
    present = conversation.settings.resolution
    chosen = conversation.first_settings.with_resolution(resolution).resolution
    assert present is not None
    assert chosen is not None
    if conversation.run.done:
        raise SessionDone(
            f"{verdict_of(conversation)} with alike and apart of {present.bounds}, and that stands: for another "
            f"resolution start a new session with resolution={chosen!r} and tell it these results"
        )
    if chosen != present:
        conversation.choose(chosen)


def _delta(conversation: Conversation, remaining: Forecast, more: int) -> float | None:
    """The δ whose run would take t + more: the evidence needed is log 1/δ and a constant, and grows with the run."""
    t, level = conversation.run.t, conversation.run.evidence().threshold
    if not math.isfinite(level) or level <= 0.0:
        return None
    reached = level * (t + more) / (t + remaining.remaining)
    exponent = math.log(conversation.settings.delta) + level - reached
    return math.exp(max(exponent, -700.0)) if exponent <= math.log(_LARGEST_DELTA) else None


def _words_without(conversation: Conversation, more: int) -> str:
    if conversation.run.done:
        verdict = verdict_of(conversation)
        return f"Nothing more is needed. {verdict[0].upper()}{verdict[1:]}."
    unseen = conversation.unmeasured
    if unseen:
        first = f"{unseen} of {conversation.n_present} items have not been measured yet"
        enough = "ask again when every item was" if more >= unseen else f"{more} more do not even reach each of them"
        return f"Nobody can say yet: {first}; {enough}."
    return "Nobody can say yet: the results so far are too few for a forecast."


def _words(
    conversation: Conversation,
    more: int,
    chance: float,
    delta: float | None,
    resolution: Resolution | None,
    claims: tuple[int, int, int],
) -> str:
    (proven, needed, settled), settings = claims, conversation.settings
    sentences = [f"With {more} more measurements this is done with probability about {_percent(chance)}."]
    if chance < 0.9 and conversation.proves and needed:
        expected = f"about {proven} of {needed} {_claims_word(conversation)} proven"
        sentences.append(f"If not, expect {expected} and {settled} of {conversation.n_present} items settled.")
    if resolution is not None and settings.resolution is not None and resolution != settings.resolution:
        sentences.append(f"About enough they are for {resolution.bounds}.")
    elif delta is None:
        sentences.append("They are too few for a proof with any error probability worth having.")
    elif delta > settings.delta * 1.001:
        sentences.append(
            f"An error probability of {delta:.2g} in place of {settings.delta:g} would need about so many."
        )
    return " ".join(sentences)


def _percent(chance: float) -> str:
    return f"{min(max(round(100 * chance), 1), 99)} %"


_PAUSE = 0.25
"""Seconds between two changes of a line in a notebook: each is a message to the browser."""


class ProgressLine:
    """A line that follows a session; silent where there is neither a terminal nor a notebook. `wanted`: whether there
    is one, or a function that is called with the session too.
    """

    def __init__(self, wanted: bool | Callable[[Session], Any]) -> None:
        self._wanted = wanted is not False
        self._told = wanted if callable(wanted) else None
        self._status: Any = None
        self._line: NotebookLine | None = None
        self._session: Session | None = None
        self._next = 0

    def __enter__(self) -> ProgressLine:
        if not self._wanted:
            return self
        if in_notebook():
            self._line = NotebookLine("measuring …")
            return self
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_terminal:
            self._status = console.status("measuring …")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
        if self._line is not None:
            self._line.end(self._last_words())

    def __call__(self, session: Session) -> None:
        """The session has come further."""
        self._session = session
        if self._told is not None:
            self._told(session)
        if self._line is not None and self._line.due:
            self._line.update(_so_far(session))
        if self._status is not None and session.t >= self._next:
            self._next = session.t + max(1, session.t // 100)
            self._status.update(_so_far(session))

    def _last_words(self) -> str:
        if self._session is None:
            return "nothing measured"
        return f"{self._session.t} measurements: {self._session._read(verdicts.progress_in_words)}"


def _so_far(session: Session) -> str:
    remaining = None if session.done else session.remaining
    more = "" if remaining is None else f", {remaining.words}"
    return f"{session.t} measurements{more}; {session.progress.words}"


def in_notebook() -> bool:
    """Whether output goes to the cell of a notebook."""
    ipython = sys.modules.get("IPython")  # whoever is in a notebook has loaded it
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookLine:
    """A line below a cell of a notebook that changes in place; it needs no widgets, and leaves one line in the file."""

    def __init__(self, text: str, total: int | None = None) -> None:
        self._total = total
        display = import_module("IPython.display").display
        self._handle = display(self._content(text, 0), raw=True, display_id=True)
        self._changed = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time for another change."""
        return time.monotonic() >= self._changed + _PAUSE

    def update(self, text: str, done: int = 0) -> None:
        """Another text; of a line with a bar, also how many are done."""
        self._changed = time.monotonic()
        self._handle.update(self._content(text, done), raw=True)

    def end(self, text: str) -> None:
        """The text that stays, without a bar."""
        self._total = None
        self.update(text)

    def _content(self, text: str, done: int) -> dict[str, str]:
        bar = "" if self._total is None else f'<progress value="{done}" max="{self._total}"></progress> '
        return {"text/plain": text, "text/html": f"<div>{bar}{escape(text)}</div>"}
