"""MLflow with a local store: what is in the run afterwards, and that measuring goes on without it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie

mlflow = pytest.importorskip("mlflow")
Tracking = importlib.import_module("coterie.integrations.mlflow").Tracking

pytestmark = pytest.mark.slow  # to import MLflow takes seconds


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the runs are kept."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield tmp_path
    mlflow.set_tracking_uri(before)


def clustered(**options: Any) -> Any:
    rng = np.random.default_rng(0)
    return coterie.cluster(lambda item: 5.0 * (item % 2) + rng.standard_normal(), 4, 2, noise=1.0, **options)


def test_a_run_has_settings_progress_certificate_and_picture(folder: Path) -> None:
    with mlflow.start_run() as run:
        result = clustered(progress=Tracking())
    kept = mlflow.get_run(run.info.run_id)
    assert kept.data.params["n_arms"] == "4"
    assert kept.data.params["noise"]
    assert kept.data.metrics["measurements"] == result.session.n_measurements
    assert kept.data.metrics["proven_share"] == 1.0
    assert kept.data.metrics["evidence"] >= 1.0
    assert kept.data.tags["coterie.verdict"].startswith("proven")
    artifacts = mlflow.artifacts.download_artifacts(run_id=run.info.run_id)
    names = {path.name for path in Path(artifacts).iterdir()}
    assert names == {"certificate.json", "log.json", "session.json", "means.png"}
    read = {name: json.loads((Path(artifacts) / name).read_text()) for name in names if name.endswith("json")}
    assert coterie.verify(read["certificate.json"], read["log.json"]).valid
    labels = coterie.Session.from_dict(read["session.json"]).labels
    assert labels is not None
    assert labels.tolist() == [0, 1, 0, 1]
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "measurements")
    assert [point.step for point in history] == sorted({point.step for point in history})
    assert len(history) > 3


def test_a_run_without_a_proof_is_finished_by_hand(folder: Path) -> None:
    tracking = Tracking()
    with mlflow.start_run() as run:
        with pytest.warns(UserWarning, match="budget"):
            result = clustered(progress=tracking, budget=3)
        tracking.finish(result.session)
    artifacts = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id))
    assert "session.json" in {path.name for path in artifacts.iterdir()}
    assert mlflow.get_run(run.info.run_id).data.tags["coterie.verdict"] == "not proven"


def test_measuring_goes_on_if_mlflow_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise mlflow.exceptions.MlflowException("no server")

    for name in ("log_params", "log_metrics", "log_dict", "log_text", "log_figure", "set_tag"):
        monkeypatch.setattr(mlflow, name, away)
    with pytest.warns(UserWarning, match="MLflow cannot be written") as caught:
        assert clustered(progress=Tracking()).done
    assert len(caught) == 1


def test_every_is_a_share() -> None:
    with pytest.raises(ValueError, match="every"):
        Tracking(every=-1.0)
