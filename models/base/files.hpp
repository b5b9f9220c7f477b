#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace tidegate {

/// Writes a file whole or not at all: the text goes to a temporary file beside it, which is renamed
/// when everything was written and removed when not. Throws MachineError with the reason.
void write_atomically(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace tidegate
