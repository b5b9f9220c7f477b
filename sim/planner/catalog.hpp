#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/error.hpp"
#include "models/machine.hpp"
#include "sim/planner/money.hpp"

/// What machines may be made of, with prices and power: a file that people edit (docs/plan.md).
///
/// Parts name a profile or a component for what they do (hw_profiles/), and say here what they
/// cost. `machines` lists what to compare; a list in place of a count makes a grid.
namespace tidegate::planner {

struct Part {
  std::string name;
  std::string file;            ///< of the component, or of a host's profile
  std::int64_t lanes = 0;      ///< of PCIe that it takes
  std::optional<Money> price;  ///< needed where a machine with it is bought
  Watts idle = 0, busy = 0;
};

struct DrivePart : Part {
  Money replacement = 0;           ///< of a worn drive
  std::optional<Bytes> endurance;  ///< instead of the component's
};

struct HostPart : Part {
  std::string profile;                ///< as a scenario names it: a name, or the file
  std::int64_t gpus = 0, drives = 0;  ///< slots
  Bytes most_memory;
  Part memory;                  ///< of a GiB
  std::optional<Part> network;  ///< of a node, where there are several
  std::optional<Machine> base;  ///< what its profile describes
  bool gpudirect = false;       ///< of its drives
};

/// A machine to compare, or a grid of them.
struct CatalogMachine {
  Where where;
  std::size_t host = 0, gpu = 0;
  std::optional<std::size_t> drive;
  std::vector<std::int64_t> nodes, gpus, drives;
  std::vector<Bytes> memory;  ///< of a node
  std::optional<Money> rent;  ///< of a node, an hour; without it the machine is bought
};

struct Catalog {
  std::string path, name, date, currency;
  bool is_example = false;  ///< prices are no offer
  Terms terms;
  std::vector<Part> gpus;
  std::vector<DrivePart> drives;
  std::vector<HostPart> hosts;
  std::vector<CatalogMachine> machines;
  std::vector<Provenance> provenance;
};

/// Throws InputError with all problems of the file, or those of a profile that it names.
Catalog read_catalog(const std::string& path);

}  // namespace tidegate::planner
