"""`BanditClustering`: fitted by a function and by tables, and handled by scikit-learn as one of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import coterie

TRUTH = {"ash": 0.0, "elm": 0.2, "oak": 6.0, "fir": 6.1, "yew": 0.1}
GROUPS = [0, 0, 1, 1, 0]
QUESTION: dict[str, Any] = {"resolution": (0.5, 4.0), "noise": 1.0}


def sampler(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return lambda name: TRUTH[name] + rng.standard_normal()


def rows(count: int = 40) -> tuple[list[str], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    names = [name for name in TRUTH for _ in range(count)]
    return names, np.array([TRUTH[name] for name in names]) + rng.standard_normal(len(names))


def test_a_function_is_called_with_the_items_and_the_answer_is_that_of_cluster() -> None:
    fitted = coterie.BanditClustering(**QUESTION).fit(sampler(), TRUTH)
    names, measure = list(TRUTH), sampler()
    plain = coterie.cluster(measure, 5, names=names, progress=False, **QUESTION)
    assert fitted.proven_
    assert fitted.names_ == tuple(TRUTH)
    assert fitted.labels_ is not None
    assert fitted.labels_.tolist() == GROUPS == plain.labels.tolist()  # type: ignore[union-attr]
    assert fitted.n_measurements_ == plain.t
    assert fitted.n_clusters_ == 2
    assert np.array_equal(fitted.cluster_centers_, plain.centers)  # type: ignore[arg-type]
    assert fitted.certificate_ == plain.session.certificate
    assert coterie.verify(fitted.certificate_, fitted.session_.events).valid


def test_items_need_not_be_text_and_may_be_a_number() -> None:
    asked: list[Any] = []

    def measure(item: Any) -> float:
        asked.append(item)
        return float(item > 102) * 20.0

    labels = coterie.BanditClustering(**QUESTION).fit_predict(measure, [101, 102, 103])
    assert labels is not None
    assert labels.tolist() == [0, 0, 1]
    assert set(asked) == {101, 102, 103}
    fitted = coterie.BanditClustering(**QUESTION).fit(lambda item: 20.0 * (item == 2), 3)
    assert fitted.names_ == ("0", "1", "2")


def test_an_array_with_the_item_of_each_row_is_the_table_with_these_rows(tmp_path: Path) -> None:
    names, values = rows()
    estimator = coterie.BanditClustering(**QUESTION)
    of_array = clone(estimator).fit(values, names)
    table = tmp_path / "trees.csv"
    table.write_text("tree,x\n" + "".join(f"{n},{v!r}\n" for n, v in zip(names, values.tolist(), strict=True)))
    of_file = clone(estimator).fit(table, "tree")
    assert of_array.names_ == of_file.names_ == tuple(sorted(TRUTH))
    assert dict(zip(of_array.names_, of_array.labels_.tolist(), strict=True)) == dict(
        zip(sorted(TRUTH), [0, 0, 1, 1, 0], strict=True)
    )
    assert of_array.labels_.tolist() == of_file.labels_.tolist()
    assert of_array.n_measurements_ == of_file.n_measurements_ < len(names)
    assert of_array.certificate_ is not None


def test_a_guess_is_no_proof_and_says_so() -> None:
    names, values = rows(1)
    with pytest.warns(UserWarning, match="5 measurements of the table are not enough for a proof: there are no"):
        fitted = coterie.BanditClustering(**QUESTION).fit(values, names)
    assert not fitted.proven_
    assert fitted.certificate_ is None
    assert fitted.labels_ is None
    assert fitted.n_clusters_ is None
    with pytest.warns(UserWarning, match="the budget of 6 measurements"):
        assert not coterie.BanditClustering(budget=6, **QUESTION).fit(sampler(), list(TRUTH)).proven_


def test_what_speaks_against_the_proof_of_a_table_is_a_warning() -> None:
    names, values = rows()
    with pytest.warns(UserWarning, match="are proven, but: .*The measurements vary more than the noise stated .*void"):
        coterie.BanditClustering(resolution=(0.5, 4.0), noise=0.3).fit(values, names)


def test_scikit_learn_clones_it() -> None:
    noise = [1.0, 2.0]
    estimator = coterie.BanditClustering(3, noise=noise, delta=0.01)
    copy = clone(estimator)
    assert type(copy) is coterie.BanditClustering
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert copy.get_params()["noise"] == noise
    fitted = coterie.BanditClustering(**QUESTION).fit(sampler(), TRUTH)
    assert not hasattr(clone(fitted), "labels_")
    assert clone(coterie.BanditClustering(2, noise=coterie.Bounded(1, 5))).noise == coterie.Bounded(1, 5)


def test_parameters_are_set_all_or_none() -> None:
    estimator = coterie.BanditClustering(3)
    assert estimator.set_params(delta=0.01, n_clusters=4) is estimator
    assert (estimator.delta, estimator.n_clusters) == (0.01, 4)
    assert repr(estimator) == "BanditClustering(n_clusters=4, delta=0.01)"
    with pytest.raises(ValueError, match="no parameter 'k': it has n_clusters, resolution"):
        estimator.set_params(delta=0.5, k=2)
    assert estimator.delta == 0.01


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, (len, 3), "n_clusters must be an integer, got None"),
        (QUESTION, (len,), "names must be the items to measure"),
        (QUESTION, (len, "ash"), "names must be an integer"),
        (QUESTION, (len, ["ash", "ash"]), "names must differ"),
        (QUESTION, (np.zeros(3),), "an array has no names"),
        (QUESTION, (np.zeros(3), ["a"]), "one entry for each of the 3 rows"),
        (QUESTION, ("a.csv", ["a"]), "need an .n, d. array"),
        (QUESTION | {"budget": 9}, (np.zeros(3), ["a", "b", "c"]), "budget is for a function"),
        (QUESTION | {"delta": 2.0}, (np.zeros(3), ["a", "b", "c"]), "delta must lie in"),
    ],
)
def test_what_cannot_be_fitted_is_named(settings: dict[str, Any], arguments: tuple[Any, ...], message: str) -> None:
    estimator = coterie.BanditClustering(**settings)
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(*arguments)
    assert not hasattr(estimator, "labels_")


def test_it_needs_no_scikit_learn() -> None:
    script = (
        "import sys; sys.modules['sklearn'] = None; import coterie; print(coterie.BanditClustering(2).get_params())"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "'n_clusters': 2" in found.stdout


CHECKS = (
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
)
"""Of scikit-learn's own checks, those of parameters. The others fit arrays whose rows are the things to be grouped."""


@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learns_checks_of_parameters_pass(name: str) -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    if not hasattr(checks, name):
        pytest.skip(f"this release of scikit-learn has no {name}")
    getattr(checks, name)("BanditClustering", coterie.BanditClustering(2, noise=1.0))


def test_it_is_the_last_step_of_a_pipeline() -> None:
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    names, values = rows()
    steps = pipeline.make_pipeline(preprocessing.StandardScaler(), coterie.BanditClustering(2, delta=0.1))
    fitted = steps.fit(values[:, None], names)[-1]
    assert fitted.names_ == tuple(sorted(TRUTH))
    assert fitted.labels_ is not None
    assert steps.fit_predict(values[:, None], names).tolist() == fitted.labels_.tolist()
    before = fitted.n_measurements_
    assert steps.set_params(banditclustering__delta=1e-6).fit(values[:, None], names)[-1].n_measurements_ > before
