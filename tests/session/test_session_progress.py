"""Progress: claims proven and items settled, counted again by a plain loop; a share that moves; what a memory keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from coterie.methods.croc.proof import CORES, frozen_tests
from coterie.session.saved import from_memory, memory_of

CENTERS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.2]])
N_ARMS, K = 12, 3


def session_for(**settings: Any) -> coterie.Session:
    clusters = None if "resolution" in settings else K
    return coterie.Session(N_ARMS, clusters, 2, **{"noise": 1.0, **settings})


def steps(session: coterie.Session, seed: int, most: int = 4000) -> Any:
    """One measurement after the other, up to the end."""
    rng = np.random.default_rng(seed)
    while not session.done and session.t < most:
        for ticket in session.open(1):
            session.tell(ticket.arm, CENTERS[ticket.arm % K] + rng.standard_normal(2), ticket.number)
        yield session


def counted_again(session: coterie.Session) -> tuple[int, int]:
    """(differences proven, items settled) of a CROC run, cell by cell."""
    run = session._conversation.run._run  # type: ignore[attr-defined]
    slot, labels = run.matching_epoch, run.labels
    lacking: set[tuple[int, int]] = set()
    if slot >= 0:
        tests = frozen_tests(run, slot)
        first_of = [int(core[0]) for core in run.frozen(slot).core.reshape(K, -1)]
        for i in range(tests.arm.size):
            if not tests.met[i]:
                lacking.add((int(tests.arm[i]), int(labels[first_of[tests.group[i]]])))
                if tests.kind[i] == CORES:
                    lacking.add((int(tests.against[i]), int(labels[tests.arm[i]])))
    proven, settled = 0, 0
    for arm in range(N_ARMS):
        others = [k for k in range(K) if k != labels[arm]]
        by_pair = [run.has_pairs and bool(run.settled[arm, k]) for k in others]
        by_test = [slot >= 0 and (arm, k) not in lacking for k in others]
        met = [one or other for one, other in zip(by_pair, by_test, strict=True)]
        proven += sum(met)
        settled += all(met)
    return proven, settled


@pytest.mark.parametrize("noise", [1.0, None])
def test_progress_matches_a_plain_count_and_moves_to_the_end(noise: Any) -> None:
    session = session_for(noise=noise)
    shares, seen = [], 0
    for now in steps(session, 3):
        progress = now.progress
        assert progress is now.progress  # computed once
        assert 0.0 <= progress.share <= 1.0
        assert (progress.needed, progress.items) == (N_ARMS * (K - 1), N_ARMS)
        shares.append(progress.share)
        if not now.done and now.labels is not None:
            assert (progress.proven, progress.settled) == counted_again(now)
            seen += 0 < progress.proven < progress.needed
    assert seen > 10  # it was somewhere in between for a while
    assert session.progress.share == 1.0
    assert session.progress.proven == session.progress.needed == 24
    assert session.progress.settled == N_ARMS
    assert session.progress.words == "all 24 differences proven, all 12 items settled"
    quarters = [float(np.median(part)) for part in np.array_split(np.array(shares), 4)]
    assert quarters == sorted(quarters)
    assert quarters[2] - quarters[0] > 0.2  # it does not wait for the end


def test_nothing_is_known_before_the_first_measurement() -> None:
    session = session_for()
    progress = session.progress
    assert (progress.proven, progress.settled, progress.share) == (0, 0, 0.0)
    assert progress.words == "0 of 12 items measured at least once"
    assert session.remaining is None


def test_a_resolution_counts_the_tests_of_its_candidate() -> None:
    session = session_for(resolution=(0.6, 1.9))
    between = 0
    for now in steps(session, 4):
        epoch, progress = now._conversation.run.epoch, now.progress
        if epoch is None or now.done:
            continue
        tests = list(zip(epoch.item.tolist(), epoch.reference.tolist(), (epoch.met_at > 0).tolist(), strict=True))
        open_arms = {arm for *arms, met in tests if not met for arm in arms}
        assert (progress.proven, progress.needed) == (sum(met for *_, met in tests), len(tests))
        assert progress.settled == N_ARMS - len(open_arms)
        between += 0 < progress.proven < progress.needed
    assert between > 5
    assert session.progress.words.startswith("all ")
    assert session.progress.proven == session.progress.needed > 0


def test_the_papers_methods_prove_everything_at_once() -> None:
    session = session_for(method="boc", threshold="heuristic")
    shares = []
    for now in steps(session, 5):
        if not now.done:
            assert now.progress.proven == now.progress.settled == 0
            shares.append(now.progress.share)
    assert max(shares[: len(shares) // 2]) > 0.1
    assert shares[-1] > 0.5
    assert session.progress.share == 1.0
    assert "no proof" in session.progress.words


@pytest.mark.parametrize("settings", [{}, {"noise": None}, {"method": "boc"}])
def test_a_session_from_its_memory_shows_the_same(settings: dict[str, Any]) -> None:
    session = session_for(**settings)
    for now in steps(session, 6, most=60):
        assert not now.done
    found = memory_of(session)
    assert found is not None
    again = from_memory(session.settings, *found)
    assert (again.progress, again.remaining) == (session.progress, session.remaining)
    assert again.within(50) == session.within(50)
