#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "models/base/units.hpp"

/// Work: something to be done, with its sizes, and nothing about how long it takes.
///
/// A plan names works; machine.hpp prices them for the simulator, validate/ runs them for real.
/// The set is closed: a new kind is a compile error in every std::visit that must answer it.
namespace tidegate {

enum class DType : std::uint8_t { fp32, bf16, fp16, fp8 };
constexpr double bytes_per_element(DType t) {
  switch (t) {
    case DType::fp32:
      return 4;
    case DType::bf16:
    case DType::fp16:
      return 2;
    case DType::fp8:
      return 1;
  }
  return 0;
}
const char* name_of(DType t);

/// Where bytes live. `index` counts the GPUs, NUMA nodes or storage paths of a machine, node by
/// node.
enum class Tier : std::uint8_t { gpu, host, storage };
struct Place {
  Tier tier = Tier::host;
  std::uint16_t index = 0;
  bool operator==(const Place&) const = default;
};

/// C[m,n] += A[m,k] B[k,n], `batch` times, as one kernel. 2·batch·m·n·k FLOPs.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  DType dtype = DType::bf16;
  bool operator==(const Gemm&) const = default;
};
/// Fused (flash) attention over [batch, heads, queries, head_dim] and [batch, kv_heads, keys, …];
/// the s×s matrix never reaches memory. Forward 4·b·a·q·k·d FLOPs, half when causal; backward 2.5×.
struct Attention {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 0, keys = 0, head_dim = 0;
  bool causal = true;
  bool backward = false;
  DType dtype = DType::bf16;
  bool operator==(const Attention&) const = default;
};
/// One or more memory-bound kernels that read and write `bytes` of GPU memory in all.
struct Elementwise {
  Bytes bytes;
  std::int32_t launches = 1;
  bool operator==(const Elementwise&) const = default;
};
using Kernel = std::variant<Gemm, Attention, Elementwise>;

Flops flops_of(const Kernel& kernel);

/// Kernels run one after another on one GPU.
struct Compute {
  std::uint16_t gpu = 0;
  std::vector<Kernel> kernels;
  bool operator==(const Compute&) const = default;
};
/// A copy between GPU and host memory, between GPUs, or within host memory.
enum class Pinning : std::uint8_t { pinned, pageable };
struct Copy {
  Place from, to;
  Bytes bytes;
  Pinning pinning = Pinning::pinned;
  bool operator==(const Copy&) const = default;
};
/// Bytes between a file on storage path `path` and memory. `clients` is how many processes of the
/// node use the path at the same time at most (a file system may serve one client below its limit).
enum class Direction : std::uint8_t { read, write };
struct FileIo {
  Direction direction = Direction::read;
  std::uint16_t path = 0;
  Place memory;
  Bytes bytes;
  Bytes block = Bytes(1 << 20);
  std::int32_t queue_depth = 8;
  std::int32_t threads = 1;
  bool operator==(const FileIo&) const = default;
};
/// Adam on the CPU cores of one rank: fp32 master parameters, two moments, gradient of type
/// `gradient`.
struct AdamStep {
  std::uint16_t rank = 0;
  std::int64_t parameters = 0;
  DType gradient = DType::fp32;
  bool operator==(const AdamStep&) const = default;
};
/// Conversion of `elements` numbers on the CPU cores of one rank.
struct Cast {
  std::uint16_t rank = 0;
  std::int64_t elements = 0;
  DType from = DType::bf16, to = DType::fp32;
  bool operator==(const Cast&) const = default;
};
/// A collective over `ranks` ranks, of which the machine has the `gpus` on GPUs first_gpu,
/// first_gpu + stride, …. Each node that takes part has `per_node` of the ranks; 0 stands for
/// `gpus`. The group leaves its node when ranks > per_node. `bytes` is the full, unsharded buffer:
/// all-gather and reduce-scatter move (n-1)/n of it through each GPU, all-reduce twice that.
///
/// A folded group has fewer members here than ranks on the node: {ranks 8, gpus 1, per_node 8} is a
/// tensor-parallel group of eight equal ranks of which one is simulated (Machine::part).
enum class CollectiveKind : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  all_to_all
};
const char* name_of(CollectiveKind kind);
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;
  std::int32_t ranks = 1;
  std::uint16_t first_gpu = 0;
  std::uint16_t gpus = 1;
  std::uint16_t stride = 1;
  std::uint16_t per_node = 0;
  std::int32_t ranks_per_node() const { return per_node > 0 ? per_node : gpus; }
  bool leaves_node() const { return ranks > ranks_per_node(); }
  bool operator==(const Collective&) const = default;
};
/// Time that passes without using anything: framework overhead, a fixed wait.
struct Delay {
  Seconds duration;
  bool operator==(const Delay&) const = default;
};

using Work = std::variant<Delay, Compute, Copy, FileIo, AdamStep, Cast, Collective>;

std::size_t hash_of(const Work& work);
/// "read 2.54 GB nvme0 -> host": for people and for plan dumps.
std::string to_text(const Work& work);
/// Exact one-line form and its inverse, used by plan dumps. Throws InputError on other text.
std::string encode(const Work& work);
Work decode_work(const std::string& text);

}  // namespace tidegate
