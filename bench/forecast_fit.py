"""Fit the table that corrects forecasts: `python -m bench.forecast_fit` prints it, or of it `tests`, `bounds`, ….

Quantile regression, for each way in which runs go and each phase. A moment counts as much as the part of the run that
it stands for, so that long runs do not count more than short ones; the first tenth of a run counts nothing, or the
table would be for guesses from next to nothing.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from bench.forecast_runs import FITTED, Course, run_of
from coterie.session.forecast import EXPLORING, TESTING, features, target

RUNS = {"tests": 40, "bounds": 120, "links": 40, "statistic": 40}
QUANTILES = (0.08, 0.5, 0.92)
"""A little wider than the 0.1 and 0.9 that are promised: what was not fitted to varies more."""
SEED = 1
_FIRST = 0.1


def courses(kind: str, count: int) -> list[Course]:
    """Runs of every family of a kind."""
    found = []
    for place, (name, make) in enumerate(FITTED[kind].items()):
        for trial in range(count):
            rng = np.random.default_rng([SEED, place, trial])
            one = run_of(*make(rng), rng)
            found += [] if one is None else [one]
        print(f"# {kind}, {name}: {len(found)} runs so far", file=sys.stderr, flush=True)
    return found


def fitted(runs: list[Course], phase: str) -> list[list[float]] | None:
    """The rows of the table for a phase; None where there are too few moments of it."""
    from sklearn.linear_model import QuantileRegressor

    rows: list[Any] = []
    for run in runs:
        for one, part in run.parts:
            which, numbers = features(one.standing, one.left, one.t, run.items)
            if which == phase and one.t >= _FIRST * run.total:
                rows.append([part, target(phase, one.t, run.total), *numbers])
    if len(rows) < 50:
        return None
    data = np.array(rows)
    found = []
    for quantile in QUANTILES:
        model = QuantileRegressor(quantile=quantile, alpha=0.0, fit_intercept=False, solver="highs")
        model.fit(data[:, 2:], data[:, 1], sample_weight=data[:, 0])
        found.append([round(float(one), 4) for one in model.coef_])
    return found


def main() -> None:
    """Print the table as Python has it."""
    print("TABLE: dict[tuple[str, str], tuple[tuple[float, ...], ...]] = {")
    for kind in sys.argv[1:] or FITTED:
        runs = courses(kind, RUNS[kind])
        for phase in (EXPLORING, TESTING):
            rows = fitted(runs, phase)
            if rows is not None:
                print(f'    ("{kind}", "{phase}"): (')
                for row in rows:
                    print(f"        ({', '.join(map(str, row))}),")
                print("    ),")
    print("}")


if __name__ == "__main__":
    main()
