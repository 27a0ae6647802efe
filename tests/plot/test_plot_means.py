"""`coterie.plot.means`: every arm where its measurements say, in the colour of its group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from known import known

import coterie
from coterie import plot
from coterie.plot.canvas import COLOURS, colour_of, marker_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pytest.importorskip("matplotlib")

LABELS = np.array([0, 1, 1, 2, 0, 2, 1, 0])


def played(dim: int, method: str = "boc", **more: Any) -> tuple[coterie.Session, np.ndarray]:
    """A session of some 60 measurements, and the mean of each arm."""
    rng = np.random.default_rng(dim)
    centers = 4.0 * rng.normal(size=(3, dim))
    session = coterie.Session(LABELS.size, 3, dim, method=method, delta=1e-9, **{"noise": 1.0, **more})
    sums = np.zeros((LABELS.size, dim))
    for _ in range(60):
        if session.done:
            break
        arm = session.ask()
        x = centers[LABELS[arm]] + rng.normal(size=dim)
        session.tell(arm, x)
        sums[arm] += x
    return session, sums / session.pulls[:, None]


def legend_of(ax: Axes) -> list[str]:
    """What the legend says, line by line."""
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def points_of(ax: Any, session: coterie.Session) -> tuple[np.ndarray, np.ndarray]:
    """Where each arm was drawn, and the area of its marker."""
    from matplotlib.colors import to_hex

    points, areas = np.full((session.n_arms, 2), np.nan), np.zeros(session.n_arms)
    for k in range(session.n_clusters or 0):
        mine = session.labels == k
        points[mine], areas[mine] = ax.collections[k].get_offsets(), ax.collections[k].get_sizes()
        assert to_hex(ax.collections[k].get_facecolor()[0]).upper() == colour_of(k)
    return points, areas


@pytest.mark.parametrize("method", ["croc", "boc"])
def test_two_dimensions_are_drawn_as_they_are(method: str) -> None:
    session, means = played(2, method)
    ax: Any = plot.means(session)
    points, areas = points_of(ax, session)
    assert points == pytest.approx(means)
    assert np.array(ax.collections[3].get_offsets()) == pytest.approx(session.centers)
    assert [text.get_text() for text in ax.texts] == [str(m) for m in range(LABELS.size)]
    assert [text.xy for text in ax.texts] == [pytest.approx(mean) for mean in means]
    by_pulls = np.argsort(session.pulls, kind="stable")
    assert (np.diff(areas[by_pulls]) >= 0).all()
    middling = np.abs(session.pulls / session.pulls.mean() - 1) < 0.5
    assert middling.sum() > 1
    assert np.ptp((areas / session.pulls)[middling]) == pytest.approx(0.0)


def test_one_dimension_is_drawn_against_the_arm() -> None:
    names = [f"item {m}" for m in range(LABELS.size)]
    session, means = played(1, names=names)
    ax = plot.means(session)
    points, _ = points_of(ax, session)
    assert points == pytest.approx(np.column_stack([np.arange(LABELS.size), means]))
    assert [text.get_text() for text in ax.get_xticklabels()] == names
    assert [np.asarray(line.get_ydata())[0] for line in ax.lines[:3]] == pytest.approx(known(session.centers).ravel())
    assert np.isfinite(ax.get_ylim()).all()


@pytest.mark.parametrize("dim", [3, 6])
def test_more_dimensions_are_drawn_in_principal_components(dim: int) -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    session, means = played(dim)
    ax = plot.means(session)
    points, _ = points_of(ax, session)
    pca = decomposition.PCA(2).fit(means)
    expected = pca.transform(means)
    sign = np.sign((expected * points).sum(axis=0))
    assert points == pytest.approx(expected * sign)
    assert np.array(ax.collections[3].get_offsets()) == pytest.approx(pca.transform(session.centers) * sign)
    assert f"({pca.explained_variance_ratio_[0]:.0%} of the variance)" in ax.get_xlabel()
    assert f"({pca.explained_variance_ratio_[1]:.0%})" in ax.get_ylabel()


def test_components_are_those_in_units_of_the_noise() -> None:
    """Scaling coordinates and their noise alike changes nothing."""
    scale = np.array([1.0, 100.0, 0.01])
    session, _ = played(3)
    scaled = coterie.Session(LABELS.size, 3, 3, method="boc", delta=1e-9, noise=scale)
    for arm, x in session.log:
        scaled.tell(arm, x * scale)
    assert points_of(plot.means(scaled), scaled)[0] == pytest.approx(points_of(plot.means(session), session)[0])


def test_only_measurements_that_counted_are_in_the_means() -> None:
    session = coterie.Session(4, 2, 2, method="croc", delta=0.01, noise=1.0)
    session.tell([0, 1, 2, 3], [[0.0, 0.0], [1.0, 0.0], [2.0, 2.0], [1.0, 2.0]])
    arms = session.ask(12)
    first, second = [ticket for ticket, arm in session.pending if arm == arms[0]][:2]
    before = points_of(plot.means(session), session)[0]
    session.tell(arms[0], [5.0, 5.0], ticket=second)  # waits for the one asked for before it
    assert session.waiting == 1
    assert points_of(plot.means(session), session)[0] == pytest.approx(before)
    ticket, other = next((ticket, arm) for ticket, arm in session.pending if arm != arms[0])
    session.tell(other, [3.0, 3.0], ticket=ticket)  # told later, and counts at once
    after = points_of(plot.means(session), session)[0]
    assert after[arms[0]] == pytest.approx(before[arms[0]])
    assert after[other] == pytest.approx((before[other] + 3.0) / 2)
    session.forget(first)
    assert points_of(plot.means(session), session)[0][arms[0]] == pytest.approx((before[arms[0]] + 5.0) / 2)


def test_a_result_of_cluster_and_names_of_groups() -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    result = coterie.cluster(
        lambda m: centers[LABELS[m]] + rng.normal(size=2), LABELS.size, 3, progress=False, noise=1.0
    )
    ax = plot.means(result, groups=["a", "b", "c"])
    assert legend_of(ax) == ["a", "b", "c", "centers"]
    ax = plot.means(result)
    counts = ["group 0: 3 items", "group 1: 3 items", "group 2: 2 items", "centers"]
    assert legend_of(ax) == counts


def test_many_arms_are_not_named() -> None:
    session = coterie.Session(31, 2, 2, method="uniform", noise=1.0)
    session.tell(list(range(31)), np.arange(62.0).reshape(31, 2))
    assert not plot.means(session).texts


def test_groups_can_be_told_apart() -> None:
    looks = [(colour_of(k), marker_of(k)) for k in range(56)]
    assert len(set(looks)) == 56
    assert len(set(COLOURS)) == len(COLOURS)


def test_bad_input_is_named() -> None:
    session, _ = played(2)
    with pytest.raises(TypeError, match=r"means needs a coterie\.Session .*, got \[1, 2\]"):
        plot.means([1, 2])  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="has none that count yet"):
        plot.means(coterie.Session(4, 2, 2, noise=1.0))
    some = coterie.Session(4, 2, 2, noise=1.0)
    some.tell([0, 2], [[0.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match=r"measure 2 arms at least once \(\[1, 3\]\)"):
        plot.means(some)
    for groups in (["a", "b"], "abc"):
        with pytest.raises(ValueError, match="groups must be 3 names"):
            plot.means(session, groups=groups)
    with pytest.raises(TypeError, match="ax must be matplotlib Axes"):
        plot.means(session, ax=7)


def test_each_number_has_an_arrow_where_it_grows_in_units_of_the_spread_of_repeats() -> None:
    """Under any noise numbers in other units give the same picture: each is scaled by the spread of repeats."""
    pandas = pytest.importorskip("pandas")
    centers = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 9.0, 0.0]])

    def picture(units: np.ndarray) -> Any:
        rng = np.random.default_rng(0)

        def measure(item: int) -> Any:
            return pandas.Series((centers[LABELS[item]] + rng.normal(size=3)) * units, index=["ph", "iron", "zinc"])

        return plot.means(coterie.cluster(measure, LABELS.size, 3, progress=False))

    axes, other = picture(np.ones(3)), picture(np.array([1.0, 1000.0, 0.01]))
    assert np.array(axes.collections[0].get_offsets()) == pytest.approx(np.array(other.collections[0].get_offsets()))
    ends = {text.get_text(): np.array(text.get_position()) for text in axes.texts}
    assert {"ph", "iron", "zinc"} <= ends.keys()
    assert np.linalg.norm(ends["zinc"]) < 0.3 * np.linalg.norm(ends["ph"])  # it is the same in all groups


def lines_of(ax: Any) -> list[np.ndarray]:
    """The ends of all intervals drawn, one array of a direction."""
    from matplotlib.collections import LineCollection

    return [np.array(drawn.get_segments()) for drawn in ax.collections if isinstance(drawn, LineCollection)]


def test_intervals_of_the_means_are_drawn() -> None:
    session, means = played(2, "croc")
    found = session.intervals(of="items")
    across, up = lines_of(plot.means(session))
    assert across[:, :, 0] == pytest.approx(np.column_stack([found.low[:, 0], found.high[:, 0]]))
    assert across[:, 0, 1] == pytest.approx(means[:, 1])
    assert up[:, :, 1] == pytest.approx(np.column_stack([found.low[:, 1], found.high[:, 1]]))
    assert lines_of(plot.means(played(3, "croc")[0])) == [], "principal components have none"
    assert lines_of(plot.means(played(2, "croc", noise=None)[0])) == [], "those of any noise are of medians"


def test_arrows_of_the_numbers_lie_inside_the_picture() -> None:
    from matplotlib.text import Annotation

    session, _ = played(3, "croc")
    ax = plot.means(session)
    drawn = [text for text in ax.texts if isinstance(text, Annotation) and text.get_text().startswith("v")]
    arrows = [text.xyann for text in drawn]
    assert len(arrows) == 3
    for x, y in arrows:
        assert ax.get_xlim()[0] < x < ax.get_xlim()[1]
        assert ax.get_ylim()[0] < y < ax.get_ylim()[1]
