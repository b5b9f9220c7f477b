#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/work.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/graph/workload.hpp"

/// The operators of a transformer: each function appends one or more to a layer.
///
/// Memory traffic is that of eager PyTorch, one kernel reading its inputs and writing its output
/// once, with e bytes per element (2 in 16 bits). Where a number below is not such a count, it says
/// `assumed`. A linear layer's bias is added in the GEMM's epilogue and costs nothing; its gradient
/// reads the output gradient once. Gradients of a tensor with several readers are summed by one
/// kernel each (3e per element).
namespace tidegate {

/// A stream of tokens through a stack, on one rank.
struct Stream {
  std::int64_t length = 0;  ///< tokens per sequence
  std::int64_t tokens = 0;  ///< rows of the matrix products
  std::int64_t rows = 0;    ///< rows of norms, dropouts and residuals: tokens / t when sharded
};

/// A workload as one tensor-parallel rank sees it.
struct RankShape {
  explicit RankShape(const Workload& workload);

  const Network& network;
  KernelOptions kernels;
  DType dtype;
  double element;  ///< bytes
  std::int64_t sequences, ranks;
  bool is_sharded;                                ///< sequence parallelism
  std::int64_t heads, kv_heads, ffn, vocabulary;  ///< of this rank

  Stream stream(std::int64_t length) const;
  std::int64_t query_width() const { return heads * network.head_dim; }
  std::int64_t key_width() const { return kv_heads * network.head_dim; }
};

/// A layer under construction; hands out the identities of its saved storages.
class LayerBuilder {
 public:
  LayerBuilder(std::string name, LayerKind kind, const RankShape& rank);

  const RankShape& rank() const { return rank_; }
  const Network& network() const { return rank_.network; }
  Operator& add(std::string name);
  Operator& last() { return layer_.operators.back(); }
  std::int32_t storage() { return ++storages_; }
  /// `width`: bytes per element, those of the stream's type where it is not said.
  void save(Operator& op, const std::string& name, double bytes, std::int32_t identity) const {
    save(op, name, bytes, identity, rank_.element);
  }
  void save(Operator& op, const std::string& name, double bytes, std::int32_t identity,
            double width) const;
  void save(Operator& op, const std::string& name, double bytes) {
    save(op, name, bytes, storage());
  }
  void save_as(double width, Operator& op, const std::string& name, double bytes) {
    save(op, name, bytes, storage(), width);
  }
  /// Adds a tensor-parallel collective over `elements` numbers; nothing on a single rank.
  void communicate(std::vector<Collective>& list, CollectiveKind kind, std::int64_t elements) const;
  /// What leaves a row-parallel product: its partial sums are added, over shards if there are any.
  void communicate_leaving(std::vector<Collective>& list, std::int64_t elements) const;
  /// Backward of what enters a column-parallel product: its gradients are added; of a sharded
  /// stream the input is gathered anew meanwhile, since only the shard was kept.
  void communicate_entering(Operator& op, std::int64_t elements) const;
  /// The finished layer; workspace is the largest output of a forward GEMM, or `workspace` if
  /// larger.
  Layer finish(Bytes input, Bytes workspace = Bytes());

 private:
  Layer layer_;
  const RankShape& rank_;
  std::int32_t storages_ = 0;
};

Kernel elementwise(double bytes_per_element, std::int64_t elements, std::int32_t launches = 1);

/// y[tokens, out] = x[tokens, in] W' + bias, as this rank holds it.
struct Linear {
  std::string name;
  std::int64_t in = 0, out = 0;
  bool has_bias = false;
  std::int32_t order = 0;
};
void add_linear(const RankShape& rank, Operator& op, std::int64_t tokens, const Linear& linear);

struct Norm {
  std::string name;
  std::int64_t rows = 0, width = 0;
  std::int32_t input = 0;  ///< identity of the storage that it normalises
  std::int32_t order = 0;
};
/// Appends the kernels, the parameters and the saved input of a norm to `op`.
void add_norm(LayerBuilder& layer, Operator& op, const Norm& norm);

/// Dropout and residual sum over the stream's rows.
void add_residual(LayerBuilder& layer, const std::string& name, const Stream& stream);

/// Multi-head attention between its norm and its residual sum.
struct AttentionPart {
  std::string prefix;  ///< "" or "cross_"
  Stream queries, keys;
  bool is_causal = true;
  bool is_cross = false;  ///< keys and values come from the encoder
  bool has_relative_table = false;
  std::int32_t order = 0;
};
void add_attention(LayerBuilder& layer, const AttentionPart& part);

/// Feed-forward part between its norm and its residual sum: dense or a mixture of experts.
void add_feed_forward(LayerBuilder& layer, const Stream& stream, std::int32_t order);

/// Activation of `elements` numbers, with a gate or without; `output` is the identity of its
/// output.
void add_activation(LayerBuilder& layer, std::int64_t elements, std::int32_t output);

/// Bytes of the residual stream as this rank holds it.
Bytes stream_bytes(const RankShape& rank, const Stream& stream);

/// Token, position and type tables with what follows them. `owns` is false for the decoder of an
/// encoder-decoder, which shares the encoder's table.
Layer make_embedding(const RankShape& rank, const std::string& name, const Stream& stream,
                     bool owns);
/// The last norm of an encoder, which keeps its output for all decoder blocks.
Layer make_encoder_end(const RankShape& rank, const Stream& stream);
/// Last norm, projection to the vocabulary and loss; or a pooler.
Layer make_head(const RankShape& rank, const Stream& stream);

}  // namespace tidegate
