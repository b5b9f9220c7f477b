#include "validate/native/engine_bench.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "calib/kernels/kernels.hpp"
#include "calib/rig/host_buffer.hpp"
#include "validate/engine/kernels.hpp"
#include "validate/engine/worker.hpp"

namespace tidegate {
namespace {

using Pages = rig::HostBuffer::Pages;
using Coordinates = std::vector<std::pair<std::string, double>>;

constexpr std::int64_t mib = std::int64_t{1} << 20;
constexpr std::int64_t elements = 16 * mib;  // of a sub-group
constexpr Seconds sample_time(0.5);          // one sample is a block (drive_bench.cpp says why)
constexpr std::int64_t copied = 16 * mib;    // by one copy, of buffers of copy_buffer
constexpr std::int64_t copy_buffer = 512 * mib;
constexpr std::int64_t memory_buffer = 512 * mib;
constexpr std::int64_t update_memory = std::int64_t{1} << 30;  // through which updates go on
// 512 tokens, hidden size 1024: the projections, both layers of the MLP, a weight's gradient; and a
// product that is small.
constexpr Gemm products[] = {{.m = 256, .n = 256, .k = 256},
                             {.m = 512, .n = 1024, .k = 1024},
                             {.m = 512, .n = 4096, .k = 1024},
                             {.m = 512, .n = 1024, .k = 4096},
                             {.m = 1024, .n = 4096, .k = 512}};
constexpr Attention attention{
    .heads = 16, .kv_heads = 16, .queries = 512, .keys = 512, .head_dim = 64};

double number(std::int64_t n) { return static_cast<double>(n); }

class EngineBench : public calib::Bench {
 public:
  explicit EngineBench(const calib::Setup& setup) {
    for (const Gemm& gemm : products) {
      add("rig.gemm", {{"m", number(gemm.m)}, {"n", number(gemm.n)}, {"k", number(gemm.k)}},
          calib::Unit::flops_per_second, kernel(gemm));
    }
    add("rig.attention",
        {{"queries", number(attention.queries)},
         {"heads", number(attention.heads)},
         {"head_dim", number(attention.head_dim)}},
        calib::Unit::flops_per_second, kernel(attention));
    add_streams(setup);
    add_updates();
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Work& work : works_) rows.push_back(work.row);
    return rows;
  }

  void prepare() override {
    std::int64_t most = update_memory;
    for (const Work& work : works_) most = std::max(most, work.memory);
    own_ = rig::HostBuffer(static_cast<std::size_t>(most), Pages::usual);
    from_ = rig::HostBuffer(memory_buffer, Pages::huge);
    to_ = rig::HostBuffer(memory_buffer, Pages::huge);
    for (const auto* buffer : {&own_, &from_, &to_}) fill_ordinary(buffer->bytes());
  }

  calib::Sample sample(std::size_t row) override {
    const Work& work = works_[row];
    const Clock::time_point begin = Clock::now();
    std::chrono::duration<double> elapsed{};
    double amount = 0;
    do {
      work.once();
      amount += work.amount;
      elapsed = Clock::now() - begin;
    } while (elapsed.count() < work.row.target.value());
    return {.value = amount / elapsed.count(), .elapsed = Seconds(elapsed.count())};
  }

  void finish() override { own_ = {}, from_ = {}, to_ = {}; }

 private:
  struct What {
    double amount = 0;  ///< of one time, in the row's unit times seconds
    std::int64_t memory = 0;
    std::function<void()> once;
  };
  struct Work : What {
    calib::Row row;
  };

  void add(const char* quantity, Coordinates at, calib::Unit unit, What what) {
    calib::Row row{.quantity = quantity, .at = std::move(at), .unit = unit, .target = sample_time};
    works_.push_back({std::move(what), std::move(row)});
  }

  What kernel(const Kernel& kernel) {
    return {flops_of(kernel).value(), own_memory(Compute{.gpu = 0, .kernels = {kernel}}, true),
            [this, kernel] { do_kernel(kernel, Carving(own_.bytes())); }};
  }

  void add_streams(const calib::Setup& setup) {
    const Elementwise stream{.bytes = Bytes(number(64 * mib))};
    What what = kernel(stream);
    what.amount = stream.bytes.value();
    add("rig.stream", {{"bytes", stream.bytes.value()}}, calib::Unit::bytes_per_second, what);
    add("rig.copy", {{"bytes", number(copied)}}, calib::Unit::bytes_per_second,
        {number(copied), 0, [this] { copy_next(); }});
    const int threads = setup.host.logical_cores;
    add("rig.memory", {{"threads", number(threads)}}, calib::Unit::bytes_per_second,
        {2 * number(memory_buffer), 0,
         [this, threads] { cpu::copy_streaming(from_.as<float>(), to_.as<float>(), threads); }});
  }

  void add_updates() {
    const AdamStep adam{.parameters = elements};
    add("rig.adam", {{"parameters", number(elements)}}, calib::Unit::per_second,
        {number(elements), own_memory(adam, true),
         [this, adam] { do_adam(adam, next_own(own_memory(adam, true)), 0, 1); }});
    const Cast cast{.elements = elements, .from = DType::bf16, .to = DType::fp32};
    add("rig.cast", {{"elements", number(elements)}}, calib::Unit::per_second,
        {number(elements), own_memory(cast, true),
         [this, cast] { do_cast(cast, next_own(own_memory(cast, true)), 0, 1); }});
  }

  // Neighbouring pieces in turn, so that nothing finds in a cache what it has just worked on: in a
  // plan other works come between.
  void copy_next() {
    do_copy(from_.bytes().subspan(copied_to_, copied), to_.bytes().subspan(copied_to_, copied));
    copied_to_ = (copied_to_ + copied) % copy_buffer;
  }
  Carving next_own(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (updated_to_ + size > own_.size()) updated_to_ = 0;
    const Carving own(own_.bytes().subspan(updated_to_, size));
    updated_to_ += size;
    return own;
  }

  std::vector<Work> works_;
  rig::HostBuffer own_, from_, to_;
  std::size_t copied_to_ = 0, updated_to_ = 0;
};

}  // namespace

std::unique_ptr<calib::Bench> make_engine_bench(const calib::Setup& setup) {
  return std::make_unique<EngineBench>(setup);
}

}  // namespace tidegate
