#pragma once

#include <span>

/// How well a deviation is known that was estimated from a few blocks.
///
/// Two blocks that agree by chance say nothing of the noise. Deviations of many rows together say
/// how large they are and how much rows differ; each row's own is drawn towards that (Smyth 2004,
/// "Linear models and empirical Bayes methods", sections 3 and 6.2): with variances s² of freedom d
/// scattered around s0² like those of d0 degrees of freedom,
///
///   s̃² = (d0·s0² + d·s²) / (d0 + d),   known with d0 + d degrees of freedom.
namespace tidegate::calib {

/// A relative standard deviation and the degrees of freedom that tell it.
struct KnownSpread {
  double spread = 0, freedom = 0;
};

/// s0 and d0 of rows of one kind; those without freedom or deviation do not count. {0, 0}, which
/// changes nothing, for fewer than eight rows (assumed); d0 at most 50, also where rows differ no
/// more than chance.
KnownSpread prior_of(std::span<const KnownSpread> rows);
KnownSpread moderated(const KnownSpread& own, const KnownSpread& prior);

/// Probability that a variable of Student's distribution lies beyond ±t. freedom below 1 counts as
/// 1, infinite freedom is the normal distribution; between whole ones linear in 1/freedom.
double two_sided(double t, double freedom);
/// Degrees of freedom of sqrt(a² + b²) (Welch 1947, Satterthwaite 1946).
double freedom_of_sum(const KnownSpread& a, const KnownSpread& b);

/// Derivatives of log Γ, x > 0 (Abramowitz and Stegun 6.3.5, 6.3.18, 6.4.6, 6.4.12).
double digamma(double x);
double trigamma(double x);

}  // namespace tidegate::calib
