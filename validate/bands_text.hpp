#pragma once

#include <string>

#include "validate/published.hpp"

namespace tidegate {

/// Every band with its claim and its source, or nothing when there is none.
std::string bands_text(const Published& published);
/// A line for the bands of one name: what is claimed, and how many hold.
std::string brief_bands_text(const Published& published);

}  // namespace tidegate
