#include "sim/policy/gradient_stream.hpp"

#include <algorithm>

#include "sim/policy/bindings.hpp"

namespace tidegate {

using Kind = Content::Kind;

Shards shards_of(const Step& step, const Bucket& bucket) {
  Shards shards;
  for (const Bucket::Tensor& t : bucket.tensors) shards.elements += step.shard(t.elements);
  if (step.bindings != nullptr) shards.tensors = step.bindings->tensors_of(bucket);
  return shards;
}

TaskId round_trip(Step& step, std::uint16_t rank, const Bucket& bucket, double elements,
                  const Shards& shards, TaskId reduced) {
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
  if (step.bindings == nullptr) return up;
  // Sums stand in host memory, where each micro-step's slice is added on its way down.
  const PoolId host = step.host_pool(rank);
  step.bindings->added(down, shards.tensors, rank, bucket.micro_step == 0, host, Kind::sum, host);
  step.bindings->moved(up, shards.tensors, rank, {Kind::sum, host},
                       {Kind::sum, step.gpu_pool(rank)});
  return up;
}

namespace {

// The copy down that ends a bucket's way: of the sum that is on the GPU (stage 3), or of the slice
// with what came back. ZeRO 1 reduces once, so that nothing came back.
void land(Step& step, std::uint16_t rank, const Bucket& bucket, const Shards& shards, TaskId copy) {
  const std::int64_t stage = step.setting().zero.stage;
  const PoolId host = step.host_pool(rank), gpu = step.gpu_pool(rank);
  const Kind kind = bucket.is_boundary ? Kind::sum32 : Kind::sum;
  if (stage == 3) {
    step.bindings->moved(copy, shards.tensors, rank, {Kind::sum, gpu}, {kind, host});
  } else {
    const bool is_first = stage < 2 || bucket.micro_step == 0;
    step.bindings->added(copy, shards.tensors, rank, is_first, gpu, kind, host);
  }
}

}  // namespace

void send_to_host(Step& step, std::uint16_t rank, const Bucket& bucket, double elements,
                  const Shards& shards, TaskId reduced, std::span<const TaskId> free_after) {
  Rank& r = step.rank(rank);
  TaskId last = reduced;
  if (step.setting().zero.stage == 3) {
    last = round_trip(step, rank, bucket, elements, shards, reduced);
  } else if (bucket.micro_step > 0) {
    last = step.to_gpu("gradient back", rank, bucket.number, Bytes(2 * elements), {&last, 1});
    if (step.bindings != nullptr && step.setting().zero.stage == 2)
      step.bindings->moved(last, shards.tensors, rank, {Kind::sum, step.host_pool(rank)},
                           {Kind::sum, step.gpu_pool(rank)});
  }
  const bool halves = step.setting().zero.stage < 3 && !bucket.is_boundary;
  if (bucket.is_boundary || halves) {
    const Bytes bytes((bucket.is_boundary ? 4 : 2) * elements);
    std::vector<TaskId> after = {last};
    if (bucket.is_boundary) after.insert(after.end(), free_after.begin(), free_after.end());
    last = step.to_host("gradient to host", rank, bucket.number, bytes, after);
    if (step.bindings != nullptr) land(step, rank, bucket, shards, last);
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
