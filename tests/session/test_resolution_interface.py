"""Groups up to a resolution, and by single linkage, in Python: what is asked, refused, kept and said."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from equal_design import EACH, METHOD

import coterie
from coterie.methods import Method, register, unregister
from coterie.problem.settings import SettingError

MEANS = [0.0, 10.0, 0.3, 5.0, 10.2, 5.1]
ASKED = (1.0, 3.0)


@pytest.fixture
def own() -> Iterator[Method]:
    yield register(METHOD)
    unregister(METHOD.name)


def played(session: coterie.Session, means: Any = MEANS, most: int = 10**6) -> coterie.Session:
    """Asked and told without noise, until it is done."""
    while not session.done and session.n_measurements < most:
        arm = session.ask()
        session.tell(arm, np.atleast_1d(means[arm]))
    return session


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"resolution": (0.8, 0.2)}, "resolution", "alike must be smaller than apart, got 0.8 and 0.2"),
    ({"resolution": (0.5, 0.5)}, "resolution", "got 0.5 and 0.5"),
    ({"resolution": (-0.1, 0.2)}, "resolution", "alike must not be negative, got -0.1: 0 asks for exact equality"),
    ({"resolution": (math.nan, 0.2)}, "resolution", "alike must be finite, got nan"),
    ({"resolution": (0.1, math.inf)}, "resolution", "apart must be finite, got inf"),
    ({"resolution": ((0.1, 0.2, 0.3), 0.4)}, "resolution", "the resolution has 3 numbers, but the measurements have 2"),
    ({"resolution": ((0.1, 0.2), (1, 2, 3))}, "resolution", "alike has 2 numbers and apart 3"),
    ({"resolution": ((0.1, 0.9), (0.5, 0.8))}, "resolution", "got 0.9 and 0.8 for number 2"),
    ({"resolution": (0.1,)}, "resolution", "must be (alike, apart)"),
    ({"resolution": 0.1}, "resolution", "must be (alike, apart)"),
    ({"resolution": "fine"}, "resolution", "must be (alike, apart)"),
    ({"resolution": {"alike": 0.1}}, "resolution", "a resolution has alike, apart, norm and claim"),
    ({"resolution": {"alike": 0.1, "apart": 1, "norm": "all"}}, "resolution", "norm must be one of each, distance"),
    ({"resolution": {"alike": 0.1, "apart": 1, "claim": "all"}}, "resolution", "claim must be one of references"),
    ({"resolution": ASKED, "n_clusters": 3}, "resolution", "not both: got n_clusters=3 and resolution=(1.0, 3.0)"),
    ({"resolution": ASKED, "groups": "linkage"}, "groups", "leave it out with a resolution"),
    ({}, "n_clusters", "give the number of groups, or a resolution (alike, apart) if it is not known"),
    ({"n_clusters": 3, "groups": "ward"}, "groups", "groups must be one of equal, linkage, got 'ward'"),
    ({"resolution": ASKED, "noise": None}, "noise", "cannot be proven under any noise"),
    ({"resolution": ASKED, "noise": coterie.Symmetric()}, "noise", "State what is known: bounds of the results"),
    ({"resolution": ASKED, "noise": coterie.AtMost(1)}, "noise", "coterie.Bounded(lo, hi)"),
    ({"n_clusters": 3, "groups": "linkage", "noise": None}, "noise", "cannot be proven under any noise"),
    ({"resolution": ASKED, "method": "boc"}, "resolution", 'method "boc" does not find groups up to a resolution'),
    ({"n_clusters": 3, "groups": "linkage", "method": "boc"}, "groups", 'use method="croc"'),
]  # fmt: skip


@pytest.mark.parametrize(("given", "field", "why"), BAD)
def test_a_question_that_cannot_be_asked_is_refused_with_the_setting(
    given: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(SettingError, match=re.escape(why)) as caught:
        coterie.Session(6, dim=2, **{"noise": 1.0, **given})
    assert caught.value.field == field
    measured: list[int] = []
    with pytest.raises(SettingError, match=re.escape(why)):
        coterie.cluster(measured.append, 6, progress=False, **{"noise": [1.0, 1.0], **given})
    assert measured == [], "a measurement costs: nothing is measured before the settings are checked"


def test_a_session_says_what_it_is_asked_for_and_what_it_has_found(own: Method) -> None:
    session = coterie.Session(6, dim=1, resolution=ASKED, noise=1.0, method=own.name)
    assert session.n_clusters is None
    assert session.resolution == coterie.Resolution(1.0, 3.0)
    assert "6 arms in groups up to a resolution of 1 and 3" in repr(session)
    assert (session.references, session.borders, session.forecast) == (None, {}, None)
    played(session, most=6)
    assert session.forecast == 6 * EACH
    played(session)
    assert session.labels is not None
    assert session.labels.tolist() == [0, 1, 0, 2, 1, 2]
    assert session.references == (0, 1, 3)
    assert (session.alarm, session.homogeneity) == (None, None)
    assert "None" not in repr(session)
    assert "the groups are proven" in repr(session)


def test_references_and_borders_follow_the_numbers_of_the_groups() -> None:
    """The method may number groups in any order: `labels` counts by first appearance, and the others with it."""

    class Backwards(METHOD.start):  # type: ignore[misc, name-defined]
        def _net(self) -> list[int]:
            found: list[int] = super()._net()
            return found[::-1]

    register(
        Method("backwards", "numbers groups from the last", Backwards, has_thresholds=False, questions=METHOD.questions)
    )
    try:
        session = played(
            coterie.Session(4, dim=1, resolution=(1.0, 3.0), noise=1.0, method="backwards"), [0, 2.5, 4.9, 0.2]
        )
    finally:
        unregister("backwards")
    assert session.labels is not None
    assert session.labels.tolist() == [0, 1, 2, 0]
    assert session.references == (0, 1, 2)
    assert session.borders == {0: [1], 1: [0, 2], 2: [1], 3: [1]}
    assert session.centers is not None
    np.testing.assert_allclose(session.centers[:, 0], [0, 2.5, 4.9])


@pytest.mark.parametrize("count", [0, 7, 13, 6 * EACH])
@pytest.mark.parametrize(
    "question",
    [
        {"resolution": ASKED},
        {"resolution": coterie.Resolution((1.0, 1.0), (3.0, 3.0), "distance", "any-two")},
        {"n_clusters": 3, "groups": "linkage"},
    ],
)
def test_a_saved_session_keeps_its_question(own: Method, question: dict[str, Any], count: int) -> None:
    means = [(one, 0.0) for one in MEANS]
    session = played(coterie.Session(6, dim=2, noise=1.0, method=own.name, **question), means, count)
    kept = json.loads(json.dumps(session.to_dict()))
    again = coterie.Session.from_dict(kept)
    assert again.settings == session.settings
    assert (again.references, again.borders) == (session.references, session.borders)
    assert again.to_dict() == session.to_dict()
    for one in (session, again):
        played(one, means)
    assert again.to_dict() == session.to_dict()


def test_a_saved_session_for_equal_groups_names_no_other_question(own: Method) -> None:
    session = played(coterie.Session(6, 3, 1, noise=1.0, method=own.name))
    kept = session.to_dict()
    assert not {"resolution", "groups", "question"} & set(kept)
    assert not {"references", "borders"} & set(kept["outcome"])


def test_cluster_finds_the_number_of_groups(own: Method) -> None:
    found = coterie.cluster(
        lambda arm: MEANS[arm], 6, resolution=ASKED, noise=coterie.Bounded(0, 12), method=own.name, progress=False
    )
    assert found.done
    assert found.labels is not None
    assert found.labels.max() == 2
    assert (found.alarm, found.homogeneity) == (None, None)
    assert "None" not in repr(found)


def test_cluster_takes_the_dimension_of_a_resolution(own: Method) -> None:
    asked = coterie.Resolution((0.1, 15), (0.4, 60))
    called: list[int] = []

    def measure(arm: int) -> Any:
        called.append(arm)
        return [arm % 2, 100.0 * (arm % 3)]

    found = coterie.cluster(measure, 6, resolution=asked, noise=1.0, method=own.name, progress=False)
    assert found.session.dim == 2
    assert len(called) == 6 * EACH
    with pytest.raises(ValueError, match=re.escape("shape (2,), got shape (1,)")):
        coterie.cluster(lambda arm: 1.0, 6, resolution=asked, noise=1.0, method=own.name, progress=False)


def test_a_forecast_beyond_the_budget_is_said_once_and_before_it_is_spent(own: Method) -> None:
    called: list[int] = []

    def measure(arm: int) -> float:
        called.append(arm)
        return MEANS[arm]

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = coterie.cluster(measure, 6, resolution=ASKED, noise=1.0, method=own.name, budget=12, progress=False)
    texts = [str(one.message) for one in seen]
    assert len(texts) == 2
    assert texts[0].startswith("about 24 measurements are expected to be needed, more than the budget of 12")
    assert "it is expected to allow Resolution(alike=1.0, apart=4.25, " in texts[0]  # 3·√2, rounded up
    assert texts[1].startswith("the budget of 12 measurements ended before the proof")
    called.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="expected to be needed") as caught:
            coterie.cluster(measure, 6, resolution=ASKED, noise=1.0, method=own.name, budget=12, progress=False)
        assert len(called) == 6, "said after the first pass, before the next measurement"
        assert caught.value.session.n_measurements == 6  # type: ignore[attr-defined]
        enough = coterie.cluster(measure, 6, resolution=ASKED, noise=1.0, method=own.name, budget=24, progress=False)
    assert enough.done
    assert not found.done


def test_simulated_trials_ask_and_are_judged_by_the_question(own: Method) -> None:
    inst = coterie.Instance.of_means([[0.0], [20.0], [1.0], [21.0]])
    coarse = coterie.simulate(inst, own.name, resolution=(5, 10), trials=3, seed=1)
    assert coarse.correct.all(), "two groups: right up to the resolution, though the means are all different"
    assert (coarse.stopping_times == 4 * EACH).all()
    fine = coterie.simulate(inst, own.name, resolution=(1e-9, 1e-6), trials=3, seed=1)
    assert not (fine.correct & (fine.stopping_times < 0)).any()
    linked = coterie.simulate(inst, own.name, groups="linkage", n_clusters=2, trials=2, seed=1)
    assert (linked.stopping_times == 4 * EACH).all()
    with pytest.raises(SettingError, match="got 4 clusters for 4 arms"):
        coterie.simulate(inst, own.name, trials=1)
    with pytest.raises(SettingError, match="the instance has 2 groups, got n_clusters=3"):
        coterie.simulate(coterie.Instance([0, 0, 1, 1], [[0.0], [9.0]]), "boc", n_clusters=3, trials=1)
    with pytest.raises(SettingError, match="does not find groups up to a resolution"):
        coterie.simulate(inst, "boc", resolution=(5, 10), trials=1)
    with pytest.raises(SettingError, match="cannot be proven under any noise"):
        coterie.simulate(inst, own.name, resolution=(5, 10), noise=None, trials=1)
    with pytest.raises(SettingError, match="alike must be smaller than apart"):
        coterie.simulate(inst, own.name, resolution=(10, 5), trials=1)
