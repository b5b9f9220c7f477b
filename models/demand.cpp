#include "models/demand.hpp"

#include "models/base/error.hpp"

namespace tidegate {

void Demand::use(ResourceId resource, double fraction, std::uint8_t side) {
  ensure(fraction > 0 && fraction <= 1 + 1e-12, "a share is a fraction of a resource in (0, 1]");
  ensure(share_count < most_shares, "a work uses at most Demand::most_shares resources");
  for (std::size_t i = 0; i < share_count; ++i) {
    ensure(shares[i].resource != resource, "a resource is named once in a demand");
  }
  shares[share_count++] = {resource, side, fraction < 1 ? fraction : 1};
}

}  // namespace tidegate
