#pragma once

#include "sim/page/page.hpp"
#include "validate/field.hpp"
#include "validate/published.hpp"

/// Published figures and public reports beside predictions as pages for a browser: rows that set a
/// value of a profile apart from those that did not, what misses its gate first.
namespace tidegate::page {

Page published_page(const Published& published);
Page field_page(const Field& field);

}  // namespace tidegate::page
