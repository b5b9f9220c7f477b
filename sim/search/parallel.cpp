#include "sim/search/parallel.hpp"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tidegate {

std::size_t parallel_for(std::size_t count, std::size_t threads,
                         const std::function<void(std::size_t)>& work,
                         const std::function<bool()>& is_stopped) {
  std::atomic<std::size_t> next = 0;
  std::mutex guard;
  std::size_t failed_at = count;
  std::exception_ptr failure;
  const auto take = [&] {
    while (!is_stopped()) {
      const std::size_t i = next.fetch_add(1);
      if (i >= count) return;
      try {
        work(i);
      } catch (...) {
        const std::lock_guard hold(guard);
        if (i < failed_at) failed_at = i, failure = std::current_exception();
      }
    }
  };
  const std::size_t helpers = std::min(std::max<std::size_t>(threads, 1), count);
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < helpers; ++t) others.emplace_back(take);
  take();
  others.clear();
  if (failure) std::rethrow_exception(failure);
  return std::min(next.load(), count);
}

// The C library gives large blocks and the top of its heap back at once, and a fresh page costs as
// much as what is computed on it. Elsewhere than in glibc, nothing.
void keep_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  constexpr int largest_block = 32 << 20;  // glibc's limit
  constexpr int unused_top = 512 << 20;
  mallopt(M_MMAP_THRESHOLD, largest_block);
  mallopt(M_TRIM_THRESHOLD, unused_top);
#endif
}

}  // namespace tidegate
