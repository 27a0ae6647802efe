"""How long compiling takes: said while it is done, by the record of a real one on a busy machine."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from coterie.engine.compile_watch import SECONDS, CompileWatch

RECORD = Path(__file__).parent / "assets" / "compiling_croc.csv"


def replayed(speed: float, share: float) -> list[tuple[float, float, float]]:
    """(seconds, expected, seconds in all) at 400 moments, on a processor so fast, with a share of it."""
    with RECORD.open(newline="") as file:
        rows = [(float(row["processor"]), row) for row in csv.DictReader(file)]
    watch = CompileWatch()
    watch.announce("CROC")
    begun = rows[0][0]
    end = (rows[-1][0] - begun) / speed / share
    found = []
    for i in range(401):
        now = i / 400 * end
        while rows and (rows[0][0] - begun) / speed / share <= now + 1e-9:
            cpu, row = rows.pop(0)
            at = 100.0 + (cpu - begun) / speed / share
            if row["step"] == "wrote":
                watch.wrote(int(row["instructions"]), float(row["seconds"]) / speed)
            else:
                (watch.began if row["step"] == "began" else watch.ended)(at, cpu / speed)
        state = watch.state(100.0 + now)
        assert state is not None
        assert state.what == "CROC"
        found.append((state.seconds, state.expected, end))
    assert not rows
    assert watch.state(101.0 + end) is not None  # between two functions
    assert watch.state(110.0 + end) is None
    return found


@pytest.mark.parametrize("speed", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_the_estimate_is_right_from_a_tenth_of_the_time_on(speed: float, share: float) -> None:
    late = [expected / end for seconds, expected, end in replayed(speed, share) if seconds > 0.1 * end]
    assert len(late) > 100
    assert min(late) > 0.55
    assert max(late) < 1.8


def test_before_anything_is_known_it_is_the_record() -> None:
    assert replayed(1.0, 1.0)[0][1] == SECONDS["CROC"]


def test_nothing_is_compiled_before_it_begins() -> None:
    assert CompileWatch().state(5.0) is None


def test_the_compiler_itself_says_when_it_begins_and_ends(tmp_path: Path) -> None:
    """A real function, in a process of its own: while it is compiled, this is seen from another thread."""
    script = """
import threading, time
from coterie.engine.compile_watch import compilation, watch_compilation
import numba
watch_compilation("a sum")
seen, ended = set(), threading.Event()
def look():
    while not ended.is_set():
        found = compilation()
        seen.add(None if found is None else found.what)
        time.sleep(0.0005)
thread = threading.Thread(target=look); thread.start()
time.sleep(0.1)
numba.njit(lambda x: sum([x[i] * i for i in range(len(x))]))(tuple(float(i) for i in range(30)))
time.sleep(2)
seen_after = compilation()
ended.set(); thread.join()
print(sorted(map(str, seen)), seen_after)
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert answer.stdout.strip() == "['None', 'a sum'] None", answer.stderr[-500:]
