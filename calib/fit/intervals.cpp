#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <random>

#include "calib/fit/problem.hpp"

namespace tidegate::calib::detail {
namespace {

// Gaussian numbers, the same on every machine (std::normal_distribution is not).
class Gauss {
 public:
  explicit Gauss(std::uint64_t seed) : bits_(seed) {}
  double operator()() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  double uniform() { return (static_cast<double>(bits_() >> 11) + 0.5) * 0x1p-53; }
  std::mt19937_64 bits_;
};

// Mean squares of log errors, as the analysis of variance has them: of the means of passes, times
// their sizes, and of blocks about the mean of their pass. Equal where passes do not differ beyond
// their blocks, which is not assumed.
struct Noise {
  double block = 0, pass = 0;
  double block_freedom = 0, pass_freedom = 0;  // 0: not told apart, `block` holds for both
  std::map<std::int32_t, std::vector<std::size_t>> passes;  // counting points of each
};

Noise noise_of(const Numbers& errors, std::span<const Point> points,
               const std::vector<bool>& counts, std::size_t parameters) {
  Noise noise;
  double count = 0, squares = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!counts[i]) continue;
    noise.passes[points[i].pass].push_back(i);
    count += 1;
    squares += errors[i] * errors[i];
  }
  noise.block_freedom = count - static_cast<double>(parameters);
  if (noise.block_freedom < 1) return noise;
  noise.block = squares / noise.block_freedom;
  noise.pass = noise.block;
  const double between = static_cast<double>(noise.passes.size()) - 1;
  if (between < 1 || noise.block_freedom - between < 3) return noise;

  double of_passes = 0;
  for (const auto& [pass, members] : noise.passes) {
    double sum = 0;
    for (const std::size_t i : members) sum += errors[i];
    of_passes += sum * sum / static_cast<double>(members.size());
  }
  noise.pass = of_passes / between;
  noise.pass_freedom = between;
  noise.block_freedom -= between;
  noise.block = std::max(0.0, squares - of_passes) / noise.block_freedom;
  return noise;
}

// Variance of what follows the data linearly, and its freedom (Satterthwaite).
struct Variance {
  double value = 0, freedom = 1;
};
Variance variance_of(const Numbers& response, const Noise& noise) {
  double block = 0, pass = 0;
  for (const auto& [number, members] : noise.passes) {
    double sum = 0, squares = 0;
    for (const std::size_t i : members) sum += response[i], squares += response[i] * response[i];
    const double of_mean = sum * sum / static_cast<double>(members.size());
    pass += noise.pass * of_mean;
    block += noise.block * std::max(0.0, squares - of_mean);
  }
  const double all = block + pass;
  if (noise.pass_freedom < 1 || all <= 0) return {all, noise.block_freedom};
  return {all,
          all * all / (block * block / noise.block_freedom + pass * pass / noise.pass_freedom)};
}

// One draw of the noise of all points.
Numbers drawn(const Noise& noise, std::size_t points, Gauss& gauss) {
  Numbers all(points, 0.0);
  for (const auto& [pass, members] : noise.passes) {
    const auto size = static_cast<double>(members.size());
    double mean = 0;
    for (const std::size_t i : members) {
      all[i] = std::sqrt(noise.block) * gauss();
      mean += all[i] / size;
    }
    const double shift = std::sqrt(noise.pass / size) * gauss() - mean;
    for (const std::size_t i : members) all[i] += shift;
  }
  return all;
}

// Deviations of the draws to either side of the logarithm, each as if the other side were its
// mirror. `follow`: what each draw would have done to a linear fit, whose variance is known; the
// chance in the draws is divided out by it (a control variate).
Interval two_sided(double value, const Numbers& draws, const Numbers& follow,
                   const Variance& linear) {
  double below = 0, above = 0, followed = 0;
  for (const double draw : draws) {
    const double off = std::log(draw / value);
    (off < 0 ? below : above) += off * off;
  }
  for (const double f : follow) followed += f * f;
  const auto n = static_cast<double>(draws.size());
  const double chance = followed > 0 ? n * linear.value / followed : 1;
  const double scale = student_quantile(linear.freedom) * std::sqrt(2 / n * chance);
  return {value * std::exp(-scale * std::sqrt(below)), value * std::exp(scale * std::sqrt(above))};
}

// A place is not known better than the measured settings around it.
Interval to_settings(Interval interval, std::span<const Point> points) {
  Interval wide{0, std::numeric_limits<double>::infinity()};
  for (const Point& p : points) {
    if (p.x[0] <= interval.low) wide.low = std::max(wide.low, p.x[0]);
    if (p.x[0] >= interval.high) wide.high = std::min(wide.high, p.x[0]);
  }
  return wide;
}

struct Draws {
  std::vector<Numbers> found, follow;  // of each parameter, a number per draw
  std::vector<Variance> linear;
};

Draws draws_of(const Problem& problem, std::span<const Point> points,
               const std::vector<bool>& counts, const Numbers& parameters, const Numbers& errors,
               const Noise& noise, const FitOptions& options) {
  Gauss gauss(options.seed);
  const std::vector<Numbers> starts = twins(problem, points, parameters);
  const std::vector<Numbers> response = response_of(problem, points, counts, parameters);
  Draws draws{std::vector<Numbers>(parameters.size()), std::vector<Numbers>(parameters.size()), {}};
  for (const Numbers& r : response) draws.linear.push_back(variance_of(r, noise));
  for (std::int32_t draw = 0; draw < options.draws; ++draw) {
    const Numbers fresh = drawn(noise, points.size(), gauss);
    std::vector<Point> redrawn;
    for (std::size_t i = 0; i < points.size(); ++i) {
      redrawn.push_back(shifted(problem.form, points[i], errors[i] + fresh[i]));
    }
    const Numbers found = solve(problem, redrawn, counts, starts);
    for (std::size_t j = 0; j < found.size(); ++j) {
      draws.found[j].push_back(found[j]);
      draws.follow[j].push_back(
          std::inner_product(fresh.begin(), fresh.end(), response[j].begin(), 0.0));
    }
  }
  return draws;
}

constexpr Interval untold{0, std::numeric_limits<double>::infinity()};

bool is_sharp(const FormSpec& spec, const Numbers& parameters) {
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    if (spec.parameters[j].kind == Kind::shape) return parameters[j] > most_shape / 2;
  }
  return true;
}

}  // namespace

std::vector<Interval> intervals_of(const Problem& problem, std::span<const Point> points,
                                   const std::vector<bool>& counts, const Numbers& parameters,
                                   const FitOptions& options) {
  const FormSpec& spec = problem.spec();
  const Numbers errors = problem.residuals(parameters, points);
  const Noise noise = noise_of(errors, points, counts, parameters.size());
  if (noise.block_freedom < 1 || options.draws < 1) {
    return std::vector<Interval>(parameters.size(), {0, std::numeric_limits<double>::infinity()});
  }
  const Draws draws = draws_of(problem, points, counts, parameters, errors, noise, options);
  std::vector<Interval> intervals;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const auto [least, most] = std::ranges::minmax(draws.found[j]);
    Interval interval{std::min(least, parameters[j]), std::max(most, parameters[j])};
    if (spec.parameters[j].kind == Kind::choice) {
      // Between the least and the most of the draws.
    } else if (draws.linear[j].value <= 0) {
      interval = untold;
    } else {
      interval = two_sided(parameters[j], draws.found[j], draws.follow[j], draws.linear[j]);
    }
    if (static_cast<int>(j) == spec.placed && is_sharp(spec, parameters)) {
      interval = to_settings(interval, points);
    }
    intervals.push_back(interval);
  }
  return intervals;
}

}  // namespace tidegate::calib::detail
