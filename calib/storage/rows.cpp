#include "calib/storage/rows.hpp"

#include <algorithm>
#include <exception>
#include <thread>

#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

constexpr std::int64_t most_under_way = 256 * mib;

bool is_possible(const RowSetup& setup, const Setting& s) {
  const std::int64_t under_way = s.block * static_cast<std::int64_t>(s.depth);
  return under_way <= most_under_way && 4 * s.block <= setup.file_size &&
         s.depth <= setup.most_depth && s.files <= setup.files && s.files <= s.depth;
}

struct Axes {
  std::vector<std::int64_t> blocks;
  std::vector<std::size_t> depths, files;
};

// Four unknowns of queue_saturating (fit.hpp) ask for more than four settings.
Axes axes_of(Effort effort) {
  switch (effort) {
    case Effort::quick:
      return {{128 * kib, mib}, {1, 4, 16}, {1}};
    case Effort::standard:
      return {{128 * kib, 512 * kib, mib, 4 * mib}, {1, 2, 4, 8, 16, 32}, {1}};
    case Effort::full:
      return {{128 * kib, 512 * kib, mib, 4 * mib, 16 * mib}, {1, 2, 4, 8, 16, 32, 64}, {1, 2, 4}};
  }
  return {};
}

}  // namespace

std::int64_t bytes_of(const RowSetup& setup, double shares, std::int64_t block) {
  const auto bytes = static_cast<std::int64_t>(shares * static_cast<double>(setup.share));
  return std::max(bytes / mib * mib, block);
}

Row make_row(const RowSetup& setup, const std::string& quantity,
             std::vector<std::pair<std::string, double>> at, Unit unit) {
  if (setup.is_buffered) at.emplace_back("buffered", 1);
  Row row;
  row.quantity = setup.name + "." + quantity;
  row.at = std::move(at);
  row.unit = unit;
  row.gate = Gate::io;
  row.target = setup.target;
  row.device = setup.device;
  if (unit == Unit::bytes_per_second) {
    row.ceiling = setup.ceiling;
    row.ceiling_from = setup.ceiling_from;
  }
  return row;
}

std::vector<Setting> settings(const RowSetup& setup) {
  const Axes axes = axes_of(setup.effort);
  std::vector<Setting> all;
  for (const std::int64_t block : axes.blocks) {
    for (const std::size_t depth : axes.depths) {
      for (const std::size_t files : axes.files) {
        const Setting setting{block, depth, files};
        if (is_possible(setup, setting)) all.push_back(setting);
      }
    }
  }
  return all;
}

std::vector<Setting> write_settings(const RowSetup& setup) {
  std::vector<Setting> all = settings(setup);
  const bool is_quick = setup.effort == Effort::quick;
  std::erase_if(all, [is_quick](const Setting& s) {
    return is_quick ? s.depth == 4 : s.depth == 2 || s.depth == 8 || s.depth == 32;
  });
  return all;
}

std::vector<std::pair<std::string, double>> coordinates(const Setting& setting) {
  std::vector<std::pair<std::string, double>> at = {{"block", static_cast<double>(setting.block)},
                                                    {"depth", static_cast<double>(setting.depth)}};
  if (setting.files > 1) at.emplace_back("files", static_cast<double>(setting.files));
  return at;
}

Sample rate_sample(const StreamResult& result, Direction direction) {
  Sample sample;
  sample.value = result.rate();
  sample.elapsed = result.elapsed;
  (direction == Direction::read ? sample.read : sample.written) = result.bytes;
  sample.is_verified = result.wrong_blocks == 0;
  sample.series = result.series(10);
  return sample;
}

std::vector<StreamResult> streams(std::span<Target*> targets, std::span<const StreamPlan> plans) {
  ensure(targets.size() == plans.size(), "a plan for each stream");
  std::vector<StreamResult> results(plans.size());
  std::vector<std::exception_ptr> failures(plans.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        results[i] = stream(*targets[i], plans[i]);
      } catch (...) {  // carried to the caller's thread
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return results;
}

}  // namespace tidegate::calib
