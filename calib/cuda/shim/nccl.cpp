#include "calib/cuda/shim/nccl.hpp"

#include <numeric>

#include <fmt/core.h>

#include "models/base/error.hpp"

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace tidegate::cuda {
namespace {

// Values of nccl.h, which has kept them through all of version 2; checked where the header is
// there.
constexpr int float32 = 7;
constexpr int sum = 0;
#if __has_include(<nccl.h>)
static_assert(static_cast<int>(ncclFloat32) == float32 && static_cast<int>(ncclSum) == sum);
#endif

}  // namespace

Nccl::Nccl() : library_({"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"}) {
  library_.find(call_.version, {"ncclGetVersion"});
  library_.find(call_.init_all, {"ncclCommInitAll"});
  library_.find(call_.destroy, {"ncclCommDestroy"});
  library_.find(call_.error_text, {"ncclGetErrorString"});
  library_.find(call_.group_start, {"ncclGroupStart"});
  library_.find(call_.group_end, {"ncclGroupEnd"});
  library_.find(call_.all_reduce, {"ncclAllReduce"});
  library_.find(call_.all_gather, {"ncclAllGather"});
  library_.find(call_.reduce_scatter, {"ncclReduceScatter"});
  library_.find(call_.broadcast, {"ncclBroadcast"});
  library_.find(call_.send, {"ncclSend"});
  library_.find(call_.receive, {"ncclRecv"});
}

int Nccl::version() const {
  int version = 0;
  if (!why_absent().empty() || call_.version(&version) != 0) return 0;
  return version;
}

namespace {

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

}  // namespace

Communicators::Communicators(int ranks) : Communicators(first_gpus(ranks)) {}

Communicators::Communicators(std::span<const int> gpus) {
  if (!nccl_.why_absent().empty()) throw MachineError(nccl_.why_absent());
  each_.assign(gpus.size(), nullptr);
  check(nccl_.call_.init_all(each_.data(), ranks(), gpus.data()), "ncclCommInitAll");
}

Communicators::~Communicators() {
  for (void* one : each_) nccl_.call_.destroy(one);
}

void Communicators::check(int code, const char* call) const {
  if (code == 0) return;
  throw MachineError(fmt::format("{}: error {}: {}", call, code, nccl_.call_.error_text(code)));
}

void Communicators::enqueue(CollectiveKind kind, std::span<float* const> from,
                            std::span<float* const> to, std::size_t elements,
                            std::span<const Stream> streams) const {
  check(nccl_.call_.group_start(), "ncclGroupStart");
  for (std::size_t r = 0; r < each_.size(); ++r)
    enqueue_one(kind, r, from[r], to[r], elements, streams[r].handle());
  check(nccl_.call_.group_end(), "ncclGroupEnd");
}

void Communicators::enqueue_one(CollectiveKind kind, std::size_t rank, const float* from, float* to,
                                std::size_t elements, StreamHandle stream) const {
  const auto& call = nccl_.call_;
  void* const one = each_[rank];
  const std::size_t part = elements / each_.size();
  switch (kind) {
    case CollectiveKind::all_reduce:
      return check(call.all_reduce(from, to, elements, float32, sum, one, stream), "ncclAllReduce");
    case CollectiveKind::all_gather:
      return check(call.all_gather(from, to, part, float32, one, stream), "ncclAllGather");
    case CollectiveKind::reduce_scatter:
      return check(call.reduce_scatter(from, to, part, float32, sum, one, stream),
                   "ncclReduceScatter");
    case CollectiveKind::broadcast:
      return check(call.broadcast(from, to, elements, float32, 0, one, stream), "ncclBroadcast");
    case CollectiveKind::all_to_all:
      return enqueue_all_to_all(rank, from, to, part, stream);
  }
}

void Communicators::enqueue_all_to_all(std::size_t rank, const float* from, float* to,
                                       std::size_t part, StreamHandle stream) const {
  for (std::size_t peer = 0; peer < each_.size(); ++peer) {
    const int number = static_cast<int>(peer);
    check(nccl_.call_.send(from + peer * part, part, float32, number, each_[rank], stream),
          "ncclSend");
    check(nccl_.call_.receive(to + peer * part, part, float32, number, each_[rank], stream),
          "ncclRecv");
  }
}

}  // namespace tidegate::cuda
