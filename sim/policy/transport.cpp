#include "sim/policy/transport.hpp"

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/policy/bindings.hpp"
#include "sim/policy/parameters.hpp"

namespace tidegate {

void Transport::prepare(Step& step, std::span<const Bytes> waiting, Bytes largest,
                        const std::string& prefix) {
  pools_.clear();
  const auto stores = static_cast<std::uint16_t>(options_.store_workers);
  const auto loads = static_cast<std::uint16_t>(options_.load_workers);
  for (std::uint16_t r = 0; r < step.ranks(); ++r) {
    const std::string name = "rank" + std::to_string(r) + "." + prefix;
    Pool pool{.store = step.plan().lane(name + "store", r, stores),
              .load = step.plan().lane(name + "load", r, loads)};
    if (options_.to_host) {
      step.reserve(step.host_pool(r), "offloaded activations", step.pinned(waiting[r]));
    } else {
      const std::uint16_t path = options_.paths[r % options_.paths.size()];
      step.reserve(step.path_pool(r, path), "activation files", waiting[r]);
    }
    if (!options_.to_host && !options_.is_direct) {
      pool.store_file = step.plan().lane(name + "store.file", r, stores);
      pool.load_copy = step.plan().lane(name + "load.copy", r, loads);
      pool.store_workers = step.plan().tokens(name + "store workers", stores);
      pool.load_workers = step.plan().tokens(name + "load workers", loads);
      const auto workers = static_cast<double>(stores + loads);
      step.reserve(step.host_pool(r), "bounce buffers", workers * step.pinned(largest));
    }
    pools_.push_back(pool);
  }
}

std::uint16_t Transport::path_of(const Step& step, std::uint16_t rank) const {
  return step.path_of(rank, options_.paths[rank % options_.paths.size()]);
}

Work Transport::file(const Step& step, std::uint16_t rank, Direction direction, Place memory,
                     Bytes bytes) const {
  return FileIo{.direction = direction,
                .path = path_of(step, rank),
                .memory = memory,
                .bytes = bytes,
                .block = options_.block,
                .queue_depth = options_.queue_depth};
}

namespace {

std::vector<Effect> both(const Transport::Job& job) {
  std::vector<Effect> effects = job.at_start;
  effects.insert(effects.end(), job.at_end.begin(), job.at_end.end());
  return effects;
}

PlanBuilder::NewTask task_of(const Transport::Job& job, LaneId lane) {
  return {.name = job.name, .lane = lane, .rank = job.rank, .item = job.item, .when = job.when};
}

}  // namespace

Transport::Moved Transport::store(Step& step, const Job& job) {
  const Place gpu = step.gpu_place(job.rank);
  if (!options_.to_host && !options_.is_direct) return bounce(step, job, true, false);
  const Work work = options_.to_host ? Work(Copy{gpu, step.host_place(job.rank), job.bytes})
                                     : file(step, job.rank, Direction::write, gpu, job.bytes);
  const TaskId task =
      step.plan().add(task_of(job, pools_[job.rank].store), work, job.after, both(job));
  return bound(step, job, true, {task, task});
}

Transport::Moved Transport::load(Step& step, const Job& job) {
  const Place gpu = step.gpu_place(job.rank);
  if (!options_.to_host && !options_.is_direct) return bounce(step, job, false, false);
  const Work work = options_.to_host ? Work(Copy{step.host_place(job.rank), gpu, job.bytes})
                                     : file(step, job.rank, Direction::read, gpu, job.bytes);
  const TaskId task =
      step.plan().add(task_of(job, pools_[job.rank].load), work, job.after, both(job));
  return bound(step, job, false, {task, task});
}

Transport::Moved Transport::load_on_thread(Step& step, const Job& job) {
  Rank& rank = step.rank(job.rank);
  if (!options_.to_host && !options_.is_direct) return bounce(step, job, false, true);
  const Place gpu = step.gpu_place(job.rank);
  const Work work = options_.to_host ? Work(Copy{step.host_place(job.rank), gpu, job.bytes})
                                     : file(step, job.rank, Direction::read, gpu, job.bytes);
  std::vector<TaskId> after(rank.thread.tasks().begin(), rank.thread.tasks().end());
  after.insert(after.end(), job.after.begin(), job.after.end());
  const TaskId task = step.plan().add(task_of(job, rank.main), work, after, both(job));
  rank.thread.set(task);
  return bound(step, job, false, {task, task});
}

// The worker is taken by the first half and given back by the second.
Transport::Moved Transport::bounce(Step& step, const Job& job, bool is_store, bool on_thread) {
  const Pool& pool = pools_[job.rank];
  Rank& rank = step.rank(job.rank);
  const Place gpu = step.gpu_place(job.rank), host = step.host_place(job.rank);
  const Work to = is_store ? Work(Copy{gpu, host, job.bytes})
                           : file(step, job.rank, Direction::read, host, job.bytes);
  const Work from = is_store ? file(step, job.rank, Direction::write, host, job.bytes)
                             : Work(Copy{host, gpu, job.bytes});
  std::vector<TaskId> after = job.after;
  std::vector<Effect> start = job.at_start, end = job.at_end;
  if (on_thread) {
    after.insert(after.end(), rank.thread.tasks().begin(), rank.thread.tasks().end());
  } else {
    const TokenId workers = is_store ? *pool.store_workers : *pool.load_workers;
    start.push_back(acquire(workers, 1, job.when));
    end.push_back(release(workers, 1, job.when));
  }
  const LaneId first_lane = on_thread ? rank.main : is_store ? pool.store : pool.load;
  const LaneId last_lane = on_thread ? rank.main : is_store ? pool.store_file : pool.load_copy;
  const TaskId first = step.plan().add(task_of(job, first_lane), to, after, start);
  const TaskId last = step.plan().add(task_of(job, last_lane), from, {&first, 1}, end);
  if (on_thread) rank.thread.set(last);
  return bound(step, job, is_store, {first, last});
}

// Through a bounce buffer, the content is in host memory between the two tasks and then no more.
Transport::Moved Transport::bound(Step& step, const Job& job, bool is_store,
                                  const Moved& moved) const {
  if (step.bindings == nullptr) return moved;
  using At = std::pair<PoolId, BufferId>;
  const At gpu = {step.gpu_pool(job.rank), job.buffer};
  const At host = {step.host_pool(job.rank), Access::standing};
  At there = host;
  if (!options_.to_host) {
    const std::uint16_t path = options_.paths[job.rank % options_.paths.size()];
    there = {step.path_pool(job.rank, path), Access::standing};
  }
  const bool is_bounced = moved.first != moved.last;
  const At from = is_store ? gpu : there, to = is_store ? there : gpu;
  step.bindings->moved(moved.first, job.content, from, is_bounced ? host : to);
  if (is_bounced) step.bindings->moved(moved.last, job.content, host, to, true);
  return moved;
}

std::string Transport::describe(const Machine& machine) const {
  if (options_.to_host) return "host memory";
  std::string names;
  for (const std::uint16_t p : options_.paths) {
    names += (names.empty() ? "" : ", ") + machine.paths()[p].name;
  }
  return names + (options_.is_direct ? " by GPUDirect" : " through host memory");
}

namespace {

std::vector<std::uint16_t> read_paths(const yaml::Node& to, const Machine& machine) {
  std::vector<std::uint16_t> paths;
  if (!to.is_sequence()) {
    if (const auto path = read_path(to, machine)) paths.push_back(*path);
    return paths;
  }
  for (const yaml::Node& item : to.items()) {
    if (const auto path = read_path(item, machine)) paths.push_back(*path);
  }
  if (to.items().empty()) to.problem("names no storage path; name one, or host");
  return paths;
}

}  // namespace

TransportOptions read_transport(yaml::Map& options, const Machine& machine) {
  constexpr std::int64_t most_workers = 1024;
  TransportOptions o;
  const yaml::Node to = options.at("to");
  o.to_host = to.is_scalar() && to.value().text == "host";
  if (!o.to_host) o.paths = read_paths(to, machine);
  const std::int64_t workers = o.to_host ? 3 : 6;  // of FlashTrain's thread pools
  const auto read = [&](const char* key) {
    const auto node = options.find(key);
    return node ? node->count(1, most_workers) : workers;
  };
  o.store_workers = read("store_workers");
  o.load_workers = read("load_workers");
  const auto direct = options.find("gpudirect");
  bool has_direct = !o.paths.empty();
  for (const std::uint16_t p : o.paths) has_direct &= machine.paths()[p].gpudirect;
  o.is_direct = direct ? direct->flag() : has_direct;
  if (direct && o.is_direct && o.to_host) {
    direct->problem("is for files; leave it out with to: host");
  } else if (direct && o.is_direct && !has_direct && !o.paths.empty()) {
    direct->problem(
        fmt::format("needs storage paths with gpudirect in the profile of {}; set it to false, and "
                    "tensors go through host memory",
                    machine.name()));
  }
  if (const auto aio = options.find("aio")) {
    yaml::Map map = aio->map();
    o.block = map.quantity_or<Bytes>("block_size", o.block);
    o.queue_depth = read_few(map, "queue_depth", o.queue_depth);
  }
  return o;
}

}  // namespace tidegate
