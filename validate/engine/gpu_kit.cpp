#include "validate/engine/gpu_kit.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "models/base/units.hpp"
#include "validate/engine/team_trial.hpp"

namespace tidegate {

AttachedMemory::AttachedMemory(std::shared_ptr<DirectFiles> files, std::uint16_t gpu,
                               std::span<std::byte> memory)
    : files_(std::move(files)), gpu_(gpu), memory_(memory) {
  files_->attach(gpu_, memory_);
}

AttachedMemory::~AttachedMemory() {
  if (files_ != nullptr) files_->detach(gpu_, memory_);
}

GpuKit::GpuKit(const GpuNeeds& needs, const Devices& devices, std::span<std::byte> host,
               const std::shared_ptr<DirectFiles>& direct) {
  if (needs.gpus.empty()) return;
  if (needs.is_pinned && !host.empty())
    pinned_ = PinnedPages(devices.at(needs.gpus.begin()->first), host);
  for (const auto& [number, need] : needs.gpus) {
    try {
      sit_down(number, need, devices.at(number), host, direct);
    } catch (const MachineError& error) {
      throw MachineError(fmt::format(
          "GPU {} ({}), where a thread needs {} for ends of copies beside the plan's pools: {}",
          number, devices.at(number)->name(),
          tidegate::to_text(Bytes(static_cast<double>(need.out + need.in))), error.what()));
    }
  }
  for (const auto& [group, exchanges] : needs.teams) {
    teams_[group] = devices.teams->sit_down(group);
    std::vector<TrialMember> members;
    for (const std::uint16_t gpu : group) members.push_back({&seat(gpu), out(gpu), in(gpu)});
    try_team(devices, group, members, exchanges, [&](const Exchange& e) { run(group, e); });
  }
}

void GpuKit::sit_down(std::uint16_t number, const GpuNeeds::Gpu& need,
                      const std::shared_ptr<Device>& device, std::span<std::byte> host,
                      const std::shared_ptr<DirectFiles>& direct) {
  Gpu& gpu = gpus_[number];
  if (need.out > 0) gpu.out = DeviceMemory(device, need.out);
  if (need.in > 0) gpu.in = DeviceMemory(device, need.in);
  gpu.seat = device->sit_down(need.kernels);
  for (const std::span<std::byte> end : {gpu.out.bytes(), gpu.in.bytes()}) {
    if (need.has_files && direct != nullptr && !end.empty())
      attached_.emplace_back(direct, number, end);
  }
  // What is written to a drive are ordinary numbers: some compress.
  const std::size_t filled = need.has_files ? std::min(host.size(), gpu.out.bytes().size()) : 0;
  if (filled > 0) gpu.seat->copy(host.first(filled), gpu.out.bytes().first(filled));
}

void GpuKit::run(const Collective& collective) {
  run(members_of(collective), exchange_of(collective));
}

void GpuKit::run(const GpuNeeds::Group& group, const Exchange& exchange) {
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  for (const std::uint16_t gpu : group) {
    from.push_back(out(gpu).first(static_cast<std::size_t>(exchange.sent()) * sizeof(float)));
    to.push_back(in(gpu).first(static_cast<std::size_t>(exchange.received()) * sizeof(float)));
  }
  teams_.at(group)->run(exchange.kind, from, to);
}

}  // namespace tidegate
