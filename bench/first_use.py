"""How long the first use takes: `python -m bench.first_use` prints the CPU seconds of a first answer without any
compiled code on disk, beside those of one small loop that numba compiles, all in processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

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
STEPS = {
    "one small loop, numba's import included": SMALL,
    "the first ask of a default session": "import coterie; coterie.Session(8, 3, 2).ask()",
    "the first ask of BOC": 'import coterie; coterie.Session(8, 3, 2, method="boc", noise=1.0).ask()',
    "everything (coterie compile)": "from coterie.simulate.compiling import compile_everything; compile_everything()",
}
_SECONDS = "\nimport time; print(time.process_time())"


def seconds(code: str, cache: str) -> float:
    """CPU seconds of a process that runs this, with numba's cache in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", code + _SECONDS]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(found.stdout.split()[-1])


def main() -> None:
    """Print cold and warm seconds of each step."""
    small = 0.0
    for what, code in STEPS.items():
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = seconds(code, cache), seconds(code, cache)
        small = small or cold
        print(f"{what}: {cold:.1f} s cold ({cold / small:.1f} times the small loop), {warm:.1f} s afterwards")


if __name__ == "__main__":
    main()
