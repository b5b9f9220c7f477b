#pragma once

#include <array>

#include "sim/plan/plan.hpp"

/// The text form of a plan. One thing per line; the number of a thing is its place among its kind.
///
///   tidegate-plan 1
///   iterations 2
///   ranks 1
///   lane 0 1 gpu0 compute                   rank, width, name to the end of the line
///   pool gpu 0 85899345920 gpu0             place, capacity in bytes, name
///   owner activations
///   tokens 2 read slots                     count, name
///   lock nvme0
///   name read
///   work delay 0.5                          as encode() says
///   buffer 1024 0 0                         bytes, pool, owner
///   choice unfinished 4                     rule, watched task
///   task 0 name 0 item 3 work 0 lane 0 rank 0 iteration 0 phase forward after 1 2 does allocate:0
///   acquire:1*2
///   task 1 name 0 item 4 … phase forward when no:0 after 0 does decide:1 free:0?yes:1
///   mark 0 iteration 0 rank 0 phase forward
///
/// "when", "after" and "does" may be missing; the condition of an effect follows a '?'. A '#' that
/// begins a word of a task or mark line, or a line, begins a comment.
namespace tidegate::plan_text {

inline constexpr const char* heading = "tidegate-plan 1";
inline constexpr std::array tier_names = {"gpu", "host", "storage"};
inline constexpr std::array effect_names = {"allocate", "free", "acquire",
                                            "release",  "lock", "decide"};
inline constexpr std::array rule_names = {"unfinished", "unstarted"};
inline constexpr std::array outcome_names = {"no", "yes"};
inline constexpr std::array phases = {Phase::forward, Phase::backward, Phase::update, Phase::other};

}  // namespace tidegate::plan_text
