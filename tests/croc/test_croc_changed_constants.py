"""Buffers have the size that the constants ask for: with other constants nothing is written beside them.

The package is copied, constants changed in the copy, and the copy run with the JIT off, where NumPy checks every index.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import coterie

SOURCE = Path(coterie.__file__).parent
CHANGES: dict[str, dict[str, str]] = {
    "larger pools and cores, fewer rounds": {"TOP_UP": "1.5", "CORE": "5", "FLIGHT": "8", "SCALE_UP": "4"},
    "fewer epochs, cores of one, hardly any room for rounds": {
        "EPOCHS": "2", "CORE": "1", "ROUND_PLACES": "4", "FREEZE_RISK": "0.9", "STEADY": "0.0",
    },
    "more epochs, a short grid, longer forecasts": {
        "EPOCHS": "5", "PREFIX_ROOM": "8", "OCTAVES": "1",
        "DOUBLINGS": "9", "LEAD_LEVELS": "12", "STEPS": "np.arange(40)", "PAIRS_PER_PULL": "1",
    },
    "other block ratios, a wider subspace": {
        "BLOCK_RATIOS": "np.array([1, 2, 3, 6])", "PREFIX_ROOM": "48", "SUBSPACE_EXTRA": "40",
    },
}  # fmt: skip
RUNS = """
import numpy as np, coterie
for workers, labels, gap in (
    (1, [0, 0, 0, 0, 0, 0, 1, 1], 3.0),
    (7, [0, 0, 0, 0, 1, 1, 1, 2], 4.0),
    (40, [0, 0, 0, 1, 2], 6.0),
):
    truth, rng = np.array(labels), np.random.default_rng(workers)
    centers = gap * np.eye(3)[: truth.max() + 1]
    session = coterie.Session(len(labels), truth.max() + 1, 3, delta=1e-4)
    while not session.done and session.t < 1500:
        while len(session.pending) < workers and not session.done:
            try:
                session.ask()
            except coterie.SessionDone:
                pass
        for ticket, arm in [session.pending[i] for i in rng.permutation(len(session.pending))[: workers // 2 + 1]]:
            session.tell(arm, centers[truth[arm]] + rng.standard_normal(3), ticket=ticket)
    assert session.done, (workers, session)
    assert coterie.same_partition(session.labels, truth), (workers, session.labels)
print("right")
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_changed_constants_keep_within_buffers(what: str, tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "coterie", ignore=shutil.ignore_patterns("__pycache__", "web", "paper"))
    for name, value in CHANGES[what].items():
        change(tmp_path / "coterie" / "engine" / "croc", name, value)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", RUNS],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "right\n"), run.stderr


def change(folder: Path, name: str, value: str) -> None:
    """Give the constant that is defined in one of the folder's files another value."""
    found = 0
    for path in folder.glob("*.py"):
        text, times = re.subn(rf"(?m)^{name} = [^#\n]*", f"{name} = {value}  ", path.read_text(encoding="utf-8"))
        if times:
            path.write_text(text, encoding="utf-8")
        found += times
    assert found == 1, f"{name} is defined {found} times in {folder}"
