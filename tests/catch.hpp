#pragma once

#include <string>

// The one place that knows which Catch2 the distribution ships: Debian 12 has version 2, 13 has 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
/// Matches a text that contains `part`.
inline auto Containing(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }
#else
#include <catch2/catch.hpp>
/// Matches a text that contains `part`.
inline auto Containing(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif
