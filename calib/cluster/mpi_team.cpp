#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <thread>

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

class MpiTeam : public Team {
 public:
  MpiTeam() {
    check(MPI_Init(nullptr, nullptr), "MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    MPI_Comm here = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
          "MPI_Comm_split_type");
    MPI_Comm_rank(here, &rank_on_host_);
    int first = rank_;
    MPI_Bcast(&first, 1, MPI_INT, 0, here);
    MPI_Comm_free(&here);
    std::vector<int> firsts(static_cast<std::size_t>(size_));
    MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::ranges::sort(firsts);
    firsts.erase(std::ranges::unique(firsts).begin(), firsts.end());
    hosts_ = static_cast<int>(firsts.size());
    host_ = static_cast<int>(std::ranges::lower_bound(firsts, first) - firsts.begin());
  }
  ~MpiTeam() override { MPI_Finalize(); }
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
    int is_over = 0;
    while (true) {
      check(MPI_Test(&request, &is_over, MPI_STATUS_IGNORE), "MPI_Test");
      if (is_over != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::vector<std::string> gather(const std::string& text) override {
    const int own = static_cast<int>(text.size());
    std::vector<int> sizes(static_cast<std::size_t>(size_)), starts(sizes.size());
    check(MPI_Gather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Gather");
    std::exclusive_scan(sizes.begin(), sizes.end(), starts.begin(), 0);
    std::string all(static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), 0)), ' ');
    check(MPI_Gatherv(text.data(), own, MPI_CHAR, all.data(), sizes.data(), starts.data(), MPI_CHAR,
                      0, MPI_COMM_WORLD),
          "MPI_Gatherv");
    std::vector<std::string> texts;
    if (rank_ != 0) return texts;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      texts.push_back(
          all.substr(static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(sizes[i])));
    }
    return texts;
  }

  std::string broadcast(const std::string& text) override {
    int size = static_cast<int>(text.size());
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
      MPI_Send(message_.data(), n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
      MPI_Recv(message_.data(), n, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      own = (MPI_Wtime() - began) / 2;
    } else if (rank_ == peer) {
      MPI_Recv(message_.data(), n, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(message_.data(), n, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    }
    return Seconds(slowest(own));
  }

 private:
  // To the microsecond, before something is timed.
  static void together() { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  double slowest(double own) {
    double all = own;
    check(MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
    return all;
  }

  int rank_ = 0, size_ = 1, rank_on_host_ = 0, host_ = 0, hosts_ = 1;
  std::vector<float> from_, to_;
  std::vector<char> message_;
};

}  // namespace

bool has_mpi() { return true; }
std::unique_ptr<Team> make_mpi_team() { return std::make_unique<MpiTeam>(); }

}  // namespace tidegate::calib
