#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calib/measure/protocol.hpp"
#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

// Rows with values that the test chooses; counts what was asked of it.
class Scripted : public Bench {
 public:
  struct Log {
    std::vector<std::string> calls;
    std::function<Sample(std::size_t row)> answer = [](std::size_t) {
      return Sample{.value = 100, .elapsed = Seconds(0)};
    };
  };
  Scripted(std::vector<Row> rows, Log& log) : rows_(std::move(rows)), log_(log) {}
  std::vector<Row> rows() const override { return rows_; }
  void prepare() override { log_.calls.push_back("prepare"); }
  Sample sample(std::size_t row) override {
    log_.calls.push_back(rows_[row].quantity);
    return log_.answer(row);
  }
  void finish() override { log_.calls.push_back("finish"); }

 private:
  std::vector<Row> rows_;
  Log& log_;
};

Row row(const std::string& quantity) { return {.quantity = quantity, .gate = Gate::none}; }

struct Lab {
  Scripted::Log log;
  std::vector<std::unique_ptr<Bench>> benches, canaries;
  Protocol protocol{.passes = 2, .block = Seconds(0.05)};
  explicit Lab(std::vector<Row> rows) {
    benches.push_back(std::make_unique<Scripted>(std::move(rows), log));
  }
  Measurements run(const Measurements& known = {}) {
    return measure(benches, canaries, protocol, known, {});
  }
  long count(const std::string& call) const {
    return std::count(log.calls.begin(), log.calls.end(), call);
  }
};

}  // namespace

TEST_CASE("every row has one block per pass, after a warm-up that does not count", "[runner]") {
  Lab lab({row("a"), row("b")});
  const Measurements m = lab.run();
  CHECK(m.is_complete);
  REQUIRE(m.rows.size() == 2);
  std::size_t counted = 0;
  for (const RowResult& r : m.rows) {
    REQUIRE(r.blocks.size() == 2);
    CHECK(r.blocks[0].pass + r.blocks[1].pass == 1);
    CHECK(r.blocks[0].value() == 100);
    CHECK(r.blocks[0].is_converged);
    for (const Block& b : r.blocks) counted += b.samples.size();
  }
  CHECK(static_cast<std::size_t>(m.accepted) == counted);
  // One warm-up per block: four.
  CHECK(lab.count("a") + lab.count("b") == m.accepted + 4);
  CHECK(lab.log.calls.front() == "prepare");
  CHECK(lab.log.calls.back() == "finish");
}

TEST_CASE("short samples of storage are judged by fives, of the CPU one by one", "[runner]") {
  for (const auto& [gate, samples] : std::map<Gate, std::size_t>{{Gate::io, 55}, {Gate::cpu, 11}}) {
    Lab lab({{.quantity = "x", .gate = gate}});
    lab.protocol.passes = 1;
    lab.protocol.gate.io_cores = lab.protocol.gate.cpu_cores = -1e12;  // whatever others do
    const Measurements m = lab.run();
    // Given up at the eleventh rejection.
    REQUIRE(m.rows[0].blocks.size() == 1);
    CHECK(m.rows[0].blocks[0].samples.size() == samples);
    CHECK(m.rejected == static_cast<std::int64_t>(samples));
    CHECK(m.accepted == 0);
  }
}

TEST_CASE("samples that were taken before the budget was spent count", "[runner]") {
  Lab lab({{.quantity = "x", .gate = Gate::io}});
  lab.protocol.passes = 1;
  lab.protocol.is_gated = false;
  int calls = 0;
  lab.log.answer = [&calls](std::size_t) {
    if (++calls > 4) throw BudgetSpent("spent");  // a warm-up and three samples
    return Sample{.value = 100.0 + calls, .elapsed = Seconds(0)};
  };
  const Measurements m = lab.run();
  REQUIRE(m.rows[0].blocks.size() == 1);
  CHECK(m.rows[0].blocks[0].samples.size() == 3);
  CHECK(m.rows[0].faults.empty());
}

TEST_CASE("passes do not all follow the same order", "[runner]") {
  std::vector<Row> rows;
  for (int i = 0; i < 12; ++i) rows.push_back(row("q" + std::to_string(i)));
  Lab lab(rows);
  lab.protocol.passes = 3;
  lab.run();
  std::vector<std::string> order;
  for (const std::string& call : lab.log.calls) {
    if (call[0] == 'q' && (order.empty() || order.back() != call)) order.push_back(call);
  }
  const std::vector<std::string> first(order.begin(), order.begin() + 12);
  const std::vector<std::string> second(order.begin() + 12, order.begin() + 24);
  CHECK(first != second);
}

TEST_CASE("blocks of an earlier run are not measured again", "[runner]") {
  Lab lab({row("a"), row("b")});
  lab.protocol.passes = 1;
  const Measurements before = lab.run();
  lab.log.calls.clear();
  lab.protocol.passes = 2;
  const Measurements after = lab.run(before);
  for (const RowResult& r : after.rows) CHECK(r.blocks.size() == 2);
  lab.log.calls.clear();
  lab.run(after);
  CHECK(lab.count("a") == 0);
  CHECK(lab.count("b") == 0);
}

TEST_CASE("a row that was faulty before is measured anew, and its fault counts until then",
          "[runner]") {
  Lab lab({row("a"), row("wrong")});
  lab.log.answer = [](std::size_t r) {
    return Sample{.value = 100, .elapsed = Seconds(0), .is_verified = r == 0};
  };
  const Measurements before = lab.run();
  REQUIRE(before.rows[1].faults.size() == 1);
  lab.log.calls.clear();
  const Measurements still = lab.run(before);
  CHECK(lab.count("a") == 0);
  CHECK(still.rows[1].faults.size() == 1);  // nothing makes wrong contents right
  lab.log.answer = [](std::size_t) { return Sample{.value = 50, .elapsed = Seconds(0)}; };
  const Measurements mended = lab.run(before);
  CHECK(mended.rows[1].faults.empty());
  REQUIRE(mended.rows[1].blocks.size() == 2);
  for (const Block& block : mended.rows[1].blocks) CHECK(block.value() == 50);
}

TEST_CASE("samples of an earlier run are counted with those of this one", "[runner]") {
  Lab lab({row("a")});
  const Measurements before = lab.run();
  REQUIRE(before.accepted > 0);
  CHECK(lab.run(before).accepted == before.accepted);
}

TEST_CASE("a row that would pass the write budget is skipped with the reason", "[runner]") {
  Row writes = row("w");
  writes.writes = Bytes(100);
  Lab lab({writes, row("r")});
  lab.protocol.write_budget = 99;
  const Measurements m = lab.run();
  CHECK(lab.count("w") == 0);
  CHECK(m.rows[0].blocks.empty());
  REQUIRE(m.rows[0].faults.size() == 1);
  CHECK(m.rows[0].faults[0] == "the write budget of 99 B is spent");
  CHECK(m.rows[1].faults.empty());
}

TEST_CASE("what was written is counted against the budget, sample by sample", "[runner]") {
  Row writes = row("w");
  writes.writes = Bytes(100);
  Lab lab({writes});
  lab.log.answer = [](std::size_t) {
    return Sample{.value = 1, .elapsed = Seconds(0), .written = 100};
  };
  lab.protocol.write_budget = 450;
  lab.run();
  CHECK(lab.count("w") == 4);  // warm-up and three samples make 400; a fifth would pass 450
}

TEST_CASE("wrong contents and impossible values are faults of their row", "[runner]") {
  Row fast = row("fast");
  fast.ceiling = 50;
  fast.ceiling_from = "two channels";
  Lab lab({fast, row("wrong")});
  lab.log.answer = [](std::size_t r) {
    return Sample{.value = 100, .elapsed = Seconds(0), .is_verified = r == 0};
  };
  const Measurements m = lab.run();
  REQUIRE(m.rows[0].faults.size() == 1);
  CHECK(m.rows[0].faults[0].find("above the ceiling of 50 (two channels)") != std::string::npos);
  REQUIRE(m.rows[1].faults.size() == 1);
  CHECK(m.rows[1].faults[0].find("contents") != std::string::npos);
}

TEST_CASE("a machine error spoils its row and not the run", "[runner]") {
  Lab lab({row("broken"), row("fine")});
  lab.log.answer = [](std::size_t r) -> Sample {
    if (r == 0) throw MachineError("read of 4096 at 0: Input/output error");
    return {.value = 1, .elapsed = Seconds(0)};
  };
  const Measurements m = lab.run();
  CHECK(m.is_complete);
  CHECK(m.rows[0].blocks.empty());
  REQUIRE(m.rows[0].faults.size() == 1);
  CHECK(m.rows[1].blocks.size() == 2);
}

TEST_CASE("an interrupt ends the run with what there is, and benches are finished", "[runner]") {
  Lab lab({row("a"), row("b"), row("c")});
  const rig::InterruptScope scope;
  int samples = 0;
  lab.log.answer = [&samples](std::size_t) {
    if (++samples == 8) std::raise(SIGINT);
    return Sample{.value = 1, .elapsed = Seconds(0)};
  };
  const Measurements m = lab.run();
  CHECK_FALSE(m.is_complete);
  CHECK(samples == 8);
  CHECK(lab.log.calls.back() == "finish");
}

TEST_CASE("progress counts the blocks of all passes from the start", "[runner]") {
  Lab lab({row("a"), row("b")});
  std::vector<ProgressNow> told;
  measure(lab.benches, lab.canaries, lab.protocol, {},
          [&told](const ProgressNow& now) { told.push_back(now); });
  // Once for the bench that is prepared, once before each of two rows in two passes.
  REQUIRE(told.size() == 5);
  CHECK(told[0].pass == 0);
  for (const ProgressNow& now : told) CHECK(now.all == 4);
  CHECK(told[1].done == 0);
  CHECK(told[4].done == 3);
  CHECK(told[4].pass == 2);
  CHECK(told[4].left > 0);
}
