"""`BanditClustering` by scikit-learn's own checks; its tags, its HTML, pickled and with joblib."""

from __future__ import annotations

import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import coterie

_LABELS = "the second argument of fit names the items of the rows, and the check gives two items for two groups"
_TABLES = "fit takes functions and tables too, and its errors speak of rows, columns and cells"
EXPECTED = {
    "check_fit_score_takes_y": "the second argument of fit is called names, since it names items",
    "check_dont_overwrite_parameters": "the check asks for one group, of which there is nothing to find",
    "check_methods_subset_invariance": "the check asks for one group, of which there is nothing to find",
    "check_fit2d_predict1d": "the check asks for one group, of which there is nothing to find",
    "check_n_features_in_after_fitting": "items are grouped: there is no predict for which columns are counted",
    "check_n_features_in": _LABELS,
    "check_estimators_dtypes": _LABELS,
    "check_pipeline_consistency": _LABELS,
    "check_estimators_pickle": _LABELS,
    "check_fit_idempotent": _LABELS,
    "check_fit_check_is_fitted": _LABELS,
    "check_complex_data": _TABLES,
    "check_dtype_object": _TABLES,
    "check_estimators_empty_data_messages": _TABLES,
    "check_estimators_nan_inf": _TABLES,
    "check_estimator_sparse_array": _TABLES,
    "check_estimator_sparse_matrix": _TABLES,
    "check_fit2d_1sample": _TABLES,
    "check_fit2d_1feature": _TABLES,
}


def fitted() -> coterie.BanditClustering:
    rng = np.random.default_rng(2)
    table = {name: (6.0 * (name > "b") + rng.standard_normal(20)).tolist() for name in "abcd"}
    return coterie.BanditClustering(n_clusters=2, noise=1.0).fit(table)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_checks_that_make_sense_pass_and_the_others_are_known() -> None:
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(
        coterie.BanditClustering(n_clusters=2), expected_failed_checks=EXPECTED, on_skip=None, on_fail="raise"
    )
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED), "one that passes by now is not expected to fail"
    assert sum(result["status"] == "passed" for result in results) >= 18


def test_tags_say_what_it_is() -> None:
    tags = get_tags(coterie.BanditClustering())
    assert (tags.estimator_type, tags.target_tags.required) == ("clusterer", False)
    with pytest.raises(ValueError, match="not fitted yet"):
        check_is_fitted(coterie.BanditClustering())
    check_is_fitted(fitted())


def test_html_names_parameters_and_what_was_found() -> None:
    assert coterie.BanditClustering(noise="<b>")._repr_html_() == (
        "<pre>BanditClustering(noise=&#x27;&lt;b&gt;&#x27;)</pre><p>not fitted</p>"
    )
    estimator = fitted()
    assert estimator.proven_
    assert f"<p>2 groups, proven, {estimator.n_measurements_} measurements</p>" in estimator._repr_html_()


def test_pickled_and_from_joblib_it_is_the_same(tmp_path: Path) -> None:
    estimator = fitted()
    joblib.dump(estimator, tmp_path / "estimator")
    (by_joblib,) = joblib.Parallel(n_jobs=1)(joblib.delayed(fitted)() for _ in range(1))
    for other in (pickle.loads(pickle.dumps(estimator)), joblib.load(tmp_path / "estimator"), by_joblib):
        assert other.get_params() == estimator.get_params()
        assert other.names_ == estimator.names_
        assert np.asarray(other.labels_).tolist() == np.asarray(estimator.labels_).tolist() == [0, 0, 1, 1]
        assert other.certificate_ == estimator.certificate_
        assert coterie.verify(other.certificate_, other.session_.events).valid
