"""What `import coterie` brings and what it leaves out. How long it takes is measured by the benchmark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import coterie

HEAVY = ("numba", "scipy", "sklearn", "pandas", "matplotlib", "rich", "typer", "asyncio", "fastapi", "openpyxl")

# The lines of the public contract that exist in this version.
CONTRACT = [
    "Instance",
    "hardness",
    "allocation",
    "lower_bound",
    "closest_alternative",
    "same_partition",
    "kmeans_maximin",
    "threshold",
    "pair_evidence",
    "verify",
    "Verdict",
    "Session",
    "SessionDone",
    "cluster",
    "simulate",
    "datasets",
]


def loaded_after(code: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after running this code."""
    script = f"{code}\nimport json, sys\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(found.stdout.splitlines()[-1]))


def test_import_loads_nothing_heavy() -> None:
    assert loaded_after("import coterie; coterie.__version__; dir(coterie)") == set()


def test_describing_a_problem_loads_nothing_heavy() -> None:
    loaded = loaded_after(
        "import coterie; coterie.Instance([0, 0, 1], [[0.0], [1.0]]); coterie.same_partition([0, 1], [1, 0])"
    )
    assert loaded == set()


@pytest.mark.parametrize("noise", [1.0, None])
def test_a_session_loads_nothing_heavy(noise: float | None) -> None:
    loaded = loaded_after(
        f"import coterie; session = coterie.Session(8, 2, 1, 1e-9, noise={noise})\n"
        "for i in range(34): arm = session.ask(); session.tell(arm, [3.0 * (arm % 2) + i % 3])"
    )
    assert loaded == set()


def test_commands_and_campaigns_load_what_they_use(tmp_path: Path) -> None:
    assert loaded_after("from coterie.cli import app") == {"rich", "typer"}
    opened = f"from coterie.campaign import Campaigns; Campaigns({str(tmp_path / 'store.db')!r})"
    assert loaded_after(opened) <= {"asyncio"}  # SQLAlchemy's


@pytest.mark.parametrize("name", CONTRACT)
def test_every_name_of_the_contract_is_there(name: str) -> None:
    assert name in coterie.__all__
    assert name in dir(coterie)
    assert getattr(coterie, name) is getattr(coterie, name)


def test_dir_lists_what_can_be_had_and_nothing_else() -> None:
    assert dir(coterie) == sorted(coterie.__all__)
    assert all(hasattr(coterie, name) for name in dir(coterie))
    assert coterie.__version__.count(".") == 2


def test_star_import_and_unknown_names() -> None:
    everything: dict[str, object] = {}
    exec("from coterie import *", everything)
    assert set(coterie.__all__) <= set(everything)
    with pytest.raises(AttributeError, match="module 'coterie' has no attribute 'cluser'"):
        coterie.cluser
    with pytest.raises(ImportError):
        exec("from coterie import cluser")


def test_contract_of_the_data_sets_and_results() -> None:
    assert {"iris", "yeast", "mnist", "synthetic"} <= set(dir(coterie.datasets))
    session = coterie.Session
    for name in [
        "ask",
        "tell",
        "pending",
        "done",
        "labels",
        "centers",
        "pulls",
        "t",
        "evidence",
        "to_dict",
        "from_dict",
        "forget",
        "log",
    ]:
        assert hasattr(session, name)
    for name in ["mean", "std", "median", "errors", "to_frame"]:
        assert hasattr(coterie.Trials, name)
