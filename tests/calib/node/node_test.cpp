#include <algorithm>
#include <string>
#include <vector>

#include "calib/node/estimate.hpp"
#include "calib/node/node.hpp"
#include "calib/node/sections.hpp"
#include "calib/node/yaml_text.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

RowResult row(const std::string& quantity, std::vector<std::pair<std::string, double>> at,
              std::vector<double> blocks, Unit unit = Unit::bytes_per_second,
              Gate gate = Gate::cpu) {
  RowResult result{{.quantity = quantity, .at = std::move(at), .unit = unit, .gate = gate}, {}, {}};
  std::int32_t pass = 0;
  for (const double value : blocks) {
    result.blocks.push_back({.pass = pass++,
                             .is_converged = true,
                             .samples = {{.value = value, .spoiled = {}, .series = {}}}});
  }
  return result;
}

const Entry* find(const NodeProfile& profile, const std::string& section, const std::string& key) {
  for (const Section& s : profile.sections) {
    if (s.key != section) continue;
    for (const Entry& e : s.entries) {
      if (e.key == key) return &e;
    }
  }
  return nullptr;
}

// A cube on two threads; `dtype` is a number of DType.
RowResult product(double size, double dtype, double rate) {
  return row("gemm", {{"m", size}, {"n", size}, {"k", size}, {"threads", 2}, {"dtype", dtype}},
             {rate}, Unit::flops_per_second);
}

Setup two_threads() {
  Setup setup;
  setup.threads = 2;
  setup.host.cpu = "Some CPU";
  setup.host.memory = Bytes(16.0 * 1024 * 1024 * 1024);
  setup.host.memory_available = Bytes(12.0 * 1024 * 1024 * 1024);
  return setup;
}

}  // namespace

TEST_CASE("an estimate is the median of its blocks with their relative deviation", "[node]") {
  // Mean 10, deviations -1, 0, 1: variance 2/2 = 1, relative 0.1.
  const Estimate e = estimate(row("x", {}, {9, 10, 11}));
  CHECK(e.value == 10);
  CHECK(e.spread == Approx(0.1));
  CHECK(e.blocks == 3);
}

TEST_CASE("rows with faults and blocks without values do not count", "[node]") {
  Measurements m;
  m.rows = {row("x", {}, {1}), row("x", {{"n", 2}}, {1})};
  m.rows[1].faults.push_back("contents differ");
  CHECK(rows_of(m, "x").size() == 1);
  m.rows[0].blocks[0].samples[0].spoiled = "1.2 cores busy with other work";
  CHECK(rows_of(m, "x").empty());
}

TEST_CASE("a plateau is told by all rows within a quarter of the largest, not by the best",
          "[node]") {
  Measurements m;
  m.rows = {row("r", {{"block", 1}}, {50}), row("r", {{"block", 25}}, {90}),
            row("r", {{"block", 100}}, {100}), row("r", {{"block", 50}}, {110})};
  const auto e = plateau(rows_of(m, "r"), [](const Row& r) { return coordinate(r, "block"); });
  REQUIRE(e);
  CHECK(e->value == 100);  // of 90, 100 and 110
}

TEST_CASE("drift is pooled over rows of one gate", "[node]") {
  Measurements m;
  // Relative deviations 0.1 (two degrees of freedom) and 0 (one): sqrt(0.02/3).
  m.rows = {row("a", {}, {9, 10, 11}), row("b", {}, {5, 5}),
            row("c", {}, {1, 100}, Unit::bytes_per_second, Gate::io)};
  CHECK(drift(m, Gate::cpu) == Approx(std::sqrt(0.02 / 3)));
}

TEST_CASE("a machine without a GPU computes on its CPU, with its own figures", "[node]") {
  Measurements m;
  m.rows = {
      product(100, 0, 50e9),
      product(1000, 0, 100e9),
      row("dram.triad", {{"threads", 2}, {"bytes", 1e9}}, {20e9}),
      row("dram.triad", {{"threads", 1}, {"bytes", 1e9}}, {12e9}),
      row("adam", {{"parameters", 1e6}, {"threads", 2}, {"gradient", 0}}, {2e9}, Unit::per_second),
      row("adam", {{"parameters", 6e7}, {"threads", 2}, {"gradient", 0}}, {7e8}, Unit::per_second),
      row("cast", {{"elements", 1e7}, {"threads", 2}}, {3e9}, Unit::per_second),
      row("host_copy", {{"bytes", 1e8}, {"threads", 1}}, {5e9})};
  const NodeProfile profile = node_profile(m, two_threads(), std::nullopt);
  CHECK(profile.missing.empty());
  CHECK(find(profile, "gpus", "peak_32")->text == "100 GFLOP/s");
  // 2·100³ = 2 MFLOP at half the peak, 2·1000³ = 2000 MFLOP at the peak.
  CHECK(find(profile, "gpus", "gemm_efficiency")->text ==
        "[[2 MFLOP, 0.5000], [2000 MFLOP, 1.0000]]");
  CHECK(find(profile, "gpus", "h2d")->text == "5 GB/s");
  CHECK(find(profile, "gpus", "memory")->text == "8 GiB");
  CHECK(find(profile, "host", "memory_bandwidth")->text == "20 GB/s");
  CHECK(find(profile, "host", "adam_rate")->text == "7e+08");
  CHECK(find(profile, "host", "base_use")->text == "4 GiB");
  CHECK(find(profile, "gpus", "peak_16")->is_assumed);
  CHECK(find(profile, "gpus", "peak_16")->text == "100 GFLOP/s");
  CHECK(find(profile, "gpus", "gemm_efficiency_32") == nullptr);
  CHECK(find(profile, "gpus", "attention_efficiency")->is_assumed);
}

TEST_CASE("of shapes with the same FLOPs the median counts, in whatever order they come",
          "[node]") {
  // 100·200·300 three ways: 12 MFLOP at 40, 60 and 100 of 100 GFLOP/s.
  const auto shape = [](double m, double n, double k, double rate) {
    return row("gemm", {{"m", m}, {"n", n}, {"k", k}, {"threads", 2}, {"dtype", 0}}, {rate},
               Unit::flops_per_second);
  };
  Measurements m;
  m.rows = {shape(100, 200, 300, 100e9), shape(300, 200, 100, 40e9), shape(200, 300, 100, 60e9)};
  for (int turn = 0; turn < 3; ++turn) {
    const NodeProfile profile = node_profile(m, two_threads(), std::nullopt);
    CHECK(find(profile, "gpus", "gemm_efficiency")->text == "[[12 MFLOP, 0.6000]]");
    std::ranges::rotate(m.rows, m.rows.begin() + 1);
  }
}

TEST_CASE("copies whose sizes tell no half size have an assumed one", "[node]") {
  // Rates that jump about from size to size, the same in both passes: no curve that rises holds
  // them.
  Measurements m;
  for (const auto& [bytes, rate] : {std::pair{1e5, 9e9}, {1e6, 2e9}, {1e7, 8e9}, {1e8, 1e9}})
    m.rows.push_back(
        row("gpu.h2d", {{"bytes", bytes}, {"memory", 1}, {"by", 0}}, {rate, 1.001 * rate}));
  std::vector<std::string> missing;
  const Section gpus = gpu_section(m, {"a GPU", Bytes(8e9), 1}, missing);
  const auto half = std::ranges::find(gpus.entries, "copy_half_size", &Entry::key);
  REQUIRE(half != gpus.entries.end());
  CHECK(half->is_assumed);
  CHECK(half->text == "0 B");
}

TEST_CASE("a CPU with products of 16 bits has their peak, and curves for both types", "[node]") {
  const auto attention = [](double dtype, double scores, double rate) {
    return row("attention",
               {{"heads", 10},
                {"dim", 50},
                {"tokens", 100},
                {"threads", 2},
                {"dtype", dtype},
                {"scores", scores}},
               {rate}, Unit::flops_per_second);
  };
  Measurements m;
  m.rows = {product(100, 0, 50e9),   product(1000, 0, 100e9), product(100, 1, 100e9),
            product(1000, 1, 800e9), attention(0, 0, 10e9),   attention(0, 1, 20e9),
            attention(1, 0, 20e9),   attention(1, 1, 80e9)};
  const NodeProfile profile = node_profile(m, two_threads(), std::nullopt);
  const auto text = [&](const char* key) { return find(profile, "gpus", key)->text; };
  CHECK(text("peak_16") == "800 GFLOP/s");
  CHECK(text("peak_32") == "100 GFLOP/s");
  CHECK(text("gemm_efficiency") == "[[2 MFLOP, 0.1250], [2000 MFLOP, 1.0000]]");
  CHECK(text("gemm_efficiency_32") == "[[2 MFLOP, 0.5000], [2000 MFLOP, 1.0000]]");
  // Half of 4 · 10 · 100² · 50 = 10 MFLOP; of scores in a cache 80 of 800 and 20 of 100.
  CHECK(text("attention_efficiency") == "[[10 MFLOP, 0.1000]]");
  CHECK(text("attention_efficiency_32") == "[[10 MFLOP, 0.2000]]");
  CHECK(!find(profile, "gpus", "attention_efficiency")->is_assumed);
}

TEST_CASE("products of 16 bits that are slower than those of fp32 count as none", "[node]") {
  Measurements m;
  m.rows = {product(1000, 0, 100e9), product(1000, 1, 40e9)};
  const NodeProfile profile = node_profile(m, two_threads(), std::nullopt);
  CHECK(find(profile, "gpus", "peak_16")->text == "100 GFLOP/s");
  CHECK_THAT(find(profile, "gpus", "peak_16")->source, Containing("slower than those of fp32"));
}

TEST_CASE("memory gives what the fastest stream of reads and writes moves, beyond the caches",
          "[node]") {
  Setup setup = two_threads();
  setup.host.last_level_cache = Bytes(300e6);
  Measurements m;
  const auto stream = [](const char* quantity, double bytes, double rate) {
    return row(quantity, {{"bytes", bytes}, {"threads", 2}}, {rate});
  };
  m.rows = {stream("dram.read", 1e9, 40e9), stream("dram.copy", 1e9, 30e9),
            stream("dram.triad", 1e9, 20e9), stream("dram.copy_streaming", 1e9, 21e9)};
  const auto told = [&] {
    return find(node_profile(m, setup, std::nullopt), "host", "memory_bandwidth")->text;
  };
  CHECK(told() == "21 GB/s");  // reads alone are no stream of training, plain stores fetch more
  const auto adam = [](double parameters, double rate) {
    return row("adam", {{"parameters", parameters}, {"threads", 2}, {"gradient", 0}}, {rate},
               Unit::per_second);
  };
  m.rows.push_back(adam(3e7, 1e9));
  CHECK(told() == "21 GB/s");  // 16 B of 3e7 parameters are 480 MB, less than two caches of 300 MB
  m.rows.push_back(adam(6e7, 0.8e9));
  CHECK(told() == "22.4 GB/s");  // 28 B x 0.8e9/s
}

TEST_CASE("what a simulation needs and nobody measured is named", "[node]") {
  const NodeProfile profile = node_profile({}, two_threads(), std::nullopt);
  const auto lacks = [&profile](const char* key) {
    return std::ranges::find(profile.missing, key) != profile.missing.end();
  };
  CHECK(lacks("host.adam_rate"));
  CHECK(lacks("host.memory_bandwidth"));
  CHECK(lacks("gpus.peak_32"));
}

TEST_CASE("mixed rates are the ends of the line through rates that were measured together",
          "[node]") {
  Setup setup = two_threads();
  setup.storage.push_back(
      {.name = "nvme", .folder = "/", .facts = {.type = "ext4", .total = Bytes(1e12)}});
  Measurements m;
  // r = 6 (1 - w/3) GB/s: w 1 gives 4, w 2 gives 2. Alone: 7 and 5.
  const auto at = [](double cap) {
    return std::vector<std::pair<std::string, double>>{
        {"write_cap", cap}, {"block", 1048576}, {"depth", 16}};
  };
  const Gate io = Gate::io;
  const Unit rate = Unit::bytes_per_second;
  m.rows = {row("nvme.mixed_read", at(0), {7e9}, rate, io),
            row("nvme.mixed_write", at(0.3), {1e9}, rate, io),
            row("nvme.mixed_read", at(0.3), {4e9}, rate, io),
            row("nvme.mixed_write", at(0.7), {2e9}, rate, io),
            row("nvme.mixed_read", at(0.7), {2e9}, rate, io),
            row("nvme.read", {{"block", 1048576}, {"depth", 16}}, {7e9}, rate, io),
            row("nvme.write", {{"block", 1048576}, {"depth", 16}}, {5e9}, rate, io)};
  const NodeProfile profile = node_profile(m, setup, std::nullopt);
  CHECK(find(profile, "paths.nvme", "read")->text == "7 GB/s");
  CHECK(find(profile, "paths.nvme", "read_mixed")->text == "6 GB/s");
  CHECK(find(profile, "paths.nvme", "write_mixed")->text == "3 GB/s");
}

TEST_CASE("mixed rates too near each other for a line are told by what mixing costs", "[node]") {
  Setup setup = two_threads();
  setup.storage.push_back(
      {.name = "nvme", .folder = "/", .facts = {.type = "ext4", .total = Bytes(1e12)}});
  const auto add = [](Measurements& m, const char* quantity, double cap,
                      const std::vector<double>& blocks) {
    std::vector<std::pair<std::string, double>> at = {{"block", 1048576}, {"depth", 16}};
    if (cap > 0) at.emplace_back("write_cap", cap);
    m.rows.push_back(row(quantity, at, blocks, Unit::bytes_per_second, Gate::io));
  };
  Measurements m;
  add(m, "nvme.read", 0, {2e9});
  add(m, "nvme.write", 0, {4e9});
  // Medians 1.2/2 + 1/4 = 1.19/2 + 1.02/4 = 0.85: rates of 0.85 of the pure ones. The slope between
  // the two, -0.01/0.02, is far below what blocks that are 9 % apart make of it.
  add(m, "nvme.mixed_read", 0.5, {1.1e9, 1.3e9});
  add(m, "nvme.mixed_write", 0.5, {0.9e9, 1.1e9});
  add(m, "nvme.mixed_read", 1, {1.09e9, 1.29e9});
  add(m, "nvme.mixed_write", 1, {0.92e9, 1.12e9});
  const NodeProfile profile = node_profile(m, setup, std::nullopt);
  CHECK(find(profile, "paths.nvme", "read_mixed")->text == "1.7 GB/s");
  CHECK(find(profile, "paths.nvme", "write_mixed")->text == "3.4 GB/s");
  CHECK_THAT(find(profile, "paths.nvme", "read_mixed")->source,
             Containing("too near each other for a line: 1.18 times as dear as in turn"));
  // Mixing is never cheaper than the two in turn: 2/2 + 1/4 = 1.25 is noise.
  Measurements cheap;
  add(cheap, "nvme.read", 0, {2e9});
  add(cheap, "nvme.write", 0, {4e9});
  add(cheap, "nvme.mixed_read", 1, {2e9});
  add(cheap, "nvme.mixed_write", 1, {1e9});
  CHECK(find(node_profile(cheap, setup, std::nullopt), "paths.nvme", "read_mixed")->text ==
        "2 GB/s");
}

TEST_CASE("a path goes straight to GPU memory where it was seen to, both ways", "[node]") {
  Setup setup = two_threads();
  setup.storage.push_back(
      {.name = "nvme", .folder = "/", .facts = {.type = "ext4", .total = Bytes(1e12)}});
  const auto told = [&](double read_way, double write_way, const std::vector<std::string>& faults) {
    Measurements m;
    m.rows = {row("nvme.gds_read", {{"block", 1048576}, {"way", read_way}}, {5e9}),
              row("nvme.gds_write", {{"block", 1048576}, {"way", write_way}}, {4e9})};
    m.rows[1].faults = faults;
    const NodeProfile profile = node_profile(m, setup, std::nullopt);
    const Entry* entry = find(profile, "paths.nvme", "gpudirect");
    return entry == nullptr ? std::string("not told") : entry->text;
  };
  CHECK(told(1, 1, {}) == "true");
  CHECK(told(1, 0, {}) == "not told");   // compatibility mode
  CHECK(told(-1, 1, {}) == "not told");  // nobody counts
  CHECK(told(1, 1, {"contents differ"}) == "not told");
}

TEST_CASE("text that YAML would read as something else is quoted", "[node]") {
  CHECK(scalar_text("plain words") == "plain words");
  CHECK(scalar_text("a: b") == "\"a: b\"");
  CHECK(scalar_text("say \"x\"") == "\"say \\\"x\\\"\"");
  CHECK(scalar_text("") == "\"\"");
}

TEST_CASE("a shared file system has what all reach together, and what one process reaches",
          "[node]") {
  Setup setup = two_threads();
  setup.storage.push_back({.name = "pfs",
                           .folder = "/",
                           .facts = {.type = "lustre", .total = Bytes(1e15), .is_network = true},
                           .is_shared = true});
  const Unit rate = Unit::bytes_per_second;
  const auto at = [](double clients, double cap = -1) {
    std::vector<std::pair<std::string, double>> all = {{"block", 1048576}, {"depth", 16}};
    if (cap >= 0) all.emplace_back("write_cap", cap);
    if (clients > 0) all.emplace_back("clients", clients);
    return all;
  };
  Measurements m;
  const auto add = [&](const char* quantity, std::vector<std::pair<std::string, double>> where,
                       double value, Gate gate) {
    m.rows.push_back(row(quantity, std::move(where), {value}, rate, gate));
  };
  add("pfs.read", at(0), 2.1e9, Gate::io);
  add("pfs.write", at(0), 1.1e9, Gate::io);
  // Four clients read 3 times what one does: the file system is the limit. They write 3.8 times.
  add("pfs.shared.read", at(1), 2e9, Gate::none);
  add("pfs.shared.read", at(4), 6e9, Gate::none);
  add("pfs.shared.write", at(1), 1e9, Gate::none);
  add("pfs.shared.write", at(4), 3.8e9, Gate::none);
  // r = 5 (1 - w/3): w 1.5 gives 2.5, w 1.8 gives 2.
  add("pfs.shared.mixed_read", at(4, 0.5), 2.5e9, Gate::none);
  add("pfs.shared.mixed_write", at(4, 0.5), 1.5e9, Gate::none);
  add("pfs.shared.mixed_read", at(4, 1), 2e9, Gate::none);
  add("pfs.shared.mixed_write", at(4, 1), 1.8e9, Gate::none);
  const NodeProfile profile = node_profile(m, setup, std::nullopt);
  const std::string pfs = "paths.pfs";
  CHECK(find(profile, pfs, "read")->text == "6 GB/s");
  CHECK(find(profile, pfs, "read")->source.find("the clients are the limit") == std::string::npos);
  CHECK_THAT(find(profile, pfs, "read")->source, Containing("3 times what one reaches"));
  CHECK(find(profile, pfs, "write")->text == "3.8 GB/s");
  CHECK_THAT(find(profile, pfs, "write")->source, Containing("the clients are the limit"));
  CHECK(find(profile, pfs, "client_read")->text == "2.1 GB/s");
  CHECK(find(profile, pfs, "client_write")->text == "1.1 GB/s");
  CHECK(find(profile, pfs, "read_mixed")->text == "5 GB/s");
  CHECK(find(profile, pfs, "write_mixed")->text == "3 GB/s");
  CHECK(find(profile, pfs, "shared")->text == "true");
}
