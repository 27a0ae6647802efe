"""`coterie.group`: one analysis of a finished table, from which letters, groups and pairs are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.tables import TableError

WELLS = {"A": (6.8, 120), "B": (7.5, 300), "C": (6.8, 120), "D": (7.5, 300), "E": (6.1, 300), "F": (6.1, 300)}


@pytest.fixture(scope="module")
def wells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """README's table."""
    rng = np.random.default_rng(0)
    lines = ["sample,ph,turbidity"]
    for _ in range(10):
        for name, mean in WELLS.items():
            ph, turbidity = rng.normal(mean, (0.2, 25.0))
            lines.append(f"{name},{ph:.2f},{turbidity:.0f}")
    path = tmp_path_factory.mktemp("wells") / "wells.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("noise", [None, "gaussian"])
def test_all_pairs_of_readme_are_told_apart(wells: Path, noise: str | None) -> None:
    found = coterie.group(wells, noise=noise)
    assert [one["differ"] for one in found.pairs].count(True) == 12
    assert found.letters == ("a", "b", "a", "b", "c", "c")
    assert found.at_least == 3
    assert (found.done, found.labels, found.groups) == (False, None, [])
    assert all((one["p_all"] <= 0.05) == one["differ"] and one["p"] <= one["p_all"] for one in found.pairs)
    assert "This holds if the number of rows did not depend on their values" in found.verdict
    assert found.certificate is not None
    assert found.certificate["rows"] == "assumed"


@pytest.mark.parametrize("noise", [None, "symmetric"])
def test_items_with_thousands_of_rows(noise: str | None) -> None:
    """Their rows can be arranged in more ways than a float can hold."""
    rng = np.random.default_rng(5)
    found = coterie.group({"A": rng.standard_normal(1100), "B": 1.0 + rng.standard_normal(1100)}, noise=noise)
    assert found.letters == ("a", "b")
    assert found.certificate is not None
    assert found.certificate.verify(found.events)


def test_groups_given_their_number(wells: Path) -> None:
    found = coterie.group(wells, n_clusters=3, growing=False)
    assert found.done
    assert found.groups == [["A", "C"], ["B", "D"], ["E", "F"]]
    assert "Proven, if there are exactly 3 groups" in found.verdict
    assert "Proven without that: any two items of different groups differ" in found.verdict
    assert found.certificate is not None
    assert found.certificate["rows"] == "stated"
    assert found.certificate.verify(found.events)
    refuted = coterie.group(wells, n_clusters=2)
    assert not refuted.done
    assert "Proven: there are more groups than 2" in refuted.verdict
    open_ones = coterie.group(wells, n_clusters=4)
    assert not open_ones.done
    assert "3 groupings into 4 groups fit these rows" in open_ones.verdict


def test_all_pairs_decided_is_an_answer(wells: Path) -> None:
    for apart in ((0.6, 90), (1.2, 180)):
        found = coterie.group(wells, resolution=((0.1, 15), apart), noise="gaussian")
        assert found.done
        assert found.groups == [["A", "C"], ["B", "D"], ["E", "F"]]


def test_a_resolution_too_fine_says_which_one_is_not(wells: Path) -> None:
    found = coterie.group(wells, resolution=((0.1, 15), (0.3, 20)), noise="gaussian")
    assert not found.done
    apart = found.to_json()["allows"]["apart"]
    assert coterie.group(wells, resolution=((0.1, 15), apart), noise="gaussian").done


def test_tables_of_any_kind_and_what_is_shown(wells: Path) -> None:
    import pandas

    frame = pandas.read_csv(wells)
    from_frame = coterie.group(frame, items="sample", n_clusters=3)
    from_dict = coterie.group({name: part[["ph", "turbidity"]].to_numpy() for name, part in frame.groupby("sample")})
    assert from_frame.labels is not None
    assert from_frame.labels.tolist() == [0, 1, 0, 1, 2, 2]
    assert from_dict.letters == from_frame.letters
    shown = from_frame.to_frame()
    ends = ["low_ph", "high_ph", "low_turbidity", "high_turbidity"]
    assert list(shown.columns) == ["group", "letters", "measurements", "mean_ph", "mean_turbidity", *ends]
    assert shown.loc["B", "group"] == 1
    assert "<td>B</td>" in from_frame._repr_html_()
    assert repr(from_frame).startswith("<Grouping of 6 items by 60 rows: Proven")
    axes = from_frame.plot(column="turbidity")
    assert sorted(text.get_text() for text in axes.texts) == sorted(from_frame.letters)
    with pytest.raises(ValueError, match="column must be one of ph, turbidity"):
        from_frame.plot(column="mass")


def test_all_items_differ_is_a_partition() -> None:
    rng = np.random.default_rng(1)
    found = coterie.group({name: 5.0 * k + rng.normal(size=8) for k, name in enumerate("abcd")}, noise="gaussian")
    assert found.done
    assert found.groups == [["a"], ["b"], ["c"], ["d"]]
    # In the picture an item's letter stands at the end of its interval, not across it.
    tops = [text.xy[1] for text in found.plot().texts]
    assert sorted(tops) == sorted(found.intervals(of="items").high[:, 0])
    assert (found.intervals(of="items").high[:, 0] > found.means[:, 0]).all()


def test_a_table_that_grows_is_answered_by_evidence_at_every_moment(wells: Path) -> None:
    found = coterie.group(wells, n_clusters=3, growing=True)
    assert found.growing
    assert found.session is not None
    assert found.to_json()["order"] == {"shuffled": False}
    letters = coterie.group(wells, growing=True)
    assert [one["differ"] for one in letters.pairs].count(True) < 12
    with pytest.raises(TableError, match="for a table that grows"):
        coterie.group(wells, in_order=False)


def test_an_item_far_from_its_group_is_named() -> None:
    rng = np.random.default_rng(2)
    table = {"a": 12 + rng.normal(size=30), "b": 12 + rng.normal(size=30), "c": 40 + rng.normal(size=30)}
    table["thin"] = np.array([0.35])
    found = coterie.group(table, n_clusters=2)
    assert found.labels is not None
    assert "warning: thin (1 row) has mean 0.35, the others of its group 1 have 1" in found.verdict


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_clusters": 6}, "less than the number of items, 6"),
        ({"n_clusters": 2, "resolution": (1, 2)}, "not both"),
        ({"resolution": (0.1, 1.0)}, "cannot be proven under any noise"),
        ({"growing": "yes"}, "growing must be"),
        ({"delta": 2.0}, "delta"),
        ({"groups": "linkage"}, "give n_clusters"),
        ({"noise": "loud"}, "noise"),
    ],
)
def test_what_cannot_be_asked(wells: Path, given: dict[str, object], said: str) -> None:
    with pytest.raises(TableError, match=said):
        coterie.group(wells, **given)  # type: ignore[arg-type]


def test_one_group_has_no_differences() -> None:
    grouping = coterie.group({name: [1.0] * 8 for name in "ABC"}, n_clusters=2)
    with pytest.raises(TableError, match="no difference of two"):
        grouping.intervals("differences")
    assert ",," not in grouping.intervals("items").words
