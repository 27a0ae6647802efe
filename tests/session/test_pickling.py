"""Sessions, results, estimators and certificates pickle, copy and go to other processes."""

from __future__ import annotations

import copy
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from known import known

import coterie
from coterie.session import Result

CASES: dict[str, dict[str, Any]] = {
    "any": {"n_clusters": 2},
    "known": {"n_clusters": 2, "noise": [0.5, 2.0]},
    "gaussian": {"n_clusters": 2, "noise": coterie.Gaussian("diagonal")},
    "bounded": {"n_clusters": 2, "noise": coterie.Bounded(-6, 15)},
    "resolution": {"resolution": (1.0, 5.0), "noise": 1.0, "names": tuple("abcdef")},
    "linkage": {"n_clusters": 2, "groups": "linkage", "noise": 1.0},
    "shortlist": {"n_clusters": 2, "method": "shortlist", "noise": 1.0},
    "boc": {"n_clusters": 2, "method": "boc", "noise": 1.0, "costs": None},
    "costs": {"n_clusters": 2, "noise": 1.0, "costs": [1, 2, 3, 4, 5, 6], "cost_unit": "EUR"},
}


def measured(arm: int, k: int) -> Any:
    return 9.0 * (arm % 2) + np.random.default_rng([arm, k]).standard_normal(2)


def go_on(session: coterie.Session, results: int = 10_000) -> None:
    for _ in range(results):
        if session.done:
            return
        arm = session.ask()
        session.tell(arm, measured(arm, session.n_measurements))


def started(case: str, results: int) -> coterie.Session:
    session = coterie.Session(6, dim=2, delta=0.01, **CASES[case])
    go_on(session, results)
    return session


def copies(thing: Any) -> list[Any]:
    pickles = [pickle.loads(pickle.dumps(thing, protocol)) for protocol in (2, pickle.HIGHEST_PROTOCOL)]
    return [*pickles, copy.copy(thing), copy.deepcopy(thing)]


@pytest.mark.parametrize("case", CASES)
def test_a_copy_of_a_session_goes_on_as_the_session_does(case: str) -> None:
    for results in (0, 4, 11, 10_000):
        session = started(case, results)
        if not session.done:
            session.open(2)
        before = session.to_dict()
        for other in copies(session):
            assert type(other) is coterie.Session
            assert other.to_dict() == before
            go_on(other)
            assert session.to_dict() == before  # it is another one
        go_on(session)
        assert other.to_dict() == session.to_dict()


def test_a_corrected_and_revised_session_pickles() -> None:
    session = started("any", 9)
    session.correct(0, [0.5, 0.5], "misread")
    session.revise(add=1)
    go_on(session, 5)
    (other, *_) = copies(session)
    assert other.to_dict() == session.to_dict()
    assert other.corrections == session.corrections
    assert other.revisions == session.revisions


def test_results_estimators_and_certificates_pickle() -> None:
    rng = np.random.default_rng(0)
    result = coterie.cluster(
        lambda item: 9.0 * (item in "ace") + rng.standard_normal(), list("abcdef"), 2, progress=False
    )
    for other in copies(result):
        assert isinstance(other, Result)
        assert repr(other) == repr(result)
        assert other.groups == result.groups
        assert other.to_frame().equals(result.to_frame())
    certificate = known(result.session.certificate)
    for other in copies(certificate):
        assert type(other) is coterie.Certificate
        assert other == certificate
        assert other.verify(result.session.events)
    rows = {name: 9.0 * (i % 2) + rng.standard_normal((30, 1)) for i, name in enumerate("abcdef")}
    estimator = coterie.BanditClustering(2, noise=coterie.Gaussian("scalar"))
    for fitted in (False, True):
        if fitted:
            estimator.fit(rows)
        for other in copies(estimator):
            assert repr(other) == repr(estimator)
            if fitted:
                assert known(other.labels_).tolist() == known(estimator.labels_).tolist()
                assert other.certificate_ == estimator.certificate_
                assert other.session_.to_dict() == estimator.session_.to_dict()


def test_a_pickle_of_another_release_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    session = started("any", 9)
    here = coterie.__version__
    monkeypatch.setattr(coterie, "__version__", "0.0.9")
    content = pickle.dumps(session)
    monkeypatch.setattr(coterie, "__version__", here)
    with pytest.warns(UserWarning, match=r"pickled by coterie 0\.0\.9; coterie .* opens it as from_dict would"):
        other = pickle.loads(content)
    assert other.to_dict() == session.to_dict()
    monkeypatch.setattr(coterie.Session, "to_dict", lambda self: {"format": "coterie-session-9"})
    monkeypatch.setattr(coterie, "__version__", "0.0.9")
    later = pickle.dumps(session)
    monkeypatch.setattr(coterie, "__version__", here)
    with pytest.raises(ValueError, match=r"pickled by coterie 0\.0\.9, and coterie .* cannot open it .*to_dict"):
        pickle.loads(later)


def test_a_pickle_of_a_release_without_a_version_is_refused_in_a_sentence() -> None:
    """Before 0.3 a pickle was the session's own attributes."""
    with pytest.raises(ValueError, match=r"pickled by an earlier release .* save it there with to_dict"):
        coterie.Session.__new__(coterie.Session).__setstate__({"_conversation": None})


def elsewhere(session: coterie.Session) -> coterie.Session:
    go_on(session)
    return session


def fails(arm: int) -> float:
    if arm == 3:
        raise ConnectionError("stuck")
    return 0.0


def clustered(_: int) -> Any:
    return coterie.cluster(fails, 6, 2, progress=False)


@pytest.mark.slow  # other processes import the package
def test_sessions_and_errors_travel_between_processes() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        here = started("any", 9)
        there = pool.submit(elsewhere, here).result()
        with pytest.raises(ConnectionError) as raised:
            pool.submit(clustered, 0).result()
    go_on(here)
    assert there.to_dict() == here.to_dict()
    assert raised.value.session.n_measurements == 3  # type: ignore[attr-defined]


@pytest.mark.slow  # other processes import the package
def test_joblib_takes_all_of_them() -> None:
    joblib = pytest.importorskip("joblib")
    session = started("gaussian", 12)
    rng = np.random.default_rng(0)
    result = coterie.cluster(lambda arm: 9.0 * (arm % 2) + rng.standard_normal(), 6, 2, progress=False)
    estimator = coterie.BanditClustering(2).fit(lambda arm: 9.0 * (arm % 2) + rng.standard_normal(), 6)
    things = [session, result, estimator, known(result.session.certificate)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of joblib, about its workers
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(copy.deepcopy)(thing) for thing in things)
    assert [type(one) for one in found] == [type(one) for one in things]
    assert found[0].to_dict() == session.to_dict()
    assert repr(found[1]) == repr(result)
    assert known(found[2].labels_).tolist() == known(estimator.labels_).tolist()
    assert found[3] == things[3]
