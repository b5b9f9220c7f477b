// The engine on a synthetic load, memory tracked: time of the loop and of its set-up, bytes of
// both, and the calls of operator new between the loop's start and end. simulate() is set-up and
// loop.
#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include <fmt/core.h>

#include "bench/loads.hpp"
#include "bench/measure.hpp"
#include "models/base/error.hpp"
#include "sim/engine/run.hpp"

namespace {

struct Heap {
  std::size_t calls = 0, bytes = 0, peak = 0;
} heap;

void* counted(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  void* const p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  ++heap.calls;
  heap.bytes += malloc_usable_size(p);
  if (heap.bytes > heap.peak) heap.peak = heap.bytes;
  return p;
}
void uncounted(void* p) {
  if (p == nullptr) return;
  heap.bytes -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, std::align_val_t a) {
  return counted(size, static_cast<std::size_t>(a));
}
void operator delete(void* p, std::align_val_t) noexcept { uncounted(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { uncounted(p); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete(void* p, std::size_t) noexcept { uncounted(p); }
void operator delete[](void* p, std::size_t) noexcept { uncounted(p); }

int main(int argc, char** argv) {
  using namespace tidegate;
  try {
    const bench::PricedPlan p =
        bench::priced_plan(bench::parse_load(bench::words_of(argc, argv)), bench::Memory::tracked);
    heap.peak = heap.bytes;
    const Heap before = heap;
    const double start = bench::cpu_seconds();
    Run run(p.plan, p.demands, p.resources);
    const double ready = bench::cpu_seconds();
    const std::size_t calls_before = heap.calls;
    run.to_end();
    const std::size_t calls = heap.calls - calls_before;
    const double seconds = bench::cpu_seconds() - ready;
    const Timeline timeline = run.take_timeline();
    const auto tasks = static_cast<double>(p.plan.size());
    fmt::print("{} setup_ns_per_task={:.1f} bytes_per_task={:.1f} allocations_in_loop={}\n",
               bench::line_of({"engine", "release", p.plan.size(), seconds,
                               to_seconds(timeline.makespan).value()}),
               1e9 * (ready - start) / tasks, static_cast<double>(heap.peak - before.bytes) / tasks,
               calls);
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
