#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {

/// What a run asks of a pool: its bytes, or where the allocator ran out of memory what it had
/// reserved and then asked for.
Bytes needed_of(const Report& report, const Report::Pool& pool);

/// A run that does not fit, as one asks it for changes: which kinds of pools overflow, who holds
/// their bytes, and how the scenario is set.
class Overfull {
 public:
  Overfull(const Prediction& p, const Scenario& scenario, const yaml::Value& values);

  const Scenario& scenario() const { return *scenario_; }
  bool is_gpu_full() const { return !gpu_.owners.empty(); }
  bool is_storage_full() const { return !full_paths_.empty(); }
  bool is_full(const std::string& path) const;

  /// An owner whose name contains one of these words holds bytes of a pool that overflows: of any,
  /// of a GPU, of the host.
  bool holds(std::initializer_list<std::string_view> words) const;
  bool gpu_holds(std::initializer_list<std::string_view> words) const { return gpu_.holds(words); }
  bool host_holds(std::initializer_list<std::string_view> words) const {
    return host_.holds(words);
  }

  /// Name of the policy of a section; of a section that is left out, the table's first.
  std::string policy(std::string_view section) const;
  /// A count of policy.optimizer, and a flag.
  std::int64_t option(std::string_view key, std::int64_t fallback) const;
  bool flag(std::string_view key, bool fallback) const;
  /// Parts of the optimizer to keep on the host, in tenths: the two that, by the bytes of its
  /// states alone, are the first to remove what is too much.
  std::vector<double> host_shares() const;

 private:
  struct Kind {
    std::map<std::string, double> owners;  ///< bytes, most of any moment that the report has
    double excess = 0;                     ///< bytes, of the fullest pool
    bool holds(std::initializer_list<std::string_view> words) const;
    double bytes_of(std::string_view owner) const;
  };
  const yaml::Value* section(std::string_view name) const;
  double host_share() const;

  const Scenario* scenario_;
  const yaml::Value* values_;
  Kind gpu_, host_, storage_;
  std::vector<std::string> full_paths_;
};

}  // namespace tidegate
