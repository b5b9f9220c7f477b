#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <limits>
#include <thread>

#include <fmt/core.h>
#include <mpi.h>

#include "calib/cluster/alone.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw MachineError(std::string(what) + ": " +
                     std::string(text.data(), static_cast<std::size_t>(length)));
}

// MPI counts in 32 bits.
int length_of(const std::string& text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw MachineError(fmt::format("MPI: a text of {} bytes is too long", text.size()));
  return static_cast<int>(text.size());
}

class MpiTeam : public Team {
 public:
  MpiTeam() {
    int provided = 0;  // the threads of benches never call MPI
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &leaving_), "MPI_Comm_dup");
    MPI_Comm here = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
          "MPI_Comm_split_type");
    check(MPI_Comm_rank(here, &rank_on_host_), "MPI_Comm_rank");
    int first = rank_;
    check(MPI_Bcast(&first, 1, MPI_INT, 0, here), "MPI_Bcast");
    check(MPI_Comm_free(&here), "MPI_Comm_free");
    std::vector<int> firsts(static_cast<std::size_t>(size_));
    check(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, MPI_COMM_WORLD),
          "MPI_Allgather");
    std::ranges::sort(firsts);
    firsts.erase(std::ranges::unique(firsts).begin(), firsts.end());
    hosts_ = static_cast<int>(firsts.size());
    host_ = static_cast<int>(std::ranges::lower_bound(firsts, first) - firsts.begin());
  }
  // MPI_Finalize waits for all. Who fails alone leaves without it, so that the launcher ends the
  // others, which wait for what never comes.
  ~MpiTeam() override {
    const bool has_failed = std::uncaught_exceptions() > 0;
    if (all_leave(has_failed ? Patience::little : Patience::endless)) MPI_Finalize();
  }
  MpiTeam(const MpiTeam&) = delete;
  MpiTeam& operator=(const MpiTeam&) = delete;

  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return size_; }
  std::int32_t rank_on_host() const override { return rank_on_host_; }
  std::int32_t host() const override { return host_; }
  std::int32_t hosts() const override { return hosts_; }

  // MPI_Barrier spins, and who waits for its turn would spoil the samples of who measures.
  void barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    while (!is_over(request)) std::this_thread::sleep_for(between_looks);
  }

  // One after the other: together they may be longer than MPI counts.
  std::vector<std::string> gather(const std::string& text) override {
    int size = length_of(text);
    std::vector<std::string> texts;
    if (rank_ != 0) {
      check(MPI_Send(&size, 1, MPI_INT, 0, gathered, MPI_COMM_WORLD), "MPI_Send");
      check(MPI_Send(text.data(), size, MPI_CHAR, 0, gathered, MPI_COMM_WORLD), "MPI_Send");
      return texts;
    }
    texts.push_back(text);
    for (int from = 1; from < size_; ++from) {
      check(MPI_Recv(&size, 1, MPI_INT, from, gathered, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Recv");
      std::string& its = texts.emplace_back(static_cast<std::size_t>(size), ' ');
      check(MPI_Recv(its.data(), size, MPI_CHAR, from, gathered, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Recv");
    }
    return texts;
  }

  std::string broadcast(const std::string& text) override {
    int size = length_of(text);
    check(MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
    std::string result = text;
    result.resize(static_cast<std::size_t>(size));
    check(MPI_Bcast(result.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
    return result;
  }

  bool any(bool holds) override {
    int own = holds ? 1 : 0, all = 0;
    check(MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
    return all != 0;
  }

  Seconds all_reduce(std::int64_t bytes) override {
    const auto count = static_cast<std::size_t>(bytes / 4);
    from_.assign(count, 1.0F);
    to_.assign(count, 0.0F);
    together();
    const double began = MPI_Wtime();
    check(MPI_Allreduce(from_.data(), to_.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                        MPI_COMM_WORLD),
          "MPI_Allreduce");
    const double own = MPI_Wtime() - began;
    const bool wrong =
        std::ranges::any_of(to_, [this](float v) { return v != static_cast<float>(size_); });
    if (any(wrong)) throw MachineError("MPI_Allreduce returned a wrong sum");
    return Seconds(slowest(own));
  }

  Seconds send(std::int32_t peer, std::int64_t bytes) override {
    const auto count = static_cast<std::size_t>(bytes);
    message_.assign(count, 'x');
    together();
    double own = 0;
    const int n = static_cast<int>(count);
    if (rank_ == 0) {
      const double began = MPI_Wtime();
      check(MPI_Send(message_.data(), n, MPI_CHAR, peer, there, MPI_COMM_WORLD), "MPI_Send");
      check(MPI_Recv(message_.data(), n, MPI_CHAR, peer, back, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Recv");
      own = (MPI_Wtime() - began) / 2;
    } else if (rank_ == peer) {
      check(MPI_Recv(message_.data(), n, MPI_CHAR, 0, there, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Recv");
      check(MPI_Send(message_.data(), n, MPI_CHAR, 0, back, MPI_COMM_WORLD), "MPI_Send");
    }
    return Seconds(slowest(own));
  }

 private:
  enum class Patience : std::uint8_t { little, endless };
  static constexpr int gathered = 1, there = 2, back = 3;  // tags
  static constexpr std::chrono::milliseconds between_looks{2};

  static bool is_over(MPI_Request& request) {
    int flag = 0;
    check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
    return flag != 0;
  }

  // Whether all are about to leave; with little patience false where one does not come for 5 s.
  bool all_leave(Patience patience) noexcept {
    constexpr std::chrono::seconds little{5};
    const auto begun = std::chrono::steady_clock::now();
    try {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ibarrier(leaving_, &request), "MPI_Ibarrier");
      while (!is_over(request)) {
        const bool is_late = std::chrono::steady_clock::now() - begun > little;
        if (patience == Patience::little && is_late) return false;
        std::this_thread::sleep_for(between_looks);
      }
    } catch (const MachineError&) {
      return false;
    }
    return true;
  }

  // To the microsecond, before something is timed.
  static void together() { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  double slowest(double own) {
    double all = own;
    check(MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
    return all;
  }

  int rank_ = 0, size_ = 1, rank_on_host_ = 0, host_ = 0, hosts_ = 1;
  MPI_Comm leaving_ = MPI_COMM_NULL;  // its barrier is the end
  std::vector<float> from_, to_;
  std::vector<char> message_;
};

}  // namespace

bool has_mpi() { return true; }
std::unique_ptr<Team> make_mpi_team() { return std::make_unique<MpiTeam>(); }

}  // namespace tidegate::calib
