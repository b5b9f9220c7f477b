#include <algorithm>
#include <fstream>
#include <istream>
#include <map>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "models/base/error.hpp"
#include "validate/gpu_times/trace.hpp"

namespace tidegate {
namespace {

using Json = nlohmann::json;

// The fields of one event that matter.
struct Event {
  std::string category, name, phase;
  double at = 0, duration = 0;
  std::int64_t thread = 0, correlation = -1, device = 0;
};

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* word) { return text == word; });
}

// Names of categories: of today, and as PyTorch 1.8 to 1.11 wrote them.
class Events final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t v) override { return number(static_cast<double>(v)); }
  bool number_unsigned(number_unsigned_t v) override { return number(static_cast<double>(v)); }
  bool number_float(number_float_t v, const string_t&) override { return number(v); }
  bool string(string_t& v) override {
    if (depth_ != event_depth_) return true;
    if (key_ == "cat") event_.category = std::move(v);
    if (key_ == "name") event_.name = std::move(v);
    if (key_ == "ph") event_.phase = std::move(v);
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    if (events_depth_ > 0 && depth_ == events_depth_) event_ = {};
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (events_depth_ > 0 && depth_ == event_depth_) add();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0 || (depth_ == 1 && key_ == "traceEvents")) {
      events_depth_ = depth_ + 1;
      event_depth_ = depth_ + 2;
      has_events_ = true;
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (depth_ == events_depth_) events_depth_ = event_depth_ = -1;
    --depth_;
    return true;
  }
  bool key(string_t& v) override {
    if (depth_ == event_depth_) is_in_args_ = v == "args";
    key_ = std::move(v);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    problem_ = error.what();
    return false;
  }

  bool has_events() const { return has_events_; }
  std::size_t position() const { return position_; }
  const std::string& problem() const { return problem_; }
  TraceEvents take() {
    found_.autograd.assign(autograd_.begin(), autograd_.end());
    found_.elementwise_names.assign(names_.begin(), names_.end());
    std::ranges::sort(found_.elementwise_names, std::greater{},
                      &std::pair<std::string, double>::second);
    return std::move(found_);
  }

 private:
  bool number(double v) {
    if (depth_ == event_depth_) {
      if (key_ == "ts") event_.at = v;
      if (key_ == "dur") event_.duration = v;
      if (key_ == "tid") event_.thread = static_cast<std::int64_t>(v);
    } else if (is_in_args_ && depth_ == event_depth_ + 1) {
      if (key_ == "correlation") event_.correlation = static_cast<std::int64_t>(v);
      if (key_ == "device") event_.device = static_cast<std::int64_t>(v);
    }
    return true;
  }
  void add();
  void add_kernel(KernelClass kind);

  int depth_ = 0, events_depth_ = -1, event_depth_ = -1;
  bool is_in_args_ = false, has_events_ = false;
  std::string key_, problem_;
  std::size_t position_ = 0;
  Event event_;
  TraceEvents found_;
  std::set<std::int64_t> autograd_;
  std::map<std::string, double> names_;
};

void Events::add_kernel(KernelClass kind) {
  found_.kernels.push_back({event_.at, event_.duration, event_.correlation, event_.device, kind});
  if (kind == KernelClass::elementwise) names_[event_.name] += event_.duration;
}

void Events::add() {
  if (event_.phase != "X") return;
  const std::string& kind = event_.category;
  const double end = event_.at + event_.duration;
  if (is_one_of(kind, {"kernel", "Kernel"})) {
    add_kernel(class_of_kernel(event_.name));
  } else if (is_one_of(kind, {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"})) {
    add_kernel(KernelClass::copy);
  } else if (is_one_of(kind, {"cuda_runtime", "cuda_driver", "hip_runtime", "Runtime"})) {
    if (event_.correlation >= 0)
      found_.launches.push_back({event_.correlation, event_.thread, event_.at});
  } else if (event_.name.starts_with("ProfilerStep#")) {
    if (kind != "gpu_user_annotation") found_.steps.push_back({event_.at, end, event_.thread});
  } else if (event_.name.starts_with("Optimizer.step#")) {
    if (kind != "gpu_user_annotation") found_.updates.push_back({event_.at, end, event_.thread});
  } else if (event_.name.starts_with("autograd::engine::evaluate_function")) {
    autograd_.insert(event_.thread);
  }
}

Where place_of(std::istream& text, const std::string& name, std::size_t position) {
  text.clear();
  text.seekg(0);
  Where where{name, 1, 1};
  char c = 0;
  for (std::size_t i = 1; i < position && text.get(c); ++i) {
    where.column = c == '\n' ? 1 : where.column + 1;
    where.line += c == '\n' ? 1 : 0;
  }
  return where;
}

// "…: syntax error while parsing value - unexpected end of input; …": what stands behind the dash.
std::string reason_of(const std::string& problem) {
  const std::size_t dash = problem.find(" - ");
  return dash == std::string::npos ? problem : problem.substr(dash + 3);
}

}  // namespace

TraceEvents read_trace(std::istream& text, const std::string& name) {
  if (text.peek() == 0x1f)
    throw InputError({name, 0, 0}, "", "is compressed with gzip; unpack it first (gunzip)");
  Events events;
  if (!Json::sax_parse(text, &events)) {
    throw InputError(place_of(text, name, events.position()), "",
                     reason_of(events.problem()) +
                         "; give the JSON that export_chrome_trace of torch.profiler wrote");
  }
  if (!events.has_events())
    throw InputError({name, 1, 1}, "traceEvents",
                     "is missing; give the JSON that export_chrome_trace of torch.profiler wrote");
  return events.take();
}

TraceEvents load_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError({path, 0, 0}, "", "cannot be read; give a trace");
  return read_trace(file, path);
}

}  // namespace tidegate
