"""`coterie.verify` refuses a certificate after any single change to it or to the log that matters."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from plain_certificates import counts_read

import coterie
from coterie.evidence.pairs import BLOCK_RATIOS, RATIO_WEIGHTS, paired_evidence

Certificate = dict[str, Any]
Events = list[dict[str, Any]]
Case = Callable[[str], tuple[Certificate, Events]]

NAMES = [
    "made by pairs",
    "made by epoch",
    "easy",
    "easy 1e-10",
    "easy 1e-300",
    "moderate",
    "moderate in batches",
    "moderate 1e-10",
    "challenging",
    "noise",
    "one dimension",
    "iris",
    "many dimensions",
    "overlapping",
    "overlapping, noise",
    "beyond the room",
    "kept 0.2-epoch",
    "kept 0.2-pairs",
]


READ = {
    "format", "n_arms", "n_clusters", "dim", "delta", "log_inverse_delta", "alpha", "equal_pairs", "pair_level",
    "prefix_room", "noise", "t", "labels", "by", "representatives", "epochs", "pairs", "epoch",
}  # fmt: skip
OPTIONAL = {"homogeneity", "alarm"}  # read where they are there


# Single changes of the certificate.


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    if children is None:
        yield path, node
    else:
        for key, child in children:
            yield from leaves(child, (*path, key))


def with_change(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at this place; what does not change is shared."""
    if not path:
        return value
    changed = copy.copy(document)
    changed[path[0]] = with_change(document[path[0]], path[1:], value)
    return changed


def noticeable(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [value + "x", ""]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value * 1.01 + 0.01, value * 0.99 - 0.01]
    return [0.5, 1]  # None: no noise, or an arm against its own group


def stacks_of(events: Events, noise: Any) -> dict[int, list[Any]]:
    stacks: dict[int, list[Any]] = defaultdict(list)
    results = [event for event in events if event["event"] == "result"]
    values = np.array([event["values"] for event in results])
    for event, value in zip(results, coterie.Noise.of(noise, values.shape[1]).whiten(values), strict=True):
        stacks[event["arm"]].append(value)
    return stacks


def matters(certificate: Certificate, events: Events, path: tuple[Any, ...], value: Any) -> bool:
    """Whether a number that is used changes; those that are not are listed here, with why."""
    if path[0] not in READ | OPTIONAL:
        return False  # for people who read it
    if path == ("alarm",):
        return value is not None
    if path == ("t",):  # results after the last one that is used may be counted or not
        results = [i for i, event in enumerate(events) if event["event"] == "result"]
        return bool(value > len(results) or results[value] <= used_rows(certificate, events)[-1])
    if path == ("noise",):
        return bool(value != 1)  # the same noise, said otherwise
    if path[0] == "representatives" and certificate["by"] == "epoch":
        return not (0 <= value < certificate["n_arms"]) or certificate["labels"][value] != path[1]
    if path[:2] in (("pairs", "pulls_arm"), ("pairs", "pulls_representative")) and isinstance(value, int):
        return matters_in_pairs(certificate, stacks_of(events, certificate["noise"]), path, value)
    if path[:2] == ("epoch", "by_pairs") and path[-1] in (3, 4):  # as in the table of pairs
        row = [*certificate["epoch"]["by_pairs"][path[2]]]
        row[path[-1]] = value
        stacks = stacks_of(events, certificate["noise"])
        return evidence_moved(certificate, stacks, row[0], row[1], row[3], row[4], row[2])
    if path[0] == "epoch" and path[1].endswith("_tests") and path[-1] == 3:
        return matters_in_rounds(certificate, events, path, value)
    return True


def matters_in_pairs(certificate: Certificate, stacks: Any, path: tuple[Any, ...], value: int) -> bool:
    """The evidence may be the same with a result more or less: then nothing that is used has changed."""
    m, k = path[2:]
    if certificate["labels"][m] == k:
        return True
    changed = with_change(certificate, path, value)["pairs"]
    n, other = changed["pulls_arm"][m][k], changed["pulls_representative"][m][k]
    lead = certificate["representatives"][k]
    return evidence_moved(certificate, stacks, m, lead, n, other, changed["evidence"][m][k])


def matters_in_rounds(certificate: Certificate, events: Events, path: tuple[Any, ...], new: Any) -> bool:
    """A round in which the arm or its pool rests changes nothing."""
    if new not in certificate["epoch"]["rounds"]:
        return True
    rounds = {event["round"]: event for event in events if event["event"] == "round"}
    arm, other, _, old = certificate["epoch"][path[1]][path[2]]
    pulls = dict(rounds[max(old, new)]["pulls"])
    return arm in pulls and any(m in pulls for m in pool_of(certificate, path[1], other))


def pool_of(certificate: Certificate, kind: str, other: int) -> list[int]:
    """The arms that a frozen test of this kind compares an arm with."""
    epoch = certificate["epochs"][certificate["epoch"]["number"]]
    if kind == "core_tests":
        return list(epoch["cores"][other])
    if kind == "group_tests":
        return [m for m, label in enumerate(epoch["labels"]) if label == other]
    return [other]


def evidence_moved(
    certificate: Certificate, stacks: dict[int, Any], a: int, b: int, n_a: int, n_b: int, stated: float
) -> bool:
    if not (1 <= n_a <= len(stacks[a]) and 1 <= n_b <= len(stacks[b])):
        return True
    found = max(ways_of_pair(certificate, stacks, a, b, n_a, n_b))[0]
    return abs(found - stated) > 1e-5 * max(1, abs(stated))


def ways_of_pair(
    certificate: Certificate, stacks: dict[int, Any], a: int, b: int, n_a: int, n_b: int
) -> list[tuple[float, int, int, int, int]]:
    """The evidence of each block ratio and side, with the arms and how many results of each it reads."""
    ways = []
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True):
        for i, j, n_i, n_j in ((a, b, n_a, n_b), (b, a, n_b, n_a)):
            n = counts_read(n_i, n_j, ratio, certificate["prefix_room"])
            if n > 0:
                value = paired_evidence(stacks[i][:n], stacks[j][: n * ratio], ratio)
                ways.append((math.log(weight) + value, i, n, j, n * ratio))
    return ways


# A few of every kind at once, with a third of the changes; all of them in the slow tests.
every_few = pytest.mark.parametrize(
    ("name", "share"),
    [pytest.param(name, 1 / 3, id=name) for name in NAMES[::5]]
    + [pytest.param(name, 1.0, marks=pytest.mark.slow, id=f"{name}, all") for name in NAMES],
)


@every_few
def test_verify_refuses_any_changed_number_of_the_certificate(case: Case, name: str, share: float) -> None:
    certificate, events = case(name)
    rng = np.random.default_rng(len(name))
    scalars = [
        leaf for leaf in leaves(certificate) if len(leaf[0]) == 1 or (leaf[0][0] == "epochs" and len(leaf[0]) == 3)
    ]
    inside = [leaf for leaf in leaves(certificate) if leaf not in scalars]
    limit = int(share * (400 if name.startswith("made") else 100))
    picked = rng.permutation(len(inside))[:limit]
    tried = 0
    for path, value in scalars + [inside[i] for i in picked]:
        for other in noticeable(value):
            if matters(certificate, events, path, other):
                verdict = coterie.verify(with_change(certificate, path, other), events)
                assert not verdict.valid, f"{path}: {value!r} -> {other!r}"
                assert verdict.problems
                assert all("\n" not in problem for problem in verdict.problems)
                tried += 1
    assert tried > 60 * share


@pytest.mark.parametrize(
    "name", ["made by pairs", "made by epoch", "moderate", "overlapping, noise", "beyond the room"]
)
def test_verify_refuses_certificates_with_a_part_missing(case: Case, name: str) -> None:
    certificate, events = case(name)
    for key in READ & set(certificate):
        without = {k: v for k, v in certificate.items() if k != key}
        assert not coterie.verify(without, events), key
    needed = READ | {"log_format", "remarks", "assumes", "homogeneity"}  # these of logs that say their format
    assert coterie.verify({key: value for key, value in certificate.items() if key in needed}, events)
    part = certificate["by"]
    for key in certificate[part]:
        changed = copy.deepcopy(certificate)
        del changed[part][key]
        assert not coterie.verify(changed, events), key
        if key == "by_pairs":  # several of these may settle the same
            changed = copy.deepcopy(certificate)
            changed[part][key].clear()
            assert not coterie.verify(changed, events) or not certificate[part][key]
        elif isinstance(certificate[part][key], list) and certificate[part][key]:
            for drop in (0, -1):
                changed = copy.deepcopy(certificate)
                del changed[part][key][drop]
                # the last round of an epoch may have been used by no test
                if key != "rounds" or changed[part][key][-1:] < [max(t[3] for t in certificate[part]["core_tests"])]:
                    assert not coterie.verify(changed, events), (key, drop)


def test_prefix_room_matters_where_more_was_read(case: Case) -> None:
    certificate, events = case("made by pairs")
    assert coterie.verify(certificate | {"prefix_room": 16}, events)  # nobody has more results than that
    assert coterie.verify(certificate | {"prefix_room": 32}, events)
    assert not coterie.verify(certificate | {"prefix_room": 8}, events)


def test_the_verdict_says_what_failed(case: Case) -> None:
    certificate, events = case("made by pairs")
    verdict = coterie.verify(with_change(certificate, ("pairs", "evidence", 4, 2), 3.0), events)
    assert len(verdict.problems) == 1
    assert verdict.problems[0].startswith("evidence that arms 4 and 3 differ: the certificate says 3, the log gives ")
    certificate, events = case("made by epoch")
    test = certificate["epoch"]["group_tests"][0]
    changed = copy.deepcopy(certificate)
    del changed["epoch"]["group_tests"][0]
    (problem,) = coterie.verify(changed, events).problems
    assert problem.startswith(f"arm {test[0]} is not shown to differ from group {test[1]}: its evidence must reach ")
    changed = copy.deepcopy(certificate)
    changed["epoch"]["core_tests"].clear()
    assert len(coterie.verify(changed, events).problems) <= 20


def test_evidence_below_its_level_is_refused_even_when_it_is_stated_truly(case: Case) -> None:
    """All tests of an epoch one round before the last of them was met."""
    certificate, events = case("made by epoch")
    stop = max(test[3] for test in certificate["epoch"]["core_tests"])
    earlier = stop - 1
    assert earlier > 2
    changed = copy.deepcopy(certificate)
    for kind in ("group_tests", "core_tests", "pair_tests"):
        for test in changed["epoch"][kind]:
            test[3] = min(test[3], earlier)
    first = coterie.verify(changed, events)
    # take over what the verdict recomputed, so that only the level is left to fail
    for problem in first.problems:
        for kind, words in (
            ("group_tests", " and group "),
            ("core_tests", " and the core of group "),
            ("pair_tests", " and arm "),
        ):
            for test in changed["epoch"][kind]:
                if problem.startswith(f"evidence that arm {test[0]}{words}{test[1]} differ at round {test[3]}:"):
                    test[2] = float(problem.rsplit(" ", 1)[1])
    second = coterie.verify(changed, events)
    assert not second
    assert all("is not shown to differ" in problem or "are not shown" in problem for problem in second.problems)


# Single changes of the log.


def used_rows(certificate: Certificate, events: Events) -> list[int]:
    """Places in the log whose values enter a number of the certificate, by brute force."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, event in enumerate(events):
        if event["event"] == "result":
            places[event["arm"]].append(place)
    stacks = stacks_of(events, certificate["noise"])
    used: set[int] = set()

    def use_pair(a: int, b: int, n_a: int, n_b: int) -> None:
        _, i, n_i, j, n_j = max(ways_of_pair(certificate, stacks, a, b, n_a, n_b))
        used.update(places[i][:n_i], places[j][:n_j])

    if certificate["by"] == "pairs":
        table = certificate["pairs"]
        for (m, label), (k, lead) in product(
            enumerate(certificate["labels"]), enumerate(certificate["representatives"])
        ):
            if k != label:
                use_pair(m, lead, table["pulls_arm"][m][k], table["pulls_representative"][m][k])
        return sorted(used)
    for a, b, _, n_a, n_b in certificate["epoch"]["by_pairs"]:
        use_pair(a, b, n_a, n_b)
    for kind in ("group_tests", "core_tests", "pair_tests"):
        for arm, other, _, last in certificate["epoch"][kind]:
            used |= used_by_test(certificate, events, arm, pool_of(certificate, kind, other), last)
    return sorted(used)


def used_by_test(certificate: Certificate, events: Events, arm: int, pool: list[int], last: int) -> set[int]:
    """Places of what a frozen test reads: its groups before the freeze, and its arms in the rounds up to `last`."""
    epoch = certificate["epochs"][certificate["epoch"]["number"]]
    labels, number = epoch["labels"], epoch["number"]
    frozen = next(i for i, e in enumerate(events) if e["event"] == "freeze" and e["epoch"] == number)
    groups = {labels[arm], labels[pool[0]]}
    pulls = {e["round"]: dict(e["pulls"]) for e in events if e["event"] == "round" and e["epoch"] == number}
    rounds = {r for r, pulled in pulls.items() if r <= last and arm in pulled and any(m in pulled for m in pool)}
    used = set()
    for i, event in enumerate(events):
        if event["event"] == "result":
            before = i < frozen and labels[event["arm"]] in groups
            if before or (event["arm"] in (arm, *pool) and event["round"] in rounds):
                used.add(i)
    return used


def fits_round_1(events: Events, event: dict[str, Any]) -> bool:
    """Whether a result outside rounds could as well be the one that round 1 misses: then that would change nothing."""
    composed = next((dict(e["pulls"]) for e in events if e["event"] == "round" and e["round"] == 1), {})
    came = sum(e["event"] == "result" and e["round"] == 1 and e["arm"] == event["arm"] for e in events)
    return bool(event["round"] == 0 and came < composed.get(event["arm"], 0))


@every_few
def test_verify_refuses_a_changed_result(case: Case, name: str, share: float) -> None:
    certificate, events = case(name)
    rng = np.random.default_rng(40)
    rows = used_rows(certificate, events)
    extra = {"event": "result", "arm": 0, "round": 0, "values": [0.25] * certificate["dim"]}
    labels = certificate["labels"]
    for place in rng.permutation(rows)[: int(60 * share)]:
        event = events[place]
        q = int(rng.integers(certificate["dim"]))
        larger = with_change(events, (place, "values", q), event["values"][q] + 0.7 * (1 + abs(event["values"][q])))
        changes = {
            "value": larger,
            # in another group: the same result of another arm of the group may do as well
            "arm": with_change(
                events, (place, "arm"), next(m for m, g in enumerate(labels) if g != labels[event["arm"]])
            ),
            "dropped": [*events[:place], *events[place + 1 :]],
            "dropped, and one more at the end": [*events[:place], *events[place + 1 :], extra],
            "short": with_change(events, (place, "values"), event["values"][:-1]),
            "round": with_change(
                events, (place, "round"), event["round"] + (10**6 if fits_round_1(events, event) else 1)
            ),
        }
        for what, changed in changes.items():
            assert not coterie.verify(certificate, changed), f"{what}: {place}, {event}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["made by epoch", "moderate", "moderate 1e-10", "challenging", "overlapping"])
def test_verify_refuses_changed_rounds_and_freezes(case: Case, name: str) -> None:
    certificate, events = case(name)
    rng = np.random.default_rng(50)
    assert certificate["by"] == "epoch"
    number = certificate["epoch"]["number"]
    last = max(t[3] for kind in ("group_tests", "core_tests", "pair_tests") for t in certificate["epoch"][kind])
    rounds = [i for i, e in enumerate(events) if e["event"] == "round"]
    used = [i for i in rounds if events[i]["epoch"] == number and events[i]["round"] <= last]
    for place in rng.permutation(used)[:8]:
        event = events[place]
        pulls = event["pulls"]
        absent = next((m for m in range(certificate["n_arms"]) if m not in dict(pulls)), None)
        changes = {
            "count": with_change(events, (place, "pulls", 0, 1), pulls[0][1] + 1),
            "arm missing": with_change(events, (place, "pulls"), pulls[1:]),
            "arm twice": with_change(events, (place, "pulls"), [*pulls, pulls[0]]),
            "epoch": with_change(events, (place, "epoch"), number + 1 if number == 0 else number - 1),
            "number": with_change(events, (place, "round"), event["round"] + 1),
            "dropped": [*events[:place], *events[place + 1 :]],
            "after its first result": after_its_first_result(events, place),
        }
        if absent is not None:
            changes["arm added"] = with_change(events, (place, "pulls"), [*pulls, [absent, 1]])
            changes["other arm"] = with_change(events, (place, "pulls", 0, 0), absent)
        for what, changed in changes.items():
            assert not coterie.verify(certificate, changed), f"{what}: {place}"
    for place in [i for i, e in enumerate(events) if e["event"] == "freeze"]:
        event = events[place]
        before, after = events[:place], events[place + 1 :]
        label, core = event["labels"][0], event["cores"][0]
        result = next(i for i, e in enumerate(after) if e["event"] == "result")
        changes = {
            "earlier": [*before[:-1], event, before[-1], *after],
            "later": [*before, *after[: result + 1], event, *after[result + 1 :]],
            "dropped": [*before, *after],
            "twice": [*before, event, event, *after],
            "labels": with_change(events, (place, "labels", 0), (label + 1) % certificate["n_clusters"]),
            "core": with_change(events, (place, "cores", 0), core[:-1]),
            "epoch": with_change(events, (place, "epoch"), event["epoch"] + 1),
        }
        for what, changed in changes.items():
            assert not coterie.verify(certificate, changed), f"{what}: {place}"


def after_its_first_result(events: Events, place: int) -> Events:
    """The log with the round composed at this place only after its first result."""
    number = events[place]["round"]
    first = next(
        i for i in range(place, len(events)) if events[i]["event"] == "result" and events[i]["round"] == number
    )
    return [*events[:place], *events[place + 1 : first + 1], events[place], *events[first + 1 :]]


@pytest.mark.parametrize("name", ["made by epoch", "moderate", "challenging", "overlapping"])
def test_verify_refuses_rows_that_change_places_across_rounds(case: Case, name: str) -> None:
    certificate, events = case(name)
    rng = np.random.default_rng(60)
    results = [i for i, e in enumerate(events) if e["event"] == "result"]
    tried = 0
    while tried < 60:
        i, j = (int(k) for k in rng.choice(results, 2))
        if events[i]["round"] == events[j]["round"]:
            continue
        changed = [*events]
        changed[i], changed[j] = events[j], events[i]
        first, second = min(i, j), max(i, j)
        late = events[second]["round"] > events[first]["round"]
        # rounds may overlap: refused is what comes before its round is composed
        if late and any(e["event"] == "round" and e["round"] == events[second]["round"] for e in changed[first:]):
            assert not coterie.verify(certificate, changed), (i, j)
            tried += 1


def test_verify_refuses_results_whose_arms_are_exchanged(case: Case) -> None:
    certificate, events = case("made by pairs")
    rng = np.random.default_rng(70)
    for _ in range(40):
        i, j = (int(k) for k in rng.choice(used_rows(certificate, events), 2, replace=False))
        if events[i]["arm"] != events[j]["arm"]:
            changed = with_change(with_change(events, (i, "arm"), events[j]["arm"]), (j, "arm"), events[i]["arm"])
            assert not coterie.verify(certificate, changed)


def test_verify_refuses_reordered_logs(case: Case) -> None:
    rng = np.random.default_rng(80)
    for name in ("made by pairs", "made by epoch", "moderate"):
        certificate, events = case(name)
        assert not coterie.verify(certificate, events[::-1])
        assert not coterie.verify(certificate, [events[i] for i in rng.permutation(len(events))])


def test_verify_refuses_the_log_of_another_problem(case: Case) -> None:
    names = ["made by pairs", "made by epoch", "moderate", "easy", "noise", "one dimension", "many dimensions"]
    for one in names:
        for other in names:
            assert coterie.verify(case(one)[0], case(other)[1]).valid == (one == other), (one, other)
