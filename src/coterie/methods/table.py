"""The table of methods: those of the package, and those that somebody registers.

Nobody else compares names of methods: what a method can do and needs is in its entry (`coterie.methods.contract`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coterie.methods.contract import Method, MethodRun
from coterie.methods.paper import BOC, LINEAR, ORACLE, UNIFORM
from coterie.problem.checks import check_distance_ratio, short
from coterie.problem.families import KINDS, PROVES_NEARNESS, Model, trials_of
from coterie.problem.question import QUESTIONS, ExactGroups, Question
from coterie.problem.settings import BLOCKS, SettingError, Settings, SettingTypeError, checked

if TYPE_CHECKING:
    from coterie.methods.present_arms import Past

NEEDS = frozenset({"distance_ratio", "instance"})
"""What a method may need beyond the settings that all have."""


def _later(module: str, name: str, *first: Any) -> Callable[..., Any]:
    """A function of a module of methods, loaded when it is first called: the engine and SciPy take a while to load."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f"coterie.methods.{module}"), name)(*first, *given)

    return call


def _croc(settings: Settings, past: Past | None = None) -> MethodRun:
    """CROC for K groups of equal items; for the other questions, candidates that are frozen and certified.

    `past`: what was before a revision; what of δ is spent stays spent.
    """
    if settings.features is not None:
        by_feature: MethodRun = _later("features.method", "FeatureRun")(settings)
        return by_feature
    if settings.blocks is not None:
        in_blocks: MethodRun = _later("blocks.method", "BlockRun")(settings)
        return in_blocks
    exact = settings.question.kind == ExactGroups.kind
    start = _later("croc.method", "CrocMethodRun") if exact else _later("resolution.method", "ResolutionRun")
    run: MethodRun = start(settings, past)
    return run


def _paper(name: str, sentence: str, rule: int, sampling: str, **more: Any) -> Method:
    """A method of the paper, with one of its sampling rules."""
    stop = "Z(t) ≥ β(δ, t) or β̃(δ, t), equations equation_Z and equation_beta"
    start, trial = _later("paper.method", "PaperMethodRun", rule), _later("trials", "play_paper", rule)
    return Method(name, sentence, start, sampling, stop, rules=RULES, trial=trial, **more)


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
            _croc,
            sampling="explore while the estimate may be wrong, then rounds for the claims of a frozen candidate",
            stopping="every claim of a candidate is proven, by rounds or by pairs from the start",
            noises=KINDS,
            questions=QUESTIONS,
            certifies=True,
            has_thresholds=False,
            in_ask_order=True,
            exact=True,
            weighs_costs=True,
            blocks=frozenset(BLOCKS),
            by_feature=True,
            rules=4,  # since 3: single linkage keeps the near tests of items that tie
            trial=_later("trials", "play_croc"),
            restart=_croc,
        ),
        Method(
            "shortlist",
            "CROC with a list of partitions in place of a freeze, where few fit (docs/CROC.md, section 20)",
            _later("shortlist.method", "ShortlistRun"),
            sampling="CROC's; with a list, what tells the partitions on it apart",
            stopping="one partition is left on the list, or CROC's proof",
            certifies=True,
            has_thresholds=False,
            in_ask_order=True,
            exact=True,
        ),
        _paper(
            "boc",
            "Alg. 1: track the optimal allocation of the current guess, with forced exploration",
            BOC,
            "track λ* of the guess",
        ),
        _paper(
            "boc-linear",
            "Alg. 1 with linear exploration: allocation projected on λ ≥ r²/(2M)",
            LINEAR,
            "track λ* of the guess, projected",
            needs=frozenset({"distance_ratio"}),
        ),
        _paper("uniform", "round robin: the least-pulled arm, lowest index first", UNIFORM, "the least-pulled arm"),
        _paper(
            "oracle",
            "track the optimal allocation of the true instance, with forced exploration",
            ORACLE,
            "track λ* of the truth",
            needs=frozenset({"instance"}),
            simulates_only=True,
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
        There is no such method.

    Examples
    --------
    >>> from coterie import methods
    >>> methods.method_named("boc-linear").needs
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
    for given, known, does, of in (
        (method.noises, KINDS, "take", "noise"),
        (method.questions, QUESTIONS, "answer", "question"),
    ):
        strange = sorted(set(given) - known)
        if strange or not given:
            fault = f"the {of}s {', '.join(strange)}" if strange else f"no {of}"
            raise ValueError(f"method {name!r} {does}s {fault}: a method may {does} {', '.join(sorted(known))}")
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
    """The method of these settings, and the settings with what it needs and nothing else; checked.

    Parameters
    ----------
    settings : coterie.problem.settings.Settings
        What is asked.

    Returns
    -------
    tuple of Settings and Method
    """
    method = method_named(settings.method)
    ratio, instance = None, settings.instance
    if "distance_ratio" in method.needs:
        ratio = checked("distance_ratio", check_distance_ratio, settings.distance_ratio)
    if "instance" not in method.needs:
        instance = None
    elif instance is None:
        raise SettingError(f"method {method.name!r} needs the true instance, got None", "instance")
    check_noise(method, settings.noise)
    check_question(method, settings.question, settings.noise)
    check_weighs_costs(method, settings.costs)
    check_blocks(method, settings)
    check_features(method, settings)
    return replace(settings, distance_ratio=ratio, instance=instance), method


def _first_with(able: Callable[[Method], bool]) -> str | None:
    """The name of the first method for people that is able to do something; None if none is."""
    return next((method.name for method in METHODS.values() if able(method) and not method.simulates_only), None)


def check_weighs_costs(method: Method, costs: Any) -> None:
    """That a method heeds costs, if there are any; `SettingError` says what to do."""
    if costs is None or method.weighs_costs:
        return
    other = _first_with(lambda other: other.weighs_costs)
    instead = f', or use method="{other}"' if other else ""
    raise SettingError(
        f"method {method.name!r} does not weigh costs: it would measure as if all items cost the same, got "
        f"costs={short(list(costs))}; leave costs out{instead}",
        "costs",
    )


def check_blocks(method: Method, settings: Settings) -> None:
    """That a method takes these blocks with all else that was asked for; `SettingError` says what to do."""
    blocks = settings.blocks
    if blocks is None:
        return
    if blocks not in method.blocks:
        others = [other.name for other in METHODS.values() if blocks in other.blocks]
        instead = f', or use method="{others[0]}"' if others else ""
        raise SettingError(f"method {method.name!r} takes no blocks={blocks!r}: leave blocks out{instead}", "blocks")
    if settings.question.kind != ExactGroups.kind:
        raise SettingError(
            f"blocks={blocks!r} are for groups of equal items, and the question is for {settings.question.words}. "
            "That items are near each other in blocks would need a statement that a block shifts all items alike "
            "(additivity), which nobody has stated: state the number of groups, n_clusters, and read how far they are "
            "apart from intervals('differences'); or measure without blocks",
            "blocks",
        )
    if settings.costs is not None:
        raise SettingError("costs are not weighed in blocks: leave costs out, or blocks", "costs")
    if settings.confirm > 0.0:
        raise SettingError(
            f"confirm={settings.confirm:g} measures on after the proof, item by item, which blocks do not allow: leave "
            "confirm out, or blocks",
            "confirm",
        )
    noise = settings.noise
    if noise.kind in ("poisson", "exponential"):
        raise SettingError(
            f"blocks={blocks!r} are not for {noise.words}: what a block does to a rate is not stated. Leave the noise "
            "out (noise=None), which needs no such statement, or blocks",
            "blocks",
        )
    if blocks == "drawn" and not (noise.kind in ("any", "bounded") or (trials_of(noise) == 1 and noise.dim == 1)):
        raise SettingError(
            f"blocks that are drawn need results of which nothing is assumed (noise=None), coterie.Bounded(lo, hi), or "
            f"coterie.Counts(1) of one number: under {noise.words} results of one block would have to be independent",
            "blocks",
        )


def check_features(method: Method, settings: Settings) -> None:
    """That a method measures features one by one, with all else that was asked for; `SettingError` says what to do."""
    if settings.features is None:
        return
    if not method.by_feature:
        other = _first_with(lambda other: other.by_feature)
        instead = f', or use method="{other}"' if other else ""
        raise SettingError(
            f"method {method.name!r} does not measure features one by one: leave features out{instead}", "features"
        )
    if settings.question.kind != ExactGroups.kind:
        raise SettingError(
            f"features are measured one by one for groups of equal items, and the question is for "
            f"{settings.question.words}: state the number of groups, n_clusters, or leave features out",
            "features",
        )
    if settings.blocks is not None:
        raise SettingError("features are not measured one by one in blocks: leave blocks out, or features", "blocks")
    if settings.confirm > 0.0:
        raise SettingError(
            f"confirm={settings.confirm:g} measures whole items on after the proof: leave confirm out, or features",
            "confirm",
        )
    if settings.features.width > 1 or settings.noise.kind != "known":
        _later("features.families", "check_noise")(settings)


def check_noise(method: Method, noise: Model) -> None:
    """That a method takes this kind of noise; `SettingError` says what to do."""
    if noise.kind in method.noises:
        return
    other = _first_with(lambda other: noise.kind in other.noises)
    instead = f', or use method="{other}", which takes {noise.words}' if other else ""
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
        other = _first_with(lambda other: question.kind in other.questions)
        words = {"resolution": "groups up to a resolution", "linkage": "groups by single linkage"}
        instead = f': use method="{other}"' if other else ""
        field = "groups" if question.kind == "linkage" else "resolution"
        raise SettingError(
            f'method "{method.name}" does not find {words.get(question.kind, "K groups")}{instead}', field
        )
    if question.kind != ExactGroups.kind and noise.kind not in PROVES_NEARNESS:
        rates = noise.kind in ("poisson", "exponential")
        why = "no tests of that are built for it" if rates else "a rare large value could hide a difference of any size"
        raise SettingError(
            f"that items are near each other cannot be proven under {noise.words}: {why}. State what is "
            "known: bounds of the results (coterie.Bounded(lo, hi)), counts "
            '(coterie.Counts(trials)), Gaussian noise (noise="gaussian"), or a standard deviation',
            "noise",
        )
