#pragma once

#include <string>

#include "models/cited.hpp"
#include "sim/planner/catalog.hpp"

/// Values of a catalog, each with its origin. Problems go to the document that they stand in.
namespace tidegate::planner {

/// No uncertainty is followed here, so that none may stand beside a value.
yaml::Node cited_value(CitedMap& in, const std::string& key);
double cited_number(CitedMap& in, const std::string& key, double least, double most);
/// A plain number: a currency behind it is a problem.
Money cited_money(CitedMap& in, const std::string& key, const std::string& currency);
/// "700 W", "1.2 kW".
Watts cited_watts(CitedMap& in, const std::string& key);
/// Price, if there is one, and power.
void read_costs(CitedMap& in, Part& part, const std::string& currency);

/// A path relative to the catalog, or a bare name of hw_profiles/components; "" with a problem
/// when it is no component of this kind.
std::string component_file(const yaml::Node& node, const std::string& catalog, const char* kind);

/// "7 PB", or "1 DWPD": drive writes a day over the component's warranty, in years of 365 days as
/// makers count.
Bytes endurance_of(const yaml::Node& node, const std::string& component);

}  // namespace tidegate::planner
