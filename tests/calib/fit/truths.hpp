#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "calib/fit/fit.hpp"
#include "tests/calib/fit/noise.hpp"

/// Devices whose parameters are known, measured with noise: one for every form, of sizes that occur
/// (a drive of 7 GB/s, 16 cores, …).
namespace truths {

using tidegate::calib::Form;
using tidegate::calib::Point;
using Numbers = std::vector<double>;

/// Y as written in fit.hpp, here from the formulas and not from our own forms.
struct Truth {
  Form form;
  Numbers parameters;
  std::vector<Numbers> settings;
  double (*y)(const Numbers& p, const Numbers& x);
};

inline double mean_power(double a, double b, double p) {
  return std::pow(std::pow(a, p) + std::pow(b, p), 1 / p);
}

inline std::vector<Numbers> doubling(double from, int count) {
  std::vector<Numbers> all;
  for (int i = 0; i < count; ++i) all.push_back({from * std::pow(2, i)});
  return all;
}
inline std::vector<Numbers> grid(const Numbers& first, const Numbers& second) {
  std::vector<Numbers> all;
  for (const double a : first) {
    for (const double b : second) all.push_back({a, b});
  }
  return all;
}

inline Truth constant() {
  return {Form::constant, {25e9}, {{1}, {2}, {4}, {8}}, [](const Numbers& p, const Numbers&) {
            return p[0];
          }};
}
inline Truth latency_rate() {
  return {Form::latency_rate,
          {10e-6, 25e9},
          doubling(4096, 16),
          [](const Numbers& p, const Numbers& x) { return p[0] + x[0] / p[1]; }};
}
inline Truth half_size() {
  return {
      Form::half_size, {24e9, 256e3}, doubling(16384, 12), [](const Numbers& p, const Numbers& x) {
        return p[0] * x[0] / (x[0] + p[1]);
      }};
}
inline Truth queue_saturating() {
  return {Form::queue_saturating,
          {7e9, 80e-6, 4e9, 4},
          grid({65536, 262144, 1048576, 4194304}, {1, 2, 4, 8, 16, 32}),
          [](const Numbers& p, const Numbers& x) {
            return x[0] * x[1] / mean_power(p[1] + x[0] / p[2], x[0] * x[1] / p[0], p[3]);
          }};
}
inline Truth thread_saturating() {
  return {Form::thread_saturating,
          {10e9, 60e9, 3},
          {{1}, {2}, {3}, {4}, {6}, {8}, {12}, {16}},
          [](const Numbers& p, const Numbers& x) {
            return x[0] * p[0] / mean_power(1, x[0] * p[0] / p[1], p[2]);
          }};
}
inline Truth adam() {
  return {Form::adam,
          {20e-6, 1.5e-9, 60e9},
          grid({65536, 1048576, 16777216, 67108864}, {1, 2, 4, 8}),
          [](const Numbers& p, const Numbers& x) {
            return p[0] + std::max(x[0] * p[1] / x[1], x[0] * 28 / p[2]);
          }};
}
/// x is the fraction of W that is written; y, the rest, is read.
inline Truth capacity_region() {
  return {Form::capacity_region,
          {6.5e9, 4e9, 1.3},
          {{0}, {1e9}, {2e9}, {3e9}, {3.6e9}, {4e9}},
          [](const Numbers& p, const Numbers& x) {
            return p[0] * std::pow(1 - std::pow(x[0] / p[1], p[2]), 1 / p[2]);
          }};
}
inline Truth cache_knee() {
  return {Form::cache_knee,
          {6, 3e9, 2},
          doubling(67108864, 10),
          [](const Numbers& p, const Numbers& x) {
            const double hits = std::min(1.0, std::pow(p[1] / x[0], p[2]));
            return 1 / (hits / p[0] + 1 - hits);
          }};
}
inline Truth leaky_bucket() {
  std::vector<Numbers> written;
  for (int i = 1; i <= 20; ++i) written.push_back({i * 10e9});
  return {
      Form::leaky_bucket, {4.5e9, 1.2e9, 117e9}, written, [](const Numbers& p, const Numbers& x) {
        return x[0] <= p[2] ? p[0] : p[1];
      }};
}
inline Truth gemm() {
  std::vector<Numbers> shapes;
  for (const double m : {48., 500., 2048.}) {
    for (const double n : {8., 250., 2048.}) {
      for (const double k : {16., 128., 2048.}) shapes.push_back({m, n, k});
    }
  }
  return {Form::gemm, {5e-6, 140e9, 20, 10e9, 16}, shapes, [](const Numbers& p, const Numbers& x) {
            const double e = x[2] / (x[2] + p[2]) * x[0] / (p[4] * std::ceil(x[0] / p[4])) * x[1] /
                             (p[4] * std::ceil(x[1] / p[4]));
            return p[0] + std::max(2 * x[0] * x[1] * x[2] / (p[1] * e),
                                   4 * (x[0] * x[2] + x[2] * x[1] + x[0] * x[1]) / p[3]);
          }};
}
inline std::vector<Truth> all() {
  return {constant(), latency_rate(),    half_size(),  queue_saturating(), thread_saturating(),
          adam(),     capacity_region(), cache_knee(), leaky_bucket(),     gemm()};
}

struct Blur {
  double block = 0.05, pass = 0;  ///< relative deviations, of a block and of a whole pass
  double outliers = 0;            ///< part of the blocks that run at twice the value
};
inline std::vector<Point> measured(const Truth& truth, int passes, const Blur& blur, Noise& noise) {
  std::vector<Point> points;
  for (int pass = 0; pass < passes; ++pass) {
    const double drift = noise.factor(blur.pass);
    std::int32_t setting = 0;
    for (const Numbers& x : truth.settings) {
      const double factor =
          drift * noise.factor(blur.block) * (noise.uniform() < blur.outliers ? 2 : 1);
      Point point{x, truth.y(truth.parameters, x) * factor, pass};
      // Reads and writes of one block meet the same disturbance, and both are measured.
      if (truth.form == Form::capacity_region) {
        point.x[0] *= factor;
        point.setting = setting++;
      }
      points.push_back(point);
    }
  }
  return points;
}

}  // namespace truths
