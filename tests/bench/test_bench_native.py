"""The engine beside the old one: two processes that do the same, and the table."""

from __future__ import annotations

import sys

import pytest

from bench import native, native_work
from bench.part import ROOT, Headline


def test_cases_of_the_table_are_measured() -> None:
    known = native_work.cases()
    assert {*native.PULLS, *native.LIVE, "BOC, d=400", "400 Gaussians"} <= set(known)
    assert {f"{case}, threads: {n}" for case in native.THREADS for n in (1, 2)} <= set(known)


def test_an_answer_adds_up_and_has_a_digest_of_what_came_out() -> None:
    seeds: list[int] = []

    def case(seed: int) -> tuple[float, int, list[int]]:
        seeds.append(seed)
        return 0.25, 10, [seed % 2]

    found = native_work.answer(case, 3, 4)
    assert (found["seconds"], found["count"], seeds) == (1.0, 40, [3000, 3001, 3002, 3003])
    assert found["digest"][0] == found["digest"][2] != found["digest"][1]


def test_table_has_the_bound_beside_each_figure() -> None:
    middle, text = native.quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (middle, text) == (3.0, "3.000× (2.000 – 4.000)")
    lines = native.table([Headline("a pull", text, "≤ 1×", False), Headline("another", text)]).splitlines()
    assert lines[2:] == [f"| a pull | {text} | ≤ 1× | ✗ |", f"| another | {text} |  |  |"]


@pytest.mark.slow
def test_two_processes_do_the_same_in_turn() -> None:
    here = native.Tree(ROOT, sys.executable, installed=True)
    pair = native.Pair(here, here, quick=True)
    pair.rounds = 2
    try:
        figures = list(native.compared(pair, {"CROC, challenging": 1.0}))
        assert [one.asked for one in figures] == ["≤ 1×"]
        pair.workers[1].measure = lambda case, seed, often: {"digest": [], "count": 0, "seconds": 1.0}  # type: ignore[method-assign]
        with pytest.raises(SystemExit, match="did not decide the same in block 1"):
            list(pair.blocks("CROC, challenging"))
    finally:
        pair.end()
