#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "validate/train/operators.hpp"

/// The parts behind operators.hpp, one pair of functions for each operator of sim/graph.
namespace tidegate::train {

// ends.cpp
void embed(const Site&, const Tensors&, Flow&, Storages&);
Tensors embed_backward(const Site&, const Tensors&, Flow&, const Storages&);
void project(const Site&, const Tensors&, Flow&, Storages&);
Tensors project_backward(const Site&, const Tensors&, Flow&, const Storages&);
void loss(const Site&, const Tensors&, Flow&, Storages&);
Tensors loss_backward(const Site&, const Tensors&, Flow&, const Storages&);

// norm.cpp: of the embedding, in front of a sublayer or the head, of q and k.
void norm_stream(const Site&, const Tensors&, Flow&, Storages&);
Tensors norm_stream_backward(const Site&, const Tensors&, Flow&, const Storages&);
void norm_branch(const Site&, const Tensors&, Flow&, Storages&);
Tensors norm_branch_backward(const Site&, const Tensors&, Flow&, const Storages&);
void norm_heads(const Site&, const Tensors&, Flow&, Storages&);
Tensors norm_heads_backward(const Site&, const Tensors&, Flow&, const Storages&);

// projections.cpp
void qkv(const Site&, const Tensors&, Flow&, Storages&);
Tensors qkv_backward(const Site&, const Tensors&, Flow&, const Storages&);
void rotary(const Site&, const Tensors&, Flow&, Storages&);
Tensors rotary_backward(const Site&, const Tensors&, Flow&, const Storages&);
void output(const Site&, const Tensors&, Flow&, Storages&);
Tensors output_backward(const Site&, const Tensors&, Flow&, const Storages&);
/// Keys and values as the core reads them, copied to every head where it is not a flash kernel, and
/// saved with q; by the last operator before the core. Backward sums the gradients of the copies.
void keep_projections(const Site&, Flow&, Storages&);
void merge_copies(const Site&, Flow&);

// attention.cpp
void attention(const Site&, const Tensors&, Flow&, Storages&);
Tensors attention_backward(const Site&, const Tensors&, Flow&, const Storages&);

// feed_forward.cpp
void ffn_up(const Site&, const Tensors&, Flow&, Storages&);
Tensors ffn_up_backward(const Site&, const Tensors&, Flow&, const Storages&);
void activate(const Site&, const Tensors&, Flow&, Storages&);
Tensors activate_backward(const Site&, const Tensors&, Flow&, const Storages&);
void ffn_down(const Site&, const Tensors&, Flow&, Storages&);
Tensors ffn_down_backward(const Site&, const Tensors&, Flow&, const Storages&);

/// y = x W' + bias of tensors[first], tensors[first + 1] if `has_bias`, rounded.
Values linear(const Site&, const Tensors&, std::size_t first, bool has_bias,
              std::span<const float> x, std::int64_t in, std::int64_t out);
/// Adds to dx [rows, in] without rounding; appends the gradients of weight and bias.
void linear_backward(const Site&, const Tensors&, std::size_t first, bool has_bias,
                     std::span<const float> dy, std::span<const float> x, std::int64_t in,
                     std::int64_t out, Values& dx, Tensors& gradients);

/// Columns [from, from + width) of rows of `all` numbers, and back.
Values columns(std::span<const float> values, std::int64_t all, std::int64_t from,
               std::int64_t width);
Values side_by_side(std::span<const float> left, std::int64_t left_width,
                    std::span<const float> right, std::int64_t right_width);

}  // namespace tidegate::train
