#pragma once

#include <string>

#include "sim/keys/keys.hpp"

namespace tidegate {

/// A JSON Schema (draft 2020-12) of a file whose keys the table has, for editors and other
/// programs: keys, types, bounds, words, defaults and meanings. Relations between keys stay with
/// the reader.
std::string schema_of(const KeyTable& table, const std::string& title);

}  // namespace tidegate
