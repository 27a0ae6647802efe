"""`coterie compile`: afterwards nothing is left to compile, whatever the method, the noise and the size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coterie.cli import app
from coterie.methods import METHODS
from coterie.problem.families import KINDS, noise_of
from coterie.simulate import compiling

ENGINE = Path(compiling.__file__).parents[1] / "engine"

# Other sizes and dimensions than those of the tiny runs, to their end, beside simulations at both thresholds.
LATER = """
import numpy as np, coterie
rng = np.random.default_rng(1)
instance = coterie.Instance([0, 1, 2, 0, 1], [[2.0], [5.0], [8.0]])
noises = (1.0, None, "gaussian", coterie.Counts(10), coterie.Bounded(0, 10), coterie.AtMost(1.0), coterie.Symmetric())
for noise in noises:
    def measure(arm):
        mean = instance.means[arm]
        return rng.binomial(10, mean / 10) if isinstance(noise, coterie.Counts) else mean + rng.uniform(-1, 1, 1)
    coterie.cluster(measure, 5, 3, noise=noise, budget=2000, progress=False, on_alarm="continue")
for method in ("croc", "boc", "uniform", "oracle"):
    coterie.simulate(instance, method, threshold=["proven", "heuristic"], trials=2, max_pulls=2000, progress=False)
"""


def kept() -> dict[Path, int]:
    """The files of machine code beside the engine's sources, with the time of their last change."""
    return {path: path.stat().st_mtime_ns for path in ENGINE.rglob("*.nb[ic]")}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, env=environment)


@pytest.mark.slow
def test_nothing_is_left_to_compile_afterwards() -> None:
    answer = run("-m", "coterie.cli", "compile")
    assert "the code of the engine is in " in answer.stdout
    before = kept()
    assert len(before) > 40  # entries and kernels: what only compiled code calls is part of these
    later = run("-W", "ignore", "-c", LATER)
    assert "compiling" not in later.stderr
    assert kept() == before


def test_every_kind_of_noise_and_every_method_is_among_the_steps() -> None:
    assert {noise_of(noise, 2).kind for noise in compiling._NOISES} == set(KINDS)
    assert len(compiling._steps()) == 2 * len(METHODS) + len(compiling._NOISES)


def test_without_the_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_everything", lambda: None)
    answer = CliRunner().invoke(app, ["compile"])
    assert answer.exit_code == 0
    assert "the compiler is switched off" in answer.output
