"""CROC for the questions that have no exact groups: its side of the contract. Freezes are its decisions.

Candidates are frozen and then tested by results asked for after the freeze (docs/RESOLUTION.md). The round of an ask is
the number of freezes before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.evidence.near_far import scale_of
from coterie.evidence.near_far.gaussian import SHARE_OF_BOUNDS
from coterie.methods.contract import Decision, HeldUp, MethodRun, Pull
from coterie.methods.present_arms import Past
from coterie.methods.reports import BOUNDS, LINKS, Evidence, Standing, Weakest
from coterie.methods.resolution.epoch import Epoch, RunEvidence
from coterie.methods.resolution.linkage import AskedLinkage
from coterie.methods.resolution.questions import AskedQuestion, AskedResolution
from coterie.methods.resolution.run import ALPHA, FreezingRun, level_of_epoch
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.costs import unit_costs
from coterie.problem.families import Counts, Unknown
from coterie.problem.instance import Instance
from coterie.problem.question import ExactGroups, Resolution, SingleLinkage
from coterie.problem.sentences import assumption_in_words, choices_in_words, claim_in_words
from coterie.problem.settings import Settings


def asked_for(settings: Settings) -> AskedQuestion:
    """The question of a run."""
    question, dim = settings.question, settings.dim
    evidence = RunEvidence(settings.noise, question, settings.n_arms, dim, settings.delta)
    if isinstance(question, SingleLinkage):
        return AskedLinkage(evidence, question.n_clusters, dim)
    assert isinstance(question, Resolution)
    epsilon, eta = question.epsilon(dim), question.eta(dim)
    bounds = {"epsilon": epsilon.tolist(), "eta": eta.tolist()}
    return AskedResolution(evidence, np.ones(dim), epsilon / eta, question.claims == "any-two", bounds)


def spent_by(past: Past, settings: Settings) -> float:
    """log of 1 over the share of δ that is left after revisions (docs/RESOLUTION.md, section 3).

    Bounds on the variance rest on the first results that were asked for of every item present, and are bought anew.
    """
    gaussian = settings.noise.kind == "gaussian"
    return past.log_spent - (past.revisions * math.log((1.0 - ALPHA) * (1.0 - SHARE_OF_BOUNDS)) if gaussian else 0.0)


class ResolutionRun(MethodRun):
    """Groups up to a resolution, or by single linkage. `sampling`: how its run chooses what to measure."""

    def __init__(self, settings: Settings, past: Past | None = None, sampling: type[FreezingRun] = FreezingRun) -> None:
        self._settings = settings
        self._scale = scale_of(settings.question, settings.dim)
        self._log_inverse_delta = -math.log(settings.delta) + (0.0 if past is None else spent_by(past, settings))
        self._left = 1.0 if past is None else math.exp(-spent_by(past, settings))  # the share of δ
        self._asked = self._question()
        self._run = sampling(self._asked, settings.n_arms, self._log_inverse_delta)
        self._weigh_costs()
        self._origin: FloatArray | None = None  # the first result, in units of the noise: differences stay exact
        self._reported = 0
        self._chosen: list[Decision] = []  # resolutions that were chosen on the way, and not reported yet

    def _question(self) -> AskedQuestion:
        return asked_for(replace(self._settings, delta=self._settings.delta * self._left))

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def t(self) -> int:
        return self._run.t

    @property
    def pulls(self) -> IntArray:
        pulls: IntArray = self._run.tally.counts.copy()
        return pulls

    def ask(self) -> Pull | None:
        arm = self._run.ask()
        return None if arm is None else Pull(arm, self._run.number)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self._run.count(arm, self._scaled(x), of_round, asked)

    def _scaled(self, x: FloatArray) -> FloatArray:
        """A result, given in units of the noise with what floats do not hold of it, in scaled units."""
        dim = self._settings.dim
        if self._origin is None:
            counts = isinstance(self._settings.noise, Unknown) and isinstance(self._settings.noise.statement, Counts)
            self._origin = np.zeros_like(x) if counts else np.array(x)
        away = x - self._origin
        color = self._settings.noise.color
        value = color(away[:dim]) + color(away[dim:]) if away.size > dim else color(away)
        return np.asarray(value / self._scale)

    def _white(self, z: FloatArray) -> FloatArray:
        """Means (n, d) in scaled units, in units of the noise."""
        noise = self._settings.noise
        origin = np.zeros(self._settings.dim) if self._origin is None else self._origin[: self._settings.dim]
        return np.asarray(noise.whiten(z * self._scale) + origin)

    def give_up(self, arm: int, of_round: int) -> None:
        self._run.give_up(arm, of_round)

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        held = self._run.held_up([(ask.arm, ask.round) for ask in asks])
        return None if held is None else HeldUp(*held)

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        labels = self._run.labels
        if labels is None:
            return None
        tally = self._run.tally
        counts = np.maximum(tally.counts, 1).astype(np.float64)
        centers = np.zeros((int(labels.max()) + 1, self._settings.dim))
        np.add.at(centers, labels, counts[:, None] * tally.means)
        centers /= np.bincount(labels, counts)[:, None]
        return labels.copy(), self._white(centers)

    @property
    def references(self) -> tuple[int, ...] | None:
        """The reference of each group of the guess."""
        arms = self._run.references
        return None if arms is None else tuple(arms.tolist())

    @property
    def borders(self) -> Mapping[int, Sequence[int]]:
        """Items whose estimated mean also suits other groups, and these groups."""
        return self._asked.borders(self._run.labels, self._run.references, self._run.tally)

    def forecast(self) -> float | None:
        """How many results are forecast to be needed in all; None before every arm was measured."""
        return self._run.forecast()

    def cost_left(self) -> float | None:
        if self._settings.costs is None:
            return None
        left = self._run.cost_left() * min(self._settings.costs)
        return left if math.isfinite(left) else None

    def resolution_for(self, budget: int) -> float | None:
        """The smallest f ≥ 1 for which (ε, f·η) is forecast to need no more than the budget; None if none does."""
        return self._run.factor_for(budget)

    def choose_resolution(self, resolution: Resolution) -> None:
        """Ask for another ε and η: units are those of the new η from here on, as the next freeze writes it down."""
        dim = self._settings.dim
        self._chosen.append(
            {
                "event": "resolution",
                "epoch": len(self._run.freezes),
                "chosen_at": self._run.t,
                "epsilon": resolution.epsilon(dim).tolist(),
                "eta": resolution.eta(dim).tolist(),
                **resolution.to_json(),
            }
        )
        self._change(resolution)

    def _change(self, resolution: Resolution) -> None:
        self._settings = replace(self._settings, question=resolution)
        earlier, self._scale = self._scale, scale_of(resolution, self._settings.dim)
        self._asked = self._question()
        self._run.change(self._asked, earlier / self._scale)
        self._weigh_costs()

    def _weigh_costs(self) -> None:
        price = unit_costs(self._settings.costs, self._settings.n_arms)
        self._run.price = price
        self._asked.price = price if (price != 1.0).any() else None

    def evidence(self) -> Evidence:
        run = self._run
        epoch = run.epoch
        if epoch is None:
            return Evidence(0.0, level_of_epoch(run.number, self._log_inverse_delta), None)
        evidence, unmet = epoch.evidence, np.flatnonzero(epoch.met_at == 0)
        if not unmet.size:
            return Evidence(float(evidence.min(initial=math.inf)), epoch.level, None)
        worst = int(unmet[np.argmin(evidence[unmet])])
        statistic = max(float(evidence[worst]), 0.0)
        item, reference = int(epoch.item[worst]), int(epoch.reference[worst])
        left = run.remaining()
        lack = Weakest(
            item, int(epoch.labels[reference]), statistic, epoch.level, reference, left if math.isfinite(left) else None
        )
        return Evidence(statistic, epoch.level, lack)

    def standing(self) -> Standing:
        """Claims are the tests of the frozen candidate; before a freeze nothing is proven. `forecast` has the rest."""
        run, epoch = self._run, self._run.epoch
        course = LINKS if self._settings.resolution is None else BOUNDS
        if epoch is None:
            return Standing(0, run.planned_tests, 0, course=course)
        reached = np.where(epoch.met, 1.0, np.maximum(epoch.evidence, 0.0) / epoch.level)
        worked = float(np.clip(reached.mean(), 0.0, 1.0)) if len(epoch) else 1.0
        proven, settled = int(np.count_nonzero(epoch.met)), int(np.count_nonzero(epoch.unmet == 0))
        return Standing(proven, len(epoch), settled, None, worked, run.spent, course)

    # Decisions.

    def new_decisions(self) -> list[Decision]:
        made = self._chosen + self._run.freezes[self._reported :]
        self._chosen = []
        self._reported = len(self._run.freezes)
        return made

    def open_recorded(self, arm: int, of_round: int) -> None:
        self._run.open(arm, of_round)

    def apply_decision(self, decision: Decision) -> None:
        if decision["event"] == "freeze":
            self._run.apply_freeze(decision)
            self._reported = len(self._run.freezes)
        elif decision["event"] == "resolution":
            self._change(Resolution.of(decision["resolution"]))

    # What is certified.

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        epoch = self._run.epoch
        if epoch is None or not epoch.done:
            return None
        rows = list(zip(epoch.evidence.tolist(), epoch.met_at.tolist(), strict=True))
        n_near = int(np.count_nonzero(epoch.is_near))
        near, far = rows[:n_near], rows[n_near:]
        freezes = [decision for decision in decisions if decision["event"] == "freeze"]
        choices = [decision for decision in decisions if decision["event"] == "resolution"]
        means = self._run.tally.means * self._scale
        proof = certificate_of(self._settings, self._run.t, freezes, epoch.number, near, far, means)
        return proof | changes_of(freezes, choices)

    def is_right(self, instance: Instance) -> bool:
        """Whether what is claimed holds for the true means."""
        epoch = self._run.epoch
        return epoch is not None and self._asked.holds(epoch, instance.means / self._scale)

    @property
    def epoch(self) -> Epoch | None:
        """The frozen candidate that is being tested, or is proven."""
        return self._run.epoch


# The certificate of groups up to a resolution, or of single linkage: plain data that coterie.verify re-checks.
#
# docs/RESOLUTION.md, section 9, lists the fields; what a freeze decides is written there as it stands.


_OF_FREEZE = ("level", "labels", "references", "epsilon", "eta", "height", "balls", "near", "far")


def certificate_of(
    settings: Settings,
    t: int,
    freezes: Sequence[Decision],
    epoch: int,
    near: Sequence[tuple[float, int]],
    far: Sequence[tuple[float, int]],
    means: FloatArray,
) -> dict[str, Any]:
    """The proof as plain data, once all tests of a freeze are met.

    `t`: results that counted. `freezes`: all of the run, in order, each with `frozen_at`, the results that had counted
    before it. `epoch`: which of them is proven. `near`, `far`: evidence and contrasts of each of its tests, in its
    order. `means`: (M, d) of all results that counted, in the user's units, from any one origin.
    """
    question, proven = settings.question, freezes[epoch]
    assert not isinstance(question, ExactGroups)
    document: dict[str, Any] = {"format": "coterie-certificate-2", "question": question.kind}
    if isinstance(question, Resolution):
        at = Resolution(proven["epsilon"], proven["eta"], question.norm, question.claims)
        document["claim"] = claim_in_words(at, settings.delta)
        document |= {"claims": question.claims, "norm": question.norm}
        document |= {"epsilon": list(proven["epsilon"]), "eta": list(proven["eta"])}
        borders = borders_of(means, np.array(proven["labels"]), proven["references"], at)
    else:
        document["claim"] = claim_in_words(question, settings.delta, float(proven["height"]))
        document |= {"norm": "distance", "height": float(proven["height"]), "n_clusters": question.n_clusters}
        borders = {}
    if settings.noise.kind == "gaussian":
        document["variance_share"] = SHARE_OF_BOUNDS
    return document | {
        "delta": settings.delta,
        "log_inverse_delta": -math.log(settings.delta),
        "alpha": ALPHA,
        "noise": settings.noise.to_json(),
        "assumes": assumption_in_words(settings.noise, question.kind),
        "n_arms": settings.n_arms,
        "dim": settings.dim,
        "t": int(t),
        "n_groups": len(proven["references"]),
        "labels": [int(label) for label in proven["labels"]],
        "references": [int(arm) for arm in proven["references"]],
        "epochs": [epoch_of(freeze) for freeze in freezes],
        "epoch": epoch,
        "near_tests": _rows(proven["near"], near),
        "far_tests": _rows(proven["far"], far),
        "borders": {str(item): list(groups) for item, groups in borders.items()},
    }


def epoch_of(freeze: Mapping[str, Any]) -> dict[str, Any]:
    """A freeze as a certificate lists it."""
    kept = {name: freeze[name] for name in _OF_FREEZE if freeze.get(name) is not None}
    return {"number": freeze["epoch"], "frozen_at": freeze["frozen_at"], **kept}


def changes_of(freezes: Sequence[Decision], choices: Sequence[Decision]) -> dict[str, Any]:
    """What a certificate says where other ε and η were chosen on the way: each choice, and all of it in words."""
    if not choices:
        return {}
    kept = ("epoch", "chosen_at", "epsilon", "eta")
    frozen = [(freeze["epsilon"], freeze["eta"]) for freeze in freezes]
    chosen = [(choice["epoch"], choice["chosen_at"], (choice["epsilon"], choice["eta"])) for choice in choices]
    return {
        "resolutions": [{name: choice[name] for name in kept} for choice in choices],
        "resolutions_in_words": choices_in_words(frozen, chosen),
    }


def borders_of(
    means: FloatArray, labels: IntArray, references: Sequence[int], resolution: Resolution
) -> dict[int, tuple[int, ...]]:
    """Items that could belong to other groups too, and to which: by all results they are within η of those as well.

    Of the reference of a group, or for the claim "any-two" of all its items. A reference itself belongs to its group.
    """
    scaled = means / resolution.eta(means.shape[1])
    borders: dict[int, tuple[int, ...]] = {}
    for item, own in enumerate(labels.tolist()):
        if item in references:
            continue
        groups = []
        for group, reference in enumerate(references):
            mates = np.flatnonzero(labels == group) if resolution.claims == "any-two" else np.array([reference])
            gaps = np.abs(scaled[mates] - scaled[item])
            lengths = np.sqrt((gaps**2).sum(axis=1)) if resolution.norm == "distance" else gaps.max(axis=1)
            if group != own and (lengths < 1.0).all():
                groups.append(group)
        if groups:
            borders[item] = tuple(groups)
    return borders


def _rows(tests: Sequence[Any], states: Sequence[tuple[float, int]]) -> list[list[Any]]:
    return [
        [int(test[0]), int(test[1]), float(evidence), int(n)] for test, (evidence, n) in zip(tests, states, strict=True)
    ]
