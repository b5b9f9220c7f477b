#pragma once

#include <string_view>

/// Pages of docs/ as they were when the program was built (cmake/embed.cmake).
namespace tidegate {

std::string_view scenario_page();
std::string_view profiles_page();
std::string_view words_page();
std::string_view report_json_page();

}  // namespace tidegate
