"""How long the first use takes: `python -m bench.first_use` prints the seconds of a first answer without any compiled
code on disk, beside those of one small loop that numba compiles, all in processes of their own.

A first answer does not wait for the compiler, which works in a process of its own: its seconds are part of "in all"
only. Seconds are of a processor, but for those called elapsed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import NamedTuple

SMALL = """
import numba
@numba.njit
def total(n):
    s = 0.0
    for i in range(n):
        s += 0.5 * i
    return s
total(10)
"""
CROC = "import coterie; coterie.Session(8, 3, 2).ask()"
BOC = 'import coterie; coterie.Session(8, 3, 2, method="boc", noise=1.0).ask()'
EVERYTHING = "from coterie.simulate.compiling import compile_everything; compile_everything()"
STEPS = {
    "one small loop, numba's import included": (SMALL, True),
    "the first ask of a default session": (CROC, True),
    "the same, waiting for the compiler": (CROC, False),
    "the first ask of BOC": (BOC, True),
    "the same, waiting for the compiler (BOC)": (BOC, False),
    "everything (coterie compile)": (EVERYTHING, True),
}
"""What is done, and whether compiling may be left to another process."""
_SECONDS = """
import time
answered, elapsed = time.process_time(), time.perf_counter() - begun
import resource, sys
for name in ("coterie.engine.run", "coterie.engine.croc.stepping"):
    behind = getattr(getattr(sys.modules.get(name), "_entrance", None), "_behind", None)
    if behind is not None:
        behind.wait()
children = resource.getrusage(resource.RUSAGE_CHILDREN)
print(answered, children.ru_utime + children.ru_stime, elapsed)
"""


class Seconds(NamedTuple):
    """Of the process that answers, until it has; of the one that compiles; and on the clock, until the answer."""

    answer: float
    behind: float
    elapsed: float


def seconds(code: str, cache: str, at_once: bool) -> Seconds:
    """Of a process that runs this, with numba's cache in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "COTERIE_BACKGROUND_COMPILER": str(int(at_once))}
    command = [sys.executable, "-c", "import time; begun = time.perf_counter()\n" + code + _SECONDS]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Seconds(*(float(number) for number in found.stdout.split()[-3:]))


def main() -> None:
    """Print cold and warm seconds of each step."""
    small = 0.0
    for what, (code, at_once) in STEPS.items():
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = seconds(code, cache, at_once), seconds(code, cache, at_once)
        small = small or cold.answer
        print(
            f"{what}: {cold.answer:.1f} s cold ({cold.answer / small:.1f} small loops), "
            f"{cold.answer + cold.behind:.1f} s in all, {cold.elapsed:.1f} s elapsed; {warm.answer:.1f} s afterwards",
            flush=True,
        )


if __name__ == "__main__":
    main()
