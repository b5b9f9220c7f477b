#include "validate/engine/rig_worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <fmt/core.h>
#include <sched.h>
#include <sys/prctl.h>

#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "validate/engine/gpu_use.hpp"
#include "validate/engine/kernels.hpp"

namespace tidegate {
namespace {

constexpr std::chrono::milliseconds longest_sleep{20};  // until a stop is seen
constexpr std::size_t deepest_queue = 64;

}  // namespace

std::size_t seats_of(const Plan& plan) {
  std::size_t seats = 0;
  for (const Lane& lane : plan.lanes) seats += lane.width;
  return seats;
}

void wake_in_time() {
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_RR)};
  sched_setscheduler(0, SCHED_RR, &lowest);  // refused to most users: then it is as it was
}

bool is_nothing(const Work& work) {
  struct Asked {
    bool operator()(const Delay& d) const { return d.duration == Seconds(0); }
    bool operator()(const Compute& c) const { return c.kernels.empty(); }
    bool operator()(const Copy& c) const { return c.bytes == Bytes(0); }
    bool operator()(const FileIo& io) const { return io.bytes == Bytes(0); }
    bool operator()(const AdamStep& a) const { return a.parameters == 0; }
    bool operator()(const Cast& c) const { return c.elements == 0; }
    bool operator()(const Collective& c) const { return c.ranks <= 1 || c.bytes == Bytes(0); }
  };
  return std::visit(Asked{}, work);
}

namespace {

// Before any memory is taken and any file written.
const Plan& checked(const Plan& plan, const Rig& rig, const RigUse& use) {
  if (rig.devices.empty()) return plan;
  if (rig.pace == Pace::paced) {
    throw InputError(
        "a paced rig holds GPUs to stated speeds, which real ones are not; take a "
        "native one");
  }
  ensure(!use.is_meant, "what tasks mean is computed on the host");
  check_gpu_works(plan, rig.devices);
  return plan;
}

int threads_of_rank(const Plan& plan) {
  return std::max(1, rig::host_facts().logical_cores / std::max(plan.ranks, 1));
}

}  // namespace

RigWorker::RigWorker(const Plan& plan, const Rig& rig, RigUse use)
    : plan_(checked(plan, rig, use)),
      rig_(rig),
      use_(use),
      memories_(plan, use.memory, rig.devices),
      apart_(rig.devices.empty() ? std::vector<std::string>() : let_gpus_meet(plan, rig.devices)),
      files_(plan, rig.folders, use.is_meant),
      gpu_files_(plan, files_, rig.devices),
      kits_(seats_of(plan)),
      host_threads_(rig.devices.empty() ? 1 : threads_of_rank(plan)) {
  if (rig.pace == Pace::paced) pacer_.emplace(rig.machine.resources(), price(plan, rig.machine));
}

RigWorker::~RigWorker() = default;

std::vector<std::string> RigWorker::remarks() const {
  std::vector<std::string> all = apart_;
  for (std::string& remark : gpu_files_.remarks()) all.push_back(std::move(remark));
  return all;
}

// Memory for the largest work of the lane, and a queue as deep as its deepest. Pages are those that
// calibration measures with, and those of the arenas (memory.hpp): huge ones for files and copies,
// which are a tenth slower in usual ones; usual ones for the rest.
void RigWorker::sit_down(Seat seat) {
  Kit& kit = kits_.at(seat.number);
  std::int64_t most = 0;
  bool has_files = false, has_copies = false;
  for (std::uint32_t t = 0; t < plan_.size(); ++t) {
    if (plan_.tasks[t].lane != seat.lane) continue;
    const Work& work = plan_.work(TaskId{t});
    has_files |= std::holds_alternative<FileIo>(work);
    has_copies |= std::holds_alternative<Copy>(work);
    if (is_done_elsewhere(TaskId{t})) continue;
    most = std::max(most,
                    has_gpus() ? host_memory(work) : own_memory(work, rig_.pace == Pace::native));
  }
  kit.number = seat.number;
  using Pages = rig::HostBuffer::Pages;
  if (most > 0) {
    const Pages pages = has_files || has_copies ? Pages::huge : Pages::usual;
    kit.memory = rig::HostBuffer(static_cast<std::size_t>(most), pages);
    fill_ordinary(kit.memory.bytes());
  }
  if (has_gpus())
    kit.gpus =
        GpuKit(gpu_needs(plan_, seat.lane), rig_.devices, kit.memory.bytes(), gpu_files_.library());
  if (has_files) kit.queue = rig::make_io_queue(queue_options(seat.lane));
  if (rig_.pace == Pace::paced || (has_files && most > 0)) wake_in_time();
}

rig::IoOptions RigWorker::queue_options(LaneId lane) const {
  std::vector<bool> is_struck(rig_.faults.size());
  rig::IoOptions options{.depth = 1};
  for (const Task& task : plan_.tasks) {
    const auto* io = std::get_if<FileIo>(&plan_.works[index(task.work)]);
    if (task.lane != lane || io == nullptr) continue;
    options.depth =
        std::max(options.depth, static_cast<std::size_t>(io->queue_depth * io->threads));
    for (std::size_t f = 0; f < is_struck.size(); ++f) {
      const FileFault& fault = rig_.faults[f];
      if (fault.path == io->path && fault.direction == io->direction) is_struck[f] = true;
    }
  }
  options.depth = std::min(options.depth, deepest_queue);
  for (std::size_t f = 0; f < is_struck.size(); ++f) {
    if (is_struck[f]) options.faults.push_back(rig_.faults[f].fault);
  }
  return options;
}

Clock::time_point RigWorker::run(TaskId task, Seat seat, Clock::time_point start) {
  const Part part = part_of(task, kits_[seat.number], start);
  if (pacer_) return run_paced(task, part, start);
  if (part) part(0, 1);
  check_stop();
  return Clock::now();
}

Clock::time_point RigWorker::run_paced(TaskId task, const Part& part, Clock::time_point start) {
  Pacer::Pass pass(*pacer_, index(plan_.task(task).work), start);
  sleep_until(pass.due());
  Clock::time_point done = pass.due();
  for (std::int64_t k = 0; k < pass.parts(); ++k) {
    const Clock::time_point due = pass.next(done);
    if (part) {
      part(k, pass.parts());
      done = Clock::now();
    }
    sleep_until(due);
  }
  check_stop();
  return pass.due() - pass.lost();
}

void RigWorker::check_stop() const {
  if (is_stopped_) throw std::runtime_error("stopped because another task failed");
  rig::check_interrupt();
}

void RigWorker::sleep_until(Clock::time_point when) const {
  for (Clock::time_point now = Clock::now(); now < when; now = Clock::now()) {
    check_stop();
    std::this_thread::sleep_until(std::min(when, now + longest_sleep));
  }
}

RigWorker::Part RigWorker::part_of(TaskId task, Kit& kit, Clock::time_point start) {
  struct Asked {
    RigWorker& worker;
    TaskId task;
    Kit& kit;
    Clock::time_point start;

    Part operator()(const Delay& delay) const {
      const auto time = std::chrono::nanoseconds(std::llround(delay.duration.value() * 1e9));
      if (worker.pacer_) return {};
      return [this_ = &worker, until = start + time](auto, auto) { this_->sleep_until(until); };
    }
    Part operator()(const Compute& compute) const { return worker.computing(task, compute, kit); }
    Part operator()(const Copy& copy) const { return worker.copying(task, copy, kit); }
    Part operator()(const FileIo& io) const {
      if (worker.has_gpus() && io.memory.tier == Tier::gpu)
        return io.direction == Direction::read ? worker.reading_to_gpu(task, io, kit)
                                               : worker.writing_from_gpu(task, io, kit);
      return io.direction == Direction::read ? worker.reading(task, io, kit)
                                             : worker.writing(task, io, kit);
    }
    Part operator()(const AdamStep& adam) const {
      const Carving own(kit.memory.bytes());
      return [&adam, own, threads = worker.host_threads_](auto k, auto n) {
        do_adam(adam, own, k, n, threads);
      };
    }
    Part operator()(const Cast& cast) const {
      const Carving own(kit.memory.bytes());
      return [&cast, own, threads = worker.host_threads_](auto k, auto n) {
        do_cast(cast, own, k, n, threads);
      };
    }
    Part operator()(const Collective& collective) const {
      if (worker.has_gpus()) return worker.exchanging(task, collective, kit);
      const Carving own(kit.memory.bytes());
      return [&collective, own](auto k, auto n) { do_collective(collective, own, k, n); };
    }
  };
  return std::visit(Asked{*this, task, kit, start}, plan_.work(task));
}

// A paced GPU is not there: its kernels are time.
RigWorker::Part RigWorker::computing(TaskId task, const Compute& compute, Kit& kit) const {
  if (pacer_) return {};
  if (has_gpus()) return computing_on_gpu(task, compute, kit);
  return [this, &compute, own = Carving(kit.memory.bytes())](auto, auto) {
    for (const Kernel& kernel : compute.kernels) {
      check_stop();
      do_kernel(kernel, own);
    }
  };
}

RigWorker::Part RigWorker::copying(TaskId task, const Copy& copy, Kit& kit) const {
  const bool has_gpu = copy.from.tier == Tier::gpu || copy.to.tier == Tier::gpu;
  if (has_gpu && has_gpus()) return copying_by_gpu(task, copy, kit);
  Carving own(kit.memory.bytes());
  const auto bytes = static_cast<std::int64_t>(std::ceil(copy.bytes.value()));
  std::span<std::byte> from = buffer_of(task, Effect::Kind::free, copy.from, copy.bytes);
  std::span<std::byte> to = buffer_of(task, Effect::Kind::allocate, copy.to, copy.bytes);
  if (from.empty()) from = own.bytes(bytes);
  if (to.empty()) to = own.bytes(bytes);
  return [from, to, bytes](std::int64_t k, std::int64_t n) {
    const Slice part = slice(bytes, k, n, 4096);
    const auto at = static_cast<std::size_t>(part.first),
               size = static_cast<std::size_t>(part.size());
    do_copy(from.subspan(at, size), to.subspan(at, size));
  };
}

// Only what the task has for sure and for itself: effects that hang on a choice may belong to
// another.
std::span<std::byte> RigWorker::buffer_of(TaskId task, Effect::Kind kind, Place place,
                                          Bytes bytes) const {
  for (const Effect& e : plan_.effects(task)) {
    if (e.kind != kind || !e.when.is_always()) continue;
    const Buffer& buffer = plan_.buffers[e.target];
    if (plan_.pools[index(buffer.pool)].place != place) continue;
    if (static_cast<double>(buffer.bytes) < bytes.value()) continue;
    return memories_.bytes_of(static_cast<BufferId>(e.target));
  }
  return {};
}

}  // namespace tidegate
