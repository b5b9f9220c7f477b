#include <algorithm>
#include <functional>

#include <fmt/core.h>

#include "calib/checks/checks.hpp"
#include "calib/fit/statistics.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

/// Ratios of interleaved pairs, judged against a threshold. All pairs have to agree, since a slow
/// moment of a shared machine can double one of them.
struct Pairs {
  double median = 1, least = 1, most = 1;

  Verdict above(double threshold) const {
    if (median <= threshold) return Verdict::ok;
    return least > 1 ? Verdict::suspected : Verdict::not_told;
  }
  std::string text() const {
    return fmt::format("{:.2f} times as fast (pairs {:.2f} to {:.2f})", median, least, most);
  }
};

Pairs ratios(std::span<const double> above, std::span<const double> below) {
  ensure(!above.empty() && above.size() == below.size(), "samples come in pairs");
  std::vector<double> all;
  std::ranges::transform(above, below, std::back_inserter(all), std::divides<>());
  return {median(all), *std::ranges::min_element(all), *std::ranges::max_element(all)};
}

std::string explained(Verdict verdict, const std::string& numbers, const char* suspicion) {
  if (verdict == Verdict::suspected) return numbers + ": " + suspicion;
  if (verdict == Verdict::not_told)
    return numbers + ": the pairs disagree, measure when it is quiet";
  return numbers;
}

std::string text_of(std::int64_t bytes) { return to_text(Bytes(static_cast<double>(bytes))); }

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::suspected:
      return "suspected";
    case Verdict::not_told:
      return "not_told";
  }
  return "";
}

Check judge_cache(std::span<const double> first, std::span<const double> again,
                  std::int64_t region) {
  const Pairs pairs = ratios(again, first);
  const Verdict verdict = pairs.above(1.2);
  const std::string numbers = fmt::format("{} read again is {}, first reads {}", text_of(region),
                                          pairs.text(), to_text(BytesPerSecond(median(first))));
  return {"host_cache", verdict,
          explained(verdict, numbers,
                    "a cache of the host or drive answers; use first reads, or "
                    "files larger than the cache")};
}

Check judge_client_cache(std::span<const double> own, std::span<const double> other) {
  const Pairs pairs = ratios(own, other);
  const Verdict verdict = pairs.above(1.2);
  const std::string numbers =
      fmt::format("what a client wrote itself is read {}, files of others {}", pairs.text(),
                  to_text(BytesPerSecond(median(other))));
  return {"client_cache", verdict,
          explained(verdict, numbers,
                    "the client's cache answers; state that another node reads back comes at the "
                    "rate of read_other")};
}

Check judge_device_bytes(std::span<const double> ratios) {
  const double ratio = median(ratios);
  const auto numbers = fmt::format("the device counted {:.3f} of the bytes that we read", ratio);
  if (ratio < 0.98) {
    return {"device_bytes", Verdict::suspected, numbers + ": a cache in this system answers"};
  }
  if (ratio > 1.05) {
    return {"device_bytes", Verdict::suspected,
            numbers + ": others use it, or the file system reads more than it is asked for"};
  }
  return {"device_bytes", Verdict::ok, numbers};
}

Check judge_compression(std::span<const double> zeros, std::span<const double> random) {
  const Pairs pairs = ratios(zeros, random);
  const Verdict verdict = pairs.above(1.1);
  const std::string numbers = fmt::format("writing zeros is {}, random bytes {}", pairs.text(),
                                          to_text(BytesPerSecond(median(random))));
  return {"compression", verdict,
          explained(verdict, numbers,
                    "file system or drive compresses; rates hold for bytes that "
                    "do not compress")};
}

Check judge_flush(Seconds after_cached, std::int64_t dirty, Seconds after_direct,
                  BytesPerSecond write_rate, const std::string& write_cache) {
  const BytesPerSecond rate = Bytes(static_cast<double>(dirty)) / after_cached;
  const auto numbers = fmt::format(
      "flush of {} takes {} ({}), {} after direct writes; direct writes run at {}", text_of(dirty),
      to_text(after_cached), to_text(rate), to_text(after_direct), to_text(write_rate));
  if (rate > 5 * write_rate) {
    return {"flush", Verdict::suspected, numbers + ": the dirty bytes cannot have left memory"};
  }
  constexpr Seconds shortest_command{5e-6};
  if (write_cache == "write back" && after_direct < shortest_command) {
    return {"flush", Verdict::suspected, numbers + ": the drive's cache is not flushed"};
  }
  return {"flush", Verdict::ok, numbers};
}

Check judge_burst(std::span<const double> series, Seconds length) {
  if (series.size() < 10) {
    return {"burst", Verdict::not_told,
            fmt::format("{} windows in {} are too few", series.size(), to_text(length))};
  }
  const auto still = std::ranges::count_if(series, [](double rate) { return !(rate > 0); });
  if (still > 0) {
    return {
        "burst", Verdict::suspected,
        fmt::format("the stream stood still for {} of {} windows in {}: a token bucket, or others",
                    still, series.size(), to_text(length))};
  }
  const ChangePoint change = change_point(series);
  const bool is_large = change.found() && (change.ratio < 0.8 || change.ratio > 1.25);
  const auto spread_of = quantile(series, 0.9) / std::max(quantile(series, 0.1), 1.0);
  if (!is_large) {
    return {"burst", Verdict::ok,
            fmt::format("no step in {}: p90/p10 of {} windows {:.2f}", to_text(length),
                        series.size(), spread_of)};
  }
  const Seconds at = length * (static_cast<double>(change.at) / static_cast<double>(series.size()));
  return {
      "burst", Verdict::suspected,
      fmt::format("after {} the rate is {:.2f} times what it was: {}", to_text(at), change.ratio,
                  change.ratio < 1 ? "a token bucket, a write cache that fills, heat, or others"
                                   : "a slow start, a limit lifted, a cache, or others")};
}

Check judge_cores(double one, double many, std::int32_t threads) {
  const double each = many / (one * threads);
  const auto numbers =
      fmt::format("{} threads do {:.2f} times the work of one", threads, many / one);
  if (each >= 0.9) return {"cores", Verdict::ok, numbers};
  return {"cores", Verdict::suspected,
          numbers + ": siblings of one core, a quota, a slower clock, or others"};
}

}  // namespace tidegate::calib
