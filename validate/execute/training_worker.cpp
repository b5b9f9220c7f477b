#include "validate/execute/training_worker.hpp"

#include <cstring>

#include "models/base/error.hpp"

namespace tidegate {

TrainingWorker::TrainingWorker(const Plan& plan, const Rig& rig, const Workload& workload,
                               const LayerGraph& graph, const train::TrainingOptions& options,
                               Memories::Sharing sharing)
    : plan_(plan),
      rig_(plan, rig, {.is_meant = true, .memory = sharing}),
      shelves_(plan, sharing, options.computes().memory()),
      files_(plan, rig_),
      arithmetic_(plan, workload, graph, options, this),
      pages_(seats_of(plan) + 1),
      uses_(plan.buffers.size()) {
  ensure(rig.pace == Pace::native, "arithmetic takes the time that it takes");
}

void TrainingWorker::allocate(BufferId buffer, TaskId task) {
  rig_.allocate(buffer, task);
  const bool has_memory =
      plan_.pools[index(plan_.buffers[index(buffer)].pool)].place.tier != Tier::storage;
  if (has_memory) shelves_.open(buffer, rig_.bytes_of(buffer));
}

// Alternatives that hang on a choice are where the choice says as long as they are asked for.
template <class Do>
void TrainingWorker::each_read(TaskId task, Do&& act) const {
  for (const Deed& deed : plan_.meaning.of(task)) {
    for (const Access& a : plan_.meaning.of(deed)) {
      const bool is_sure = a.buffer != Access::standing && a.when.is_always();
      if (is_sure && a.how == Access::How::read) act(a.buffer);
    }
  }
}

void TrainingWorker::begin(TaskId task) {
  each_read(task, [this](BufferId buffer) { ++uses_[index(buffer)].readers; });
}

void TrainingWorker::end(TaskId task) {
  each_read(task, [this](BufferId buffer) {
    Use& use = uses_[index(buffer)];
    if (--use.readers == 0 && use.is_free) give_back(buffer);
  });
}

void TrainingWorker::free(BufferId buffer) {
  Use& use = uses_[index(buffer)];
  use.is_free = true;
  use.readers == 0 ? give_back(buffer) : rig_.let_go(buffer);
}

void TrainingWorker::give_back(BufferId buffer) {
  shelves_.close(buffer);
  files_.free(buffer);
  rig_.free(buffer);
  if (when_gone_) when_gone_(buffer);
}

Clock::time_point TrainingWorker::run(TaskId task, Seat seat, Clock::time_point start) {
  if (plan_.meaning.of(task).empty()) return rig_.run(task, seat, start);
  perform(task, rig_.queue_of(seat), pages_[seat.number]);
  rig_.check_stop();
  return Clock::now();
}

void TrainingWorker::pass(TaskId task) {
  if (!plan_.meaning.of(task).empty()) perform(task, nullptr, pages_.back());
}

void TrainingWorker::perform(TaskId task, rig::IoQueue* queue, rig::HostBuffer& pages) {
  files_.bring(task, queue, pages);
  arithmetic_.run(task, only_);
  files_.take_away(task, queue, pages);
}

void TrainingWorker::put(TaskId task, const Access& at, std::span<const std::byte> bytes) {
  is_in_files(at) ? files_.put(task, at, bytes) : shelves_.put(at, bytes);
}

std::optional<std::vector<std::byte>> TrainingWorker::get(TaskId task, const Access& at) {
  return is_in_files(at) ? files_.get(task, at) : shelves_.get(at);
}

void TrainingWorker::drop(const Access& at) {
  is_in_files(at) ? files_.drop(at) : shelves_.drop(at);
}

TrainingWorker::Moved TrainingWorker::moved() const {
  return {others_.read + files_.read(), others_.written + files_.written()};
}

std::vector<std::byte> TrainingWorker::results() const {
  const Moved mine = moved();
  std::vector<std::byte> bytes(sizeof mine);
  std::memcpy(bytes.data(), &mine, sizeof mine);
  const auto more = arithmetic_.results();
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

void TrainingWorker::add_results(std::span<const std::byte> results) {
  Moved theirs;
  ensure(results.size() >= sizeof theirs, "results come whole");
  std::memcpy(&theirs, results.data(), sizeof theirs);
  others_.read += theirs.read;
  others_.written += theirs.written;
  arithmetic_.add_results(results.subspan(sizeof theirs));
}

}  // namespace tidegate
