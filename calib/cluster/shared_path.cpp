#include "calib/cluster/shared_path.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>

#include <fmt/core.h>

#include "calib/cluster/neighbour.hpp"
#include "calib/cluster/told.hpp"
#include "calib/rig/interrupt.hpp"
#include "calib/storage/rows.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

// The plateau of a client: what the rows of one process call "1 MiB x 16".
constexpr std::int64_t block = mib;
constexpr std::size_t depth = 16;
constexpr std::array<double, 2> caps = {0.5, 1};  // of the write rate, beside reads
// Of a client's budget: a file and a part of it again to see how fast it is overwritten, and half
// of a file for another client; what is under way at the end of a sample.
constexpr double files = 1.75, kept = 0.95;

struct Step {
  const char* kind = "read";
  double cap = 0;  // of mixed ones
  std::int32_t clients = 1;
  bool is_mixed() const { return cap > 0; }
};

class SharedRun {
 public:
  SharedRun(Team& team, const SharedPlan& plan, const std::function<void(const std::string&)>& tell)
      : team_(team), plan_(plan), tell_(tell), counts_(client_counts(team.size())) {
    const double each = plan.budget.value() / team.size();
    file_ = Bytes(std::min(plan.file.value(), each / 4));
    // Samples that a client may have to write in: each count, and the mixes with all.
    const double steps = static_cast<double>(counts_.size()) + caps[0] + caps[1];
    writes_ = steps * plan.passes * (plan.samples + 1);
    share_ = (kept * each - files * file_.value()) / writes_;
    result_.all.passes = plan.passes;
    result_.clients.resize(team.rank() == 0 ? static_cast<std::size_t>(team.size()) : 0);
  }

  SharedResult run() {
    constexpr double least = 4.0 * mib;
    if (share_ < least) {
      const double needed = team_.size() * (least * writes_ + files * file_.value()) / kept;
      result_.why_not =
          fmt::format("a write budget of {} is too small for {} clients; give at least {}",
                      to_text(plan_.budget), team_.size(), to_text(Bytes(needed)));
      return std::move(result_);
    }
    if (prepare()) take_passes();
    if (!failure_.empty() && !is_interrupted_) result_.why_not = failure_;
    result_.all.is_complete = !is_interrupted_;
    return std::move(result_);
  }

 private:
  // All ranks know afterwards whether it went well everywhere.
  template <class Work>
  Told together(bool takes_part, Work&& work) {
    std::string failure;
    Moved moved;
    team_.barrier();
    if (takes_part) {
      try {
        moved = work();
      } catch (const rig::Interrupted&) {
        // Told by the flag below.
      } catch (const std::exception& error) {
        failure = error.what();
      }
    }
    std::ranges::replace(failure, '\n', ' ');
    team_.barrier();  // asleep until the slowest is there
    Told told = sum_of(team_.gather(to_line(moved, failure)));
    const std::string total = team_.broadcast(to_line(told.all, told.failure));
    if (team_.rank() != 0) told = sum_of({total});
    is_interrupted_ = team_.any(rig::is_interrupted());
    failure_ = is_interrupted_ ? "interrupted" : told.failure;
    return told;
  }

  bool prepare() {
    tell_(fmt::format("preparing {}.shared on {} clients", plan_.path.name, team_.size()));
    const Told told = together(true, [&] {
      Setup setup;
      setup.file_size = file_;
      setup.write_budget = Bytes(plan_.budget.value() / team_.size());
      setup.seed = seed_of(team_.rank());
      target_.emplace(plan_.path, setup, 1);
      target_->prepare();
      offered_.emplace(*target_, offered_size());
      return Moved{0, target_->write_rate().value(), 1, true};
    });
    names_ = names_of_all();
    fastest_ = std::strtod(
        team_
            .broadcast(fmt::format("{:.17g}",
                                   team_.rank() == 0 ? std::ranges::max(told.written_rates) : 0))
            .c_str(),
        nullptr);
    return failure_.empty();
  }

  std::uint64_t seed_of(std::int32_t rank) const {
    return plan_.seed + static_cast<std::uint64_t>(rank);
  }
  std::int64_t offered_size() const {
    return static_cast<std::int64_t>(file_.value()) / 2 / block * block;
  }

  // Of the files that are offered, by rank.
  std::vector<std::string> names_of_all() {
    std::string all;
    for (const std::string& name : team_.gather(offered_ ? offered_->name() : "-")) {
      all += name + "\n";
    }
    std::istringstream lines(team_.broadcast(all));
    std::vector<std::string> names;
    for (std::string name; std::getline(lines, name);) names.push_back(name);
    return names;
  }

  // Opens the file of another client, of the next one in every pass.
  Moved open_neighbour(std::int32_t pass) {
    const std::int32_t others = team_.size() - 1;
    const std::int32_t whose = (team_.rank() + 1 + pass % others) % team_.size();
    neighbour_.emplace(plan_.path, names_[static_cast<std::size_t>(whose)], offered_size(),
                       seed_of(whose));
    return {};
  }

  void take_passes() {
    for (std::int32_t pass = 0; pass < plan_.passes && failure_.empty(); ++pass) {
      for (const std::int32_t n : counts_) {
        for (const char* kind : {"read", "write"}) {
          if (failure_.empty()) take_block({kind, 0, n}, pass);
        }
      }
      if (failure_.empty()) together(true, [&] { return open_neighbour(pass); });
      if (failure_.empty()) take_block({"read_other", 0, team_.size()}, pass);
      for (const double cap : caps) {
        if (failure_.empty()) take_block({"mixed", cap, team_.size()}, pass);
      }
    }
  }

  void take_block(const Step& step, std::int32_t pass) {
    tell_(fmt::format("{}.shared.{} by {} clients, pass {} of {}", plan_.path.name, step.kind,
                      step.clients, pass + 1, plan_.passes));
    const bool takes_part = (team_.rank() + pass) % team_.size() < step.clients;
    for (std::int32_t i = 0; i <= plan_.samples && failure_.empty(); ++i) {
      const Told told = together(takes_part, [&] { return take(step); });
      if (failure_.empty() && i > 0) add(step, pass, told);
    }
  }

  // As long as the fastest takes for its share of the budget.
  Seconds time_of(const Step& step) const {
    const double rate = (step.is_mixed() ? step.cap : 1) * fastest_;
    const bool writes = step.is_mixed() || step.kind == std::string_view("write");
    return writes && rate > 0 ? std::min(plan_.sample, Seconds(share_ / rate)) : plan_.sample;
  }

  Moved take(const Step& step) {
    StreamPlan read{.direction = Direction::read,
                    .block = block,
                    .depth = depth,
                    .most_time = time_of(step),
                    .forgets_cache = !step.is_mixed()};
    StreamPlan write = read;
    write.direction = Direction::write;
    write.most_bytes = static_cast<std::int64_t>(share_) / block * block;
    write.flushes = target_->access() == rig::Access::buffered;
    if (step.kind == std::string_view("read_other")) {
      const StreamResult r = neighbour_->read(read);
      return {static_cast<double>(r.bytes), 0, r.elapsed.value(), r.wrong_blocks == 0};
    }
    if (!step.is_mixed()) {
      const bool reads = step.kind == std::string_view("read");
      const StreamResult r = stream(*target_, reads ? read : write);
      const auto bytes = static_cast<double>(r.bytes);
      return {reads ? bytes : 0, reads ? 0 : bytes, r.elapsed.value(), r.wrong_blocks == 0};
    }
    write.rate = step.cap * target_->write_rate();
    target_->forget_cache();
    std::array<Target*, 2> both = {&*target_, &*target_};
    const std::array<StreamPlan, 2> plans = {read, write};
    const auto results = streams(both, plans);
    return {static_cast<double>(results[0].bytes), static_cast<double>(results[1].bytes),
            std::max(results[0].elapsed, results[1].elapsed).value(), results[0].wrong_blocks == 0};
  }

  void add(const Step& step, std::int32_t pass, const Told& told) {
    const auto one = [&](const char* kind, double bytes, const std::vector<double>& rates) {
      Row row{.quantity = fmt::format("{}.shared.{}", plan_.path.name, kind),
              .at = {{"block", static_cast<double>(block)}, {"depth", static_cast<double>(depth)}},
              .unit = Unit::bytes_per_second,
              .gate = Gate::none};
      if (step.is_mixed()) row.at.emplace_back("write_cap", step.cap);
      if (target_->access() == rig::Access::buffered) row.at.emplace_back("buffered", 1);
      row.at.emplace_back("clients", step.clients);
      const bool has_all = step.clients == team_.size();
      add_to(result_.all, row, pass, bytes / told.all.seconds, told, has_all ? rates : Rates{});
      for (std::size_t c = 0; c < result_.clients.size() && has_all; ++c) {
        add_to(result_.clients[c], row, pass, rates[c], told, {});
      }
    };
    if (step.is_mixed()) {
      one("mixed_read", told.all.read, told.read_rates);
      one("mixed_write", told.all.written, told.written_rates);
    } else if (step.kind != std::string_view("write")) {
      one(step.kind, told.all.read, told.read_rates);
    } else {
      one("write", told.all.written, told.written_rates);
    }
  }

  using Rates = std::vector<double>;
  static void add_to(Measurements& m, const Row& row, std::int32_t pass, double value,
                     const Told& told, const Rates& series) {
    const std::string id = row.id();
    auto at = std::ranges::find_if(m.rows, [&id](const RowResult& r) { return r.row.id() == id; });
    if (at == m.rows.end()) at = m.rows.insert(m.rows.end(), RowResult{row, {}, {}});
    if (at->blocks.empty() || at->blocks.back().pass != pass) {
      at->blocks.push_back({.pass = pass, .is_converged = true, .samples = {}});
    }
    at->blocks.back().samples.push_back(
        {.value = value, .at = 0, .elapsed = told.all.seconds, .spoiled = {}, .series = series});
    if (!told.all.is_verified && at->faults.empty()) {
      at->faults.emplace_back("contents or checksum differ from what they must be");
    }
    ++m.accepted;
  }

  Team& team_;
  const SharedPlan& plan_;
  const std::function<void(const std::string&)>& tell_;
  std::vector<std::int32_t> counts_;
  Bytes file_;
  double writes_ = 0;   // samples of a client that write
  double share_ = 0;    // bytes that one of them writes
  double fastest_ = 0;  // rate of the fastest client while all write
  std::optional<Target> target_;
  std::optional<OfferedFile> offered_;
  std::optional<NeighbourFile> neighbour_;
  std::vector<std::string> names_;
  std::string failure_;
  bool is_interrupted_ = false;
  SharedResult result_;
};

}  // namespace

std::vector<std::int32_t> client_counts(std::int32_t all) {
  std::vector<std::int32_t> counts;
  for (std::int32_t n = 1; n < all; n *= 2) counts.push_back(n);
  counts.push_back(all);
  return counts;
}

SharedResult measure_shared(Team& team, const SharedPlan& plan,
                            const std::function<void(const std::string&)>& tell) {
  return SharedRun(team, plan, tell).run();
}

}  // namespace tidegate::calib
