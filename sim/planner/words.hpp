#pragma once

#include <string>
#include <vector>

#include "sim/planner/compare.hpp"

/// What text and page say alike.
namespace tidegate::planner {

/// Machines with a prediction, cheapest first.
std::vector<std::size_t> by_cost(const Comparison& c);

/// "4120 USD"; below a hundred with two decimals.
std::string money_text(const Comparison& c, Money money);
std::string days_text(double days);
/// "drives 0.81, then gpu*.d2h (4) 0.12": percent of the iteration per percent of the resource.
std::string binding_text(const Assessment& a);
/// The life of its drives, or why there is none to tell.
std::string life_text(const Assessment& a);

/// What was asked, and the answer in a sentence or two.
std::string question_text(const Comparison& c);
std::string answer_text(const Comparison& c);
/// Machines that are not in the table, a reason to each; those of one reason together.
std::vector<std::string> not_looked_at(const Comparison& c);
/// A command that predicts a machine of the comparison with its policy.
std::string simulate_command(const Comparison& c, const Assessment& a, const std::string& scenario);
/// How machines share the batch out, which holds for all of them.
std::string layouts_text(const Comparison& c);

}  // namespace tidegate::planner
