#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "validate/native/rates.hpp"
#include "validate/suite/cases.hpp"
#include "validate/suite/trial.hpp"

/// A native case with its plan, and what a set of rates makes of it.
namespace tidegate {

struct NativeCase {
  SuiteCase source;
  std::string policy;
  Expected expected;  ///< with the rates that it was made for
  bool uses_files = false;
};

/// `paths`: folders of the storage paths, by the order of the profile. Those of one device are one
/// resource. Throws as expect does.
NativeCase native_case(const SuiteFile& file, const SuiteCase& source, const Rates& rates,
                       const std::vector<NativePath>& paths);

/// The same plan on the same rig, with other rates.
Expected with_rates(const SuiteFile& file, const NativeCase& c, const Rates& rates,
                    const std::vector<NativePath>& paths);

/// An iteration of the steady period, as predicted.
Seconds step_of(const Expected& expected);

/// Half the width of the nine-in-ten interval of the step's logarithm, with the uncertainties of
/// `rates`; none when they have none.
std::optional<double> reach_of(const SuiteFile& file, const NativeCase& c, const Rates& rates,
                               std::int32_t draws, std::uint64_t seed);

}  // namespace tidegate
