#pragma once

#include "sim/page/page.hpp"
#include "sim/search/explain.hpp"

namespace tidegate {

/// A search as a page: the best as a command, what each of its changes gains, its distance to the
/// bound, time against GPU memory of all that fits, runners-up.
page::Page tune_page(const TuneReport& report);

}  // namespace tidegate
