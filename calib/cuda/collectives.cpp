#include <algorithm>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/settings.hpp"
#include "calib/cuda/shim/nccl.hpp"
#include "calib/cuda/station.hpp"

// Collectives of NCCL over all local GPUs from one process, as nccl-tests time them: enqueued in a
// row on every GPU, without the gate, because a communicator may wait for the host. Small sizes so
// contain what one thread needs to enqueue for all GPUs. fp32, summed; all results are checked.
namespace tidegate::cuda {
namespace {

constexpr int iterations = 20;

struct Setting {
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::size_t elements = 0;  ///< of the whole vector, a multiple of the number of ranks
};

const char* quantity(CollectiveKind collective) {
  switch (collective) {
    case CollectiveKind::all_reduce:
      return "gpu.all_reduce";
    case CollectiveKind::all_gather:
      return "gpu.all_gather";
    case CollectiveKind::reduce_scatter:
      return "gpu.reduce_scatter";
    case CollectiveKind::broadcast:
      return "gpu.broadcast";
    case CollectiveKind::all_to_all:
      return "gpu.all_to_all";
  }
  return "";
}

class CollectiveBench : public calib::Bench {
 public:
  explicit CollectiveBench(const calib::Setup& setup) : gpus_(gpu_facts()) {
    // Whole vectors per rank, and of 32 bytes, so that every part can be filled 16 bytes at a time.
    const std::size_t grain = 8 * gpus_.size();
    for (const CollectiveKind collective :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      for (const std::int64_t size : collective_sizes(setup.effort)) {
        const std::size_t elements = static_cast<std::size_t>(size) / 4 / grain * grain;
        settings_.push_back({collective, elements});
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) {
      calib::Row row;
      row.quantity = quantity(s.collective);
      row.at = {{"bytes", 4.0 * static_cast<double>(s.elements)}, {"ranks", ranks()}};
      rows.push_back(row);
    }
    return rows;
  }

  void prepare() override {
    std::size_t bytes = 0;
    for (const Setting& s : settings_) bytes = std::max(bytes, 4 * s.elements);
    for (const GpuFacts& gpu : gpus_) {
      stations_.emplace_back(gpu);
      streams_.emplace_back(gpu.index);
      from_.emplace_back(gpu.index, bytes);
      to_.emplace_back(gpu.index, bytes);
    }
    communicators_ = std::make_unique<Communicators>(ranks());
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    fill(s);
    std::vector<float*> from, to;
    for (std::size_t r = 0; r < gpus_.size(); ++r) {
      from.push_back(from_[r].as<float>());
      to.push_back(to_[r].as<float>());
    }
    const auto once = [&] {
      communicators_->enqueue(s.collective, from, to, s.elements, streams_);
    };
    once();
    for (const Stream& stream : streams_) stream.wait();
    std::vector<Event> starts, stops;
    for (const GpuFacts& gpu : gpus_) {
      starts.emplace_back(gpu.index);
      stops.emplace_back(gpu.index);
    }
    Timed timed;
    for (std::size_t r = 0; r < gpus_.size(); ++r) record(r, starts);
    for (int i = 0; i < iterations; ++i) once();
    for (std::size_t r = 0; r < gpus_.size(); ++r) record(r, stops);
    timed.spoiled = stations_.front().look(Needs::link);
    for (std::size_t r = 0; r < gpus_.size(); ++r) {
      stops[r].wait();
      timed.in_all = std::max(timed.in_all, between(starts[r], stops[r]));
    }
    timed.each = timed.in_all / (1.0 * iterations);
    const double factor = s.collective == CollectiveKind::all_reduce ? all_reduce_factor(ranks())
                                                                     : gather_factor(ranks());
    return sample_of(factor * 4 * static_cast<double>(s.elements), timed, is_right(s));
  }

  void finish() override {
    communicators_.reset();
    to_.clear();
    from_.clear();
    streams_.clear();
    stations_.clear();
  }

 private:
  int ranks() const { return static_cast<int>(gpus_.size()); }

  void record(std::size_t rank, const std::vector<Event>& events) const {
    const OnDevice here(gpus_[rank].index);
    events[rank].record(streams_[rank]);
  }

  // Rank r sends share(i, r); of a gather, its part of share(i, 0).
  void fill(const Setting& s) {
    const std::size_t part = s.elements / gpus_.size();
    for (std::size_t r = 0; r < gpus_.size(); ++r) {
      const OnDevice here(gpus_[r].index);
      const Stream& stream = stations_[r].stream();
      if (s.collective == CollectiveKind::all_gather) {
        fill_shares(stream, from_[r].as<float>(), part, r * part, 0);
      } else {
        fill_shares(stream, from_[r].as<float>(), s.elements, 0, static_cast<int>(r));
      }
      set_bytes(stream, to_[r].data(), 0xFF, 4 * s.elements);
      stream.wait();
    }
  }

  // Sums of share(i, r) over r are share(i, 0) · (1 + 2 + … + n).
  bool is_right(const Setting& s) {
    const std::size_t part = s.elements / gpus_.size();
    const float sum = static_cast<float>(ranks() * (ranks() + 1) / 2);
    const bool is_scatter = s.collective == CollectiveKind::reduce_scatter;
    bool is_right = true;
    for (std::size_t r = 0; r < gpus_.size(); ++r) {
      const auto faults = stations_[r].faults([&](unsigned long long* count) {
        count_wrong_shares(stations_[r].stream(), to_[r].as<float>(),
                           is_scatter ? part : s.elements, is_scatter ? r * part : 0,
                           s.collective == CollectiveKind::all_gather ? 1 : sum, count);
      });
      is_right = is_right && faults == 0;
    }
    return is_right;
  }

  std::vector<GpuFacts> gpus_;
  std::vector<Setting> settings_;
  std::vector<Station> stations_;
  std::vector<Stream> streams_;
  std::vector<DeviceBuffer> from_, to_;
  std::unique_ptr<Communicators> communicators_;
};

}  // namespace

std::string why_no_collectives(const calib::Setup&) {
  const std::string reason = why_no_gpu();
  if (!reason.empty()) return reason;
  if (device_count() < 2) return "one GPU: a collective needs two";
  return Nccl().why_absent();
}
std::unique_ptr<calib::Bench> make_collectives(const calib::Setup& setup) {
  return std::make_unique<CollectiveBench>(setup);
}

}  // namespace tidegate::cuda
