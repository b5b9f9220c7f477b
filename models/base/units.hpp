#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/core.h>

/// Numbers with units in their types.
///
/// A Quantity holds one double in base units (bytes, floating-point operations, seconds). Products
/// and quotients get the right dimension by arithmetic on the exponents; a quotient of equal
/// dimensions is a plain double. Whole bytes are exact up to 8 PiB.
///
/// Text form: a number, a space or none, a unit. Decimal prefixes k M G T P, binary Ki Mi Gi Ti Pi;
/// units B, B/s, FLOP, FLOP/s, s ms us ns min h. Bits ("b") are refused.
namespace tidegate {

template <int B, int F, int S>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base) : base_(base) {}
  constexpr double value() const { return base_; }

  constexpr Quantity operator-() const { return Quantity(-base_); }
  constexpr Quantity& operator+=(Quantity other) { return base_ += other.base_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return base_ -= other.base_, *this; }
  constexpr Quantity& operator*=(double factor) { return base_ *= factor, *this; }
  constexpr Quantity& operator/=(double divisor) { return base_ /= divisor, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.base_ + b.base_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.base_ - b.base_);
  }
  friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.base_ * f); }
  friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(a.base_ * f); }
  friend constexpr Quantity operator/(Quantity a, double d) { return Quantity(a.base_ / d); }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;

 private:
  double base_ = 0;
};

template <int B, int F, int S>
struct Reduced {
  using type = Quantity<B, F, S>;
};
template <>
struct Reduced<0, 0, 0> {
  using type = double;
};

template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr auto operator*(Quantity<B1, F1, S1> a, Quantity<B2, F2, S2> b) {
  return typename Reduced<B1 + B2, F1 + F2, S1 + S2>::type(a.value() * b.value());
}
template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr auto operator/(Quantity<B1, F1, S1> a, Quantity<B2, F2, S2> b) {
  return typename Reduced<B1 - B2, F1 - F2, S1 - S2>::type(a.value() / b.value());
}

using Bytes = Quantity<1, 0, 0>;
using Flops = Quantity<0, 1, 0>;
using Seconds = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, 0, -1>;
using FlopsPerSecond = Quantity<0, 1, -1>;

namespace literals {
// clang-format off
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(static_cast<double>(v)); }
constexpr Bytes operator""_MB(unsigned long long v) { return Bytes(1e6 * static_cast<double>(v)); }
constexpr Bytes operator""_GB(unsigned long long v) { return Bytes(1e9 * static_cast<double>(v)); }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes(1024. * static_cast<double>(v)); }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes(1048576. * static_cast<double>(v)); }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes(1073741824. * static_cast<double>(v)); }
constexpr BytesPerSecond operator""_GBps(long double v) { return BytesPerSecond(1e9 * static_cast<double>(v)); }
constexpr BytesPerSecond operator""_GBps(unsigned long long v) { return BytesPerSecond(1e9 * static_cast<double>(v)); }
constexpr FlopsPerSecond operator""_TFLOPs(long double v) { return FlopsPerSecond(1e12 * static_cast<double>(v)); }
constexpr FlopsPerSecond operator""_TFLOPs(unsigned long long v) { return FlopsPerSecond(1e12 * static_cast<double>(v)); }
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_s(unsigned long long v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_ms(unsigned long long v) { return Seconds(1e-3 * static_cast<double>(v)); }
constexpr Seconds operator""_us(unsigned long long v) { return Seconds(1e-6 * static_cast<double>(v)); }
// clang-format on
}  // namespace literals

/// What a quantity measures; chooses the accepted units when text is read.
enum class Dimension { bytes, flops, seconds, bytes_per_second, flops_per_second };

/// The name used in messages ("a bandwidth") and the units accepted ("B/s kB/s … GiB/s").
struct DimensionText {
  const char* noun;
  const char* units;
};
DimensionText describe(Dimension dimension);

/// Reads "24.6 GB/s" into base units. Returns false, with the reason in `problem`, when the number
/// or the unit is not one of `dimension`.
bool parse_quantity(const std::string& text, Dimension dimension, double& base,
                    std::string& problem);

template <class Q>
struct DimensionOf;
template <>
struct DimensionOf<Bytes> {
  static constexpr Dimension value = Dimension::bytes;
};
template <>
struct DimensionOf<Flops> {
  static constexpr Dimension value = Dimension::flops;
};
template <>
struct DimensionOf<Seconds> {
  static constexpr Dimension value = Dimension::seconds;
};
template <>
struct DimensionOf<BytesPerSecond> {
  static constexpr Dimension value = Dimension::bytes_per_second;
};
template <>
struct DimensionOf<FlopsPerSecond> {
  static constexpr Dimension value = Dimension::flops_per_second;
};

/// For people: four significant digits, binary prefix for bytes, decimal for rates and FLOPs,
/// s/ms/us/ns for times.
std::string to_text(Bytes v);
std::string to_text(Flops v);
std::string to_text(Seconds v);
std::string to_text(BytesPerSecond v);
std::string to_text(FlopsPerSecond v);

/// An instant of simulated or measured time in integer picoseconds since the start (106 days fit).
/// Rounding is at most 1 ps per event; equal inputs give equal instants on every machine.
using Instant = std::int64_t;
constexpr double ticks_per_second = 1e12;

/// The first tick at or after `duration`.
inline Instant to_ticks(Seconds duration) {
  return static_cast<Instant>(std::ceil(duration.value() * ticks_per_second));
}
constexpr Seconds to_seconds(Instant ticks) {
  return Seconds(static_cast<double>(ticks) / ticks_per_second);
}

}  // namespace tidegate
