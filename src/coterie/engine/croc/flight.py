"""The rounds under way: their entries, what is still to be asked for, and which of them may be closed.

A round is composed once all asks of the one before are out, whether its results are in or not. Rounds of one epoch are
used in their order (docs/CROC.md, section 4). Entries of all rounds lie in one ring.
"""

from __future__ import annotations

from coterie.engine.compiled import compiled
from coterie.engine.croc.state import ENTRY_TAIL, FLIGHT, OLDEST, OPEN_ROUNDS, ROUND, SHUFFLED, TO_ASK, Croc
from coterie.engine.state import Ints


@compiled
def _room_for(s: Croc, size: int) -> int:
    """Where `size` entries in a row are free, -1 if nowhere."""
    if s.ints[OLDEST] > s.ints[ROUND]:  # none are kept
        return 0 if size <= s.entry_arm.size else -1
    head, tail = s.round_first[s.ints[OLDEST] % FLIGHT], s.ints[ENTRY_TAIL]
    if tail > head:
        if tail + size <= s.entry_arm.size:
            return int(tail)
        return 0 if size < head else -1
    return int(tail) if tail + size < head else -1


@compiled
def start_round(s: Croc, composition: Ints, epoch: int) -> bool:
    """Write down a round; it is then fixed. False, and nothing done, if there is no room for it. INOUT: s."""
    size, pulls = 0, 0
    for m in range(composition.size):
        if composition[m] > 0:
            size += 1
            pulls += composition[m]
    first = _room_for(s, size)
    if first < 0 or s.ints[ROUND] - s.ints[OLDEST] + 1 >= FLIGHT:
        return False
    s.ints[ROUND] += 1
    f = s.ints[ROUND] % FLIGHT
    place, before = first, 0
    for i in range(s.round_scores.shape[1]):
        s.round_scores[f, i] = 0.0
    s.round_pulls[f], s.round_drawn[f] = pulls, 0
    for m in range(composition.size):
        if composition[m] > 0:
            s.entry_arm[place], s.entry_pulls[place], s.entry_asked[place] = m, composition[m], 0
            s.entry_before[place] = before
            before += composition[m]
            for q in range(s.entry_sums.shape[1]):
                s.entry_sums[place, q] = 0.0
            for i in range(s.entry_scores.shape[1]):
                s.entry_scores[place, i] = 0.0
            place += 1
    s.round_epoch[f], s.round_first[f], s.round_size[f] = epoch, first, size
    s.round_left[f], s.round_unasked[f], s.round_cursor[f] = pulls, pulls, first
    s.ints[ENTRY_TAIL] = place
    s.ints[OPEN_ROUNDS] += 1
    s.ints[TO_ASK] += pulls
    return True


@compiled
def entry_of(s: Croc, number: int, arm: int) -> int:
    """The arm's entry in a round that is under way, -1 if there is none."""
    if number < s.ints[OLDEST] or number > s.ints[ROUND] or s.round_left[number % FLIGHT] < 0:
        return -1
    low = s.round_first[number % FLIGHT]
    high = low + s.round_size[number % FLIGHT]
    while low < high:
        middle = (low + high) // 2
        if s.entry_arm[middle] < arm:
            low = middle + 1
        else:
            high = middle
    end = s.round_first[number % FLIGHT] + s.round_size[number % FLIGHT]
    return int(low) if low < end and s.entry_arm[low] == arm else -1


def seed_of_round(number: int) -> int:
    """By what the asks of a round are shuffled: it follows from its number alone, so that runs can be repeated."""
    return (number * 40503 + 12345) % 65536


_seed_of_round = compiled(seed_of_round)


@compiled
def shuffled(i: int, n: int, seed: int) -> int:
    """Where 0 ≤ i < n goes in a permutation of 0, …, n − 1 that the seed chooses: a Feistel cipher."""
    bits = 1
    while 4**bits < n:
        bits += 1
    mask = 2**bits - 1
    value = i
    while True:
        left, right = value >> bits, value & mask
        for turn in range(4):
            mixed = (right * 40503 + seed * 2719 + turn * 24677 + 7919) & 0xFFFFFF
            mixed = ((mixed ^ (mixed >> 7)) * 9973) & 0xFFFFFF
            left, right = right, left ^ ((mixed ^ (mixed >> 11)) & mask)
        value = (left << bits) | right
        if value < n:
            return int(value)


@compiled
def _drawn_place(number: int, first: int, size: int, pulls: int, drawn: int, entry_before: Ints) -> int:
    """The entry of pull number `drawn` in the shuffled order of a round."""
    wanted = shuffled(drawn, pulls, _seed_of_round(number))
    low, high = first, first + size
    while high - low > 1:
        middle = (low + high) // 2
        if entry_before[middle] <= wanted:
            low = middle
        else:
            high = middle
    return low


@compiled
def ask_in_round(
    ints: Ints, unasked: Ints, cursor: Ints, entry_arm: Ints, entry_pulls: Ints, entry_asked: Ints,
    round_first: Ints, round_size: Ints, round_pulls: Ints, round_drawn: Ints, entry_before: Ints,
) -> tuple[int, int]:  # fmt: skip
    """The next arm of the oldest round with pulls to ask for, and its number. INOUT: what counts asks."""
    number = ints[OLDEST]
    while unasked[number % FLIGHT] == 0:
        number += 1
    f = number % FLIGHT
    place = -1
    while ints[SHUFFLED] == 1 and place < 0 and round_drawn[f] < round_pulls[f]:
        place = _drawn_place(number, round_first[f], round_size[f], round_pulls[f], round_drawn[f], entry_before)
        round_drawn[f] += 1
        if entry_asked[place] == entry_pulls[place]:  # a record has asked for it already
            place = -1
    if place < 0:  # in order; if shuffled, what was given up
        while entry_asked[cursor[f]] == entry_pulls[cursor[f]]:
            cursor[f] += 1
        place = cursor[f]
    entry_asked[place] += 1
    unasked[f] -= 1
    ints[TO_ASK] -= 1
    return int(entry_arm[place]), int(number)


@compiled
def ask_again(s: Croc, number: int, arm: int) -> None:
    """An ask of a round was given up: the round asks for the arm again. INOUT: s."""
    place = entry_of(s, number, arm)
    if place >= 0:
        f = number % FLIGHT
        s.entry_asked[place] -= 1
        s.round_unasked[f] += 1
        s.round_cursor[f] = min(s.round_cursor[f], place)
        s.ints[TO_ASK] += 1


@compiled
def forget_closed(s: Croc) -> None:
    """Free the entries of the oldest rounds that are closed. INOUT: s."""
    while s.ints[OLDEST] <= s.ints[ROUND] and s.round_left[s.ints[OLDEST] % FLIGHT] < 0:
        s.ints[OLDEST] += 1
