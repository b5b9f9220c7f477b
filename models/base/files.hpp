#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace tidegate {

/// Whether what was written is on the drive when the call returns, or on its way there.
enum class Durability { later, now };

/// Writes a file whole or not at all: the text goes to a temporary file beside it, "PATH.PID.part",
/// which is renamed when everything was written and removed when not (SIGKILL leaves it). A link
/// stays one, and its target is replaced; a file that is replaced leaves its permissions; what is
/// no file (/dev/stdout, a pipe) is written to as it stands. Throws MachineError with the reason.
void write_atomically(const std::string& path, const std::function<void(std::ostream&)>& write,
                      Durability durability = Durability::later);

}  // namespace tidegate
