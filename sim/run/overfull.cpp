#include "sim/run/overfull.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tidegate {

Bytes needed_of(const Report& report, const Report::Pool& pool) {
  const auto over = std::ranges::find(report.overflows, pool.name, &Report::Overflow::pool);
  Bytes needed = over == report.overflows.end() ? pool.peak : over->needed;
  if (pool.allocator && pool.allocator->out_of_memory) {
    const auto& failed = *pool.allocator->out_of_memory;
    needed = std::max(needed, failed.reserved + failed.asked);
  }
  return needed;
}

Overfull::Overfull(const Prediction& p, const Scenario& scenario, const yaml::Value& values)
    : scenario_(&scenario), values_(&values) {
  for (std::size_t i = 0; i < p.report.pools.size(); ++i) {
    const Report::Pool& pool = p.report.pools[i];
    const auto over = std::ranges::find(p.report.overflows, pool.name, &Report::Overflow::pool);
    const bool ran_out = pool.allocator && pool.allocator->out_of_memory;
    if (over == p.report.overflows.end() && !ran_out) continue;
    const Tier tier = p.plan.pools[i].place.tier;
    Kind& kind = tier == Tier::gpu ? gpu_ : tier == Tier::host ? host_ : storage_;
    if (tier == Tier::storage) full_paths_.push_back(pool.name);
    kind.excess = std::max(kind.excess, (needed_of(p.report, pool) - pool.capacity).value());
    for (const auto& [name, bytes] : pool.owners) {
      double& most = kind.owners[name];
      most = std::max(most, static_cast<double>(bytes));
    }
  }
}

bool Overfull::Kind::holds(std::initializer_list<std::string_view> words) const {
  return std::ranges::any_of(owners, [&](const auto& owner) {
    return std::ranges::any_of(words, [&](std::string_view word) {
      return owner.first.find(word) != std::string::npos && owner.second > 0;
    });
  });
}

double Overfull::Kind::bytes_of(std::string_view owner) const {
  const auto at = owners.find(std::string(owner));
  return at == owners.end() ? 0 : at->second;
}

bool Overfull::is_full(const std::string& path) const {
  return std::ranges::find(full_paths_, path) != full_paths_.end();
}

bool Overfull::holds(std::initializer_list<std::string_view> words) const {
  return gpu_.holds(words) || host_.holds(words) || storage_.holds(words);
}

const yaml::Value* Overfull::section(std::string_view name) const {
  const yaml::Value* policy = values_->find("policy");
  return policy ? policy->find(name) : nullptr;
}

std::string Overfull::policy(std::string_view name) const {
  const yaml::Value* at = section(name);
  if (at && at->kind == yaml::Value::Kind::scalar) return at->text;
  const yaml::Value* chosen = at ? at->find("name") : nullptr;
  if (chosen) return chosen->text;
  const auto first = std::ranges::find(policy_table(), name, &PolicyEntry::section);
  return std::string(first->name);
}

std::int64_t Overfull::option(std::string_view key, std::int64_t fallback) const {
  const yaml::Value* optimizer = section("optimizer");
  const yaml::Value* value = optimizer ? optimizer->find(key) : nullptr;
  return value ? std::llround(std::strtod(value->text.c_str(), nullptr)) : fallback;
}

bool Overfull::flag(std::string_view key, bool fallback) const {
  const yaml::Value* optimizer = section("optimizer");
  const yaml::Value* value = optimizer ? optimizer->find(key) : nullptr;
  return value ? value->text == "true" : fallback;
}

double Overfull::host_share() const {
  const std::string name = policy("optimizer");
  if (name == "resident") return 0;
  if (name != "twin_flow") return 1;
  const yaml::Value* ratio = section("optimizer")->find("ratio");
  return ratio ? std::strtod(ratio->text.c_str(), nullptr) : 1;
}

std::vector<double> Overfull::host_shares() const {
  const double now = host_share();
  const double on_gpu = gpu_.bytes_of("optimizer states");
  const double on_host = host_.bytes_of("optimizer states") + host_.bytes_of("fp32 gradients");
  double first = 0, step = 0;
  if (on_gpu > 0 && now < 1) {
    first = std::ceil(10 * (now + (1 - now) * gpu_.excess / on_gpu) - 1e-9), step = 1;
  } else if (on_host > 0) {
    first = std::floor(10 * now * (1 - host_.excess / on_host) + 1e-9), step = -1;
  }
  std::vector<double> shares;
  for (const double tenths : {first, first + step}) {
    if (step != 0 && tenths > 0 && tenths < 10) shares.push_back(tenths / 10);
  }
  return shares;
}

}  // namespace tidegate
