#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

/// Files straight to and from the memory of GPUs (GPUDirect Storage: cuFile, by validate/cuda).
namespace tidegate {

/// Which way the bytes take: past the host, or through a buffer in its memory although nobody asked
/// for that.
enum class FileWay : std::uint8_t { direct, through_host, not_told };

/// Bytes of lasting memory of a GPU, of which all is attached.
struct AttachedPart {
  std::uint16_t gpu = 0;
  std::span<std::byte> memory;
  std::size_t at = 0, bytes = 0;
};

/// Offsets and lengths are whole pages. Calls come from several threads and return when done; they
/// throw MachineError.
class DirectFile {
 public:
  virtual ~DirectFile() = default;
  virtual void read(std::int64_t offset, const AttachedPart& to) = 0;
  virtual void write(std::int64_t offset, const AttachedPart& from) = 0;
};

class DirectFiles {
 public:
  virtual ~DirectFiles() = default;
  /// Empty where there are direct files, else the reason.
  virtual std::string why_absent() = 0;
  /// What is known before a byte moves.
  virtual FileWay way() = 0;
  /// Bytes that have gone past the host, whoever moved them; nothing where that is not counted.
  virtual std::optional<std::int64_t> counted() const = 0;
  /// A file that is open for direct access, for as long as the object lives. Throws MachineError
  /// where this file cannot go straight.
  virtual std::unique_ptr<DirectFile> open(int descriptor) = 0;
  /// Makes lasting memory known, and lets it go, which never throws.
  virtual void attach(std::uint16_t gpu, std::span<std::byte> memory) = 0;
  virtual void detach(std::uint16_t gpu, std::span<std::byte> memory) = 0;
};

}  // namespace tidegate
