#include "sim/planner/money.hpp"

#include <algorithm>

namespace tidegate::planner {
namespace {

constexpr double hour = 3600;
constexpr double year = 365.25 * 24 * hour;

double busy_fraction(const Usage& usage, Load load) {
  switch (load) {
    case Load::gpu:
      return usage.gpu;
    case Load::cores:
      return usage.cores;
    case Load::memory:
      return usage.memory;
    case Load::drives:
      return usage.drives;
    case Load::network:
      return usage.network;
  }
  return 0;
}

}  // namespace

Money Bill::purchase() const {
  if (rent) return 0;
  Money sum = 0;
  for (const Item& item : items) sum += item.count * item.price;
  return sum;
}

Costs costs_of(const Bill& bill, const Terms& terms, const Usage& usage, Seconds time) {
  const double t = time.value();
  const double owned = terms.years * year * terms.utilization;  // seconds that pay for the machine
  Costs costs{.purchase = bill.purchase()};
  Watts idle = 0;
  for (const Item& item : bill.items) {
    const double busy = busy_fraction(usage, item.load);
    idle += item.count * item.idle;
    costs.draw += item.count * (item.idle + busy * (item.busy - item.idle));
  }
  // A rented machine draws nothing for us between runs.
  const double waiting = bill.rent ? 0 : t * (1 / terms.utilization - 1);
  costs.kilowatt_hours = terms.pue * (costs.draw * t + idle * waiting) / (1000 * hour);
  if (bill.rent) {
    costs.rent = *bill.rent * t / hour;
    return costs;
  }
  costs.capital = costs.purchase * t / owned;
  costs.energy = costs.kilowatt_hours * terms.energy;
  if (!usage.drive_life_years) return costs;
  const double again = std::max(0.0, t / (*usage.drive_life_years * year) - t / owned);
  for (const Item& item : bill.items) costs.replacement += item.count * item.replacement * again;
  return costs;
}

}  // namespace tidegate::planner
