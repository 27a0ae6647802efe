"""`coterie.plot.evidence` and `coterie.plot.proportions`: a run over time, as it really was."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from known import known

import coterie
from coterie import plot

pytest.importorskip("matplotlib")

METHODS = ("croc", "boc", "boc-linear", "uniform", "oracle")
INST = coterie.Instance([0, 1, 1, 2, 0, 2, 1], [[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])
Steps = dict[int, tuple[float, float]]


def new_session(method: str, **more: Any) -> coterie.Session:
    if method == "boc-linear":
        more["distance_ratio"] = 0.3
    if method == "oracle":
        more["instance"] = INST
    return coterie.Session(INST.n_arms, INST.n_clusters, INST.dim, method=method, **{"noise": 1.0, **more})


def measured(arm: int, rng: np.random.Generator) -> np.ndarray:
    x: np.ndarray = INST.means[arm] + rng.normal(size=INST.dim)
    return x


def disorderly(session: coterie.Session, seed: int, deeds: int) -> Steps:
    """Asks left open, results that overtake, results nobody asked for, asks given up; the evidence as t moves on."""
    rng = np.random.default_rng(seed)
    seen: Steps = {}
    for _ in range(deeds):
        if session.done:
            break
        deed = rng.random()
        before = session.t
        if deed < 0.35 or (deed < 0.92 and not session.pending):
            with contextlib.suppress(coterie.SessionDone):  # what was told since the last plan may be enough
                session.ask(int(rng.integers(1, 3)))
        elif deed < 0.84:
            ticket, arm = session.pending[rng.integers(len(session.pending))]
            session.tell(arm, measured(arm, rng), ticket=ticket)
        elif deed < 0.92:
            session.forget(session.pending[rng.integers(len(session.pending))][0])
        else:
            arm = int(rng.integers(INST.n_arms))
            session.tell(arm, measured(arm, rng))
        if session.t > before:
            seen[session.t] = (session.evidence.statistic, session.evidence.threshold)
    seen[session.t] = (session.evidence.statistic, session.evidence.threshold)  # an ask may have ended it
    return seen


def finish(session: coterie.Session, seed: int = 0) -> coterie.Session:
    rng = np.random.default_rng(seed)
    while not session.done:
        arm = session.ask()
        session.tell(arm, measured(arm, rng))
    return session


def curves(ax: Any) -> tuple[dict[int, float], dict[int, float]]:
    """Statistic and threshold by time, from the first two lines."""
    statistic, threshold = (dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in ax.lines[:2])
    return statistic, threshold


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_evidence_equals_what_the_session_gave_after_every_measurement(method: str, seed: int) -> None:
    session = new_session(method, delta=1e-6, threshold="heuristic")
    seen = disorderly(session, seed, 260)
    saved = session.to_dict()
    statistic, threshold = curves(plot.evidence(session, points=10_000))
    assert list(statistic) == list(seen)
    assert list(statistic.values()) == [value for value, _ in seen.values()]
    assert threshold == {t: limit for t, (_, limit) in seen.items() if np.isfinite(limit)}
    assert max(statistic.values()) > 0
    assert len(statistic) > 40
    assert session.to_dict() == saved  # looking changes nothing


def test_disorder_was_real() -> None:
    """The conversations above do hold results that wait, were given up, and were never asked for."""
    session = new_session("croc", delta=1e-6)
    disorderly(session, 0, 260)
    kinds = [what for what, _ in session.to_dict()["history"]]
    assert {"ask", "tell", "forget"} <= set(kinds)
    tickets = [row["ticket"] for row in session.to_dict()["log"]]
    assert None in tickets
    told = [ticket for ticket in tickets if ticket is not None]
    assert told != sorted(told)
    results = [event["arm"] for event in session.events if event["event"] == "result"]
    assert results != [arm for arm, _ in session.log][: len(results)]


@pytest.mark.parametrize("method", ["croc", "boc"])
def test_few_points_are_some_of_all_and_end_at_the_stop(method: str) -> None:
    session = finish(new_session(method, delta=1e-6, threshold="heuristic"))
    every, limits = curves(plot.evidence(session, points=session.t))
    some, _ = curves(plot.evidence(session, points=20))
    assert list(every) == list(range(1, session.t + 1))
    assert 15 <= len(some) <= 20
    assert some.items() <= every.items()
    assert max(some) == session.t
    assert every[session.t] == session.evidence.statistic >= limits[session.t]
    gaps = np.diff(list(some))
    assert gaps.max() <= 2 * gaps.min()


def test_results_told_after_the_stop_change_nothing() -> None:
    session = finish(new_session("boc", threshold="heuristic"))
    before = curves(plot.evidence(session))
    for arm in range(INST.n_arms):
        session.tell(arm, [50.0, 50.0])
    assert curves(plot.evidence(session)) == before


def test_freezes_and_the_stop_are_marked() -> None:
    session = finish(new_session("croc", delta=1e-12), seed=3)
    frozen_at = [epoch["frozen_at"] for epoch in known(session.certificate)["epochs"]]
    assert frozen_at
    ax: Any = plot.evidence(session)
    marks = {line.get_label(): line.get_xdata()[0] for line in ax.lines[2:] if not line.get_label().startswith("_")}
    assert marks == {"candidate frozen": frozen_at[0], f"stop at $t$ = {session.t}": session.t}
    assert [line.get_xdata()[0] for line in ax.lines[2:]] == [*frozen_at, session.t]
    labels = [str(line.get_label()) for line in plot.evidence(finish(new_session("uniform"))).lines]
    assert not [label for label in labels if "frozen" in label]


def test_several_sessions_are_drawn_as_shares_of_their_thresholds() -> None:
    croc, boc = finish(new_session("croc")), finish(new_session("boc", threshold="heuristic"))
    ax: Any = plot.evidence({"ours": croc, "theirs": boc}, points=5000)
    shares = {line.get_label(): line for line in ax.lines if line.get_label() in ("ours", "theirs")}
    for label, session in (("ours", croc), ("theirs", boc)):
        line = shares[label]
        assert line.get_xdata().tolist() == list(range(1, session.t + 1))
        assert line.get_ydata()[-1] == session.evidence.statistic / session.evidence.threshold
        assert line.get_ydata()[-1] >= 1.0
        assert line.get_ydata()[:-1].max() < 1.0
    stops = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert stops == [croc.t, boc.t]


def test_a_result_of_cluster_will_do() -> None:
    rng = np.random.default_rng(5)
    result = coterie.cluster(lambda arm: measured(arm, rng), INST.n_arms, INST.n_clusters, progress=False, noise=1.0)
    assert curves(plot.evidence(result)) == curves(plot.evidence(result.session))
    one, other = plot.proportions(result, INST), plot.proportions(result.session, INST)
    for line, same in zip(one.lines, other.lines, strict=True):
        assert np.array_equal(line.get_ydata(), same.get_ydata())


# --- shares of the pulls ---------------------------------------------------------------------------------------------


def shares_of(ax: Any, count: int) -> tuple[list[Any], list[float]]:
    """The curves, and the heights of the dashed lines."""
    return ax.lines[:count], [line.get_ydata()[0] for line in ax.lines[count : 2 * count]]


def test_shares_of_clusters_against_the_best_ones() -> None:
    arms = [0, 1, 2, 3, 4, 5, 6, 3, 3, 0]
    lines, best = shares_of(plot.proportions(arms, INST), 3)
    pulled = INST.labels[arms]
    for k, line in enumerate(lines):
        assert line.get_xdata().tolist() == list(range(1, 11))
        assert line.get_ydata() == pytest.approx([np.mean(pulled[:t] == k) for t in range(1, 11)])
        assert line.get_label() == f"cluster {k}: {INST.sizes[k]} arms"
    assert best == pytest.approx([coterie.allocation(INST)[INST.labels == k].sum() for k in range(3)])
    assert sum(best) == pytest.approx(1.0)


def test_few_arms_have_a_curve_each_and_by_decides() -> None:
    small = coterie.Instance([0, 1, 1, 2], INST.centers)
    arms = np.array([0, 1, 2, 3, 1, 1])
    for ax in (plot.proportions(arms, small), plot.proportions(arms, small, by="arm")):
        lines, best = shares_of(ax, 4)
        assert [line.get_ydata()[-1] for line in lines] == pytest.approx([1 / 6, 3 / 6, 1 / 6, 1 / 6])
        assert best == pytest.approx(coterie.allocation(small))
    assert len(shares_of(plot.proportions(arms, small, by="cluster"), 3)[0]) == 3
    assert plot.proportions(arms, small, by="cluster").lines[0].get_label() == "cluster 0: 1 arm"


@pytest.mark.parametrize("method", METHODS)
def test_shares_of_a_session_count_what_it_counted(method: str) -> None:
    session = new_session(method, delta=1e-6, threshold="heuristic")
    disorderly(session, 1, 200)
    lines, _ = shares_of(plot.proportions(session, INST), 3)
    for k, line in enumerate(lines):
        assert line.get_xdata()[-1] == session.t
        assert line.get_ydata()[-1] == session.pulls[INST.labels == k].sum() / session.t


def test_the_best_shares_are_those_under_the_noise_of_the_session() -> None:
    noise = [0.5, 2.0]
    session = new_session("boc", noise=noise)
    for arm in range(INST.n_arms):
        session.tell(arm, INST.means[arm])
    _, best = shares_of(plot.proportions(session, INST), 3)
    white = coterie.Instance(INST.labels, INST.centers / noise)
    assert best == pytest.approx([coterie.allocation(white)[INST.labels == k].sum() for k in range(3)])
    plain = [coterie.allocation(INST)[INST.labels == k].sum() for k in range(3)]
    assert np.abs(np.subtract(best, plain)).max() > 0.01


def test_long_runs_are_thinned_out_but_exact() -> None:
    arms = np.random.default_rng(0).integers(INST.n_arms, size=50_000)
    lines, _ = shares_of(plot.proportions(arms, INST), 3)
    times = lines[0].get_xdata()
    assert times.size <= 2000
    assert (times[0], times[-1]) == (1, 50_000)
    at = int(times[777])
    assert lines[2].get_ydata()[777] == np.mean(INST.labels[arms[:at]] == 2)


def partly(method: str = "boc") -> coterie.Session:
    session = new_session(method)
    session.tell(0, [0.0, 0.0])
    return session


BAD_EVIDENCE = [
    (lambda: 5, {}, TypeError, "got 5"),
    (lambda: {}, {}, ValueError, "at least one session"),
    (lambda: {"a": "b"}, {}, TypeError, "'b'"),
    (lambda: new_session("croc"), {}, ValueError, "has none that count yet"),
    (partly, {}, ValueError, r"measure 6 arms at least once \(\[1, 2, 3, 4, 5, 6\]\)"),
    (lambda: finish(new_session("croc")), {"points": 1}, ValueError, "points must be at least 2, got 1"),
    (lambda: finish(new_session("croc")), {"points": 2.5}, TypeError, "2.5"),
    (lambda: finish(new_session("croc")), {"ax": 1}, TypeError, "ax must be matplotlib Axes, got 1"),
]


@pytest.mark.parametrize(("make", "more", "kind", "named"), BAD_EVIDENCE)
def test_bad_input_of_evidence_is_named(make: Any, more: Any, kind: type[Exception], named: str) -> None:
    with pytest.raises(kind, match=named):
        plot.evidence(make(), **more)


OTHER = coterie.Instance([0, 0, 1], [[0.0], [1.0]])
BAD_SHARES = [
    ([], INST, {}, ValueError, "at least one pull"),
    ([0, 7], INST, {}, ValueError, "unknown arm 7"),
    ([0, 1.5], INST, {}, TypeError, "1.5"),
    ("0123", INST, {}, TypeError, "'0123'"),
    (3, INST, {}, TypeError, "got 3"),
    ([0], "easy", {}, TypeError, "'easy'"),
    ([0], INST, {"by": "colour"}, ValueError, "'colour'"),
    (new_session("croc"), INST, {}, ValueError, "has none that count yet"),
    (partly(), OTHER, {}, ValueError, "the instance has 3 arms and dimension 1, the session 7 and 2"),
]


@pytest.mark.parametrize(("run", "instance", "more", "kind", "named"), BAD_SHARES)
def test_bad_input_of_proportions_is_named(
    run: Any, instance: Any, more: Any, kind: type[Exception], named: str
) -> None:
    with pytest.raises(kind, match=named):
        plot.proportions(run, instance, **more)
