#pragma once

#include <string>
#include <vector>

#include "sim/report/table.hpp"
#include "validate/published.hpp"

namespace tidegate {

/// Every band with its claim and its source, or nothing when there is none.
std::string bands_text(const Published& published);
/// Every band with where its value lies.
Table bands_table(const Published& published);
/// What the bands of each name claim, and where that stands.
std::vector<std::string> band_claims(const Published& published);
/// A line for the bands of one name: what is claimed, and how many hold.
std::string brief_bands_text(const Published& published);

}  // namespace tidegate
