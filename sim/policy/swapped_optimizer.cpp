#include "sim/policy/swapped_optimizer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/policy/bindings.hpp"
#include "sim/policy/gradient_stream.hpp"
#include "sim/policy/parameters.hpp"
#include "sim/policy/sub_groups.hpp"

namespace tidegate {
namespace {

// Bytes per element of the files: fp32 parameter, two moments, gradient.
constexpr double word = 4;
// DeepSpeed keeps gradient fragments below 1 MiB in memory (MIN_SWAPPABLE_BYTES).
constexpr double least_swapped = 1 << 20;

// Gradient fragments on their way to the files of one path: pinned buffers filled first-fit in the
// order of arrival. A fragment that does not fit closes the buffer, whose write starts; when no
// buffer is left, the thread waits for every outstanding write.
struct GradientPool {
  double filled = 0;                  // bytes in the open buffer
  std::int64_t buffers = 0;           // taken since the last wait for all
  std::vector<TaskId> writes;         // outstanding
  std::vector<std::int32_t> tensors;  // in the open buffer, where the plan carries its meaning
};

struct PathState {
  LaneId read{}, write{};
  std::optional<TaskId> last_write;
  GradientPool gradients;
};

struct RankState {
  std::vector<PathState> paths;
  LaneId upload{};
  std::vector<TaskId> uploads;
};

class SwappedOptimizer final : public OptimizerPolicy {
 public:
  explicit SwappedOptimizer(SwapOptions options) : options_(std::move(options)) {}

  void prepare(Step& step) override {
    const auto tensors = parameters_in_order(step.graph());
    groups_ = pack_sub_groups(tensors, step.world(), options_.sub_group_size);
    path_of_ = options_.modulus > 0 ? assign_modulo(groups_.size(), options_.modulus)
                                    : assign_shares(groups_, options_.shares);
    find_tensor_paths(tensors, step);
    locks_.clear();
    ranks_.clear();
    buffer_ = Bytes(word * static_cast<double>(largest(groups_)));
    for (std::size_t p = 0; p < options_.paths.size(); ++p) {
      const bool is_locked = options_.is_exclusive[p];
      locks_.push_back(is_locked ? std::optional(step.plan().lock(path_name(step, p)))
                                 : std::nullopt);
    }
    for (std::uint16_t r = 0; r < step.ranks(); ++r) prepare_rank(step, r);
    group_tensors_.assign(groups_.size(), {});
    if (step.bindings != nullptr) bind(step);
  }

  void gradients(Step& step, std::uint16_t rank, const Bucket& bucket, TaskId reduced) override {
    const Shards shards = shards_of(step, bucket);
    const auto elements = static_cast<double>(shards.elements);
    const TaskId back = round_trip(step, rank, bucket, elements, shards, reduced);
    if (!bucket.is_boundary || options_.has_delayed_gradients) return;
    swap_out_gradients(step, rank, bucket, back);
  }

  void update(Step& step, std::uint16_t rank, const ParameterPolicy& parameters) override {
    Rank& r = step.rank(rank);
    if (r.gradient) r.thread.also(*r.gradient);
    flush_gradients(step, rank);
    const std::vector<std::size_t> order = this->order(step.iteration());
    Pass pass{.order = order, .visit = visits(order, step.iteration()), .read = {}};
    pass.read.resize(groups_.size());
    for (std::size_t at = 0; at < order.size(); ++at) process(step, rank, pass, at, parameters);
    for (PathState& p : ranks_[rank].paths) {
      if (p.last_write) r.thread.also(*p.last_write);
    }
    for (const TaskId t : ranks_[rank].uploads) r.thread.also(t);
    ranks_[rank].uploads.clear();
  }

  // Odd and even iterations may find other sub-groups in memory: half of both.
  void add_least(const Step& step, std::uint16_t rank, LeastWork& least) const override {
    double elements = 0, in_files = 0;
    for (const SubGroup& g : groups_) elements += static_cast<double>(g.elements);
    for (const double bytes : gradient_files_) in_files += bytes;
    const auto end =
        options_.has_delayed_gradients ? GradientsEnd::in_16_bits : GradientsEnd::on_host;
    add_least_gradients(step, rank, elements, end, least);
    const auto n = static_cast<std::int64_t>(elements);
    if (options_.has_delayed_gradients)
      least.in_turn.emplace_back(Cast{rank, n, DType::bf16, DType::fp32});
    least.in_turn.emplace_back(AdamStep{rank, n, DType::fp32});
    auto& casts = options_.is_upload_async ? least.update : least.in_turn;
    casts.emplace_back(Cast{rank, n, DType::fp32, DType::bf16});
    for (std::size_t p = 0; p < options_.paths.size(); ++p) {
      const auto [read, written] = least_traffic(p);
      least.update.emplace_back(file_io(step, rank, p, Direction::read, read));
      least.update.emplace_back(file_io(step, rank, p, Direction::write, written));
      if (options_.has_delayed_gradients) continue;
      const Bytes gradients(gradient_files_[p]);
      least.anytime.emplace_back(file_io(step, rank, p, Direction::write, gradients));
    }
  }

  std::string describe() const override { return options_.title; }

 private:
  // Bytes read and written of a path's sub-groups in a steady update.
  std::pair<Bytes, Bytes> least_traffic(std::size_t p) const {
    double read = 0, written = 0;
    for (const std::int64_t iteration : {1, 2}) {
      const std::vector<Visit> visit = visits(order(iteration), iteration);
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (path_of_[g] != p) continue;
        const auto elements = static_cast<double>(groups_[g].elements);
        if (visit[g].is_read) read += read_bytes(iteration) * elements / 2;
        if (visit[g].is_written) written += 3 * word * elements / 2;
      }
    }
    return {Bytes(read), Bytes(written)};
  }

  // What happens to a sub-group in one pass.
  struct Visit {
    bool is_read = true;     // not in host memory already
    bool is_written = true;  // not kept for the next pass
    bool is_last_write = false;
    std::optional<std::size_t> next_read;  // the sub-group of the same path to prefetch meanwhile
  };
  struct Pass {
    std::span<const std::size_t> order;
    std::vector<Visit> visit;                 // by sub-group
    std::vector<std::optional<TaskId>> read;  // by sub-group: its read, once submitted
  };

  std::string path_name(const Step& step, std::size_t p) const {
    return step.setting().machine.paths()[options_.paths[p]].name;
  }

  void prepare_rank(Step& step, std::uint16_t r) {
    RankState state;
    const std::string name = "rank" + std::to_string(r) + ".";
    for (std::size_t p = 0; p < options_.paths.size(); ++p) {
      PathState path;
      path.read = step.plan().lane(name + path_name(step, p) + ".read", r);
      path.write = step.plan().lane(name + path_name(step, p) + ".write", r);
      state.paths.push_back(path);
      step.reserve(step.host_pool(r), "swap buffers",
                   static_cast<double>(options_.buffer_count) * step.pinned(buffer_));
      step.reserve(step.path_pool(r, options_.paths[p]), "optimizer files", bytes_on_path(p));
    }
    state.upload = step.plan().lane(name + "upload", r);
    step.reserve(step.host_pool(r), "16-bit gradients", pinned_gradients(step, r));
    if (options_.has_delayed_gradients) {
      step.reserve(step.host_pool(r), "fp32 gradient buffer", step.pinned(buffer_));
    }
    ranks_.push_back(std::move(state));
  }

  Bytes bytes_on_path(std::size_t p) const {
    double elements = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (path_of_[g] == p) elements += static_cast<double>(groups_[g].elements);
    }
    return Bytes(word * (options_.has_delayed_gradients ? 3 : 4) * elements);
  }

  void find_tensor_paths(std::span<const Parameter> tensors, const Step& step) {
    std::size_t group = 0;
    std::int64_t filled = 0;
    tensor_path_.clear();
    gradient_files_.assign(options_.paths.size(), 0);
    for (const Parameter& t : tensors) {
      tensor_path_.push_back(path_of_[group]);
      const double bytes = word * static_cast<double>(step.shard(t.elements));
      if (bytes >= least_swapped) gradient_files_[path_of_[group]] += bytes;
      filled += step.shard(t.elements);
      if (filled >= groups_[group].elements) ++group, filled = 0;
    }
  }

  FileIo file_io(const Step& step, std::uint16_t rank, std::size_t p, Direction direction,
                 Bytes bytes) const {
    return {.direction = direction,
            .path = step.path_of(rank, options_.paths[p]),
            .memory = step.host_place(rank),
            .bytes = bytes,
            .block = options_.block,
            .queue_depth = options_.queue_depth,
            .threads = options_.threads};
  }

  using Kind = Content::Kind;

  void bind(Step& step) {
    group_tensors_ = step.bindings->tensors_of(groups_, 0);
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const PoolId files = step.path_pool(r, options_.paths[path_of_[g]]);
        step.bindings->stands(Kind::master, group_tensors_[g], r, files);
      }
    }
  }

  // Between pinned buffers and the files of path `p`. Gradients that are written go from their
  // buffer; a sub-group may be cast and sent to the GPU beside its write, so that it stays.
  void move(Step& step, TaskId task, std::uint16_t rank, std::size_t p,
            const std::vector<std::int32_t>& tensors, Kind kind, Direction direction) const {
    const PoolId host = step.host_pool(rank), files = step.path_pool(rank, options_.paths[p]);
    const bool is_read = direction == Direction::read;
    step.bindings->moved(task, tensors, rank, {kind, is_read ? files : host},
                         {kind, is_read ? host : files}, !is_read && kind == Kind::sum32);
  }

  // Fragments of gradients below DeepSpeed's limit have stayed in memory.
  void bind_read(Step& step, std::uint16_t rank, TaskId task, std::size_t group) const {
    const auto& tensors = group_tensors_[group];
    const std::size_t p = path_of_[group];
    move(step, task, rank, p, tensors, Kind::master, Direction::read);
    if (step.iteration() > 0) move(step, task, rank, p, tensors, Kind::moments, Direction::read);
    if (options_.has_delayed_gradients) return;
    std::vector<std::int32_t> swapped;
    for (const std::int32_t t : tensors) {
      const double shard = static_cast<double>(step.shard(step.bindings->elements_of(t)));
      if (word * shard >= least_swapped) swapped.push_back(t);
    }
    move(step, task, rank, p, swapped, Kind::sum32, Direction::read);
  }

  TaskId transfer(Step& step, const char* name, std::uint16_t rank, std::int32_t item,
                  std::size_t p, Direction direction, Bytes bytes, std::span<const TaskId> after) {
    PathState& path = ranks_[rank].paths[p];
    const LaneId lane = direction == Direction::read ? path.read : path.write;
    std::vector<Effect> effects;
    if (locks_[p]) effects.push_back(hold(*locks_[p]));
    return step.add(name, lane, rank, item, file_io(step, rank, p, direction, bytes), after,
                    effects);
  }

  // The fp32 slices of a bucket are copied down while the thread waits, and packed into the
  // buffers.
  void swap_out_gradients(Step& step, std::uint16_t rank, const Bucket& bucket, TaskId back) {
    Rank& r = step.rank(rank);
    double copied = 0;
    std::vector<std::int32_t> going;
    TaskId last = back;
    const auto copy_down = [&] {
      if (copied == 0) return;
      std::vector<TaskId> after(r.thread.tasks().begin(), r.thread.tasks().end());
      after.push_back(last);
      last = step.to_host("fp32 gradient to host", rank, bucket.number, Bytes(copied), after);
      r.thread.set(last);
      r.gradient = last;
      copied = 0;
      if (step.bindings != nullptr)
        step.bindings->moved(last, going, rank, {Kind::sum, step.gpu_pool(rank)},
                             {Kind::sum32, step.host_pool(rank)});
      going.clear();
    };
    for (const Bucket::Tensor& tensor : bucket.tensors) {
      const double bytes = word * static_cast<double>(step.shard(tensor.elements));
      const std::size_t p = tensor_path_[tensor.index];
      if (bytes >= least_swapped) {
        GradientPool& pool = ranks_[rank].paths[p].gradients;
        if (pool.filled + bytes > buffer_.value()) copy_down(), close_buffer(step, rank, p);
        if (pool.buffers == 0) pool.buffers = 1;
        pool.filled += bytes;
        if (step.bindings != nullptr)
          pool.tensors.push_back(step.bindings->registered(tensor.index));
      }
      copied += bytes;
      if (step.bindings != nullptr) going.push_back(step.bindings->registered(tensor.index));
    }
    copy_down();
  }

  void close_buffer(Step& step, std::uint16_t rank, std::size_t p) {
    GradientPool& pool = ranks_[rank].paths[p].gradients;
    if (pool.filled == 0) return;
    Front& thread = step.rank(rank).thread;
    pool.writes.push_back(transfer(step, "write gradients", rank, -1, p, Direction::write,
                                   Bytes(pool.filled), thread.tasks()));
    if (step.bindings != nullptr)
      move(step, pool.writes.back(), rank, p, pool.tensors, Kind::sum32, Direction::write);
    pool.tensors.clear();
    pool.filled = 0;
    if (++pool.buffers > options_.buffer_count) {
      for (const TaskId t : pool.writes) thread.also(t);
      pool.writes.clear();
      pool.buffers = 1;
    }
  }

  void flush_gradients(Step& step, std::uint16_t rank) {
    for (std::size_t p = 0; p < options_.paths.size(); ++p) {
      close_buffer(step, rank, p);
      GradientPool& pool = ranks_[rank].paths[p].gradients;
      for (const TaskId t : pool.writes) step.rank(rank).thread.also(t);
      pool = {};
    }
  }

  std::vector<std::size_t> order(std::int64_t iteration) const {
    std::vector<std::size_t> ids(groups_.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    if (options_.is_cached && iteration % 2 == 1) std::ranges::reverse(ids);
    return ids;
  }

  std::vector<Visit> visits(std::span<const std::size_t> order, std::int64_t iteration) const {
    std::vector<Visit> visit(groups_.size());
    for (std::size_t p = 0; p < options_.paths.size(); ++p) {
      std::vector<std::size_t> mine;
      std::ranges::copy_if(order, std::back_inserter(mine),
                           [&](std::size_t g) { return path_of_[g] == p; });
      const auto cached = static_cast<std::size_t>(
          options_.is_cached
              ? cached_per_path(options_.buffer_count, options_.has_delayed_gradients)
              : 0);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        Visit& v = visit[mine[i]];
        v.is_read = iteration == 0 || i >= cached;
        v.is_written = i + cached < mine.size();
        v.is_last_write = v.is_written && i + cached + 1 == mine.size();
        // A sub-group found in memory submits no prefetch: the first read of a path is waited for.
        if (v.is_read && i + 1 < mine.size()) v.next_read = mine[i + 1];
      }
    }
    return visit;
  }

  double read_bytes(std::int64_t iteration) const {
    // The first update finds no moments: they do not exist yet.
    return word * ((iteration == 0 ? 1 : 3) + (options_.has_delayed_gradients ? 0 : 1));
  }

  void submit_read(Step& step, std::uint16_t rank, Pass& pass, std::size_t group) {
    if (pass.read[group]) return;
    const Bytes bytes(read_bytes(step.iteration()) * static_cast<double>(groups_[group].elements));
    pass.read[group] =
        transfer(step, "read sub-group", rank, static_cast<std::int32_t>(group), path_of_[group],
                 Direction::read, bytes, step.rank(rank).thread.tasks());
    if (step.bindings != nullptr) bind_read(step, rank, *pass.read[group], group);
  }

  void process(Step& step, std::uint16_t rank, Pass& pass, std::size_t at,
               const ParameterPolicy& parameters) {
    const std::size_t group = pass.order[at];
    const Visit& visit = pass.visit[group];
    Front& thread = step.rank(rank).thread;
    const auto item = static_cast<std::int32_t>(group);
    const std::int64_t n = groups_[group].elements;
    if (visit.is_read) {
      submit_read(step, rank, pass, group);
      thread.also(*pass.read[group]);
    }
    if (options_.is_read_pipelined && visit.next_read)
      submit_read(step, rank, pass, *visit.next_read);
    if (step.iteration() == 0) create_moments(step, rank, group);
    if (options_.has_delayed_gradients) {
      const PoolId host = step.host_pool(rank);
      const TaskId converted =
          step.on_thread("convert gradient", rank, item, Cast{rank, n, DType::bf16, DType::fp32});
      if (step.bindings != nullptr)
        step.bindings->moved(converted, group_tensors_[group], rank, {Kind::sum, host},
                             {Kind::sum32, host});
    }
    const TaskId adam = step.on_thread("adam", rank, item, AdamStep{rank, n, DType::fp32});
    if (step.bindings != nullptr)
      step.bindings->updated(adam, group_tensors_[group], rank, step.host_pool(rank), Kind::sum32);
    upload(step, rank, group, parameters);
    if (visit.is_written) write_back(step, rank, group, visit);
  }

  void create_moments(Step& step, std::uint16_t rank, std::size_t group) const {
    const Place host = step.host_place(rank);
    const auto n = static_cast<double>(groups_[group].elements);
    const TaskId task = step.on_thread("create moments", rank, static_cast<std::int32_t>(group),
                                       Copy{host, host, Bytes(2 * word * n)});
    if (step.bindings != nullptr)
      step.bindings->made_moments(task, group_tensors_[group], rank, step.host_pool(rank));
  }

  void upload(Step& step, std::uint16_t rank, std::size_t group,
              const ParameterPolicy& parameters) {
    Front& thread = step.rank(rank).thread;
    const auto item = static_cast<std::int32_t>(group);
    const Shards shards{groups_[group].elements, group_tensors_[group]};
    const Work work = Cast{rank, shards.elements, DType::fp32, DType::bf16};
    const TaskId cast =
        options_.is_upload_async
            ? step.add("cast parameters", ranks_[rank].upload, rank, item, work, thread.tasks())
            : step.on_thread("cast parameters", rank, item, work);
    if (step.bindings != nullptr)
      step.bindings->cast(cast, shards.tensors, rank, step.host_pool(rank));
    const TaskId stored = parameters.store(step, rank, shards, item, {&cast, 1});
    if (options_.is_upload_async) {
      ranks_[rank].uploads.push_back(stored);
    } else {
      thread.set(stored);
    }
  }

  void write_back(Step& step, std::uint16_t rank, std::size_t group, const Visit& visit) {
    PathState& path = ranks_[rank].paths[path_of_[group]];
    Front& thread = step.rank(rank).thread;
    if (path.last_write) thread.also(*path.last_write);
    const Bytes bytes(3 * word * static_cast<double>(groups_[group].elements));
    path.last_write = transfer(step, "write sub-group", rank, static_cast<std::int32_t>(group),
                               path_of_[group], Direction::write, bytes, thread.tasks());
    if (step.bindings != nullptr) {
      for (const Kind kind : {Kind::master, Kind::moments})
        move(step, *path.last_write, rank, path_of_[group], group_tensors_[group], kind,
             Direction::write);
    }
    if (!options_.is_write_pipelined || visit.is_last_write) thread.also(*path.last_write);
  }

  SwapOptions options_;
  std::vector<SubGroup> groups_;
  std::vector<std::vector<std::int32_t>> group_tensors_;  // where the plan carries its meaning
  std::vector<std::uint16_t> path_of_;                    // by sub-group: index into options_.paths
  std::vector<std::uint16_t> tensor_path_;                // by tensor, in the order of registration
  std::vector<double> gradient_files_;  // by path: bytes of fp32 gradients that are swapped
  Bytes buffer_;                        // one pinned buffer before rounding
  std::vector<std::optional<LockId>> locks_;
  std::vector<RankState> ranks_;
};

}  // namespace

std::int64_t cached_per_path(std::int64_t buffer_count, bool has_delayed_gradients) {
  return has_delayed_gradients ? buffer_count / 3 : std::max<std::int64_t>(buffer_count / 4 - 1, 0);
}

std::unique_ptr<OptimizerPolicy> swapped_optimizer(SwapOptions options) {
  ensure(!options.paths.empty(), "a swapped optimizer has a path");
  ensure(options.is_exclusive.size() == options.paths.size(),
         "exclusive access is said for every path");
  return std::make_unique<SwappedOptimizer>(std::move(options));
}

namespace {

std::int64_t buffers_of(std::int64_t states, const SwapOptions& o) {
  return states * (1 + (o.is_read_pipelined ? 1 : 0) + (o.is_write_pipelined ? 1 : 0));
}

}  // namespace

std::int64_t buffers_needed(const SwapOptions& options) {
  return buffers_of(options.has_delayed_gradients ? 3 : 4, options);
}

std::string buffers_text(const SwapOptions& options) {
  const std::int64_t needed = buffers_needed(options);
  std::string text = fmt::format("{} buffers", options.buffer_count);
  if (options.buffer_count < needed) text += fmt::format(" (too few: the update holds {})", needed);
  return text;
}

void read_swap_options(yaml::Map& options, SwapOptions& into) {
  into.sub_group_size = options.count_or("sub_group_size", into.sub_group_size, 1);
  into.is_read_pipelined = options.flag_or("pipeline_read", into.is_read_pipelined);
  into.is_write_pipelined = options.flag_or("pipeline_write", into.is_write_pipelined);
  into.buffer_count = read_few(options, "buffer_count", buffers_of(4, into));
  if (const auto aio = options.find("aio")) {
    yaml::Map map = aio->map();
    into.block = map.quantity_or<Bytes>("block_size", into.block);
    into.queue_depth = read_few(map, "queue_depth", into.queue_depth);
    into.threads = read_few(map, "thread_count", into.threads);
  }
}

}  // namespace tidegate
