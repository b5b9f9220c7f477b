#include <algorithm>
#include <chrono>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/shim/cufile.hpp"
#include "calib/cuda/station.hpp"
#include "calib/rig/file.hpp"

// Storage to GPU memory and back by cuFile, one call after the other from one thread. The file
// holds known words, written through cuFile itself; what is read is compared on the GPU. Which way
// the bytes took is part of the row: a row that claims "direct" is not verified unless the counters
// of nvidia-fs have moved by as much.
namespace tidegate::cuda {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

struct Setting {
  std::size_t path = 0;
  Direction direction = Direction::read;
  std::int64_t block = mib;
};

double coordinate(GdsWay way) {
  switch (way) {
    case GdsWay::direct:
      return 1;
    case GdsWay::compatibility:
      return 0;
    case GdsWay::not_told:
      return -1;
  }
  return -1;
}

// A file of a storage target that cuFile knows.
class GdsFile {
 public:
  GdsFile(const CuFile& library, const calib::StorageTarget& target)
      : library_(&library),
        file_(target.folder, rig::Access::direct),
        handle_(library.open(file_.descriptor())) {}
  ~GdsFile() { library_->close(handle_); }
  GdsFile(const GdsFile&) = delete;
  GdsFile& operator=(const GdsFile&) = delete;
  void* handle() const { return handle_; }

 private:
  const CuFile* library_;
  rig::ScratchFile file_;
  void* handle_;
};

class GdsBench : public calib::Bench {
 public:
  explicit GdsBench(const calib::Setup& setup)
      : gpu_(gpu_facts().front()),
        seed_(static_cast<std::uint32_t>(setup.seed)),
        targets_(setup.storage),
        library_(std::make_unique<CuFile>()),
        way_(expected_way(library_->driver())) {
    // 256 MiB, or less where the budget gives less.
    file_size_ = 256 * mib;
    if (setup.file_size > Bytes(0)) {
      const auto size = static_cast<std::int64_t>(setup.file_size.value());
      file_size_ = std::max(16 * mib, std::min(file_size_, size / (16 * mib) * (16 * mib)));
    }
    std::vector<std::int64_t> blocks{mib, 16 * mib};
    if (setup.effort == calib::Effort::full) blocks = {65536, mib, 4 * mib, 16 * mib};
    for (std::size_t p = 0; p < targets_.size(); ++p) {
      for (const Direction direction : {Direction::read, Direction::write}) {
        for (const std::int64_t block : blocks) settings_.push_back({p, direction, block});
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) {
      const bool is_read = s.direction == Direction::read;
      calib::Row row = gpu_row(targets_[s.path].name + (is_read ? ".gds_read" : ".gds_write"),
                               {{"block", static_cast<double>(s.block)}, {"way", coordinate(way_)}},
                               calib::Unit::bytes_per_second, gpu_, {});
      row.gate = calib::Gate::io;
      row.device = targets_[s.path].facts.device;
      row.writes = Bytes(is_read ? 0 : static_cast<double>(file_size_));
      rows.push_back(row);
    }
    return rows;
  }

  void prepare() override {
    const OnDevice here(gpu_.index);
    station_ = std::make_unique<Station>(gpu_);
    buffer_ = DeviceBuffer(gpu_.index, static_cast<std::size_t>(file_size_));
    library_->register_buffer(buffer_.data(), buffer_.size());
    fill();
    for (const calib::StorageTarget& target : targets_) {
      rig::check_space(target.folder, Bytes(static_cast<double>(file_size_)));
      files_.push_back(std::make_unique<GdsFile>(*library_, target));
      move(files_.back()->handle(), Direction::write, 16 * mib);
    }
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    const OnDevice here(gpu_.index);
    const bool is_read = s.direction == Direction::read;
    if (is_read) {
      set_bytes(station_->stream(), buffer_.data(), 0, buffer_.size());
      station_->stream().wait();
    } else {
      fill();
    }
    const auto before = nvidia_fs_counters();
    const auto begin = std::chrono::steady_clock::now();
    move(files_[s.path]->handle(), s.direction, s.block);
    calib::Sample sample;
    sample.elapsed =
        Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    sample.value = static_cast<double>(file_size_) / sample.elapsed.value();
    (is_read ? sample.read : sample.written) = file_size_;
    const bool went_as_told = way_ != GdsWay::direct || has_moved(before, s.direction);
    // A write is proved by reading it back, outside its time.
    if (!is_read) move(files_[s.path]->handle(), Direction::read, 16 * mib);
    sample.is_verified = went_as_told && holds_words();
    return sample;
  }

  void finish() override {
    files_.clear();
    if (buffer_.data() != nullptr) library_->deregister_buffer(buffer_.data());
    buffer_ = {};
    station_.reset();
  }

 private:
  void fill() {
    fill_words(station_->stream(), buffer_.as<std::uint32_t>(), buffer_.size() / 4, seed_);
    station_->stream().wait();
  }

  bool holds_words() {
    return station_->faults([&](unsigned long long* count) {
      count_wrong_words(station_->stream(), buffer_.as<std::uint32_t>(), buffer_.size() / 4, seed_,
                        count);
    }) == 0;
  }

  // The whole file.
  void move(void* file, Direction direction, std::int64_t block) const {
    for (std::int64_t at = 0; at < file_size_; at += block) {
      if (direction == Direction::read) {
        library_->read(file, buffer_.data(), static_cast<std::size_t>(block), at, at);
      } else {
        library_->write(file, buffer_.data(), static_cast<std::size_t>(block), at, at);
      }
    }
  }

  // Counters are whole MiB, and others may use the driver: at least nine tenths of our bytes.
  bool has_moved(const std::optional<NvidiaFsCounters>& before, Direction direction) const {
    const auto after = nvidia_fs_counters();
    if (!before || !after) return false;
    const std::int64_t moved = direction == Direction::read ? after->read - before->read
                                                            : after->written - before->written;
    return 10 * moved >= 9 * (file_size_ / mib);
  }

  GpuFacts gpu_;
  std::uint32_t seed_;
  std::vector<calib::StorageTarget> targets_;
  std::unique_ptr<CuFile> library_;
  GdsWay way_;
  std::int64_t file_size_ = 0;
  std::vector<Setting> settings_;
  std::unique_ptr<Station> station_;
  DeviceBuffer buffer_;
  std::vector<std::unique_ptr<GdsFile>> files_;
};

}  // namespace

std::string why_no_gds(const calib::Setup& setup) {
  const std::string reason = why_no_gpu();
  if (!reason.empty()) return reason;
  if (setup.storage.empty()) return "no storage path was named";
  for (const calib::StorageTarget& target : setup.storage) {
    const std::string no_direct = rig::why_no_direct_access(target.folder);
    if (!no_direct.empty()) return target.name + ": " + no_direct;
  }
  return CuFile().why_absent();
}
std::unique_ptr<calib::Bench> make_gds(const calib::Setup& setup) {
  return std::make_unique<GdsBench>(setup);
}

}  // namespace tidegate::cuda
