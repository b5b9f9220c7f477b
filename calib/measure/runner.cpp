#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include <fmt/core.h>

#include "calib/measure/protocol.hpp"
#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

constexpr double canary_every = 20;      // seconds
constexpr std::int32_t before_all = -1;  // of passes

/// Finished, whether or not the run went through: files and memory go.
class Prepared {
 public:
  explicit Prepared(std::span<const std::unique_ptr<Bench>> benches) : benches_(benches) {}
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared() {
    for (std::size_t i = 0; i < prepared_; ++i) benches_[i]->finish();
  }
  void prepare(std::size_t i) {
    prepared_ = i + 1;
    benches_[i]->prepare();
  }

 private:
  std::span<const std::unique_ptr<Bench>> benches_;
  std::size_t prepared_ = 0;
};

class Run {
 public:
  Run(std::span<const std::unique_ptr<Bench>> benches,
      std::span<const std::unique_ptr<Bench>> canaries, const Protocol& protocol,
      const std::function<void(const ProgressNow&)>& progress)
      : benches_(benches),
        canaries_(canaries),
        protocol_(protocol),
        progress_(progress),
        random_(protocol.seed),
        began_(now()) {
    result_.passes = protocol.passes;
    for (std::size_t b = 0; b < benches.size(); ++b) {
      const std::vector<Row> rows = benches[b]->rows();
      for (std::size_t r = 0; r < rows.size(); ++r) {
        places_.push_back({b, r});
        result_.rows.push_back({rows[r], {}, {}});
      }
    }
    for (const auto& canary : canaries)
      result_.canaries.push_back({canary->rows()[0].quantity, {}, {}});
  }

  // Rows with faults are measured anew: who resumes must not get their blocks without the faults.
  void take_known(const Measurements& known) {
    for (RowResult& row : result_.rows) {
      const std::string id = row.row.id();
      const auto old =
          std::ranges::find_if(known.rows, [&id](const RowResult& k) { return k.row.id() == id; });
      if (old == known.rows.end() || !old->faults.empty()) continue;
      row.blocks = old->blocks;
      std::erase_if(row.blocks, [this](const Block& b) { return b.pass >= protocol_.passes; });
      for (const Block& block : row.blocks) {
        for (const TakenSample& s : block.samples)
          ++(s.spoiled.empty() ? result_.accepted : result_.rejected);
      }
    }
    for (Canary& canary : result_.canaries) {
      const auto old = std::ranges::find(known.canaries, canary.name, &Canary::name);
      if (old != known.canaries.end()) canary = *old;
    }
    began_ -= known.seconds;
  }

  Measurements run() {
    Prepared prepared(benches_), watched(canaries_);
    try {
      blocks_left_ = blocks_to_take();
      prepare(prepared, watched);
      for (std::int32_t pass = 0; pass < protocol_.passes; ++pass) take_pass(pass);
      probe();
      result_.is_complete = true;
    } catch (const rig::Interrupted&) {
      result_.is_complete = false;
    }
    result_.seconds = now() - began_;
    return std::move(result_);
  }

 private:
  struct At {
    std::size_t bench, row;
  };

  void prepare(Prepared& prepared, Prepared& watched) {
    for (std::size_t i = 0; i < canaries_.size(); ++i) watched.prepare(i);
    for (std::size_t i = 0; i < benches_.size(); ++i) {
      rig::check_interrupt();
      const std::vector<Row> rows = benches_[i]->rows();
      tell(rows.empty() ? "preparing" : "preparing " + rows[0].quantity, before_all);
      prepared.prepare(i);
      if (protocol_.when_prepared) protocol_.when_prepared(*benches_[i]);
    }
  }

  // Rows that have no block of the pass yet.
  std::vector<std::size_t> rows_without(std::int32_t pass) const {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < result_.rows.size(); ++i) {
      if (!std::ranges::any_of(result_.rows[i].blocks,
                               [pass](const Block& b) { return b.pass == pass; })) {
        rows.push_back(i);
      }
    }
    return rows;
  }

  std::size_t blocks_to_take() const {
    std::size_t count = 0;
    for (std::int32_t pass = 0; pass < protocol_.passes; ++pass) count += rows_without(pass).size();
    return count;
  }

  void take_pass(std::int32_t pass) {
    std::vector<std::size_t> order = rows_without(pass);
    std::ranges::shuffle(order, random_);
    for (const std::size_t i : order) {
      rig::check_interrupt();
      if (now() - probed_ > canary_every) probe();
      tell(result_.rows[i].row.id(), pass);
      take_block(i, pass);
      ++blocks_done_;
      --blocks_left_;
    }
  }

  void probe() {
    for (std::size_t c = 0; c < canaries_.size(); ++c) {
      const Sample sample = canaries_[c]->sample(0);
      result_.canaries[c].at.push_back(now() - began_);
      result_.canaries[c].value.push_back(sample.value);
    }
    probed_ = now();
  }

  void take_block(std::size_t i, std::int32_t pass) {
    RowResult& row = result_.rows[i];
    Block block{.pass = pass, .is_converged = false, .samples = {}};
    try {
      if (!afford(row)) return;
      benches_[places_[i].bench]->sample(places_[i].row);  // warm-up
      written_ += row.row.writes.value();
      fill(block, row, i);
    } catch (const BudgetSpent& spent) {
      if (block.samples.empty() && row.blocks.empty()) add_fault(row, spent.what());
    } catch (const MachineError& error) {
      add_fault(row, error.what());
    }
    if (!block.samples.empty()) row.blocks.push_back(std::move(block));
  }

  void fill(Block& block, RowResult& row, std::size_t i) {
    StoppingRule rule;
    const double until = now() + protocol_.block.value();
    std::int32_t rejected = 0;
    while (!rule.is_content() && !rule.is_exhausted() && rejected <= protocol_.retries) {
      if (rule.count() > 0 && now() > until) break;
      rig::check_interrupt();
      if (!afford(row)) break;
      std::vector<TakenSample> window = take_window(row, i);
      bool is_rejected = false;
      for (TakenSample& taken : window) {
        if (taken.spoiled.empty()) {
          rule.add(taken.value);
          ++result_.accepted;
        } else {
          is_rejected = true;
          ++result_.rejected;
        }
        block.samples.push_back(std::move(taken));
      }
      rejected += is_rejected ? 1 : 0;
    }
    block.is_converged = rule.is_content();
  }

  // Samples that the gate judges together.
  std::vector<TakenSample> take_window(RowResult& row, std::size_t i) {
    constexpr std::size_t most = 5;
    constexpr double least = 0.3;  // seconds
    const rig::Readings before = rig::read_system(row.row.device);
    const double began = now();
    std::vector<TakenSample> window;
    std::int64_t read = 0, written = 0;
    try {
      do {
        const Sample sample = benches_[places_[i].bench]->sample(places_[i].row);
        read += sample.read, written += sample.written;
        window.push_back(taken(row, sample));
      } while (row.row.gate == Gate::io && window.size() < most && now() - began < least &&
               !rig::is_interrupted() && afford(row));
    } catch (const BudgetSpent&) {
      if (window.empty()) throw;
    }
    const std::string why =
        spoiled(row.row, rig::foreign(before, rig::read_system(row.row.device), read, written));
    for (TakenSample& sample : window) {
      if (sample.spoiled.empty()) sample.spoiled = why;
    }
    return window;
  }

  TakenSample taken(RowResult& row, const Sample& sample) {
    written_ += static_cast<double>(sample.written);
    if (!sample.is_verified) add_fault(row, "contents or checksum differ from what they must be");
    if (row.row.ceiling > 0 && sample.value > row.row.ceiling) {
      add_fault(row, fmt::format("{:.4g} {} is above the ceiling of {:.4g} ({})", sample.value,
                                 name_of(row.row.unit), row.row.ceiling, row.row.ceiling_from));
    }
    return {.value = sample.value,
            .at = now() - began_,
            .elapsed = sample.elapsed.value(),
            .spoiled = sample.spoiled,
            .series = sample.series};
  }

  std::string spoiled(const Row& row, const rig::Foreign& foreign) const {
    return protocol_.is_gated ? spoiled_by(row, foreign, protocol_.gate) : "";
  }

  bool afford(RowResult& row) {
    const double writes = row.row.writes.value();
    if (writes == 0 || written_ + writes <= protocol_.write_budget) return true;
    add_fault(row, fmt::format("the write budget of {} is spent",
                               to_text(Bytes(protocol_.write_budget))));
    return false;
  }

  static void add_fault(RowResult& row, std::string fault) {
    if (std::ranges::find(row.faults, fault) == row.faults.end()) {
      row.faults.push_back(std::move(fault));
    }
  }

  void tell(const std::string& doing, std::int32_t pass) {
    if (!progress_) return;
    const double seconds = now() - began_;
    const auto done = static_cast<double>(blocks_done_);
    const double each = blocks_done_ > 0 ? (now() - first_block_) / done : 0;
    if (blocks_done_ == 0) first_block_ = now();
    progress_({.doing = doing,
               .pass = pass + 1,
               .passes = protocol_.passes,
               .done = blocks_done_,
               .all = blocks_done_ + blocks_left_,
               .seconds = seconds,
               .left = each * static_cast<double>(blocks_left_),
               .rejected = result_.rejected});
  }

  std::span<const std::unique_ptr<Bench>> benches_, canaries_;
  const Protocol& protocol_;
  const std::function<void(const ProgressNow&)>& progress_;
  std::mt19937_64 random_;
  double began_, probed_ = 0, first_block_ = 0, written_ = 0;
  std::size_t blocks_done_ = 0, blocks_left_ = 0;
  std::vector<At> places_;
  Measurements result_;
};

}  // namespace

Measurements measure(std::span<const std::unique_ptr<Bench>> benches,
                     std::span<const std::unique_ptr<Bench>> canaries, const Protocol& protocol,
                     const Measurements& known,
                     const std::function<void(const ProgressNow&)>& progress) {
  Run run(benches, canaries, protocol, progress);
  run.take_known(known);
  return run.run();
}

}  // namespace tidegate::calib
