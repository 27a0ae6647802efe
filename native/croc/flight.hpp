// The rounds under way: their entries, what is still to be asked for, and which of them may be closed.
//
// A round is composed once all asks of the one before are out, whether its results are in or not. Rounds of one epoch
// are used in their order (docs/CROC.md, section 4). Entries of all rounds lie in one ring.
#pragma once

#include <vector>

#include "base/table.hpp"
#include "croc/constants.hpp"

namespace coterie::croc {

/// A round: its composition is fixed before any of its results is seen.
struct Round {
  Index epoch = 0;    // number of its epoch
  Index first = 0;    // its first entry
  Index size = 0;     // its entries
  Index left = 0;     // results that are still to come; −1: closed
  Index unasked = 0;  // pulls that are still to be asked for
  Index cursor = 0;   // entries before this one are asked for
  Index pulls = 0;    // pulls of the round
  Index drawn = 0;    // pulls that were drawn, if the asks are shuffled

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("epoch", epoch);
    visit("first", first);
    visit("size", size);
    visit("left", left);
    visit("unasked", unasked);
    visit("cursor", cursor);
    visit("pulls", pulls);
    visit("drawn", drawn);
  }
};

/// An arm of a round.
struct Entry {
  Index arm = 0;
  Index pulls = 0;   // the round's pulls of the arm
  Index asked = 0;   // of these, asked for
  Index before = 0;  // pulls of the round's entries before this one

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("arm", arm);
    visit("pulls", pulls);
    visit("asked", asked);
    visit("before", before);
  }
};

struct Asked {
  Index arm, round;
};

struct Flight {
  Flight(Index n_arms, Index dim, Index bet_size, Index scores, Index round_scores, bool shuffled,
         const Constants& constants);

  Round& round(Index number) { return rounds[number % Index(rounds.size())]; }
  const Round& round(Index number) const { return rounds[number % Index(rounds.size())]; }
  /// The place of a round in `rounds`, `bets` and `scores`.
  Index place(Index number) const { return number % Index(rounds.size()); }

  /// Write down a round; it is then fixed. False, and nothing done, if there is no room for it.
  bool start(std::span<const Index> composition, Index epoch);
  /// The arm's entry in a round that is under way, −1 if there is none.
  Index entry_of(Index number, Index arm) const;
  /// The next arm of the oldest round with pulls to ask for.
  Asked ask();
  /// An ask of a round was given up: the round asks for the arm again.
  void ask_again(Index number, Index arm);
  /// The arms of the next asks, at most so many. Nothing is asked for.
  std::vector<Index> ahead(Index most);
  /// Free the entries of the oldest rounds that are closed.
  void forget_closed();

  bool shuffled;              // the asks of a round come in a random order
  Index oldest = 1;           // number of the oldest round whose entries are kept
  Index last = 0;             // number of the last round composed, from 1
  Index open = 0;             // rounds composed and not closed
  Index to_ask = 0;           // pulls of rounds that are still to be asked for
  Index tail = 0;             // behind the last entry of the last round
  bool closed = false;        // a round was closed since the last plan
  std::vector<Round> rounds;  // round r in place r mod `flight`
  Zeros<Entry> entries;       // ascending arms within a round
  Numbers entry_sums;         // (entries, d) of the results so far, from the arm's origin
  Numbers entry_scores;       // (entries, scores) of the results so far, by the family of evidence
  Numbers bets;               // (flight, bet) of the family, fixed when the round was composed
  Numbers scores;             // (flight, round scores) of all results so far, by the family

  template <class Visit>
  void each_field(Visit&& visit) {
    visit("oldest", oldest);
    visit("last", last);
    visit("open", open);
    visit("to_ask", to_ask);
    visit("tail", tail);
    visit("closed", closed);
    visit("rounds", rounds);
    visit("entries", entries);
    visit("entry_sums", entry_sums);
    visit("entry_scores", entry_scores);
    visit("bets", bets);
    visit("scores", scores);
  }

 private:
  Index room_for(Index size) const;
  Index drawn_entry(Index number) const;
};

/// Entries of rounds under way that there is room for; a round has at most M.
Index entry_room(Index n_arms, const Constants& constants);
/// By what the asks of a round are shuffled: it follows from its number alone, so that runs can be repeated.
Index seed_of_round(Index number);
/// Where 0 ≤ i < n goes in a permutation of 0, …, n − 1 that the seed chooses: a Feistel cipher.
Index shuffled_place(Index i, Index n, Index seed);

}  // namespace coterie::croc
