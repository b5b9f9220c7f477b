#include "sim/ranks/mpi_link.hpp"

#include <array>
#include <exception>
#include <list>

#include <mpi.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr int tag = 7;

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw MachineError(std::string(what) + ": " +
                     std::string(text.data(), static_cast<std::size_t>(length)));
}

class MpiLink final : public Link {
 public:
  MpiLink() {
    // Evaluating threads never call MPI.
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    MPI_Comm here = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
          "MPI_Comm_split_type");
    MPI_Comm_size(here, &size_here_);
    MPI_Comm_free(&here);
  }
  // MPI_Finalize waits for all. The first tells the others when it fails, and they leave; another
  // one that fails leaves without it, so that the launcher ends those who wait for its answers.
  ~MpiLink() override {
    if (rank_ != 0 && std::uncaught_exceptions() > 0) return;
    for (Sending& s : sending_) MPI_Wait(&s.request, MPI_STATUS_IGNORE);
    MPI_Finalize();
  }
  MpiLink(const MpiLink&) = delete;
  MpiLink& operator=(const MpiLink&) = delete;

  std::size_t rank() const override { return static_cast<std::size_t>(rank_); }
  std::size_t size() const override { return static_cast<std::size_t>(size_); }
  std::size_t size_here() const override { return static_cast<std::size_t>(size_here_); }

  void send(std::size_t to, std::string text) override {
    forget_sent();
    Sending& s = sending_.emplace_back(Sending{std::move(text), MPI_REQUEST_NULL});
    check(MPI_Isend(s.text.data(), static_cast<int>(s.text.size()), MPI_CHAR, static_cast<int>(to),
                    tag, MPI_COMM_WORLD, &s.request),
          "MPI_Isend");
  }

  std::optional<Message> receive() override {
    forget_sent();
    int has_arrived = 0, length = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &has_arrived, &status), "MPI_Iprobe");
    if (has_arrived == 0) return std::nullopt;
    MPI_Get_count(&status, MPI_CHAR, &length);
    Message message{static_cast<std::size_t>(status.MPI_SOURCE),
                    std::string(static_cast<std::size_t>(length), ' ')};
    check(MPI_Recv(message.text.data(), length, MPI_CHAR, status.MPI_SOURCE, tag, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
    return message;
  }

 private:
  struct Sending {
    std::string text;
    MPI_Request request;
  };

  void forget_sent() {
    for (auto s = sending_.begin(); s != sending_.end();) {
      int is_over = 0;
      check(MPI_Test(&s->request, &is_over, MPI_STATUS_IGNORE), "MPI_Test");
      s = is_over != 0 ? sending_.erase(s) : std::next(s);
    }
  }

  int rank_ = 0, size_ = 1, size_here_ = 1;
  std::list<Sending> sending_;  // their places stay
};

}  // namespace

bool has_mpi() { return true; }
std::unique_ptr<Link> make_mpi_link() { return std::make_unique<MpiLink>(); }

}  // namespace tidegate
