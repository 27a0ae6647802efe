"""The pictures of docs/PLOTS.md are those its examples make; the room loads late and leaves matplotlib as it was."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie import plot

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "PLOTS.md").read_text(encoding="utf-8")


@pytest.fixture
def session() -> coterie.Session:
    found = coterie.Session(4, 2, 2, method="uniform", noise=1.0)
    found.tell([0, 1, 2, 3], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
    return found


def test_pictures_of_the_page_are_what_its_examples_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.image import imread

    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    axes = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE):
        exec(block, names)
        picture = re.search(r'savefig\("(\w+)\.png"', block)
        assert picture
        axes[picture[1]] = names["ax"]
    assert set(axes) == set(plot.__all__)

    assert len(axes["stopping_times"].containers) == 3
    assert all(len(curve[0].get_xdata()) == 10 for curve in axes["stopping_times"].containers)
    assert len(axes["proportions"].lines) == 4 + 4 + 1  # clusters, their best shares, the entry in the legend
    assert len(axes["evidence"].lines) == 2 + len(names["croc"].certificate["epochs"]) + 1
    assert sum(len(group.get_offsets()) for group in axes["means"].collections[:3]) == 12

    kept = sorted(path.stem for path in (ROOT / "docs" / "pictures").iterdir())
    assert set(axes) <= set(kept)
    for name in axes:
        assert f"(pictures/{name}.png)" in PAGE
        assert (ROOT / "docs" / "pictures" / f"{name}.png").stat().st_size < 100_000
        new, old = imread(tmp_path / f"{name}.png"), imread(ROOT / "docs" / "pictures" / f"{name}.png")
        assert new.shape == old.shape
        dark = [float((image[..., :3].min(axis=2) < 0.9).mean()) for image in (new, old)]
        assert min(dark) > 0.005  # nonempty


def ran(code: str) -> str:
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


DRAWN = """
import sys, coterie
s = coterie.Session(4, 2, 2, method="uniform", noise=1.0)
s.tell([0, 1, 2, 3], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
"""


def test_the_room_loads_matplotlib_when_it_draws_and_pyplot_never() -> None:
    assert ran("import sys, coterie; coterie.plot; print('matplotlib' in sys.modules)") == "False"
    code = DRAWN + "coterie.plot.means(s); print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    assert ran(code) == "True False"


def test_a_missing_matplotlib_is_named_with_the_extra() -> None:
    code = (
        DRAWN + "sys.modules['matplotlib'] = None\ntry:\n    coterie.plot.means(s)\nexcept ImportError as e: print(e)"
    )
    assert ran(code) == 'coterie.plot needs matplotlib: pip install "coterie[paper]"'


def test_settings_and_open_figures_are_left_alone(session: coterie.Session) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plot.means(session)
    plot.evidence(session)
    plot.proportions([0, 1, 2], coterie.Instance([0, 0, 1], [[0.0], [1.0]]))
    assert dict(mpl.rcParams) == before


def test_axes_given_are_drawn_on_and_returned(session: coterie.Session) -> None:
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    assert plot.means(session, ax=left) is left
    assert plot.evidence(session, ax=right, legend=False) is right
    assert right.get_legend() is None
    assert plot.means(session) is not plot.means(session)


def test_the_legend_covers_no_data(session: coterie.Session) -> None:
    """Beside the axes where a layout makes room for it; inside, never cut off, where none does."""
    from matplotlib.figure import Figure

    for figure, outside in ((None, True), (Figure(), False), (Figure(layout="constrained"), True)):
        ax: Any = plot.means(session, ax=None if figure is None else figure.add_subplot())
        ax.figure.draw_without_rendering()
        legend, area = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert (legend.x0 > area.x1) == outside
        page = ax.figure.bbox
        assert legend.x1 <= page.x1
        assert legend.y0 >= page.y0


def test_a_log_scale_that_was_set_before_is_kept() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    ax.set_yscale("log")
    times = np.array([[100], [120]])
    plot.stopping_times(coterie.Trials("boc", "proven", (0.1,), 0, times, times > 0), ax=ax)
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[0] > 0
