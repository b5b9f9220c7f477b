#pragma once

#include <memory>

#include "calib/measure/bench.hpp"

namespace tidegate {

/// Of calibration's rows of a storage path (calib/storage/rows.hpp) those that tell the rates of
/// transfers as the native cases make them: blocks of 1 MiB, up to 16 under way. `setup.storage`
/// has one path.
std::unique_ptr<calib::Bench> make_drive_bench(const calib::Setup& setup);

}  // namespace tidegate
