#include <vector>

#include "calib/checks/checks.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

constexpr std::int64_t mib = 1 << 20;
const std::vector<double> plain = {500e6, 520e6, 480e6, 510e6, 490e6};

std::vector<double> times(double factor) {
  std::vector<double> all = plain;
  for (double& x : all) x *= factor;
  return all;
}

}  // namespace

TEST_CASE("a region that reads faster again lies in a cache", "[checks]") {
  CHECK(judge_cache(plain, times(1.1), 64 * mib).verdict == Verdict::ok);
  const Check cached = judge_cache(plain, times(3), 64 * mib);
  CHECK(cached.verdict == Verdict::suspected);
  // 3 x throughout; the median of the first reads is 500 MB/s.
  CHECK_THAT(cached.evidence, Containing("64 MiB read again is 3.00 times as fast") &&
                                  Containing("500 MB/s") && Containing("a cache of the host"));
}

TEST_CASE("files that clients read faster than those of others lie in their caches", "[checks]") {
  CHECK(judge_client_cache(times(1.1), plain).verdict == Verdict::ok);
  CHECK(judge_client_cache(times(0.5), plain).verdict == Verdict::ok);
  const Check cached = judge_client_cache(times(2), plain);
  CHECK(cached.name == "client_cache");
  CHECK(cached.verdict == Verdict::suspected);
  CHECK_THAT(cached.evidence, Containing("2.00 times as fast") && Containing("500 MB/s") &&
                                  Containing("rate of read_other"));
}

TEST_CASE("pairs that disagree tell nothing", "[checks]") {
  // Median 1.3, but one pair the other way round: a slow moment, not a cache.
  std::vector<double> again = times(1.3);
  again[1] = 0.9 * plain[1];
  CHECK(judge_cache(plain, again, 64 * mib).verdict == Verdict::not_told);
  CHECK_THAT(judge_cache(plain, again, 64 * mib).evidence,
             Containing("pairs 0.90 to 1.30") && Containing("the pairs disagree"));
}

TEST_CASE("zeros that are written faster are compressed", "[checks]") {
  CHECK(judge_compression(times(1.05), plain).verdict == Verdict::ok);
  const Check compressed = judge_compression(times(2), plain);
  CHECK(compressed.verdict == Verdict::suspected);
  CHECK_THAT(compressed.evidence, Containing("writing zeros is 2.00 times as fast"));
}

TEST_CASE("the device's bytes are ours, or others' or nobody's", "[checks]") {
  CHECK(judge_device_bytes(std::vector{1.0, 1.01, 7.0}).verdict == Verdict::ok);  // median 1.01
  CHECK_THAT(judge_device_bytes(std::vector{0.0, 0.1, 1.0}).evidence,
             Containing("0.100") && Containing("a cache in this system"));
  CHECK_THAT(judge_device_bytes(std::vector{1.0, 1.2, 1.3}).evidence, Containing("others use it"));
}

TEST_CASE("a flush that is too fast did not flush", "[checks]") {
  const BytesPerSecond rate(500e6);
  const auto verdict = [&](double cached, double direct, const char* cache) {
    // 50 MB at 500 MB/s take 0.1 s; five times as fast is 0.02 s.
    return judge_flush(Seconds(cached), 50'000'000, Seconds(direct), rate, cache).verdict;
  };
  CHECK(verdict(0.1, 1e-3, "write back") == Verdict::ok);
  CHECK(verdict(0.019, 1e-3, "write back") == Verdict::suspected);
  CHECK(verdict(0.1, 1e-6, "write back") == Verdict::suspected);
  CHECK(verdict(0.1, 1e-6, "write through") == Verdict::ok);  // nothing to flush
  const Check ignored = judge_flush(Seconds(1e-6), 50'000'000, Seconds(1e-3), rate, "write back");
  CHECK_THAT(ignored.evidence, Containing("cannot have left memory"));
}

TEST_CASE("a burst shows as a step of the rate and says when", "[checks]") {
  // Thirty windows of 0.5 s: ten at 2 GB/s, then 0.5 GB/s: after 15 s · 10/30 = 5 s, ratio 0.25.
  std::vector<double> series(30, 0.5e9);
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (i < 10) series[i] = 2e9;
    series[i] *= 1 + 0.01 * static_cast<double>(i % 3);
  }
  const Check burst = judge_burst(series, Seconds(15));
  CHECK(burst.verdict == Verdict::suspected);
  CHECK_THAT(burst.evidence,
             Containing("after 5 s the rate is 0.25 times") && Containing("a token bucket"));
  std::vector<double> flat(30, 0.5e9);
  for (std::size_t i = 0; i < flat.size(); ++i) flat[i] *= 1 + 0.01 * static_cast<double>(i % 3);
  CHECK(judge_burst(flat, Seconds(15)).verdict == Verdict::ok);
  CHECK(judge_burst(std::vector<double>(5, 1e9), Seconds(1)).verdict == Verdict::not_told);
}

TEST_CASE("steal and a quota are said", "[checks]") {
  // 10 s on two cores: 0.3 s stolen are 1.5 % of 20 s, 1 s are 5 %.
  const rig::Readings before{.at = 0, .cores = 2, .throttled = 3};
  rig::Readings after{.at = 10'000'000'000, .stolen = 0.3, .cores = 2, .throttled = 3};
  CHECK(judge_processors(before, after).verdict == Verdict::ok);
  after.stolen = 1;
  CHECK(judge_processors(before, after).verdict == Verdict::suspected);
  CHECK_THAT(judge_processors(before, after).evidence, Containing("took 5.0 %"));
  after.stolen = 0;
  after.throttled = 5;
  CHECK_THAT(judge_processors(before, after).evidence, Containing("stopped us in 2 periods"));
  after.throttled = -1;
  CHECK_THAT(judge_processors(before, after).evidence, Containing("quota not counted"));
}

TEST_CASE("neighbours on cores and on the drive are said", "[checks]") {
  CHECK(judge_neighbours({.cores = 0.1, .bytes_per_second = 1e6}, "vda").verdict == Verdict::ok);
  CHECK(judge_neighbours({.cores = 0.1}, "vda").verdict == Verdict::not_told);
  CHECK_THAT(judge_neighbours({.cores = 0.3}, "vda").evidence, Containing("not counted"));
  CHECK(judge_neighbours({.cores = 0.3}, "").verdict == Verdict::suspected);
  CHECK_THAT(judge_neighbours({.bytes_per_second = 20e6}, "vda").evidence,
             Containing("20 MB/s on vda"));
}

TEST_CASE("threads that do not add up are said", "[checks]") {
  CHECK(judge_cores(80, 150, 2).verdict == Verdict::ok);  // 150/160 = 0.94
  CHECK(judge_cores(80, 110, 2).verdict == Verdict::suspected);
  CHECK_THAT(judge_cores(80, 110, 2).evidence, Containing("1.38 times the work"));
}

TEST_CASE("a value above what physics allows is a lie; a spoiled sample is not counted",
          "[checks]") {
  Measurements measurements;
  CHECK(judge_ceilings(measurements).verdict == Verdict::not_told);
  Row row{.quantity = "nvme.read", .at = {{"block", 4096}}};
  row.ceiling = 8e9;
  row.ceiling_from = "PCIe 16.0 GT/s x4";
  const TakenSample real{.value = 6e9}, false_one{.value = 12e9};
  TakenSample spoiled = false_one;
  spoiled.spoiled = "others";
  measurements.rows = {{row, {{0, true, {real, spoiled}}}, {}}};
  CHECK(judge_ceilings(measurements).verdict == Verdict::ok);
  measurements.rows[0].blocks[0].samples.push_back(false_one);
  const Check lie = judge_ceilings(measurements);
  CHECK(lie.verdict == Verdict::suspected);
  CHECK_THAT(lie.evidence, Containing("nvme.read/block=4096 at 1.2e+10 B/s, 150 % of 8e+09") &&
                               Containing("PCIe 16.0 GT/s x4"));
}

TEST_CASE("a stream that stands still for a while is said", "[checks]") {
  std::vector<double> rates(20, 1e9);
  CHECK(judge_burst(rates, Seconds(10)).verdict == Verdict::ok);
  rates[7] = 0;
  const Check check = judge_burst(rates, Seconds(10));
  CHECK(check.verdict == Verdict::suspected);
  CHECK_THAT(check.evidence, Containing("stood still for 1 of 20 windows"));
}

TEST_CASE("a wrong checksum of any row is said", "[checks]") {
  Measurements measurements;
  CHECK(judge_contents(measurements).verdict == Verdict::not_told);
  measurements.rows = {{Row{.quantity = "adam"}, {}, {}}};
  CHECK(judge_contents(measurements).verdict == Verdict::ok);
  measurements.rows[0].faults = {"contents differ"};
  CHECK_THAT(judge_contents(measurements).evidence,
             Containing("1 rows are faulty, first adam: contents differ"));
}
