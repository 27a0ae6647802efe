"""Inspect AI: models answer the same questions until they are grouped; questions that are not needed are skipped.

Inspect asks a hook before each sample and tells it the scores after. A sample is a question, a question is a block of a
session with `blocks="drawn"`, and its list of models is made before any of its answers is known.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from coterie.problem.checks import check_count, check_positive, short
from coterie.session import Session
from coterie.session.in_blocks import LONGEST_NAME

try:
    import anyio
    from inspect_ai.hooks import Hooks, SampleEnd, hooks
    from inspect_ai.scorer import value_to_float
    from inspect_ai.util import EarlyStop
except ImportError:
    raise ImportError("coterie.integrations.inspect needs Inspect AI: pip install 'coterie[inspect]'") from None

NOT_LISTED = "this model is not on the question's list"
NO_SCORES = "Inspect gave no score that coterie can compare"

_run: ContextVar[_Run] = ContextVar("coterie_inspect_run")
"""The task that a hook is called for: Inspect does not say. Its samples run in copies of the context of its start."""
_runs: dict[str, tuple[GroupedModels, _Run]] = {}
"""Tasks at work, by Inspect's eval_id, for what only its global hooks are told."""


@dataclass(eq=False)
class _Run:
    """One evaluation of one model. `under_way`: questions that it is at, with what its epochs brought by now."""

    item: int
    eval_id: str
    epochs: int
    under_way: dict[str, list[float | None]] = field(default_factory=dict)


def _value_of(score: Any) -> float:
    """A score as a number, as Inspect counts it; NaN if it is none."""
    value = score.score.value
    return value_to_float()(value) if isinstance(value, str | int | float | bool) else math.nan


class GroupedModels:
    """An early-stopping hook of Inspect: `Task(…, early_stopping=coterie.integrations.inspect.GroupedModels(session))`.

    Give the same object to the evaluations of all models: `eval(task, model=[…])` with all of them at once, or a call
    for each. Once `session.done`, all further samples are skipped; before, those of models that are settled.

    Parameters
    ----------
    session : Session
        Its items are the models by the names that Inspect has for them; it has `blocks="drawn"` and one number a
        measurement: `coterie.Session(["openai/a", "openai/b", "x/c"], 2, 1, blocks="drawn")`. It has all that is found.
    scorer : str, optional
        Whose score counts, if the task has several; by default the first one's. Several epochs count as their mean.
    value : callable, optional
        The number for a `SampleScore`; by default what Inspect's `value_to_float` makes of it: 1 for "C", 0 for "I".
    item : callable, optional
        The name of the item for an `EvalSpec`; by default its `model`. For prompts or solvers: what tells them apart.
    on_alarm : {"stop", "continue"}
        Whether samples are skipped after an alarm, which says that there are more groups (`session.alarm`).
    ahead : int
        So many questions may be unfinished before a model that is ahead of others at work has to wait for them. The
        fewer, the better is known who is needed; give at least the number of samples that a model runs at a time.
    patience : float
        Seconds after which nobody is waited for if no answer has come.

    Notes
    -----
    The proof takes questions as drawn at random: shuffle the samples, in the same way for all models
    (`eval(…, sample_shuffle=1)`). Models that are evaluated one after the other on all questions cannot spare each
    other any: evaluate them at once, or on a part of the questions after the other (`limit`). Samples that fail are
    given up; the proof assumes that this has nothing to do with what the score would have been. To go on in another
    process, keep `session.to_dict()`.
    """

    def __init__(
        self, session: Session, *, scorer: str | None = None, value: Callable[[Any], float] = _value_of,
        item: Callable[[Any], str] | None = None, on_alarm: str = "stop", ahead: int = 16, patience: float = 600.0,
    ) -> None:  # fmt: skip
        if not isinstance(session, Session) or session.names is None or session.blocks != "drawn" or session.dim != 1:
            raise ValueError(
                "session must be a coterie.Session of models by name, with blocks='drawn' and one number a "
                f"measurement, got {short(session)}"
            )
        if on_alarm not in ("stop", "continue"):
            raise ValueError(f"on_alarm must be one of 'stop', 'continue', got {short(on_alarm)}")
        self.session, self.skipped = session, 0
        self._names: tuple[str, ...] = session.names
        self._scorer, self._value, self._stops = scorer, value, on_alarm == "stop"
        self._item = item or (lambda spec: spec.model)
        self._ahead = check_count(ahead, "ahead", 1)
        self._patience = check_positive(patience, "patience")
        self._inputs: dict[str, str] = {}  # the hash of what is asked, by question
        self._active: set[_Run] = set()
        self._changed: anyio.Event | None = None
        self._warned: set[str] = set()
        self._lists: dict[str, dict[int, int]] = {}  # of each question: the ticket of each model that it is for
        for ticket, arm in enumerate(session.arms_asked):
            self._lists.setdefault(str(session.block_of(ticket)), {})[arm] = ticket

    # What Inspect calls: its protocol EarlyStopping.

    async def start_task(self, task: Any, samples: list[Any], epochs: int) -> str:
        """A model's evaluation begins. ValueError if the session does not know it, or it has other questions."""
        name = self._item(task)
        if name not in self._names:
            raise ValueError(f"{short(name)} is no item of the session, whose items are {', '.join(self._names)}")
        for sample in samples:
            question, asked = _question(sample.id), hashlib.sha256(repr(sample.input).encode()).hexdigest()
            if self._inputs.setdefault(question, asked) != asked:
                raise ValueError(
                    f"sample {short(sample.id)} is not the same question for all models: give all of them the same task"
                )
        if not (task.dataset.shuffled or task.config.sample_shuffle):
            self._warn("the samples are not shuffled: the proof takes them as drawn at random (sample_shuffle=1)")
        run = _Run(self._names.index(name), task.eval_id, epochs)
        _run.set(run)
        _runs[task.eval_id] = self, run
        self._active.add(run)
        return "coterie"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Whether a model is spared a question."""
        run, question = _run.get(), _question(id)
        while self._stopped is None and question not in self._lists and self._held_back():
            if not await self._change():
                break
        reason = self._stopped
        if reason is None:
            self._list(question)
            reason = self._stopped  # looking for what to ask may have proven the groups
        if reason is None and self._lists.get(question) and run.item not in self._lists[question]:
            reason = NOT_LISTED
        if reason is None:
            run.under_way.setdefault(question, [])
            return None
        self.skipped += 1
        self._wake()
        return EarlyStop(id=id, epoch=epoch, reason=reason)

    async def complete_sample(self, id: str | int, epoch: int, scores: Mapping[str, Any]) -> None:
        """A model has answered a question."""
        self._ended(_run.get(), id, self._number(scores))

    async def complete_task(self) -> dict[str, Any]:
        """A model's evaluation has ended; what is found by now goes into Inspect's log."""
        run, session = _run.get(), self.session
        _runs.pop(run.eval_id, None)
        self._active.discard(run)
        run.under_way.clear()
        pending = {ticket for ticket, *_ in session.pending}
        for tickets in self._lists.values():
            if tickets.get(run.item) in pending:
                session.forget(tickets[run.item])
        if not self._active and self._stopped is None and len(self._unfinished()) > 2 * self._ahead:
            self._warn(
                "one model after the other answers all questions, so none can be spared any: evaluate them at once "
                "(max_tasks=…), or all of them on a part of the questions after the other (limit=…)"
            )
        self._wake()
        return {
            "verdict": session.verdict if session.done else "not proven yet",
            "proven": bool(session.done and session.proves),
            "groups": [[self._names[arm] for arm in group] for group in _groups(session)],
            "answers": session.n_measurements,
            "skipped": self.skipped,
        }

    # What it comes down to.

    @property
    def _stopped(self) -> str | None:
        """Why nothing more is needed of anybody."""
        session = self.session
        if session.done:
            return "the models are grouped"
        if session.out_of_budget:
            return "the deadline is reached"
        return "an alarm: there are more groups" if self._stops and session.alarm is not None else None

    def _list(self, question: str) -> None:
        """Which models a question is for. Their answers are not known to anybody yet."""
        if question in self._lists:
            return
        opened = self.session.open_in_block(self.session.n_arms, block=question)
        self._lists[question] = {ticket.arm: ticket.number for ticket in opened}

    def _held_back(self) -> bool:
        """Whether enough questions are unfinished, and somebody is at work on one of them."""
        unfinished = self._unfinished()
        if len(unfinished) < self._ahead:
            return False
        return any(run.under_way and any(run.item in awaited for awaited in unfinished) for run in self._active)

    def _unfinished(self) -> list[set[int]]:
        """The models that each unfinished question waits for."""
        pending = {ticket for ticket, *_ in self.session.pending}
        awaited = [{arm for arm, ticket in tickets.items() if ticket in pending} for tickets in self._lists.values()]
        return [arms for arms in awaited if arms]

    def _ended(self, run: _Run, id: str | int, value: float | None) -> None:
        """An epoch of a sample has ended, with a score or without."""
        question = _question(id)
        if question not in self._lists:  # Inspect has taken it from an earlier log: its score is not looked at before
            if self._stopped is not None:
                return
            self._list(question)
        values = run.under_way.setdefault(question, [])
        values.append(value)
        if len(values) < run.epochs:
            return
        del run.under_way[question]
        ticket, scores = self._lists[question].get(run.item), [score for score in values if score is not None]
        if any(ticket == pending for pending, *_ in self.session.pending):
            if not scores:
                self.session.forget(ticket)
            else:
                self._tell(run.item, sum(scores) / len(scores), ticket)
        self._wake()

    def _tell(self, item: int, score: float, ticket: int | None) -> None:
        try:
            self.session.tell(item, score, ticket)
        except ValueError as error:  # Inspect's evaluation goes on, whatever the session says
            self.session.forget(ticket)
            self._warn(f"a score of {score:g} cannot be counted, and is left out: {error}")

    def _number(self, scores: Mapping[str, Any]) -> float | None:
        """The score that counts; None, with a warning, if there is none."""
        if self._scorer is not None and self._scorer not in scores:
            self._warn(f"{NO_SCORES}: no scorer is called {short(self._scorer)}, but {short(list(scores))}")
            return None
        if not scores:
            self._warn(f"{NO_SCORES}: the task has no scorer, so all samples run and nothing is proven")
            return None
        given = scores[next(iter(scores)) if self._scorer is None else self._scorer]
        value = float(self._value(given))
        if math.isfinite(value):
            return value
        self._warn(f"{NO_SCORES}: {short(given.score.value)} is no number, so give value=, a function of it")
        return None

    def _warn(self, text: str) -> None:
        """Once, whatever happens to warnings: an evaluation is never ended by one."""
        if text not in self._warned:
            self._warned.add(text)
            try:
                warnings.warn(f"coterie: {text}", stacklevel=3)
            except Warning:
                return

    async def _change(self) -> bool:
        """Wait until something has changed; whether it has within the patience."""
        if self._changed is None:
            self._changed = anyio.Event()
        with anyio.move_on_after(self._patience) as waited:
            await self._changed.wait()
        return not waited.cancelled_caught

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


def _question(id: str | int) -> str:
    """What a sample is called as a block."""
    name = str(id)
    fit = name.strip() and len(name) <= LONGEST_NAME and name.isprintable()
    return name if fit else f"sample {hashlib.sha256(name.encode()).hexdigest()}"


def _groups(session: Session) -> list[list[int]]:
    """The items of each group, as they are known by now."""
    labels = session.labels
    if labels is None:
        return []
    return [[arm for arm, label in enumerate(labels) if label == group] for group in range(int(max(labels)) + 1)]


@hooks(name="coterie", description="gives up samples that failed, so that nobody waits for them")
class _Failures(Hooks):
    """A sample that fails without a score is not told to the hook of its task."""

    async def on_sample_end(self, data: SampleEnd) -> None:
        if data.eval_id in _runs and data.sample.error is not None and not data.sample.scores:
            models, run = _runs[data.eval_id]
            models._ended(run, data.sample.id, None)
