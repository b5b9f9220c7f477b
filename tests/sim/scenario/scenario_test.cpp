#include "sim/scenario/scenario.hpp"

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
using test::TemporaryFolder;

namespace {

AllocatorOptions read(const std::string& memory) {
  const TemporaryFolder folder;
  return load_scenario(folder.write("s.yaml",
                                    "workload: {network: {layers: 2, hidden: 512, heads: 8, "
                                    "vocabulary: 1000}, sequence: 128}\n"
                                    "hardware: workstation_rtx4090\npolicy: {}\n" +
                                        memory))
      .allocator;
}

std::string error_of(const std::string& memory) {
  try {
    read(memory);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("options of the GPU allocator are read from memory", "[scenario]") {
  CHECK(read("") == AllocatorOptions{});
  CHECK(read("memory: {}\n") == AllocatorOptions{});
  CHECK(read("memory: {expandable_segments: true}\n").expandable_segments);
  CHECK(read("memory: {max_split_size: 128 MiB}\n").max_split_size == 128 * 1024 * 1024);
}

TEST_CASE("wrong options of the GPU allocator are located and say what is right", "[scenario]") {
  CHECK_THAT(error_of("memory: {expandable_segment: true}\n"),
             Containing("s.yaml:4:10: memory.expandable_segment: unknown key; did you mean "
                        "'expandable_segments'?"));
  CHECK_THAT(error_of("memory: {max_split_size: 20 MiB}\n"),
             Containing("s.yaml:4:26: memory.max_split_size: is 20 MiB; write more than 20 MiB"));
  CHECK_THAT(error_of("memory: {max_split_size: 128}\n"), Containing("has no unit"));
  CHECK_THAT(error_of("memory: {expandable_segments: true, max_split_size: 128 MiB}\n"),
             Containing("memory.max_split_size: applies without expandable_segments"));
}
