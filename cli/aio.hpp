#pragma once

namespace CLI {
class App;
}

namespace tidegate {

/// The command `aio`: what block size, depth and threads get out of the storage paths.
void add_aio(CLI::App& app);

}  // namespace tidegate
