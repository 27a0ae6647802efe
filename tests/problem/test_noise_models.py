"""What may be stated about noise: the models, what they refuse, how they are saved, and that sessions keep to them."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any, cast

import numpy as np
import pytest

import coterie
from coterie import AtMost, Bounded, Counts, Exponential, Gaussian, Noise, Session, Symmetric
from coterie.methods import compose, prepared, register, unregister
from coterie.methods.table import PACKAGED
from coterie.problem.families import KINDS, Unknown, dimension_of, noise_from_json, noise_of
from coterie.problem.settings import SettingError, Settings

COVARIANCE = [[1.0, 0.5], [0.5, 2.0]]
STATED: dict[str, tuple[Any, Any]] = {  # what is given, and what is saved
    "nothing": (None, {"family": "any"}),
    "any": ("any", {"family": "any"}),
    "gaussian": ("gaussian", {"family": "gaussian", "shape": "full"}),
    "Gaussian()": (Gaussian(), {"family": "gaussian", "shape": "full"}),
    "scalar": (Gaussian("scalar"), {"family": "gaussian", "shape": "scalar"}),
    "counts": ("counts", {"family": "counts", "trials": 1}),
    "Counts(100)": (Counts(100), {"family": "counts", "trials": 100}),
    "poisson": ("Poisson", {"family": "poisson"}),
    "Exponential()": (Exponential(), {"family": "exponential"}),
    "bounded": (Bounded(1, 5), {"family": "bounded", "lo": [1.0], "hi": [5.0]}),
    "bounded each": (Bounded([0, 1], 5), {"family": "bounded", "lo": [0.0, 1.0], "hi": [5.0, 5.0]}),
    "at most": (AtMost(0.5), {"family": "at-most", "covariance": 0.5}),
    "at most each": (AtMost([0.2, 25]), {"family": "at-most", "covariance": [0.2, 25.0]}),
    "at most whole": (AtMost(COVARIANCE), {"family": "at-most", "covariance": COVARIANCE}),
    "symmetric": (Symmetric(), {"family": "symmetric"}),
    "deviation": (2.0, 2.0),
    "deviations": ([0.2, 25], [0.2, 25.0]),
    "covariance": (COVARIANCE, COVARIANCE),
    "Noise": (Noise.of(3.0, 2), 3.0),
    "identity": (Noise.of(None, 2), 1.0),
}


@pytest.mark.parametrize("name", STATED)
def test_a_noise_is_saved_and_read_again(name: str) -> None:
    given, saved = STATED[name]
    noise = noise_of(given, 2)
    assert json.loads(json.dumps(noise.to_json())) == saved
    assert noise_from_json(saved, 2) == noise == noise_of(noise, 2)
    assert hash(noise_from_json(saved, 2)) == hash(noise)
    assert pickle.loads(pickle.dumps(noise)) == noise == copy.deepcopy(noise)
    assert noise.kind in KINDS
    assert noise.dim == 2
    assert noise.assumption[0].islower()
    assert not noise.assumption.endswith(".")
    assert noise.words


def test_models_that_differ_are_not_equal() -> None:
    saved = [json.dumps(one) for _, one in STATED.values()]
    for given, one in STATED.values():
        for other, text in zip((given for given, _ in STATED.values()), saved, strict=True):
            assert (noise_of(given, 2) == noise_of(other, 2)) == (json.dumps(one) == text)
    assert noise_of(None, 2) != noise_of(None, 3)


def test_null_in_an_old_file_is_the_standard_gaussian() -> None:
    assert noise_from_json(None, 3) == Noise.of(1.0, 3)
    settings = Settings.of(4, 2, 3)
    assert isinstance(settings.noise, Unknown)
    assert settings.noise.kind == "any"
    old = settings.to_json()
    assert old["noise"] == {"family": "any"}
    assert Settings.from_json(old) == settings
    assert Settings.from_json(old | {"noise": None}).noise == Noise.of(1.0, 3)
    del old["noise"]
    assert Settings.from_json(old).noise == Noise.of(1.0, 3)


def test_a_noise_is_never_saved_as_null() -> None:
    """null is the standard Gaussian of the first release; nothing that is saved now may be taken for it."""
    for given, _ in STATED.values():
        assert Settings.of(4, 2, 2, noise=given).to_json()["noise"] is not None


REFUSED: list[tuple[Any, str]] = [
    ("loud", "noise must be None .any noise., .*got 'loud'"),
    ("bounded", "got 'bounded'"),
    (True, "real numbers, got True"),
    (-1.0, "positive, got -1.0"),
    (float("nan"), "finite, got nan"),
    ([1.0, 2.0, 3.0], "2 of them, or a 2x2 covariance, got shape .3,."),
    (
        {"family": "cauchy"},
        "one of any, gaussian, counts, poisson, exponential, bounded, at-most, symmetric, got 'cauchy'",
    ),
    ({"family": ["any"]}, "got .'any'."),
    ({}, "got None"),
    ({"family": "counts", "trails": 3}, "'counts' takes only trials, got 'trails'"),
    ({"family": "poisson", "trials": 3}, "'poisson' takes nothing more, got 'trials'"),
    ({"family": "any", "shape": "full"}, "shape of any noise must be True or False"),
    ({"family": "bounded", "lo": 1}, "'bounded' needs lo and hi, hi is missing"),
    ({"family": "counts", "trials": 2.5}, "trials must be an integer, got 2.5"),
    ({"family": "counts", "trials": 10**400}, "trials must be at most 1000000000"),
    ({"family": "bounded", "lo": [0, 0, 0], "hi": 1}, "3 bounds, but the measurements have 2 numbers"),
    ({"family": "bounded", "lo": 1, "hi": 1}, "lo must be below hi, got 1 and 1"),
    ({"family": "bounded", "lo": -1e300, "hi": 1e300}, "lo must lie within 1e.100 of 0"),
    ({"family": "at-most", "covariance": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
    ({"family": "at-most", "covariance": [1.0, 2.0, 3.0]}, "got shape .3,."),
    ({"family": "gaussian", "shape": "round"}, "scalar, diagonal, full, got 'round'"),
    ({"family": "gaussian", "shape": ["full"]}, "got .'full'."),
]


@pytest.mark.parametrize(("given", "why"), REFUSED)
def test_what_is_no_noise_is_refused_with_its_name(given: Any, why: str) -> None:
    with pytest.raises(SettingError, match=why) as caught:
        Settings.of(4, 2, 2, noise=given)
    assert caught.value.field == "noise"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Counts(0), "trials must be at least 1, got 0"),
        (lambda: Counts(cast(Any, "many")), "trials must be an integer, got 'many'"),
        (lambda: Bounded(5, 1), "lo must be below hi, got 5 and 1"),
        (lambda: Bounded([0, 0], [1, 1, 1]), "lo has 2 numbers and hi 3"),
        (lambda: Bounded([[0]], 1), "lo must be a number, or one for each"),
        (lambda: Bounded(float("nan"), 1), "lo must be finite, got nan"),
        (lambda: AtMost("much"), "covariance must hold real numbers"),
        (lambda: Gaussian("round"), "got 'round'"),
    ],
)
def test_a_statement_that_means_nothing_is_refused(make: Any, why: str) -> None:
    with pytest.raises((ValueError, TypeError), match=why):
        make()


def test_statements_cannot_be_changed() -> None:
    for one, name in ((Bounded(0, 1), "lo"), (AtMost(1.0), "covariance"), (Counts(3), "trials")):
        with pytest.raises(AttributeError):
            setattr(one, name, 7)
    assert (repr(Bounded(0, 1)), repr(AtMost([1, 2]))) == ("Bounded(0.0, 1.0)", "AtMost([1.0, 2.0])")


def test_the_dimension_that_a_noise_is_for() -> None:
    for given, dim in (
        (None, None), ("gaussian", None), (2.0, None), ([1.0, 2.0], 2), (COVARIANCE, 2), (Counts(5), None),
        (Bounded(0, 1), None), (Bounded([0, 0, 0], 1), 3), (AtMost(1.0), None), (AtMost(COVARIANCE), 2),
        (noise_of(None, 4), 4), (Noise.of(1.0, 5), 5), ({"family": "bounded", "lo": [0, 0], "hi": 1}, 2),
    ):  # fmt: skip
        assert dimension_of(given) == dim, given


@pytest.mark.parametrize("name", STATED)
def test_units_go_there_and_back(name: str) -> None:
    noise = noise_of(STATED[name][0], 2)
    x = np.array([[1.0, 0.25], [3.0, 1.0], [0.0, 2.0]])
    assert np.allclose(noise.color(noise.whiten(x)), x, rtol=1e-12)
    whole = noise.whiten_fully(x)
    assert np.allclose(whole[:, :2] + whole[:, 2:], noise.whiten(x), rtol=1e-12)
    if not noise.in_units:
        assert np.array_equal(noise.whiten(x), x)
        assert not whole[:, 2:].any()
    with pytest.raises(ValueError, match="shape"):
        noise.whiten(np.zeros((3, 5)))


# What the methods take.


@pytest.mark.parametrize("method", [name for name in PACKAGED if name != "croc"])
@pytest.mark.parametrize("given", [None, "gaussian", Counts(3), Bounded(0, 1), AtMost(1.0), Symmetric()])
def test_the_papers_methods_need_a_known_noise_and_say_so(method: str, given: Any) -> None:
    instance = coterie.Instance([0, 0, 1], [[0.0], [4.0]])
    settings = Settings.of(3, 2, 1, method=method, noise=given, distance_ratio=0.5, instance=instance)
    with pytest.raises(SettingError, match=f'method "{method}" needs to know the noise') as caught:
        prepared(settings)
    assert caught.value.field == "noise"
    assert "give noise=…, a standard deviation" in str(caught.value)
    assert 'use method="croc"' in str(caught.value)
    prepared(Settings.of(3, 2, 1, method=method, noise=1.0, distance_ratio=0.5, instance=instance))


def test_a_registered_method_says_which_noises_it_takes() -> None:
    register(compose("plain"))
    register(compose("ranks", noises=("known", "any", "symmetric")))
    try:
        with pytest.raises(SettingError, match='"plain" needs to know the noise'):
            Session(4, 2, 1, method="plain")
        Session(4, 2, 1, method="plain", noise=2.0)
        Session(4, 2, 1, method="ranks")
        with pytest.raises(SettingError, match='"ranks" does not take counts out of 9 trials: it takes any, known, sy'):
            Session(4, 2, 1, method="ranks", noise=Counts(9))
    finally:
        unregister("plain")
        unregister("ranks")
    with pytest.raises(ValueError, match="takes the noises quiet: a method may take any, at-most"):
        register(compose("odd", noises=("quiet",)))
    with pytest.raises(ValueError, match="takes no noise"):
        register(compose("odd", noises=()))


# Sessions.


def state(session: Session) -> str:
    return json.dumps(session.to_dict())


BAD_RESULTS: list[tuple[Any, Any, str]] = [
    (Counts(), [0.5, 1.0], "whole number from 0 to 1, got 0.5 for item 1"),
    (Counts(10), [3.0, 11.0], "whole number from 0 to 10, got 11 for item 1"),
    (Counts(10), [-1.0, 3.0], "from 0 to 10, got -1 for item 1"),
    (Bounded(1, 5), [1.0, 5.5], "between 1 and 5, as was stated, got 5.5 for item 1"),
    (Bounded([0, 1], [1, 5]), [0.5, 0.5], "between 1 and 5, as was stated, got 0.5 for item 1"),
    (None, [1e101, 0.0], "results must be smaller than 1e.100, got 1e.101 for item 1"),
    (None, [float("nan"), 0.0], "must be finite, got nan"),
    (None, [1.0], "shape .2,."),
    ("gaussian", [float("inf"), 0.0], "must be finite"),
    (AtMost(1e-9), [1e4, 0.0], "within 1e.12 standard deviations of 0"),
    (Symmetric(), ["1", 2.0], "real numbers"),
]


@pytest.mark.parametrize(("noise", "x", "why"), BAD_RESULTS)
def test_a_result_that_contradicts_the_noise_changes_nothing(noise: Any, x: list[Any], why: str) -> None:
    session = Session(4, 2, 2, noise=noise)
    session.ask(2)
    session.tell(0, [1.0, 1.0])
    before = state(session)
    with pytest.raises((ValueError, TypeError), match=why):
        session.tell(1, x)
    with pytest.raises((ValueError, TypeError)):
        session.tell([1, 1], [[1.0, 1.0], x])  # all or nothing
    assert state(session) == before
    session.tell(1, [1.0, 1.0])
    assert session.n_measurements == 2


@pytest.mark.parametrize("noise", [None, "gaussian", Symmetric(), Counts(10**9), Bounded(-1e50, 1e50)])
def test_results_of_any_size_are_taken_where_no_size_is_stated(noise: Any) -> None:
    """A known noise refuses results that are 1e6 standard deviations apart: here there is none to measure them by."""
    session = Session(4, 2, 1, noise=noise)
    for value in (0.0, 1e8, 3.0):
        session.tell(0, value)
    known = Session(4, 2, 1, noise=1.0)
    with pytest.raises(ValueError, match="standard deviations of its first"):
        known.tell([0, 0], [0.0, 1e8])


@pytest.mark.parametrize("name", STATED)
def test_a_session_keeps_its_noise(name: str) -> None:
    given, saved = STATED[name]
    session = Session(4, 2, 2, noise=given)
    session.ask(3)
    session.tell(0, [1.0, 1.0])
    kept = json.loads(state(session))
    assert kept["noise"] == saved
    again = Session.from_dict(kept)
    assert again.noise == session.noise
    assert state(again) == state(session)
    assert again.pending == session.pending


def test_a_saved_session_with_noise_null_means_the_standard_gaussian() -> None:
    session = Session(4, 2, 2, noise=1.0)
    for arm in range(4):
        session.tell(arm, [float(arm), 0.0])
    old = Session.from_dict(session.to_dict() | {"noise": None})
    assert old.noise == Noise.of(1.0, 2)
    assert state(old) == state(session)
    boc = Session(4, 2, 2, method="boc", noise=1.0)
    assert Session.from_dict(boc.to_dict() | {"noise": None}).method == "boc"


@pytest.mark.parametrize("noise", [None, AtMost(0.5), AtMost([[0.5, 0.1], [0.1, 3.0]]), "gaussian"])
def test_centers_are_in_the_units_of_the_results(noise: Any) -> None:
    session = Session(4, 2, 2, noise=noise)
    means = np.array([[0.0, 0.0], [0.0, 0.0], [40.0, -20.0], [40.0, -20.0]])
    for k in range(16):  # where its size is not known, a guess needs to know how repeats vary
        session.tell(k % 4, means[k % 4] + 0.5 * (-1.0) ** (k // 4))
    assert session.centers is not None
    assert np.allclose(session.centers, [[0.0, 0.0], [40.0, -20.0]])


def test_cluster_checks_the_noise_before_anything_is_measured() -> None:
    measured: list[int] = []
    for noise, why in (({"family": "bounded", "lo": 5, "hi": 4}, "lo must be below hi"),
                       ("loud", "got 'loud'"), ({"family": "magic"}, "got 'magic'")):  # fmt: skip
        with pytest.raises(SettingError, match=why) as caught:
            coterie.cluster(measured.append, 4, 2, noise=noise, progress=False)
        assert caught.value.field == "noise"
    with pytest.raises(SettingError, match='"boc" needs to know the noise'):
        coterie.cluster(measured.append, 4, 2, method="boc", progress=False)
    assert measured == []


def test_cluster_names_the_item_whose_result_contradicts_the_noise_and_keeps_the_others() -> None:
    def measure(arm: int) -> float:
        return 7.0 if arm == 2 else float(arm > 1)

    with pytest.raises(
        ValueError, match="item 2: a count of successes must be a whole number from 0 to 1, got 7"
    ) as seen:
        coterie.cluster(measure, 4, 2, noise=Counts(), progress=False)
    session = seen.value.session  # type: ignore[attr-defined]
    assert session.n_measurements == 2
    assert [arm for _, arm in session.pending] == [2]
