#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/base/units.hpp"

/// What a machine costs while it trains. Pure arithmetic; docs/plan.md has the same equations.
namespace tidegate::planner {

using Money = double;  ///< in the catalog's currency
using Watts = double;

/// On what everything is charged.
struct Terms {
  double years = 1;        ///< over which a purchase is written off, in equal parts
  double utilization = 1;  ///< part of these years in which the machine trains
  Money energy = 0;        ///< of a kilowatt-hour
  double pue = 1;          ///< energy of the building over that of the machine
};

/// Whose busy fraction a part's power follows.
enum class Load { gpu, cores, memory, drives, network };

/// Equal parts of a machine, of all its nodes.
struct Item {
  std::string name;
  double count = 0;
  Money price = 0;  ///< of one
  Watts idle = 0;   ///< of one
  Watts busy = 0;   ///< of one, all of the time
  Load load = Load::cores;
  Money replacement = 0;  ///< of one worn drive
};

struct Bill {
  std::vector<Item> items;
  std::optional<Money> rent;  ///< an hour, all nodes; nothing is bought then
  Money purchase() const;     ///< of what is bought: zero when rented
};

/// What training does to a machine.
struct Usage {
  double gpu = 0, cores = 0, memory = 0, drives = 0, network = 0;  ///< busy fractions
  /// Until the drives have written what they are rated for, training day and night; nothing where
  /// they are not written or not rated.
  std::optional<double> drive_life_years;
};

/// Of one run.
struct Costs {
  Money capital = 0, energy = 0, replacement = 0, rent = 0;
  Money purchase = 0;         ///< paid once, whatever the run takes of it
  Watts draw = 0;             ///< of all nodes while training, without the building
  double kilowatt_hours = 0;  ///< with the building, and idle between runs
  Money total() const { return capital + energy + replacement + rent; }
  /// What leaves the account for this run alone: the purchase is paid in full.
  Money outlay() const { return purchase + energy + replacement + rent; }
};

/// A run of `time` t on a bought machine, with years of 365.25 days:
///
///   capital     = price · t / (years · utilization)
///   power       = sum over parts of count · (idle + busy fraction · (busy - idle))
///   energy      = pue · (power · t + idle power · t · (1 / utilization - 1)) · price of energy
///   replacement = drives · price of one · max(0, t / life - t / (years · utilization))
///
/// so that drives that last as long as the machine cost nothing more, and others are bought again
/// as often as they wear out. A rented machine costs rent · t and nothing else; what it draws is
/// still told.
Costs costs_of(const Bill& bill, const Terms& terms, const Usage& usage, Seconds time);

}  // namespace tidegate::planner
