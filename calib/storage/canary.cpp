#include "calib/storage/storage_bench.hpp"

namespace tidegate::calib {
namespace {

constexpr std::int64_t size = 64 * mib;

class Canary : public Bench {
 public:
  Canary(const StorageTarget& path, const Setup& setup) : target_(path, setup, 1) {}

  std::vector<Row> rows() const override {
    Row row;
    row.quantity = "canary." + target_.path().name;
    row.at = {{"block", mib}, {"depth", 16}};
    row.gate = Gate::io;
    row.target = time_;
    row.device = target_.path().facts.device;
    return {row};
  }
  void prepare() override { target_.prepare(); }
  Sample sample(std::size_t) override {
    return rate_sample(stream(target_, {.direction = Direction::read, .most_time = time_}),
                       Direction::read);
  }
  void finish() override { target_.finish(); }

 private:
  Target target_;
  Seconds time_{0.2};
};

}  // namespace

std::vector<std::unique_ptr<Bench>> storage_canaries(const Setup& setup) {
  Setup small = setup;
  small.file_size = Bytes(static_cast<double>(size));
  small.write_budget = Bytes(2.0 * static_cast<double>(size));
  std::vector<std::unique_ptr<Bench>> canaries;
  for (const StorageTarget& path : setup.storage) {
    canaries.push_back(std::make_unique<Canary>(path, small));
  }
  return canaries;
}

}  // namespace tidegate::calib
