#include "sim/policy/adaptive_keep.hpp"

#include <deque>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

using Nodes = std::vector<ProfiledNode>;
using Boundary = std::optional<std::size_t>;

// A case in whole bytes and seconds, so that sums, products and ties are exact.
struct Integers {
  std::vector<std::int64_t> volumes, times;
  std::int64_t rest = 0;  // forward time that belongs to no node
  std::int64_t bandwidth = 1;

  Nodes nodes() const {
    Nodes nodes;
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      nodes.push_back(
          {Bytes(static_cast<double>(volumes[i])), Seconds(static_cast<double>(times[i]))});
    }
    return nodes;
  }
  Seconds forward() const {
    std::int64_t sum = rest;
    for (const std::int64_t t : times) sum += t;
    return Seconds(static_cast<double>(sum));
  }
  Boundary boundary() const {
    return keep_boundary(nodes(), forward(), BytesPerSecond(static_cast<double>(bandwidth)));
  }
};

// Plays the micro-batch second by second: forward of every node and of the rest, then backward of
// the rest and of the nodes from the last down to k, two seconds for one. Meanwhile a channel works
// through the writes up to k and the read of k. Feasible when its queue is empty at the end.
bool is_feasible(const Integers& c, std::size_t k) {
  std::deque<std::int64_t> queue(c.volumes.begin(),
                                 c.volumes.begin() + static_cast<std::ptrdiff_t>(k) + 1);
  queue.push_back(c.volumes[k]);
  const auto play = [&](std::int64_t seconds) {
    for (std::int64_t second = 0; second < seconds; ++second) {
      for (std::int64_t moved = c.bandwidth; moved > 0 && !queue.empty();) {
        const std::int64_t part = std::min(moved, queue.front());
        moved -= part;
        queue.front() -= part;
        if (queue.front() == 0) queue.pop_front();
      }
    }
  };
  for (const std::int64_t t : c.times) play(t);
  play(c.rest);
  play(2 * c.rest);
  for (std::size_t j = c.times.size(); j-- > k;) play(2 * c.times[j]);
  while (!queue.empty() && queue.front() == 0) queue.pop_front();
  return queue.empty();
}

Boundary brute_force(const Integers& c) {
  for (std::size_t k = 0; k < c.volumes.size(); ++k) {
    if (!is_feasible(c, k)) return k;
  }
  return {};
}

Integers random_case(std::mt19937& random) {
  const auto draw = [&random](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  Integers c;
  for (std::int64_t left = draw(1, 9); left > 0; --left) {
    c.volumes.push_back(draw(0, 60));
    c.times.push_back(draw(1, 12));
  }
  c.rest = draw(0, 5);
  c.bandwidth = draw(1, 16);
  return c;
}

// L equal nodes with r = p / q: V = q bytes, t = 1 s, B = p bytes/s.
Integers equal_nodes(std::size_t count, std::int64_t p, std::int64_t q) {
  return {std::vector<std::int64_t>(count, q), std::vector<std::int64_t>(count, 1), 0, p};
}

}  // namespace

TEST_CASE("the needed bandwidth is bytes up to the node over the time that is left", "[keep]") {
  // V 4, 6, 8 GB; t 1, 2, 3 s; T 8 s: 8/24, (4 + 12)/22, (10 + 16)/18 GB/s
  const Nodes nodes = {{4_GB, 1_s}, {6_GB, 2_s}, {8_GB, 3_s}};
  CHECK(needed_bandwidth(nodes, 0, 8_s).value() == Approx(8e9 / 24));
  CHECK(needed_bandwidth(nodes, 1, 8_s).value() == Approx(16e9 / 22));
  CHECK(needed_bandwidth(nodes, 2, 8_s).value() == Approx(26e9 / 18));
  CHECK_THROWS_AS(needed_bandwidth(nodes, 3, 8_s), std::logic_error);
}

TEST_CASE("equal nodes are kept from the closed form's boundary on", "[keep]") {
  CHECK(equal_nodes(4, 1, 1).boundary() == Boundary());       // r = 1 keeps none
  CHECK(equal_nodes(4, 7, 10).boundary() == Boundary(3));     // 6.4 / 2.4 = 2.67
  CHECK(equal_nodes(3, 3, 10).boundary() == Boundary(1));     // 0.7 / 1.6 = 0.44
  CHECK(equal_nodes(3, 1, 10).boundary() == Boundary(0));     // (0.9 - 2) / 1.2 is below 0
  CHECK(equal_nodes(4, 5, 6).boundary() == Boundary());       // r = (L+1)/(L+2), a tie
  CHECK(equal_nodes(4, 499, 600).boundary() == Boundary(3));  // r a little less

  for (std::int64_t layers = 1; layers <= 12; ++layers) {
    for (std::int64_t q = 1; q <= 15; ++q) {
      for (std::int64_t p = 1; p <= q + 2; ++p) {
        // k > (3 L p - 2 q) / (q + 2 p) in whole numbers
        const std::int64_t above = 3 * layers * p - 2 * q, below = q + 2 * p;
        const std::int64_t k = above < 0 ? 0 : above / below + 1;
        const Boundary expected = k < layers ? Boundary(static_cast<std::size_t>(k)) : std::nullopt;
        INFO("L " << layers << ", r " << p << "/" << q);
        CHECK(equal_nodes(static_cast<std::size_t>(layers), p, q).boundary() == expected);
        CHECK(!expected == (p * (layers + 2) >= q * (layers + 1)));
      }
    }
  }
}

TEST_CASE("as coded, the boundary node itself is still written", "[keep]") {
  const Integers c = equal_nodes(4, 7, 10);
  const auto kept_from = [](const Integers& of, KeepSwitch flips) {
    return first_kept(of.nodes(), of.forward(), BytesPerSecond(static_cast<double>(of.bandwidth)),
                      flips);
  };
  CHECK(kept_from(c, KeepSwitch::before_node) == 3);
  CHECK(kept_from(c, KeepSwitch::after_node) == 4);  // the last node: nothing is kept
  CHECK(kept_from(equal_nodes(3, 3, 10), KeepSwitch::after_node) == 2);
  CHECK(kept_from(equal_nodes(4, 1, 1), KeepSwitch::before_node) == 4);
  CHECK(kept_from(equal_nodes(4, 1, 1), KeepSwitch::after_node) == 4);
}

TEST_CASE("the rule finds the first node that does not fit, played second by second", "[keep]") {
  std::mt19937 random(20240810);
  int none = 0, ties = 0, first = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Integers c = random_case(random);
    const Boundary expected = brute_force(c);
    INFO("case " << i);
    CHECK(c.boundary() == expected);
    none += expected ? 0 : 1;
    first += expected == Boundary(0) ? 1 : 0;
    for (std::size_t k = 0; k < c.volumes.size(); ++k) {
      const double needed = needed_bandwidth(c.nodes(), k, c.forward()).value();
      ties += needed == static_cast<double>(c.bandwidth) ? 1 : 0;
    }
  }
  // All kinds of cases were among them.
  CHECK(none > 1000);
  CHECK(first > 100);
  CHECK(ties > 50);
}

TEST_CASE("a lower bandwidth never moves the boundary back, whatever the volumes", "[keep]") {
  std::mt19937 random(7);
  bool need_fell = false;
  for (int i = 0; i < 2'000; ++i) {
    Integers c = random_case(random);
    const Nodes nodes = c.nodes();
    const auto place = [&nodes](const Boundary& k) { return k ? *k : nodes.size(); };
    std::size_t earlier = nodes.size();
    for (c.bandwidth = 60; c.bandwidth > 0; --c.bandwidth) {
      const std::size_t now = place(c.boundary());
      CHECK(now <= earlier);
      earlier = now;
    }
    for (std::size_t k = 1; k < nodes.size(); ++k) {
      const bool falls =
          needed_bandwidth(nodes, k, c.forward()) < needed_bandwidth(nodes, k - 1, c.forward());
      need_fell |= falls;
      // It can fall only where the volume is less than half of the one before.
      if (falls) CHECK(2 * c.volumes[k] < c.volumes[k - 1]);
    }
  }
  CHECK(need_fell);
}

TEST_CASE("behind the boundary a node may need less than there is, and is kept", "[keep]") {
  // V 10, 1 GB; t 1 s each: 20/6 and 12/4 GB/s. At 3.2 GB/s the first does not fit, the second
  // would.
  const Nodes nodes = {{10_GB, 1_s}, {1_GB, 1_s}};
  const BytesPerSecond bandwidth(3.2e9);
  CHECK(needed_bandwidth(nodes, 1, 2_s) < bandwidth);
  CHECK(keep_boundary(nodes, 2_s, bandwidth) == Boundary(0));
  CHECK(first_kept(nodes, 2_s, bandwidth, KeepSwitch::before_node) == 0);
}

TEST_CASE("a longer forward never moves the boundary forward, and scale does not matter",
          "[keep]") {
  std::mt19937 random(11);
  for (int i = 0; i < 2'000; ++i) {
    Integers c = random_case(random);
    const Boundary now = c.boundary();
    Integers scaled = c;
    for (std::int64_t& v : scaled.volumes) v *= 8;
    scaled.bandwidth *= 8;
    CHECK(scaled.boundary() == now);
    c.rest += 3;
    const auto place = [&c](const Boundary& k) { return k ? *k : c.volumes.size(); };
    CHECK(place(c.boundary()) >= place(now));
  }
}

TEST_CASE("times that leave nothing need an endless bandwidth", "[keep]") {
  // 3 · 2 s - 2 · 3 s = 0
  const Nodes nodes = {{1_GB, 3_s}, {1_GB, 1_s}, {0_B, 1_s}};
  CHECK(std::isinf(needed_bandwidth(nodes, 1, 2_s).value()));
  CHECK(keep_boundary(nodes, 2_s, BytesPerSecond(1e30)) == Boundary(1));
  const Nodes empty = {{0_B, 3_s}, {0_B, 1_s}};  // nothing to move needs nothing
  CHECK(keep_boundary(empty, 2_s, BytesPerSecond(0)) == Boundary());
  CHECK(keep_boundary({}, 2_s, BytesPerSecond(0)) == Boundary());
}

TEST_CASE("bandwidth is measured from the first store's start to the last one's end", "[keep]") {
  CHECK(measured_bandwidth(12_GB, 1_s, 4_s) == BytesPerSecond(4e9));
  CHECK_THROWS_AS(measured_bandwidth(12_GB, 4_s, 4_s), std::logic_error);
}
