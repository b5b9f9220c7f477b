#include "calib/cuda/shim/handles.hpp"

#include <cuda_runtime_api.h>

#include "calib/cuda/shim/check.hpp"

namespace tidegate::cuda {
namespace {

CUstream_st* make_stream(int device) {
  const OnDevice here(device);
  cudaStream_t stream = nullptr;
  TIDEGATE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

CUevent_st* make_event(int device) {
  const OnDevice here(device);
  cudaEvent_t event = nullptr;
  TIDEGATE_CUDA(cudaEventCreate(&event));
  return event;
}

std::byte* allocate(int device, std::size_t bytes) {
  const OnDevice here(device);
  void* data = nullptr;
  TIDEGATE_CUDA(cudaMalloc(&data, bytes));
  return static_cast<std::byte*>(data);
}

std::byte* allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  TIDEGATE_CUDA(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  return static_cast<std::byte*>(data);
}

}  // namespace

int device_count(const char** why) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  if (why != nullptr) {
    *why = error == cudaSuccess ? "no CUDA device" : cudaGetErrorString(error);
  }
  cudaGetLastError();
  return 0;
}

void sleep_while_waiting(int device) {
  const OnDevice here(device);
  TIDEGATE_CUDA(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
}

OnDevice::OnDevice(int device) {
  TIDEGATE_CUDA(cudaGetDevice(&before_));
  TIDEGATE_CUDA(cudaSetDevice(device));
}
OnDevice::~OnDevice() { cudaSetDevice(before_); }

Stream::Stream(int device) : device_(device), stream_(make_stream(device)) {}
void Stream::wait() const { TIDEGATE_CUDA(cudaStreamSynchronize(stream_.get())); }
void Stream::Destroy::operator()(CUstream_st* stream) const { cudaStreamDestroy(stream); }

Event::Event(int device) : event_(make_event(device)) {}
void Event::record(const Stream& stream) const {
  TIDEGATE_CUDA(cudaEventRecord(event_.get(), stream.handle()));
}
void Event::wait() const { TIDEGATE_CUDA(cudaEventSynchronize(event_.get())); }
void Event::Destroy::operator()(CUevent_st* event) const { cudaEventDestroy(event); }

Seconds between(const Event& start, const Event& stop) {
  float milliseconds = 0;
  TIDEGATE_CUDA(cudaEventElapsedTime(&milliseconds, start.handle(), stop.handle()));
  return Seconds(1e-3 * static_cast<double>(milliseconds));
}

DeviceBuffer::DeviceBuffer(int device, std::size_t bytes)
    : data_(bytes == 0 ? nullptr : allocate(device, bytes)), size_(bytes) {}
void DeviceBuffer::Free::operator()(std::byte* data) const { cudaFree(data); }

PinnedBuffer::PinnedBuffer(std::size_t bytes)
    : data_(bytes == 0 ? nullptr : allocate_pinned(bytes)), size_(bytes) {}
void PinnedBuffer::Free::operator()(std::byte* data) const { cudaFreeHost(data); }

void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  TIDEGATE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.handle()));
}

void copy_now(int device, void* to, const void* from, std::size_t bytes) {
  const OnDevice here(device);
  TIDEGATE_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

void copy_pieces(const Stream& stream, void* to, const void* from, std::size_t each,
                 std::size_t pitch, std::size_t count) {
  TIDEGATE_CUDA(
      cudaMemcpy2DAsync(to, pitch, from, pitch, each, count, cudaMemcpyDefault, stream.handle()));
}

void copy_to_peer(const Stream& stream, int peer, void* to, const void* from, std::size_t bytes) {
  TIDEGATE_CUDA(cudaMemcpyPeerAsync(to, peer, from, stream.device(), bytes, stream.handle()));
}

bool can_access(int from, int to) {
  int answer = 0;
  return cudaDeviceCanAccessPeer(&answer, from, to) == cudaSuccess && answer != 0;
}

void enable_access(int from, int to) {
  const OnDevice here(from);
  const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  TIDEGATE_CUDA(error);
}

void set_bytes(const Stream& stream, void* at, int value, std::size_t bytes) {
  TIDEGATE_CUDA(cudaMemsetAsync(at, value, bytes, stream.handle()));
}

}  // namespace tidegate::cuda
