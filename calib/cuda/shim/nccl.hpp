#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calib/cuda/shim/handles.hpp"
#include "calib/cuda/shim/shared_library.hpp"

/// NCCL (libnccl.so.2): collectives of all local GPUs in one process, on fp32, summed.
namespace tidegate::cuda {

enum class Collective { all_reduce, all_gather, reduce_scatter };

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
  };
  SharedLibrary library_;
  Functions call_;
};

/// One communicator over GPUs 0 … ranks-1 (ncclCommInitAll).
class Communicators {
 public:
  explicit Communicators(int ranks);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  int ranks() const { return static_cast<int>(each_.size()); }
  /// Enqueues one collective on every rank's stream. `elements`: of the whole vector, as nccl-tests
  /// count the size: each rank sends elements/ranks of a gather and receives as many of a scatter.
  void enqueue(Collective collective, std::span<float* const> from, std::span<float* const> to,
               std::size_t elements, std::span<const Stream> streams) const;

 private:
  void check(int code, const char* call) const;

  Nccl nccl_;
  std::vector<void*> each_;
};

}  // namespace tidegate::cuda
