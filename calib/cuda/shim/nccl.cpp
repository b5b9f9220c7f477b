#include "calib/cuda/shim/nccl.hpp"

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
}

int Nccl::version() const {
  int version = 0;
  if (!why_absent().empty() || call_.version(&version) != 0) return 0;
  return version;
}

Communicators::Communicators(int ranks) {
  if (!nccl_.why_absent().empty()) throw MachineError(nccl_.why_absent());
  each_.assign(static_cast<std::size_t>(ranks), nullptr);
  check(nccl_.call_.init_all(each_.data(), ranks, nullptr), "ncclCommInitAll");
}

Communicators::~Communicators() {
  for (void* one : each_) nccl_.call_.destroy(one);
}

void Communicators::check(int code, const char* call) const {
  if (code == 0) return;
  throw MachineError(fmt::format("{}: error {}: {}", call, code, nccl_.call_.error_text(code)));
}

void Communicators::enqueue(Collective collective, std::span<float* const> from,
                            std::span<float* const> to, std::size_t elements,
                            std::span<const Stream> streams) const {
  const auto& call = nccl_.call_;
  const std::size_t part = elements / each_.size();
  check(call.group_start(), "ncclGroupStart");
  for (std::size_t r = 0; r < each_.size(); ++r) {
    const StreamHandle stream = streams[r].handle();
    switch (collective) {
      case Collective::all_reduce:
        check(call.all_reduce(from[r], to[r], elements, float32, sum, each_[r], stream),
              "ncclAllReduce");
        break;
      case Collective::all_gather:
        check(call.all_gather(from[r], to[r], part, float32, each_[r], stream), "ncclAllGather");
        break;
      case Collective::reduce_scatter:
        check(call.reduce_scatter(from[r], to[r], part, float32, sum, each_[r], stream),
              "ncclReduceScatter");
        break;
    }
  }
  check(call.group_end(), "ncclGroupEnd");
}

}  // namespace tidegate::cuda
