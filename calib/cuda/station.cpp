#include "calib/cuda/station.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "calib/cuda/kernels.hpp"

namespace tidegate::cuda {

Station::Station(const GpuFacts& gpu)
    : gpu_(gpu),
      stream_(gpu.index),
      counter_(gpu.index, sizeof(unsigned long long)),
      nvml_(std::make_unique<Nvml>()),
      handle_(nvml_->device(gpu.bus_id)) {}

std::string Station::look(Needs needs) const {
  const auto reading = nvml_->clocks(handle_);
  return reading ? slowed(*reading, gpu_.sm_clock, needs) : "";
}

void Station::recover(const std::string& spoiled) {
  if (spoiled.empty()) {
    pause_ = Seconds(0);
    return;
  }
  pause_ = Seconds(std::clamp(2 * pause_.value(), 0.05, 2.0));
  std::this_thread::sleep_for(std::chrono::duration<double>(pause_.value()));
}

Timed Station::time(Seconds target, Needs needs, const std::function<void(int)>& operation) {
  const OnDevice here(gpu_.index);
  int done = 0;
  const auto next = [&](int) { operation(done++); };
  next(0);
  stream_.wait();
  Timed timed;
  GateOptions options;
  const auto run = [&](int operations) {
    const std::vector<Lane> lanes{{&stream_, operations, next}};
    return time_behind_gate(lanes, options).front();
  };
  const Cut cut = cut_for(target, run(2) / 2, most_queued);
  int round = 0;
  // Not in the first of several rounds: clocks need time to answer to the load.
  options.while_running = [&] {
    if ((round > 0 || cut.rounds == 1) && timed.spoiled.empty()) timed.spoiled = look(needs);
  };
  for (; round < cut.rounds; ++round) timed.in_all += run(cut.operations);
  timed.each = timed.in_all / (1.0 * cut.rounds * cut.operations);
  recover(timed.spoiled);
  return timed;
}

unsigned long long Station::faults(const std::function<void(unsigned long long*)>& count) {
  const OnDevice here(gpu_.index);
  auto* counter = counter_.as<unsigned long long>();
  set_bytes(stream_, counter, 0, sizeof(*counter));
  count(counter);
  stream_.wait();
  unsigned long long faults = 0;
  copy_now(gpu_.index, &faults, counter, sizeof(faults));
  return faults;
}

void fill_uniform(const Stream& stream, void* at, DType type, std::size_t n, std::uint32_t seed) {
  switch (type) {
    case DType::fp32:
      return fill_fp32(stream, at, n, seed);
    case DType::bf16:
      return fill_bf16(stream, at, n, seed);
    case DType::fp16:
      return fill_fp16(stream, at, n, seed);
    case DType::fp8:
      return fill_e4m3(stream, at, n, seed);
  }
}

std::string why_no_gpu() {
  const char* why = "";
  if (device_count(&why) == 0) return std::string("no GPU: ") + why;
  return why_no_gate();
}

calib::Row gpu_row(const std::string& quantity, std::vector<std::pair<std::string, double>> at,
                   calib::Unit unit, const GpuFacts& gpu, const Ceiling& ceiling) {
  if (device_count() > 1) at.emplace_back("gpu", gpu.index);
  calib::Row row;
  row.quantity = quantity;
  row.at = std::move(at);
  row.unit = unit;
  row.ceiling = ceiling.value;
  row.ceiling_from = ceiling.from;
  return row;
}

calib::Sample sample_of(double work, const Timed& timed, bool is_verified) {
  calib::Sample sample;
  sample.value = work / timed.each.value();
  sample.elapsed = timed.in_all;
  sample.is_verified = is_verified;
  sample.spoiled = timed.spoiled;
  return sample;
}

}  // namespace tidegate::cuda
