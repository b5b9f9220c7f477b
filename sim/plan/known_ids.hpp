#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tidegate {

/// Numbers of a table's rows by a hash of what the rows hold, to find a row that is known. Rows are
/// never taken out. Looked up for every task of a plan: open addressing, no list to walk.
class KnownIds {
 public:
  /// The first of `is_same` among the rows that were added with this hash.
  template <class IsSame>
  std::optional<std::uint32_t> find(std::size_t hash, IsSame&& is_same) const {
    for (std::size_t p = place(hash); !places_.empty() && places_[p].row_after != 0; p = after(p)) {
      if (places_[p].hash == hash && is_same(places_[p].row_after - 1)) {
        return places_[p].row_after - 1;
      }
    }
    return std::nullopt;
  }

  void add(std::size_t hash, std::uint32_t row) {
    if (2 * (count_ + 1) > places_.size()) grow();
    put({hash, row + 1});
    ++count_;
  }

 private:
  struct Place {
    std::size_t hash = 0;
    std::uint32_t row_after = 0;  ///< one more than the row; 0: empty
  };
  std::vector<Place> places_;  // a power of two, at most half of them taken
  std::size_t count_ = 0;

  std::size_t place(std::size_t hash) const { return hash & (places_.size() - 1); }
  std::size_t after(std::size_t p) const { return (p + 1) & (places_.size() - 1); }

  void put(const Place& entry) {
    std::size_t p = place(entry.hash);
    while (places_[p].row_after != 0) p = after(p);
    places_[p] = entry;
  }

  void grow() {
    constexpr std::size_t least = 64;
    std::vector<Place> before(places_.empty() ? least : 2 * places_.size());
    before.swap(places_);
    for (const Place& entry : before) {
      if (entry.row_after != 0) put(entry);
    }
  }
};

}  // namespace tidegate
