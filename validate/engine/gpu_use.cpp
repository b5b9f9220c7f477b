#include "validate/engine/gpu_use.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "validate/engine/gaps.hpp"
#include "validate/engine/kernels.hpp"
#include "validate/engine/worker.hpp"

namespace tidegate {
namespace {

bool is_gpu(Place place) { return place.tier == Tier::gpu; }

std::int64_t count_of(Bytes bytes) { return static_cast<std::int64_t>(std::ceil(bytes.value())); }

template <class T>
void add_new(std::vector<T>& list, const T& one) {
  if (std::ranges::find(list, one) == list.end()) list.push_back(one);
}

struct Asked {
  GpuNeeds& needs;

  void operator()(const Compute& compute) const {
    auto& kernels = needs.gpus[compute.gpu].kernels;
    for (const Kernel& k : compute.kernels) add_new(kernels, k);
  }
  void operator()(const Copy& copy) const {
    if (is_gpu(copy.from)) leave(copy.from.index, count_of(copy.bytes));
    if (is_gpu(copy.to)) arrive(copy.to.index, count_of(copy.bytes));
    needs.is_pinned &= copy.pinning == Pinning::pinned;
  }
  void operator()(const FileIo& io) const {
    if (!is_gpu(io.memory)) return;
    const std::int64_t bytes = whole_pages(count_of(io.bytes));
    io.direction == Direction::read ? arrive(io.memory.index, bytes)
                                    : leave(io.memory.index, bytes);
    needs.gpus[io.memory.index].has_files = true;
  }
  void operator()(const Collective& collective) const {
    if (is_nothing(collective)) return;
    const Exchange exchange = exchange_of(collective);
    const GpuNeeds::Group group = members_of(collective);
    for (const std::uint16_t gpu : group) {
      leave(gpu, exchange.sent() * 4);
      arrive(gpu, exchange.received() * 4);
    }
    add_new(needs.teams[group], exchange);
  }
  template <class Other>
  void operator()(const Other&) const {}

  void leave(std::uint16_t gpu, std::int64_t bytes) const {
    std::int64_t& most = needs.gpus[gpu].out;
    most = std::max(most, bytes);
  }
  void arrive(std::uint16_t gpu, std::int64_t bytes) const {
    std::int64_t& most = needs.gpus[gpu].in;
    most = std::max(most, bytes);
  }
};

// Why a work is not done on these devices; empty when it is.
struct WhyNot {
  std::size_t devices;

  std::string operator()(const Compute& compute) const { return why_not(compute.gpu); }
  std::string operator()(const Copy& copy) const {
    const std::string from = why_not(copy.from);
    return from.empty() ? why_not(copy.to) : from;
  }
  std::string operator()(const FileIo& io) const { return why_not(io.memory); }
  std::string operator()(const Collective& c) const {
    if (is_nothing(c)) return "";
    if (c.ranks != c.gpus) {
      return fmt::format(
          "its group has {} ranks, of which the plan has {} on GPUs of this machine; take one node "
          "and a rank for each of them",
          c.ranks, c.gpus);
    }
    for (const std::uint16_t gpu : members_of(c)) {
      if (const std::string why = why_not(gpu); !why.empty()) return why;
    }
    return "";
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "";
  }

  std::string why_not(Place place) const { return is_gpu(place) ? why_not(place.index) : ""; }
  std::string why_not(std::uint16_t gpu) const {
    if (gpu < devices) return "";
    return fmt::format(
        "it uses GPU {}; this machine has {}, counted from 0: take as many ranks at most", gpu,
        devices);
  }
};

std::string task_text(const Plan& plan, TaskId task) {
  return fmt::format("task '{}' of rank {}", plan.label(task), plan.task(task).rank);
}

std::string work_text(const Plan& plan, std::size_t work) {
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (index(plan.task(TaskId{t}).work) == work) return task_text(plan, TaskId{t});
  }
  return "a work of no task";
}

void check_teams(const Plan& plan, const Devices& devices, std::size_t work) {
  const auto* collective = std::get_if<Collective>(&plan.works[work]);
  if (collective == nullptr || is_nothing(*collective)) return;
  const std::string why =
      devices.teams == nullptr ? "these devices have no collectives" : devices.teams->why_absent();
  if (why.empty()) return;
  throw MachineError(fmt::format("{} is a collective between GPUs, which needs NCCL: {}",
                                 work_text(plan, work), why));
}

}  // namespace

GpuNeeds gpu_needs(const Plan& plan, LaneId lane) {
  GpuNeeds needs;
  std::set<std::size_t> seen;
  for (const Task& task : plan.tasks) {
    if (task.lane != lane || !seen.insert(index(task.work)).second) continue;
    std::visit(Asked{needs}, plan.works[index(task.work)]);
  }
  return needs;
}

std::int64_t host_memory(const Work& work) {
  if (std::holds_alternative<Collective>(work)) return 0;
  const auto* copy = std::get_if<Copy>(&work);
  if (copy == nullptr || (!is_gpu(copy->from) && !is_gpu(copy->to))) return own_memory(work, false);
  return is_gpu(copy->from) && is_gpu(copy->to) ? 0 : whole_pages(count_of(copy->bytes));
}

void check_gpu_works(const Plan& plan, const Devices& devices) {
  for (std::size_t w = 0; w < plan.works.size(); ++w) {
    const std::string why = std::visit(WhyNot{devices.size()}, plan.works[w]);
    if (!why.empty()) {
      throw InputError(fmt::format("{} cannot run on real GPUs: {}", work_text(plan, w), why));
    }
  }
  const WhyNot asked{devices.size()};
  for (const Buffer& buffer : plan.buffers) {
    const Pool& pool = plan.pools[index(buffer.pool)];
    if (const std::string why = asked.why_not(pool.place); !why.empty())
      throw InputError(fmt::format("pool {} cannot be on real GPUs: {}", pool.name, why));
  }
  for (std::size_t w = 0; w < plan.works.size(); ++w) check_teams(plan, devices, w);
}

std::vector<std::string> let_gpus_meet(const Plan& plan, const Devices& devices) {
  std::set<std::pair<std::uint16_t, std::uint16_t>> met;
  std::vector<std::string> remarks;
  for (const Work& work : plan.works) {
    const auto* copy = std::get_if<Copy>(&work);
    if (copy == nullptr || !is_gpu(copy->from) || !is_gpu(copy->to)) continue;
    const std::uint16_t from = copy->from.index, to = copy->to.index;
    if (from == to || !met.insert({from, to}).second || devices.at(to)->admit(from)) continue;
    remarks.push_back(fmt::format(
        "Copies from GPU {0} to GPU {1} went through the host, since GPU {0} does not reach the "
        "memory of GPU {1}; the prediction takes the links between GPUs.",
        from, to));
  }
  return remarks;
}

std::string to_text(const Devices& devices, std::span<const std::uint16_t> gpus) {
  std::string text = gpus.size() == 1 ? "GPU" : "GPUs";
  for (const std::uint16_t gpu : gpus)
    text += fmt::format("{} {}", gpu == gpus.front() ? "" : ",", gpu);
  return fmt::format("{} ({})", text, devices.at(gpus.front())->name());
}

}  // namespace tidegate
