#include "validate/execute/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "calib/rig/file.hpp"
#include "models/base/error.hpp"
#include "models/base/files.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "files are little endian");

constexpr const char* format = "tidegate training state 1";
constexpr std::string_view ending = ".state";

// FNV-1a of 64 bits (Fowler, Noll and Vo 1991).
std::uint64_t check_value(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::byte b : bytes)
    hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3ULL;
  return hash;
}
std::uint64_t check_value(const train::Values& values) {
  return check_value(std::as_bytes(std::span(values)));
}

template <class States, class Visit>
void each(States& state, Visit visit) {
  for (std::size_t l = 0; l < state.master.size(); ++l) {
    for (std::size_t op = 0; op < state.master[l].size(); ++op) {
      for (std::size_t i = 0; i < state.master[l][op].size(); ++i)
        visit(fmt::format("{}.{}.{}", l, op, i), state.master[l][op][i], state.first[l][op][i],
              state.second[l][op][i]);
    }
  }
}

std::string head_of(const train::State& state, const std::string& print) {
  std::string text = fmt::format("{}\nstep {}\n{}\n", format, state.step, print);
  each(state, [&](const std::string& name, const auto& master, const auto& m, const auto& v) {
    text += fmt::format("tensor {} {} {:016x} {:016x} {:016x}\n", name, master.size(),
                        check_value(master), check_value(m), check_value(v));
  });
  return text + fmt::format("lines {:016x}\n", check_value(std::as_bytes(std::span(text))));
}

// Of "step-00000012.state"; -1 of any other name.
std::int64_t step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view begin = "step-";
  if (!name.starts_with(begin) || !name.ends_with(ending)) return -1;
  const char* const last = name.data() + name.size() - ending.size();
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data() + begin.size(), last, step);
  return error == std::errc{} && end == last ? step : -1;
}

std::vector<fs::path> entries_of(const std::string& folder, std::error_code& error) {
  std::vector<fs::path> entries;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error))
    entries.push_back(at->path());
  return entries;
}

// The newest first.
std::vector<fs::path> states_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> states = entries_of(folder, error);
  if (error) throw InputError({folder}, "", "cannot be read: " + error.message());
  std::erase_if(states, [](const fs::path& path) { return step_of(path) < 0; });
  std::ranges::sort(states, std::greater<>{}, step_of);
  return states;
}

// Without its end. What is longer than any of ours is cut, and what follows is not read.
std::string next_line(std::istream& file) {
  std::array<char, 4096> text{};
  file.getline(text.data(), text.size());
  return text.data();
}

// "step-….state.PID.part" of a process that is no more.
bool is_left_behind(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t at = name.find(".state.");
  if (!name.starts_with("step-") || !name.ends_with(".part") || at == std::string::npos)
    return false;
  const int writer = std::atoi(name.c_str() + at + ending.size() + 1);
  return writer > 0 && kill(writer, 0) != 0 && errno == ESRCH;
}

// After a state of `step` was written.
void tidy(const std::string& folder, std::int64_t step) {
  std::error_code error;
  std::vector<fs::path> old, gone;
  for (const fs::path& path : entries_of(folder, error)) {
    if (is_left_behind(path)) gone.push_back(path);
    if (const std::int64_t its = step_of(path); its >= 0 && its < step) old.push_back(path);
  }
  std::ranges::sort(old, {}, step_of);
  if (!old.empty()) old.pop_back();  // the one before stays
  for (const auto* paths : {&old, &gone}) {
    for (const fs::path& path : *paths) fs::remove(path, error);
  }
}

class StateReader {
 public:
  StateReader(const std::string& path, const LayerGraph& graph)
      : path_(path), graph_(graph), file_(path, std::ios::binary) {
    if (!file_) throw InputError({path}, "", "cannot be read; give a file that --checkpoint wrote");
  }

  train::State read(const std::string& print) {
    expect(format, "is no training state of this version; give a file that --checkpoint wrote");
    const std::string step = line();
    if (!step.starts_with("step ")) damaged("the step is missing");
    const std::string of = line();
    if (of != print)
      fail(fmt::format("is of another training: '{}' where this run has '{}'", of, print));
    train::State state = train::initial_state(graph_, 0);
    state.step = std::atoll(step.c_str() + 5);
    each(state, [&](const std::string& name, auto& master, auto&, auto&) {
      tensors_.push_back(tensor(name, master.size()));
    });
    const std::string sum =
        fmt::format("lines {:016x}", check_value(std::as_bytes(std::span(read_))));
    expect(sum, std::string("is not what the lines above add up to; ") + remedy);
    std::size_t next = 0;
    each(state, [&](const std::string&, auto& master, auto& m, auto& v) {
      const Tensor& t = tensors_[next++];
      values(t, "parameters", t.sums[0], master);
      values(t, "first moment", t.sums[1], m);
      values(t, "second moment", t.sums[2], v);
    });
    if (file_.peek() != std::ifstream::traits_type::eof())
      throw InputError({path_}, "", fmt::format("goes on after byte {}; {}", at_, remedy));
    return state;
  }

 private:
  static constexpr const char* remedy = "it is damaged: take the one before, or start anew";
  struct Tensor {
    std::string name;
    std::uint64_t sums[3];
  };

  const std::string& path_;
  const LayerGraph& graph_;
  std::ifstream file_;
  std::string read_;
  int line_ = 0;
  std::int64_t at_ = 0;
  std::vector<Tensor> tensors_;

  std::string line() {
    std::string text = next_line(file_);
    ++line_;
    if (!text.starts_with("lines ")) read_ += text + "\n";
    at_ += static_cast<std::int64_t>(text.size()) + 1;
    return text;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError({path_, line_, 1}, "", what);
  }
  [[noreturn]] void damaged(const std::string& what) const { fail(what + "; " + remedy); }

  void expect(const std::string& wanted, const std::string& otherwise) {
    if (line() != wanted) fail(otherwise);
  }

  Tensor tensor(const std::string& name, std::size_t elements) {
    std::istringstream words(line());
    std::string tag, is_named;
    std::size_t count = 0;
    Tensor t{name, {}};
    words >> tag >> is_named >> count >> std::hex >> t.sums[0] >> t.sums[1] >> t.sums[2];
    if (!words || tag != "tensor" || is_named != name || count != elements)
      damaged(fmt::format("tensor {} of {} elements is missing", name, elements));
    return t;
  }

  void values(const Tensor& t, const char* what, std::uint64_t sum, train::Values& into) {
    const auto bytes = std::as_writable_bytes(std::span(into));
    const auto size = static_cast<std::streamsize>(bytes.size());
    file_.read(reinterpret_cast<char*>(bytes.data()), size);
    if (file_.gcount() != size)
      throw InputError({path_}, "",
                       fmt::format("ends at byte {} within the {} of tensor {}; {}",
                                   at_ + file_.gcount(), what, t.name, remedy));
    if (check_value(bytes) != sum)
      throw InputError({path_}, "",
                       fmt::format("bytes {} to {}, the {} of tensor {}, are not those that were "
                                   "written; {}",
                                   at_, at_ + size, what, t.name, remedy));
    at_ += size;
  }
};

}  // namespace

std::string fingerprint(const Workload& w, const LayerGraph& graph,
                        const train::TrainingOptions& options) {
  const cpu::AdamOptions& a = options.adam;
  std::string operators;
  for (const Layer& layer : graph.layers) {
    for (const Operator& op : layer.operators) {
      operators += op.name;
      for (const SavedTensor& t : op.saved)
        operators += fmt::format(" {} {}", t.name, t.bytes.value());
    }
  }
  const Network& n = w.network;
  const Update& u = options.update;
  std::string update;  // where it is not Adam's on masters
  if (u.rule == Update::Rule::sgd) update += ", SGD";
  if (!u.keeps_master) update += ", no masters";
  if (options.backend != nullptr)
    update +=
        ", computed " + options.backend->place() + ", " + options.backend->products_text(w.dtype);
  return fmt::format(
      "training of {} parameters in {}, operators {:016x}, activation {}, window {}, rotary {}: "
      "seed {}, {} ranks of {} micro-batches of {} sequences of {} tokens, gradients reduced every "
      "{}, Adam {} {} {} {} {}{}",
      graph.parameters, name_of(w.dtype), check_value(std::as_bytes(std::span(operators))),
      static_cast<int>(n.activation), n.sliding_window, n.rotary_fraction, options.seed,
      options.ranks, w.accumulation, w.micro_batch, w.sequence,
      options.reduces_every_micro_step ? "micro-step" : "step", a.rate, a.beta1, a.beta2, a.epsilon,
      a.decay, update);
}

void check_checkpoint_folder(const std::string& folder, const LayerGraph& graph,
                             const std::string& print) {
  rig::check_space(folder, Bytes(12.0 * static_cast<double>(graph.parameters)));
  const rig::ScratchFile writable(folder, rig::Access::buffered);
  for (const fs::path& path : states_in(folder)) {
    std::ifstream file(path, std::ios::binary);
    next_line(file), next_line(file);
    if (next_line(file) == print) continue;
    throw InputError(
        {folder}, "",
        fmt::format("has {}, which is no state of this training and would be replaced; "
                    "give --checkpoint a folder of its own",
                    path.filename().string()));
  }
}

std::string write_checkpoint(const std::string& folder, const train::State& state,
                             const std::string& print, const std::function<void()>& written) {
  const std::string head = head_of(state, print);
  double bytes = static_cast<double>(head.size());
  each(state, [&](const std::string&, const auto& master, const auto&, const auto&) {
    bytes += 12.0 * static_cast<double>(master.size());
  });
  rig::check_space(folder, Bytes(bytes));
  const std::string path =
      (fs::path(folder) / fmt::format("step-{:08}{}", state.step, ending)).string();
  const auto write = [&](std::ostream& out) {
    out << head;
    each(state, [&](const std::string&, const auto& master, const auto& m, const auto& v) {
      for (const train::Values* values : {&master, &m, &v}) {
        out.write(reinterpret_cast<const char*>(values->data()),
                  static_cast<std::streamsize>(4 * values->size()));
      }
      if (written) written();
    });
  };
  write_atomically(path, write, Durability::now);
  tidy(folder, state.step);
  return path;
}

train::State read_checkpoint(const std::string& path, const LayerGraph& graph,
                             const std::string& print) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return StateReader(path, graph).read(print);
  const std::vector<fs::path> states = states_in(path);
  if (states.empty())
    throw InputError({path}, "",
                     "has no training state (step-….state); give --resume a folder in "
                     "which --checkpoint wrote one");
  return StateReader(states.front().string(), graph).read(print);
}

}  // namespace tidegate
