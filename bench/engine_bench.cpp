// The engine on a synthetic load, memory tracked: time, bytes and allocations of one simulate().
#include <malloc.h>

#include <cstdlib>
#include <new>

#include <fmt/core.h>

#include "bench/loads.hpp"
#include "bench/measure.hpp"
#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"

namespace {

struct Heap {
  std::size_t calls = 0, bytes = 0, peak = 0;
} heap;

void* counted(std::size_t size) {
  void* const p = std::malloc(size);
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
    const Timeline timeline = simulate(p.plan, p.demands, p.resources);
    const double seconds = bench::cpu_seconds() - start;
    const double per_task = static_cast<double>(heap.peak - before.bytes) / static_cast<double>(p.plan.size());
    fmt::print("{} bytes_per_task={:.1f} allocations={}\n",
               bench::line_of({"engine", "release", p.plan.size(), seconds, to_seconds(timeline.makespan).value()}),
               per_task, heap.calls - before.calls);
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
