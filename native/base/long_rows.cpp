#include "base/long_rows.hpp"

#include <cstring>

#include "base/geometry.hpp"

namespace coterie {

namespace {

namespace as_compiled {
constexpr std::size_t WIDTH = WIDE;
using Vector = Wide;
#include "base/long_rows.inc"
}  // namespace as_compiled

// One build for all processors of a kind: where the compiler can make functions for others, and tell at run time.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
constexpr std::size_t WIDTH = 4;
using Vector [[gnu::vector_size(WIDTH * sizeof(double))]] = double;
#include "base/long_rows.inc"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr std::size_t WIDTH = 8;
using Vector [[gnu::vector_size(WIDTH * sizeof(double))]] = double;
#include "base/long_rows.inc"
}  // namespace avx512
#pragma GCC pop_options

#define COTERIE_OTHER_PROCESSORS
#endif

}  // namespace

std::vector<LongRows> usable_long_rows() {
  std::vector<LongRows> usable = {as_compiled::functions};
#ifdef COTERIE_OTHER_PROCESSORS
  if (__builtin_cpu_supports("avx2")) usable.push_back(avx2::functions);
  if (__builtin_cpu_supports("avx512f")) usable.push_back(avx512::functions);
#endif
  return usable;
}

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): it throws if there is no memory for three of them
const LongRows long_rows = usable_long_rows().back();

}  // namespace coterie
