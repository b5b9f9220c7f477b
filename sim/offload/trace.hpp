#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/base/units.hpp"

/// What one micro-batch of one rank computes and keeps, as a profiling iteration saw it in which
/// everything was kept: all that an offload planner knows of a training step.
///
/// Time points: n operators give 2n points. Point i < n is the forward of operator i, point
/// 2n-1-i its backward, so the tensors kept longest are those saved first.
///
/// A saved tensor is there from point `first` to point 2n-1-first and used at first … last and at
/// 2n-1-last … 2n-1-first. Between, it only waits: its inactive interval goes from the end of
/// `last` to the start of 2n-1-last and always contains the turn from forward to backward.
namespace tidegate {

struct TensorTrace {
  struct Operator {
    std::size_t layer = 0, op = 0;
    Seconds forward, backward;
  };
  struct Tensor {
    std::string name;
    Bytes bytes;
    std::size_t first = 0,
                last = 0;  ///< operators: made at `first`, needed in forward until `last`
    bool may_move = true;  ///< after the rules of exclusion (too small, excluded scope)
    /// Time to make it again when the tensors saved just before it in its layer are there;
    /// negative or infinite where it cannot be (see recompute.hpp).
    Seconds recompute = Seconds(-1);
    /// Tensors of its layer that are read as well when it is made again: the input of a residual
    /// sum on the way, and what the first operator of the way reads beside what it made itself.
    std::vector<std::size_t> from;

    bool can_recompute() const;
  };

  std::vector<Operator> operators;  ///< in forward order, layers one after the other
  std::vector<Tensor> tensors;
  Bytes standing;                ///< held all the time: parameters, states, gradients
  std::vector<Bytes> transient;  ///< per point: short-lived memory beside the saved tensors

  std::size_t points() const { return 2 * operators.size(); }
  /// The backward point of an operator.
  std::size_t backward(std::size_t op) const { return points() - 1 - op; }
  /// The operator that a point runs.
  std::size_t operator_at(std::size_t point) const;
  /// Where a tensor is first needed again, and the last point at which it exists.
  std::size_t needed_again(const Tensor& t) const { return backward(t.last); }
  std::size_t freed_after(const Tensor& t) const { return backward(t.first); }
};

/// Throws std::logic_error where a trace contradicts itself: a tensor of operators that are not
/// there, a transient for each point but 2n of them, layers that return.
void check(const TensorTrace& trace);

/// Start of each point, [2n+1]; the last entry is the end of the iteration.
std::vector<Seconds> time_axis(const TensorTrace& trace);

/// The point that runs at `time`: the last one that starts at or before it.
std::size_t point_at(const std::vector<Seconds>& axis, Seconds time);

}  // namespace tidegate
