#include "sim/planner/money.hpp"

#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::planner;

namespace {

// A fifth of a year: 73.05 days, 1753.2 hours.
const Seconds run(0.2 * 365.25 * 86400);

// Purchase: 10000 + 2 · 5000 + 4 · 500 = 22000.
Bill bill() {
  return {
      .items = {
          {.name = "host",
           .count = 1,
           .price = 10000,
           .idle = 100,
           .busy = 300,
           .load = Load::cores},
          {.name = "gpu", .count = 2, .price = 5000, .idle = 50, .busy = 450, .load = Load::gpu},
          {.name = "drive",
           .count = 4,
           .price = 500,
           .idle = 5,
           .busy = 15,
           .load = Load::drives,
           .replacement = 600}}};
}

// The machine is paid in 4 · 0.5 = 2 years of training.
const Terms terms{.years = 4, .utilization = 0.5, .energy = 0.2, .pue = 1.5};
const Usage usage{.gpu = 0.5, .cores = 0.25, .drives = 1, .drive_life_years = 0.5};

}  // namespace

TEST_CASE("a run takes its part of the years in which the machine trains", "[money]") {
  // 22000 · 0.2 years / 2 years = 2200.
  const Costs costs = costs_of(bill(), terms, usage, run);
  CHECK(costs.purchase == Approx(22000));
  CHECK(costs.capital == Approx(2200));
}

TEST_CASE("power follows what is busy, and the building adds its part", "[money]") {
  // Training: 100 + 0.25 · 200 = 150; 2 · (50 + 0.5 · 400) = 500; 4 · (5 + 1 · 10) = 60; 710 W.
  // Idle: 100 + 2 · 50 + 4 · 5 = 220 W, for as long again as it trains (1 / 0.5 - 1 = 1).
  // 1.5 · 1753.2 h · (710 + 220) W = 2445.714 kWh, at 0.2: 489.1428.
  const Costs costs = costs_of(bill(), terms, usage, run);
  CHECK(costs.draw == Approx(710));
  CHECK(costs.kilowatt_hours == Approx(2445.714));
  CHECK(costs.energy == Approx(489.1428));
}

TEST_CASE("drives that wear out before the machine is paid are bought again", "[money]") {
  // In 0.2 years of a life of 0.5 they wear by 0.4, of which 0.2 / 2 = 0.1 is in the purchase:
  // 4 · 600 · 0.3 = 720.
  CHECK(costs_of(bill(), terms, usage, run).replacement == Approx(720));
  Usage lasting = usage;
  lasting.drive_life_years = 2;  // exactly as long as the machine
  CHECK(costs_of(bill(), terms, lasting, run).replacement == Approx(0).margin(1e-9));
  lasting.drive_life_years = 50;
  CHECK(costs_of(bill(), terms, lasting, run).replacement == 0);
  lasting.drive_life_years.reset();
  CHECK(costs_of(bill(), terms, lasting, run).replacement == 0);
}

TEST_CASE("the total is what is charged, the outlay what is paid", "[money]") {
  // 2200 + 489.1428 + 720 = 3409.1428; the outlay has 22000 in place of 2200.
  const Costs costs = costs_of(bill(), terms, usage, run);
  CHECK(costs.total() == Approx(3409.1428));
  CHECK(costs.outlay() == Approx(23209.1428));
}

TEST_CASE("a rented machine costs its rent and nothing else", "[money]") {
  // 10 · 1753.2 h = 17532. Its power is told: 1.5 · 0.71 kW · 1753.2 h = 1867.158 kWh.
  Bill rented = bill();
  rented.rent = 10;
  const Costs costs = costs_of(rented, terms, usage, run);
  CHECK(costs.rent == Approx(17532));
  CHECK(costs.total() == Approx(17532));
  CHECK(costs.outlay() == Approx(17532));
  CHECK(costs.purchase == 0);
  CHECK(costs.kilowatt_hours == Approx(1867.158));
}
