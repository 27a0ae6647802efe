// The numbers of a CROC run, as Python reads them: views that keep the run alive.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/croc.hpp"
#include "croc/shape.hpp"

namespace nb = nanobind;

namespace coterie::croc {

namespace {

/// Results that are not the first of their arm from which on something is known of the size of the noise.
constexpr Index FEW_REPEATS = 6;

/// (M, K, 2) counts of arm and representative.
auto pair_counts(nb::handle_t<Run> self) {
  static_assert(sizeof(PairCounts) == 2 * sizeof(Index));
  const auto& counts = nb::cast<Run&>(self).state.pairs.counts;
  const auto* from = reinterpret_cast<const Index*>(start_of(counts.cells()));
  return nb::ndarray<nb::numpy, const Index, nb::ndim<3>>(
      from, {static_cast<std::size_t>(counts.rows()), static_cast<std::size_t>(counts.columns()), 2}, self);
}

}  // namespace

void bind_views(nb::class_<Run>& run) {
  const auto number = [&](const char* name, auto get, const char* doc) {
    run.def_prop_ro(name, [get](Run& its) { return get(its.state); }, doc);
  };
  const auto array = [&](const char* name, auto get, const char* doc) {
    run.def_prop_ro(name, shown([get](Run& its) -> auto& { return get(its.state); }), doc);
  };
  run.def_prop_ro("family", [](Run& its) { return its.state.family; }, "Of evidence.");
  run.def_prop_ro("ready", &Run::ready, "Whether there is an estimate.");
  run.def_prop_ro("matching_epoch", read([](Run& its) { return its.matching_epoch(); }),
                  "The slot of the epoch whose candidate is the present estimate, -1 if there is none.");
  run.def_prop_rw(
      "pair_level", [](Run& its) { return its.state.pairs.level; },
      [](Run& its, double level) { its.state.pairs.level = level; },
      "log(H/(α·δ)), infinite without pairs; others after a revision, set before the first result.");
  number("n_arms", [](State& s) { return s.n_arms(); }, "M.");
  number("n_groups", [](State& s) { return s.n_groups(); }, "K.");
  number("dim", [](State& s) { return s.dim(); }, "d.");
  number("log_inverse_delta", [](State& s) { return s.log_inverse_delta; }, "log(1/δ).");
  number("done", [](State& s) { return s.proof != Proof::none; }, "Whether the groups are proven.");
  number(
      "by_pairs", [](State& s) { return s.proof == Proof::by_pairs; },
      "Whether they are proven by the pairs from the start alone.");
  number("epoch", [](State& s) { return s.certified_epoch; }, "The slot of the epoch that proved them.");
  number("t", [](State& s) { return s.arms.t; }, "Results so far.");
  number("unseen", [](State& s) { return s.arms.unseen; }, "Arms never measured.");
  number("freezes", [](State& s) { return s.freezes; }, "Epochs so far.");
  number("n_epochs", [](State& s) { return static_cast<Index>(s.epochs.size()); }, "Epochs that are remembered.");
  number("round", [](State& s) { return s.flight.last; }, "The number of the last round composed.");
  number("has_open_rounds", [](State& s) { return s.flight.open > 0; }, "Whether a round is under way.");
  number(
      "to_ask", [](State& s) { return s.flight.to_ask + std::max(s.queue.tail - s.queue.head, Index(0)); },
      "Pulls that are planned and still to be asked for, once every arm was measured.");
  number("room", [](State& s) { return s.arms.room(); }, "P, up to which all prefixes of an arm are kept.");
  number("core_room", [](State& s) { return s.constants.core_room(); }, "Places of a core.");
  number("pair_share", [](State& s) { return s.traits.pair_share; }, "α: the share of δ for pairs from the start.");
  number(
      "variance_share", [](State& s) { return s.traits.variance_share; },
      "w: the share of δ for an upper bound on the variance.");
  number(
      "has_factor", [](State& s) { return s.traits.has_factor; },
      "Whether the family of evidence has factors of its own; else the covariance is known.");
  number(
      "has_bets", [](State& s) { return s.flight.bets.columns() > 0; },
      "Whether the family fixes numbers when a round is composed.");
  number("is_estimated", [](State& s) { return s.metric.estimated; }, "Whether the metric is estimated.");
  number(
      "knows_spread", [](State& s) { return !s.metric.estimated || s.metric.degrees >= FEW_REPEATS; },
      "Whether the size of the noise is known, or repeated results have shown something of it.");
  array("pulls", [](State& s) -> auto& { return s.arms.pulls; }, "(M) N_m.");
  array("committed", [](State& s) -> auto& { return s.arms.committed; }, "(M) pulls, and those asked for.");
  array("origin", [](State& s) -> auto& { return s.arms.origin; }, "(d) the first result.");
  array("offset", [](State& s) -> auto& { return s.arms.offset; }, "(M, d) of the arm's own origin.");
  array("offset_rest", [](State& s) -> auto& { return s.arms.offset_rest; }, "(M, d) what floats do not hold of it.");
  array("sums", [](State& s) -> auto& { return s.arms.sums; }, "(M, d) of the results, from the arm's origin.");
  array("labels", [](State& s) -> auto& { return leading(s).estimate.labels; }, "(M) the estimate.");
  array("totals", [](State& s) -> auto& { return leading(s).estimate.totals; }, "(K) W.");
  array(
      "positions", [](State& s) -> auto& { return s.estimate.centers; },
      "(K, d) Û, from the origin, in units of the metric.");
  array("representative", [](State& s) -> auto& { return leading(s).estimate.representative; }, "(K) arms.");
  array(
      "settled", [](State& s) -> auto& { return s.pairs.settled; },
      "(M, K) 1: arm and representative are known to differ.");
  array(
      "evidence", [](State& s) -> auto& { return s.pairs.evidence; },
      "(M, K) log-evidence of arm against representative, latched.");
  array(
      "pair_bound", [](State& s) -> auto& { return s.pairs.bound; },
      "(M, K) t of the bound on the variance in `evidence`; empty without one.");
  number(
      "has_shape", [](State& s) { return s.shape != nullptr; },
      "Whether there is a second estimate, of features, beside that of the location.");
  number(
      "shape_leads", [](State& s) { return s.shape != nullptr && s.shape->leads; },
      "Whether it is the one that the run goes by.");
  run.def_prop_ro(
      "label_information",
      [](Run& its) {
        const auto* shape = its.state.shape.get();
        return shape == nullptr ? std::vector<double>{} : std::vector<double>{shape->predicted[0], shape->predicted[1]};
      },
      "J: what the estimates of the location and of the shape have predicted, in nats; empty without the second.");
  run.def_prop_ro(
      "feature_names",
      [](Run& its) {
        const auto* shape = its.state.shape.get();
        return shape == nullptr ? std::vector<std::string>{} : shape->features.names();
      },
      "Of the second estimate.");
  run.def_prop_ro(
      "feature_seed",
      [](Run& its) {
        const auto* shape = its.state.shape.get();
        return shape != nullptr && shape->features.are_random() ? std::optional(Features::SEED) : std::nullopt;
      },
      "Of random features; None if they are not random.");
  run.def_prop_ro("pair_counts", &pair_counts, "(M, K, 2) counts of arm and representative when that was found.");
}

}  // namespace coterie::croc
