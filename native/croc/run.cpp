#include "croc/run.hpp"

#include "croc/claims.hpp"
#include "croc/estimate.hpp"
#include "croc/planning.hpp"
#include "croc/shape.hpp"
#include "croc/steps.hpp"

namespace coterie::croc {

Run::Run(Index n_arms, Index n_groups, Index dim, double log_inverse_delta, std::shared_ptr<const Family> family,
         ConstRow prices, const Constants& constants, bool with_pairs)
    : state(n_arms, n_groups, dim, log_inverse_delta, std::move(family), prices, constants, with_pairs), x_(2 * dim) {}

/// The next arm, if one is planned.
std::optional<Asked> Run::next() {
  Queue& queue = state.queue;
  if (queue.mode == Mode::first_pass && state.arms.unseen > 0) {
    while (queue.head < state.n_arms() && state.arms.committed[queue.head] > 0) ++queue.head;
    return Asked{queue.head < state.n_arms() ? queue.head : least_committed(state), 0};
  }
  if (state.flight.to_ask > 0) return state.flight.ask();
  if (!queue.empty()) return Asked{queue.arms[queue.head++], 0};
  return std::nullopt;
}

/// The next arm, after a plan if all that was planned is asked for. It counts as under way. None if all is proven.
std::optional<Asked> Run::ask() {
  std::optional<Asked> found = next();
  if (!found) {
    plan(state);
    if (is_done()) return std::nullopt;
    found = next();
  }
  commit(state, found->arm);  // NOLINT(bugprone-unchecked-optional-access): a plan has an arm unless all is proven
  return found;
}

bool Run::is_planned() const {
  const Queue& queue = state.queue;
  return state.arms.unseen == 0 && (state.flight.to_ask > 0 || (!queue.empty() && queue.mode != Mode::first_pass));
}

std::optional<Asked> Run::pop() {
  if (is_done()) return std::nullopt;
  if (!is_planned()) {
    plan_if_due(state, false);
    if (is_done()) return std::nullopt;
  }
  return ask();
}

/// A result counts. Returns whether it belongs to no round.
bool Run::take(Index arm, ConstRow value, Index of_round, bool asked) {
  if (!asked) {  // a result nobody asked for changes the plan, but for rounds
    of_round = 0;
    const Index alone = state.arms.alone;
    commit(state, arm);
    state.arms.alone = alone == arm ? -1 : alone;
    if (state.queue.mode != Mode::first_pass) state.queue.head = state.queue.tail;
  }
  x_.fill(0.0);  // of whoever brings d numbers, floats hold all
  std::ranges::copy(value, x_.begin());
  observe(state, arm, x_, of_round);
  return of_round == 0;
}

void Run::absorb(Index arm, ConstRow value, Index of_round, bool asked) {
  if (is_done()) return;
  const bool outside = take(arm, value, std::max(of_round, Index(0)), asked);
  plan_if_due(state, outside);
}

void Run::give_up(Index arm, Index of_round) {
  if (is_done()) return;
  uncommit(state, arm);
  if (of_round > 0)  // also where a record is applied: no plan was made, so the mode is still that of the first pass
    state.flight.ask_again(of_round, arm);
  else if (state.queue.mode == Mode::first_pass)
    state.queue.head = std::min(state.queue.head, arm);
}

void Run::look() {
  if (is_done()) return;
  plan_if_due(state, false);
  if (!is_done()) plan_if_none();
}

void Run::plan_if_none() {
  if (state.arms.unseen == 0 && state.flight.to_ask == 0 && state.queue.head == state.queue.tail) plan(state);
}

bool Run::count(const Entries& entries, Index i) {
  const auto width = static_cast<std::size_t>(x_.size());
  return take(entries.arms[i], {entries.values + i * x_.size(), width}, entries.round_of(i), entries.asked[i] != 0);
}

/// A recorded ask counts as under way.
void Run::open_recorded(Index arm, Index of_round) {
  commit(state, arm);
  Flight& flight = state.flight;
  const Index place = of_round > 0 ? flight.entry_of(of_round, arm) : -1;
  if (place >= 0 && flight.entries[place].asked < flight.entries[place].pulls) {
    ++flight.entries[place].asked;
    --flight.round(of_round).unasked;
    --flight.to_ask;
  }
}

/// Bring back entry i without consulting the rule.
void Run::apply(const Entries& entries, Index i) {
  switch (entries.kind(i)) {
    case Kind::ask:
      open_recorded(entries.arms[i], entries.rounds[i]);
      break;
    case Kind::result:
      count(entries, i);
      break;
    case Kind::give_up:
      give_up(entries.arms[i], entries.round_of(i));
      break;
    case Kind::look:
      break;
  }
}

Stop Run::follow(Entries& entries) {
  const Index rounds = state.flight.last, freezes = state.freezes;
  bool asking = false;
  while (!is_done()) {
    asking = false;
    const Index i = entries.at;
    if (i == static_cast<Index>(entries.kinds.size())) return Stop::ended;
    if (entries.applying) {
      apply(entries, i);
      ++entries.at;
      continue;
    }
    bool outside = false;
    switch (entries.kind(i)) {
      case Kind::give_up:
        give_up(entries.arms[i], entries.round_of(i));
        ++entries.at;
        continue;
      case Kind::result:
        outside = count(entries, i);
        ++entries.at;
        break;
      default:
        asking = true;
    }
    // As `pop` does: what is planned is asked for first, also where a record was applied that closed a round.
    if (!asking || entries.kind(i) == Kind::look || !is_planned()) plan_if_due(state, outside);
    if (asking && !is_done()) {
      if (entries.kind(i) == Kind::look) {
        plan_if_none();
      } else if (const std::optional<Asked> found = ask()) {
        const bool is_other = entries.arms[i] >= 0 && entries.arms[i] != found->arm;
        entries.arms[i] = found->arm;
        if (is_other) return Stop::other_arm;
        entries.rounds[i] = found->round;
      }
      if (is_done()) break;
      ++entries.at;
    }
    if (state.flight.last > rounds || state.freezes > freezes) return Stop::decided;
  }
  return asking ? Stop::proven_asking : Stop::proven;
}

void Run::play(Index steps, World& world) {
  const Index dim = state.dim();
  if (steps <= 0 || is_done()) return;
  plan_if_due(state, false);
  for (Index step = 0; step < steps && !is_done(); ++step) {
    const std::optional<Asked> asked = ask();
    if (!asked) return;
    const double* center = world.centers + world.truth[asked->arm] * dim;
    for (Index q = 0; q < dim; ++q) {
      x_[q] = center[q] + world.noise();
      x_[dim + q] = 0.0;
    }
    observe(state, asked->arm, x_, asked->round);
    plan_if_due(state, false);
  }
}

void Run::estimate() {
  if (is_done() || state.arms.unseen > 0) return;
  renew_bound(state);
  renew(state);
  renew_shape(state);
  forget_touched(state);
}

/// On the pairs from the start or a freeze, at these prices.
double Run::left_at(ConstRow price) {
  if (!ready()) return std::numeric_limits<double>::quiet_NaN();
  const double frozen = pulls_for_freeze(leading(state), price);
  return std::min(frozen, pulls_for_pairs(state, frozen + 1.0, price));
}

double Run::cost_left() { return left_at(state.arms.price); }

double Run::pulls_left() {
  if (!state.arms.priced) return cost_left();
  return left_at(std::vector<double>(static_cast<std::size_t>(state.n_arms()), 1.0));
}

std::vector<Index> Run::planned(Index most) {
  std::vector<Index> found;
  if (state.arms.unseen > 0) {
    for (Index m = 0; m < state.n_arms() && static_cast<Index>(found.size()) < most; ++m)
      if (state.arms.pulls[m] == 0) found.push_back(m);
  } else if (state.flight.to_ask > 0) {
    found = state.flight.ahead(most);
  } else {
    const Queue& queue = state.queue;
    const Index end = std::max(queue.head, std::min(queue.tail, queue.head + std::min(most, queue.tail)));
    found.assign(queue.arms.begin() + queue.head, queue.arms.begin() + end);
  }
  return found;
}

bool Run::is_closed(Index number) const { return number < state.flight.oldest || state.flight.round(number).left < 0; }

Index Run::matching_epoch() { return ready() ? find_epoch(state) : -1; }

namespace {

/// Whether the fields are those of such a run, as far as indices go.
bool is_sound(const State& state) {
  const Index n_arms = state.n_arms(), n_groups = state.n_groups(), entries = state.flight.entries.size();
  const auto all = [](const auto& indices, Index from, Index to) {
    return std::ranges::all_of(indices, [=](Index each) { return from <= each && each < to; });
  };
  const auto is_in = [](Index each, Index from, Index to) { return from <= each && each <= to; };
  bool sound = all(state.estimate.labels, 0, n_groups) && all(state.estimate.representative, -1, n_arms) &&
               all(state.queue.arms, 0, n_arms) && all(state.plan.candidates, 0, n_arms) &&
               all(state.arms.touched, 0, n_arms) && all(state.risk.rival, 0, n_groups) &&
               all(state.heaps.heap, 0, n_arms) && all(state.heaps.slot, 0, n_arms) &&
               all(state.heaps.first_slot, 0, n_arms + 1) && all(state.arms.pulls, 0, state.arms.t + 1) &&
               all(state.pairs.alarmed, 0, n_arms);
  sound = sound && is_in(state.queue.tail, 0, n_arms) && is_in(state.queue.head, 0, n_arms) &&
          is_in(state.plan.n_candidates, 0, n_arms) && is_in(state.arms.n_touched, 0, n_arms) &&
          is_in(state.arms.unseen, 0, n_arms) && is_in(state.arms.alone, -1, n_arms - 1) &&
          is_in(state.flight.tail, 0, entries) && is_in(state.certified_epoch, -1, Index(state.epochs.size()) - 1) &&
          is_in(state.flight.oldest, 1, state.flight.last + 1) && state.freezes >= 0;
  for (Index k : {state.risk.split, state.risk.merged_a, state.risk.merged_b, state.risk.chance_a, state.risk.chance_b})
    sound = sound && is_in(k, 0, n_groups - 1);
  for (const Epoch& epoch : state.epochs)
    sound = sound && all(epoch.labels, 0, n_groups) && all(epoch.core, -1, n_arms) && epoch.number >= 0;
  for (const Round& round : state.flight.rounds)
    sound = sound && is_in(round.first, 0, entries) && is_in(round.size, 0, entries - round.first) &&
            round.epoch >= 0 && is_in(round.cursor, 0, entries - 1);
  for (const Entry& entry : state.flight.entries) sound = sound && is_in(entry.arm, 0, n_arms - 1);
  if (!state.shape) return sound;
  const ShapeEstimate& shape = *state.shape;
  return sound && is_in(shape.n_kept, 0, shape.kept_arms.size()) && all(shape.kept_arms, 0, n_arms) &&
         is_sound(shape.space);
}

}  // namespace

bool Run::is_sound() const { return croc::is_sound(state); }

}  // namespace coterie::croc
