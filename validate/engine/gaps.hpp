#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace tidegate {

/// The next multiple of 4096: the unit of direct access to files.
constexpr std::int64_t whole_pages(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/// Free places on a line of whole pages: of addresses, or of offsets in a file. Who asks gets the
/// lowest gap that is large enough.
class Gaps {
 public:
  Gaps() = default;
  explicit Gaps(std::int64_t length) { gaps_[0] = length; }

  /// The offset of `bytes`, rounded up to whole pages, one at least; none when no gap is that
  /// large.
  std::optional<std::int64_t> take(std::int64_t bytes);
  /// What was taken with the same number of bytes.
  void give_back(std::int64_t offset, std::int64_t bytes);

 private:
  std::map<std::int64_t, std::int64_t> gaps_;  ///< offset → length; no two touch
};

}  // namespace tidegate
