"""
The state of a run and its steps: the paper's methods, CROC, shortlists.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy
import numpy.random
from numpy.typing import NDArray

from coterie._native import parts as parts


class CrocFamily:
    """A family of evidence: what knows the noise of a CROC run."""

    @property
    def name(self) -> str: ...

    @property
    def pair_share(self) -> float:
        """α: the share of δ for pairs from the start; 0: no such pairs."""

    @property
    def variance_share(self) -> float:
        """w: the share of δ for an upper bound on the variance; 0: none."""

    @property
    def has_factor(self) -> bool:
        """
        Whether it has a factor of its own: tests then keep the last log E behind what they keep.
        """

    @property
    def estimated(self) -> bool:
        """
        Whether the size of the noise is unknown: the metric is then estimated.
        """

    @property
    def arm_scales(self) -> bool:
        """
        Whether the first score of an arm is about the variance of its results.
        """

    @staticmethod
    def known(pair_share: float = 0.2) -> CrocFamily:
        """A known covariance."""

    @staticmethod
    def gaussian(n_groups: int, dim: int, shape: str) -> CrocFamily:
        """
        Gaussian noise whose covariance is unknown; 'full', 'diagonal' or 'scalar'.
        """

    @staticmethod
    def any_noise(n_arms: int, n_groups: int, dim: int, shape: bool = False) -> CrocFamily:
        """
        Any noise; with `shape`, groups may differ in more than their location.
        """

    @staticmethod
    def counts(n_groups: int, dim: int, trials: int) -> CrocFamily:
        """Counts of successes out of so many trials."""

    @staticmethod
    def poisson(n_groups: int, dim: int) -> CrocFamily:
        """Counts of events without a number of trials."""

    @staticmethod
    def exponential(n_groups: int, dim: int) -> CrocFamily:
        """Times, exponential ones."""

    @staticmethod
    def bounded(n_groups: int, dim: int, widths: Sequence[float]) -> CrocFamily:
        """Results within bounds, hi − lo for each number."""

    @staticmethod
    def at_most(n_groups: int, dim: int) -> CrocFamily:
        """
        Results, in units of the covariance stated, that vary by no more than that.
        """

    @staticmethod
    def symmetric(n_groups: int, dim: int) -> CrocFamily:
        """Noise that is symmetric and may differ from arm to arm."""

class HandedInFamily(CrocFamily):
    """Evidence from outside: coterie.methods.family.Family."""

    def __init__(self, name: str, **kwargs: Any) -> None: ...

def croc_constants() -> dict[str, Any]:
    """The numbers of CROC's rule (docs/CROC.md) by name."""

def shuffled_place(i: int, n: int, seed: int) -> int:
    """Where a pull goes in the shuffled order of a round of n."""

def seed_of_round(number: int) -> int:
    """By what the asks of a round are shuffled."""

def prefix_room(n_arms: int, dim: int) -> int:
    """P, up to which all prefixes of an arm are kept."""

class CrocEntries:
    """
    Part of a conversation with a CROC run, and where the run is in it: asks, results and given-up asks, in the order in which they count.
    """

    def __init__(self, n_arms: int, dim: int, kinds: NDArray[numpy.int64], arms: NDArray[numpy.int64] | None, values: NDArray[numpy.float64], rounds: NDArray[numpy.int64] | None = None, ask: NDArray[numpy.int64] | None = None, asked: NDArray[numpy.int64] | None = None) -> None:
        """
        `arms`: of an ask, -1 if it is not known. `rounds`: of an ask that is applied, the recorded one; of others without `ask`, that of their ask. `ask`: the entry of the ask that a result or a given-up ask is about, -1 if it is not in here. `asked`: 1 if a result answers an ask. `values` (n, 2·d): results and what floats do not hold of them.
        """

    @property
    def at(self) -> int:
        """Entries before this one are done."""

    @property
    def size(self) -> int: ...

    @property
    def arms(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """The arms, also those that were asked for."""

    @property
    def rounds(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """The rounds, also those of what was asked for."""

class CrocTests:
    """
    Tests of one kind: arms against groups, or core arms against core arms.
    """

    @property
    def met(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None), writable=False)]:
        """1 if the test is met."""

    @property
    def weight(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """n of the test; 0 says that `kept` is not of this epoch."""

    @property
    def kept(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), writable=False)]:
        """S, or what the family of evidence keeps, then log E."""

    @property
    def last(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), writable=False)]:
        """
        The round at which it was met; negative: by a pair from the start, minus a count of that pair.
        """

    @property
    def bound(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), writable=False)]:
        """
        t of the bound on the variance by which a pair met it; empty without one.
        """

class CrocEpoch:
    """A frozen candidate: labels, cores and tests, with a level of its own."""

    @property
    def frozen_at(self) -> int:
        """t."""

    @property
    def number(self) -> int:
        """j."""

    @property
    def level(self) -> float:
        """b_j."""

    @property
    def labels(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """(M) the candidate."""

    @property
    def totals(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """(K) W."""

    @property
    def centers(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """(K, d) Û, from the origin of the group's first core arm."""

    @property
    def core(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """(K·room) arms, -1 for none."""

    @property
    def in_core(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,), writable=False)]:
        """(M)"""

    @property
    def shared(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """Of the family of evidence."""

    @property
    def against_group(self) -> CrocTests:
        """(M, K) an arm against all of a group."""

    @property
    def against_core(self) -> CrocTests:
        """(M, K) … against its core."""

    @property
    def core_pairs(self) -> CrocTests:
        """(K·room, K·room) two core arms."""

class CrocRun:
    """One CROC run. Results are whitened: unit noise in every direction."""

    def __init__(self, n_arms: int, n_groups: int, dim: int, log_inverse_delta: float, family: CrocFamily | None = None, prices: NDArray[numpy.float64] | None = None, constants: Mapping[str, Any] | None = None, with_pairs: bool = True) -> None:
        """
        `family`: of evidence, None for a known covariance. `prices` (M): what a pull of each arm costs, in units of the cheapest. `constants`: those of the rule that are to be others than `croc_constants` says, for tests. `with_pairs`: False for none from the start, whatever the family has.
        """

    def pop(self) -> tuple[int, int] | None:
        """
        The next arm and the round that it is pulled for (0: none), which count as under way. None if all is proven.
        """

    def absorb(self, arm: int, value: NDArray[numpy.float64], of_round: int, asked: bool) -> None:
        """Take in a result, of d or 2·d numbers, then plan if it is due."""

    def give_up(self, arm: int, of_round: int) -> None:
        """A pull under way will not come: a round asks for it again."""

    def look(self) -> None:
        """
        See whether the results so far prove the groups; plan if nothing is planned.
        """

    def follow(self, entries: CrocEntries) -> int:
        """Go on with these entries; says why it came back."""

    def apply(self, entries: CrocEntries, origin: NDArray[numpy.float64] | None = None) -> None:
        """
        Take in recorded entries without consulting the rule. With an `origin`: those up to the first result, whose positions count from it.
        """

    def play(self, steps: int, centers: NDArray[numpy.float64], truth: NDArray[numpy.int64], rng: numpy.random.Generator) -> None:
        """
        Simulate up to so many results of a world whose groups and centers are known, without the interpreter's lock.
        """

    def pair_evidences(self, pairs: NDArray[numpy.int64]) -> NDArray[numpy.float64]:
        """
        Evidence from the start that two arms differ, for rows (i, j, pulls of i, pulls of j).
        """

    def planned(self, most: int | None = None) -> NDArray[numpy.int64]:
        """
        The arms that will be asked for before the next plan, in that order, with one worker; at most so many. Nothing is asked for.
        """

    def pulls_left(self) -> float:
        """A forecast of the pulls still needed; NaN if unknown."""

    def cost_left(self) -> float:
        """
        A forecast of what is still to be spent, in units of the cheapest arm; NaN if unknown.
        """

    def memory(self) -> dict[str, Any]:
        """
        Everything the run knows; tables that follow from its size and the prices are left out.
        """

    def restore(self, memory: Mapping[str, Any]) -> None:
        """What `memory` gave. After an error the run is of no more use."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of `memory`."""

    def apply_freeze(self, labels: NDArray[numpy.int64], cores: Sequence[Sequence[int]], level: float, shared: Sequence[float] = ...) -> None:
        """
        A recorded freeze: the candidate with its cores is an epoch, at its place among the results. `shared`: what the family had fixed with it.
        """

    def apply_round(self, epoch: int, pulls: Sequence[Sequence[int]], bet: Sequence[float] = ...) -> bool:
        """
        A recorded round: its composition as [arm, count], and the family's bet on it. False if too many are open.
        """

    def apply_alarm(self, arms: Sequence[int]) -> None:
        """A recorded alarm."""

    def estimate(self) -> None:
        """
        A guess of the groups from what was applied, if every arm was measured.
        """

    def represent(self, group: int, arm: int) -> None:
        """
        This arm represents its group from now on; nothing is known of its pairs.
        """

    def settle(self, arm: int, group: int, evidence: float, counts: tuple[int, int]) -> None:
        """
        The evidence of an arm against the representative of a group, found at these counts.
        """

    def meet_core_pair(self, slot: int, i: int, j: int, counts: tuple[int, int]) -> None:
        """
        A pair from the start, at these counts, meets the test of two core arms.
        """

    def frozen(self, slot: int) -> CrocEpoch:
        """The epoch in a slot."""

    def composition(self, number: int) -> tuple[int, list[list[int]]]:
        """
        Of a round under way: the number of its epoch, and its pulls as [arm, count].
        """

    def round_bet(self, number: int) -> list[float]:
        """
        What the family of evidence fixed with a round under way, and then the variance of each of its arms.
        """

    def open_rounds(self) -> list[tuple[int, int, int, int]]:
        """
        Rounds composed and not closed: (number, epoch, pulls, results that are still to come).
        """

    def is_closed(self, number: int) -> bool:
        """Whether a round is complete and has been used."""

    @property
    def alarm(self) -> tuple[Any, ...] | None:
        """
        K + 1 arms that are known to differ pairwise, if there are such: K is too small.
        """

    @property
    def family(self) -> CrocFamily:
        """Of evidence."""

    @property
    def ready(self) -> bool:
        """Whether there is an estimate."""

    @property
    def matching_epoch(self) -> int:
        """
        The slot of the epoch whose candidate is the present estimate, -1 if there is none.
        """

    @property
    def pair_level(self) -> float:
        """
        log(H/(α·δ)), infinite without pairs; others after a revision, set before the first result.
        """

    @pair_level.setter
    def pair_level(self, arg: float, /) -> None: ...

    @property
    def n_arms(self) -> int:
        """M."""

    @property
    def n_groups(self) -> int:
        """K."""

    @property
    def dim(self) -> int:
        """d."""

    @property
    def log_inverse_delta(self) -> float:
        """log(1/δ)."""

    @property
    def done(self) -> bool:
        """Whether the groups are proven."""

    @property
    def by_pairs(self) -> bool:
        """Whether they are proven by the pairs from the start alone."""

    @property
    def epoch(self) -> int:
        """The slot of the epoch that proved them."""

    @property
    def t(self) -> int:
        """Results so far."""

    @property
    def unseen(self) -> int:
        """Arms never measured."""

    @property
    def freezes(self) -> int:
        """Epochs so far."""

    @property
    def n_epochs(self) -> int:
        """Epochs that are remembered."""

    @property
    def round(self) -> int:
        """The number of the last round composed."""

    @property
    def has_open_rounds(self) -> bool:
        """Whether a round is under way."""

    @property
    def to_ask(self) -> int:
        """
        Pulls that are planned and still to be asked for, once every arm was measured.
        """

    @property
    def room(self) -> int:
        """P, up to which all prefixes of an arm are kept."""

    @property
    def core_room(self) -> int:
        """Places of a core."""

    @property
    def pair_share(self) -> float:
        """α: the share of δ for pairs from the start."""

    @property
    def variance_share(self) -> float:
        """w: the share of δ for an upper bound on the variance."""

    @property
    def has_factor(self) -> bool:
        """
        Whether the family of evidence has factors of its own; else the covariance is known.
        """

    @property
    def has_bets(self) -> bool:
        """Whether the family fixes numbers when a round is composed."""

    @property
    def is_estimated(self) -> bool:
        """Whether the metric is estimated."""

    @property
    def knows_spread(self) -> bool:
        """
        Whether the size of the noise is known, or repeated results have shown something of it.
        """

    @property
    def pulls(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """(M) N_m."""

    @property
    def committed(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """(M) pulls, and those asked for."""

    @property
    def origin(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """(d) the first result."""

    @property
    def offset(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """(M, d) of the arm's own origin."""

    @property
    def offset_rest(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """(M, d) what floats do not hold of it."""

    @property
    def sums(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """(M, d) of the results, from the arm's origin."""

    @property
    def labels(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """(M) the estimate."""

    @property
    def totals(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """(K) W."""

    @property
    def positions(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """(K, d) Û, from the origin, in units of the metric."""

    @property
    def representative(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """(K) arms."""

    @property
    def settled(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None), writable=False)]:
        """(M, K) 1: arm and representative are known to differ."""

    @property
    def evidence(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """(M, K) log-evidence of arm against representative, latched."""

    @property
    def pair_bound(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), writable=False)]:
        """
        (M, K) t of the bound on the variance in `evidence`; empty without one.
        """

    @property
    def has_shape(self) -> bool:
        """
        Whether there is a second estimate, of features, beside that of the location.
        """

    @property
    def shape_leads(self) -> bool:
        """Whether it is the one that the run goes by."""

    @property
    def label_information(self) -> list[float]:
        """
        J: what the estimates of the location and of the shape have predicted, in nats; empty without the second.
        """

    @property
    def feature_names(self) -> list[str]:
        """Of the second estimate."""

    @property
    def feature_seed(self) -> int | None:
        """Of random features; None if they are not random."""

    @property
    def pair_counts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None, None), writable=False)]:
        """(M, K, 2) counts of arm and representative when that was found."""

class PaperRun:
    """
    One run of the paper's methods. Results are whitened: unit noise in every direction.
    """

    def __init__(self, n_arms: int, n_groups: int, dim: int, rule: int, levels: NDArray[numpy.float64], floor: float | None = None, labels: NDArray[numpy.int64] | None = None, shares: NDArray[numpy.float64] | None = None) -> None:
        """
        `levels` (2, L): of the proven and the heuristic threshold, in increasing order; NaN for a kind that nobody asks for. `floor`: of the shares, for linear exploration. `labels` (M), `shares` (K): for the oracle.
        """

    def play(self, steps: int, centers: NDArray[numpy.float64], truth: NDArray[numpy.int64], rng: numpy.random.Generator, arms: NDArray[numpy.int64]) -> int:
        """
        Simulate up to so many measurements of a known world, without the interpreter's lock. The first arms are noted in `arms`, as many as fit. Returns the arm that comes next.
        """

    def follow(self, arms: NDArray[numpy.int64], values: NDArray[numpy.float64], what: NDArray[numpy.int64]) -> int:
        """
        Take in a script of results, asks and given-up asks, each about an arm; an ask for arm -1 is for the one that the rule says, which is written to `arms`. Returns the next arm, or -1-i if entry i asks for another.
        """

    def commit(self, arm: int, change: int) -> None:
        """Count a pull of the arm as under way (+1) or as given up (-1)."""

    def cancel(self) -> None:
        """
        From any thread: end what is under way after the present measurement, for good.
        """

    def memory(self) -> dict[str, Any]:
        """All fields of the run, as arrays and numbers."""

    def restore(self, memory: Mapping[str, Any]) -> None:
        """What `memory` gave. After an error the run is of no more use."""

    @property
    def memory_bytes(self) -> int: ...

    @property
    def t(self) -> int:
        """Measurements so far."""

    @property
    def pending(self) -> int:
        """Pulls under way."""

    @property
    def ready(self) -> bool:
        """Whether every arm was measured."""

    @property
    def done(self) -> bool:
        """Whether every level is met."""

    @property
    def degenerate(self) -> bool:
        """Whether the guess has an empty cluster or two equal centers."""

    @property
    def certified(self) -> bool:
        """Whether the separation certificate proves the labels."""

    @property
    def log_sum(self) -> float:
        """
        The part of the proven threshold that grows with the counts: Σ log(4 + log N).
        """

    @property
    def statistic(self) -> tuple[float, float, float]:
        """Z1(t), Z2(t), Z(t)."""

    @property
    def pulls(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """N_m(t) (M)."""

    @property
    def sums(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """Of the results (M, d), from `origin`."""

    @property
    def labels(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """The guess (M)."""

    @property
    def centers(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]:
        """Its centers (K, d), from `origin`."""

    @property
    def shares(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """λ* of an arm of each group (K)."""

    @property
    def origin(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """The first result (d)."""

    @property
    def stops(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), writable=False)]:
        """The t at which each level was met (2, L)."""

    @property
    def correct(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), writable=False)]:
        """Whether the guess was right then (2, L)."""

class Partitions:
    """Partitions of arms into K groups, none empty: rows of labels 0 … K−1."""

    def __init__(self, listed: object, dim: int, scales: object) -> None:
        """`scales`: τ² that centers of parts may have."""

    def log_posterior(self, blocks: object, pulls: object, sums: object) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        log p of each, up to a constant, if arms of different blocks are in different groups.
        """

    def round_logs(self, alive: object, chance: object, pulls: object, sums: object, taken: object, total: object) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        log of the factor of the evidence against each that is alive, by the results of a round; 0 for the others.
        """

    def expected_growth(self, urgency: object, chance: object, pulls: object, sums: object, small: float, least_log: float) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], int, int]:
        """
        What a pull of each arm adds to the evidence against urgent partitions; null and rival that weigh most.
        """
