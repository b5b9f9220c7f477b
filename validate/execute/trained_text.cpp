#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/report/table.hpp"
#include "validate/execute/trained_scenario.hpp"

namespace tidegate {
namespace {

std::string verdict_text(const TrainedScenario& t) {
  if (t.is_same()) {
    return fmt::format(
        "Equal: all losses of {} steps, and all {} parameters and moments after the last, have the "
        "bits of training without offload.\n",
        t.losses.size(), t.numbers);
  }
  return fmt::format(
      "NOT equal to training without offload: {} losses of micro-steps and {} of {} parameters and "
      "moments have other bits.\n",
      t.other_losses, t.other_numbers, t.numbers);
}

std::string losses_text(const TrainedScenario& t) {
  constexpr std::size_t ends = 5;  // shown of a long run: so many first and last steps
  Table table{.header = {"step", "loss", "without offload"}, .rows = {}, .align = {}};
  for (std::size_t s = 0; s < t.losses.size(); ++s) {
    if (s == ends && t.losses.size() > 2 * ends) {
      table.rows.push_back({"…"});
      s = t.losses.size() - ends;
    }
    table.rows.push_back({std::to_string(t.first_step + static_cast<std::int64_t>(s) + 1),
                          fmt::format("{:.6f}", t.losses[s]), fmt::format("{:.6f}", t.alone[s])});
  }
  return to_text(table);
}

std::string kinds_text(const TrainedScenario& t) {
  constexpr std::size_t most_rows = 12;
  Table table{.header = {"tasks of a step, sums", "predicted", "measured", "tasks"},
              .rows = {},
              .align = {}};
  for (const Group& g : t.kinds) {
    if (table.rows.size() == most_rows) break;
    table.rows.push_back(
        {g.name, to_text(g.time.predicted), to_text(g.time.measured), std::to_string(g.tasks)});
  }
  return to_text(table) +
         fmt::format(
             "Predicted: by the devices of the profile. Measured: here, where kernels are "
             "arithmetic in fp32 {} and copies carry what tasks mean, not what the profile's "
             "devices would do; validate run without --train compares rates.\n",
             t.place);
}

std::string as_text(const TrainedScenario& t) {
  if (t.ranks == 1) return "one rank";
  return fmt::format("{} ranks, each a {}", t.ranks,
                     t.are_processes ? "process" : "set of threads of one process");
}

}  // namespace

std::string to_text(const TrainedScenario& t) {
  std::string text =
      fmt::format("{}: {:.4g} M parameters trained under the plan of {}; {}\n\n", t.scenario,
                  static_cast<double>(t.parameters) / 1e6, t.policy, as_text(t));
  text += losses_text(t) + "\n" + verdict_text(t);
  text += fmt::format("Files: {} read, {} written, every page checked.\n",
                      to_text(Bytes(static_cast<double>(t.file_bytes_read))),
                      to_text(Bytes(static_cast<double>(t.file_bytes_written))));
  text += fmt::format("Matrices were multiplied {}; all else in fp32.\n", t.products);
  text += fmt::format(
      "A step took {} here, {} ({} without offload). On the devices of {} the plan's "
      "iteration is predicted to take {}: another machine, not to be compared unless its profile "
      "is "
      "of this one.\n",
      to_text(t.measured), t.place, to_text(t.alone_measured), t.profile, to_text(t.predicted));
  text += "\n" + kinds_text(t) + "\n";
  if (t.beside > 0) {
    text += fmt::format("{} of contents found no room in the buffers of the plan and lay beside.\n",
                        to_text(Bytes(static_cast<double>(t.beside))));
  }
  for (const std::string& path : t.checkpoints) text += "State written: " + path + "\n";
  return text;
}

std::string to_json(const TrainedScenario& t) {
  using nlohmann::ordered_json;
  ordered_json kinds = ordered_json::array();
  for (const Group& g : t.kinds) {
    kinds.push_back({{"name", g.name},
                     {"tasks", g.tasks},
                     {"predicted_s", g.time.predicted.value()},
                     {"measured_s", g.time.measured.value()}});
  }
  const ordered_json json{{"scenario", t.scenario},
                          {"policy", t.policy},
                          {"profile", t.profile},
                          {"ranks", t.ranks},
                          {"processes", t.are_processes},
                          {"parameters", t.parameters},
                          {"equal", t.is_same()},
                          {"other_losses", t.other_losses},
                          {"numbers", t.numbers},
                          {"other_numbers", t.other_numbers},
                          {"first_step", t.first_step},
                          {"losses", t.losses},
                          {"losses_without_offload", t.alone},
                          {"computed", t.place},
                          {"products", t.products},
                          {"step_s", t.measured.value()},
                          {"step_without_offload_s", t.alone_measured.value()},
                          {"predicted_iteration_s", t.predicted.value()},
                          {"tasks", std::move(kinds)},
                          {"file_bytes_read", t.file_bytes_read},
                          {"file_bytes_written", t.file_bytes_written},
                          {"bytes_beside_buffers", t.beside},
                          {"checkpoints", t.checkpoints}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate
