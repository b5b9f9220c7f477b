#include "sim/policy/pipeline_links.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/policy/bindings.hpp"

namespace tidegate {

PipelineLinks::PipelineLinks(Step& step) : step_(step) {
  for (std::uint16_t r = 0; r < step.ranks() && step.layout().stages() > 1; ++r) {
    const std::string rank = "rank" + std::to_string(r);
    const LaneId behind = step.plan().lane(rank + ".send", r);
    lanes_.push_back({step.plan().lane(rank + ".send back", r), behind});
  }
}

std::uint64_t PipelineLinks::key(std::int64_t piece, const Action& action) const {
  const auto pieces = static_cast<std::uint64_t>(step_.pieces().size());
  const auto at =
      static_cast<std::uint64_t>(action.micro_batch) * pieces + static_cast<std::uint64_t>(piece);
  return 2 * at + (action.is_forward ? 1 : 0);
}

std::size_t PipelineLinks::border(std::int64_t piece, std::int64_t neighbour) const {
  return step_.pieces()[static_cast<std::size_t>(std::max(piece, neighbour))].first;
}

void PipelineLinks::send(const Action& action) {
  const std::int64_t piece = action.piece(stages());
  const std::int64_t to = action.is_forward ? piece + 1 : piece - 1;
  if (to < 0 || to == static_cast<std::int64_t>(step_.pieces().size())) return;
  const std::size_t layer = border(piece, to);
  const bool is_part = !step_.graph().is_sequence_parallel;
  const auto parts = static_cast<double>(is_part ? step_.layout().parallel().tensor : 1);
  const Bytes bytes = step_.graph().layers[layer].input / parts;
  const std::uint16_t mine = step_.layout().first_rank(action.stage);
  const std::uint16_t theirs = step_.layout().first_rank(static_cast<std::uint16_t>(to % stages()));
  std::vector<TaskId> sent;
  for (const std::uint16_t r : step_.crew(action.stage)) {
    const auto peer = static_cast<std::uint16_t>(theirs + r - mine);
    std::vector<TaskId> after = {*step_.rank(r).last_kernel};
    const auto compute = step_.rank(r).compute.tasks();
    after.insert(after.end(), compute.begin(), compute.end());
    sent.push_back(step_.add(action.is_forward ? "send activations" : "send gradients",
                             lanes_[r][action.is_forward ? 1 : 0], r,
                             static_cast<std::int32_t>(layer),
                             Copy{step_.gpu_place(r), step_.gpu_place(peer), bytes}, after));
    if (step_.bindings != nullptr)
      step_.bindings->sent(sent.back(), action.micro_batch, action.is_forward, r, peer);
  }
  sent_[key(to, action)] = std::move(sent);
}

void PipelineLinks::receive(const Action& action) {
  const std::int64_t piece = action.piece(stages());
  const auto found = sent_.find(key(piece, action));
  if (found == sent_.end()) return;
  std::vector<TaskId> received = std::move(found->second);
  sent_.erase(found);
  if (!step_.graph().is_sequence_parallel) gather(action, received);
  const std::uint16_t first = step_.layout().first_rank(action.stage);
  for (const std::uint16_t r : step_.crew(action.stage)) {
    step_.rank(r).compute.also(received[static_cast<std::size_t>(r - first)]);
  }
}

// By rank of the stage: the part that was received becomes the whole.
void PipelineLinks::gather(const Action& action, std::vector<TaskId>& received) {
  const std::int64_t piece = action.piece(stages());
  const std::size_t layer = border(piece, action.is_forward ? piece - 1 : piece + 1);
  const Collective whole{.kind = CollectiveKind::all_gather,
                         .bytes = step_.graph().layers[layer].input};
  const std::uint16_t first = step_.layout().first_rank(action.stage);
  for (const Communicator& c : step_.tensor_groups(action.stage)) {
    std::vector<TaskId> parts;
    for (std::uint16_t i = 0; i < c.group.here; ++i) {
      parts.push_back(received[static_cast<std::size_t>(c.group.rank(i) - first)]);
    }
    const TaskId task = step_.tensor_collective("gather received", c,
                                                static_cast<std::int32_t>(layer), whole, parts);
    for (std::uint16_t i = 0; i < c.group.here; ++i) {
      received[static_cast<std::size_t>(c.group.rank(i) - first)] = task;
    }
  }
}

}  // namespace tidegate
