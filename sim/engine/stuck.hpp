#pragma once

#include <string>

#include "sim/engine/grants.hpp"
#include "sim/engine/order.hpp"
#include "sim/plan/plan.hpp"

namespace tidegate {

/// Why a run cannot go on: up to three tasks at the head of their lanes and what each waits for,
/// those that wait for tokens or a lock first.
std::string stuck_text(const Plan& plan, const Order& order, const Grants& grants);

}  // namespace tidegate
