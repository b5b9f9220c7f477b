#pragma once

#include "sim/offload/moves.hpp"
#include "sim/offload/replay.hpp"

/// Published policies for saved tensors as planners: pure functions from a trace and rates to
/// moves. None sees a plan or a clock, only the profiling iteration in the trace; all are
/// deterministic, ties go to the tensor of the smaller index.
///
/// Every forecast says the peak under its own moves. `exposed` is what the planner expects: zero by
/// construction where it books bandwidth (g10, capuchin up to its last resort), else from replay().
/// Bookings may move a tensor in parts, around others; a lane that serves whole tensors in the
/// order of `in_at` can be late where that matters, and replay() of the same moves says by how
/// much. A planner that cannot make the trace fit returns its best and says so.
namespace tidegate {

/// How early a fetch is issued where the planner does not time it: before the backward of the
/// operator, or of the layer, that runs just before the one that needs the tensor.
enum class Ahead : std::uint8_t { op, layer };

/// Every movable tensor leaves after its last forward use while there is room for it in host
/// memory, as vDNN offloads every layer's input (Rhu et al. 2016, "vDNN: Virtualized Deep Neural
/// Networks", MICRO-49; its policy for all layers). vDNN's end-of-layer
/// synchronisation is LayerEnd::waits. What differs: vDNN copies a layer's input while that layer
/// computes, here a copy starts when the last forward operator that uses the tensor has run.
struct SwapAllOptions {
  Move::Where where = Move::Where::host;
  Ahead ahead = Ahead::layer;
  LayerEnd layer_end = LayerEnd::free;
};
MovePlan plan_swap_all(const TensorTrace& trace, const Rates& rates,
                       const SwapAllOptions& options = {});

/// Tensors go to storage in forward order until the rest fits:
///
///   sum of the rest <= capacity - standing - max over points (transient + tensors in use).
///
/// In backward each is fetched as soon as memory has room for it, first needed first. First phase
/// of FlashNeuron (Bae et al. 2021, FAST); the line is that of platformxlab/G10,
/// src/analysis.cc, which counts tensors in use beside the rest and so errs towards moving more,
/// and so is the waiting of fetches for memory. The second phase, compressible tensors when writes
/// outlast the forward, is left out as it is there: a trace does not know how far a tensor
/// compresses.
MovePlan plan_flash_neuron(const TensorTrace& trace, const Rates& rates);

/// Greedy on inactive intervals (Zhang et al. 2023, "G10", MICRO-56; rules and constants from
/// platformxlab/G10, src/analysis.cc at c42dfb1). While the memory curve is above the line,
/// the interval is taken with the largest
///
///   bytes * (time above the line between half of its write and half of its read)
///
/// with both booked as they would be now, on storage; intervals that only host memory could relieve
/// come after all others. It may go to storage if
///
///   interval > out + in + margin * in,   out, in = latency + bytes / rate
///
/// and to host if not, or if the drives are taken, under the same condition with the link's rates.
/// The write is booked as early, the read as late as free bandwidth allows; an interval whose
/// bookings leave no point without the tensor is dropped. At the end fetches move earlier, in the
/// order of their points, while the curve stays below the line.
///
/// What differs: bookings are exact in time, where G10 books whole kernels; an earlier fetch must
/// leave room for its own bytes, where G10 asks only that the curve be below the line before; what
/// only host memory relieves is tried, where G10's order of it is left to its sort.
/// Weights and intervals across iterations, which G10 moves too, are not in a trace.
struct G10Options {
  enum class Relief : std::uint8_t {
    crowded,  ///< to host when all drive time between request and undisturbed end is taken (G10)
    unfit,    ///< to host when no hidden booking on the drives is left
  };
  double line = 0.99;   ///< of GPU capacity (scheduling_prefetch)
  double margin = 0.5;  ///< of one transfer (delta_parameter of src/configs/example.config)
  Relief relief = Relief::crowded;
};
/// TERAIO (arXiv:2506.06472): lifetimes and storage first, host as relief, transfers by GPUDirect
/// from a compiled program. Line, margin and relief are assumed: its text gives no constants here.
constexpr G10Options teraio_options = {.line = 1, .margin = 0, .relief = G10Options::Relief::unfit};
MovePlan plan_g10(const TensorTrace& trace, const Rates& rates, const G10Options& options = {});

/// Swaps to host by free time, then recomputation by memory saved per second (Peng et al. 2020,
/// "Capuchin", ASPLOS; as summarised). With the copies of one tensor alone,
///
///   free time = (start of first backward use - in) - (end of last forward use + out)
///
/// Tensors that relieve a point above capacity are swapped in the order of falling free time while
/// free time >= 0 and the link has room for both copies in the interval. If memory is still short,
/// tensors are recomputed in the order of falling bytes / recompute time; one whose source
/// (recompute.hpp) is swapped only if that can come back earlier and hidden. Last resort: swaps in
/// the order of falling free time that are not hidden, `exposed` then from replay().
MovePlan plan_capuchin(const TensorTrace& trace, const Rates& rates);

/// Swap k tensors, recompute all others that move, keep none of them: k minimises
///
///   T(k) = max(GPU: compute + recompute of the rest, CPU,
///              link out: bytes / rate, link in: bytes / rate,
///              drives: written / write rate + read / read rate)
///
/// of the iteration, or the sum of this for forward (swapped tensors leave) and for backward (they
/// return, the rest is recomputed). Tensors come in the order of falling recompute time per byte;
/// those that cannot be recomputed are first and always swapped. Every k is looked at (T falls,
/// then rises); of equal ones the smallest is taken. Swapped tensors fill host memory first, then
/// storage. LoHan (Liao et al., arXiv:2403.06504), also Fuyou and Ratel, as summarised: the amount
/// is chosen by the slowest of all resources, under all of the step's traffic. Assumed: the order
/// of tensors, host before storage, reads and writes of the drives one after the other, and that
/// nothing is kept even where it would fit.
struct LohanOptions {
  /// What else the step does meanwhile: parameters, gradients, optimizer state.
  struct Load {
    Seconds cpu;
    Bytes link_out, link_in, storage_written, storage_read;
  };
  enum class Phases : std::uint8_t { together, apart };

  Load forward, backward;
  Phases phases = Phases::together;
  Ahead ahead = Ahead::layer;
};
MovePlan plan_lohan(const TensorTrace& trace, const Rates& rates, const LohanOptions& options = {});

/// One prefix of LoHan's order and its T(k).
struct LohanChoice {
  std::size_t swapped = 0;  ///< tensors
  Seconds time;
};
/// All prefixes that plan_lohan() compares, in the order of `swapped`.
std::vector<LohanChoice> lohan_choices(const TensorTrace& trace, const Rates& rates,
                                       const LohanOptions& options = {});

}  // namespace tidegate
