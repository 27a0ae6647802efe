"""MLflow: a run of `cluster` with its settings, its progress, its certificate and its picture."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from coterie.problem.checks import short
from coterie.problem.settings import FIELDS
from coterie.session import Session

try:
    import mlflow
    from mlflow.exceptions import MlflowException
except ImportError:
    raise ImportError("coterie.integrations.mlflow needs MLflow: pip install 'coterie[mlflow]'") from None

LONGEST_PARAM = 500
"""Characters of a setting: MLflow has a limit, and lists of names are long."""
_AWAY = (MlflowException, OSError)


class Tracking:
    """What `progress=` of `cluster` takes, inside `mlflow.start_run()`: it writes into that run.

    Settings are parameters; `measurements`, `proven_share` and `evidence` (as a share of the threshold) metrics, by the
    number of measurements. Once the groups are proven, `certificate.json`, `log.json`, `session.json` and, with
    matplotlib, `means.png` are artifacts. If MLflow cannot be written, a warning says so once, and measuring goes on.

    Parameters
    ----------
    every : float
        Metrics are written when there are this share more measurements than the last time.

    Examples
    --------
    >>> import coterie, mlflow
    >>> from coterie.integrations.mlflow import Tracking
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     coterie.cluster(measure, 8, 2, noise=1.0, progress=Tracking())
    """

    def __init__(self, every: float = 0.05) -> None:
        if not isinstance(every, int | float) or not every >= 0:
            raise ValueError(f"every must be a share, 0 or more, got {short(every)}")
        self._every = float(every)
        self._begun = self._finished = self._away = False
        self._next = 0.0

    def __call__(self, session: Session) -> None:
        """The session has come further."""
        if not self._begun:
            self._begun = True
            self._write(lambda: mlflow.log_params(_settings(session)))
        if session.t >= self._next or session.done:
            self._next = session.t * (1.0 + self._every) + 1.0
            self._write(lambda: mlflow.log_metrics(_metrics(session), step=session.t))
        if session.done:
            self.finish(session)

    def finish(self, session: Session) -> None:
        """Write the artifacts, once. For a run that ended without a proof call it yourself, with `result.session`."""
        if self._finished:
            return
        self._finished = True
        self._write(lambda: mlflow.log_dict(session.to_dict(), "session.json"))
        self._write(lambda: mlflow.set_tag("coterie.verdict", session.verdict if session.done else "not proven"))
        if session.done and session.certifies:
            certificate = json.loads(json.dumps(session.certificate))
            self._write(lambda: mlflow.log_dict(certificate, "certificate.json"))
            self._write(lambda: mlflow.log_text(json.dumps(session.events), "log.json"))
        self._write(lambda: _log_picture(session))

    def _write(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except _AWAY as error:
            if not self._away:
                self._away = True
                text = f"coterie: MLflow cannot be written, measuring goes on without it: {str(error)[:200]}"
                warnings.warn(text, stacklevel=2)


def _settings(session: Session) -> dict[str, str]:
    """The settings as parameters, those that say nothing left out."""
    given = {name: getattr(session, name) for name in FIELDS}
    return {name: str(value)[:LONGEST_PARAM] for name, value in given.items() if value is not None}


def _metrics(session: Session) -> dict[str, float]:
    """How far it is; where nothing can be said yet there is no metric."""
    now = {"measurements": float(session.n_measurements), "proven_share": session.progress.share}
    if math.isfinite(session.evidence.statistic):
        now["evidence"] = session.evidence.statistic / session.evidence.threshold
    return now


def _log_picture(session: Session) -> None:
    if session.labels is None:
        return
    try:
        figure = import_module("matplotlib.figure").Figure()
    except ImportError:
        text = "coterie: the run has no picture, for want of matplotlib: pip install 'coterie[paper]'"
        warnings.warn(text, stacklevel=2)
        return
    import_module("coterie.plot").means(session, ax=figure.subplots())
    mlflow.log_figure(figure, "means.png")
