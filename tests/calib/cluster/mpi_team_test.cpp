// Processes of mpirun as a team. The tests whose tags begin with a dot are what the others start.
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include "calib/cluster/alone.hpp"
#include "tests/catch.hpp"
#include "tests/mpirun.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate::calib;

namespace {

tidegate::test::Finished on_three(const char* tag) {
  tidegate::test::allow_any_number();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  return tidegate::test::run({TIDEGATE_MPIEXEC, "-n", "3", self, tag});
}

}  // namespace

TEST_CASE("a process that fails alone ends all", "[mpi][faults]") {
  const auto run = on_three("[.fails-alone]");
  INFO(run.err);
  CHECK(run.code != 0);
  CHECK(run.code != 128 + 9);  // that would be us, after a minute
}

TEST_CASE("a failure that all know of is told by the first, with who has it", "[mpi][faults]") {
  const auto run = on_three("[.agrees]");
  INFO(run.err);
  CHECK(run.code != 0);
  CHECK(run.code != 128 + 9);
  CHECK_THAT(run.out, Containing("process 2: the file is full"));
}

TEST_CASE("texts of all arrive at the first, whole and in order", "[mpi]") {
  CHECK(on_three("[.gathers]").code == 0);
}

TEST_CASE("one of three fails where the others wait", "[.fails-alone]") {
  const auto team = make_mpi_team();
  if (team->rank() == 1) throw std::runtime_error("alone");
  team->barrier();
}

// Told while the team is whole, as by the command: a launcher stops the others when one has ended.
TEST_CASE("one of three fails and says so", "[.agrees]") {
  const auto team = make_mpi_team();
  std::exception_ptr failure;
  if (team->rank() == 2) failure = std::make_exception_ptr(std::runtime_error("the file is full"));
  try {
    agree(*team, failure);
  } catch (const std::logic_error& error) {
    std::cout << error.what() << std::endl;  // NOLINT(performance-avoid-endl): before all leave
    CHECK(team->rank() != 0);                // the one failure of this process
  }
}

TEST_CASE("three gather", "[.gathers]") {
  const auto team = make_mpi_team();
  const auto text_of = [](std::int32_t rank) {  // 0, 100 000 and 200 000 bytes
    return std::string(static_cast<std::size_t>(rank) * 100'000, static_cast<char>('a' + rank));
  };
  const auto texts = team->gather(text_of(team->rank()));
  REQUIRE(texts.size() == (team->rank() == 0 ? 3U : 0U));
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(texts.size()); ++r)
    CHECK(texts[static_cast<std::size_t>(r)] == text_of(r));
  CHECK(team->broadcast(team->rank() == 0 ? "all" : "") == "all");
}
