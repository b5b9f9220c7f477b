#pragma once

#include <cstddef>
#include <functional>

namespace tidegate {

/// Calls work(i) once for every i below `count` on `threads` threads; whoever is free takes the
/// next. When `is_stopped` says yes, what has begun is finished and nothing else begun. Of what
/// the calls throw, the first by i is thrown here. Returns how many indices were handed out: those
/// below it are done.
std::size_t parallel_for(std::size_t count, std::size_t threads,
                         const std::function<void(std::size_t)>& work,
                         const std::function<bool()>& is_stopped);

/// From now on the process keeps memory that is freed, so that the next candidate need not ask the
/// system for it again. For programs that do little else than evaluate candidates.
void keep_freed_memory();

}  // namespace tidegate
