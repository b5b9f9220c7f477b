#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "calib/cluster/team.hpp"

namespace tidegate::calib {

/// Which of the processes see one and the same folder behind a path.
enum class Sharing : std::uint8_t { none, some, all };

/// For each folder whether the other processes see in it what rank 0 puts there: a file of a few
/// bytes with a name that nobody else takes, which is gone afterwards. The same answer on every
/// rank; `none` for a team of one, and for a folder in which rank 0 cannot make a file. Throws
/// InputError where the ranks name different numbers of folders.
std::vector<Sharing> sharing_of(Team& team, std::span<const std::string> folders);

}  // namespace tidegate::calib
