#pragma once

#include <cstdlib>

namespace tidegate::test {

/// Open MPI asks whether root, and more processes than cores, are meant.
inline void allow_any_number() {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
}

}  // namespace tidegate::test
