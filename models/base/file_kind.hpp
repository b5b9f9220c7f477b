#pragma once

#include "models/base/yaml.hpp"

/// Whether a file is what it was given as. Every command reads several kinds of YAML and JSON, and
/// people give one for the other; what a reader says of the keys of a foreign kind helps nobody.
namespace tidegate {

enum class FileKind {
  unknown,    ///< no key tells
  empty,      ///< of no keys
  scenario,   ///< docs/scenario.md
  profile,    ///< kind: node (docs/profiles.md)
  part,       ///< kind: gpu, drive, …: hw_profiles/components
  catalog,    ///< kind: catalog (docs/plan.md)
  network,    ///< config.json of Hugging Face
  deepspeed,  ///< ds_config.json
  answer      ///< JSON that a command wrote
};

/// By keys that only one kind has.
FileKind kind_of(const yaml::Value& root);

/// Throws InputError when the file is empty or of another kind, with where that one goes. A file
/// that no key tells passes.
void expect(FileKind expected, const yaml::Value& root);

}  // namespace tidegate
