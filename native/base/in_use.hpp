// A run belongs to one thread at a time. Whoever comes second is told so; nothing is waited for.
#pragma once

#include <atomic>
#include <stdexcept>

namespace coterie {

class InUse {
 public:
  explicit InUse(std::atomic<bool>& flag) : flag_(flag) {
    if (flag_.exchange(true, std::memory_order_acquire))
      throw std::runtime_error(
          "this run is in use by another thread: give each thread a run of its own, or use a lock");
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { flag_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool>& flag_;
};

}  // namespace coterie
