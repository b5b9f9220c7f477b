// Processes of mpirun as links. The tests whose tags begin with a dot are what the first starts.
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "sim/ranks/mpi_link.hpp"
#include "tests/catch.hpp"
#include "tests/mpirun.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;

TEST_CASE("a rank that fails alone ends all, however long the first would wait", "[mpi][faults]") {
  test::allow_any_number();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto run = test::run({TIDEGATE_MPIEXEC, "-n", "3", self, "[.fails-alone]"});
  INFO(run.err);
  CHECK(run.code != 0);
  CHECK(run.code != 128 + 9);  // that would be us, after a minute
}

TEST_CASE("one of three fails while the first waits for answers", "[.fails-alone]") {
  const std::unique_ptr<Link> link = make_mpi_link();
  if (link->rank() == 2) throw std::runtime_error("alone");
  while (!link->receive()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
