#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "calib/kernels/kernels.hpp"
#include "sim/graph/workload.hpp"
#include "validate/train/values.hpp"

/// The primitives of a training step: what operators (operators.hpp) compute with. An operator
/// knows what flows and what is saved; a backend knows sums and products, and neither storages nor
/// plans.
///
/// Every primitive is a function of its operands: arrays of the host in, arrays of the host out,
/// row-major fp32, and the same operands give the same bits however often, in whatever order and
/// from whichever thread they are computed. Where a `type` is given for anything but a product,
/// what comes out is rounded to it.
namespace tidegate::train {

/// x[rows, in] by a weight [out, in].
struct LinearShape {
  std::int64_t rows = 0, in = 0, out = 0;
};

/// Layer norm subtracts the mean of a row, RMS norm does not.
enum class Centring : std::uint8_t { mean, none };
struct Normed {
  Values y;           ///< rounded
  Values normalized;  ///< before weight and bias, fp32
};
struct NormGradients {
  Values x;             ///< rounded
  Values weight, bias;  ///< fp32
};

/// Queries, and what they attend to: q [batch·length, heads, head_dim], k and v with `kv_heads`,
/// each of which serves heads / kv_heads queries. Causal; with a window the last `window` keys.
struct AttentionShape {
  std::int64_t batch = 0, length = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t window = 0;  ///< 0: all
};
struct Projected {
  std::span<const float> q, k, v;
};
/// What a core keeps for backward: [batch, heads, length], or [batch, heads, length, length].
enum class KeptScores : std::uint8_t { log_sums, softmax };
struct Attended {
  Values out;   ///< rounded
  Values kept;  ///< log_sums in fp32; softmax rounded, and read in that type by the values' sum
};
struct ProjectedGradients {
  Values q, k, v;  ///< rounded
};

/// Rows of `heads` heads of `head_dim` numbers; pairs (i, i + pairs) of the first 2 · pairs turn.
struct RotaryShape {
  std::int64_t sequence = 0, heads = 0, head_dim = 0, pairs = 0;
};

/// Tokens of sequences one after another, [tokens].
struct EmbeddingShape {
  std::int64_t hidden = 0, sequence = 0;
};

/// Which of the two the head has kept, [tokens, vocabulary].
enum class KeptLogits : std::uint8_t { log_softmax, softmax };
struct CrossEntropy {
  double loss = 0;              ///< mean over tokens, summed in their order
  Values log_softmax, softmax;  ///< fp32
};

/// Memory that is reached by copies alone, such as a GPU's: its addresses mean nothing to the host.
/// Calls come from several threads; all but free() throw MachineError when the device fails.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  /// Begins at a multiple of 256 bytes.
  virtual std::byte* allocate(std::int64_t bytes) = 0;
  /// Of memory that no work uses any more.
  virtual void free(std::byte* at) noexcept = 0;
  virtual void put(std::span<const std::byte> from, std::byte* to) = 0;
  /// When all works before are done.
  virtual void get(const std::byte* from, std::span<std::byte> to) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Where contents of GPUs lie; null: in memory of the host.
  virtual RemoteMemory* memory() const { return nullptr; }
  /// Where it computes: "on cores".
  virtual std::string place() const = 0;
  /// How it multiplies operands of `type`.
  virtual std::string products_text(DType type) const = 0;

  /// y[rows, out] = x W', dx[rows, in] += dy W and dW[out, in] = dy' x: operands of `type`, sums in
  /// fp32, not rounded.
  virtual Values times_transposed(std::span<const float> x, std::span<const float> w,
                                  const LinearShape& shape, DType type) const = 0;
  virtual void add_input_gradient(std::span<const float> dy, std::span<const float> w,
                                  const LinearShape& shape, DType type,
                                  std::span<float> dx) const = 0;
  virtual Values weight_gradient(std::span<const float> dy, std::span<const float> x,
                                 const LinearShape& shape, DType type) const = 0;
  /// Sum over the rows of [rows, width], in their order, fp32.
  virtual Values column_sums(std::span<const float> a, std::int64_t width) const = 0;
  /// y_ri += bias_i, y [rows, bias].
  virtual void add_to_rows(std::span<float> y, std::span<const float> bias, DType type) const = 0;

  virtual void round(std::span<float> values, DType type) const = 0;
  /// to += from.
  virtual void add(std::span<float> to, std::span<const float> from, DType type) const = 0;
  /// a · b, number by number.
  virtual Values product(std::span<const float> a, std::span<const float> b, DType type) const = 0;

  /// Rows of as many numbers as the weight has; without bias an empty one (norm.cpp has the
  /// equations). Statistics in double.
  virtual Normed norm(std::span<const float> x, std::span<const float> weight,
                      std::span<const float> bias, Centring centring, DType type) const = 0;
  /// `normalized`: as it was kept; empty: made again from x.
  virtual NormGradients norm_backward(std::span<const float> x, std::span<const float> dy,
                                      std::span<const float> weight,
                                      std::span<const float> normalized, Centring centring,
                                      DType type) const = 0;

  /// cpu_attention.cpp has the equations.
  virtual Attended attention(const Projected& in, const AttentionShape& shape, KeptScores keeps,
                             DType type) const = 0;
  virtual ProjectedGradients attention_backward(const Projected& in, std::span<const float> dout,
                                                std::span<const float> kept,
                                                const AttentionShape& shape, KeptScores keeps,
                                                DType type) const = 0;

  /// Turns by position · 10000^(-i / pairs) times `sign`.
  virtual void turn(std::span<float> values, const RotaryShape& shape, double sign,
                    DType type) const = 0;
  /// all [rows, heads · group, head_dim] to [rows, heads, head_dim]: sums over each group.
  virtual Values sum_groups(std::span<const float> all, std::int64_t group, std::int64_t head_dim,
                            DType type) const = 0;

  virtual Values activated(Activation kind, std::span<const float> x, DType type) const = 0;
  /// dy · f'(x).
  virtual Values through_activation(Activation kind, std::span<const float> dy,
                                    std::span<const float> x, DType type) const = 0;

  /// table[id] + positions[t mod sequence]; without positions an empty table of them.
  virtual Values embed(std::span<const std::int32_t> ids, std::span<const float> table,
                       std::span<const float> positions, const EmbeddingShape& shape,
                       DType type) const = 0;
  /// Adds the rows of dy [tokens, hidden] to those of the tables' gradients, in the order of the
  /// tokens, fp32.
  virtual void embed_backward(std::span<const std::int32_t> ids, std::span<const float> dy,
                              const EmbeddingShape& shape, std::span<float> table,
                              std::span<float> positions) const = 0;

  /// logits [labels, vocabulary]; loss = mean of -log softmax(logits)[label].
  virtual CrossEntropy cross_entropy(std::span<const float> logits,
                                     std::span<const std::int32_t> labels) const = 0;
  virtual Values cross_entropy_backward(std::span<const float> kept, KeptLogits keeps,
                                        std::span<const std::int32_t> labels, DType type) const = 0;

  /// calib/kernels' Adam: the bits are the same for every backend, because each operation of it is
  /// one that IEEE 754 rounds in one way.
  virtual void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
                    std::span<const float> gradient, const cpu::AdamOptions& options) const = 0;
  /// p -= rate · (scale · gradient); likewise.
  virtual void sgd(std::span<float> parameters, std::span<const float> gradient, float rate,
                   float scale) const = 0;
};

/// Cores, by the libraries of calib/kernels and plain loops: what every other backend is held to.
/// It has no state.
const Backend& cpu_backend();

}  // namespace tidegate::train
