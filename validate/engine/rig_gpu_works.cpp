// What RigWorker does on real GPUs.
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "validate/engine/gpu_use.hpp"
#include "validate/engine/rig_worker.hpp"

namespace tidegate {
namespace {

constexpr std::size_t page = 4096;

}  // namespace

void RigWorker::at_gpus(TaskId task, std::span<const std::uint16_t> gpus,
                        const std::function<void()>& call) const {
  try {
    call();
  } catch (const MachineError& error) {
    throw MachineError(fmt::format("task '{}' of rank {}, {}: {}", plan_.label(task),
                                   plan_.task(task).rank, to_text(rig_.devices, gpus),
                                   error.what()));
  }
}

RigWorker::Part RigWorker::computing_on_gpu(TaskId task, const Compute& compute, Kit& kit) const {
  return [this, task, &compute, &kit](auto, auto) {
    at_gpus(task, {&compute.gpu, 1}, [&] { kit.gpus.seat(compute.gpu).run(compute.kernels); });
  };
}

RigWorker::Part RigWorker::copying_by_gpu(TaskId task, const Copy& copy, Kit& kit) const {
  const auto bytes = static_cast<std::size_t>(std::ceil(copy.bytes.value()));
  const bool is_from_gpu = copy.from.tier == Tier::gpu, is_to_gpu = copy.to.tier == Tier::gpu;
  std::span<std::byte> from = buffer_of(task, Effect::Kind::free, copy.from, copy.bytes);
  std::span<std::byte> to = buffer_of(task, Effect::Kind::allocate, copy.to, copy.bytes);
  // Buffers of the host are pinned; what is pageable is the thread's own.
  const bool is_own = copy.pinning == Pinning::pageable;
  if (from.empty() || (is_own && !is_from_gpu))
    from = is_from_gpu ? kit.gpus.out(copy.from.index) : kit.memory.bytes();
  if (to.empty() || (is_own && !is_to_gpu))
    to = is_to_gpu ? kit.gpus.in(copy.to.index) : kit.memory.bytes();
  const std::uint16_t gpu = is_from_gpu ? copy.from.index : copy.to.index;
  return
      [this, task, &copy, &kit, gpu, from = from.first(bytes), to = to.first(bytes)](auto, auto) {
        DeviceSeat& seat = kit.gpus.seat(gpu);
        const bool is_between = copy.from.tier == copy.to.tier && copy.from.index != copy.to.index;
        const std::uint16_t ends[] = {gpu, copy.to.index};
        at_gpus(task, std::span(ends).first(is_between ? 2 : 1),
                [&] { is_between ? seat.copy_to(copy.to.index, from, to) : seat.copy(from, to); });
      };
}

RigWorker::Part RigWorker::exchanging(TaskId task, const Collective& collective, Kit& kit) const {
  return [this, task, &collective, &kit](auto, auto) {
    at_gpus(task, members_of(collective), [&] { kit.gpus.run(collective); });
  };
}

// As many bytes in a call as the plan has under way.
void RigWorker::move_directly(TaskId task, const FileIo& io, std::int64_t offset,
                              std::span<std::byte> memory) {
  const FileKey key = file_key(plan_, task);
  DirectFile& file = *gpu_files_.of(files_.descriptor(key));
  const double under_way = io.block.value() * io.queue_depth * io.threads;
  const std::size_t most =
      std::max<std::size_t>(1, static_cast<std::size_t>(under_way) / page) * page;
  const std::uint16_t gpu = io.memory.index;
  const auto call = [&] {
    for (std::size_t at = 0; at < memory.size(); at += most) {
      check_stop();
      const AttachedPart part{gpu, memory, at, std::min(most, memory.size() - at)};
      const std::int64_t place = offset + static_cast<std::int64_t>(at);
      io.direction == Direction::read ? file.read(place, part) : file.write(place, part);
    }
  };
  try {
    at_gpus(task, {&gpu, 1}, call);
  } catch (const MachineError& error) {
    throw MachineError(fmt::format("storage path {}: {}", files_.folder(key.path), error.what()));
  }
  gpu_files_.count(static_cast<std::int64_t>(memory.size()));
}

// What is checked comes to the host within the task's time, a page of so many.
RigWorker::Part RigWorker::reading_to_gpu(TaskId task, const FileIo& io, Kit& kit) {
  const FileKey key = file_key(plan_, task);
  const std::shared_ptr<const Extent> extent = newest(task);
  const bool is_direct = gpu_files_.of(files_.descriptor(key)) != nullptr;
  return [this, task, key, &io, &kit, extent, is_direct](auto, auto) {
    const auto bytes = static_cast<std::size_t>(extent->bytes);
    const std::uint16_t gpu = io.memory.index;
    const auto host = kit.memory.bytes().first(bytes), there = kit.gpus.in(gpu).first(bytes);
    DeviceSeat& seat = kit.gpus.seat(gpu);
    if (!is_direct) {
      load(task, key, *kit.queue, *extent, 0, host);
      at_gpus(task, {&gpu, 1}, [&] { seat.copy(host, there); });
      return;
    }
    move_directly(task, io, extent->offset, there);
    if (!rig_.checks_files) return;
    const std::size_t pitch = page * static_cast<std::size_t>(rig_.pages_per_check);
    at_gpus(task, {&gpu, 1}, [&] { seat.copy_pieces(there, host, page, pitch); });
    check(task, key, *extent, 0, host);
  };
}

RigWorker::Part RigWorker::writing_from_gpu(TaskId task, const FileIo& io, Kit& kit) {
  const FileKey key = file_key(plan_, task);
  const std::shared_ptr<Extent> extent = files_.fresh(key);
  const std::uint64_t number = ++kit.written;
  const bool is_direct = gpu_files_.of(files_.descriptor(key)) != nullptr;
  return [this, task, key, &io, &kit, extent, number, is_direct](auto, auto) {
    const auto bytes = static_cast<std::size_t>(extent->bytes);
    const std::uint16_t gpu = io.memory.index;
    const auto host = kit.memory.bytes().first(bytes), there = kit.gpus.out(gpu).first(bytes);
    DeviceSeat& seat = kit.gpus.seat(gpu);
    if (is_direct) {
      mark(*extent, 0, host, kit, number);
      const std::size_t pitch = page * static_cast<std::size_t>(rig_.pages_per_check);
      at_gpus(task, {&gpu, 1}, [&] { seat.copy_pieces(host, there, page, pitch); });
      move_directly(task, io, extent->offset, there);
    } else {
      at_gpus(task, {&gpu, 1}, [&] { seat.copy(there, host); });
      mark(*extent, 0, host, kit, number);
      transfer(task, key, Direction::write, *kit.queue, extent->offset, host);
    }
    files_.keep(key, extent);
  };
}

}  // namespace tidegate
