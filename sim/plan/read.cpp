#include <charconv>
#include <limits>
#include <sstream>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/plan/plan_text.hpp"

namespace tidegate {
namespace {

using namespace plan_text;

// The words of one line, with its place for errors.
class Line {
 public:
  Line(std::string_view text, const std::string& file, int number)
      : text_(text), file_(file), number_(number) {}

  [[noreturn]] void fail(const std::string& problem) const {
    throw InputError({file_, number_, static_cast<int>(begin_) + 1}, "", problem);
  }
  bool at_end() {
    const std::size_t next = text_.find_first_not_of(' ', at_);
    return next == std::string_view::npos || text_[next] == '#';
  }
  std::string_view word(const char* what) {
    if (at_end()) begin_ = text_.size(), fail(fmt::format("the line ends; expected {}", what));
    begin_ = text_.find_first_not_of(' ', at_);
    at_ = std::min(text_.find(' ', begin_), text_.size());
    return text_.substr(begin_, at_ - begin_);
  }
  void expect(const char* keyword) {
    const std::string_view w = word(keyword);
    if (w != keyword) fail(fmt::format("'{}' where '{}' belongs", w, keyword));
  }
  /// A whole number in [least, most].
  template <class T>
  T number(const char* what, T least, T most) {
    return number_in(word(what), what, least, most);
  }
  template <class T>
  T number_in(std::string_view w, const char* what, T least, T most) const {
    T v{};
    const auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), v);
    if (error != std::errc() || end != w.data() + w.size())
      fail(fmt::format("'{}' is not {}", w, what));
    if (!(v >= least && v <= most))
      fail(fmt::format("{} is not {}; it lies in {} … {}", v, what, least, most));
    return v;
  }
  /// A number of one of `count` things.
  template <class Id>
  Id id(const char* what, std::size_t count) {
    return id_in<Id>(word(what), what, count);
  }
  template <class Id>
  Id id_in(std::string_view w, const char* what, std::size_t count) const {
    const auto v = number_in<std::size_t>(w, what, 0, std::numeric_limits<std::size_t>::max());
    if (v >= count) fail(fmt::format("there is no {} {}; {} are named above", what, v, count));
    return static_cast<Id>(v);
  }
  template <class Names>
  std::size_t choice(const char* what, const Names& names) {
    return choice_in(word(what), what, names);
  }
  template <class Names>
  std::size_t choice_in(std::string_view w, const char* what, const Names& names) const {
    std::string all;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (w == names[i]) return i;
      all += (i > 0 ? ", " : "") + std::string(names[i]);
    }
    fail(fmt::format("'{}' is not {}; one of: {}", w, what, all));
  }
  Phase phase() {
    std::array<const char*, phase_count> names{};
    for (std::size_t i = 0; i < phase_count; ++i) names[i] = name_of(phases[i]);
    return phases[choice("a phase", names)];
  }
  /// The rest of the line after one space; names keep their spaces and signs.
  std::string rest() {
    begin_ = std::min(at_ + 1, text_.size());
    at_ = text_.size();
    return std::string(text_.substr(begin_));
  }
  void end() {
    if (!at_end()) word(""), fail("more words than the line needs");
  }

 private:
  std::string_view text_;
  const std::string& file_;
  int number_;
  std::size_t at_ = 0, begin_ = 0;
};

template <class T>
constexpr T largest = std::numeric_limits<T>::max();

class PlanReader {
 public:
  void read(Line& line) {
    using Read = void (PlanReader::*)(Line&);
    static constexpr std::array words = {"iterations", "ranks", "lane",  "pool", "owner",
                                         "tokens",     "lock",  "name",  "work", "task",
                                         "buffer",     "mark",  "choice"};
    static constexpr std::array<Read, words.size()> reads = {
        &PlanReader::iterations, &PlanReader::ranks,  &PlanReader::lane,   &PlanReader::pool,
        &PlanReader::owner,      &PlanReader::tokens, &PlanReader::lock,   &PlanReader::name,
        &PlanReader::work,       &PlanReader::task,   &PlanReader::buffer, &PlanReader::mark,
        &PlanReader::choice};
    (this->*reads[line.choice("a kind of line", words)])(line);
    line.end();
  }
  /// `after` and choices may name tasks below, so that they are checked at the end.
  Plan finish(const std::string& file) {
    for (const auto& [task, line, purpose] : forward_) {
      if (index(task) < plan_.size()) continue;
      throw InputError({file, line, 1}, "",
                       fmt::format("there is no task {} to {}", index(task), purpose));
    }
    return std::move(plan_);
  }
  void set_line(int number) { line_number_ = number; }

 private:
  Plan plan_;
  int line_number_ = 0;
  struct Forward {
    TaskId task{};
    int line = 0;
    const char* purpose = "";
  };
  std::vector<Forward> forward_;

  void iterations(Line& l) {
    plan_.iterations = l.number<std::int32_t>("a count", 0, largest<std::int32_t>);
  }
  void ranks(Line& l) { plan_.ranks = l.number<std::int32_t>("a count", 0, largest<std::int32_t>); }
  void lane(Line& l) {
    const auto rank = l.number<std::uint16_t>("a rank", 0, largest<std::uint16_t>);
    const auto width = l.number<std::uint16_t>("a width", 1, largest<std::uint16_t>);
    plan_.lanes.push_back({l.rest(), rank, width});
  }
  void pool(Line& l) {
    const auto tier = static_cast<Tier>(l.choice("a tier", tier_names));
    const auto place = l.number<std::uint16_t>("an index", 0, largest<std::uint16_t>);
    const auto bytes = l.number<double>("a capacity", 0, std::numeric_limits<double>::infinity());
    plan_.pools.push_back({l.rest(), {tier, place}, Bytes(bytes)});
  }
  void owner(Line& l) { plan_.owners.push_back(l.rest()); }
  void tokens(Line& l) {
    const auto count = l.number<std::int32_t>("a count", 0, largest<std::int32_t>);
    plan_.tokens.push_back({l.rest(), count});
  }
  void lock(Line& l) { plan_.locks.push_back({l.rest()}); }
  void name(Line& l) { plan_.names.push_back(l.rest()); }
  void work(Line& l) {
    try {
      plan_.works.push_back(decode_work(l.rest()));
    } catch (const InputError& error) {
      l.fail(error.what());
    }
  }
  void buffer(Line& l) {
    const auto bytes = l.number<std::int64_t>("a size", 0, largest<std::int64_t>);
    const auto pool = l.id<PoolId>("pool", plan_.pools.size());
    plan_.buffers.push_back({bytes, pool, l.id<OwnerId>("owner", plan_.owners.size())});
  }
  void choice(Line& l) {
    const auto rule = static_cast<Choice::Rule>(l.choice("a rule", rule_names));
    plan_.choices.push_back({l.id<TaskId>("task", largest<std::uint32_t>), rule});
    forward_.push_back({plan_.choices.back().watched, line_number_, "watch"});
  }
  // "no:3"
  When when(const Line& l, std::string_view w) const {
    const std::size_t colon = std::min(w.find(':'), w.size());
    if (colon == w.size()) l.fail(fmt::format("'{}' is not a condition like no:3", w));
    const std::size_t outcome = l.choice_in(w.substr(0, colon), "an outcome", outcome_names);
    const auto choice = l.id_in<ChoiceId>(w.substr(colon + 1), "choice", plan_.choices.size());
    return outcome == 1 ? When::yes(choice) : When::no(choice);
  }
  void task(Line& l) {
    if (l.number<std::size_t>("a task number", 0, largest<std::uint32_t>) != plan_.size()) {
      l.fail(fmt::format("task {} belongs here", plan_.size()));
    }
    Task t;
    t.first_after = static_cast<std::uint32_t>(plan_.after_list.size());
    t.first_effect = static_cast<std::uint32_t>(plan_.effect_list.size());
    l.expect("name"), t.name = l.id<NameId>("name", plan_.names.size());
    l.expect("item"), t.item = l.number<std::int32_t>("an item", -1, largest<std::int32_t>);
    l.expect("work"), t.work = l.id<WorkId>("work", plan_.works.size());
    l.expect("lane"), t.lane = l.id<LaneId>("lane", plan_.lanes.size());
    l.expect("rank"), t.rank = l.number<std::uint16_t>("a rank", 0, largest<std::uint16_t>);
    l.expect("iteration"),
        t.iteration = l.number<std::uint16_t>("an iteration", 0, largest<std::uint16_t>);
    l.expect("phase"), t.phase = l.phase();
    plan_.tasks.push_back(t);
    rows(l);
  }
  void rows(Line& l) {
    enum class Row { none, when, after, effects } row = Row::none;
    while (!l.at_end()) {
      const std::string_view w = l.word("more");
      if (w == "when" && row == Row::none) {
        row = Row::when;
        plan_.tasks.back().when = when(l, l.word("a condition"));
      } else if (w == "after" && row < Row::after) {
        row = Row::after;
      } else if (w == "does" && row != Row::effects) {
        row = Row::effects;
      } else if (row == Row::effects) {
        effect(l, w);
      } else if (row == Row::after) {
        plan_.after_list.push_back(l.id_in<TaskId>(w, "task", largest<std::uint32_t>));
        forward_.push_back({plan_.after_list.back(), line_number_, "come after"});
      } else {
        l.fail(fmt::format("'{}' where 'when', 'after' or 'does' belongs", w));
      }
    }
  }
  struct Target {
    const char* what;
    std::size_t count;
  };
  Target target_of(Effect::Kind kind) const {
    switch (kind) {
      case Effect::Kind::allocate:
      case Effect::Kind::free:
        return {"buffer", plan_.buffers.size()};
      case Effect::Kind::acquire:
      case Effect::Kind::release:
        return {"tokens", plan_.tokens.size()};
      case Effect::Kind::lock:
        return {"lock", plan_.locks.size()};
      case Effect::Kind::decide:
        return {"choice", plan_.choices.size()};
    }
    return {"", 0};
  }
  // "acquire:1*2?no:3"
  void effect(Line& l, std::string_view text) {
    const std::size_t query = std::min(text.find('?'), text.size());
    const std::string_view w = text.substr(0, query);
    const std::size_t colon = w.find(':'), star = w.find('*');
    if (colon == std::string_view::npos)
      l.fail(fmt::format("'{}' is not an effect like free:3", w));
    const auto kind =
        static_cast<Effect::Kind>(l.choice_in(w.substr(0, colon), "an effect", effect_names));
    const auto [what, count] = target_of(kind);
    const std::size_t target_end = std::min(star, w.size());
    const auto target =
        l.id_in<std::uint32_t>(w.substr(colon + 1, target_end - colon - 1), what, count);
    std::int32_t tokens = 0;
    if (star != std::string_view::npos) {
      tokens = l.number_in<std::int32_t>(w.substr(star + 1), "a count", -largest<std::int32_t>,
                                         largest<std::int32_t>);
    }
    const When condition = query < text.size() ? when(l, text.substr(query + 1)) : When{};
    plan_.effect_list.push_back({target, tokens, condition, kind});
  }
  void mark(Line& l) {
    Mark m;
    m.task = l.id<TaskId>("task", plan_.size());
    l.expect("iteration"),
        m.iteration = l.number<std::uint16_t>("an iteration", 0, largest<std::uint16_t>);
    l.expect("rank"), m.rank = l.number<std::uint16_t>("a rank", 0, largest<std::uint16_t>);
    l.expect("phase"), m.phase = l.phase();
    plan_.marks.push_back(m);
  }
};

}  // namespace

Plan read_plan(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  std::string line;
  PlanReader reader;
  for (int number = 1; std::getline(in, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    Line words(line, name, number);
    if (number == 1) {
      if (line != heading) words.fail(fmt::format("a plan begins with '{}'", heading));
      continue;
    }
    if (words.at_end()) continue;
    reader.set_line(number);
    reader.read(words);
  }
  if (text.empty())
    throw InputError({name, 1, 1}, "", fmt::format("a plan begins with '{}'", heading));
  return reader.finish(name);
}

}  // namespace tidegate
