#include <cmath>

#include "calib/measure/protocol.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

TEST_CASE("a rule is content when the interval of the median is narrow enough, not before",
          "[rule]") {
  StoppingRule rule(0.02, 5, 200);
  for (int i = 0; i < 4; ++i) rule.add(100);
  CHECK_FALSE(rule.is_content());  // four are too few, however alike
  rule.add(100);
  CHECK(rule.is_content());
  CHECK(rule.half_width() == 0);
}

TEST_CASE("a rule is not content with values far apart, and ends at its most", "[rule]") {
  StoppingRule rule(0.02, 5, 10);
  // Of fewer than six samples the interval is the whole range: (140 - 60)/2 over 100.
  for (const double v : {60., 140., 100., 90., 110.}) rule.add(v);
  CHECK(rule.half_width() == Approx(0.4));
  CHECK_FALSE(rule.is_content());
  for (int i = 0; i < 5; ++i) rule.add(i % 2 == 0 ? 60 : 140);
  CHECK(rule.is_exhausted());
}

TEST_CASE("one sample says nothing about its own spread", "[rule]") {
  StoppingRule rule;
  rule.add(1);
  CHECK(std::isinf(rule.half_width()));
}

TEST_CASE("a sample beside other work is spoiled, each cause with its number", "[gate]") {
  const GateLimits limits;
  Row cpu{.quantity = "fma", .gate = Gate::cpu};
  Row io{.quantity = "nvme.read", .gate = Gate::io, .device = "nvme0n1"};
  CHECK(spoiled_by(cpu, {.cores = 0.04}, limits).empty());
  CHECK(spoiled_by(cpu, {.cores = 0.83}, limits) == "0.83 cores busy with other work");
  CHECK(spoiled_by(io, {.cores = 0.2}, limits).empty());  // kernel workers count as others
  CHECK(spoiled_by(io, {.cores = 0.3}, limits) == "0.30 cores busy with other work");
  // What ticks may be wrong by counts for storage, whose work sleeps and wakes.
  CHECK(spoiled_by(io, {.cores = 0.9, .counting = 0.7}, limits).empty());
  CHECK(spoiled_by(io, {.cores = 1.0, .counting = 0.7}, limits) ==
        "1.00 cores busy with other work");
  CHECK(spoiled_by(cpu, {.cores = 0.9, .counting = 0.7}, limits) ==
        "0.90 cores busy with other work");
  CHECK(spoiled_by(cpu, {.steal = 0.2}, limits) == "the hypervisor took 20 % of the cores' time");
  CHECK(spoiled_by(io, {.bytes_per_second = 40e6}, limits) ==
        "40 MB/s of other traffic on nvme0n1");
  CHECK(spoiled_by(cpu, {.bytes_per_second = 40e6}, limits).empty());
  CHECK(spoiled_by(cpu, {.throttled = 3}, limits).find("3 periods") != std::string::npos);
  CHECK(spoiled_by({.quantity = "x", .gate = Gate::none}, {.cores = 2}, limits).empty());
}

TEST_CASE("the value of a block is the median of the samples that count", "[block]") {
  Block block{
      .samples = {
          {.value = 1}, {.value = 3}, {.value = 100, .spoiled = "other work"}, {.value = 2}}};
  CHECK(block.value() == 2);
  CHECK(std::isnan(Block{.samples = {{.value = 100, .spoiled = "other work"}}}.value()));
}

TEST_CASE("samples are written a line per block and read back the same", "[lines]") {
  Measurements m;
  m.host = "0123456789ab";
  m.passes = 3;
  m.accepted = 5;
  m.rejected = 1;
  m.seconds = 12.5;
  m.canaries.push_back({"canary.fma", {0.1, 20}, {1e9, 1.1e9}});
  m.rows.push_back(
      {{.quantity = "nvme.read",
        .at = {{"block", 1048576}, {"depth", 16}},
        .gate = Gate::io,
        .device = "vda",
        .ceiling = 7e9,
        .ceiling_from = "PCIe \"4.0\" x4"},
       {{.pass = 1,
         .is_converged = true,
         .samples = {{.value = 5.5e8, .at = 1, .elapsed = 0.2, .spoiled = "", .series = {1, 2}},
                     {.value = 1, .at = 2, .elapsed = 0.2, .spoiled = "0.8 cores"}}}},
       {"contents differ"}});
  const std::string text = to_lines(m);
  const Measurements back = read_lines(text, "x.jsonl");
  CHECK(to_lines(back) == text);
  CHECK(back.rows[0].row.id() == "nvme.read/block=1048576/depth=16");
  CHECK(back.rows[0].blocks[0].value() == 5.5e8);
  CHECK_FALSE(back.is_complete);
  CHECK(back.host == m.host);
}

TEST_CASE("a damaged file of samples is refused with its line", "[lines]") {
  const auto message = [](const std::string& text) {
    try {
      read_lines(text, "x.jsonl");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string good = to_lines(Measurements{});
  CHECK(message("").find("x.jsonl:1:1: is empty") == 0);
  CHECK(message("hello\n").find("x.jsonl:1:1: is no file of samples") == 0);
  CHECK(
      message(good + "{\"of\": 0, \"pass\": 0}\n").find("x.jsonl:2:1: is not a line of samples") ==
      0);
  CHECK(message("{\"schema\": \"other/1\"}\n").find("x.jsonl:1:1") == 0);
}
