#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "calib/run/run.hpp"

namespace tidegate::calib {

std::string dry_run_text(const RunOptions& options) {
  const Setup setup = make_setup(options);
  const Selected selected = select(options, setup);
  const Protocol protocol = protocol_of(options, setup);
  std::size_t rows = 0;
  double seconds = 0;
  std::string text = "Would measure, writing nothing now:\n";
  for (std::size_t b = 0; b < selected.benches.size(); ++b) {
    const std::vector<Row> own = selected.benches[b]->rows();
    double each = 0;
    for (const Row& row : own) {
      // A warm-up, then samples until the block's time is over.
      const double samples = 1 + std::ceil(protocol.block / row.target);
      each += samples * row.target.value() * protocol.passes;
    }
    rows += own.size();
    seconds += each;
    text += fmt::format("  {:28} {:3} settings x {} passes, about {:.0f} s\n", selected.names[b],
                        own.size(), protocol.passes, each);
  }
  text +=
      fmt::format("{} settings, at most about {:.0f} min; blocks that settle early take less.\n\n",
                  rows, std::max(1.0, seconds / 60));
  for (const StorageTarget& target : setup.storage) {
    const double drive_writes = setup.write_budget / target.facts.total;
    text += fmt::format(
        "{} = {} ({}{}{}): one file of {} without a name, at most {} written in all, {:.2g} % of a "
        "drive-write; {} available\n",
        target.name, target.folder, target.facts.type, target.facts.device.empty() ? "" : " on ",
        target.facts.device, to_text(setup.file_size), to_text(setup.write_budget),
        100 * drive_writes, to_text(target.facts.available));
  }
  if (setup.storage.empty()) text += "No --storage DIR: no drive would be measured.\n";
  text += fmt::format("Result: {} and its samples beside it.\n", options.out);
  for (const auto& [name, why] : selected.not_measured) {
    text += fmt::format("Not measured: {}: {}\n", name, why);
  }
  return text;
}

}  // namespace tidegate::calib
