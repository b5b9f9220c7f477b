#pragma once

#include <string>
#include <utility>

namespace tidegate {

/// Which cases, model runs and bands are asked for: those whose name contains `only`. Remembers all
/// names, for the message when nothing has it.
class Selection {
 public:
  explicit Selection(std::string only) : only_(std::move(only)) {}

  bool takes(const std::string& name) {
    known_ += (known_.empty() ? "" : ", ") + name;
    const bool is_taken = name.find(only_) != std::string::npos;
    is_empty_ &= !is_taken;
    return is_taken;
  }
  bool is_empty() const { return is_empty_; }
  const std::string& known() const { return known_; }

 private:
  std::string only_, known_;
  bool is_empty_ = true;
};

}  // namespace tidegate
