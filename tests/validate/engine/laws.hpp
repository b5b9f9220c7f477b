#pragma once

#include "sim/timeline/laws.hpp"
#include "tests/catch.hpp"

namespace tidegate {

/// The laws of order, exclusion and memory, without prices: how long real works take is nobody's
/// law.
inline void check_laws(const Plan& plan, const Timeline& timeline) {
  const std::vector<Demand> free_of_charge(plan.works.size());
  const std::vector<std::string> broken = broken_laws(plan, timeline, free_of_charge, {});
  CHECK(broken.empty());
  for (const std::string& law : broken) FAIL_CHECK(law);
}

}  // namespace tidegate
