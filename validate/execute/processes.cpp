#include "validate/execute/processes.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"

namespace tidegate {
namespace {

bool is_initialising(const Plan& plan, TaskId task) {
  return std::ranges::any_of(plan.meaning.of(task),
                             [](const Deed& deed) { return deed.verb == Deed::Verb::initialise; });
}

// The files of a rank are open in its process alone.
void check_files(const Plan& plan) {
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (is_initialising(plan, TaskId{t})) continue;
    const std::uint16_t rank = plan.lanes[index(plan.tasks[t].lane)].rank;
    for (const Deed& deed : plan.meaning.of(TaskId{t})) {
      for (const Access& a : plan.meaning.of(deed)) {
        const bool is_file = plan.pools[index(a.pool)].place.tier == Tier::storage;
        if (!is_file || plan.meaning.content(a.content).rank == rank) continue;
        throw InputError(fmt::format(
            "task '{}' of rank {} uses files of rank {}, which ranks as processes cannot: run the "
            "ranks in one process",
            plan.label(TaskId{t}), rank, plan.meaning.content(a.content).rank));
      }
    }
  }
}

// The process of one rank: its works, until the other end of `control` closes.
class Service {
 public:
  Service(TrainingWorker& worker, std::uint16_t rank, const std::vector<Death>& deaths)
      : worker_(worker) {
    for (const Death& d : deaths) {
      if (d.rank == rank) dies_at_ = d.at;
    }
    worker_.stand_for(rank);
  }

  void run(const Socket& control) {
    Command command;
    for (int descriptor = -1; receive(control, command, descriptor); descriptor = -1) {
      switch (command.kind) {
        case Command::Kind::sit:
          take_seat(std::make_shared<const Socket>(descriptor), command.seat);
          break;
        case Command::Kind::pass:
          send(control, answer([&] { worker_.pass(command.task); }));
          break;
        case Command::Kind::forget:
          worker_.forget(command.buffer);
          break;
        case Command::Kind::results:
          send(control, worker_.results());
          break;
        case Command::Kind::run:
          return;  // a seat's
      }
    }
  }

 private:
  TrainingWorker& worker_;
  std::int64_t dies_at_ = -1;
  std::atomic<std::int64_t> works_ = 0;

  template <class Do>
  static WorkResult answer(Do&& act) {
    WorkResult over;
    try {
      act();
    } catch (...) {
      over = failure();
    }
    return over;
  }

  // A seat whose thread cannot be made says so itself.
  void take_seat(const std::shared_ptr<const Socket>& socket, Seat seat) {
    try {
      std::thread([this, socket, seat] { sit(*socket, seat); }).detach();
    } catch (const std::exception&) {
      send(*socket, failure());
    }
  }

  void sit(const Socket& socket, Seat seat) {
    if (!send(socket, answer([&] { worker_.sit_down(seat); }))) return;
    Command command;
    for (int none = -1; receive(socket, command, none);) {
      if (works_++ == dies_at_) raise(SIGKILL);
      Clock::time_point due;
      WorkResult over = answer([&] { due = worker_.run(command.task, seat, command.start); });
      over.due = due;
      if (!send(socket, over)) return;
    }
  }
};

}  // namespace

RankProcesses::RankProcesses(const Plan& plan, TrainingWorker& worker,
                             const std::vector<Death>& deaths)
    : plan_(plan), worker_(worker), seats_(seats_of(plan)) {
  check_files(plan);
  for (std::uint16_t r = 0; r < plan.ranks; ++r) start(r, deaths);
  worker_.tell_gone([this](BufferId buffer) { forget(buffer); });
}

RankProcesses::~RankProcesses() {
  worker_.tell_gone({});
  for (const auto& process : processes_) reap(*process, true);
}

// What the child has inherited of earlier processes' sockets it closes, so that each hears when
// this process is gone. It leaves by _exit, whatever happens: destructors, buffers and handlers are
// the parent's.
void RankProcesses::start(std::uint16_t rank, const std::vector<Death>& deaths) {
  auto [here, there] = connected_sockets();
  const pid_t parent = getpid();
  const pid_t id = fork();
  if (id < 0) throw MachineError(fmt::format("fork failed: {}", std::strerror(errno)));
  if (id == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    here.close();
    for (const auto& earlier : processes_) earlier->control.close();
    try {
      Service(worker_, rank, deaths).run(there);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  auto process = std::make_unique<Process>();
  process->id = id;
  process->control = std::move(here);
  processes_.push_back(std::move(process));
}

void RankProcesses::sit_down(Seat seat) {
  Process& process = *processes_.at(rank_of(seat.lane));
  auto [here, there] = connected_sockets();
  WorkResult answer;
  bool is_heard = false;
  {
    const std::lock_guard lock(process.mutex);
    is_heard = send(process.control, Command{.kind = Command::Kind::sit, .seat = seat},
                    there.descriptor());
  }
  there.close();
  if (!is_heard || !receive(here, answer)) throw MachineError(death_of(rank_of(seat.lane)));
  rethrow(answer);
  seats_[seat.number] = std::move(here);
}

// Told when nobody reads from it any more: a process may have a task that has started and not yet
// read.
void RankProcesses::forget(BufferId buffer) {
  const Pool& pool = plan_.pools[index(plan_.buffers[index(buffer)].pool)];
  if (pool.place.tier != Tier::storage) return;
  for (const auto& process : processes_) {
    const std::lock_guard lock(process->mutex);
    send(process->control, Command{.kind = Command::Kind::forget, .buffer = buffer});
  }
}

Clock::time_point RankProcesses::run(TaskId task, Seat seat, Clock::time_point start) {
  const auto due =
      ask(rank_of(seat.lane), seats_[seat.number], task,
          Command{.kind = Command::Kind::run, .task = task, .seat = seat, .start = start});
  rig::check_interrupt();
  return due;
}

// What stands at the start every process makes for itself.
void RankProcesses::pass(TaskId task) {
  if (plan_.meaning.of(task).empty()) return;
  const bool is_for_all = is_initialising(plan_, task);
  for (std::uint16_t r = 0; r < processes_.size(); ++r) {
    if (!is_for_all && r != plan_.task(task).rank) continue;
    const std::lock_guard lock(processes_[r]->mutex);
    ask(r, processes_[r]->control, task, Command{.kind = Command::Kind::pass, .task = task});
  }
}

Clock::time_point RankProcesses::ask(std::uint16_t rank, Socket& socket, TaskId task,
                                     const Command& command) {
  Process& process = *processes_[rank];
  {
    const std::lock_guard lock(process.under_way_mutex);
    process.under_way.insert(static_cast<std::uint32_t>(index(task)));
  }
  WorkResult answer;
  if (!send(socket, command) || !receive(socket, answer)) throw MachineError(death_of(rank));
  {
    const std::lock_guard lock(process.under_way_mutex);
    process.under_way.erase(static_cast<std::uint32_t>(index(task)));
  }
  rethrow(answer);
  return answer.due;
}

void RankProcesses::stop() {
  worker_.stop();
  for (const auto& process : processes_) reap(*process, true);
}

void RankProcesses::collect() {
  for (std::uint16_t r = 0; r < processes_.size(); ++r) {
    std::vector<std::byte> results;
    const std::lock_guard lock(processes_[r]->mutex);
    const bool is_heard = send(processes_[r]->control, Command{.kind = Command::Kind::results}) &&
                          receive(processes_[r]->control, results);
    if (!is_heard) throw MachineError(death_of(r));
    worker_.add_results(results);
  }
}

std::vector<pid_t> RankProcesses::processes() const {
  std::vector<pid_t> ids;
  for (const auto& process : processes_) ids.push_back(process->id);
  return ids;
}

// A process whose sockets have closed is about to be gone; one that is not is ended.
void RankProcesses::reap(Process& process, bool kills) {
  const std::lock_guard lock(process.under_way_mutex);
  for (int tries = 0; !process.is_reaped; ++tries) {
    constexpr int most = 100;
    process.had_to_be_ended |= !kills && tries == most;
    if (kills || tries == most) kill(process.id, SIGKILL);
    const bool waits = kills || tries >= most;
    const pid_t id = waitpid(process.id, &process.status, waits ? 0 : WNOHANG);
    process.is_reaped = id == process.id || (id < 0 && errno == ECHILD);
    if (!process.is_reaped && !waits) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::string RankProcesses::death_of(std::uint16_t rank) {
  Process& process = *processes_[rank];
  reap(process, false);
  const std::lock_guard lock(process.under_way_mutex);
  const std::string cause =
      process.had_to_be_ended ? "closed its socket, did not end and was killed"
      : WIFSIGNALED(process.status)
          ? fmt::format("was killed by signal {} ({})", WTERMSIG(process.status),
                        strsignal(WTERMSIG(process.status)))
          : fmt::format("ended with code {}", WEXITSTATUS(process.status));
  std::string text = fmt::format("the process of rank {} (pid {}) {}", rank, process.id, cause);
  std::string separator = " while under way: ";
  for (const std::uint32_t task : process.under_way) {
    text += fmt::format("{}'{}' of iteration {}", separator, plan_.label(TaskId{task}),
                        plan_.tasks[task].iteration);
    separator = ", ";
  }
  return text;
}

}  // namespace tidegate
