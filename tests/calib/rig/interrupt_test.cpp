#include <chrono>
#include <csignal>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "calib/rig/interrupt.hpp"
#include "tests/catch.hpp"

using namespace tidegate::rig;

TEST_CASE("a signal becomes a flag that lives as long as the scope", "[rig]") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const InterruptScope scope;
    CHECK_FALSE(is_interrupted());
    CHECK_NOTHROW(check_interrupt());
    std::raise(number);
    CHECK(is_interrupted());
    CHECK_THROWS_AS(check_interrupt(), Interrupted);
  }
  CHECK_FALSE(is_interrupted());
}

TEST_CASE("the handlers of before come back", "[rig]") {
  struct sigaction before{}, inside{}, after{};
  sigaction(SIGTERM, nullptr, &before);
  {
    const InterruptScope scope;
    sigaction(SIGTERM, nullptr, &inside);
  }
  sigaction(SIGTERM, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
  CHECK(inside.sa_handler != before.sa_handler);
}

TEST_CASE("two signals sent together are one, a later one ends the process at once", "[rig]") {
  const pid_t child = fork();
  if (child == 0) {
    const InterruptScope scope;
    std::raise(SIGINT);
    std::raise(SIGTERM);  // as timeout(1) does, to the process and to its group
    if (!is_interrupted()) _exit(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2200));
    std::raise(SIGINT);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);  // 128 + SIGINT (2), as a shell says it
}
