#include <algorithm>
#include <cstring>
#include <type_traits>

#include "models/base/error.hpp"
#include "validate/train/arithmetic.hpp"

/// What the deeds have come to: losses, parameters and moments; as bytes between processes.
namespace tidegate::train {

namespace {

class Writer {
 public:
  template <class T>
  void put(const T& value)
    requires std::is_trivially_copyable_v<T>
  {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  }
  void put(const Values& values) {
    put(values.size());
    const auto all = std::as_bytes(std::span(values));
    bytes.insert(bytes.end(), all.begin(), all.end());
  }
  std::vector<std::byte> bytes;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, next(sizeof value), sizeof value);
    return value;
  }
  Values values() {
    Values all(take<std::size_t>());
    if (!all.empty()) std::memcpy(all.data(), next(4 * all.size()), 4 * all.size());
    return all;
  }

 private:
  std::span<const std::byte> rest_;

  const std::byte* next(std::size_t count) {
    ensure(count <= rest_.size(), "results come whole");
    const std::byte* at = rest_.data();
    rest_ = rest_.subspan(count);
    return at;
  }
};

}  // namespace

std::vector<double> Arithmetic::losses() const {
  const std::scoped_lock lock(mutex_);
  std::vector<double> list;
  for (const auto& [when, loss] : losses_) list.push_back(loss);
  return list;
}

State Arithmetic::state() const {
  const std::scoped_lock lock(mutex_);
  State all = start_;
  all.step += plan_.iterations;
  for (const auto& [id, cell] : states_) {
    const Content& content = plan_.meaning.content(id);
    const Numbered& t = tensors_.at(static_cast<std::size_t>(content.tensor));
    const auto set = [&](NetworkTensors& in, const Values& values) {
      std::ranges::copy(values, in[t.layer][t.op][t.slot].begin() + content.first);
    };
    if (content.kind != Content::Kind::moments) {
      set(all.master, cell->values[0]);
    } else {
      set(all.first, cell->values[0]);
      set(all.second, cell->values[1]);
    }
  }
  return all;
}

std::vector<std::byte> Arithmetic::results() const {
  const std::scoped_lock lock(mutex_);
  Writer out;
  out.put(losses_.size());
  for (const auto& [when, loss] : losses_) {
    for (const std::int64_t number : when) out.put(number);
    out.put(loss);
  }
  out.put(states_.size());
  for (const auto& [id, cell] : states_) {
    out.put(id);
    out.put(cell->values.size());
    for (const Values& values : cell->values) out.put(values);
  }
  return std::move(out.bytes);
}

void Arithmetic::add_results(std::span<const std::byte> results) {
  const std::scoped_lock lock(mutex_);
  Reader in(results);
  for (auto left = in.take<std::size_t>(); left > 0; --left) {
    std::vector<std::int64_t> when;
    for (int i = 0; i < 3; ++i) when.push_back(in.take<std::int64_t>());
    losses_[when] = in.take<double>();
  }
  for (auto left = in.take<std::size_t>(); left > 0; --left) {
    const auto id = in.take<ContentId>();
    Cell cell;
    for (auto parts = in.take<std::size_t>(); parts > 0; --parts)
      cell.values.push_back(in.values());
    states_[id] = std::make_shared<const Cell>(std::move(cell));
  }
}

}  // namespace tidegate::train
