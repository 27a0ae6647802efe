"""Instructions a pull, which no other program on the machine can disturb, and which steps they belong to.

One process under valgrind's callgrind plays all cases; `os.getppid` marks where a stretch begins and ends, because
callgrind writes what it counted whenever that function is entered. Compiled steps have no names there, only addresses:
the symbols of numba's cached machine code give the names back. Steps that are inlined into the loop (`advance`) cannot
be told apart in it; the oracle, which plays the same loop without an allocation, gives the allocation's part of it,
and the random numbers, drawn alone, give theirs.

valgrind does not know AVX-512, so the code is compiled for a processor without it, into a cache of its own.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import struct
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from bench.instances import drawn, named, separated
from bench.part import ROOT, Column, Headline, LeftOutError, Part, Progress, Row, number, times
from bench.rounds import NO_ARMS, apart, endless
from coterie.methods import METHODS

CACHE = ROOT / "build" / "numba-valgrind"
STEPS = ("draw", "add the measurement", "guess", "allocation", "statistic", "choose the arm, and the loop")

CASES: dict[str, tuple[str, int]] = {
    "Iris": ("boc", 2_000),
    "Yeast": ("boc", 4_000),
    "M=500 K=10 d=400": ("boc", 1_000),
    "M=100 000 K=10 d=8": ("boc", 2_000),
    "M=1 000 K=10 d=8 gap 0.5": ("croc", 4_000),
}
"""Method, and pulls of the first stretch; the second is twice as long."""

DRAWS = (4, 8, 400)
"""Dimensions for which the random numbers are counted alone."""


def instance_of(name: str) -> Any:
    shapes = {"M=500 K=10 d=400": (500, 10, 400), "M=100 000 K=10 d=8": (100_000, 10, 8)}
    if "gap" in name:
        return drawn(1_000, 10, 8, 0.5)
    return separated(*shapes[name]) if name in shapes else named(name)


def is_certified(stretch: str) -> bool:
    """Whether a stretch plays a method with certificates: it plans at intervals, so its pulls are not all alike."""
    return stretch in METHODS and METHODS[stretch].certifies


def stretches() -> list[tuple[str, str, int]]:
    """Case, method, pulls; in the order in which the child plays them."""
    found = []
    for name, (method, pulls) in CASES.items():
        found += [(name, one, pulls) for one in (("boc", "oracle") if method == "boc" else (method,))]
    return found + [(f"d={dim}", "draw", 1_000) for dim in DRAWS]


def child(marks: bool) -> dict[str, Any]:
    """Play all stretches; gives the addresses and names of the compiled steps."""
    from bench import rivals
    from coterie.engine import advance
    from coterie.engine.croc import drive
    from coterie.engine.croc.run import CrocRun

    mark = os.getppid if marks else int
    rng = np.random.default_rng(0)
    for name, method, pulls in stretches():
        if method == "draw":
            out = np.zeros(int(name.split("=")[1]))
            rivals.draw(rng, 1, out)
            plays: Any = lambda steps, out=out: rivals.draw(rng, steps, out)  # noqa: E731
        else:
            instance = instance_of(name)
            world = instance.centers, instance.labels, rng
            if is_certified(method):
                croc = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, -np.log(0.1))
                plays = lambda steps, run=croc, world=world: run.play(steps, *world)  # noqa: E731
            else:
                paper = endless(instance, method)
                plays = lambda steps, run=paper, world=world: run.play(steps, *world, NO_ARMS)  # noqa: E731
            plays(instance.n_arms + 1_000)
        mark()
        plays(pulls if marks else 2)
        mark()
        plays(2 * pulls if marks else 2)
        mark()
    return {f"{address:#018x}": name for entry in (advance.advance, drive.drive) for address, name in named_at(entry)}


def named_at(entry: Any) -> list[tuple[int, str]]:
    """Address and name (module.function) of all functions in the machine code of an entry, from numba's cache."""
    files = list(Path(entry._cache.cache_path).glob(f"*.{entry.py_func.__name__}-*.nbc"))
    for loaded in entry.overloads.values():  # one for each combination of types that it was called with
        own = loaded.fndesc.llvm_func_name
        for data in (path.read_bytes() for path in files):
            symbols = elf_functions(data[data.index(b"\x7fELF") :])
            if own in symbols:
                base = loaded.library.get_pointer_to_function(own) - symbols[own]
                return [(base + offset, plain(name)) for name, offset in symbols.items()]
    raise RuntimeError(f"no machine code of {entry.py_func.__name__} in {entry._cache.cache_path}")


def elf_functions(data: bytes) -> dict[str, int]:
    """Names and offsets of the functions in a relocatable ELF file of 64 bits."""
    start, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    table = next(section for section in sections if section[1] == 2)  # SHT_SYMTAB
    names = sections[table[6]]
    found = {}
    for at in range(table[4], table[4] + table[5], 24):
        name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        if info & 15 == 2 and section:  # STT_FUNC, defined here
            begin = names[4] + name
            found[data[begin : data.index(b"\0", begin)].decode()] = value
    return found


def plain(symbol: str) -> str:
    """coterie.engine.guess.sum_up.12 is guess.sum_up, and so is numba's _ZN7coterie6engine5guess6sum_upB…."""
    if symbol.startswith("coterie."):
        return ".".join([part for part in symbol.split(".") if not part.isdigit()][-2:])
    parts, at = [], symbol.find("_ZN") + 3
    while match := re.match(r"\d+", symbol[at:]):
        begin = at + match.end()
        at = begin + int(match.group())
        parts.append(symbol[begin:at])
    return ".".join(parts[-2:]) or symbol


def counted(path: Path) -> Counter[str]:
    """Instructions by function of one callgrind dump, without those of the functions called."""
    found: Counter[str] = Counter()
    names: dict[str, str] = {}
    here, of_a_call = "", False
    for line in path.read_text().splitlines():
        if line.startswith("fn="):
            match = re.match(r"fn=(\(\d+\))(?: (.*))?", line)
            assert match is not None
            if match[2]:
                names[match[1]] = match[2]
            here = names[match[1]]
        elif line.startswith("cfn=") and " " in line:
            key, name = line[4:].split(" ", 1)
            names[key] = name
        elif line.startswith("calls="):
            of_a_call = True
        elif re.match(r"[\d+*-]", line):
            if not of_a_call:
                found[here] += int(line.split()[-1])
            of_a_call = False
    return found


def step_of(name: str) -> str:
    """The step of Alg. 1 that a function belongs to."""
    module, _, function = name.rpartition(".")
    if function in ("_draw", "draw") or not module:
        return "statistic" if "log" in name and "log1p" not in name else "draw"  # numpy's generator; libm's logarithm
    if function in ("_place", "add_measurement", "cache_measurement"):
        return "add the measurement"
    if module in ("guess", "maximin", "vectors"):
        return "guess"
    if module in ("allocation", "forest", "barrier"):
        return "allocation"
    return "statistic" if function in ("closest_alternative_now", "threshold_now") else STEPS[-1]


def environment() -> dict[str, str]:
    """For a processor that valgrind knows."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(CACHE), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if platform.machine() in ("x86_64", "AMD64"):
        env["NUMBA_CPU_NAME"] = "haswell"
        env["NUMBA_CPU_FEATURES"] = "+avx,+avx2,+fma,+sse4.2,+bmi,+bmi2,+popcnt,+lzcnt,+f16c,+movbe,+xsave,+cx16"
    return env


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row a case, with the shares of the steps; and one for each dimension's random numbers."""
    if quick:
        raise LeftOutError("valgrind takes minutes; it is not part of a quick run")
    if shutil.which("valgrind") is None:
        raise LeftOutError("valgrind is not installed (Debian: apt-get install valgrind)")
    progress.done("compiling for a processor that valgrind knows, once for each version of the engine")
    apart("bench.cycles:child", False, env=environment())
    progress.done("counting", 0.3)
    with tempfile.TemporaryDirectory() as own:
        out = Path(own) / "out"
        tool = ("valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={out}")
        names = apart("bench.cycles:child", True, env=environment(), before=tool)
        dumps = sorted(Path(own).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        if len(dumps) != 3 * len(stretches()):
            raise LeftOutError(f"callgrind wrote {len(dumps)} parts instead of {3 * len(stretches())}")
        found = {}
        for i, (name, method, pulls) in enumerate(stretches()):
            short, long = (counted(dumps[3 * i + which]) for which in (1, 2))
            found[name, method] = per_pull(short, long, pulls, method, names)
    return described(found)


def per_pull(short: Counter[str], long: Counter[str], pulls: int, method: str, names: dict[str, str]) -> Counter[str]:
    """By function: the longer stretch less the shorter, so that Python's own part is gone; CROC's two together."""
    together, length = (long + short, 3 * pulls) if is_certified(method) else (long, pulls)
    found: Counter[str] = Counter()
    for function, count in together.items():
        less = 0 if is_certified(method) else short[function]
        name = names.get(function, re.sub(r"[@'.].*", "", function))  # of a library: without version and recursion
        found[name] += (count - less) / length  # type: ignore[assignment]
    return found


def described(found: dict[tuple[str, str], Counter[str]]) -> list[Row]:
    """Rows from the counts by function."""
    rows: list[Row] = []
    for (name, method), counts in found.items():
        total = sum(counts.values())
        row: Row = {"case": name, "method": method, "instructions": total, "steps": {}, "floor": None}
        if method == "boc":
            steps: Counter[str] = Counter()
            for function, count in counts.items():
                steps[step_of(function)] += count
            draw = sum(found[f"d={instance_of(name).dim}", "draw"].values())
            inside = {
                "allocation": counts["advance.advance"] - found[name, "oracle"]["advance.advance"],
                "draw": draw - steps["draw"],
            }
            for step, count in inside.items():
                steps[step] += count
                steps[STEPS[-1]] -= count
            row["steps"] = {step: steps[step] / total for step in STEPS}
            row["floor"] = total / draw
        elif is_certified(method):
            modules: Counter[str] = Counter()
            for function, count in counts.items():
                modules[function.rpartition(".")[0] or "draw, exp, log"] += count
            row["steps"] = {module: count / total for module, count in modules.most_common(8)}
        row["functions"] = dict(counts.most_common(12))
        rows.append(row)
    return rows


def _steps(row: Row) -> str:
    return ", ".join(f"{step} {share:.0%}" for step, share in row["steps"].items() if share >= 0.005)


def headlines(found: list[Row]) -> list[Headline]:
    return [
        Headline(f"{row['case']}: instructions of a pull over those of its draw", times(row["floor"]))
        for row in found
        if row["floor"]
    ]


PART = Part(
    "Instructions a pull, counted by callgrind (no AVX-512), after the first pass over the arms and 1 000 pulls.",
    (
        Column("case", "case", left=True),
        Column("method", "method", left=True),
        Column("instructions", "instructions", number),
        Column("/ its draw", lambda row: row["floor"] or "", lambda value: value and times(value)),
        Column("where they go", _steps, left=True),
    ),
    rows,
    headlines,
    seconds=240,
)
