#include "models/work.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <sstream>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// 64-bit mixing of the fields, in order (splitmix64's finaliser).
class Hash {
 public:
  Hash& operator<<(std::uint64_t v) {
    std::uint64_t z = state_ + 0x9e3779b97f4a7c15u + v;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    state_ = z ^ (z >> 31);
    return *this;
  }
  Hash& operator<<(std::int64_t v) { return *this << static_cast<std::uint64_t>(v); }
  Hash& operator<<(std::int32_t v) { return *this << static_cast<std::int64_t>(v); }
  Hash& operator<<(std::uint16_t v) { return *this << static_cast<std::uint64_t>(v); }
  Hash& operator<<(double v) { return *this << std::bit_cast<std::uint64_t>(v); }
  Hash& operator<<(bool v) { return *this << std::uint64_t{v}; }
  template <int B, int F, int S>
  Hash& operator<<(Quantity<B, F, S> v) {
    return *this << v.value();
  }
  template <class E>
    requires std::is_enum_v<E>
  Hash& operator<<(E e) {
    return *this << static_cast<std::uint64_t>(e);
  }
  Hash& operator<<(Place p) { return *this << p.tier << p.index; }
  std::size_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

// Fields of each kind in a fixed order; `visit` is called with a reference to each.
// One list serves hashing, dumping and reading.
template <class W, class V>
void fields(W& w, V&& visit) {
  using T = std::remove_const_t<W>;
  if constexpr (std::is_same_v<T, Delay>) {
    visit(w.duration);
  } else if constexpr (std::is_same_v<T, Gemm>) {
    visit(w.m), visit(w.n), visit(w.k), visit(w.batch), visit(w.dtype);
  } else if constexpr (std::is_same_v<T, Attention>) {
    visit(w.batch), visit(w.heads), visit(w.kv_heads), visit(w.queries), visit(w.keys);
    visit(w.head_dim), visit(w.causal), visit(w.backward), visit(w.dtype);
  } else if constexpr (std::is_same_v<T, Elementwise>) {
    visit(w.bytes), visit(w.launches);
  } else if constexpr (std::is_same_v<T, Copy>) {
    visit(w.from.tier), visit(w.from.index), visit(w.to.tier), visit(w.to.index);
    visit(w.bytes), visit(w.pinning);
  } else if constexpr (std::is_same_v<T, FileIo>) {
    visit(w.direction), visit(w.path), visit(w.memory.tier), visit(w.memory.index), visit(w.bytes);
    visit(w.block), visit(w.queue_depth), visit(w.threads);
  } else if constexpr (std::is_same_v<T, AdamStep>) {
    visit(w.rank), visit(w.parameters), visit(w.gradient);
  } else if constexpr (std::is_same_v<T, Cast>) {
    visit(w.rank), visit(w.elements), visit(w.from), visit(w.to);
  } else if constexpr (std::is_same_v<T, Collective>) {
    visit(w.kind), visit(w.bytes), visit(w.ranks), visit(w.first_gpu), visit(w.gpus);
    visit(w.stride), visit(w.per_node);
  } else {
    static_assert(std::is_same_v<T, Compute>);
    visit(w.gpu);
  }
}

constexpr std::array work_names = {"delay", "compute", "copy",      "file",
                                   "adam",  "cast",    "collective"};
constexpr std::array kernel_names = {"gemm", "attention", "elementwise"};
static_assert(work_names.size() == std::variant_size_v<Work>);
static_assert(kernel_names.size() == std::variant_size_v<Kernel>);

class Writer {
 public:
  template <class T>
  void operator()(const T& field) {
    text_ += ' ';
    if constexpr (std::is_enum_v<T>) {
      text_ += std::to_string(static_cast<int>(field));
    } else if constexpr (std::is_arithmetic_v<T>) {
      text_ += fmt::format("{}", static_cast<std::int64_t>(field));
    } else {
      text_ += fmt::format("{}", field.value());  // shortest text that reads back equal
    }
  }
  std::string text_;
};

class Reader {
 public:
  explicit Reader(const std::string& text) : in_(text) {}
  std::string word() {
    std::string w;
    if (!(in_ >> w)) throw InputError("a work ends too early");
    return w;
  }
  template <class T>
  void operator()(T& field) {
    const std::string w = word();
    const char* const end = w.data() + w.size();
    if constexpr (std::is_enum_v<T> || std::is_arithmetic_v<T>) {
      std::int64_t v = 0;
      if (std::from_chars(w.data(), end, v).ptr != end)
        throw InputError("'" + w + "' is not a whole number");
      field = static_cast<T>(v);
    } else {
      double v = 0;
      if (std::from_chars(w.data(), end, v).ptr != end)
        throw InputError("'" + w + "' is not a number");
      field = T(v);
    }
  }
  bool at_end() { return (in_ >> std::ws).eof(); }

 private:
  std::istringstream in_;
};

template <class Variant, std::size_t... I>
bool make(Variant& v, const std::string& name, const char* const* names,
          std::index_sequence<I...>) {
  return ((name == names[I] ? (v.template emplace<I>(), true) : false) || ...);
}
template <class Variant>
void read_kind(Variant& v, const std::string& name, const char* const* names) {
  if (!make(v, name, names, std::make_index_sequence<std::variant_size_v<Variant>>{})) {
    throw InputError("unknown work '" + name + "'");
  }
}

std::string place_text(Place p) {
  switch (p.tier) {
    case Tier::gpu:
      return fmt::format("gpu{}", p.index);
    case Tier::host:
      return "host";
    case Tier::storage:
      return fmt::format("path{}", p.index);
  }
  return "";
}

}  // namespace

const char* name_of(DType t) {
  constexpr std::array names = {"fp32", "bf16", "fp16", "fp8"};
  return names.at(static_cast<std::size_t>(t));
}
const char* name_of(CollectiveKind kind) {
  constexpr std::array names = {"all-gather", "reduce-scatter", "all-reduce", "broadcast",
                                "all-to-all"};
  return names.at(static_cast<std::size_t>(kind));
}

Flops flops_of(const Kernel& kernel) {
  struct Count {
    double operator()(const Gemm& g) const {
      return 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) *
             static_cast<double>(g.batch);
    }
    double operator()(const Attention& a) const {
      const double forward = 4.0 * static_cast<double>(a.batch * a.heads) *
                             static_cast<double>(a.queries) * static_cast<double>(a.keys) *
                             static_cast<double>(a.head_dim) * (a.causal ? 0.5 : 1.0);
      return a.backward ? 2.5 * forward : forward;
    }
    double operator()(const Elementwise&) const { return 0; }
  };
  return Flops(std::visit(Count{}, kernel));
}

std::size_t hash_of(const Work& work) {
  Hash hash;
  hash << work.index();
  const auto add = [&hash](const auto& field) { hash << field; };
  std::visit([&](const auto& w) { fields(w, add); }, work);
  if (const auto* compute = std::get_if<Compute>(&work)) {
    for (const Kernel& k : compute->kernels) {
      hash << k.index();
      std::visit([&](const auto& w) { fields(w, add); }, k);
    }
  }
  return hash.value();
}

std::string encode(const Work& work) {
  Writer writer;
  writer.text_ = work_names[work.index()];
  std::visit([&](const auto& w) { fields(w, writer); }, work);
  if (const auto* compute = std::get_if<Compute>(&work)) {
    for (const Kernel& k : compute->kernels) {
      writer.text_ += std::string(" ") + kernel_names[k.index()];
      std::visit([&](const auto& w) { fields(w, writer); }, k);
    }
  }
  return writer.text_;
}

Work decode_work(const std::string& text) {
  Reader reader(text);
  Work work;
  read_kind(work, reader.word(), work_names.data());
  std::visit([&](auto& w) { fields(w, reader); }, work);
  if (auto* compute = std::get_if<Compute>(&work)) {
    while (!reader.at_end()) {
      Kernel kernel;
      read_kind(kernel, reader.word(), kernel_names.data());
      std::visit([&](auto& w) { fields(w, reader); }, kernel);
      compute->kernels.push_back(kernel);
    }
  }
  if (!reader.at_end()) throw InputError("a work has too many fields");
  return work;
}

std::string to_text(const Work& work) {
  struct Say {
    std::string operator()(const Delay& d) const { return "wait " + to_text(d.duration); }
    std::string operator()(const Compute& c) const {
      Flops total;
      for (const Kernel& k : c.kernels) total += flops_of(k);
      return fmt::format("compute {} in {} kernels on gpu{}", to_text(total), c.kernels.size(),
                         c.gpu);
    }
    std::string operator()(const Copy& c) const {
      return fmt::format("copy {} {} -> {}", to_text(c.bytes), place_text(c.from),
                         place_text(c.to));
    }
    std::string operator()(const FileIo& f) const {
      const bool reads = f.direction == Direction::read;
      return fmt::format("{} {} path{} {} {}", reads ? "read" : "write", to_text(f.bytes), f.path,
                         reads ? "->" : "<-", place_text(f.memory));
    }
    std::string operator()(const AdamStep& a) const {
      return fmt::format("Adam on {} parameters, rank {}", a.parameters, a.rank);
    }
    std::string operator()(const Cast& c) const {
      return fmt::format("cast {} {} -> {}, rank {}", c.elements, name_of(c.from), name_of(c.to),
                         c.rank);
    }
    std::string operator()(const Collective& c) const {
      std::string text =
          fmt::format("{} {} over {} ranks", name_of(c.kind), to_text(c.bytes), c.ranks);
      if (c.per_node > 0) text += fmt::format(", {} a node", c.per_node);
      if (c.gpus > 1 && c.stride > 1) {
        text += fmt::format(", every {} GPUs from gpu{}", c.stride, c.first_gpu);
      }
      return text;
    }
  };
  return std::visit(Say{}, work);
}

}  // namespace tidegate
