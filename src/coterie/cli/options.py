"""Options that several commands share, what they ask for, and their words in the messages of errors."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, TypedDict

import typer

from coterie.problem.question import CLAIMS, GROUPS, NORMS, Resolution
from coterie.problem.settings import THRESHOLD


class Threshold(StrEnum):
    """The stopping thresholds: β, with the guarantee, and β̃, without."""

    proven = "proven"
    heuristic = "heuristic"


DEFAULT_THRESHOLD = Threshold(THRESHOLD)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Delta = Annotated[float, typer.Option("--delta", "-d", help="The error probability that is allowed.")]
StoppingThreshold = Annotated[
    Threshold,
    typer.Option(
        "--threshold",
        help="When to stop, for methods with a choice. proven: with a guarantee; heuristic: earlier, without a proof.",
    ),
]
DistanceRatio = Annotated[
    float | None,
    typer.Option(
        "--distance-ratio",
        help="At least how large the smallest distance of two groups is, as a share of the largest; for some methods.",
        show_default=False,
    ),
]
Store = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="COTERIE_STORE",
        help="The database: a SQLite file, or postgresql://user@host/database.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", help="Threads; the numbers do not depend on it.", show_default="all"),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the workers of this Dask scheduler, such as tcp://10.0.0.5:8786, instead of on this machine.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign: its id, or its name if only one has it.")]
Worker = Annotated[
    str | None,
    typer.Option("--worker", "-w", envvar="COTERIE_WORKER", help="Who measures.", show_default="user@host"),
]
Block = Annotated[
    str | None,
    typer.Option("--block", "-b", help="With blocks: the plate, day, rater … that is measured in.", show_default=False),
]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept on record.")]
By = Annotated[str | None, typer.Option("--by", help="Who says so; kept on record.")]
Sheet = Annotated[str | None, typer.Option("--sheet", help="The sheet of an Excel file.", show_default="the first one")]
InOrder = Annotated[
    bool,
    typer.Option(
        "--in-order",
        help="Do not shuffle: the order of an item's measurements in the file has nothing to do with their values.",
    ),
]
Clusters = Annotated[
    int | None,
    typer.Option(
        "--clusters", "--k", "-k", help="How many groups there are. Not known: --alike and --apart.", show_default=False
    ),
]
Alike = Annotated[
    str | None,
    typer.Option(
        "--alike",
        metavar="E",
        help="Instead of --clusters, with --apart: groups up to a resolution. Differences below E do not matter. In "
        "the units of the measurements, one number or one for each, as 0.1,15; of counts also as rates, 2%.",
        show_default=False,
    ),
]
Apart = Annotated[
    str | None,
    typer.Option(
        "--apart",
        metavar="H",
        help="With --alike: differences above H matter; H is larger than E. Every item of a group is proven to be "
        "within H of the group's reference item, any two references to be more than E apart.",
        show_default=False,
    ),
]
Norm = Annotated[
    str,
    typer.Option(
        "--norm",
        metavar="NORM",
        help="Of --alike and --apart. each: for every number of a measurement; distance: for the distance of all.",
    ),
]
Claim = Annotated[
    str,
    typer.Option(
        "--claim",
        metavar="CLAIM",
        help="With --alike and --apart. references: items are near the reference of their group; any-two: any two "
        "items of a group are near each other, which takes more measurements.",
    ),
]
Groups = Annotated[
    str,
    typer.Option(
        "--groups",
        metavar="KIND",
        help="With --clusters. equal: the items of a group are alike; linkage: the groups that single linkage of the "
        "true means gives.",
    ),
]

_NUMBER = r"[-+.\w]+"
_WORDS: tuple[tuple[str, str], ...] = (
    (r"state that the noise is counts", "state --noise counts:TRIALS"),
    (r" \(in Python [^()]*(?:\([^()]*\))?[^()]*\)", ""),
    (r"noise=coterie\.Counts\(trials\)|coterie\.Counts\(trials\)", "--noise counts:TRIALS"),
    (r"coterie\.Bounded\(lo, hi\)", "--noise bounded:LO,HI"),
    (rf"(?:noise=)?(?:coterie\.)?Counts\(trials=({_NUMBER})\)", r"counts:\1"),
    (r"(?:noise=)?(?:coterie\.)?Counts\(\)", "counts"),
    (r"(?:noise=)?(?:coterie\.)?Symmetric\(\)", "symmetric"),
    (r"(?:noise=)?(?:coterie\.)?Poisson\(\)", "poisson"),
    (r"(?:noise=)?(?:coterie\.)?Exponential\(\)", "exponential"),
    (r"(?:noise=)?(?:coterie\.)?AtMost\(([^()]*)\)", r"at-most:\1"),
    (r"(?:noise=)?(?:coterie\.)?Exactly\(([^()]*)\)", r"exactly:\1"),
    (r"(?:noise=)?(?:coterie\.)?Bounded\(lo=\(?([^,()]*),?\)?, hi=\(?([^,()]*),?\)?\)", r"bounded:\1,\2"),
    (r"(?:noise=)?(?:coterie\.)?Bounded\(([^,()]*), ([^,()]*)\)", r"bounded:\1,\2"),
    (r"(?:noise=)?(?:coterie\.)?Gaussian\(shape='(\w+)'\)", r"gaussian:\1"),
    (r"(?:noise=)?(?:coterie\.)?Gaussian\(\)", "gaussian"),
    (r"noise=coterie\.AnyNoise\(shape=True\)|\bshape=True\b", "--noise any:shape"),
    (r"noise=None", "--noise any"),
    (r"noise=…", "--noise"),
    (r"resolution=\(alike, apart\)", "--alike and --apart"),
    (r"\bn_clusters=", "--clusters "),
    (r"\bn_clusters\b", "--clusters"),
    (r"\bn_arms\b", "--items"),
    (r"\b(noise|method|threshold|groups|norm|claim|delta)=[\"']([\w-]+)[\"']", r"--\1 \2"),
    (r"\bconfirm=", "--confirm "),
    (r"^(noise|delta|threshold|method|dim|costs|confirm|deadline|features) must", r"--\1 must"),
    (r"\b(feature|panel)_costs\b", r"--\1-costs"),
    (r"\bholes='at random'", "--holes at-random"),
    (r"feature=…, the ask, or names in the result such as \{'([^']+)': .*", r"--feature '\1', or --lease"),
    (r"\bvalue_names must be left out", "--values must be left out"),
    (r"^dim is the", "--dim is the"),
    (r"\bpanels=…", "--panel NAME=FEATURES"),
    (r"\bpass_on\b", "--pass-on"),
    (r"\bon_expiry is\b", "--on-expiry is"),
    (r"--noise must be a standard deviation, None, 'gaussian'", "--noise must be a standard deviation, any, gaussian"),
)

_REPLACED = tuple((re.compile(pattern), words) for pattern, words in _WORDS)


class QuestionOptions(TypedDict):
    """The question as `Session` takes it."""

    n_clusters: int | None
    resolution: Resolution | None
    groups: str


def asked_for(
    clusters: int | None,
    alike: str | None,
    apart: str | None,
    norm: str,
    claim: str,
    groups: str,
    dim: int | None = None,
) -> QuestionOptions:
    """The question that the options ask, checked; ValueError names the option at fault and says what to do.

    `dim`: how many numbers a measurement has, if that is known.
    """
    resolution = resolution_from_text(alike, apart, norm, claim, dim)
    if groups not in GROUPS:
        if groups.strip().isdigit():
            raise ValueError(f"--groups says what a group is, {' or '.join(GROUPS)}; how many: --clusters {groups}")
        raise ValueError(f"--groups must be one of {', '.join(GROUPS)}, got {groups}")
    if resolution is not None and clusters is not None:
        raise ValueError(
            f"give --clusters, or --alike and --apart, not both: got --clusters {clusters}, --alike {alike} and "
            f"--apart {apart}; with a resolution the number of groups is found"
        )
    if resolution is None and clusters is None:
        raise ValueError(
            "say how many groups there are, with --clusters, or which differences matter, with --alike and --apart: "
            "the number of groups is then found"
        )
    if resolution is not None and groups != GROUPS[0]:
        raise ValueError(f"--groups {groups} is for a number of groups: give --clusters, or leave it out")
    return {"n_clusters": clusters, "resolution": resolution, "groups": groups}


def resolution_from_text(
    alike: str | None, apart: str | None, norm: str, claim: str, dim: int | None = None
) -> Resolution | None:
    """The resolution of `--alike` and `--apart`; None if neither was given."""
    if alike is None and apart is None:
        for given, option, default in ((norm, "--norm", NORMS[0]), (claim, "--claim", CLAIMS[0])):
            if given != default:
                raise ValueError(f"{option} {given} is for a resolution: give --alike and --apart too, or leave it out")
        return None
    if alike is None or apart is None:
        missing, meaning = ("--alike", "do not matter") if alike is None else ("--apart", "matter")
        raise ValueError(f"a resolution has two bounds: say with {missing} which differences {meaning}")
    try:
        resolution = Resolution(_bounds(alike, "--alike"), _bounds(apart, "--apart"), norm, claim)
        return resolution if dim is None else (resolution.for_dim(dim) if len(resolution.apart) > 1 else resolution)
    except (ValueError, TypeError) as error:
        text = re.sub(r"\b(alike|apart)\b", r"--\1", re.sub(r"^(norm|claim) must", r"--\1 must", str(error)))
        raise ValueError(text.replace("----", "--").replace('norm="distance"', "--norm distance")) from None


def whole_if_it_is(number: float | None) -> float | None:
    """A deadline: a number of measurements is an integer, costs need not be."""
    return int(number) if number is not None and number.is_integer() else number


def numbers_in(text: str) -> list[float] | None:
    """The numbers of a,b,c; None if there is anything else."""
    try:
        return [float(part) for part in re.split(r"[\s,;]+", text.strip()) if part]
    except ValueError:
        return None


def _bounds(text: str, option: str) -> Any:
    """The numbers of --alike or --apart; rates, as percentages, for counts."""
    parts = [part for part in re.split(r"[\s,;]+", text.strip()) if part]
    if parts and all(part.endswith("%") for part in parts):
        return parts
    numbers = numbers_in(text)
    if not numbers:
        raise ValueError(f"{option} must be a number, or one for each number of a measurement as 0.1,15, got {text!r}")
    return numbers[0] if len(numbers) == 1 else numbers


def in_option_words(message: str) -> str:
    """The message of an error with options in the place of Python's arguments and classes."""
    for pattern, words in _REPLACED:
        message = pattern.sub(words, message)
    return message
