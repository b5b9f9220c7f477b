#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calib/cuda/shim/handles.hpp"
#include "calib/cuda/shim/shared_library.hpp"
#include "models/work.hpp"

/// NCCL (libnccl.so.2): collectives of local GPUs in one process, on fp32, summed.
namespace tidegate::cuda {

class Nccl {
 public:
  Nccl();
  const std::string& why_absent() const { return library_.why_absent(); }
  int version() const;  ///< 22809 is 2.28.9; 0 when absent

 private:
  friend class Communicators;
  struct Functions {
    int (*version)(int*) = nullptr;
    int (*init_all)(void**, int, const int*) = nullptr;
    int (*destroy)(void*) = nullptr;
    const char* (*error_text)(int) = nullptr;
    int (*group_start)() = nullptr;
    int (*group_end)() = nullptr;
    int (*all_reduce)(const void*, void*, std::size_t, int, int, void*, StreamHandle) = nullptr;
    int (*all_gather)(const void*, void*, std::size_t, int, void*, StreamHandle) = nullptr;
    int (*reduce_scatter)(const void*, void*, std::size_t, int, int, void*, StreamHandle) = nullptr;
    int (*broadcast)(const void*, void*, std::size_t, int, int, void*, StreamHandle) = nullptr;
    int (*send)(const void*, std::size_t, int, int, void*, StreamHandle) = nullptr;
    int (*receive)(void*, std::size_t, int, int, void*, StreamHandle) = nullptr;
  };
  SharedLibrary library_;
  Functions call_;
};

/// One communicator (ncclCommInitAll).
class Communicators {
 public:
  /// Over GPUs 0 … ranks-1.
  explicit Communicators(int ranks);
  /// Over these GPUs, whose order is that of the ranks.
  explicit Communicators(std::span<const int> gpus);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  int ranks() const { return static_cast<int>(each_.size()); }
  /// Enqueues one collective on every rank's stream. `elements`: of the whole vector, as nccl-tests
  /// count the size: each rank sends elements/ranks of a gather and receives as many of a scatter.
  /// A broadcast is rank 0's; an all-to-all, which has no call of its own, is sends and receives in
  /// one group.
  void enqueue(CollectiveKind kind, std::span<float* const> from, std::span<float* const> to,
               std::size_t elements, std::span<const Stream> streams) const;

 private:
  void check(int code, const char* call) const;
  void enqueue_one(CollectiveKind kind, std::size_t rank, const float* from, float* to,
                   std::size_t elements, StreamHandle stream) const;
  void enqueue_all_to_all(std::size_t rank, const float* from, float* to, std::size_t part,
                          StreamHandle stream) const;

  Nccl nccl_;
  std::vector<void*> each_;
};

}  // namespace tidegate::cuda
