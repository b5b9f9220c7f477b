#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.hpp"

namespace tidegate {

/// What becomes of a setting between a ds_config.json, DeepSpeed and Tidegate.
enum class RemarkKind : std::uint8_t {
  refused,        ///< DeepSpeed stops at it
  changed,        ///< DeepSpeed makes something else of it without stopping
  ignored,        ///< DeepSpeed reads the file and does not act on it
  filled,         ///< not in the file: who puts which value there
  not_simulated,  ///< Tidegate has nothing for it; the prediction is as if it were not there
  left_out,       ///< of a scenario, and the engine has nothing for it
};
std::string_view name_of(RemarkKind kind);

struct Remark {
  RemarkKind kind = RemarkKind::ignored;
  Where where;
  std::string key;  ///< dotted; several with one fate are joined by ", "
  std::string text;
};

/// Adds a remark; one with the same kind and text takes up the key instead.
void add_remark(std::vector<Remark>& remarks, Remark remark);

/// "ignored: aio.block_sise: unknown key; did you mean 'block_size'?"
std::string to_text(const Remark& remark);

}  // namespace tidegate
