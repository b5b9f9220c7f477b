// Tests that need a GPU; without one they are skipped loudly (77 is ctest's SKIP_RETURN_CODE).
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

#include "calib/cuda/shim/handles.hpp"

int main(int argc, char** argv) {
  const char* why = "";
  if (tidegate::cuda::device_count(&why) == 0) {
    std::printf("skipped: no GPU: %s\n", why);
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
