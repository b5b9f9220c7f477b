#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Small texts of /proc and /sys. Not for others than calib/rig.
namespace tidegate::rig::detail {

/// The file's text; empty when it cannot be read.
std::string text_of(const std::string& path);
/// Its first line.
std::string line_of(const std::string& path);
/// A whole number that stands alone in a file; `otherwise` when there is none.
std::int64_t number_of(const std::string& path, std::int64_t otherwise);
/// "always [madvise] never": the word in brackets; the whole line when none is.
std::string chosen_of(const std::string& line);
/// Split at blanks.
std::vector<std::string> words_of(const std::string& line);
/// The value of the first line "key: value", "key=value" or "key value"; empty when there is none.
std::string value_of(const std::string& text, const std::string& key);

}  // namespace tidegate::rig::detail
