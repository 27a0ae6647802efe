"""`Session`: ask which arm to measure, tell what came out.

A session is a lock around one conversation with a method (`coterie.session.conversation`), and the names by which
people know it. What it shows is computed by functions of the modules beside this one. What was decided is kept, so that
a session that was saved and loaded goes on as if it had never stopped, and a finished one opens in every later release.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from coterie.methods.reports import Partial
from coterie.methods.table import prepared
from coterie.problem.families import Model
from coterie.problem.features import Features
from coterie.problem.instance import Instance
from coterie.problem.question import GROUPS, Resolution
from coterie.problem.sentences import text_html
from coterie.problem.settings import DELTA, METHOD, THRESHOLD, Settings
from coterie.session import saved, telling
from coterie.session.atomic import Setting, T, Variable, View, atomic, for_session
from coterie.session.conversation import Conversation
from coterie.session.corrections import Correction, correct
from coterie.session.data_alarms import alarms_of
from coterie.session.events import certificate_of, events_of, handover_now, need_certificates
from coterie.session.finished import PastRun, outcome_of
from coterie.session.forecast import cost_left_of, cost_of, remaining_of
from coterie.session.groups import borders_of, centers_of, evidence_of, groups_html, groups_of, labels_of, references_of
from coterie.session.in_blocks import (
    ask_in_block,
    asked_in,
    block_of,
    close_block,
    named_blocks,
    need_blocks,
    open_blocks,
    open_in_block,
)
from coterie.session.progress import choose_resolution, outlook_of, progress_of, resolution_for
from coterie.session.replaying import replay, revise, revisions_of
from coterie.session.verdicts import alarm_of, homogeneity_of, session_in_words, verdict_now

if TYPE_CHECKING:
    from coterie.session.intervals import Intervals


class Session:
    """Ask which item to measure, tell what came out, until `done`: the groups are then proven.

    Parameters
    ----------
    n_arms : int or iterable
        How many items (arms) there are, or the items, such as a list of names: their text is their name.
    n_clusters : int, optional
        How many groups there are. Where nobody knows, or items are never exactly equal, give `resolution` instead.
    dim : int, optional
        How many numbers a measurement has; 1 unless the noise says otherwise.
    delta : float
        The groups found are wrong with probability at most `delta`.
    method, distance_ratio, instance : str, float and coterie.Instance
        A name of `coterie.methods.METHODS`, and what it needs: "boc-linear" a ratio, "oracle" the truth.
    threshold : {"proven", "heuristic"}
        For all methods but CROC; the heuristic one is no proof.
    noise : optional
        What is known about it. None: nothing; equal items have results of one distribution. "gaussian" or
        `coterie.Gaussian(shape)`: a common covariance that nobody knows. `coterie.Counts(trials)`,
        `coterie.Bounded(lo, hi)`, `coterie.AtMost(covariance)`, `coterie.Symmetric()`. A standard deviation, d of them,
        or a covariance: known; all methods but CROC need that.
    names : sequence of str, optional
        What the items are called: `tell` then takes names.
    resolution : (alike, apart) or coterie.Resolution, optional
        Differences below `alike` do not matter, those above `apart` do, in the units of the measurements; see
        `references` and `borders`. Like "linkage" it needs a noise that is known, "gaussian", `Counts` or `Bounded`.
    groups : {"equal", "linkage"}
        Groups of equal items, or the n_clusters groups of single linkage.
    costs, cost_unit : M positive numbers and a str, optional
        What a measurement of each item costs. CROC then measures so that the same proof costs little; see `cost`.
    confirm : float
        So many measurements more after the proof, as a share of those that it took, spread so that a group that hides
        two is found: see `homogeneity`. `proven` says that the proof is there, `done` that all is measured.
    blocks : {"offset", "drawn"}, optional
        "offset": results of one block (a plate, a day, a rater) may all be shifted, in every block by another amount;
        name the block when you `ask`. "drawn": every block is drawn afresh, such as a question that all models answer;
        noise None, `Bounded` or `Counts(1)`. Items are then compared inside a block only. CROC only.
    strict_blocks : bool
        What was asked for together in a block and not measured to its end counts for nothing, whatever the reason;
        otherwise what came of it counts, assuming that the end had nothing to do with values.
    features : int or sequence of str, optional
        Where every look at an item gives one of many features, or some: how many there are, or their names. `ask` then
        gives (item, feature), and items are equal if they are in all features (docs/howto/features.md).
    panels : mapping, optional
        Features that one look gives together, by name: {"blood": ["iron", "zinc"]}.
    feature_costs, panel_costs : optional
        What each feature costs alone, in order or by name, and each panel by name; `costs` of an item are added.
    holes : {"at random"}, optional
        Results may lack numbers, whatever their values: such a result counts where it can.
    deadline : int or float, optional
        All that may be measured: so many measurements or, where there are `costs`, what they cost. See `handover`.

    Notes
    -----
    Threads may share a session: every method and property is atomic, and arrays that it hands out are copies. Several
    who measure take their tickets from `open` and give them to `tell`. Between two calls others may come first: `ask`
    can raise `SessionDone` although `done` was False a moment ago.

    Examples
    --------
    >>> import coterie, numpy
    >>> session, rng = coterie.Session(4, 2, 1, noise=1.0), numpy.random.default_rng(0)
    >>> while not session.done:
    ...     item = session.ask()
    ...     session.tell(item, 5.0 * (item % 2) + rng.standard_normal())
    >>> session.labels.tolist()
    [0, 1, 0, 1]
    """

    _lock: threading.RLock
    _conversation: Conversation

    def __init__(
        self, n_arms: int | Iterable[Any], n_clusters: int | None = None, dim: int | None = None,
        delta: float = DELTA, method: str = METHOD, threshold: str = THRESHOLD, noise: Any = None,
        distance_ratio: float | None = None, instance: Instance | None = None, names: Sequence[str] | None = None, *,
        resolution: Any = None, groups: str = GROUPS[0], costs: Any = None, cost_unit: str | None = None,
        confirm: float = 0.0, blocks: str | None = None, strict_blocks: bool = False, features: Any = None,
        feature_costs: Any = None, panels: Any = None, panel_costs: Any = None, holes: str | None = None,
        deadline: float | None = None,
    ) -> None:  # fmt: skip
        given = Settings.of(
            n_arms, n_clusters, dim, delta, method, threshold, noise, distance_ratio, instance, names,
            resolution=resolution, groups=groups, costs=costs, cost_unit=cost_unit, confirm=confirm, blocks=blocks,
            strict_blocks=strict_blocks, features=features, feature_costs=feature_costs, panels=panels,
            panel_costs=panel_costs, holes=holes, deadline=deadline,
        )  # fmt: skip
        self._lock, self._conversation = threading.RLock(), Conversation(*prepared(given))

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        atomic(cls)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """A session at its beginning with these settings."""
        return cls._about(Conversation(*prepared(settings)))

    @classmethod
    def unstarted(cls, settings: Settings) -> Self:
        """A session at its beginning whose method is not started: for those who bring a run, or a record's end."""
        ready, method = prepared(settings)
        return cls._about(Conversation(ready, method, PastRun(ready.n_arms)))

    @classmethod
    def _about(cls, conversation: Conversation) -> Self:
        session = cls.__new__(cls)
        session._lock, session._conversation = threading.RLock(), conversation
        return session

    def _read(self, function: Callable[[Conversation], T]) -> T:
        """What a function makes of the conversation, while nothing changes it."""
        with self._lock:
            return function(self._conversation)

    # Settings, as they are by now.

    first_settings = View(lambda c: c.first_settings, "The settings that it began with.")
    settings = View(lambda c: c.settings, "What the run was told, with the resolution chosen last, and as revised.")
    n_arms = Setting[int]("n_arms", "How many items there are (M), retired ones included.")
    n_clusters = Setting[int | None]("n_clusters", "K; None where the question is for a resolution, and K is found.")
    resolution = Setting[Resolution | None]("resolution", "The resolution asked for, if one is: the last one chosen.")
    groups = Setting[str]("groups", 'What makes a group of K: "equal" items, or "linkage".')
    dim = Setting[int]("dim", "How many numbers a measurement has (d).")
    delta = Setting[float]("delta", "The error probability allowed.")
    method = Setting[str]("method", "The method's name.")
    threshold = Setting[str]("threshold", "The threshold's name, for methods whose stop is not always a proof.")
    noise = Setting[Model]("noise", "What was stated about the noise: its `kind`, its `assumption`, its units.")
    distance_ratio = Setting[float | None]("distance_ratio", "The ratio of distances, for a method that needs it.")
    instance = Setting[Instance | None]("instance", "The truth, for a method that knows it.")
    names = Setting[tuple[str, ...] | None]("names", "What the items are called.")
    costs = Setting[tuple[float, ...] | None]("costs", "What one measurement of each item costs, if that differs.")
    cost_unit = Setting[str | None]("cost_unit", "What the unit of the costs is called, if it was said.")
    blocks = Setting[str | None]("blocks", "What results of a block may share, if there are blocks.")
    strict_blocks = Setting[bool]("strict_blocks", "Whether what is not measured to its end counts for nothing.")
    features = Setting[Features | None]("features", "The features that are measured one by one, and panels of them.")
    confirm = Setting[float]("confirm", "The measurements after the proof, as a share of those that it took.")
    deadline = Setting[float | None]("deadline", "All that may be measured: results, or what they cost.")
    items = View(lambda c: c.items, "All items there ever were, and which of them are retired.")
    n_present = View(lambda c: c.n_present, "How many items there are now: those that are not retired.")
    retired = View(lambda c: c.items.retired, "Items that were retired: results are kept, nothing is claimed of them.")
    certifies = View(lambda c: c.method.certifies, "Whether the method has certificates.")
    proves = View(lambda c: c.proves, "Whether the method's stop is a proof.")
    rules = View(lambda c: c.method.rules, "The number of the method's decision rules in this release.")

    # What was asked, told and decided.

    pending, awaited = View(telling.pending), View(telling.awaited)
    next_ticket = View(lambda c: c.next_ticket, "The number that the next ask will have.")
    arms_asked, log = View(telling.arms_asked), View(telling.told)
    cells, found_features = View(telling.cells_of), View(telling.found_features)
    log_arrays = View(lambda c: c.log, "All measurements told; not to be changed.")
    n_measurements = View(lambda c: len(c.log), "How many measurements were told.")
    counted = View(lambda c: c.counted, "Places in `log` of the measurements that counted, in the order they did.")
    waiting = View(lambda c: c.waiting, "Results that wait for an earlier ask of their item: CROC keeps that order.")
    decisions = View(lambda c: [made for _, made in c.decisions], "CROC's freezes, rounds and alarm, as plain JSON.")
    dated_decisions = View(lambda c: c.decisions, "`decisions`, each with the number of results that counted before.")
    applied = View(lambda c: c.applied.entries, "How many asks and results were decided by rules of another release.")
    corrections = Variable[list[Correction]]("corrections", "Values that were told wrong, and replaced.")
    revisions, outcome, events = View(revisions_of), View(outcome_of), View(events_of)

    # How far it is.

    done = View(lambda c: c.run.done, "Whether nothing is left to measure; only `correct` and `revise` take it back.")
    proven = View(lambda c: c.proven, "Whether the groups are found: with `confirm`, before all is `done`.")
    spent = View(lambda c: c.spent, "What results and open asks take of a deadline: their number, or costs.")
    out_of_budget = View(lambda c: c.out_of_budget, "Whether the deadline leaves nothing to ask for.")
    confirmed = View(lambda c: c.run.confirmed, "With `confirm`: measurements after the proof, and how many are to be.")
    t = View(lambda c: c.run.t, "Measurements that counted: all of them, or those up to the stop.")
    pulls = View(lambda c: c.run.pulls, "Measurements of each item that counted.")
    unmeasured = View(lambda c: c.unmeasured, "How many items of now have no result that counted.")
    labels, centers, groups_now = View(labels_of), View(centers_of), View(groups_of)
    references, borders, evidence = View(references_of), View(borders_of), View(evidence_of)
    alarm, alarms, homogeneity = View(alarm_of), View(alarms_of), View(homogeneity_of)
    verdict = View(verdict_now)
    certificate = View(certificate_of)
    remaining, progress, cost, cost_left = View(remaining_of), View(progress_of), View(cost_of), View(cost_left_of)
    handover = View(handover_now, "What is handed over, now or at the deadline: the proven, the guess, how good it is.")
    forecast = View(lambda c: c.run.forecast(), "For a resolution, the measurements expected in all, once known.")
    memory_bytes = View(lambda c: 0 if c.run.done else c.run.memory_bytes, "About the bytes of the method's memory.")

    # What to measure, and what came out.

    def ask(
        self, n: int | None = None, block: str | None = None, among: Iterable[Any] | None = None,
        room: int | None = None,
    ) -> Any:  # fmt: skip
        """The next item to measure; measurements still under way are counted as done. Each ask opens a ticket.

        Parameters
        ----------
        n : int, optional
            How many items: a list is returned. It is shorter if the groups are proven on the way, or if open asks have
            to be answered first. Never-measured items come first, in index order. In a block: how many fit into it;
            an item may be listed twice. The list is empty if so little room is of no use.
        block : str, optional
            The block that is measured in, such as "plate 7"; by default the one named last. What is asked for together
            in a block, a *cell*, is decided before its results: all of it is to be measured in this block, or the block
            is to be closed (`close_block`). Without n the cell is handed out one by one.
        among : iterable, optional
            The items that can be measured in this block, if not all can.
        room : int, optional
            Without n: how many more results fit into the block.

        Raises
        ------
        SessionDone
            Once the groups are proven.
        Waiting
            If further results could not be used before an ask of long ago is answered (see `awaited`). Whoever answers
            each ask before asking again never meets it.
        BlockFull
            Without n: if nothing more of use can be measured in this block.
        """
        if self.blocks is not None:
            return ask_in_block(self._conversation, n, block, among, room)
        need_blocks(self._conversation, block=block, among=among, room=room)
        return telling.ask(self._conversation, n)

    open = for_session(telling.opened)
    planned = View(lambda c: len(c.run.planned), "Asks of a block that are decided, and not handed out.")
    steps = View(lambda c: c.steps, "What was done with blocks, in order, as it is recorded.")
    block_names = View(lambda c: list(named_blocks(c)), "Blocks that were asked for, closed ones too.")
    open_blocks = View(open_blocks)
    open_in_block, close_block = for_session(open_in_block), for_session(close_block)
    block_of, asked_in = for_session(block_of), for_session(asked_in)

    tell, absorb = for_session(telling.tell), for_session(Conversation.absorb)
    check_results = for_session(Conversation.check_results)
    checked_answer, feature_of = for_session(telling.checked_answer), for_session(telling.feature_of)
    stream_told = for_session(telling.stream_told)

    def forget(self, ticket: Any) -> None:
        """Give up an ask whose measurement will not come; its item is free to be asked for again.

        Parameters
        ----------
        ticket : int
            The number of an open ask, as `pending` and `open` have it; ValueError if it is not open.
        """
        self._conversation.forget(self._conversation.lines.checked_open(ticket))

    def mark_undone(self, ticket: int) -> None:
        """An ask that was given up is none that failed: nobody began to measure."""
        self._conversation.undone.add(ticket)

    def waiting_behind(self, ticket: int) -> int:
        """Results of the same item that wait for this open ask."""
        return self._conversation.lines.behind(self._conversation.arms_asked[ticket], ticket)

    def check(self) -> bool:
        """Whether the groups are proven by the results so far; nothing is asked for."""
        self._conversation.look()
        return self.done

    arm_named = for_session(Conversation.arm_named)

    # What may change on the way.

    def correct(self, row: Any, values: Any, reason: str, by: str = "", at: str = "") -> Correction | None:
        """Replace a value that was told wrong; None if it is the present one. `corrections` and certificates list it.

        The result keeps its place in the order. What was decided stays (asks, freezes, rounds); estimates, evidence and
        the stop are worked out anew: `done` may be taken back, and `reopened` of the answer says so. Valid if the new
        value is what was measured, and was not chosen for its effect (docs/CROC.md).

        Parameters
        ----------
        row : int
            The place of the result in `log`.
        values : float or array
            The d numbers that were measured.
        reason, by, at : str
            Why the told value was wrong; who says so, and when.
        """
        return correct(self, row, values, reason, by, at)

    revise, choose_resolution = for_session(revise), for_session(choose_resolution)

    # What is proven, and what more would bring.

    def partial(self) -> Partial:
        """What is proven at this moment: which items are apart, which alike, which groups each may belong to.

        Computed from the log when it is asked for, all pairs at once: for every question and noise, before the first
        guess, after the proof and after an alarm (methods with certificates only).
        """
        need_certificates(self._conversation, "partial results")
        telling.refuse_by_feature(self._conversation, "partial()")
        from coterie.session.partial import partial_of  # here: SciPy takes a while to load

        return partial_of(self._conversation)

    def intervals(self, of: str = "groups", delta: float | None = None, quantile: float | None = None) -> Intervals:
        """Proven intervals of groups, differences or items, all together and at every moment (docs/INTERVALS.md).

        Before the proof: if these are the groups. `delta`: the chance that any is ever wrong (by default the session's,
        beside it). `quantile`: which, under any noise and `Symmetric` (the median). In offset blocks: differences.
        """
        from coterie.session.intervals import intervals_of  # here: SciPy takes a while to load

        return intervals_of(self._conversation, of, delta, quantile)

    within, resolution_for = for_session(outlook_of), for_session(resolution_for)

    def __repr__(self) -> str:
        return session_in_words(self._conversation)

    def _repr_html_(self) -> str:
        return text_html(repr(self)) + groups_html(self._conversation)

    # Records, saving and loading.

    replay = for_session(replay)

    def to_dict(self) -> dict[str, Any]:
        """Settings, log, asks and decisions as plain JSON, for `from_dict` of this release and later ones."""
        return saved.to_dict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """The session that `to_dict` saved: it goes on as if it had never stopped. ValueError names what is wrong."""
        return saved.from_dict(cls, content)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies are saved sessions, with the release that made them; a copy goes on by itself."""
        return saved.unpickled, (type(self), saved.release(), self.to_dict())

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def __setstate__(self, state: Any) -> None:
        saved.refuse_pickle_of_earlier_release()


atomic(Session)
