#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// Columns of the terminal that UTF-8 text takes: one per character, two for East Asian wide ones
/// and emoji, none for combining marks. Bytes that are not UTF-8 count one each.
std::size_t columns_of(std::string_view text);

enum class Align { left, right };

/// Text in aligned columns, two spaces apart:
///
///   path   read      written
///   nvme0  12 GiB    8.5 GiB
///
/// Rows may be shorter than the widest one; columns without an alignment are right-aligned, the
/// first one left. Without a header (empty) no header line is printed.
struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<Align> align;
};

/// Every line begins with `indent` spaces, ends without spaces and with a newline. A rule follows
/// the header.
std::string to_text(const Table& table, std::size_t indent = 0);

/// Breaks at spaces so that lines have at most `width` columns where words allow. Every line but
/// the first begins with `indent` spaces; no newline at the end.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace tidegate
