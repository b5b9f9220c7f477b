#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calib/checks/checks.hpp"
#include "tests/calib/storage/made_up.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

constexpr std::int64_t mib = 1 << 20;
const std::string folder = TIDEGATE_BINARY_DIR;

Target prepared(const std::string& where) {
  Setup setup = small_setup();
  setup.storage = {{"path", where, rig::file_system_of(where)}};
  Target target(setup.storage[0], setup, 1);
  target.prepare();
  return target;
}

const Check& find(const std::vector<Check>& checks, const std::string& name) {
  for (const Check& check : checks) {
    if (check.name == name) return check;
  }
  FAIL("no check " << name);
  return checks.front();
}

Check run(const std::string& name, Target& target) {
  for (const CheckEntry& entry : storage_checks()) {
    if (entry.name == name) return entry.run(target, check_plan(target));
  }
  FAIL("no check " << name);
  return {};
}

bool tells_extents() {
  const rig::ScratchFile file(folder, rig::Access::buffered);
  if (rig::unwritten_bytes(file, 4096) >= 0) return true;
  WARN("SKIPPED: the file system tells no extents");
  return false;
}

}  // namespace

TEST_CASE("a sparse and a reserved file are caught", "[checks]") {
  if (!tells_extents()) return;
  const rig::ScratchFile sparse(folder, rig::Access::buffered);
  REQUIRE(ftruncate(sparse.descriptor(), 4 * mib) == 0);
  CHECK(written_blocks(sparse, 4 * mib).verdict == Verdict::suspected);
  CHECK_THAT(written_blocks(sparse, 4 * mib).evidence,
             Containing("4 MiB of 4 MiB were never written"));
  const rig::ScratchFile reserved(folder, rig::Access::buffered);
  if (fallocate(reserved.descriptor(), 0, 0, 4 * mib) != 0) return;
  CHECK(written_blocks(reserved, 4 * mib).verdict == Verdict::suspected);
}

TEST_CASE("buffered reads are caught in the page cache", "[checks]") {
  const rig::ScratchFile file(folder, rig::Access::buffered);
  rig::HostBuffer bytes(4 * mib);
  REQUIRE(pwrite(file.descriptor(), bytes.data(), bytes.size(), 0) == 4 * mib);
  const Check check = page_cache(file, 4 * mib);
  CHECK(check.verdict == Verdict::suspected);
  CHECK_THAT(check.evidence, Containing("100.0 % of the file"));
}

TEST_CASE("a memory file system fails page cache and flush, and says it is memory", "[checks]") {
  const std::string shm = "/dev/shm";
  if (!std::filesystem::is_directory(shm)) {
    WARN("SKIPPED: no /dev/shm");
    return;
  }
  Target target = prepared(shm);
  const Check cache = run("page_cache", target);
  CHECK(cache.verdict == Verdict::suspected);
  CHECK_THAT(cache.evidence, Containing("tmpfs is memory"));
  CHECK(run("flush", target).verdict == Verdict::suspected);
  CHECK(run("device_bytes", target).verdict == Verdict::not_told);
  CHECK(run("written", target).verdict == Verdict::not_told);
}

TEST_CASE("a file that is not ours any more is caught", "[checks]") {
  Target target = prepared(folder);
  CHECK(run("content", target).verdict == Verdict::ok);
  const rig::HostBuffer zeros(4096);
  REQUIRE(pwrite(target.files()[0].descriptor(), zeros.data(), 4096, 0) == 4096);
  // One region is an eighth of 16 MiB: two blocks of 1 MiB, both in memory at the end.
  CHECK_THAT(run("content", target).evidence, Containing("1 blocks of 4 KiB are not"));
  constexpr int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (!tells_extents() || fallocate(target.files()[0].descriptor(), punch, mib, mib) != 0) return;
  CHECK_THAT(run("written", target).evidence, Containing("1 MiB of 16 MiB"));
}

TEST_CASE("where io_uring is refused, threads read and write and the check says why", "[checks]") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // What a container's filter does: io_uring_setup is not permitted.
    std::array<sock_filter, 4> refuse = {{
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_io_uring_setup},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    }};
    sock_fprog filter = {refuse.size(), refuse.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    std::string said = "no filter here";
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0) {
      Target target = prepared(folder);  // written by threads
      const Check engine = run("engine", target), content = run("content", target);
      said = std::string(name_of(engine.verdict)) + ", " + name_of(content.verdict) + ": " +
             engine.evidence;
    }
    [[maybe_unused]] const auto sent = write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 512> text{};
  const ssize_t length = read(ends[0], text.data(), text.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  const std::string said(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (said == "no filter here") {
    WARN("SKIPPED: the kernel has no filters of system calls");
    return;
  }
  CHECK_THAT(said, Containing("suspected, ok: reads and writes by threads"));
  CHECK_THAT(said, Containing("not permitted") || Containing("io_uring"));
}

TEST_CASE("a busy neighbour is caught", "[checks]") {
  Target target = prepared(folder);
  const pid_t child = fork();
  if (child == 0) {
    while (true) {
    }
  }
  // Whatever else runs here: a share of a core for the child is more than a quarter of one on any
  // machine that is not four times overloaded; then the others are caught instead.
  const Check check = run("neighbours", target);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(check.verdict == Verdict::suspected);
  CHECK_THAT(check.evidence, Containing("cores busy"));
}

TEST_CASE("a drive's own files pass what does not depend on others", "[checks]") {
  Target target = prepared(folder);
  CheckPlan plan = check_plan(target);
  CHECK(plan.region == 2 * mib);  // 16 MiB / 8
  plan.burst = Seconds(0.3);
  const auto checks = run_checks(target, plan);
  CHECK(checks.size() == storage_checks().size());
  CHECK(find(checks, "path.content").verdict == Verdict::ok);
  CHECK(find(checks, "path.written").verdict != Verdict::suspected);
  if (target.access() == rig::Access::direct) {
    CHECK(find(checks, "path.page_cache").verdict == Verdict::ok);
  }
  for (const Check& check : checks) CHECK_FALSE(check.evidence.empty());
}
