#include "sim/report/allocation.hpp"

#include "sim/report/memory_series.hpp"
#include "tests/catch.hpp"
#include "tests/sim/report/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

constexpr std::int64_t MiB = 1 << 20;

// Tasks of one second each on lanes of one GPU, one after another.
class OneGpu {
 public:
  explicit OneGpu(double capacity_mib)
      : pool_(run_.plan.pool("gpu0", {Tier::gpu, 0}, capacity_mib * 1_MiB)),
        owner_(run_.plan.owner("tensors")) {}

  LaneId lane(const char* name) { return run_.plan.lane(name, 0); }
  BufferId buffer(double mib) { return run_.plan.buffer(pool_, owner_, mib * 1_MiB); }
  void task(const char* name, LaneId lane, const std::vector<Effect>& effects,
            const Work& work = Delay{1_s}) {
    const TaskId t = run_.add({name, lane}, work, {}, clock_, clock_ + 1, last_, effects);
    last_ = {t};
    clock_ += 1;
  }
  // A buffer that comes and goes with a task.
  void passing(const char* name, LaneId lane, double mib, const Work& work = Delay{1_s}) {
    const BufferId b = buffer(mib);
    task(name, lane, {allocate(b), free(b)}, work);
  }
  void enter(std::uint16_t iteration) { run_.plan.enter(iteration, Phase::other); }
  Run finish(int iterations = 1) { return run_.finish(iterations, 1, {}); }

 private:
  RunBuilder run_;
  PoolId pool_;
  OwnerId owner_;
  double clock_ = 0;
  std::vector<TaskId> last_;
};

// 40 MiB come and go, 20 stay, 40 come and go, 60 are asked for.
Run fragmented(double capacity_mib) {
  OneGpu gpu(capacity_mib);
  const LaneId lane = gpu.lane("compute");
  gpu.passing("first", lane, 40);
  const BufferId stays = gpu.buffer(20);
  gpu.task("second", lane, {allocate(stays)});
  gpu.passing("third", lane, 40);
  const BufferId last = gpu.buffer(60);
  gpu.task("fourth", lane, {allocate(last), free(last), free(stays)});
  return gpu.finish();
}

std::int64_t reserved_mib(const Run& run) {
  const Report report = run.report();
  return static_cast<std::int64_t>(report.pools[0].allocator->reserved_peak.value()) / MiB;
}

}  // namespace

TEST_CASE("a GPU's pool is told as the framework's allocator holds it", "[report]") {
  const Report report = two_ranks(20).report();
  REQUIRE(report.pools[0].allocator);
  const Report::Allocator& a = *report.pools[0].allocator;
  // Segments of 2 MiB each: 3 GB take 1431 (1,024,512 B more, which go along), 6 GB 2862
  // (2,049,024 B more, split off), 2 GB 954 (683,008 B more, which go along).
  CHECK(a.reserved_peak == Bytes((1431 + 2862 + 954) * 2097152.0));
  CHECK(a.allocated_peak == Bytes(11e9 + 1024512 + 683008));
  CHECK(a.fragmentation == Bytes(2049024));
  CHECK(a.first_reserved_peak == a.reserved_peak);
  CHECK(a.steady_reserved_peak == a.reserved_peak);
  CHECK(a.steady_allocated_peak == a.allocated_peak);
  CHECK(a.device_allocations == 3);
  CHECK(a.retries == 0);
  CHECK_FALSE(a.grows);
  CHECK_FALSE(a.out_of_memory);
}

TEST_CASE("blocks of one lane do not serve another, nor those of gathers reductions", "[report]") {
  const Work gather = Collective{CollectiveKind::all_gather, 1_MiB, 2, 0, 1};
  const Work reduce = Collective{CollectiveKind::reduce_scatter, 1_MiB, 2, 0, 1};
  OneGpu gpu(1000);
  const LaneId compute = gpu.lane("compute"), collectives = gpu.lane("collectives");
  gpu.passing("kernel", compute, 40);
  gpu.passing("kernel", compute, 40);
  SECTION("the same lane reuses") { CHECK(reserved_mib(gpu.finish()) == 40); }
  SECTION("another lane does not") {
    gpu.passing("gather", collectives, 40, gather);
    CHECK(reserved_mib(gpu.finish()) == 80);
  }
  SECTION("nor a reduction what a gather left") {
    gpu.passing("gather", collectives, 40, gather);
    gpu.passing("reduce", collectives, 40, reduce);
    gpu.passing("gather", collectives, 40, gather);
    CHECK(reserved_mib(gpu.finish()) == 120);
  }
}

TEST_CASE("bytes that fit while segments do not are fragmentation", "[report]") {
  Run run = fragmented(90);
  const Report report = run.report();
  CHECK_FALSE(report.fits);
  CHECK(report.overflows.empty());  // 20 + 60 of 90 MiB
  const auto& failure = report.pools[0].allocator->out_of_memory;
  REQUIRE(failure);
  CHECK(failure->task == "fourth");
  CHECK(failure->at == 3_s);
  CHECK(failure->asked == 60_MiB);
  CHECK(failure->allocated == 20_MiB);
  CHECK(failure->reserved == 40_MiB);
  CHECK(failure->is_fragmentation);
  CHECK(failure->fits_expandable);
  const std::string text = to_text(report);
  CHECK_THAT(text, Containing("Does not fit."));
  CHECK_THAT(text, Containing("expandable_segments:True"));
  CHECK_THAT(text, Containing("  > 80 MiB  "));  // 40 partly in use and 40, then flushed
  SECTION("which expandable segments avoid") {
    run.facts.allocator.expandable_segments = true;
    const Report growing = run.report();
    CHECK(growing.fits);
    CHECK(growing.pools[0].allocator->reserved_peak == 80_MiB);
    CHECK(growing.pools[0].allocator->retries == 0);
  }
}

TEST_CASE("the cache is flushed before a run does not fit", "[report]") {
  const Report report = fragmented(100).report();  // 40 + 60
  CHECK(report.fits);
  CHECK(report.pools[0].allocator->retries == 1);
  CHECK(report.pools[0].allocator->reserved_peak == 100_MiB);
  CHECK(report.pools[0].allocator->device_allocations == 3);  // 40, 40, 60
  CHECK_THAT(to_text(report), Containing("flushed its cache 1 time"));
}

TEST_CASE("too many bytes are not called fragmentation", "[report]") {
  const Report report = two_ranks(8).report();
  CHECK(report.overflows.size() == 2);
  const auto& failure = report.pools[0].allocator->out_of_memory;
  REQUIRE(failure);  // 3 GB are there when 6 are asked for
  CHECK_FALSE(failure->is_fragmentation);
  CHECK(failure->asked == 6_GB);
  CHECK_THAT(to_text(report), !Containing("fragmentation"));
}

TEST_CASE("reserved bytes that still rise at the end are told", "[report]") {
  const auto run = [](double growth) {
    OneGpu gpu(1000);
    const LaneId lane = gpu.lane("compute");
    for (std::uint16_t i = 0; i < 4; ++i) {
      gpu.enter(i);
      gpu.passing("kernel", lane, 20 + growth * i);
    }
    return gpu.finish(4).report();
  };
  const Report steady = run(0);
  CHECK_FALSE(steady.pools[0].allocator->grows);
  CHECK(steady.pools[0].allocator->reserved_peak == 20_MiB);
  const Report growing = run(10);
  CHECK(growing.pools[0].allocator->grows);
  CHECK(growing.pools[0].allocator->first_reserved_peak == 20_MiB);
  CHECK(growing.pools[0].allocator->steady_reserved_peak == 140_MiB);  // 20 + 30 + 40 + 50
  CHECK(growing.pools[0].allocator->steady_allocated_peak == 50_MiB);
  CHECK(growing.pools[0].allocator->fragmentation == 90_MiB);
  CHECK_THAT(to_text(growing), Containing("still grows on gpu0"));
}

TEST_CASE("a memory's series begins with the steady period and has every change of a short one",
          "[report]") {
  const Report report = two_ranks(20).report();
  REQUIRE(report.memory_timeline.size() == 2);
  const MemorySeries& s = report.memory_timeline[0];
  CHECK(s.pool == "gpu0");
  // Iteration 1: 9 s to 19 s. At 9 s activations come, at 11 s gradients, at 14 s activations go,
  // at 19 s gradients, then weights.
  const std::vector<double> seconds = {9, 11, 14, 19, 19};
  REQUIRE(s.at.size() == seconds.size());
  for (std::size_t i = 0; i < seconds.size(); ++i) CHECK(s.at[i] == to_ticks(Seconds(seconds[i])));
  CHECK(s.held ==
        std::vector<std::int64_t>{9'000'000'000, 11'000'000'000, 8'000'000'000, 6'000'000'000, 0});
  REQUIRE(s.owners.size() == 3);
  CHECK(s.owners[0].name == "weights");
  CHECK(s.owners[0].bytes.back() == 0);
  CHECK(s.reserved.size() == 5);
  CHECK(s.reserved.front() == 11'003'756'544);  // of 2 MiB: 5247
}

TEST_CASE("a long series is cut to few points and keeps its peaks", "[report]") {
  OneGpu gpu(1000);
  const LaneId lane = gpu.lane("compute");
  for (int i = 0; i < 3000; ++i) gpu.passing("kernel", lane, i == 1234 ? 77 : 1 + i % 7);
  const Report report = gpu.finish().report();
  REQUIRE(report.memory_timeline.size() == 1);
  const MemorySeries& s = report.memory_timeline[0];
  CHECK(s.at.size() > 100);
  CHECK(s.at.size() <= 400);
  CHECK(std::ranges::is_sorted(s.at));
  CHECK(std::ranges::max(s.held) == 77 * MiB);
  CHECK(s.held.back() == 0);
  for (std::size_t i = 0; i < s.at.size(); ++i) {
    CHECK(s.owners[0].bytes[i] == s.held[i]);
    CHECK(s.reserved[i] >= s.held[i]);
  }
}
