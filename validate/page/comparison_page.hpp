#pragma once

#include <string>

#include "sim/page/page.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/native/native.hpp"
#include "validate/suite/suite.hpp"

/// Prediction beside measurement as pages for a browser.
namespace tidegate::page {

/// One run: both iterations, phases and kinds of task, memory over time one above the other, the
/// lanes of both, both critical paths, suspects.
Page comparison_page(const std::string& scenario, const std::string& profile, const Plan& plan,
                     const Timeline& predicted, const Timeline& measured,
                     const Comparison& comparison);

Page suite_page(const Suite& suite);
Page native_page(const NativeSuite& suite);

}  // namespace tidegate::page
