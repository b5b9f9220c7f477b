// bench/gpu_check with a program in the place of tidegate that predicts where the real one would
// run: every case is a scenario that exists and fits, and what a machine cannot do is left out.
#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate::test;

namespace {

constexpr const char* stand_in = R"(#!/usr/bin/env bash
case "$1 $2" in
  'calib --dry-run') cat "$(dirname "$0")/cannot" ;;
  'calib --quick') echo "a profile" >"${!#}" ;;
  'validate run')
    scenario=$3 sets=()
    while [ $# -gt 0 ]; do
      if [ "$1" = --set ]; then sets+=(--set "$2"); fi
      shift
    done
    "$REAL" simulate "$scenario" "${sets[@]}" | grep 'Fits. An iteration' ;;
  *) exit 1 ;;
esac
)";

// `cannot`: what calib says is not measured here.
Finished checked(const std::string& cannot) {
  const TemporaryFolder folder;
  folder.write("cannot", cannot);
  std::string program = stand_in;
  program.replace(program.find("$REAL"), 5, TIDEGATE_EXECUTABLE);
  const std::string path = folder.write("tidegate", program);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  const std::string script = std::string(TIDEGATE_SOURCE_DIR) + "/bench/gpu_check";
  return run({script, path, folder.path().string(), (folder.path() / "out").string()});
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("every case of gpu_check is a scenario that fits", "[gpu_check]") {
  const Finished all = checked("");
  INFO(all.out << all.err);
  CHECK(all.code == 0);
  CHECK(count_of(all.out, "\n== ") == 14);  // 12 compared, 2 trained
  CHECK(count_of(all.out, "\n== trained on the GPU: ") == 2);
  CHECK(count_of(all.out, "Fits. An iteration") == 14);
  CHECK(count_of(all.out, "Left out") == 0);
}

TEST_CASE("gpu_check says why it leaves cases out on one GPU without cuFile", "[gpu_check]") {
  const Finished one = checked(
      "Not measured: gpu_peer: one GPU: it has no peer\n"
      "Not measured: gpu_collectives: one GPU: a collective needs two\n"
      "Not measured: gpu_storage: libcufile.so.0 is not installed\n");
  INFO(one.out << one.err);
  CHECK(one.code == 0);
  CHECK(count_of(one.out, "Fits. An iteration") == 7 + 2);
  CHECK_THAT(one.out, Containing("== activations straight to the drive\n"
                                 "Left out: libcufile.so.0 is not installed\n") &&
                          Containing("== two ranks of ZeRO-3\n"
                                     "Left out: one GPU: a collective needs two\n") &&
                          Containing("== two stages of a pipeline\n"
                                     "Left out: one GPU: it has no peer\n"));
}
