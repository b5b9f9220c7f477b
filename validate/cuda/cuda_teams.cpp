#include "validate/cuda/cuda_teams.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calib/cuda/shim/handles.hpp"
#include "calib/cuda/shim/nccl.hpp"

namespace tidegate {
namespace {

class CudaTeam final : public DeviceTeam {
 public:
  CudaTeam(const std::vector<int>& gpus, LaunchMutex launch)
      : launch_(std::move(launch)), communicators_(std::in_place, gpus) {
    for (const int gpu : gpus) streams_.emplace_back(gpu);
  }
  ~CudaTeam() override {
    const std::lock_guard turn(*launch_);
    communicators_.reset();
  }
  CudaTeam(const CudaTeam&) = delete;
  CudaTeam& operator=(const CudaTeam&) = delete;

  void run(CollectiveKind kind, std::span<const std::span<const std::byte>> from,
           std::span<const std::span<std::byte>> to) override {
    std::vector<float*> sent, received;
    for (const auto bytes : from)  // NCCL takes what it only reads as const
      sent.push_back(const_cast<float*>(reinterpret_cast<const float*>(bytes.data())));
    for (const auto bytes : to) received.push_back(reinterpret_cast<float*>(bytes.data()));
    const std::size_t whole = std::max(from[0].size(), to[0].size()) / sizeof(float);
    {
      const std::lock_guard turn(*launch_);
      communicators_->enqueue(kind, sent, received, whole, streams_);
    }
    for (const cuda::Stream& stream : streams_) stream.wait();
  }

 private:
  LaunchMutex launch_;
  std::vector<cuda::Stream> streams_;
  std::optional<cuda::Communicators> communicators_;
};

class CudaTeams final : public DeviceTeams {
 public:
  explicit CudaTeams(LaunchMutex launch) : launch_(std::move(launch)) {}

  std::string why_absent() const override { return cuda::Nccl().why_absent(); }
  std::unique_ptr<DeviceTeam> sit_down(std::span<const std::uint16_t> gpus) override {
    const std::lock_guard turn(*launch_);
    return std::make_unique<CudaTeam>(std::vector<int>(gpus.begin(), gpus.end()), launch_);
  }

 private:
  LaunchMutex launch_;
};

}  // namespace

std::shared_ptr<DeviceTeams> cuda_teams(LaunchMutex launch) {
  return std::make_shared<CudaTeams>(std::move(launch));
}

}  // namespace tidegate
