"""What is asked for on the command line: `--clusters`, or `--alike` and `--apart`; `--groups linkage`."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypedDict

import typer

from coterie.problem.question import CLAIMS, GROUPS, NORMS, Resolution

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
        metavar="|".join(NORMS),
        help="Of --alike and --apart. each: for every number of a measurement; distance: for the distance of all.",
    ),
]
Claim = Annotated[
    str,
    typer.Option(
        "--claim",
        metavar="|".join(CLAIMS),
        help="With --alike and --apart. references: items are near the reference of their group; any-two: any two "
        "items of a group are near each other, which takes more measurements.",
    ),
]
Groups = Annotated[
    str,
    typer.Option(
        "--groups",
        metavar="|".join(GROUPS),
        help="With --clusters. equal: the items of a group are alike; linkage: the groups that single linkage of the "
        "true means gives.",
    ),
]


class Asked(TypedDict):
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
) -> Asked:
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
        found = Resolution(_numbers(alike, "--alike"), _numbers(apart, "--apart"), norm, claim)
        return found if dim is None else (found.for_dim(dim) if len(found.apart) > 1 else found)
    except (ValueError, TypeError) as error:
        text = re.sub(r"\b(alike|apart)\b", r"--\1", re.sub(r"^(norm|claim) must", r"--\1 must", str(error)))
        raise ValueError(text.replace("----", "--").replace('norm="distance"', "--norm distance")) from None


def _numbers(text: str, option: str) -> Any:
    parts = [part for part in re.split(r"[\s,;]+", text.strip()) if part]
    if parts and all(part.endswith("%") for part in parts):
        return parts  # rates, for counts
    try:
        found = [float(part) for part in parts]
    except ValueError:
        found = []
    if not found:
        raise ValueError(f"{option} must be a number, or one for each number of a measurement as 0.1,15, got {text!r}")
    return found[0] if len(found) == 1 else found
