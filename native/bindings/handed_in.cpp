#include "bindings/handed_in.hpp"

#include <memory>

#include "bindings/numpy_calls.hpp"

namespace nb = nanobind;

namespace coterie::croc {

namespace {

/// A Python function as a kernel. An exception in it travels to whoever called the step (State::broken).
class PythonKernel {
 public:
  PythonKernel(nb::handle function, const char* kernel, const std::string& family)
      : held_(held(function)), label_("the kernel '" + std::string(kernel) + "' of the family '" + family + "'") {}

  const NumpyArrays& arrays() const { return held_->arrays; }
  template <class... Arguments>
  nb::object operator()(const Arguments&... arguments) const {
    return held_->function(arguments...);
  }
  /// What the function returned, a number.
  double number(const nb::object& returned) const {
    PyObject* found = PyNumber_Float(returned.ptr());
    if (found == nullptr) {
      PyErr_Clear();
      throw nb::type_error((label_ + " must return a number, got " + kind_of(returned)).c_str());
    }
    return nb::cast<double>(nb::steal(found));
  }
  static std::string kind_of(nb::handle object) { return nb::cast<nb::str>(object.type().attr("__name__")).c_str(); }

 private:
  struct Held {
    nb::object function;
    NumpyArrays arrays;
  };
  /// The last run that shares the family may end without the interpreter lock.
  static std::shared_ptr<Held> held(nb::handle function) {
    auto found = std::make_unique<Held>(Held{nb::borrow(function), {}});
    return {found.release(), [](Held* ours) {
              const nb::gil_scoped_acquire lock;
              std::default_delete<Held>()(ours);
            }};
  }

  std::shared_ptr<Held> held_;
  std::string label_;
};

void assign(decltype(Kernels::factor)& kernel, PythonKernel call) {
  kernel = [call](const Contrast& r, Row learned, Row kept, ConstRow parameters) {
    const nb::gil_scoped_acquire lock;
    const NumpyArrays& as = call.arrays();
    const auto new_learned = as.writable(learned), new_kept = as.writable(kept);
    const double value =
        call.number(call(as.copy(r.contrast), as.copy(r.guess), as.copy(r.arm_scores), as.copy(r.pool_scores),
                         as.copy(r.bet), as.copy(r.shared), new_learned.array, new_kept.array, as.copy(parameters),
                         r.arm_pulls, r.pool_pulls, r.spread, r.weight, r.level, r.share, r.home, r.other));
    new_learned.take_back();
    new_kept.take_back();
    return value;
  };
}

void assign(decltype(Kernels::pulls_needed)& kernel, PythonKernel call) {
  kernel = [call](ConstRow parameters, double level, double square, double pool, Index dim) {
    const nb::gil_scoped_acquire lock;
    return call.number(call(call.arrays().copy(parameters), level, square, pool, dim));
  };
}

void assign(decltype(Kernels::bet)& kernel, PythonKernel call) {
  kernel = [call](const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow learned, ConstRow parameters,
                  Row bet) {
    const nb::gil_scoped_acquire lock;
    const NumpyArrays& as = call.arrays();
    const auto out = as.writable(bet);
    call(as.copy(centers), as.copy(totals), as.copy(metric), as.copy(learned), as.copy(parameters), out.array);
    out.take_back();
  };
}

void assign(decltype(Kernels::score)& kernel, PythonKernel call) {
  kernel = [call](ConstRow position, ConstRow bet, ConstRow shared, ConstRow parameters, Row scores, Row round_scores,
                  Index home) {
    const nb::gil_scoped_acquire lock;
    const NumpyArrays& as = call.arrays();
    const auto of_arm = as.writable(scores), of_round = as.writable(round_scores);
    call(as.copy(position), as.copy(bet), as.copy(shared), as.copy(parameters), of_arm.array, of_round.array, home);
    of_arm.take_back();
    of_round.take_back();
  };
}

void assign(decltype(Kernels::pool)& kernel, PythonKernel call) {
  kernel = [call](ConstRow scores, ConstRow parameters, Row pooled) {
    const nb::gil_scoped_acquire lock;
    const NumpyArrays& as = call.arrays();
    const auto out = as.writable(pooled);
    call(as.copy(scores), as.copy(parameters), out.array);
    out.take_back();
  };
}

void assign(decltype(Kernels::freeze)& kernel, PythonKernel call) {
  kernel = [call](const Numbers& centers, ConstRow totals, const Numbers& metric, ConstRow parameters, Row shared) {
    const nb::gil_scoped_acquire lock;
    const NumpyArrays& as = call.arrays();
    const auto out = as.writable(shared);
    call(as.copy(centers), as.copy(totals), as.copy(metric), as.copy(parameters), out.array);
    out.take_back();
  };
}

void assign(decltype(Kernels::gather)& kernel, PythonKernel call) {
  kernel = [call](ConstRow round_scores, double results, ConstRow parameters, Row shared) {
    const nb::gil_scoped_acquire lock;
    const NumpyArrays& as = call.arrays();
    const auto out = as.writable(shared);
    call(as.copy(round_scores), results, as.copy(parameters), out.array);
    out.take_back();
  };
}

void assign(decltype(Kernels::quality)& kernel, PythonKernel call) {
  kernel = [call](const Numbers& centers, const Numbers& metric, const Numbers& scatter, double degrees,
                  ConstRow parameters, ConstRow shared, Index home, Index k) {
    const nb::gil_scoped_acquire lock;
    const NumpyArrays& as = call.arrays();
    return call.number(call(as.copy(centers), as.copy(metric), as.copy(scatter), degrees, as.copy(parameters),
                            as.copy(shared), home, k));
  };
}

/// One kernel: none, the address of a C function with this signature, or a Python function.
template <class Address, class Kernel>
void assign(Kernel& kernel, const nb::kwargs& all, const char* name, const std::string& family) {
  const nb::object given = all.contains(name) ? nb::object(all[name]) : nb::none();
  if (given.is_none()) return;
  if (nb::isinstance<nb::int_>(given)) {
    const auto address = nb::cast<std::uintptr_t>(given);
    if (address == 0)
      throw nb::value_error(("the address of the kernel '" + std::string(name) + "' must not be 0").c_str());
    kernel = by_address::kernel(reinterpret_cast<Address>(address));
  } else if (PyCallable_Check(given.ptr()) != 0) {
    assign(kernel, PythonKernel(given, name, family));
  } else {
    throw nb::type_error(("the kernel '" + std::string(name) +
                          "' must be a function, or the address of a C function, got " + PythonKernel::kind_of(given))
                             .c_str());
  }
}

}  // namespace

Kernels kernels_from(const nb::kwargs& given, const std::string& family) {
  Kernels found;
  assign<by_address::Factor>(found.factor, given, "factor", family);
  assign<by_address::PullsNeeded>(found.pulls_needed, given, "pulls_needed", family);
  assign<by_address::Bet>(found.bet, given, "bet", family);
  assign<by_address::Score>(found.score, given, "score", family);
  assign<by_address::Pool>(found.pool, given, "pool", family);
  assign<by_address::Freeze>(found.freeze, given, "freeze", family);
  assign<by_address::Gather>(found.gather, given, "gather", family);
  assign<by_address::Quality>(found.quality, given, "quality", family);
  return found;
}

}  // namespace coterie::croc
