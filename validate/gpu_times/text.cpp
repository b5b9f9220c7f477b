#include <cmath>

#include <fmt/core.h>

#include "sim/report/words.hpp"
#include "validate/gpu_times/factors.hpp"

namespace tidegate {
namespace {

std::string class_note(const ClassFit& c) {
  std::string text =
      fmt::format("{}: {} in the trace, {} by the profile, {:.2f} of it", name_of(c.kind),
                  to_text(Seconds(c.measured)), to_text(Seconds(c.predicted)), c.factor());
  if (c.by_phase[0] > 0 && c.by_phase[1] > 0)
    text += fmt::format(" (forward {:.2f}, backward {:.2f})", c.by_phase[0], c.by_phase[1]);
  // Where the curve ends at 1, a shorter time cannot be reached.
  if (c.measured > 0 && std::abs(c.reached / c.measured - 1) > 0.01)
    text += fmt::format("; at full efficiency they take {}, and are predicted so",
                        to_text(Seconds(c.reached)));
  return text;
}

std::string held_out_note(const HeldOut& h) {
  std::string text = "held out: ";
  if (h.steps > 0) {
    text += fmt::format(
        "kernel time of each of {} steps from the others, {:.1f} % off on average, "
        "{:.1f} % at worst",
        h.steps, 100 * h.mean, 100 * h.worst);
  } else {
    text += "nothing in time, the trace has one step";
  }
  if (h.has_phases)
    text += fmt::format("; backward's kernels from forward's factors {:+.1f} %", 100 * h.backward);
  return text;
}

}  // namespace

std::vector<std::string> notes_of(const GpuTimes& t) {
  std::vector<std::string> notes = {
      fmt::format("GPU operator times are those of {}: {} kernels of GPU {} in {} training step{}",
                  t.trace.file, t.trace.kernels, t.trace.device, t.trace.steps.size(),
                  t.trace.steps.size() == 1 ? "" : "s")};
  const double products = t.classes.front().factor();
  if (products > 0 && (products < 0.5 || products > 2))
    notes.back() +=
        "; matrix products are far from the profile's, is the trace of this network, "
        "micro-batch, sequence and accumulation?";
  if (t.trace.devices > 1)
    notes.back() += fmt::format(" (the busiest of {} GPUs)", t.trace.devices);
  for (const ClassFit& c : t.classes) {
    if (c.predicted > 0 || c.measured > 0) notes.push_back("GPU times, " + class_note(c));
  }
  notes.push_back("GPU times, " + held_out_note(t.held_out));
  if (t.collectives > 0 || t.copies > 0)
    notes.push_back(fmt::format(
        "GPU times, not used: collectives {} and copies {} of a step in the trace; those are the "
        "profile's",
        to_text(Seconds(t.collectives)), to_text(Seconds(t.copies))));
  if (!t.trace.has_phases)
    notes.push_back(
        "GPU times: the trace has no launches (profile CPU activities too), so that "
        "phases are not told apart");
  return notes;
}

}  // namespace tidegate
