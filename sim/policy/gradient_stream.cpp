#include "sim/policy/gradient_stream.hpp"

#include <algorithm>

namespace tidegate {

std::int64_t shard_of(const Step& step, const Bucket& bucket) {
  std::int64_t elements = 0;
  for (const Bucket::Tensor& t : bucket.tensors) elements += step.shard(t.elements);
  return elements;
}

TaskId round_trip(Step& step, std::uint16_t rank, const Bucket& bucket, double elements,
                  TaskId reduced) {
  const Bytes half(2 * elements);
  const TaskId down = step.to_host("gradient to host", rank, bucket.number, half, {&reduced, 1});
  // On the GPU the slice, and the double-precision copy of its largest tensor for the norm.
  std::int64_t largest = 0;
  for (const Bucket::Tensor& t : bucket.tensors)
    largest = std::max(largest, step.shard(t.elements));
  const OwnerId owner = step.plan().owner("gradient slice");
  const Bytes bytes(2 * elements + 8 * static_cast<double>(largest));
  const BufferId slice = step.plan().buffer(step.gpu_pool(rank), owner, bytes);
  const Effect effects[] = {allocate(slice), free(slice)};
  const TaskId up = step.to_gpu("gradient back", rank, bucket.number, half, {&down, 1}, effects);
  step.rank(rank).gradient = up;
  return up;
}

void send_to_host(Step& step, std::uint16_t rank, const Bucket& bucket, double elements,
                  TaskId reduced) {
  Rank& r = step.rank(rank);
  TaskId last = reduced;
  if (step.setting().zero.stage == 3) {
    last = round_trip(step, rank, bucket, elements, reduced);
  } else if (bucket.micro_step > 0) {
    last = step.to_gpu("gradient back", rank, bucket.number, Bytes(2 * elements), {&last, 1});
  }
  const bool halves = step.setting().zero.stage < 3 && !bucket.is_boundary;
  if (bucket.is_boundary || halves) {
    const Bytes bytes((bucket.is_boundary ? 4 : 2) * elements);
    last = step.to_host("gradient to host", rank, bucket.number, bytes, {&last, 1});
  }
  r.gradient = last;
  if (step.setting().zero.stage == 3 && bucket.is_boundary) r.thread.set(last);
}

void add_least_gradients(const Step& step, std::uint16_t rank, double elements, GradientsEnd end,
                         LeastWork& least) {
  const auto micro_steps = static_cast<double>(step.setting().accumulation);
  const std::int64_t stage = step.setting().zero.stage;
  const double reductions = stage >= 2 ? micro_steps : 1;
  const double halves = stage == 3 ? reductions : reductions - 1;
  const double last = end == GradientsEnd::on_host ? 4 : 0;
  const auto copy = [&](Place from, Place to, double bytes) {
    if (bytes > 0) least.passes.emplace_back(Copy{from, to, Bytes(bytes)});
  };
  const Place gpu = step.gpu_place(rank), host = step.host_place(rank);
  copy(gpu, host, (2 * halves + last) * elements);
  copy(host, gpu, 2 * halves * elements);
}

Bytes pinned_gradients(const Step& step, std::uint16_t rank) {
  Bytes all;
  for (const Layer& layer : step.graph_of(rank).layers) {
    for (const Operator& op : layer.operators) {
      for (const Parameter& p : op.parameters) {
        all += step.pinned(Bytes(2 * static_cast<double>(step.shard(p.elements))));
      }
    }
  }
  return all;
}

}  // namespace tidegate
