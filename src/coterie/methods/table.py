"""The table of methods: those of the package, and those that somebody registers.

Nobody else compares names of methods: what a method can do and needs is in its entry (`coterie.methods.contract`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.contract import Method, MethodRun, Trial
from coterie.methods.paper import BOC, LINEAR, ORACLE, UNIFORM
from coterie.problem.checks import check_distance_ratio, short
from coterie.problem.families import KINDS, Model
from coterie.problem.question import QUESTIONS, ExactGroups, Question
from coterie.problem.settings import SettingError, Settings, SettingTypeError, checked

if TYPE_CHECKING:
    from coterie.methods.present_arms import Past
    from coterie.methods.trials import Plan, Running, Stops

NEEDS = frozenset({"distance_ratio", "instance"})
"""What a method may need beyond the settings that all have."""


def _start_croc(settings: Settings) -> MethodRun:
    """CROC for K groups of equal items; for the other questions, candidates that are frozen and certified."""
    if settings.question.kind != ExactGroups.kind:
        from coterie.methods.resolution.method import ResolutionRun

        return ResolutionRun(settings)
    from coterie.methods.croc.method import CrocMethodRun

    return CrocMethodRun(settings)


def _restart_croc(settings: Settings, past: Past) -> MethodRun:
    """The same after a revision: what of δ is spent stays spent."""
    if settings.question.kind != ExactGroups.kind:
        from coterie.methods.resolution.method import ResolutionRun

        return ResolutionRun(settings, past=past)
    from coterie.methods.croc.method import CrocMethodRun

    return CrocMethodRun(settings, past)


def _start_shortlist(settings: Settings) -> MethodRun:
    from coterie.methods.shortlist.method import ShortlistRun

    return ShortlistRun(settings)


def _paper(sampling: int) -> Callable[[Settings], MethodRun]:
    """How a run of one of the paper's sampling rules starts."""

    def start(settings: Settings) -> MethodRun:
        from coterie.methods.paper.method import PaperMethodRun

        return PaperMethodRun(settings, sampling)

    return start


def _croc_trial(plan: Plan, seed: np.random.SeedSequence, running: Running) -> dict[str, Stops]:
    from coterie.methods.trials import play_croc

    return play_croc(plan, seed, running)


def _paper_trial(sampling: int) -> Trial:
    """The loop of trials of one of the paper's sampling rules."""

    def trial(plan: Plan, seed: np.random.SeedSequence, running: Running) -> dict[str, Stops]:
        from coterie.methods.trials import play_paper

        return play_paper(sampling, plan, seed, running)

    return trial


_PAPER_STOP = "Z(t) ≥ β(δ, t) or β̃(δ, t), equations equation_Z and equation_beta"

RULES = 3
"""Number 3 was that of the whole first release, whatever the method; from there on each method counts for itself.

1: the first. 2: CROC counts from the first result, and its representatives tie by index. 3: CROC's estimate has the
largest posterior, and rounds follow one another before their results are in.
"""

_table: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "croc",
            "ours: certified representatives, pools and rounds (docs/CROC.md)",
            _start_croc,
            sampling="explore while the estimate may be wrong, then rounds for the claims of a frozen candidate",
            stopping="every claim of a candidate is proven, by rounds or by pairs from the start",
            noises=KINDS,
            questions=QUESTIONS,
            certifies=True,
            has_thresholds=False,
            in_ask_order=True,
            exact=True,
            weighs_costs=True,
            rules=4,  # since 3: single linkage keeps the near tests of items that tie
            trial=_croc_trial,
            restart=_restart_croc,
        ),
        Method(
            "shortlist",
            "CROC with a list of partitions in place of a freeze, where few fit (docs/CROC.md, section 20)",
            _start_shortlist,
            sampling="CROC's; with a list, what tells the partitions on it apart",
            stopping="one partition is left on the list, or CROC's proof",
            certifies=True,
            has_thresholds=False,
            in_ask_order=True,
            exact=True,
        ),
        Method(
            "boc",
            "Alg. 1: track the optimal allocation of the current guess, with forced exploration",
            _paper(BOC),
            sampling="track λ* of the guess",
            stopping=_PAPER_STOP,
            rules=RULES,
            trial=_paper_trial(BOC),
        ),
        Method(
            "boc-linear",
            "Alg. 1 with linear exploration (equation_newsamplingrule): allocation projected on λ ≥ r²/(2M)",
            _paper(LINEAR),
            sampling="track λ* of the guess, projected",
            stopping=_PAPER_STOP,
            rules=RULES,
            needs=frozenset({"distance_ratio"}),
            trial=_paper_trial(LINEAR),
        ),
        Method(
            "uniform",
            "round robin: the least-pulled arm, lowest index first",
            _paper(UNIFORM),
            sampling="the least-pulled arm",
            stopping=_PAPER_STOP,
            rules=RULES,
            trial=_paper_trial(UNIFORM),
        ),
        Method(
            "oracle",
            "track the optimal allocation of the true instance, with forced exploration",
            _paper(ORACLE),
            sampling="track λ* of the truth",
            stopping=_PAPER_STOP,
            rules=RULES,
            needs=frozenset({"instance"}),
            simulates_only=True,
            trial=_paper_trial(ORACLE),
        ),
    )
}

METHODS: Mapping[str, Method] = MappingProxyType(_table)
"""All methods by name, in the order in which they are listed to people; those registered come last."""

PACKAGED = tuple(_table)
"""The methods of the package itself."""


def method_named(name: Any) -> Method:
    """The entry of a method in the table.

    Parameters
    ----------
    name
        Its name.

    Returns
    -------
    Method
        The entry.

    Raises
    ------
    SettingError
        There is no such method; the message lists those that there are.

    Examples
    --------
    >>> method_named("boc-linear").needs
    frozenset({'distance_ratio'})
    """
    if not isinstance(name, str):
        raise SettingTypeError(f"the method must be one of {', '.join(METHODS)}, got {short(name)}", "method")
    if name not in METHODS:
        raise SettingError(f"unknown method {name!r}: choose one of {', '.join(METHODS)}", "method")
    return METHODS[name]


def certifying_methods() -> str:
    """The names of the methods that have certificates, in words."""
    return " or ".join(repr(method.name) for method in METHODS.values() if method.certifies)


def is_packaged(method: Method) -> bool:
    """Whether a method is one of the package's own."""
    return method.name in PACKAGED and METHODS[method.name] is method


def register(method: Method, *, replace_existing: bool = False) -> Method:
    """Add a method to the table; sessions, simulations, the command line and campaigns of this process then take it.

    Parameters
    ----------
    method
        The entry: one from `compose`, or one of your own.
    replace_existing
        Whether a method that was registered under the same name is replaced. One of the package never is.

    Returns
    -------
    Method
        The same entry.

    Raises
    ------
    ValueError
        The name is taken or no name, or the method needs, takes or answers what there is not.

    Examples
    --------
    >>> from coterie import methods
    >>> entry = methods.register(methods.compose("in-turn", stopping="pairs"))
    >>> "in-turn" in methods.METHODS
    True
    >>> methods.unregister("in-turn")
    """
    if not isinstance(method, Method):
        raise TypeError(f"register takes a coterie.methods.Method, got {short(method)}")
    name = method.name
    if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable() or len(name) > 64:
        raise ValueError(f"a method's name must have 1 to 64 printable characters, none of them a blank, got {name!r}")
    if " " in name:
        raise ValueError(f"a method's name must have no blanks, got {name!r}")
    if name in PACKAGED:
        raise ValueError(f"method {name!r} belongs to the package: choose another name")
    if name in _table and not replace_existing:
        raise ValueError(f"method {name!r} is registered already: give replace_existing=True to replace it")
    unknown = sorted(set(method.needs) - NEEDS)
    if unknown:
        raise ValueError(f"method {name!r} needs {', '.join(unknown)}: a method may need {', '.join(sorted(NEEDS))}")
    strange = sorted(set(method.noises) - KINDS)
    if strange or not method.noises:
        fault = f"the noises {', '.join(strange)}" if strange else "no noise"
        raise ValueError(f"method {name!r} takes {fault}: a method may take {', '.join(sorted(KINDS))}")
    asked = sorted(set(method.questions) - QUESTIONS)
    if asked or not method.questions:
        fault = f"the questions {', '.join(asked)}" if asked else "no question"
        raise ValueError(f"method {name!r} answers {fault}: a method may answer {', '.join(sorted(QUESTIONS))}")
    if not callable(method.start):
        raise TypeError(f"method {name!r} has no start(settings), got {short(method.start)}")
    _table[name] = method
    return method


def unregister(name: str) -> None:
    """Take a method that was registered out of the table.

    Parameters
    ----------
    name
        Its name; methods of the package stay, and a ValueError says so.

    Examples
    --------
    >>> from coterie import methods
    >>> entry = methods.register(methods.compose("in-turn", stopping="pairs"))
    >>> methods.unregister("in-turn")
    """
    if name in PACKAGED:
        raise ValueError(f"method {name!r} belongs to the package: it stays")
    if name not in _table:
        raise ValueError(f"no method {name!r} is registered")
    del _table[name]


def prepared(settings: Settings) -> tuple[Settings, Method]:
    """The method of these settings, and the settings with what it needs and nothing else; checked."""
    method = method_named(settings.method)
    ratio, instance = settings.distance_ratio, settings.instance
    if "distance_ratio" in method.needs:
        ratio = checked("distance_ratio", check_distance_ratio, ratio)
    else:
        ratio = None
    if "instance" not in method.needs:
        instance = None
    elif instance is None:
        raise SettingError(f"method {method.name!r} needs the true instance, got None", "instance")
    check_noise(method, settings.noise)
    check_question(method, settings.question, settings.noise)
    check_weighs_costs(method, settings.costs)
    return replace(settings, distance_ratio=ratio, instance=instance), method


def check_weighs_costs(method: Method, costs: Any) -> None:
    """That a method heeds costs, if there are any; `SettingError` says what to do."""
    if costs is None or method.weighs_costs:
        return
    others = [other.name for other in METHODS.values() if other.weighs_costs and not other.simulates_only]
    instead = f', or use method="{others[0]}"' if others else ""
    raise SettingError(
        f"method {method.name!r} does not weigh costs: it would measure as if all items cost the same, got "
        f"costs={short(list(costs))}; leave costs out{instead}",
        "costs",
    )


def check_noise(method: Method, noise: Model) -> None:
    """That a method takes this kind of noise; `SettingError` says what to do."""
    if noise.kind in method.noises:
        return
    others = [other.name for other in METHODS.values() if noise.kind in other.noises and not other.simulates_only]
    instead = f', or use method="{others[0]}", which takes {noise.words}' if others else ""
    if method.noises == {"known"}:
        said = "nothing was said about it" if noise.kind == "any" else f"all that was said is {noise.words}"
        raise SettingError(
            f'method "{method.name}" needs to know the noise, and {said}: give noise=…, a standard deviation, one for '
            f"each number of a measurement, or a covariance{instead}",
            "noise",
        )
    taken = ", ".join(sorted(method.noises))
    raise SettingError(f'method "{method.name}" does not take {noise.words}: it takes {taken}{instead}', "noise")


def check_question(method: Method, question: Question, noise: Model) -> None:
    """That a method answers this question, and that this noise allows it; `SettingError` says what to do."""
    if question.kind not in method.questions:
        others = [
            other.name for other in METHODS.values() if question.kind in other.questions and not other.simulates_only
        ]
        words = {"resolution": "groups up to a resolution", "linkage": "groups by single linkage"}
        instead = f': use method="{others[0]}"' if others else ""
        field = "groups" if question.kind == "linkage" else "resolution"
        raise SettingError(
            f'method "{method.name}" does not find {words.get(question.kind, "K groups")}{instead}', field
        )
    if question.kind != ExactGroups.kind and noise.kind not in PROVES_NEARNESS:
        raise SettingError(
            f"that items are near each other cannot be proven under {noise.words}: a rare large value could hide a "
            "difference of any size. State what is known: bounds of the results (coterie.Bounded(lo, hi)), counts "
            '(coterie.Counts(trials)), Gaussian noise (noise="gaussian"), or a standard deviation',
            "noise",
        )


PROVES_NEARNESS = frozenset({"known", "gaussian", "bounded", "counts"})
"""The kinds of noise under which results can show that two means are near each other (docs/RESOLUTION.md)."""
