#pragma once

#include "calib/cluster/team.hpp"

namespace tidegate::calib {

/// A team of one.
class Alone : public Team {
 public:
  std::int32_t rank() const override { return 0; }
  std::int32_t size() const override { return 1; }
  std::int32_t rank_on_host() const override { return 0; }
  std::int32_t host() const override { return 0; }
  std::int32_t hosts() const override { return 1; }
  void barrier() override {}
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  std::string broadcast(const std::string& text) override { return text; }
  bool any(bool holds) override { return holds; }
  Seconds all_reduce(std::int64_t) override { return Seconds(0); }
  Seconds send(std::int32_t, std::int64_t) override { return Seconds(0); }
};

/// Starts MPI and ends it with the object. Declared here, defined where the build has MPI.
std::unique_ptr<Team> make_mpi_team();
bool has_mpi();

}  // namespace tidegate::calib
