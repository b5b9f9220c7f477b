#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace tidegate {

/// Messages between the processes of a run that a launcher started. All calls come from one thread.
class Link {
 public:
  struct Message {
    std::size_t from = 0;
    std::string text;
  };
  virtual ~Link() = default;
  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  /// How many of the processes are on this host.
  virtual std::size_t size_here() const = 0;
  /// Does not wait for the receiver.
  virtual void send(std::size_t to, std::string text) = 0;
  /// A message that has arrived, those of one sender in their order; nothing when there is none.
  virtual std::optional<Message> receive() = 0;
};

/// By MPI; null when nobody started several of us. Throws InputError where a launcher did and this
/// build has no MPI: every process would do the same.
std::unique_ptr<Link> make_link();

}  // namespace tidegate
