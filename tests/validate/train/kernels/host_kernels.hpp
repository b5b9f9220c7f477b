#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "calib/kernels/products.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "validate/train/kernels/kernel_backend.hpp"

/// The host in a GPU's place: the same kernels in a plain loop, from the last index to the first,
/// on memory that holds NaNs until somebody writes there.
namespace tidegate::train {

/// Who multiplies: loops that read operands by columns as a GPU's library is told to, or the
/// libraries of cores, which add in the order of the CPU's backend.
enum class HostProducts : std::uint8_t { by_columns, of_cores };

class HostKernels final : public KernelDevice {
 public:
  explicit HostKernels(HostProducts by = HostProducts::by_columns) : products_(by) {}
  ~HostKernels() override {
    CHECK(memory_.empty());
    CHECK(outside_ == 0);
  }

  std::string name() const override { return "the host in a GPU's place"; }
  std::string products_text(DType) const override { return "by loops"; }
  std::byte* allocate(std::int64_t bytes) override {
    const std::scoped_lock lock(mutex_);
    if (used_ + bytes > capacity) throw MachineError("no memory left");
    const auto size = static_cast<std::size_t>(bytes);
    auto* const at = static_cast<std::byte*>(::operator new(size, grain));
    std::memset(at, 0xFF, size);
    memory_.emplace(at, bytes);
    used_ += bytes;
    peak = std::max(peak, used_);
    return at;
  }
  void free(std::byte* at) noexcept override {
    const std::scoped_lock lock(mutex_);
    used_ -= memory_.at(at);
    memory_.erase(at);
    ::operator delete(at, grain);
  }
  void put(std::span<const std::byte> from, std::byte* to) override {
    std::memcpy(to, from.data(), from.size());
  }
  void get(const std::byte* from, std::span<std::byte> to) override {
    std::memcpy(to.data(), from, to.size());
  }
  void launch(const kernels::Kernel& kernel, std::int64_t count) override {
    ++launches;
    if (std::holds_alternative<kernels::Adam>(kernel)) ++adams;
    std::visit(
        [count](const auto& one) {
          for (std::int64_t i = count; i-- > 0;) one(i);
        },
        kernel);
  }
  void multiply(const cuda::Product& p, const void* a, const void* b, float* c) override {
    ++products;
    const auto numbers = [&](const void* at, std::int64_t count) {
      Values all(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = p.operands == DType::fp32
                     ? static_cast<const float*>(at)[i]
                     : from_half(static_cast<const std::uint16_t*>(at)[i], p.operands);
      }
      return all;
    };
    if (products_ == HostProducts::of_cores && cpu::multiplies(p.operands) &&
        p.operands != DType::fp32) {
      return cpu::multiply(row_product(p), static_cast<const cpu::half*>(a),
                           static_cast<const cpu::half*>(b), p.operands, c, 1);
    }
    const Values wide_a = numbers(a, p.m * p.k), wide_b = numbers(b, p.k * p.n);
    if (products_ == HostProducts::of_cores)
      return cpu::multiply(row_product(p), wide_a.data(), wide_b.data(), c, 1);
    multiply_by_columns(cuda::by_columns(p), wide_a, wide_b, c, p.adds);
  }

  std::int64_t capacity = std::int64_t{1} << 40, peak = 0;  ///< bytes
  std::atomic<int> launches = 0, adams = 0, products = 0;

 private:
  static constexpr std::align_val_t grain{256};
  HostProducts products_;
  std::mutex mutex_;
  std::map<std::byte*, std::int64_t> memory_;
  std::int64_t used_ = 0;
  std::atomic<int> outside_ = 0;  // elements that a layout does not have

  static cpu::Product row_product(const cuda::Product& p) {
    return {.m = p.m,
            .n = p.n,
            .k = p.k,
            .a_is_transposed = p.a_is_transposed,
            .b_is_transposed = p.b_is_transposed,
            .adds = p.adds};
  }
  // Element (row, column) of a matrix as it is multiplied.
  float element(const Values& m, const cuda::ColumnLayout& l, std::int64_t row,
                std::int64_t column) {
    if (l.is_transposed) std::swap(row, column);
    if (row >= l.rows || column >= l.columns || l.rows > l.leading) ++outside_;
    return m.at(static_cast<std::size_t>(row + column * l.leading));
  }
  // From the last product to the first: another order than that of any library.
  void multiply_by_columns(const cuda::ColumnProduct& p, const Values& a, const Values& b, float* c,
                           bool adds) {
    const std::int64_t inner = p.b.is_transposed ? p.b.rows : p.b.columns;
    for (std::int64_t row = 0; row < p.c.rows; ++row) {
      for (std::int64_t column = 0; column < p.c.columns; ++column) {
        float sum = 0;
        for (std::int64_t i = inner; i-- > 0;)
          sum += element(b, p.b, row, i) * element(a, p.a, i, column);
        float& to = c[row + column * p.c.leading];
        to = adds ? to + sum : sum;
      }
    }
  }
};

/// A backend and its device, which it owns.
struct OnHost {
  explicit OnHost(HostProducts products = HostProducts::by_columns)
      : OnHost(new HostKernels(products)) {}
  HostKernels& device;
  KernelBackend backend;

 private:
  explicit OnHost(HostKernels* made)
      : device(*made), backend(std::unique_ptr<KernelDevice>(made)) {}
};

}  // namespace tidegate::train
