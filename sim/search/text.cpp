#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "sim/search/explain.hpp"
#include "sim/search/grid.hpp"
#include "sim/search/pool.hpp"

namespace tidegate {
namespace {

constexpr double least_told = 0.005;  // of an iteration: what an explanation leaves out is less

std::string sets_text(const std::vector<Override>& sets) {
  std::string text;
  for (const auto& [key, value] : sets)
    text += (text.empty() ? "" : " ") + fmt::format("--set {}", shell_word(key + "=" + value));
  return text.empty() ? "as it is" : text;
}

std::string changes_text(std::size_t count) {
  if (count == 0) return "no change";
  return fmt::format("{} change{}", count, count == 1 ? "" : "s");
}

std::string speed_text(const Candidate& c) {
  return fmt::format("{} an iteration, {} tokens/s", to_text(c.trial->iteration_time),
                     number_text(c.trial->tokens_per_second));
}

std::string today_text(const TuneReport& r) {
  const Candidate& today = r.tuning.today;
  if (!today.trial) return "";
  const std::string trouble = trouble_of(today);
  const std::string text = "Today: " + speed_text(today);
  return trouble.empty() ? text + ".\n"
                         : text + fmt::format(", with enough memory: {}.\n", trouble);
}

std::string best_text(const TuneReport& r, std::size_t width) {
  const Tuning& t = r.tuning;
  if (!t.best) {
    const std::string why =
        t.is_interrupted ? "Nothing that fits was found before the search ended."
        : t.counts.open == 0
            ? "Nothing of this space fits: every combination was simulated or ruled out."
            : "Nothing that was simulated fits; some combinations are open.";
    return why + "\n";
  }
  std::string text = "Best:  " + speed_text(*t.best);
  if (t.best->changes.empty()) {
    text += ": as it is";
  } else if (t.today.trial && t.today.trial->fits) {
    const double change = t.best->trial->pace() / t.today.trial->pace() - 1;
    text += fmt::format(" (time {})", signed_percent(change));
  }
  text += ", " + changes_text(t.best->changes.size()) + ".";
  text = wrap(text, width, 7) + "\n";
  if (t.simplest && t.simplest->changes.size() < t.best->changes.size()) {
    text += wrap(fmt::format("       Within {:g} % of it, with {}: {}.", 100 * t.margin,
                             changes_text(t.simplest->changes.size()), speed_text(*t.simplest)),
                 width, 7) +
            "\n";
  }
  return text;
}

std::string command_text(const TuneReport& r) {
  const Tuning& t = r.tuning;
  if (!t.best || t.best->changes.empty()) return "";
  const auto command = [&](const Candidate& c) {
    std::string text = "  " + r.command;
    for (const auto& [key, value] : c.sets)
      text += " \\\n    --set " + shell_word(key + "=" + value);
    return text + "\n";
  };
  std::string text = "\nRun the best as it stands:\n" + command(*t.best);
  if (t.simplest && t.simplest->changes.size() < t.best->changes.size())
    text += "or what is within the margin with the fewest changes:\n" + command(*t.simplest);
  return text;
}

std::string shifts_text(const std::vector<Explanation::Shift>& shifts, Seconds least,
                        const char* words) {
  std::string text;
  std::size_t told = 0;
  for (const Explanation::Shift& s : shifts) {
    if (std::abs(s.change().value()) < least.value() || told++ == 4) continue;
    text += fmt::format("{}{}{} {} -> {}", text.empty() ? "" : ", ", s.name, words,
                        to_text(s.before), to_text(s.after));
  }
  return text;
}

std::string explanation_text(const Explanation& e, Seconds whole) {
  const Seconds least = whole * least_told;
  const std::string phases = shifts_text(e.phases, least, "");
  const std::string exposed = shifts_text(e.exposed, least, " exposed");
  std::string text = phases.empty() ? "phases as before" : phases;
  text += exposed.empty() ? "" : "; " + exposed;
  for (const Explanation::Shift& s : e.exposed) {
    if (s.before > least && s.after < least)
      text += fmt::format("; {} is no longer exposed", s.name);
  }
  return text;
}

std::string why_text(const TuneReport& r, std::size_t width) {
  if (r.why_best.empty() || r.tuning.best->changes.empty()) return "";
  const Seconds whole = r.tuning.today.trial->iteration_time;
  return "\n" + wrap("Why: " + explanation_text(r.why_best.front(), whole) + ".", width, 5) + "\n";
}

// What each change of the best gains, and what the other axes would not.
std::string effects_text(const TuneReport& r) {
  const Tuning& t = r.tuning;
  Table gains{.header = {"change", "without it"}, .rows = {}, .align = {}};
  Table idle{.header = {"not worth changing", "best other"}, .rows = {}, .align = {}};
  for (const Tuning::Effect& e : t.effects) {
    std::string change = signed_percent(e.change);
    if (!e.trouble.empty()) change = e.trouble.substr(0, e.trouble.find(';'));
    if (e.is_changed) {
      const bool is_idle = e.trouble.empty() && std::abs(e.change) < t.margin;
      gains.rows.push_back({e.axis, change + (is_idle ? "  not worth it by itself" : "")});
    } else {
      idle.rows.push_back({fmt::format("{} ({})", e.axis, e.sets), change});
    }
  }
  std::string text;
  gains.align = idle.align = {Align::left, Align::left};
  if (!gains.rows.empty()) text += "\n" + to_text(gains);
  if (!idle.rows.empty()) text += "\n" + to_text(idle);
  return text;
}

std::string runners_up_text(const TuneReport& r, std::size_t width) {
  const Tuning& t = r.tuning;
  if (t.runners_up.empty()) return "";
  std::string text = "\nRunners-up, of other choices:\n";
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < std::min(most, t.runners_up.size()); ++i) {
    const Candidate& c = t.runners_up[i];
    const double slower = c.trial->iteration_time / t.best->trial->iteration_time - 1;
    text += wrap(fmt::format("  {}. {} ({}{}): {}", i + 1, to_text(c.trial->iteration_time),
                             signed_percent(slower),
                             slower < t.margin ? ", not to be told apart from the best" : "",
                             sets_text(c.sets)),
                 width, 5) +
            "\n";
    if (i < r.why_runners_up.size()) {
      text += wrap("     against the best: " +
                       explanation_text(r.why_runners_up[i], t.best->trial->iteration_time),
                   width, 5) +
              "\n";
    }
  }
  return text;
}

std::string bound_text(const TuneReport& r, std::size_t width) {
  const Tuning& t = r.tuning;
  if (!t.best || r.is_grid) return "";
  std::string text;
  const Bound& own = t.best->screening.bound;
  if (t.is_proved) {
    text = "Proved: no configuration of this space is faster.";
  } else if (!t.is_interrupted) {
    text = fmt::format(
        "Not proved: {} choices have refinements that were not looked at and that bounds do not "
        "rule out; none of them can take less than {}, {} below the best.",
        t.counts.open, to_text(t.bound), percent_text(1 - t.bound / t.best->trial->iteration_time));
  }
  text += fmt::format("{}The best itself cannot take less than {} ({}).", text.empty() ? "" : " ",
                      to_text(own.time), own.limited_by);
  return "\n" + wrap(text, width) + "\n";
}

std::string counts_text(const TuneReport& r, std::size_t width) {
  const Tuning::Counts& n = r.tuning.counts;
  std::string text = fmt::format(
      "Looked at: {:.4g} combinations, of which {} are crossed choices: {} are no configurations, "
      "{} cannot fit, ",
      n.space, n.crossed, n.refused, n.cannot_fit);
  if (n.over_limits > 0) text += fmt::format("{} change more than allowed, ", n.over_limits);
  text +=
      fmt::format("{} cannot win, {} are open. {} screened, {} simulated{}, {} of them fit.",
                  n.cannot_win, n.open, n.screened, n.simulated,
                  n.resumed > 0 ? fmt::format(" ({} of them before)", n.resumed) : "", n.fitting);
  std::string all = "\n" + wrap(text, width) + "\n";
  std::vector<std::pair<std::size_t, std::string>> reasons;
  for (const auto& [reason, count] : r.tuning.refusals) reasons.emplace_back(count, reason);
  std::ranges::stable_sort(reasons, std::greater{}, &std::pair<std::size_t, std::string>::first);
  if (!reasons.empty()) {
    all += wrap(fmt::format("No configuration, most often ({} times): {}", reasons.front().first,
                            reasons.front().second),
                width, 2) +
           "\n";
  }
  return all;
}

}  // namespace

std::string signed_percent(double fraction) {
  const double percent = 100 * fraction;
  if (std::abs(percent) < 0.05) return "0 %";
  return fmt::format("{:+.1f} %", percent);
}

std::string to_text(const TuneReport& r, std::size_t width) {
  std::string text =
      wrap(fmt::format("{} · {} · {}", r.scenario, r.profile, r.revision), width) + "\n\n";
  if (r.tuning.is_interrupted) text += "Interrupted: the best so far.\n";
  if (r.is_grid) {
    return text + grid_text(r) + "\n" + best_text(r, width) + command_text(r) + grid_note(r, width);
  }
  text += today_text(r) + best_text(r, width) + why_text(r, width) + effects_text(r) +
          command_text(r) + runners_up_text(r, width) + bound_text(r, width) +
          counts_text(r, width);
  return text +
         wrap(fmt::format("Times that differ by less than {:g} % are not told apart.",
                          100 * r.tuning.margin),
              width) +
         "\n";
}

}  // namespace tidegate
