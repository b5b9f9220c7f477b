#pragma once

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"

namespace tidegate {

/// What a key may hold, as the column *type* of docs/scenario.md writes it:
///
///   type    = plain part, or several parts with " or " between them
///   part    = list of PART | map of PART | curve over B|FLOP | one of a, b, c
///           | text | file | path | flag | null | name | numbers | percent
///           | count | number | B | B/s | FLOP | FLOP/s | s, each with "1 to 8" or "from 1"
///           | map | the name of a section
///
/// A remark in parentheses at the end is for people (the unit of a number).
struct Type {
  enum class Kind {
    text,
    file,
    path,
    flag,
    null,
    name,
    numbers,
    percent,
    count,
    number,
    quantity,
    words,
    curve,
    list,
    map_of,
    map,
    section,
    any_of
  };
  Kind kind = Kind::text;
  bool is_plain = false;                   ///< of a profile: stands alone, without a source
  Dimension dimension = Dimension::bytes;  ///< of a quantity; of the sizes of a curve
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool is_least_open = false;      ///< the value is above `least`, not at it
  std::vector<std::string> words;  ///< of one of; a section's name
  std::vector<Type> parts;         ///< alternatives of any_of; the element of a list or map
  std::string remark;              ///< "parameters/s"
};

/// Reads a cell. An empty problem means that it was understood.
Type parse_type(std::string_view cell, std::string& problem);

/// For people: "a whole number, at least 1", "a size, such as 2 MiB; above zero".
std::string to_text(const Type& type);

/// A value that it may hold, as YAML.
std::string example_of(const Type& type);

}  // namespace tidegate
