#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/base/units.hpp"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

/// What CUDA lends us, as objects that give it back: move-only, destructors never throw. Nothing
/// here needs the CUDA headers; nothing touches the driver before the first object is made.
namespace tidegate::cuda {

using StreamHandle = CUstream_st*;
using EventHandle = CUevent_st*;

/// GPUs that the runtime sees; 0 without a driver. Never throws. `why`: the runtime's reason when
/// 0.
int device_count(const char** why = nullptr);

/// From now on threads that wait for this GPU sleep instead of keeping a core busy.
void sleep_while_waiting(int device);

/// Makes a GPU current in this thread while it lives.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

/// A stream that does not synchronize with the default stream.
class Stream {
 public:
  explicit Stream(int device);
  StreamHandle handle() const { return stream_.get(); }
  operator StreamHandle() const { return stream_.get(); }  ///< for kernels
  int device() const { return device_; }
  void wait() const;

 private:
  struct Destroy {
    void operator()(CUstream_st* stream) const;
  };
  int device_;
  std::unique_ptr<CUstream_st, Destroy> stream_;
};

class Event {
 public:
  explicit Event(int device);
  EventHandle handle() const { return event_.get(); }
  void record(const Stream& stream) const;
  void wait() const;

 private:
  struct Destroy {
    void operator()(CUevent_st* event) const;
  };
  std::unique_ptr<CUevent_st, Destroy> event_;
};
/// Both have happened. Resolution about 0.5 us (cudaEventElapsedTime).
Seconds between(const Event& start, const Event& stop);

/// Memory of a GPU, not initialized.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(int device, std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

/// Page-locked host memory that every GPU may use and, by the same address, read and write itself.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

/// Copies on a stream, whatever the two ends are.
void copy(const Stream& stream, void* to, const void* from, std::size_t bytes);
/// Copies and returns when done.
void copy_now(int device, void* to, const void* from, std::size_t bytes);
/// Of the first `each` bytes of every `pitch`, `count` times.
void copy_pieces(const Stream& stream, void* to, const void* from, std::size_t each,
                 std::size_t pitch, std::size_t count);
/// From memory of one GPU to that of another, on a stream of the first.
void copy_to_peer(const Stream& stream, int peer, void* to, const void* from, std::size_t bytes);
/// Whether GPU `from` can read and write the memory of `to` itself; lets it.
bool can_access(int from, int to);
void enable_access(int from, int to);
void set_bytes(const Stream& stream, void* at, int value, std::size_t bytes);

}  // namespace tidegate::cuda
